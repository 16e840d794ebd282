"""
Few rows of one class: weights that follow the counts
=====================================================

With few rows of one class and many of another, least squares listens to the many.
``class_weight`` is taken from the counts when the model is solved (Zhu et al. 2018). So it can be
set after training, without the data, and balance follows the rows as they come and go.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.metrics import recall_score

from traceless import LSSVC
from traceless.features import RandomFourier

CENTRES, SPREAD = [[0.0, 0.0], [1.8, 1.8]], [1.0, 0.7]
X, y = make_blobs([1000, 500], centers=CENTRES, cluster_std=SPREAD, random_state=0)
X_test, y_test = make_blobs([2000, 2000], centers=CENTRES, cluster_std=SPREAD, random_state=1)
common, rare = np.flatnonzero(y == 0), np.flatnonzero(y == 1)

# %%
# A model that keeps what it knows of each class apart starts with all common rows, and the rare
# ones come little by little. At each stage it is solved without weights and with "balanced"
# ones.

COLOURS = {None: "#d95f0e", "balanced": "#1b6ca8"}
counts = [20, 40, 80, 160, 320, 500]
model = LSSVC(RandomFourier(100, gamma=0.1, random_state=0), rho=1.0, classwise=True)
model.fit(X[common], y[common])
recalls: dict[str | None, list[float]] = {weight: [] for weight in COLOURS}
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for start, stop in zip([0, *counts], counts, strict=False):
    model.partial_fit(X[rare[start:stop]], y[rare[start:stop]])
    for weight, colour in COLOURS.items():
        model.set_params(class_weight=weight)
        recalls[weight].append(recall_score(y_test, model.predict(X_test)))
        if start == 0:
            DecisionBoundaryDisplay.from_estimator(
                model,
                X,
                plot_method="contour",
                response_method="decision_function",
                levels=[0.0],
                colors=colour,
                ax=left,
            )

left.scatter(*X[common].T, s=6, color="0.75", label="common")
left.scatter(*X[rare[:20]].T, s=14, color="black", label="rare")
left.set(title="Boundaries with 20 rare rows of 1020", xlabel="x₀", ylabel="x₁")
left.legend(frameon=False, loc="upper left")
for weight, colour in COLOURS.items():
    right.plot(counts, recalls[weight], "o-", color=colour, label=f"class_weight={weight!r}")
right.set(title="As rare rows come in", xlabel="rare rows, beside 1000 common ones")
right.set(ylabel="share of rare test rows found", ylim=(0, 1))
right.legend(frameon=False, loc="lower right")
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)

# %%
# Without weights the model finds few of the rare rows until there are many. What weights cost
# is on the other side: common rows that are taken for rare ones.

for weight in COLOURS:
    found = model.set_params(class_weight=weight).predict(X_test)
    print(f"{weight!s:<9} common rows recognised: {recall_score(y_test, found, pos_label=0):.1%}")
