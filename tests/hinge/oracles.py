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
