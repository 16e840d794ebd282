"""The parameters that a solution depends on, and those of kernels that follow from the rows.

    scale    γ = 1 / (d · v)                     v: variance of all values of the rows held now
    steady   γ = 2^k, the one nearest to it      |k + log₂(d v)| ≤ ½
    centre   m_d = q ⌊min |x_d| / q⌋ sign(x_d)   q: a power of two, 4 to 8 times the widest column

All are functions of the rows held *now*, the same bits in whatever order they came, so that a model
is too. "steady" and the centre of a linear kernel change rarely: only when they do are the rows
solved anew. x - m is exact for all rows: m is a multiple of q, which no column is as wide as, so
both x and m are multiples of the last place of x, and their difference is no larger than x.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats

KERNELS = ("linear", "poly", "rbf", "sigmoid", "precomputed")
GAMMAS = ("steady", "scale", "auto")
WITH_GAMMA = ("rbf", "poly", "sigmoid")
_PLAIN = (bool, int, float, str, type(None))


@dataclass(frozen=True)
class Settings:
    """The parameters that a solution depends on, and two on which only its computation does.

    Attributes
    ----------
    machine : Machine
        Which problems the rows make (`traceless.hinge.machines`).
    memory : int
        Bytes that the kernel matrices of all problems may take.
    verbose : bool
        Whether progress is shown.
    """

    machine: Any
    kernel: Any
    gamma: Any
    degree: Any
    coef0: Any
    memory: int = field(default=1 << 30, compare=False)
    verbose: bool = field(default=False, compare=False)

    @property
    def name(self) -> str:
        """The name of the kernel, "callable" if it is a function."""
        return self.kernel if isinstance(self.kernel, str) else "callable"

    @property
    def structure(self) -> tuple[Any, ...]:
        """Parameters whose change requires a new fit."""
        return self.kernel, self.gamma, self.degree, self.coef0, self.machine.structure

    def gamma_of(self, X: Floats, weight: Floats) -> float:
        """The number that gamma stands for."""
        gamma, width = self.gamma, X.shape[1]
        if not isinstance(gamma, str):
            return float(gamma)
        if gamma == "auto":
            return float(1.0 / width)
        if self.name not in WITH_GAMMA or not len(X) or (X[0, 0] == X).all():
            return 1.0
        spread = width * _variance(X, weight)
        if not 1e-300 < spread < 1e300:
            raise OverflowError(
                f"gamma={gamma!r} cannot be taken from rows as large as {np.abs(X).max():.3g}: "
                "their variance is beyond float64. Scale the columns, or give gamma as a number."
            )
        return float(1.0 / spread) if gamma == "scale" else power_of_two(spread)

    def fits(self, gamma: float, centre: Floats | None, X: Floats, weight: Floats) -> bool:
        """Whether a kernel with this gamma and centre is the kernel of these rows."""
        if self.name == "linear":
            return np.array_equal(self.centre_of(X), centre)  # type: ignore[arg-type]
        if self.name not in WITH_GAMMA or (self.gamma == "steady" and _surely(gamma, X, weight)):
            return True
        return self.gamma_of(X, weight) == gamma

    def centre_of(self, X: Floats) -> Floats | None:
        """The centre of a linear kernel, where Σyα is 0: any other centre is another problem."""
        return centre_of(X) if self.name == "linear" and self.machine.is_balanced else None

    def moves_gamma(self, X: Floats, weight: Floats) -> NDArray[np.bool_]:
        """Rows whose removal, each by itself, might change gamma."""
        by_rows = isinstance(self.gamma, str) and self.gamma != "auto"
        moves = by_rows and self.name in WITH_GAMMA
        if not (moves and self.gamma == "steady"):
            return np.full(len(X), moves)
        total, width = float(weight.sum()), X.shape[1]
        mean = float((weight @ X).mean()) / total
        apart = X - mean
        sums, squares = apart.mean(axis=1), (apart**2).mean(axis=1)
        rest = np.maximum(total - weight, np.finfo(float).tiny)
        shift = -weight * sums / rest  # of the mean, without the row
        left = width * ((weight @ squares - weight * squares) / rest - shift**2)
        steps = np.log2(np.maximum(left * self.gamma_of(X, weight), np.finfo(float).tiny))
        return np.asarray(np.abs(steps) > 0.5 - 1e-6)


def power_of_two(spread: float) -> float:
    """The power of two nearest to 1 / spread, in log₂."""
    part, exponent = math.frexp(spread)  # spread = part · 2^exponent, ½ ≤ part < 1
    return math.ldexp(1.0, (0 if part * part >= 0.5 else 1) - exponent)


def _surely(gamma: float, X: Floats, weight: Floats) -> bool:
    """Whether this is the power of two nearest to 1 / spread, by a variance that is rounded."""
    if not len(X):
        return False
    total = float(weight.sum())
    with np.errstate(over="ignore", invalid="ignore"):
        mean = float((weight @ X).mean()) / total
        spread = float((weight @ (X - mean) ** 2).sum()) / total
    usual = max(1e-300, 1e-16 * mean**2) < spread < 1e300
    return usual and abs(math.log2(spread * gamma)) < 0.5 - 1e-6


def _variance(X: Floats, weight: Floats) -> float:
    """The variance of all values, a row of weight 2 counted as two; the same bits in any order.

    Columns are added one after the other (`cumsum`; the order of `sum` is NumPy's own), and sums
    over rows are correctly rounded.
    """
    total, width = math.fsum(weight), X.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):
        try:
            mean = math.fsum(weight * np.cumsum(X / width, axis=1)[:, -1]) / total
            squares = np.cumsum((X - mean) ** 2 / width, axis=1)[:, -1]
            return math.fsum(weight * squares) / total
        except (OverflowError, ValueError):  # of sums that are not finite
            return math.inf


def centre_of(X: Floats) -> Floats | None:
    """The centre of a linear kernel; None where it would be 0."""
    if not len(X):
        return None
    low, high = X.min(axis=0), X.max(axis=0)
    with np.errstate(over="ignore"):
        widest = float((high - low).max())
    if not 0.0 < widest < np.finfo(float).max / 8:
        return None
    q = math.ldexp(4.0, math.frexp(widest)[1])
    near = np.where(low > 0.0, low, np.where(high < 0.0, high, 0.0))
    centre = near - np.fmod(near, q)  # both exact
    return centre + 0.0 if centre.any() else None


def name_of(kernel: Callable[..., Any]) -> Any:
    """What a digest says of a kernel function: its module and name, and what `partial` fixes."""
    if isinstance(kernel, partial):
        fixed = [*kernel.args, *kernel.keywords.values()]
        if all(isinstance(value, _PLAIN) for value in fixed):
            keywords = sorted(kernel.keywords.items())
            return {"partial": name_of(kernel.func), "args": kernel.args, "keywords": keywords}
    module = getattr(kernel, "__module__", None)
    name = getattr(kernel, "__qualname__", "<nameless>")
    if isinstance(kernel, partial) or module is None or "<" in name:
        raise ValueError(
            f"A model with kernel={kernel!r} has no digest: nothing tells this function from "
            "another one. Define it at the top level of a module (with functools.partial for "
            "parameters that are numbers or strings)."
        )
    return f"{module}.{name}"
