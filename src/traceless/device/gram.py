"""Exact sums Σ_n ω_n z_n z_nᵀ of integer rows z_n on a device.

*Small integers.* Codes are cut into digits of eight bits (`traceless.device.cutting`), whose
products tensor cores add up in int32 without rounding. A product of digits is at most 2^14, so
sums over fewer than 2^17 rows fit. With planes Z_a of digits,

    Σ_n z_n z_nᵀ = Σ_ab 256^(a+b) Z_a Z_bᵀ

is added up in int64, three places (24 bits) to an array: below 2^50 for each block of rows. The
matrix is symmetric: only panels on and below the diagonal are multiplied. Rows in the order of
their classes need no products for what stands beside them: a class is a run of rows, to be added.

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
from numpy.typing import NDArray

from traceless.arithmetic import integers
from traceless.arithmetic.integers import LARGEST, Integers, ShiftedSum
from traceless.arithmetic.words import Sums
from traceless.device import kernels
from traceless.device.cutting import padded
from traceless.device.tensors import Tensor

ROWS = 2**17 - 1024  # in a block: 2^14 times so many stays below 2^31
CHUNK = 8192  # rows that are multiplied in float64 at a time
_PANEL = 2048  # columns
_PLACES = 3  # in an array of int64
_WEIGHT_BITS = 11
_FULL = 2.0**62
_LEAST = 32  # columns of a plane: torch multiplies no fewer than 17
_COPIED = 2**27  # bytes that go to the host at a time


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


@cache
def has_small_products(device: Tensor) -> bool:
    """Whether products of int8 are exact on a device, found out once."""
    digits = torch.arange(64 * 256, device=device).reshape(64, 256) * 37 % 256 - 128
    try:
        found = torch._int_mm(digits.to(torch.int8), digits.to(torch.int8).T)
    except (RuntimeError, AttributeError):
        return False
    return bool(torch.equal(found.double(), digits.double() @ digits.double().T))


def multiply(A: Tensor, B: Tensor, out: Tensor | None = None) -> Tensor:
    """``A Bᵀ`` of int8 matrices in int32, exact while sums fit.

    Sizes are multiples of eight, and A has 32 rows at least. Rows and columns that `out` has no
    room for are left out.
    """
    if out is None:
        out = torch.empty((len(A), len(B)), dtype=torch.int32, device=A.device)
    if kernels.serves(A):
        kernels.multiply(A[: out.shape[0]], B[: out.shape[1]], out)
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
        self._class_counts = np.zeros(0, dtype=np.int64)

    def add_block(self, block: Block) -> None:
        """Add rows that are cut into digits: each plane is multiplied by itself and all below."""
        highest = 2 * max(plane.digit for plane in block.planes)
        shifts = range(0, 8 * highest + 1, 8 * _PLACES)
        self._make_room(shifts, block.buffer.shape[1] * 2.0 ** (14 + 8 * _PLACES - 5))
        starts = [*(plane.start for plane in block.planes), len(block.buffer)]
        for k, (plane, end) in enumerate(zip(block.planes, starts[1:], strict=True)):
            product = multiply(block.buffer[plane.start :], block.buffer[plane.start : end])
            for other in block.planes[k:]:
                first = other.start - plane.start
                part = product[first : first + other.width, : plane.width]
                self._place(plane.digit + other.digit, part, other.columns, plane.columns)
                if other is not plane and other.columns == plane.columns:
                    self._place(plane.digit + other.digit, part.T, plane.columns, plane.columns)

    def add_runs(self, block: Block, runs: tuple[Tensor, ...], counts: NDArray[np.int64]) -> None:
        """Add what stands beside the features of rows in the order of their classes.

        Parameters
        ----------
        block : Block
            Of the features.
        runs : tuple of int64 tensors
            Where runs of rows of one class begin and end, and the number of the class.
        counts : array of shape (K,)
            Rows of each class.
        """
        if self._class_sums is None:
            shape = len(counts), self.features
            self._class_sums = torch.zeros(shape, dtype=torch.int64, device=self.device)
            self._class_counts = np.zeros(len(counts), dtype=np.int64)
        self._class_counts += counts
        for columns, planes in block.parts:
            into = self._class_sums[:, columns]
            _class_sums(planes, columns.stop - columns.start, runs, into)

    def _join_classes(self) -> None:
        """Move the sums of classes beside those of the features: the constant, and each class."""
        if self._class_sums is None:
            return
        J, own = self.features, self._class_sums
        counts = torch.from_numpy(self._class_counts).to(self.device)
        self._make_room([0], 2.0**60)
        into, self._class_sums = self._sums[0], None
        bias = self.beside - len(counts)
        into[J + bias :, :J] += own
        into[J + bias :, J + bias :] += counts.diag()
        if bias:
            into[J, :J] += own.sum(0)
            into[J, J + 1 :] += counts
            into[J + 1 :, J] += counts
            into[J, J] += counts.sum()

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
        self._join_classes()
        width = self.features + self.beside
        joined = ShiftedSum((width, width))
        for shift, sums in self._joined().items():
            self._mirror(sums)
            joined.add(..., shift, _to_host(sums))
        self._sums, self._bounds = {}, defaultdict(float)
        found = joined.total()
        if self._before is not None:
            found, self._before = integers.add(self._before, found), None
        return found

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


def _class_sums(planes: Tensor, J: int, runs: tuple[Tensor, ...], sums: Tensor) -> None:
    """Add runs of rows to the sums of their classes.

    Parameters
    ----------
    planes : int8 tensor of shape (digits, at least J, rows)
    J : int
    runs : see `TensorGram.add_runs`
    sums : int64 tensor of shape (K, J)
    """
    if kernels.serves(planes):
        kernels.class_sums(planes, J, runs, sums)
        return
    starts, stops, classes = runs
    each = classes.repeat_interleave(stops - starts)
    for d, plane in enumerate(planes):
        sums.index_add_(0, each, plane[:J, : len(each)].T.long(), alpha=256**d)


def _to_host(sums: Tensor) -> Integers:
    """A copy in the host's memory: through pinned pages, which the device writes fastest."""
    host = np.empty(tuple(sums.shape), dtype=np.int64)
    if not sums.is_cuda:
        torch.from_numpy(host).copy_(sums)
        return host
    rows = max(1, min(len(sums), _COPIED // (8 * sums.shape[1])))
    pinned = torch.empty((rows, sums.shape[1]), dtype=torch.int64, pin_memory=True)
    for start in range(0, len(sums), rows):
        some = sums[start : start + rows]
        pinned[: len(some)].copy_(some)
        torch.from_numpy(host[start : start + rows]).copy_(pinned[: len(some)])
    return host


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
