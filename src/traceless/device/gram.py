"""Exact sums Σ_n ω_n z_n z_nᵀ of integer rows z_n on a device.

*Small integers.* Codes are cut into digits of eight bits (`traceless.device.cutting`), whose
products tensor cores add up in int32 without rounding. A product of digits is at most 2^14, so
sums over fewer than 2^17 rows fit. With planes Z_a of digits,

    Σ_n z_n z_nᵀ = Σ_ab 256^(a+b) Z_a Z_bᵀ

is added up in int64, three places (24 bits) to an array: below 2^50 for each block of rows. The
matrix is symmetric: only what is on and below the diagonal is multiplied, and what is above means
nothing until `total`. Rows in the order of their classes need no products for what stands beside
them: a class is a run of rows, to be added.

*Wide integers and weighted rows.* In float64, as `traceless.arithmetic.gram` does: rows are cut
into parts of b bits, and so few of them multiplied at a time that no sum passes 2^53.

Sums stay on the device until `total` is asked for, or they might pass 2^62.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
import torch

from traceless.arithmetic import integers
from traceless.arithmetic.integers import LARGEST, Integers, Sums
from traceless.device import kernels
from traceless.device.cutting import padded
from traceless.device.memory import fetch
from traceless.device.tensors import Tensor

ROWS = 2**17 - 1024  # in a block: 2^14 times so many stays below 2^31
CHUNK = 8192  # rows that are multiplied in float64 at a time
_PANEL = 2048  # columns
_PLACES = 3  # in an array of int64
_WEIGHT_BITS = 11
_FULL = 2.0**62
_LEAST = 32  # columns of a plane: torch multiplies no fewer than 17
_PRODUCT = 2**28  # bytes of products that are made together


@dataclass(frozen=True)
class Plane:
    """One digit of some columns: where it lies in a block, and where its products belong."""

    start: int
    columns: slice
    digit: int

    @property
    def width(self) -> int:
        """The number of columns."""
        return int(self.columns.stop - self.columns.start)


class Block:
    """The digits of some rows, a row for each digit of each column, padded as torch needs it.

    Digits of a panel of features lie beside each other, and those of the responses are last.

    Parameters
    ----------
    features, beside : int
        Numbers of columns.
    digits, beside_digits : int
        Numbers of digits that each has; 0 where there are none beside.
    rows : int
    device : torch.device
    """

    def __init__(
        self, features: int, digits: int, beside: int, beside_digits: int, rows: int, device: Tensor
    ) -> None:
        J = features
        panels = [(slice(i, min(i + _PANEL, J)), digits) for i in range(0, J, _PANEL)]
        self.parts: list[tuple[slice, Tensor]] = []
        self.planes: list[Plane] = []
        start = 0
        for columns, n in [*panels, (slice(J, J + beside), beside_digits)]:
            width = max(padded(columns.stop - columns.start, 8), _LEAST)
            self.planes += [Plane(start + d * width, columns, d) for d in range(n)]
            start += n * width
        length = padded(max(rows, 1), 16)
        self.buffer = torch.empty((start, length), dtype=torch.int8, device=device)
        self.buffer[:, rows:] = 0
        start = 0
        for columns, n in [*panels, (slice(J, J + beside), beside_digits)]:
            width = max(padded(columns.stop - columns.start, 8), _LEAST)
            part = self.buffer[start : start + n * width].view(n, width, length)
            part[:, columns.stop - columns.start :] = 0
            if n:
                self.parts.append((columns, part))
            start += n * width

    def strips(self) -> Iterator[tuple[int, int, list[tuple[int, Plane]]]]:
        """Planes whose products with all below are made together: where they begin and end."""
        numbered, end = list(enumerate(self.planes)), len(self.buffer)
        while numbered:
            first, n = numbered[0][1].start, 1
            stops = [*(plane.start for _, plane in numbered[1:]), end]
            while n < len(stops) and 4 * (end - first) * (stops[n] - first) <= _PRODUCT:
                n += 1
            yield first, stops[n - 1], numbered[:n]
            numbered = numbered[n:]


@cache
def has_small_products(device: Tensor) -> bool:
    """Whether products of int8 are exact on a device, found out once."""
    digits = torch.arange(64 * 256, device=device).reshape(64, 256) * 37 % 256 - 128
    try:
        found = torch._int_mm(digits.to(torch.int8), digits.to(torch.int8).T)
    except (RuntimeError, AttributeError):
        return False
    return bool(torch.equal(found.double(), digits.double() @ digits.double().T))


def multiply(A: Tensor, B: Tensor, out: Tensor | None = None, lower: bool = False) -> Tensor:
    """``A Bᵀ`` of int8 matrices in int32, exact while sums fit.

    Sizes are multiples of eight, and A has 32 rows at least. Rows and columns that `out` has no
    room for are left out. With `lower`, what is above the diagonal may be anything.
    """
    if out is None:
        out = torch.empty((len(A), len(B)), dtype=torch.int32, device=A.device)
    if kernels.serves(A):
        kernels.multiply(A[: out.shape[0]], B[: out.shape[1]], out, lower)
    else:
        out.copy_(torch._int_mm(A, B.T)[: out.shape[0], : out.shape[1]])
    return out


class TensorGram:
    """The running sum of ``Z' diag(weights) Z`` for rows Z = [features, beside].

    Parameters
    ----------
    features, beside : int
        Numbers of columns; those beside are the constant and the responses.
    device : torch.device
    """

    def __init__(self, features: int, beside: int, device: Tensor) -> None:
        self.features, self.beside, self.device = features, beside, device
        self._sums: dict[int, Tensor] = {}  # of 2^shift
        self._bounds: defaultdict[int, float] = defaultdict(float)
        self._before: Sums | None = None
        self._class_sums: Tensor | None = None
        self._class_counts: Tensor = None

    def add_block(self, block: Block) -> None:
        """Add rows that are cut into digits: each plane is multiplied by itself and all below."""
        highest = 2 * max(plane.digit for plane in block.planes)
        shifts = range(0, 8 * highest + 1, 8 * _PLACES)
        self._make_room(shifts, block.buffer.shape[1] * 2.0 ** (14 + 8 * _PLACES - 5))
        for first, stop, strip in block.strips():
            product = multiply(block.buffer[first:], block.buffer[first:stop], lower=True)
            for k, plane in strip:
                left = slice(plane.start - first, plane.start - first + plane.width)
                for other in block.planes[k:]:
                    top = other.start - first
                    part = product[top : top + other.width, left]
                    self._place(plane.digit + other.digit, part, other.columns, plane.columns)
                    if other is not plane and other.columns == plane.columns:
                        self._place(plane.digit + other.digit, part.T, plane.columns, plane.columns)

    def add_classes(self, block: Block, classes: Tensor, K: int) -> None:
        """Add what stands beside the features of rows in the order of their classes.

        Parameters
        ----------
        block : Block
            Of the features.
        classes : int32 tensor of shape (n,)
            The number of each row's class.
        K : int
            How many there are.
        """
        if self._class_sums is None:
            shape = K, self.features
            self._class_sums = torch.zeros(shape, dtype=torch.int64, device=self.device)
            self._class_counts = torch.zeros_like(self._class_sums[:, 0])
        self._class_counts.index_add_(0, classes, torch.ones_like(classes, dtype=torch.int64))
        for columns, planes in block.parts:
            into = self._class_sums[:, columns]
            _class_sums(planes, columns.stop - columns.start, classes, into)

    def _join_classes(self) -> None:
        """Move the sums of classes below those of the features: the constant, and each class."""
        if self._class_sums is None:
            return
        J, own, counts = self.features, self._class_sums, self._class_counts
        self._class_sums = None  # first: making room may ask for the total
        self._make_room([0], 2.0**60)
        into, bias = self._sums[0], self.beside - len(own)
        into[J + bias :, :J] += own
        into[J + bias :, J + bias :] += counts.diag()
        if bias:
            into[J, :J] += own.sum(0)
            into[J + 1 :, J] += counts
            into[J, J] += counts.sum()

    def _place(self, place: int, product: Tensor, rows: slice, columns: slice) -> None:
        """Add a product 256^place times."""
        group, within = divmod(place, _PLACES)
        self._sums[8 * _PLACES * group][rows, columns].add_(product, alpha=256**within)

    def add_codes(self, Z: Tensor, peak: float, weights: Tensor | None = None) -> None:
        """Add rows of whole numbers up to `peak`, at most 2^53, as float64; `CHUNK` at most.

        Weights are whole numbers.
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

    def total(self, room: Integers | None = None) -> Sums:
        """The sum, as a full symmetric matrix of integers, in the host's memory.

        `room` is an array that may be kept for it.
        """
        self._join_classes()
        width = self.features + self.beside
        found, self._before = self._before, None
        for sums in self._sums.values():
            self._mirror(sums)
        for shift, sums in self._joined().items():
            more = integers.shifted(fetch(sums, None if shift else room), shift)
            found = more if found is None else integers.add(found, more)
        self._sums, self._bounds = {}, defaultdict(float)
        return np.zeros((width, width), dtype=np.int64) if found is None else found

    def _joined(self) -> dict[int, Tensor]:
        """The sums of all shifts in one, where they fit into int64."""
        several = sorted(self._sums.items())
        if len(several) < 2:
            return self._sums
        size = sum(max(int(s.max()), -int(s.min())) << shift for shift, s in several)
        if size >= 2**63:
            return self._sums
        lowest, total = several[0]
        for shift, sums in several[1:]:
            total.add_(sums, alpha=2 ** (shift - lowest))
        return {lowest: total}

    def _mirror(self, sums: Tensor) -> None:
        """Copy what is below the diagonal to above it."""
        edges = [*range(0, self.features, _PANEL), self.features, self.features + self.beside]
        for start, stop in pairwise(edges):
            own = sums[start:stop, start:stop]
            own.copy_(own.tril() + own.tril(-1).T)
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


def _class_sums(planes: Tensor, J: int, classes: Tensor, sums: Tensor) -> None:
    """Add rows to the sums of their classes.

    Parameters
    ----------
    planes : int8 tensor of shape (digits, at least J, rows)
    J : int
    classes : see `TensorGram.add_classes`
    sums : int64 tensor of shape (K, J)
    """
    if kernels.serves(planes):
        kernels.class_sums(planes, J, classes, sums)
        return
    for d, plane in enumerate(planes):
        sums.index_add_(0, classes, plane[:J, : len(classes)].T.long(), alpha=256**d)


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
