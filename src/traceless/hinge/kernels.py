"""Kernels, each value the same bits whatever else is computed with it.

    rbf    exp(-γ Σ_d (a_d - b_d)²)
    linear Σ_d (a_d - m_d) (b_d - m_d)
    poly   (γ Σ_d a_d b_d + coef0)^degree
    sigmoid tanh(γ Σ_d a_d b_d + coef0)

A linear kernel may be centred: since Σyα = 0, the m_d change the intercept and nothing else, and
columns that vary little around a large value would otherwise drown in its square.

A BLAS product of rows is not the same for one row as for the same row in a batch. Here the
sum over d is taken in the order of the columns, one multiplication and one addition after
the other, for many points side by side (``src/core/kernels.cpp``); the exponential is a polynomial,
as in `traceless.arithmetic.elementary`. So a value depends on its two rows alone, and
k(a, b) = k(b, a).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from traceless.arithmetic.integers import Floats
from traceless.hinge.core import core

NOT_POSITIVE = (
    "The kernel is not positive semidefinite: k(x, x) must not be negative, nor k(x, z)² larger "
    "than k(x, x) k(z, z), and two rows show otherwise. Of such kernels the conditions hold at "
    "several solutions, and which is found would depend on the history. Use another kernel, for "
    "example 'rbf' (of 'sigmoid', a smaller gamma and coef0 of 0 or more may do); add a constant "
    "to the diagonal if rounding is the reason. Nothing was changed."
)
_COMPUTED = ("rbf", "linear", "poly", "sigmoid")  # as in src/core/kernels.h
THREADS = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1, 8)
_WORTH = 2**26  # products that are worth more than starting threads


def products(A: Floats, w: Floats) -> Floats:
    """Σ_d a_d w_d for each row a, the same bits in any batch."""
    return np.asarray(_computed("linear", w[None], A)[0])


def _computed(name: str, A: Floats, B: Floats, *parameters: Any) -> Floats:
    """Kernel values of the rows of two arrays."""
    gamma, coef0, degree = parameters or (1.0, 0.0, 0)
    out = np.empty((len(A), len(B)))
    threads = THREADS if A.size * len(B) > _WORTH else 1
    A = np.ascontiguousarray(A)
    core.kernel_values(_COMPUTED.index(name), gamma, coef0, degree, A, B, out, threads)
    return out


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

    def values(self, A: Floats, B: Floats) -> Floats:
        """k(a, b) for all rows of both, shape (len(A), len(B))."""
        if self.name == "precomputed":
            assert self.gram is not None
            return np.asarray(self.gram[np.ix_(A[:, 0].astype(np.intp), B[:, 0].astype(np.intp))])
        if self.name == "callable":
            return self._given(A, B)
        A, B = self.centred(A), self.centred(B)
        return _computed(self.name, A, B, float(self.gamma), float(self.coef0), int(self.degree))

    def _given(self, A: Floats, B: Floats) -> Floats:
        """Kernel values of the user's function, which gets copies of the rows."""
        assert self.function is not None
        values = np.array(self.function(A.copy(), B.copy()), dtype=np.float64)
        if values.shape != (len(A), len(B)) or not np.isfinite(values).all():
            raise ValueError(
                f"The kernel function must return finite values of shape {(len(A), len(B))} "
                f"for {len(A)} and {len(B)} rows; got shape {values.shape}"
                + (" with NaN or infinity." if values.shape == (len(A), len(B)) else ".")
            )
        return values

    def each(self, A: Floats, B: Floats) -> Floats:
        """The same, where no row of B has an effect on others: a callable gets one at a time."""
        if self.exact:
            return self.values(A, B)
        columns = [self.values(b[None], A)[0] for b in B]
        return np.ascontiguousarray(np.array(columns).reshape(len(B), len(A)).T)

    def centred(self, A: Floats) -> Floats:
        """Rows as a linear kernel multiplies them."""
        return A if self.centre is None else A - self.centre

    def diagonal(self, A: Floats) -> Floats:
        """k(a, a) for all rows."""
        if self.name == "precomputed":
            assert self.gram is not None
            return np.asarray(self.gram.diagonal()[A[:, 0].astype(np.intp)])
        if self.name == "rbf":
            return np.ones(len(A))
        if self.name == "callable":
            return np.array([self.values(a[None], a[None])[0, 0] for a in A])
        # what `values` says of a row and itself: columns in order, one addition after the other
        squares = np.asarray(np.cumsum(self.centred(A) ** 2, axis=1)[:, -1])
        return replace(self, centre=None).values(squares[:, None], np.ones((1, 1)))[:, 0]
