"""SMO that starts from the solution before a change: the peer that alpha seeding would be.

LIBSVM has no way in for dual variables, neither in scikit-learn nor in `libsvm-official`; so
here is its algorithm (Fan, Chen & Lin 2005, second-order working sets), compiled, on a kernel
matrix in memory. What was on rows that left goes to rows of the same class that have room
(DeCoste & Wagstaff 2000), those on the margin first.
"""

from __future__ import annotations

import numba
import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from papers.datasets import Floats, Indices


class WarmStart:
    """Rows, their kernel matrix and a solution; rows that come take the places of those that go."""

    def __init__(self, gamma: float, X: Floats, y: Floats, C: float, alpha: Floats) -> None:
        self.gamma, self.C = gamma, C
        self.X, self.y, self.alpha = X.copy(), y.copy(), alpha.copy()
        self.K = rbf_kernel(self.X, gamma=gamma)

    def update(self, new: tuple[Floats, Floats], gone: Indices, tol: float) -> int:
        """Exchange rows and solve again; returns the number of iterations."""
        spilt = {s: float(self.alpha[gone][self.y[gone] == s].sum()) for s in (-1.0, 1.0)}
        self.X[gone], self.y[gone] = new
        self.alpha[gone] = 0.0
        values = rbf_kernel(self.X[gone], self.X, gamma=self.gamma)
        self.K[gone], self.K[:, gone] = values, values.T
        for sign, left in spilt.items():
            self._take_in(np.flatnonzero(self.y == sign), left)
        return int(_compiled(self.K, self.y, self.C, self.alpha, tol))

    def _take_in(self, ours: Indices, left: float) -> None:
        """Spread what was on rows that left over some rows, those on the margin first."""
        alpha = self.alpha[ours]
        for i in ours[np.argsort(alpha * (alpha - self.C), kind="stable")]:
            if left <= 0.0:
                return
            step = min(left, self.C - self.alpha[i])
            self.alpha[i] += step
            left -= step


def smo(K: Floats, y: Floats, C: float, alpha: Floats, tol: float) -> int:
    """Solve in place from a feasible alpha; returns the number of iterations."""
    n = len(y)
    G = np.full(n, -1.0)
    for j in range(n):
        if alpha[j] != 0.0:
            c = y[j] * alpha[j]
            for i in range(n):
                G[i] += y[i] * c * K[j, i]
    for step in range(100 * n + 10_000_000):
        i, highest = -1, -np.inf
        for t in range(n):
            if (y[t] > 0 and alpha[t] < C) or (y[t] < 0 and alpha[t] > 0.0):
                v = -y[t] * G[t]
                if v > highest:
                    highest, i = v, t
        j, lowest, best = -1, np.inf, np.inf
        for t in range(n):
            if (y[t] > 0 and alpha[t] > 0.0) or (y[t] < 0 and alpha[t] < C):
                v = -y[t] * G[t]
                lowest = min(lowest, v)
                b = highest - v
                if b > 0.0:
                    a = max(K[i, i] + K[t, t] - 2.0 * K[i, t], 1e-12)
                    if -b * b / a < best:
                        best, j = -b * b / a, t
        if highest - lowest < tol or j < 0:
            return step
        a = max(K[i, i] + K[j, j] - 2.0 * K[i, j], 1e-12)
        move = (highest + y[j] * G[j]) / a
        move = min(move, C - alpha[i] if y[i] > 0 else alpha[i])
        move = min(move, alpha[j] if y[j] > 0 else C - alpha[j])
        alpha[i] = min(max(alpha[i] + y[i] * move, 0.0), C)
        alpha[j] = min(max(alpha[j] - y[j] * move, 0.0), C)
        for t in range(n):
            G[t] += y[t] * move * (K[i, t] - K[j, t])
    return -1


_compiled = numba.njit(cache=True, error_model="numpy")(smo)
