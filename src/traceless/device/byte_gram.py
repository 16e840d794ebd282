"""Exact sums Σ_n z_n z_nᵀ of short codes on a CPU, by products of bytes.

A code z within ±32639 has two digits, z = lo + 256 hi, both between -128 and 127. CPUs with VNNI
multiply bytes and add them up in int32, eight times as many at a time as they do of float64, and
torch has that product. In int16 the digits lie beside each other: z + 128 = 256 hi + (lo + 128)
has hi in its high byte, and lo + 128 in its low one, from which a flip of the first bit takes 128
(two's complement). So

    e = (z + 128) xor 128

are the digits lo_1, hi_1, lo_2, ... of a row in memory. Of their products only panels on and below
the diagonal are made. One is at most 2^14, so that sums over 2^17 rows fit into int32.
"""

from __future__ import annotations

import sys
import time
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg.blas import dsyrk

from traceless.arithmetic.gram import padded
from traceless.arithmetic.integers import Floats, Integers, mirror
from traceless.features.grid import blocks

_MOST = 32639.0
_ROWS = 2**14  # that are multiplied at a time
_PANEL = 256  # bytes of a row
_WORTH = 2.0**32  # products, below which it is not worth a look


class ByteGram:
    """The running sum of ``Z' Z`` over blocks of rows, as `GramSum.block` gives them."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._digits = np.empty((_ROWS, padded(width)), dtype=np.int16)
        self._rows = 0
        self._total: Integers | None = None

    @classmethod
    def where_faster(cls, rows: int, width: int) -> ByteGram | None:
        """One for so many rows, if torch is loaded, and is exact and faster here."""
        worth = rows * float(width) ** 2 >= _WORTH
        return cls(width) if worth and "torch" in sys.modules and _is_faster() else None

    def add(self, Z: Floats) -> bool:
        """Add a block of at most 2^14 rows; False, and nothing, if a number is too large."""
        if self._rows + len(Z) > _ROWS:
            self._multiply()
        digits = self._digits[self._rows : self._rows + len(Z)]
        for rows in blocks(*Z.shape):
            if not (Z[rows].max() <= _MOST and Z[rows].min() >= -_MOST):
                return False
            part = digits[rows]
            np.copyto(part, Z[rows], casting="unsafe")
            part += np.int16(128)
            part ^= np.int16(128)
        self._rows += len(Z)
        return True

    def total(self) -> Integers | None:
        """The sum, a full symmetric matrix; None where nothing was added. Ends the accumulation."""
        self._multiply()
        return None if self._total is None else mirror(self._total)[: self.width, : self.width]

    def _multiply(self) -> None:
        if not self._rows:
            return
        if self._total is None:
            self._total = np.zeros((self._digits.shape[1],) * 2, dtype=np.int64)
        torch: Any = sys.modules["torch"]
        D = torch.from_numpy(self._digits[: self._rows].view(np.int8))
        for start in range(0, D.shape[1], _PANEL):
            panel = D[:, start : start + _PANEL]
            stop = start + panel.shape[1]
            P = torch._int_mm(panel.t(), D[:, :stop]).numpy()
            low, high = P[::2], P[1::2]
            part = np.multiply(high[:, 1::2], 256, dtype=np.int64)
            part += low[:, 1::2]
            part += high[:, ::2]
            part *= 256
            part += low[:, ::2]
            start, stop = start // 2, stop // 2
            part[:, start:] = np.tril(part[:, start:])
            self._total[start:stop, :stop] += part
        self._rows = 0


@cache
def _is_faster() -> bool:
    """Whether products of bytes are exact on this machine, and faster than BLAS: found out once."""
    Z = np.arange(2048 * 256).reshape(2048, 256) * 12347.0 % 65279 - 32639
    try:
        found = [_timed(_by_bytes, Z) for _ in range(3)]
        exact = [_timed(_by_blas, Z) for _ in range(3)]
    except (RuntimeError, AttributeError):  # a torch without this product
        return False
    same = all(np.array_equal(a, exact[0][1]) for _, a in found)
    return same and min(s for s, _ in found) < min(s for s, _ in exact)


def _timed(way: Any, Z: Floats) -> tuple[float, Any]:
    start = time.perf_counter()
    product = way(Z)
    return time.perf_counter() - start, product


def _by_bytes(Z: Floats) -> Integers | None:
    sums = ByteGram(Z.shape[1])
    sums.add(Z)
    return sums.total()


def _by_blas(Z: Floats) -> Integers:
    return mirror(dsyrk(1.0, Z.T).T.astype(np.int64))
