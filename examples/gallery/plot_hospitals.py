"""
Four hospitals, one model, and no row that travels
==================================================

Four hospitals may pool what they have learned, but not their patients.
Scikit-learn's breast cancer data are split by the radius of the tumours, so
that each hospital sees other cases and none sees them all. Each sends its
knowledge once: sums of integers, of the same size whatever the number of
patients.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from traceless import LSSVC

X, y = load_breast_cancer(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, random_state=0)
where = np.searchsorted(np.quantile(X[:, 0], [0.25, 0.5, 0.75]), X[:, 0])


def fit(rows: np.ndarray) -> LSSVC:
    return LSSVC().fit(X[rows], y[rows])


names = ["north", "east", "south", "west"]
sites = {name: fit(where == k) for k, name in enumerate(names)}
pool = LSSVC()
for name, site in sites.items():
    pool.merge(site.knowledge_, name=name)

# %%
# The pool is the model of all rows, to the bit, though they were never in
# one place.

print("as a fit on all rows:", pool.digest() == fit(where >= 0).digest())

# %%
# The west withdraws. What is left is the model of the other three.

rest = LSSVC().merge(pool).merge(-sites["west"].knowledge_)
print("no trace of the west:", rest.digest() == fit(where != 3).digest())

# %%
# Who sees small tumours only, or large ones only, learns little about the
# patients of the others.

models = {**sites, "pool": pool, "pool without west": rest}
accuracy = [100 * model.score(X_test, y_test) for model in models.values()]
labels = [f"{name}, {m.n_samples_} rows" for name, m in models.items()]

figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
bars = ax.barh(labels, accuracy, color=["#b5cfe3"] * 4 + ["#1b6ca8"] * 2)
ax.bar_label(bars, fmt="%.1f %%", padding=4)
ax.set(xlim=(0, 110), xlabel="accuracy on patients of all four (%)")
ax.invert_yaxis()
ax.spines[["top", "right"]].set_visible(False)
plt.show()
