"""
Outliers in a window of sensor rows
===================================

Two sensors of a machine drift through the day. Which readings are unlike
the last hundred? ``PathOneClass`` draws a boundary around the rows of a
``SlidingWindow``: ten readings come in, the ten oldest go out along one
path, and the boundary is always that of a fit from scratch. Readings of a
faulty hour come, spoil the boundary, and are taken back.
"""

import matplotlib.pyplot as plt
import numpy as np

from traceless import PathOneClass, SlidingWindow

rng = np.random.default_rng(0)
hours = np.linspace(0.0, 24.0, 600)
day = np.column_stack([np.sin(hours / 9.0), np.cos(hours / 9.0)])
X = 2.0 * day + rng.normal(0.0, 0.25, day.shape)
faulty = (hours > 14.0) & (hours < 14.8)
X[faulty] += rng.uniform(1.2, 2.0, (faulty.sum(), 2))

# %%
# Each batch is judged before it is learned.

machine = PathOneClass(nu=0.05, gamma=0.3)
window = SlidingWindow(machine, size=100).fit(X[:100])
judged, moments = [], {}
for start in range(100, 600, 10):
    batch = X[start : start + 10]
    judged.append(window.decision_function(batch))
    window.partial_fit(batch)
    if start == 380:  # the faulty hour is in the window now
        held = X[290:390]
        bad = held[faulty[290:390]]
        moments["with the faulty hour"] = window.estimator_
        window.forget(bad)
        moments["after forgetting it"] = window.estimator_
        fresh = PathOneClass(nu=0.05, gamma=0.3).fit(held[~faulty[290:390]])
        print("as never learned:", window.digest() == fresh.digest())
alarms = np.concatenate(judged) < 0.0
print(f"{alarms[faulty[100:]].mean():.0%} of faulty readings are outliers,")
print(f"and {alarms[~faulty[100:]].mean():.0%} of the others")

# %%
# The boundary, before and after the faulty readings are forgotten.

plt.rc("axes.spines", top=False, right=False)
figure, axes = plt.subplots(
    1, 2, figsize=(8, 3.6), sharex=True, sharey=True, layout="constrained"
)
side = np.linspace(-1.5, 4.5, 150)
grid = np.stack(np.meshgrid(side, side), axis=-1)
for ax, (name, model) in zip(axes, moments.items(), strict=True):
    values = model.decision_function(grid.reshape(-1, 2)).reshape(150, 150)
    ax.contourf(side, side, values, levels=[0, np.inf], colors=["#d5e6f3"])
    ax.contour(side, side, values, levels=[0], colors=["#1b6ca8"])
    gone = faulty[290:390]
    ax.plot(*held[~gone].T, ".", color="0.4", ms=4)
    if "with" in name:
        ax.plot(*held[gone].T, ".", color="#e8871e", label="faulty")
        ax.legend(frameon=False, loc="upper left")
    ax.set(title=name, xlabel="first sensor")
axes[0].set_ylabel("second sensor")
plt.show()
