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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats
from traceless.exceptions import MismatchError, NotLearnedError
from traceless.files import facts
from traceless.knowledge.fingerprint import encoded_rows
from traceless.knowledge.responses import responses_of
from traceless.knowledge.sample_weights import rounded_weights

if TYPE_CHECKING:
    from traceless.knowledge.sums import Recipe, Rows

SIZE, KEY = 16, 32  # bytes of a digest, and of a key
_ROWS = 1024  # rows coded at a time

Digests = NDArray[np.bytes_]  # all of one length, so NumPy's padding with zeros makes none equal


@dataclass(frozen=True, eq=False)
class Book:
    """The digests of some rows under one key, in order; equal rows as often as they are held."""

    key: bytes
    digests: Digests

    @classmethod
    def new(cls) -> Book:
        """Without rows, and with a key of its own."""
        return cls(secrets.token_bytes(KEY), np.zeros(0, dtype=f"S{SIZE}"))

    def plus(self, digests: Digests) -> Book:
        """The book with further rows."""
        new = np.sort(digests)
        where = np.searchsorted(self.digests, new)
        return replace(self, digests=np.insert(self.digests, where, new))

    def minus(self, digests: Digests) -> tuple[Book, NDArray[np.bool_]]:
        """The book without as many of these rows as it holds, and which of them it does not."""
        order = np.argsort(digests, kind="stable")
        asked = digests[order]
        repeat = np.arange(len(asked)) - np.searchsorted(asked, asked)  # among equal ones
        place = np.searchsorted(self.digests, asked) + repeat
        held = place < np.searchsorted(self.digests, asked, side="right")
        missing = np.empty(len(asked), dtype=bool)
        missing[order] = ~held
        return replace(self, digests=np.delete(self.digests, place[held])), missing


@dataclass(frozen=True, eq=False)
class Guard:
    """Digests of the rows that a model holds: its own, and those of models merged into it."""

    books: tuple[Book, ...]

    @classmethod
    def of(cls, guard: Guard | None, held: int) -> Guard:
        """The guard that a model has, or a new one if it holds no rows yet."""
        guard = guard or cls((Book.new(),))
        if len(guard) != held:
            raise ValueError(
                f"guard=True needs the digests of all {held} rows held, and there are "
                f"{len(guard)}: set it before the first row is learned, or fit the model anew. "
                "Nothing was changed."
            )
        return guard

    def pieces(self) -> tuple[list[str], dict[str, NDArray[np.uint8]]]:
        """The keys, and the digests under each, for a file."""
        tensors = {
            f"guard.{k}": np.frombuffer(book.digests.tobytes(), np.uint8).reshape(-1, SIZE)
            for k, book in enumerate(self.books)
        }
        return [book.key.hex() for book in self.books], tensors

    @classmethod
    def from_pieces(cls, keys: Any, tensors: dict[str, NDArray[Any]]) -> Guard:
        """The guard of a file, whose tensors are taken out of those given."""
        books = []
        for k, key in enumerate(keys):
            raw = facts.tensor(tensors, f"guard.{k}", "u", (None, SIZE))
            digests = np.frombuffer(tensors.pop(f"guard.{k}").tobytes(), dtype=f"S{SIZE}")
            if (digests[1:] < digests[:-1]).any() or len(raw) != len(digests):
                raise ValueError("digests of rows are not in order.")
            books.append(Book(bytes.fromhex(key), digests))
        if not books or any(len(book.key) != KEY for book in books):
            raise ValueError("digests of rows without a key.")
        return cls(tuple(books))

    def __len__(self) -> int:
        return sum(len(book.digests) for book in self.books)

    def changed(self, recipe: Recipe, add: Rows | None, forget: Rows | None) -> Guard:
        """The guard after a change; raises `NotLearnedError` if a row to forget is not held."""
        books = list(self.books)
        if forget is not None:  # first: what is added by the same change is not held yet
            books = _without(books, recipe, forget)
        if add is not None:
            (new,), _ = _digests(recipe, add, books[:1])
            books[0] = books[0].plus(new)
        return Guard(tuple(books))

    def joined(self, other: Any) -> Guard:
        """The guard of both models' rows."""
        guard: Guard | None = getattr(other, "_guard", None)
        if guard is None:
            raise MismatchError(
                "A model with guard=True knows the digests of its rows, and what is merged has "
                "none: merge a model that was learned with guard=True too, or set guard=False. "
                "Nothing was changed."
            )
        books = list(self.books)
        for theirs in guard.books:
            same = [k for k, ours in enumerate(books) if ours.key == theirs.key]
            if same:
                books[same[0]] = books[same[0]].plus(theirs.digests)
            else:
                books.append(theirs)
        return Guard(tuple(book for k, book in enumerate(books) if not k or len(book.digests)))


def _without(books: Sequence[Book], recipe: Recipe, forget: Rows) -> list[Book]:
    """The books without some rows, each taken out of the first one that holds it."""
    left = list(books)
    asked, place = _digests(recipe, forget, books)
    missing = np.ones(len(place), dtype=bool)
    for k, digests in enumerate(asked):
        left[k], unknown = left[k].minus(digests[missing])
        missing[missing] = unknown
    if missing.any():
        n, first = int(missing.sum()), int(place[missing][0])
        raise NotLearnedError(
            f"{n} of the {len(place)} rows to forget are not held with this label and weight, "
            f"as often; the first of them is row {first} (counted from 0). Give rows as they "
            "were learned. Nothing was changed."
        )
    return left


def _digests(
    recipe: Recipe, rows: Rows, books: Sequence[Book]
) -> tuple[list[Digests], NDArray[np.intp]]:
    """Digests of rows under the key of each book, and the places of the rows with weight."""
    X, y, sample_weight = rows
    weights = rounded_weights(sample_weight, X.shape[0])
    place = np.arange(X.shape[0]) if weights is None else np.flatnonzero(weights)
    found: list[list[bytes]] = [[] for _ in books]
    for row in _encoded(recipe, X, y, weights):
        for book, digests in zip(books, found, strict=True):
            digests.append(blake2b(row, key=book.key, digest_size=SIZE).digest())
    return [np.array(digests, dtype=f"S{SIZE}") for digests in found], place


def _encoded(recipe: Recipe, X: Any, y: NDArray[Any], weights: Floats | None) -> Iterator[bytes]:
    """The bytes of each row of positive weight."""
    responses = responses_of(y, weights, recipe.task, recipe.target_resolution)
    for start in range(0, X.shape[0], _ROWS):
        rows = slice(start, min(start + _ROWS, X.shape[0]))
        codes = recipe.phi.codes(X, rows)
        some = None if weights is None else weights[rows]
        yield from encoded_rows(responses.as_bytes(rows), some, codes)
