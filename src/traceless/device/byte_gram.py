"""Exact sums Σ_n z_n z_nᵀ of short codes on a CPU, by products of bytes.

CPUs with VNNI multiply bytes and add them up in int32, eight times as many at a time as they do of
float64, and torch has that product. Codes that span no more than 16511 steps, as those of numbers
between 0 and 1 do, are counted from the middle c, and have two digits of seven bits,

    z = c + w,    w = L + 128 H,    -64 ≤ L < 64,    |H| ≤ 64

whose sum M = L + H is a byte too. So three symmetric products of bytes do (Karatsuba):

    Σ w wᵀ = LLᵀ + 128 (LHᵀ + HLᵀ) + 128² HHᵀ = 128 MMᵀ - 127 LLᵀ + 127 · 128 HHᵀ

Only panels on and below the diagonal are made. A column of w = 1 gives s = Σ w, and

    Σ z zᵀ = Σ w wᵀ + c (s 1ᵀ + 1 sᵀ) + n c² 1 1ᵀ

A product of bytes is at most 2^14, so that sums over 2^17 rows fit into int32.
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

_MOST = 64 * 128 + 63  # |w|
_SHORT = 2.0**15 - 1  # |z|: it is written as int16
_ROWS = 2**12  # that are multiplied at a time
_NARROW = 16  # columns: blocks of rows with fewer would have more than `_ROWS`
_FULL = 2**17 - 1  # rows whose products fit into int32
_PANEL = 160  # rows of the result that are made together
_WORTH = 2.0**32  # products, below which it is not worth a look


class ByteGram:
    """The running sum of ``Z' Z`` over blocks of rows, as `GramSum.block` gives them."""

    def __init__(self, width: int) -> None:
        size = padded(width + 1)
        self.width = width
        self._digits = np.zeros((3, _ROWS, size), dtype=np.int8)  # L, H and M
        self._digits[::2, :, width] = 1  # of a column of ones
        self._products = np.zeros((3, size, size), dtype=np.int32)
        self._waiting = self._rows = 0  # rows to be multiplied, and those in the products
        self._low, self._high, self._middle = np.inf, -np.inf, 0
        self._total: Integers | None = None

    @classmethod
    def where_faster(cls, rows: int, width: int) -> ByteGram | None:
        """One for so many rows, if torch is loaded, and is exact and faster here."""
        worth = rows * float(width) ** 2 >= _WORTH
        return cls(width) if worth and "torch" in sys.modules and _is_faster() else None

    def add(self, Z: Floats) -> int:
        """Add rows up to the first codes that are too far from others; how many these were."""
        for rows in blocks(len(Z), max(Z.shape[1], _NARROW)):
            z = Z[rows]  # and zeros that it is padded with: whole rows are read faster
            if not self._is_near(float(z.min()), float(z.max())):
                return int(rows.start)
            z = z[:, : self.width]
            if self._waiting + len(z) > _ROWS:
                self._multiply()
            w = z.astype(np.int16)
            w += np.int64(64 - self._middle).astype(np.int16)  # modulo 2^16, as the sum
            L, H, M = self._digits[:, self._waiting : self._waiting + len(z), : self.width]
            H[:] = w >> 7
            w &= 127
            w -= 64
            L[:] = w
            np.add(L, H, out=M)
            self._waiting += len(z)
        return len(Z)

    def _is_near(self, low: float, high: float) -> bool:
        """Whether all codes can be counted from one number, which is moved if it must be."""
        if self._low <= low and high <= self._high:
            return True
        low, high = min(low, self._low), max(high, self._high)
        if not (high - low <= 2 * _MOST and max(high, -low) <= _SHORT):
            return False
        if max(high - self._middle, self._middle - low) > _MOST:
            self._flush()
            self._middle = int(low + high) // 2
        self._low, self._high = low, high
        return True

    def total(self) -> Integers | None:
        """The sum, a full symmetric matrix; None where nothing was added. Ends the accumulation."""
        self._flush()
        return self._total

    def _multiply(self) -> None:
        """Add the products of the bytes of the rows that wait for it."""
        torch: Any = sys.modules["torch"]
        if self._rows + self._waiting > _FULL:
            self._move()
        for plane, sums in zip(self._digits, self._products, strict=True):
            D = torch.from_numpy(plane[: self._waiting])
            for start in range(0, len(sums), _PANEL):
                stop = min(start + _PANEL, len(sums))
                sums[start:stop, :stop] += torch._int_mm(D[:, start:stop].t(), D[:, :stop]).numpy()
        self._rows, self._waiting = self._rows + self._waiting, 0

    def _flush(self) -> None:
        if self._waiting:
            self._multiply()
        if self._rows:
            self._move()

    def _move(self) -> None:
        """Make int64 of the products."""
        J, c = self.width, self._middle
        L, H, M = self._products
        out = np.multiply(M, 128, dtype=np.int64)
        out -= np.multiply(L, 127, dtype=np.int64)
        out += np.multiply(H, 127 * 128, dtype=np.int64)
        out = mirror(np.tril(out))
        found, sums = out[:J, :J], c * out[:J, J]
        found += sums
        found += sums[:, None] + self._rows * c**2
        self._total = found.copy() if self._total is None else self._total + found
        self._products[:] = self._rows = 0


@cache
def _is_faster() -> bool:
    """Whether products of bytes are exact on this machine, and faster than BLAS: found out once."""
    Z: Floats = np.arange(4096.0 * 512).reshape(4096, 512) * 12347.0 % (2 * _MOST) - 100
    seconds: dict[Any, float] = {}
    exact = _by_blas(Z)
    for way in (_by_blas, _by_bytes) * 4:
        start = time.perf_counter()
        try:
            found = way(Z)
        except (RuntimeError, AttributeError):  # a torch without this product
            return False
        seconds[way] = min(seconds.get(way, np.inf), time.perf_counter() - start)
        if not np.array_equal(found, exact):
            return False
    return seconds[_by_bytes] < seconds[_by_blas]


def _by_bytes(Z: Floats) -> Any:
    sums = ByteGram(Z.shape[1])
    sums.add(Z)
    return sums.total()


def _by_blas(Z: Floats) -> Any:
    return mirror(dsyrk(1.0, Z.T).T.astype(np.int64))
