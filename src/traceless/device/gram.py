"""Exact sums Σ_n ω_n z_n z_nᵀ of integer rows z_n on a device.

*Small integers.* Codes are cut into digits of eight bits (`traceless.device.cutting`), whose
products tensor cores add up in int32 without rounding. A product of digits is at most 2^14, so
sums over fewer than 2^17 rows fit. With planes Z_a of digits,

    Σ_n z_n z_nᵀ = Σ_ab 256^(a+b) Z_a Z_bᵀ

is added up in int64, three places (24 bits) to an array: below 2^50 for each block of rows. The
matrix is symmetric: only panels on and below the diagonal are multiplied.

*Wide integers and weighted rows.* In float64, as `traceless.arithmetic.gram` does: rows are cut
into parts of b bits, and so few of them multiplied at a time that no sum passes 2^53.

Sums stay on the device until `total` is asked for, or they might pass 2^62.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise

import numpy as np
import torch

from traceless.arithmetic import integers
from traceless.arithmetic.integers import LARGEST, ShiftedSum
from traceless.arithmetic.words import Sums
from traceless.device.cutting import padded
from traceless.device.tensors import Tensor

ROWS = 2**17 - 1024  # in a block: 2^14 times so many stays below 2^31
CHUNK = 8192  # rows that are multiplied in float64 at a time
_PANEL = 4096  # columns
_PLACES = 3  # in an array of int64
_WEIGHT_BITS = 11
_FULL = 2.0**62
_LEAST = 32  # columns of a plane: torch multiplies no fewer than 17


def plane_width(columns: int) -> int:
    """So many rows a plane needs for its columns: torch multiplies multiples of eight."""
    last = columns % _PANEL
    return columns - last + (max(padded(last, 8), _LEAST) if last else 0)


def plane_shape(columns: int, rows: int) -> tuple[int, int]:
    """The shape of a plane of digits for so many columns and rows."""
    return plane_width(columns), padded(max(rows, 1), 16)


@cache
def has_small_products(device: Tensor) -> bool:
    """Whether products of int8 are exact on a device, found out once."""
    digits = torch.arange(64 * 256, device=device).reshape(64, 256) * 37 % 256 - 128
    try:
        found = torch._int_mm(digits.to(torch.int8), digits.to(torch.int8).T)
    except (RuntimeError, AttributeError):
        return False
    return bool(torch.equal(found.double(), digits.double() @ digits.double().T))


class TensorGram:
    """The running sum of ``Z' diag(weights) Z`` for rows Z = [features, beside].

    The columns beside are those that come with few digits: the constant and the responses.

    Parameters
    ----------
    features, beside : int
        Numbers of columns.
    device : torch.device
    """

    def __init__(self, features: int, beside: int, device: Tensor) -> None:
        self.features, self.beside, self.device = features, beside, device
        self._sums: dict[int, Tensor] = {}  # of 2^shift
        self._bounds: defaultdict[int, float] = defaultdict(float)
        self._before: Sums | None = None

    def add_planes(self, features: Tensor, beside: Tensor) -> None:
        """Add rows that are cut into digits: int8 tensors (digits, *`plane_shape`)."""
        J, W = self.features, self.features + self.beside
        highest = 2 * max(len(features), len(beside)) - 2
        shifts = range(0, 8 * highest + 1, 8 * _PLACES)
        self._make_room(shifts, features.shape[2] * 2.0 ** (14 + 8 * _PLACES - 5))
        panels = [slice(i, min(i + _PANEL, J)) for i in range(0, J, _PANEL)]
        for i, rows in enumerate(panels):
            mine = features[:, rows.start : rows.start + plane_width(rows.stop - rows.start)]
            self._add_symmetric(mine, rows)
            for columns in panels[:i]:
                self._add_products(mine, features[:, columns], rows, columns)
            self._add_products(beside, mine, slice(J, W), rows)
        self._add_symmetric(beside, slice(J, W))

    def _add_symmetric(self, planes: Tensor, where: slice) -> None:
        """Products of columns with themselves: those of two different digits are taken once."""
        n = where.stop - where.start
        for a in range(len(planes)):
            for b in range(a + 1):
                product = torch._int_mm(planes[a], planes[b].T)[:n, :n]
                self._place(a + b, product, where, where)
                if a != b:
                    self._place(a + b, product.T, where, where)

    def _add_products(self, A: Tensor, B: Tensor, rows: slice, columns: slice) -> None:
        n, m = rows.stop - rows.start, columns.stop - columns.start
        for a in range(len(A)):
            for b in range(len(B)):
                product = torch._int_mm(A[a], B[b].T)[:n, :m]
                self._place(a + b, product, rows, columns)

    def _place(self, place: int, product: Tensor, rows: slice, columns: slice) -> None:
        """Add a product 256^place times."""
        group, within = divmod(place, _PLACES)
        self._sums[8 * _PLACES * group][rows, columns].add_(product, alpha=256**within)

    def add_codes(self, Z: Tensor, peak: float, weights: Tensor | None = None) -> None:
        """Add rows of whole numbers up to `peak`, at most 2^53, as float64; `CHUNK` at most.

        Weights are whole numbers up to 2^32.
        """
        limbs = [(0, None)] if weights is None else list(_weight_limbs(weights))
        room = LARGEST / max(len(Z), 1) / (1 if weights is None else 2.0**_WEIGHT_BITS)
        bits = int(math.log2(room)) // 2 + 1  # parts up to 2^(bits - 1)
        parts = list(_parts(Z, peak, bits))
        for shift, limb in limbs:
            for s, A in parts:
                A = A if limb is None else A * limb[:, None]
                for t, B in parts:
                    if limb is None and t > s:
                        continue
                    product = (A.T @ B).to(torch.int64)
                    self._make_room([shift + s + t], 2 * LARGEST)
                    self._sums[shift + s + t] += product
                    if limb is None and t < s:
                        self._sums[shift + s + t] += product.T

    def total(self) -> Sums:
        """The sum, as a full symmetric matrix of integers, in the host's memory."""
        width = self.features + self.beside
        joined = ShiftedSum((width, width))
        for shift, sums in self._sums.items():
            self._mirror(sums)
            host = np.empty((width, width), dtype=np.int64)
            torch.from_numpy(host).copy_(sums)
            joined.add(..., shift, host)
        self._sums, self._bounds = {}, defaultdict(float)
        found = joined.total()
        if self._before is not None:
            found, self._before = integers.add(self._before, found), None
        return found

    def _mirror(self, sums: Tensor) -> None:
        """Copy panels below the diagonal to above it."""
        edges = [*range(0, self.features, _PANEL), self.features, self.features + self.beside]
        for start, stop in pairwise(edges):
            sums[:start, start:stop] = sums[start:stop, :start].T

    def _make_room(self, shifts: Sequence[int], size: float) -> None:
        """Make sure that so much can be added to the sums of some shifts."""
        if max(self._bounds[shift] for shift in shifts) + size > _FULL:
            self._before = self.total()
        for shift in shifts:
            self._bounds[shift] += size
            if shift not in self._sums:
                shape = (self.features + self.beside,) * 2
                self._sums[shift] = torch.zeros(shape, dtype=torch.int64, device=self.device)


def _parts(Z: Tensor, peak: float, bits: int) -> Iterator[tuple[int, Tensor]]:
    """Shifts and parts of whole numbers: at most 2^(bits - 1), adding up to Z with 2^shift."""
    shift = 0
    while peak > 2.0 ** (bits - 1):
        high = (Z * 2.0**-bits).round()
        yield shift, Z - high * 2.0**bits
        Z, peak, shift = high, math.floor(peak * 2.0**-bits + 0.5), shift + bits
    yield shift, Z


def _weight_limbs(weights: Tensor) -> Iterator[tuple[int, Tensor]]:
    """Shifts and limbs of `_WEIGHT_BITS` bits; limbs of zeros are left out."""
    shift = 0
    while bool(weights.any()):
        high = (weights * 2.0**-_WEIGHT_BITS).floor()
        low = weights - high * 2.0**_WEIGHT_BITS
        if bool(low.any()):
            yield shift, low
        weights, shift = high, shift + _WEIGHT_BITS
