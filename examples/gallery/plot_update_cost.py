"""
What forgetting costs, and what a refit costs
=============================================

A refit computes with every row that stays, an update with the rows that
leave. Both end when the model has predicted a row. The two take turns, and
medians are shown, so that a busy machine disturbs both alike.
"""

import copy
import time
from collections.abc import Callable

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.datasets import make_classification

from traceless import LSSVC
from traceless.features import RandomFourier

X, y = make_classification(4000, 20, n_informative=10, random_state=0)
phi = RandomFourier(150, gamma=0.02, random_state=0)
sizes = [1, 10, 100, 1000, 2000]


def seconds(change: Callable[..., LSSVC], rows: slice) -> float:
    start = time.perf_counter()
    change(X[rows], y[rows]).predict(X[:1])
    return time.perf_counter() - start


figure, axes = plt.subplots(
    1, 2, figsize=(10, 4), sharey=True, layout="constrained"
)
for ax, solver in zip(axes, ("cholesky", "woodbury"), strict=True):
    model = LSSVC(phi, solver=solver).fit(X, y)
    model.predict(X[:1])
    times = np.empty((2, 3, len(sizes)))
    for turn, k in np.ndindex(3, len(sizes)):
        goes, stays = slice(sizes[k]), slice(sizes[k], None)
        times[0, turn, k] = seconds(copy.deepcopy(model).forget, goes)
        times[1, turn, k] = seconds(clone(model).fit, stays)
    forget, refit = 1e3 * np.median(times, axis=1)
    ax.loglog(
        sizes, refit, "o-", color="grey", label="fit the others again"
    )
    ax.loglog(sizes, forget, "o-", label="forget")
    ax.set(title=f'solver="{solver}"', xlabel=f"rows that go, of {len(X)}")
axes[0].set_ylabel("milliseconds (median)")
axes[0].legend()
plt.show()

# %%
# The default solver takes the rows out of the sums and factors the matrix
# anew. ``solver="woodbury"`` keeps the inverse (Lee et al. 2019), which
# pays for a few rows. Where half of the rows go, a fit from scratch costs
# no more.
