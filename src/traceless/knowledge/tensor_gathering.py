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
from traceless.device.cutting import MOST, cut, digits_for
from traceless.device.encoders import Encoder
from traceless.device.gram import CHUNK, ROWS, TensorGram, has_small_products, plane_shape
from traceless.device.tensors import Tensor, kind_of, to_array
from traceless.knowledge.gathering import Band, Gathering, chunks
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
                for some in progress(chunks(rows, size), "learning", self.verbose):
                    blocks.add(some)
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
        J = encoder.width
        self.scale = encoder.scale
        if self.scale is None:  # codes are whole already
            self.scale = torch.ones(J, dtype=torch.float64, device=self.device)

    def add(self, rows: Any) -> None:
        """Add some rows, given by a slice or by indices."""
        X = _some(self.of.X, rows)
        planes = self._planes(X) if self.in_digits else None
        beside = None if planes is None else self._planes_beside(rows, len(X))
        if planes is not None and beside is not None:
            self.gram.add_planes(planes, beside)
            return
        for start in range(0, len(X), CHUNK):
            self._add_codes(X[start : start + CHUNK], _part(rows, start, start + CHUNK))

    def _planes(self, X: Tensor) -> Tensor | None:
        """The digits of the features; None where there would be too many."""
        n, J, encoder = len(X), self.encoder.width, self.encoder
        size = n if encoder.scale is not None else encoder.rows
        while True:
            planes = _empty_planes(self.digits, J, n, self.device)
            peak = torch.zeros(1, dtype=torch.int32, device=self.device)
            for start in range(0, n, max(size, 1)):
                some = X[start : start + size]
                values = some if encoder.scale is not None else encoder.checked(some)[0]
                cut(values, self.scale, planes, start, peak)
            needed = digits_for(int(peak))
            if needed > MOST:
                return None
            if needed <= self.digits:
                self.digits = needed
                return planes[:needed]
            self.digits = needed

    def _planes_beside(self, rows: Any, n: int) -> Tensor | None:
        """The digits of the constant and the responses."""
        width = self.gram.beside
        if self.responses is None or isinstance(self.responses, Classes):
            planes = _empty_planes(1, width, n, self.device)
            planes[0, :width] = 0
            planes[0, : self.bias, :n] = 1
            if self.responses is None:
                planes[0, self.bias : width, :n] = 1
            else:
                each = torch.arange(n, device=self.device)
                planes[0, self.bias + self._classes(rows), each] = 1
            return planes
        values, largest = self._encoded(rows, n)
        digits = digits_for(int(max(largest, 1.0))) if largest < 2**31 else MOST + 1
        if digits > MOST:
            return None
        planes = _empty_planes(digits, width, n, self.device)
        ones = torch.ones(width, dtype=torch.float64, device=self.device)
        cut(values, ones, planes, 0, torch.zeros(1, dtype=torch.int32, device=self.device))
        return planes

    def _add_codes(self, X: Tensor, rows: Any) -> None:
        """Add a few rows in float64."""
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


def _part(rows: Any, start: int, stop: int) -> Any:
    """Some of the rows that a slice or an array of indices names."""
    if isinstance(rows, slice):
        return slice(rows.start + start, min(rows.start + stop, rows.stop))
    return rows[start:stop]


def _empty_planes(digits: int, columns: int, rows: int, device: Any) -> Tensor:
    """Planes to be written to, with zeros where nothing will be."""
    planes = torch.empty((digits, *plane_shape(columns, rows)), dtype=torch.int8, device=device)
    planes[:, columns:] = 0
    planes[:, :, rows:] = 0
    return planes


def _needs(width: int, device: Any) -> str:
    """What is missing where memory does not do for the smallest blocks."""
    sums, free = 8 * width * width / 2**30, torch.cuda.mem_get_info(device)[0] / 2**30
    return (
        f"The sums of {width} features and responses take {sums:.1f} GiB of {device}'s memory, and "
        f"up to twice as much with a block of rows beside them; {free:.1f} GiB are free there. "
        "Free some, take fewer features, or bring the rows to the host. Nothing was changed."
    )
