"""The bordered system of the margin set, in one order of evaluation (``src/core/publish.cpp``).

    [G 1; 1ᵀ 0] [x; t] = [p; q]      is      A x + (t - ρq) 1 = p,   1ᵀx = q,      A = G + ρ 11ᵀ

so that canonical solutions have the same bits on every machine. Adding ρ11ᵀ changes nothing on the
constraint and makes a positive definite matrix of G where that is singular along 1 only, as with
linear kernels.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats
from traceless.hinge.core import core

SOUND = 1e-14  # a pivot below this part of its diagonal belongs to a dependent point

Places = NDArray[np.intp]


class MarginSystem:
    """The bordered system of kernel values G, factored; `sound` is False where that failed."""

    def __init__(self, G: Floats) -> None:
        self.G = G
        self.rho = self.shift(G)
        self.R = G + self.rho
        self.sound = bool(core.factored(self.R, SOUND))

    @staticmethod
    def shift(G: Floats) -> float:
        """ρ, the mean of the diagonal."""
        mean = sum_in_order(np.ascontiguousarray(G.diagonal())) / len(G)
        return mean if mean > 0.0 else 1.0

    def solved(self, p: Floats, q: float) -> tuple[Floats, float]:
        """The x and t with G x + t = p and 1ᵀx = q."""
        x = p.copy()
        return x, core.bordered(self.R, self.rho, q, x)

    def refined(self, p: Floats, q: float) -> tuple[Floats, float]:
        """The same, with one step of refinement."""
        x, t = self.solved(p, q)
        rest = p - sum_of_rows(self.G, np.arange(len(p)), x, np.zeros(len(p))) - t
        fix, lift = self.solved(rest, q - sum_in_order(x))
        return x + fix, t + lift


def sum_in_order(a: Floats) -> float:
    """Σa, one after the other: `numpy.sum` adds in an order of its own."""
    return float(np.add.accumulate(a)[-1]) if len(a) else 0.0


def independent(G: Floats) -> Places:
    """Places of a largest set of rows on which the system can be solved, in order."""
    picked = np.zeros(len(G), dtype=np.intp)
    A = G + MarginSystem.shift(G)
    return np.sort(picked[: core.pivots(A, picked)])


def sum_of_rows(gram: Floats, rows: Places, c: Floats, out: Floats) -> Floats:
    """Out + Σ_i c_i gram[rows_i], four rows at a time, as wide as `out`."""
    core.sum_of_rows(gram, rows, c, out)
    return out


def gather(gram: Floats, lines: Places, columns: Places, out: Floats) -> Floats:
    """Out_ij = gram[lines_i, columns_j], read in the order in which they are in memory."""
    core.gather(gram, lines, columns, np.argsort(columns), out)
    return out
