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

from traceless.arithmetic.integers import Floats, peak
from traceless.arithmetic.words import Sums
from traceless.device.cutting import BEYOND, MOST, cut, digits_for
from traceless.device.encoders import Encoder
from traceless.device.gram import CHUNK, ROWS, Block, TensorGram, has_small_products
from traceless.device.tensors import Fetched, Tensor, kind_of, to_array
from traceless.knowledge.gathering import Band, Gathering
from traceless.knowledge.responses import Classes, Responses, check_one_type, label_of
from traceless.progress import progress

_TABLE = 2**20  # whole labels that span no more than this are found by a table
_RUN = 4096  # rows of a class that are added up together
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
    ) -> Iterator[Sums]:
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
    ) -> Sums:
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
        """Add rows, given by a slice or by indices, so many at a time.

        The digits of a block are begun before the products of the one before, so that the device
        has work while the host waits to see how many digits there are.
        """
        there, n = _there(rows, self.device), _count(rows)
        runs: _Runs | None = None
        if self.in_digits and (self.responses is None or isinstance(self.responses, Classes)):
            there, runs = self._in_order(rows, there, n, size)
        before: _Begun | None = None
        for start in progress(range(0, n, size), "learning", self.of.verbose):
            some = _part(there, start, min(start + size, n))
            begun = self._begun(some, start // size, runs) if self.in_digits else None
            if before is not None:
                self._add(before)
            before = begun
            if begun is None:
                self._add_codes(some)
        if before is not None:
            self._add(before)

    def _in_order(self, rows: Any, there: Any, n: int, size: int) -> tuple[Any, _Runs]:
        """Rows in the order of their classes, and the runs of each block."""
        if self.responses is None:
            return there, _Runs(np.array([0, n]), size, self.device)
        classes = self._classes(rows)
        order = classes.to(torch.int32).argsort(stable=True)
        counts = torch.bincount(classes, minlength=len(self.responses.names))
        order = order + there.start if isinstance(there, slice) else there[order]
        return order, _Runs(np.append(0, to_array(counts.cumsum(0))), size, self.device)

    def _begun(self, rows: Any, number: int, runs: _Runs | None) -> _Begun | None:
        """A block of rows, cut into as many digits as the last had; None if it cannot be cut."""
        if runs is not None:
            return self._cut(_Begun(rows, number, runs, None, 0))
        beside, largest = self._encoded(_here(rows), _count(rows))
        digits = digits_for(int(min(largest, BEYOND)))
        if digits > MOST:
            return None
        return self._cut(_Begun(rows, number, None, beside, digits))

    def _cut(self, begun: _Begun) -> _Begun:
        """Cut the features of a block, and what is beside them; the peak is on its way."""
        encoder, X, n = self.encoder, self.of.X, _count(begun.rows)
        linear, peak = encoder.scale is not None, _zero(self.device)
        scale: Tensor = encoder.scale if linear else _ones(encoder.width, self.device)
        width = self.gram.beside if begun.beside_digits else 0
        block = Block(encoder.width, self.digits, width, begun.beside_digits, n, self.device)
        size = n if linear else encoder.rows
        for start in range(0, n, size):
            some = _part(begun.rows, start, start + size)
            by_slice = isinstance(some, slice)
            values, numbers = (X[some], None) if by_slice or not linear else (X, some)
            values = values if linear else encoder.checked(values)[0]
            for columns, planes in block.parts[: len(block.parts) - (width > 0)]:
                cut(values[:, columns], scale[columns], planes, start, peak, rows=numbers)
        if width:
            spare = _zero(self.device)
            cut(begun.beside, _ones(width, self.device), block.parts[-1][1], 0, spare)
        begun.block, begun.digits, begun.peak = block, self.digits, Fetched(peak)
        return begun

    def _add(self, begun: _Begun) -> None:
        """Add the products of a block, cut again if it needs more digits, or fewer."""
        needed = digits_for(begun.peak.value())
        if needed > MOST:
            self._add_codes(begun.rows)
            return
        if needed != begun.digits:
            self.digits = needed
            self._cut(begun)
        self.gram.add_block(begun.block)
        if begun.runs is not None:
            self.gram.add_runs(begun.block, *begun.runs.of(begun.number))

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


@dataclass
class _Begun:
    """A block of rows whose digits are being cut."""

    rows: Any
    number: int
    runs: _Runs | None
    beside: Tensor | None
    beside_digits: int
    block: Any = None
    digits: int = 0
    peak: Any = None


class _Runs:
    """Rows in the order of their classes, in blocks: where the runs of each begin and end.

    Parameters
    ----------
    edges : int64 array of shape (K + 1,)
        Where the rows of each class begin, and the last end.
    size : int
        Rows of a block.
    """

    def __init__(self, edges: NDArray[np.int64], size: int, device: Any) -> None:
        n = int(edges[-1])
        points = np.unique(np.concatenate([edges, np.arange(0, n, size), np.arange(0, n, _RUN)]))
        starts, stops = points[:-1], points[1:]
        self._classes = np.searchsorted(edges, starts, side="right") - 1
        self._lengths, self._n_classes = stops - starts, len(edges) - 1
        self._first = np.searchsorted(starts, np.arange(0, n + size, size))
        within = starts % size
        tables = np.stack([within, within + self._lengths, self._classes])
        self._tables = torch.from_numpy(tables).to(device)

    def of(self, number: int) -> tuple[tuple[Tensor, ...], NDArray[np.int64]]:
        """Starts, ends and classes of the runs of a block, and how many rows each class has."""
        some = slice(self._first[number], self._first[number + 1])
        counts = np.zeros(self._n_classes, dtype=np.int64)
        np.add.at(counts, self._classes[some], self._lengths[some])
        return tuple(table[some] for table in self._tables), counts


class _HostRows:
    """Rows that are brought to the host when they are asked for."""

    def __init__(self, X: Tensor) -> None:
        self._X, self.shape = X, X.shape

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        return np.asarray(to_array(_some(self._X, rows)))


def _some(X: Tensor, rows: Any) -> Tensor:
    """Some rows, given by a slice or by indices of NumPy."""
    return X[rows] if isinstance(rows, slice) else X[torch.from_numpy(rows).to(X.device)]


def _zero(device: Any) -> Tensor:
    return torch.zeros(1, dtype=torch.int32, device=device)


def _ones(width: int, device: Any) -> Tensor:
    return torch.ones(width, dtype=torch.float64, device=device)


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
    sums = 8 * width * width / 2**30
    free = torch.cuda.mem_get_info(device)[0] / 2**30 if device.type == "cuda" else 0.0
    return (
        f"The sums of {width} features and responses take {sums:.1f} GiB of {device}'s memory, and "
        f"twice as much while they are added up; {free:.1f} GiB are free there. Free some, take "
        "fewer features, or bring the rows to the host. Nothing was changed."
    )
