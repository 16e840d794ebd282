"""What the path engine is checked against, in plain numpy."""

import numpy as np

from families import draw_points


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


def published_residual(problem):
    """The same of what is published; infinite where its α are not within their bounds.

    Decision values must be those of the dual coefficients.
    """
    solution, bounds = problem.published, problem.bounds
    alpha = solution.alpha_of_points(bounds)
    if not ((alpha >= 0.0) & (alpha <= bounds)).all():
        return np.inf
    found = residual(problem, alpha, solution.intercept)
    if len(problem) and len(np.unique(problem.y)) == 2:
        f = (
            dense_kernel(problem.kernel, problem.X, problem.X) @ (problem.y * alpha)
            + solution.intercept
        )
        off = np.abs(f - problem.decision_function(problem.X)).max()
        found = max(found, float(off))
    return max(found, abs(solution.residual))


def change(problem, family, rng, most):
    """One random update: in, out, both, other bounds, all but a few, or all of one class."""
    n, kind = len(problem), rng.integers(12)
    m, k = int(rng.integers(0, most + 1)), int(rng.integers(0, most + 1))
    if kind == 0 and n:
        problem.update(bounds=problem.bounds * rng.choice([0.5, 2.0, 1.0], size=n))
        return
    if kind == 1:
        k = n - int(rng.integers(0, 4))
    gone = rng.choice(n, size=min(max(k, 0), n), replace=False)
    if kind == 2:
        gone = np.flatnonzero(problem.y == rng.choice([-1.0, 1.0]))
        gone = gone[int(rng.integers(0, 2)) :]
    if n - len(gone) < 5:
        m += 30
    problem.update(draw_points(family, rng, m), gone)


def equal_bits(a, b):
    """Whether two solutions of the same points are the same function to the bit."""
    same = np.array_equal(a.shares, b.shares) and a.intercept == b.intercept
    if a.weights is None or b.weights is None:
        return same
    return same and np.array_equal(a.weights, b.weights)
