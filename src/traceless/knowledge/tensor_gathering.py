"""Gathering rows that lie on a device: the same integers as `traceless.knowledge.gathering`.

Rows become digits of eight bits, block by block, and tensor cores add up their products
(`traceless.device`). Weighted rows, and codes of more than 30 bits, are added up in float64; the
hashes of a fingerprint are the host's work, as is a feature map that is not of this package.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats, Integers, peak
from traceless.device.cutting import BEYOND, MOST, cut, digits_for
from traceless.device.encoders import Encoder
from traceless.device.gram import CHUNK, ROWS, Block, TensorGram, has_small_products
from traceless.device.tensors import Tensor, kind_of, to_array
from traceless.knowledge.gathering import Band, Gathering
from traceless.knowledge.responses import Classes, Responses, check_one_type, label_of
from traceless.progress import progress

_TABLE = 2**20  # whole labels that span no more than this are found by a table
_FEWEST = 1024  # rows of a block, below which smaller blocks are no help
_NO_FLOAT64 = frozenset({"mps"})  # kinds of devices that have none


class TensorClasses(Classes):
    """Classes of labels that lie on a device."""

    def __init__(self, y: Tensor, weights: Floats | None) -> None:
        if y.ndim != 1:
            raise ValueError(f"Class labels must be one per row, got shape {tuple(y.shape)}.")
        found, self.tensor = _found(y)
        self.names = tuple([label_of(value) for value in to_array(found).tolist()])
        check_one_type(self.names)
        alive = self.tensor
        if weights is not None:
            alive = alive[torch.from_numpy(weights > 0).to(y.device)]
        self.counts = tuple(torch.bincount(alive, minlength=len(self.names)).tolist())

    @cached_property
    def _class(self) -> NDArray[Any]:  # type: ignore[override]
        return np.asarray(to_array(self.tensor))

    def __len__(self) -> int:
        return len(self.tensor)


def _found(y: Tensor) -> tuple[Tensor, Tensor]:
    """The labels that there are, in order, and the number of each row's."""
    whole = not y.is_floating_point() and kind_of(y) != "bool" and len(y) > 0
    if whole and int(y.max()) - int(y.min()) < _TABLE:
        least = int(y.min())
        place = y.long() - least
        there = torch.zeros(int(place.max()) + 1, dtype=torch.int64, device=y.device)
        there[place] = 1
        return there.nonzero()[:, 0] + least, (there.cumsum(0) - 1)[place]
    found, numbers = torch.unique(y, sorted=True, return_inverse=True)
    return found, numbers


@dataclass(frozen=True)
class TensorGathering(Gathering):
    """How rows on a device are gathered; see `Gathering`."""

    def _sums(
        self, bands: Sequence[Band], extra: int, responses: Responses | None
    ) -> Iterator[Integers]:
        device = self.X.device
        if not Encoder.takes(self.phi) or device.type in _NO_FLOAT64:
            here = Gathering(self.phi, _HostRows(self.X), *self._beside())
            yield from here._sums(bands, extra, responses)
            return
        encoder = Encoder(self.phi, device)
        for rows, unit in bands:
            yield self._sum(encoder, rows, unit, extra, responses)

    def _beside(self) -> tuple[Any, ...]:
        return self.responses, self.weights, self.fingerprint, self.verbose

    def _sum(
        self, encoder: Encoder, rows: Any, unit: int, extra: int, responses: Responses | None
    ) -> Integers:
        """The sum of one band; where memory is short, anew with blocks of half the size."""
        size = ROWS
        hashed = None if self.fingerprint is None else self.fingerprint.lanes.copy()
        while True:
            try:
                blocks = Blocks(self, encoder, unit, extra, responses)
                blocks.add_all(rows, size)
                return blocks.gram.total()
            except torch.cuda.OutOfMemoryError as error:
                size //= 2
                if size < _FEWEST:
                    raise MemoryError(_needs(encoder.width + extra + 1, self.X.device)) from error
                torch.cuda.empty_cache()
                if self.fingerprint is not None and hashed is not None:
                    self.fingerprint.lanes = hashed.copy()


class Blocks:
    """Blocks of rows, added to one sum."""

    def __init__(
        self,
        gathering: TensorGathering,
        encoder: Encoder,
        unit: int,
        extra: int,
        responses: Responses | None,
    ) -> None:
        self.of, self.encoder, self.unit, self.responses = gathering, encoder, unit, responses
        self.device, self.bias = gathering.X.device, int(gathering.phi.has_bias)
        self.gram = TensorGram(encoder.width, self.bias + extra, self.device)
        plain = gathering.weights is None and gathering.fingerprint is None
        self.in_digits = plain and has_small_products(self.device)
        self.digits = 2  # that the last block had

    def add_all(self, rows: Any, size: int) -> None:
        """Add rows, given by a slice or by indices, so many at a time."""
        there, edges = _there(rows, self.device), np.array([0, _count(rows)])
        runs = self.in_digits and (self.responses is None or isinstance(self.responses, Classes))
        if runs and self.responses is not None:
            there, edges = self._in_order(rows)
        for start in progress(range(0, int(edges[-1]), size), "learning", self.of.verbose):
            stop = min(start + size, int(edges[-1]))
            some = _part(there, start, stop)
            block = self._block(some, stop - start, beside=not runs) if self.in_digits else None
            if block is None:
                self._add_codes(some)
                continue
            self.gram.add_block(block)
            if runs:
                inside = np.flatnonzero((edges[1:] > start) & (edges[:-1] < stop))
                ends = np.clip(edges[[*inside, inside[-1] + 1]], start, stop) - start
                self.gram.add_classes(block, ends.tolist(), inside.tolist(), self.bias)

    def _in_order(self, rows: Any) -> tuple[Tensor, NDArray[np.int64]]:
        """Rows in the order of their classes, and where each class begins."""
        classes, there = self._classes(rows), _there(rows, self.device)
        order = classes.to(torch.int32).argsort(stable=True)
        counts = torch.bincount(classes, minlength=self.gram.beside - self.bias)
        order = order + there.start if isinstance(there, slice) else there[order]
        return order, np.append(0, to_array(counts.cumsum(0)))

    def _block(self, rows: Any, n: int, beside: bool) -> Block | None:
        """The digits of the features, and of what is beside; None where there would be too many."""
        encoder, X = self.encoder, self.of.X
        values_beside, largest = self._encoded(_here(rows), n) if beside else (None, 0.0)
        digits_beside = digits_for(int(min(largest, BEYOND))) if beside else 0
        if digits_beside > MOST:
            return None
        linear = encoder.scale is not None
        size = n if linear else encoder.rows
        ones = torch.ones(encoder.width, dtype=torch.float64, device=self.device)
        scale = encoder.scale if linear else ones
        while True:
            width = self.gram.beside if beside else 0
            block = Block(encoder.width, self.digits, width, digits_beside, n, self.device)
            peak = torch.zeros(1, dtype=torch.int32, device=self.device)
            for start in range(0, n, max(size, 1)):
                some = _part(rows, start, start + size)
                values, numbers = X, some
                if isinstance(some, slice):
                    values, numbers = X[some], None
                if not linear:
                    values, numbers = encoder.checked(X[some])[0], None
                for columns, planes in block.parts[: len(block.parts) - beside]:
                    part = values[:, columns]
                    cut(part, scale[columns], planes, start, peak, rows=numbers)
            needed = digits_for(int(peak))
            if needed > MOST:
                return None
            if needed == self.digits:
                if beside:
                    ones = torch.ones(width, dtype=torch.float64, device=self.device)
                    cut(values_beside, ones, block.parts[-1][1], 0, peak)
                return block
            self.digits = needed

    def _add_codes(self, rows: Any) -> None:
        """Add rows in float64, a few at a time."""
        for start in range(0, _count(rows), CHUNK):
            some = _part(rows, start, start + CHUNK)
            self._add_few(self.of.X[some], _here(some))

    def _add_few(self, X: Tensor, rows: Any) -> None:
        codes, largest = self.encoder.checked(X)
        beside, most = self._encoded(rows, len(X))
        Z = torch.cat([codes, beside], 1)
        J, weights = len(self.of.phi.steps), self.of.weights
        own = None if weights is None else weights[rows]
        if self.of.fingerprint is not None:
            self.of.fingerprint.add(self.of.responses.as_bytes(rows), own, to_array(Z[:, :J]))
        if own is not None:
            own = torch.from_numpy(np.ldexp(own, -self.unit)).to(self.device)
        self.gram.add_codes(Z, max(largest, most), own)

    def _encoded(self, rows: Any, n: int) -> tuple[Tensor, float]:
        """The constant and the responses of some rows in float64, and the largest."""
        out = torch.ones((n, self.gram.beside), dtype=torch.float64, device=self.device)
        if self.responses is None:
            return out, 1.0
        if isinstance(self.responses, Classes):
            out[:, self.bias :] = 0.0
            out[torch.arange(n, device=self.device), self.bias + self._classes(rows)] = 1.0
            return out, 1.0
        here = np.empty((n, self.gram.beside - self.bias))
        self.responses.encode(rows, here)
        out[:, self.bias :] = torch.from_numpy(here).to(self.device)
        return out, max(peak(here), 1.0)

    def _classes(self, rows: Any) -> Tensor:
        """The number of each row's class, on the device."""
        classes = self.responses
        assert isinstance(classes, Classes)
        if isinstance(classes, TensorClasses):
            return _some(classes.tensor, rows)
        return torch.from_numpy(classes._class[rows].astype(np.int64)).to(self.device)


class _HostRows:
    """Rows that are brought to the host when they are asked for."""

    def __init__(self, X: Tensor) -> None:
        self._X, self.shape = X, X.shape

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        return np.asarray(to_array(_some(self._X, rows)))


def _some(X: Tensor, rows: Any) -> Tensor:
    """Some rows, given by a slice or by indices of NumPy."""
    return X[rows] if isinstance(rows, slice) else X[torch.from_numpy(rows).to(X.device)]


def _here(rows: Any) -> Any:
    """The index of a tensor as one of an array."""
    return rows if isinstance(rows, slice) else to_array(rows)


def _part(rows: Any, start: int, stop: int) -> Any:
    """Some of the rows that a slice or an array of indices names."""
    if isinstance(rows, slice):
        return slice(rows.start + start, min(rows.start + stop, rows.stop))
    return rows[start:stop]


def _count(rows: Any) -> int:
    """How many rows a slice or an array of indices names."""
    return int(rows.stop - rows.start) if isinstance(rows, slice) else len(rows)


def _there(rows: Any, device: Any) -> Any:
    """Rows as an index of a tensor."""
    return rows if isinstance(rows, slice) else torch.from_numpy(rows).to(device)


def _needs(width: int, device: Any) -> str:
    """What is missing where memory does not do for the smallest blocks."""
    sums, free = 8 * width * width / 2**30, torch.cuda.mem_get_info(device)[0] / 2**30
    return (
        f"The sums of {width} features and responses take {sums:.1f} GiB of {device}'s memory, and "
        f"up to twice as much with a block of rows beside them; {free:.1f} GiB are free there. "
        "Free some, take fewer features, or bring the rows to the host. Nothing was changed."
    )
