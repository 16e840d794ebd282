"""Kernels, each value the same bits whatever else is computed with it.

    rbf    exp(-γ Σ_d (a_d - b_d)²)
    linear Σ_d (a_d - m_d) (b_d - m_d)
    poly   (γ Σ_d a_d b_d + coef0)^degree
    sigmoid tanh(γ Σ_d a_d b_d + coef0)

A linear kernel may be centred: since Σyα = 0, the m_d change the intercept and nothing else, and
columns that vary little around a large value would otherwise drown in its square.

A BLAS product of rows is not the same for one row as for the same row in a batch. Here the
sum over d is taken in the order of the columns, one multiplication and one addition after
the other, for many points side by side; the exponential is a polynomial, as in
`traceless.arithmetic.elementary`. So a value depends on its two rows alone, and k(a, b) = k(b, a).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from traceless.arithmetic.elementary import EXP, LN2_HIGH, LN2_LOW, LOG2_E, exponential
from traceless.arithmetic.integers import Floats
from traceless.hinge.compiled import compiled

# unsigned, as in `cholesky`
_ZERO, _ONE, _TWO, _THREE, _FOUR = (np.uint64(i) for i in range(5))
_WIDTH, _DEPTH = np.uint64(128), np.uint64(16)  # points and columns of a tile: 16 kB
_SERIES, _TERMS = np.array(EXP[::-1]), len(EXP)  # known to the compiler, which unrolls the sum
_LOWEST = -700.0  # below, e^x counts as 0
_POWERS = np.ldexp(1.0, np.arange(-1020, 1))  # 2^k at k + 1020


@compiled
def _sums(A: Floats, BT: Floats, out: Floats, squared: bool | None) -> None:
    """Fill out[i, j] with Σ_d a_d b_d of A[i] and BT[:, j], or with Σ_d (a_d - b_d)² if `squared`.

    Points are done in tiles and columns in blocks, which stay in the cache; each sum is still taken
    in the order of the columns. What is None is known to the compiler: it only compiles the sum
    that is needed.
    """
    n, width, d = np.uint64(BT.shape[1]), np.uint64(A.shape[1]), _ZERO
    for start in range(_ZERO, n, _WIDTH):
        end = min(start + _WIDTH, n)
        for i in range(len(A)):
            row = out[i]
            for j in range(start, end):
                row[j] = 0.0
        for block in range(_ZERO, width, _DEPTH):
            for i in range(len(A)):
                row, d, stop = out[i], np.uint64(block), min(block + _DEPTH, width)
                while d + _FOUR <= stop:
                    p, q, r, s = A[i, d], A[i, d + _ONE], A[i, d + _TWO], A[i, d + _THREE]
                    a, b, c, e = BT[d], BT[d + _ONE], BT[d + _TWO], BT[d + _THREE]
                    d += _FOUR
                    if squared is None:
                        for j in range(start, end):
                            row[j] = row[j] + p * a[j] + q * b[j] + r * c[j] + s * e[j]
                    else:
                        for j in range(start, end):
                            t, u, v, w = p - a[j], q - b[j], r - c[j], s - e[j]
                            row[j] = row[j] + t * t + u * u + v * v + w * w
                while d < stop:
                    p, a = A[i, d], BT[d]
                    d += _ONE
                    if squared is None:
                        for j in range(start, end):
                            row[j] += p * a[j]
                    else:
                        for j in range(start, end):
                            row[j] += (p - a[j]) * (p - a[j])


@compiled
def _exponentials(x: Floats, factor: float, powers: Floats) -> None:
    """Replace x by e^(factor x), in place, where that is at most 1."""
    for j in range(len(x)):
        v = max(factor * x[j], _LOWEST)
        k = np.rint(v * LOG2_E)
        r, t = (v - k * LN2_HIGH) - k * LN2_LOW, _SERIES[0]
        for q in range(1, _TERMS):
            t = t * r + _SERIES[q]
        x[j] = t * powers[np.uint64(k + 1020.0)] if v > _LOWEST else 0.0


def _tanh(x: Floats) -> Floats:
    """The hyperbolic tangent, relative error below 1e-14: a continued fraction near 0."""
    e = exponential(-2.0 * np.abs(x))
    far = np.copysign((1.0 - e) / (1.0 + e), x)
    near = np.minimum(x * x, 1.0)
    below = np.full_like(x, 19.0)
    for odd in range(17, 0, -2):
        below = odd + near / below
    return np.asarray(np.where(np.abs(x) < 0.75, x / below, far))


def products(A: Floats, w: Floats) -> Floats:
    """Σ_d a_d w_d for each row a, the same bits in any batch."""
    out = np.empty((1, len(A)))
    _sums(np.ascontiguousarray(w)[None], np.ascontiguousarray(A.T), out, None)
    return np.asarray(out[0])


@dataclass(frozen=True)
class Kernel:
    """A kernel function with its parameters.

    Parameters
    ----------
    name : {"rbf", "linear", "poly", "sigmoid", "precomputed", "callable"}
    gamma, coef0, degree : as in scikit-learn
    centre : ndarray of shape (width,), for "linear", optional
    gram : ndarray, for "precomputed"
        Rows are then numbers of rows of this symmetric matrix, one column of them.
    function : callable(A, B) -> ndarray of shape (len(A), len(B)), for "callable"
    """

    name: str = "rbf"
    gamma: float = 1.0
    coef0: float = 0.0
    degree: int = 3
    gram: Floats | None = None
    function: Callable[[Floats, Floats], Floats] | None = None
    centre: Floats | None = None

    @property
    def exact(self) -> bool:
        """Whether `values` are the same bits in any batch."""
        return self.name != "callable"

    @property
    def definite(self) -> bool:
        """Whether it is positive semidefinite whatever the rows are."""
        return self.name in ("rbf", "linear") or (self.name == "poly" and self.coef0 >= 0.0)

    def values(self, A: Floats, BT: Floats) -> Floats:
        """k(a, b) for all rows a of A and all *columns* b of BT, shape (len(A), columns)."""
        if self.name == "precomputed":
            assert self.gram is not None
            return np.asarray(self.gram[np.ix_(A[:, 0].astype(np.intp), BT[0].astype(np.intp))])
        if self.name == "callable":
            return self._given(A, BT)
        if self.name == "rbf" and self.gamma == 0:  # whatever the distance, infinity included
            return np.ones((len(A), BT.shape[1]))
        if self.centre is not None:
            A, BT = A - self.centre, BT - self.centre[:, None]
        out = np.empty((len(A), BT.shape[1]))
        squared = True if self.name == "rbf" else None
        _sums(np.ascontiguousarray(A), np.ascontiguousarray(BT), out, squared)
        if self.name == "rbf":
            _exponentials(out.reshape(-1), -float(self.gamma), _POWERS)
        elif self.name != "linear":
            out = self._of_products(out)
        return out

    def _of_products(self, sums: Floats) -> Floats:
        """Kernel values from products of rows, of "poly" and "sigmoid"."""
        base = float(self.gamma) * sums + float(self.coef0)
        if self.name == "sigmoid":
            return _tanh(base)
        out = np.ones_like(base)
        for _ in range(int(self.degree)):
            out *= base
        return out

    def _given(self, A: Floats, BT: Floats) -> Floats:
        """Kernel values of the user's function, which gets copies of the rows."""
        assert self.function is not None
        found = np.array(self.function(A.copy(), BT.T.copy()), dtype=np.float64)
        if found.shape != (len(A), BT.shape[1]) or not np.isfinite(found).all():
            raise ValueError(
                f"The kernel function must return finite values of shape {(len(A), BT.shape[1])} "
                f"for {len(A)} and {BT.shape[1]} rows; got shape {found.shape}"
                + (" with NaN or infinity." if found.shape == (len(A), BT.shape[1]) else ".")
            )
        return found

    def centred(self, A: Floats) -> Floats:
        """Rows as a linear kernel multiplies them."""
        return A if self.centre is None else A - self.centre

    def exact_values(self, A: Floats, BT: Floats) -> Floats:
        """Kernel values with the same bits in any batch: a callable gets one row at a time."""
        if self.exact:
            return self.values(A, BT)
        rows = [self.values(a[None], BT)[0] for a in A]
        return np.array(rows, dtype=np.float64).reshape(len(A), BT.shape[1])

    def diagonal(self, A: Floats) -> Floats:
        """k(a, a) for all rows."""
        if self.name == "precomputed":
            assert self.gram is not None
            return np.asarray(self.gram.diagonal()[A[:, 0].astype(np.intp)])
        if self.name == "rbf":
            return np.ones(len(A))
        if self.name == "callable":
            return np.array([self.values(a[None], a[None].T)[0, 0] for a in A])
        # what `values` says of a row and itself: columns in order, one addition after the other
        squares = np.asarray(np.cumsum(self.centred(A) ** 2, axis=1)[:, -1])
        return squares if self.name == "linear" else self._of_products(squares)


def check_positive(K: Floats, a: Floats, b: Floats) -> None:
    """Raise if two rows show that a kernel is not positive semidefinite.

    k(x, x) ≥ 0 and k(x, z)² ≤ k(x, x) k(z, z): necessary, not sufficient.

    Parameters
    ----------
    K : kernel values of some rows with others
    a, b : their values with themselves
    """
    most = np.outer(np.maximum(a, 0.0), np.maximum(b, 0.0))
    wrong = most * (1.0 + 1e-6) + 1e-12 * float(np.abs(a).max(initial=0.0)) ** 2 < K * K
    if (a < 0.0).any() or (b < 0.0).any() or wrong.any():
        raise ValueError(
            "The kernel is not positive semidefinite: k(x, x) must not be negative, nor k(x, z)² "
            "larger than k(x, x) k(z, z), and two rows show otherwise. Of such kernels the "
            "conditions hold at several solutions, and which is found would depend on the history. "
            "Use another kernel, for example 'rbf' (of 'sigmoid', a smaller gamma and coef0 of 0 "
            "or more may do); add a constant to the diagonal if rounding is the reason. Nothing "
            "was changed."
        )
