"""
Finding wrong labels, and forgetting them
=========================================

One label in five is wrong, and nobody knows which. ``influence`` predicts
each row from all other rows, in closed form: leave-one-out at about the
cost of two fits. The rows that the others contradict most are forgotten.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from traceless import LSSVC
from traceless.features import RandomFourier
from traceless.model_selection import influence

plt.rc("figure.constrained_layout", use=True)
plt.rc("axes.spines", top=False, right=False)

X, y = load_digits(return_X_y=True)
X, X_test, y_true, y_test = train_test_split(X, y, random_state=0)
rng = np.random.default_rng(0)
wrong = rng.random(len(X)) < 0.2
y = np.where(wrong, (y_true + rng.integers(1, 10, len(X))) % 10, y_true)

model = LSSVC(RandomFourier(500, gamma=0.001, random_state=0), rho=100.0)
found = influence(model, X, y)
suspects = found.suspicious(wrong.sum())
print(
    f"{wrong[suspects].sum()} of the {wrong.sum()} wrong labels were found"
)

# %%
# The suspects are forgotten, not retrained away: what is left is the model
# of the other rows.

before = model.fit(X, y).score(X_test, y_test)
after = model.forget(X[suspects], y[suspects]).score(X_test, y_test)
print(f"accuracy {before:.1%} before, {after:.1%} after")

# %%
# The margin is how clearly the other rows agree with a label; below zero
# they contradict it.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8))
groups = [found.margin[~wrong], found.margin[wrong]]
left.hist(groups, 40, histtype="barstacked", color=["#1b6ca8", "#d95f0e"])
left.legend(["right label", "wrong label"], frameon=False)
left.set(xlabel="held-out margin", ylabel="rows")
left.set_title("What all others say of a label")

tiles = [np.pad(X[row].reshape(8, 8), 1) for row in suspects[:12]]
right.imshow(np.block([tiles[:4], tiles[4:8], tiles[8:]]), cmap="gray_r")
for k, row in enumerate(suspects[:12]):
    corner = k % 4 * 10, k // 4 * 10 + 1.2
    right.text(*corner, str(y[row]), color="#d95f0e")
right.set_title("The first twelve suspects, and their labels")
right.set_axis_off()
plt.show()
