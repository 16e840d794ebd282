"""Gathering rows on a device: their classes, and where the host has to do the work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats, Sums
from traceless.device.gathering import sums, takes
from traceless.device.tensors import HostRows, Tensor, kind_of, some, to_array
from traceless.knowledge.gathering import Gathering
from traceless.knowledge.responses import Classes, Responses, check_one_type, label_of

_TABLE = 2**20  # whole labels that span no more than this are found by a table


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

    def numbers(self, rows: Any) -> Tensor:  # noqa: D102
        return some(self.tensor, rows)

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
    """How rows on a device, or on their way there, are gathered; see `Gathering`."""

    are_few = False  # they are added where they are

    def _sums(
        self, several: Sequence[Any], extra: int, responses: Responses | None
    ) -> Iterator[Sums]:
        if takes(self.phi, self.X.device):
            return sums(self, several, extra, responses)
        X = to_array(self.X) if isinstance(self.X, HostRows) else _Fetched(self.X)
        beside = self.responses, self.weights, self.fingerprint, self.verbose
        return Gathering(self.phi, X, *beside)._sums(several, extra, responses)


class _Fetched:
    """Rows of a device that are brought to the host when they are asked for."""

    def __init__(self, X: Tensor) -> None:
        self._X, self.shape = X, X.shape

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        return np.asarray(to_array(some(self._X, rows)))
