"""Which rows a model holds, so that a forget of any other is refused.

Sums cannot tell: with more rows than features, a row that was never learned, one that is
forgotten twice or one with another label often leaves sums that other data could have. A guard
keeps a keyed digest of each row, 16 bytes of BLAKE2b over its codes, its label or targets and its
weight, once for each time it was learned. Those of forgotten rows are taken out again.

The key is random and stays with the model. Whoever has both can ask whether the model holds a row
that he knows; he cannot read a row from it. Merged models keep their keys, side by side.

A guard is a value: a change makes a new one, by copying what stays, 16 bytes a row.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from traceless.exceptions import MismatchError
from traceless.files import facts
from traceless.knowledge.fingerprint import encoded_rows
from traceless.knowledge.responses import responses_of
from traceless.knowledge.sample_weights import rounded_weights
from traceless.knowledge.training_rows import SIZE, Digests, digests, not_held, places_of

if TYPE_CHECKING:
    from traceless.knowledge.sums import Recipe, Rows

KEY = 32  # bytes of a key
_ROWS = 1024  # rows coded at a time


@dataclass(frozen=True, eq=False)
class Guard:
    """Digests of the rows that a model holds, by their key: the first is the model's own."""

    digests: Mapping[bytes, Digests]

    @classmethod
    def of(cls, guard: Guard | None, held: int) -> Guard:
        """The guard that a model has, or a new one if it holds no rows yet."""
        guard = guard or cls({secrets.token_bytes(KEY): digests([])})
        if len(guard) != held:
            raise ValueError(
                f"guard=True needs the digests of all {held} rows held, and there are "
                f"{len(guard)}: set it before the first row is learned, or fit the model anew. "
                "Nothing was changed."
            )
        return guard

    def pieces(self) -> tuple[list[str], dict[str, NDArray[np.uint8]]]:
        """The keys, and the digests under each in order, for a file."""
        tensors = {
            f"guard.{k}": np.frombuffer(np.sort(held).tobytes(), np.uint8).reshape(-1, SIZE)
            for k, held in enumerate(self.digests.values())
        }
        return [key.hex() for key in self.digests], tensors

    @classmethod
    def from_pieces(cls, keys: Any, tensors: dict[str, NDArray[Any]]) -> Guard:
        """The guard of a file, whose tensors are taken out of those given."""
        books = {}
        for k, key in enumerate(map(bytes.fromhex, keys)):
            facts.tensor(tensors, f"guard.{k}", "u", (None, SIZE))
            books[key] = held = np.frombuffer(tensors.pop(f"guard.{k}").tobytes(), f"S{SIZE}")
            if (held[1:] < held[:-1]).any() or len(key) != KEY:
                raise ValueError("digests of rows are not in order, or without a key.")
        if not 0 < len(books) == len(keys):
            raise ValueError("digests of rows without a key of their own.")
        return cls(books)

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and skops, whose keys are text."""
        keys, tensors = self.pieces()
        return {"keys": keys, **tensors}

    def __setstate__(self, state: dict[str, Any]) -> None:
        keys, *tensors = state.items()
        self.__dict__.update(vars(self.from_pieces(keys[1], dict(tensors))))

    def __len__(self) -> int:
        return sum(map(len, self.digests.values()))

    def changed(self, recipe: Recipe, add: Rows | None, forget: Rows | None) -> Guard:
        """The guard after a change; raises `NotLearnedError` if a row to forget is not held."""
        books = dict(self.digests)
        if forget is not None:  # first: what is added by the same change is not held yet
            wanted, rows = _digests(recipe, forget, books.keys())
            missing = np.ones(len(rows), dtype=bool)
            for key, asked in zip(self.digests, wanted, strict=True):  # the first that holds it
                at = places_of(books[key], asked[missing])
                books[key] = np.delete(books[key], at[at >= 0])
                missing[missing] = at < 0
            if missing.any():
                raise not_held(rows[missing], len(rows))
        if add is not None:
            own = next(iter(books))
            books[own] = np.concatenate([books[own], *_digests(recipe, add, [own])[0]])
        return Guard(books)

    def joined(self, other: Any) -> Guard:
        """The guard of both models' rows."""
        guard: Guard | None = getattr(other, "_guard", None)
        if guard is None:
            raise MismatchError(
                "A model with guard=True knows the digests of its rows, and what is merged has "
                "none: merge a model that was learned with guard=True too, or set guard=False. "
                "Nothing was changed."
            )
        books = dict(self.digests)
        for key, held in guard.digests.items():
            if len(held):
                books[key] = np.concatenate([books.get(key, held[:0]), held])
        return Guard(books)


def _digests(
    recipe: Recipe, rows: Rows, keys: Collection[bytes]
) -> tuple[list[Digests], NDArray[np.intp]]:
    """Digests of the rows with weight under each key, and the numbers of these among all rows."""
    X, y, sample_weight = rows
    weights = rounded_weights(sample_weight, X.shape[0])
    responses = responses_of(y, weights, recipe.task, recipe.target_resolution)
    found: list[list[Digests]] = [[digests([])] for _ in keys]
    for start in range(0, X.shape[0], _ROWS):
        some = slice(start, min(start + _ROWS, X.shape[0]))
        heavy = None if weights is None else weights[some]
        encoded = encoded_rows(responses.as_bytes(some), heavy, recipe.phi.codes(X, some))
        for key, parts in zip(keys, found, strict=True):
            parts.append(digests(encoded, key))
    numbers = np.arange(X.shape[0]) if weights is None else np.flatnonzero(weights)
    return [np.concatenate(parts) for parts in found], numbers
