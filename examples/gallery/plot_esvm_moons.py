"""
An extreme SVM on two moons
===========================

An ESVM is a linear machine behind a layer of units that are drawn at random
and never trained, so it learns, forgets and merges as every other model
here. More units bend the boundary more finely.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.model_selection import train_test_split

from traceless import ESVM

X, y = make_moons(600, noise=0.2, random_state=0)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0)

plt.rc("figure.constrained_layout", use=True)
figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), sharey=True)
for ax, n_units in zip(axes, (5, 20, 200), strict=True):
    esvm = ESVM(n_units, C=100.0, scale=2.0, random_state=0).fit(X, y)
    DecisionBoundaryDisplay.from_estimator(
        esvm,
        X,
        response_method="predict",
        plot_method="pcolormesh",
        grid_resolution=300,
        eps=0.3,
        cmap="RdBu",
        alpha=0.25,
        ax=ax,
    )
    ax.scatter(*X.T, c=y, cmap="RdBu", s=10)
    accuracy = esvm.score(X_test, y_test)
    ax.set(title=f"{n_units} units: accuracy {accuracy:.1%}", xlabel="x₀")
axes[0].set_ylabel("x₁")
plt.show()

# %%
# The layer is part of the feature map, hence of the digest. Another seed
# gives another model, and the two are not merged by mistake.

other = ESVM(200, C=100.0, scale=2.0, random_state=1).fit(X_test, y_test)
try:
    esvm.merge(other)
except ValueError as error:
    print(error)
