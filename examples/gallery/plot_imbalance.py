"""
Few rows of one class: weights that follow the counts
=====================================================

With few rows of one class and many of another, least squares favours the
common class. ``class_weight`` is computed from the counts when the model is
solved (Zhu et al. 2018). So it can be set after training, without the data,
and balance follows the rows as they come and go.
"""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.metrics import recall_score

from traceless import LSSVC
from traceless.features import RandomFourier

blobs = {"centers": [[0.0, 0.0], [1.8, 1.8]], "cluster_std": [1.0, 0.7]}
X, y = make_blobs([1000, 500], **blobs, random_state=0)
X_test, y_test = make_blobs([2000, 2000], **blobs, random_state=1)
common, rare = np.flatnonzero(y == 0), np.flatnonzero(y == 1)

# %%
# All common rows and twenty rare ones. What is known of each class is kept
# apart, so that one model can be solved without weights and with them.

COLOURS = {None: "#d95f0e", "balanced": "#1b6ca8"}
few = rare[:20]
rows = np.append(common, few)
model = LSSVC(RandomFourier(100, gamma=0.1, random_state=0), classwise=True)
model.fit(X[rows], y[rows])

plt.rc("axes.spines", top=False, right=False)
figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
ax.scatter(X[common, 0], X[common, 1], s=6, color="0.75", label="common")
ax.scatter(X[few, 0], X[few, 1], s=14, color="black", label="rare")
for weight, colour in COLOURS.items():
    DecisionBoundaryDisplay.from_estimator(
        model.set_params(class_weight=weight),
        X,
        plot_method="contour",
        response_method="decision_function",
        levels=[0.0],
        colors=colour,
        ax=ax,
    )
    ax.plot([], color=colour, label=f"class_weight={weight!r}")
ax.legend(frameon=False, loc="upper left")
ax.set(xlabel="x₀", ylabel="x₁")
plt.show()

# %%
# More rare rows come in, and the weights follow. What they cost is on the
# other side: common rows that are taken for rare ones.

counts = [20, 40, 80, 160, 320, 500]
model.fit(X[common], y[common])
recalls: dict[str | None, list[np.ndarray]] = {None: [], "balanced": []}
for old, new in pairwise([0, *counts]):
    model.partial_fit(X[rare[old:new]], y[rare[old:new]])
    for weight, shares in recalls.items():
        answers = model.set_params(class_weight=weight).predict(X_test)
        shares.append(recall_score(y_test, answers, average=None))

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for weight, colour in COLOURS.items():
    of_common, of_rare = np.transpose(recalls[weight])
    label = f"class_weight={weight!r}"
    ax.plot(
        counts, of_common, "^--", color=colour, label=f"common, {label}"
    )
    ax.plot(counts, of_rare, "o-", color=colour, label=f"rare, {label}")
ax.set(ylim=(0, 1.03), xlabel="rare rows, beside 1000 common ones")
ax.set_ylabel("share of test rows recognised")
ax.legend(frameon=False, loc="lower right")
plt.show()
