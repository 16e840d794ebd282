"""
A tube, before and after forgetting
===================================

``PathSVR`` ignores residuals up to ε: its answer is the middle of a tube,
and only rows at the edge of the tube or beyond it, the support vectors,
hold it in place. When a customer takes a few readings back, the tube
moves along a path to where it would be had they never been learned.
Forgetting rows inside of the tube changes nothing at all.
"""

import copy

import matplotlib.pyplot as plt
import numpy as np

from traceless import PathSVR

rng = np.random.default_rng(3)
x = np.sort(rng.uniform(0.0, 10.0, 90))
y = np.sin(x) + 0.15 * rng.normal(size=90)
wrong = (x > 6.2) & (x < 7.4)
y[wrong] += 0.9  # one customer's meter was off

svr = PathSVR(C=10.0, epsilon=0.25, gamma=0.5).fit(x[:, None], y)
grid = np.linspace(0.0, 10.0, 300)[:, None]
before, support = svr.predict(grid), svr.support_

# %%
# One path for all rows of the customer; then the rows inside of the tube,
# which no longer matter.

svr.forget(x[wrong, None], y[wrong])
fresh = PathSVR(C=10.0, epsilon=0.25, gamma=0.5)
fresh.fit(x[~wrong, None], y[~wrong])
print("as never learned:", svr.digest() == fresh.digest())
print(f"{wrong.sum()} rows gone, over {svr.n_breakpoints_} breakpoints")

inside = np.setdiff1d(svr.ids_, svr.ids_[svr.support_])
after = svr.predict(grid)
smaller = copy.copy(svr).forget(ids=inside)
same = np.array_equal(smaller.predict(grid), after)
print(f"the same without {len(inside)} rows inside of the tube: {same}")

# %%
# Filled points are support vectors.

plt.rc("axes.spines", top=False, right=False)
figure, axes = plt.subplots(
    2, figsize=(8, 5), sharex=True, sharey=True, layout="constrained"
)
kept = np.flatnonzero(~wrong)
for ax, title, middle, rows, used in (
    (axes[0], "before", before, np.arange(90), support),
    (axes[1], "after", after, kept, kept[svr.support_]),
):
    low, high = middle - 0.25, middle + 0.25
    ax.fill_between(grid[:, 0], low, high, color="#d5e6f3", lw=0)
    ax.plot(grid, middle, color="#1b6ca8")
    ax.plot(x[rows], y[rows], "o", color="0.4", ms=4, mfc="white")
    ax.plot(x[used], y[used], "o", color="0.4", ms=4)
    ax.set_title(title, loc="left", fontsize="medium")
    ax.set_ylabel("target")
axes[0].plot(x[wrong], y[wrong], "o", color="#e8871e", ms=4)
axes[1].set_xlabel("one column")
plt.show()
