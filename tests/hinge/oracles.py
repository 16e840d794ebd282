"""What the path engine is checked against, in plain numpy."""

import numpy as np


def dense_kernel(kernel, A, B):
    if kernel.name == "rbf":
        return np.exp(-kernel.gamma * ((A[:, None] - B[None]) ** 2).sum(axis=-1))
    if kernel.name == "linear":
        return A @ B.T
    if kernel.name == "poly":
        return (kernel.gamma * (A @ B.T) + kernel.coef0) ** kernel.degree
    if kernel.name == "sigmoid":
        return np.tanh(kernel.gamma * (A @ B.T) + kernel.coef0)
    if kernel.name == "precomputed":
        return kernel.gram[np.ix_(A[:, 0].astype(int), B[:, 0].astype(int))]
    return kernel.function(A, B)


def promise(problem):
    """KKT residual that rounding of g itself may leave."""
    size = np.abs(problem.kernel.diagonal(problem.X)).max(initial=0.0)
    return max(1e-9, 10 * np.finfo(float).eps * problem.alpha.sum() * size)


def residual(problem, alpha=None, intercept=None):
    """The largest violation of a KKT condition, with nothing of the engine but the kernel's name.

    That of the end of the path, or of other numbers.
    """
    X, y, u = problem.X, problem.y, problem.bounds
    alpha = problem.alpha if alpha is None else alpha
    intercept = problem.intercept if intercept is None else intercept
    if len(np.unique(y)) < 2:
        return float(np.abs(alpha).max(initial=0.0))
    g = y * (dense_kernel(problem.kernel, X, X) @ (y * alpha) + intercept) - 1.0
    wrong = np.where(alpha <= 0, -g, np.where(alpha >= u, g, np.abs(g)))
    outside = max((-alpha).max(), (alpha - u).max(), 0.0)
    return max(wrong.max(), outside, abs(y @ alpha) / max(1.0, alpha.sum()))


def interior_point(Q, p, u, s, total, steps=200):
    """The least of ½ αᵀQα - pᵀα over 0 ≤ α ≤ u with sᵀα = total, by a primal-dual interior point.

    It has nothing in common with a path: no active set, no exchange, all α between their bounds.
    """
    n = len(u)
    a, z, w, dual = 0.5 * u, np.ones(n), np.ones(n), 0.0
    for _ in range(steps):
        room = np.maximum(u - a, 1e-16 * u)
        gap = (a @ z + room @ w) / (2 * n)
        dual_residual = Q @ a - p + s * dual - z + w
        off = s @ a - total
        if gap < 1e-15 and np.abs(dual_residual).max() < 1e-13 and abs(off) < 1e-13:
            break
        mu = 0.1 * gap
        right = -dual_residual + mu / a - z - mu / room + w
        H = Q + np.diag(z / a + w / room)
        try:
            both = np.linalg.solve(H, np.column_stack([right, s]))
        except np.linalg.LinAlgError:  # as near as float64 lets it
            break
        d_dual = (s @ both[:, 0] + off) / (s @ both[:, 1])
        da = both[:, 0] - d_dual * both[:, 1]
        dz, dw = mu / a - z - z * da / a, mu / room - w + w * da / room
        step = 1.0
        for value, change in ((a, da), (room, -da), (z, dz), (w, dw)):
            falls = change < 0.0
            step = min(step, 0.995 * (value[falls] / -change[falls]).min(initial=np.inf))
        a, z, w, dual = a + step * da, z + step * dz, w + step * dw, dual + step * d_dual
    return 0.5 * a @ Q @ a - p @ a
