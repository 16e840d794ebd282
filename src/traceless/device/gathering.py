"""Gathering rows on a device: the same integers as `traceless.knowledge.gathering`.

Rows lie there, or are sent there from the host's memory, block by block. They become digits of
eight bits, and tensor cores add up their products. Weighted rows, and codes of more than 30 bits,
are added up in float64; the hashes of a fingerprint are the host's work, as is a feature map that
is not of this package.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from traceless.arithmetic.integers import Sums, peak
from traceless.device.cutting import BEYOND, MOST, cut, digits_for
from traceless.device.encoders import Encoder
from traceless.device.gram import CHUNK, ROWS, Block, TensorGram, has_small_products
from traceless.device.memory import (
    OutOfMemoryError,
    block_rows,
    free_there,
    smaller,
    streamed,
    touched,
)
from traceless.device.tensors import Fetched, HostRows, Tensor, kind_of, some, to_array
from traceless.features.grid import chunks
from traceless.progress import progress

_FEWEST = 1024  # rows of a block, below which smaller blocks are no help
_TABLE = 2**20  # whole labels that span no more than this are found by a table
_NO_FLOAT64 = frozenset({"mps"})  # kinds of devices that have none


def takes(phi: Any, device: Any) -> bool:
    """Whether a device can code the rows of a feature map, and add them up."""
    return Encoder.takes(phi) and device.type not in _NO_FLOAT64


def host_rows(X: Any) -> Any:
    """Rows for a host that has to do the work: all that it has, or some when they are asked for."""
    return to_array(X) if isinstance(X, HostRows) else _FetchedRows(X)


class _FetchedRows:
    """Rows of a device that are brought to the host when they are asked for."""

    def __init__(self, X: Tensor) -> None:
        self._X, self.shape = X, X.shape

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        return np.asarray(to_array(some(self._X, rows)))


def numbered(y: Tensor, weights: Any) -> tuple[list[Any], Tensor, tuple[int, ...]]:
    """The labels that there are, in order; the number of each row's; and how many rows they have.

    Rows of weight 0 are not counted.
    """
    found, numbers = _found(y)
    alive = numbers
    if weights is not None:
        alive = numbers[torch.from_numpy(weights > 0).to(y.device)]
    counts = torch.bincount(alive, minlength=len(found))
    return to_array(found).tolist(), numbers, tuple(counts.tolist())


def _found(y: Tensor) -> tuple[Tensor, Tensor]:
    whole = not y.is_floating_point() and kind_of(y) != "bool" and len(y) > 0
    if whole and int(y.max()) - int(y.min()) < _TABLE:
        least = int(y.min())
        place = y.long() - least
        there = torch.zeros(int(place.max()) + 1, dtype=torch.int64, device=y.device)
        there[place] = 1
        return there.nonzero()[:, 0] + least, (there.cumsum(0) - 1)[place]
    found, numbers = torch.unique(y, sorted=True, return_inverse=True)
    return found, numbers


def sums(gathering: Any, several: Sequence[Any], extra: int, responses: Any) -> Iterator[Sums]:
    """The sums of rows, and of other rows, one after another; see `Gathering`, which asks."""
    X, encoder = gathering.X, Encoder(gathering.phi, gathering.X.device)
    most = block_rows(X, ROWS) if isinstance(X, HostRows) else ROWS
    for rows in several:
        work = partial(_sum, Blocks(gathering, encoder, extra, responses), rows)
        yield smaller(work, most, _FEWEST, lambda: _needs(encoder.width + extra + 1, X.device))


def _sum(blocks: Blocks, rows: Any, size: int) -> Sums:
    """The sum of some rows, in blocks of so many rows; what is begun is dropped on an error."""
    prints = blocks.of.fingerprint
    hashed = None if prints is None else prints.lanes.copy()
    try:
        return blocks.total(rows, size)
    except OutOfMemoryError:
        if prints is not None:
            prints.lanes = hashed
        raise


class Blocks:
    """Blocks of rows, added to one sum."""

    def __init__(
        self,
        gathering: Any,
        encoder: Encoder,
        extra: int,
        responses: Any,
    ) -> None:
        self.of, self.encoder, self.responses = gathering, encoder, responses
        self.device, self.bias = gathering.X.device, int(gathering.phi.has_bias)
        self.extra, self.beside = extra, self.bias + extra
        plain = gathering.weights is None and gathering.fingerprint is None
        self.in_digits = plain and has_small_products(self.device)
        self.digits = 2  # that the last block had

    def total(self, rows: Any, size: int) -> Sums:
        """The sum of rows, given by a slice or by indices, so many at a time.

        The digits of a block are begun before the products of the one before, so that the device
        has work while the host waits to see how many digits there are.
        """
        width = self.encoder.width + self.beside
        self.gram = TensorGram(self.encoder.width, self.beside, self.device)
        parts = chunks(rows, size)
        watched = progress(parts, "learning", self.of.verbose)
        before: _Block | None = None
        with ThreadPoolExecutor(1) as meanwhile:
            room = meanwhile.submit(touched, (width, width), "int64")
            for _, block in zip(watched, self._there(parts), strict=True):
                begun = self.in_digits and self._begin(block)
                if before is not None:
                    self._add(before)
                before = block if begun else None
                if not begun:
                    self._add_codes(block)
            if before is not None:
                self._add(before)
            return self.gram.total(room.result())

    def _there(self, parts: Sequence[Any]) -> Iterator[_Block]:
        """Parts of the rows, on the device."""
        X = self.of.X
        if isinstance(X, HostRows):
            yield from map(_Block, parts, streamed(X, parts))
            return
        for rows in parts:
            if isinstance(rows, slice):
                yield _Block(rows, X[rows])
            else:
                yield _Block(rows, X, torch.from_numpy(rows).to(self.device))

    def _begin(self, block: _Block) -> bool:
        """Cut a block of rows into as many digits as the last had; False if it cannot be cut."""
        if self.responses is None:
            block.classes = torch.zeros(len(block), dtype=torch.int32, device=self.device)
        elif self.responses.has_classes:
            block.classes, order = self._classes(block.rows).to(torch.int32).sort()
            block.order = order if block.index is None else block.index[order]
        else:
            block.beside, largest = self._encoded(block.rows, len(block))
            block.beside_digits = digits_for(int(min(largest, BEYOND)))
            if block.beside_digits > MOST:
                return False
        self._cut(block)
        return True

    def _cut(self, block: _Block) -> None:
        """Cut the features of a block, and what is beside them; the peak is on its way."""
        encoder, n = self.encoder, len(block)
        linear, peak = encoder.scale is not None, _zero(self.device)
        scale: Tensor = encoder.scale if linear else _ones(encoder.width, self.device)
        width = self.beside if block.beside_digits else 0
        digits = Block(encoder.width, self.digits, width, block.beside_digits, n, self.device)
        size = n if linear else encoder.rows
        order = block.index if block.order is None else block.order
        for start in range(0, n, size):
            some = slice(start, start + size)
            values, numbers = (block.X[some], None) if order is None else (block.X, order[some])
            if not linear:
                values = encoder.checked(values if numbers is None else values[numbers])[0]
                numbers = None
            for columns, planes in digits.parts[: len(digits.parts) - (width > 0)]:
                cut(values[:, columns], scale[columns], planes, start, peak, rows=numbers)
        if width:
            spare = _zero(self.device)
            cut(block.beside, _ones(width, self.device), digits.parts[-1][1], 0, spare)
        block.digits, block.n_digits, block.peak = digits, self.digits, Fetched(peak)

    def _add(self, block: _Block) -> None:
        """Add the products of a block, cut again if it needs more digits, or fewer."""
        needed = digits_for(block.peak.value())
        if needed > MOST:
            self._add_codes(block)
            return
        if needed != block.n_digits:
            self.digits = needed
            self._cut(block)
        self.gram.add_block(block.digits)
        if block.classes is not None:
            self.gram.add_classes(block.digits, block.classes, self.extra)

    def _add_codes(self, block: _Block) -> None:
        """Add rows in float64, a few at a time."""
        for k, rows in enumerate(chunks(block.rows, CHUNK)):
            some = slice(k * CHUNK, (k + 1) * CHUNK)
            self._add_few(block.X[some if block.index is None else block.index[some]], rows)

    def _add_few(self, X: Tensor, rows: Any) -> None:
        codes, largest = self.encoder.checked(X)
        beside, most = self._encoded(rows, len(X))
        Z = torch.cat([codes, beside], 1)
        J, weights, own = len(self.of.phi.steps), self.of.weights, self.of._heavy(rows)
        if self.of.fingerprint is not None:
            held = None if weights is None else weights[rows]
            self.of.fingerprint.add(self.of.responses.as_bytes(rows), held, to_array(Z[:, :J]))
        if own is not None:
            own = torch.from_numpy(own).to(self.device)
        self.gram.add_codes(Z, max(largest, most), own)

    def _encoded(self, rows: Any, n: int) -> tuple[Tensor, float]:
        """The constant and the responses of some rows in float64, and the largest."""
        out = torch.ones((n, self.beside), dtype=torch.float64, device=self.device)
        if self.responses is None:
            return out, 1.0
        if self.responses.has_classes:
            out[:, self.bias :] = 0.0
            out[torch.arange(n, device=self.device), self.bias + self._classes(rows)] = 1.0
            return out, 1.0
        here = np.empty((n, self.beside - self.bias))
        self.responses.encode(rows, here)
        out[:, self.bias :] = torch.from_numpy(here).to(self.device)
        return out, max(peak(here), 1.0)

    def _classes(self, rows: Any) -> Tensor:
        """The number of each row's class, on the device."""
        if self.responses.tensor is not None:
            return some(self.responses.tensor, rows)
        numbers = self.responses.numbers[rows].astype(np.int64)
        return torch.from_numpy(numbers).to(self.device)


@dataclass
class _Block:
    """A block of rows: where they are, and what is being made of them.

    Attributes
    ----------
    rows : slice, or array of indices
        Which of all rows these are.
    X : tensor
        These rows on the device; with an `index`, those that it names.
    order, classes : tensor, optional
        The rows of X in the order of their classes, and these.
    """

    rows: Any
    X: Tensor
    index: Tensor | None = None
    order: Tensor | None = None
    classes: Tensor | None = None
    beside: Tensor | None = None
    beside_digits: int = 0
    digits: Any = None
    n_digits: int = 0
    peak: Any = None

    def __len__(self) -> int:
        return len(self.X if self.index is None else self.index)


def _zero(device: Any) -> Tensor:
    return torch.zeros(1, dtype=torch.int32, device=device)


def _ones(width: int, device: Any) -> Tensor:
    return torch.ones(width, dtype=torch.float64, device=device)


def _needs(width: int, device: Any) -> str:
    """What is missing where memory does not do for the smallest blocks."""
    return (
        f"The sums of {width} features and responses take {8 * width**2 / 2**30:.1f} GiB of "
        f"{device}'s memory, and twice as much while they are added up; {free_there(device)}. Free "
        "some, take fewer features, or bring the rows to the host. Nothing was changed."
    )
