"""
A head that forgets
===================

A frozen network makes embeddings, and a linear head learns them: ten
classes, one after another, and one person's rows are forgotten again. Here
the network is a small convolution with a fixed seed; yours may be any, on a
GPU: the head takes its tensors where they are.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from traceless import LSSVC

plt.rc("figure.constrained_layout", use=True)
filters = np.random.default_rng(0).normal(size=(24, 3, 3))


def embedded(images: Any) -> Any:
    """A frozen network: convolution, ReLU, pooling; on the head's grid."""
    patches = sliding_window_view(images / 16.0, (3, 3), axis=(1, 2))
    maps = np.maximum(np.tensordot(patches, filters, ([3, 4], [1, 2])), 0)
    pooled = maps.reshape(-1, 3, 2, 3, 2, 24).max(axis=(2, 4))
    return np.rint(pooled.reshape(-1, 216) * 2**14) / 2**14


digits = load_digits()
X, X_test, y, y_test = train_test_split(
    embedded(digits.images), digits.target, random_state=0
)

# %%
# Ten tasks, each a class that was never seen before. The old ones stay: a
# sum has nothing to overwrite.

head = LSSVC()
for digit in range(10):
    head.partial_fit(X[y == digit], y[y == digit])
person = np.arange(len(X)) % 40 == 0  # whose rows these are
head.forget(X[person], y[person])
never = LSSVC().fit(X[~person], y[~person])
print("as if never seen:", head.digest() == never.digest())
print(f"accuracy: {head.score(X_test, y_test):.3f}")

# %%
# Continual and federated "analytic learning" keep an inverse in floats and
# update it (recursive least squares). Here it learns all rows; then 1200 of
# the 1347 are forgotten one by one, learned again and forgotten again. This
# is how far it is, each time, from the model that never saw them.

papers = LSSVC(rho=1.0, free_intercept=False, standardize=False)
exact = papers.fit(X[1200:], y[1200:])
truth = np.vstack([exact.coef_.T, exact.intercept_])
F, Y = np.hstack([X, np.ones((len(X), 1))]), 2.0 * np.eye(10)[y] - 1.0


def errors(kind: Any, rounds: int = 8) -> list[float]:
    A, T, found = F.astype(kind), Y.astype(kind), []
    P, W = np.eye(217, dtype=kind), np.zeros((217, 10), kind)
    for n, sign in [(len(F), 1)] + [(1200, -1), (1200, 1)] * rounds:
        for a, t in zip(A[:n], T[:n], strict=True):
            gain = P @ a
            gain /= sign + a @ gain
            W, P = W + np.outer(gain, t - a @ W), P - np.outer(gain, a @ P)
        found.append(np.abs(W - truth).max() / np.abs(truth).max())
    return found[1::2]


figure, ax = plt.subplots(figsize=(6.4, 3.6))
for kind, color in ((np.float32, "#d95f0e"), (np.float64, "#fec44f")):
    ax.semilogy(range(1, 9), errors(kind), color=color, label=kind.__name__)
ax.set(xlabel="times forgotten", ylabel="error of the recursion")
ax.legend(frameon=False, title="traceless: 0")
plt.show()
