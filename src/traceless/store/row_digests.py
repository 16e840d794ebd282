"""Row digests: rows are recognised by keyed hashes, and are not kept.

    digest(row)  = BLAKE2b-128, keyed, of (width, label | targets, values, weight)
    id(row)      = BLAKE2b-128, keyed, of the text that the user knows the row by, if any
    lanes(rows)  = Σ h(digest, id)  (`row_lanes`)

Values, targets and weights are float64, little-endian, with one zero. Labels carry their type, so
that 1, "1" and True differ. Rows of weight 0 do not count. Without the key nobody can test whether
a row is among the digests, or an id among the ids. Sums commute and can be undone, so each change
adds to the lanes and subtracts from them.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import column_or_1d

from traceless.exceptions import StoreError
from traceless.features.grid import dense_rows
from traceless.knowledge.fingerprint import Lanes
from traceless.knowledge.responses import Classes
from traceless.knowledge.sample_weights import rounded_weights
from traceless.store.row_lanes import lanes_of, lanes_text, no_lanes

SECRET_BYTES = 32
SIZE = 16  # bytes of a digest
_CHUNK = 2**14  # rows made dense at a time

Counted = tuple[bytes, bytes, int]  # the digest of a row, its id, and how often it is held
RowBatch = tuple[Any, ...]  # X, y, sample_weight, and ids if there are any, as the caller gave them
Given = tuple[Any, Any, Any, Any]  # all four, or batches in place of X


class HashedId(bytes):
    """The keyed hash of an id, as the queue keeps it; empty for a row without one."""


@dataclass(frozen=True)
class RowDigests:
    """The digests of a batch of rows; rows of weight 0 have none.

    Parameters
    ----------
    digests : list of bytes
        Empty if there is no secret.
    ids : list of bytes
        As many: the keyed hash of the id of each row, empty for a row without one.
    places : ndarray of int
        Positions, in the batch, of the rows with positive weight.
    classes : dict
        Rows of each class, by the text of its label; empty for regressions.
    length, width : int
        Rows, with those of weight 0, and columns.
    """

    digests: list[bytes]
    ids: list[bytes]
    places: NDArray[np.intp]
    classes: dict[str, int]
    length: int
    width: int

    def spread(self, ids: list[bytes]) -> list[bytes]:
        """Ids of the rows with positive weight as ids of all rows of the batch."""
        found = [b""] * self.length
        for place, one in zip(self.places.tolist(), ids, strict=True):
            found[place] = one
        return found


@dataclass(frozen=True)
class RowHasher:
    """Digests of rows under one secret; without a secret it only counts rows.

    Parameters
    ----------
    secret : bytes or None
    classifies : bool
        Whether rows have labels, not targets.
    """

    secret: bytes | None = field(repr=False)
    classifies: bool

    @classmethod
    def of(cls, secret: bytes | None, origin: Mapping[str, Any]) -> Self:
        """The hasher of a store with this description."""
        return cls(secret, origin["task"] == "classification")

    def __call__(self, batch: RowBatch) -> RowDigests:
        """Check a batch of rows and compute its digests."""
        X, y, weight, ids = batch if len(batch) == 4 else (*batch, None)
        X = check_array(
            X, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False, ensure_min_samples=0
        )
        check_consistent_length(X, y)
        n, width = X.shape
        rounded_weights(weight, n)  # raises if they cannot be weights
        weights = np.ones(n) if weight is None else np.broadcast_to(np.asarray(weight, float), n)
        places = np.flatnonzero(weights)
        columns, counts, starts = weights[:, None], {}, [None] * len(places)
        if self.classifies:
            classes = Classes(column_or_1d(y)[places], None)
            for label, members in zip(classes.names, classes.members(), strict=True):
                counts[text_of(label)] = len(members)
                start = self._start(width, f"{type(label).__name__} {label!a}")
                for i in members.tolist():
                    starts[i] = start
        else:
            targets = np.asarray(y, dtype=np.float64).reshape(n, -1)
            columns = np.column_stack([targets, weights])
            starts = [self._start(width, f"targets {targets.shape[1]}")] * len(places)
        digests = [] if self.secret is None else _digests(X, columns, places, starts)
        hashed = self._ids(ids, n, places)
        return RowDigests(digests, hashed, places, counts, n, width)

    def tally(self, batches: Iterable[RowBatch]) -> Tally:
        """The rows of batches, counted."""
        tally = Tally()
        for batch in batches:
            tally.add(self(batch))
        return tally

    def id_hash(self, name: Any) -> bytes:
        """The keyed hash of an id; nothing for None and the empty text.

        Parameters
        ----------
        name : str, int, HashedId or None
            A whole number is its decimal digits.
        """
        if isinstance(name, HashedId):
            return name
        if isinstance(name, bool | np.bool_) or not isinstance(name, str | int | np.integer | None):
            raise ValueError(
                "The id of a row must be a text or a whole number, or None for a row without one; "
                f"got {name!r}. Nothing was changed."
            )
        if name is None or name == "":
            return b""
        return bytes(self._hash(str(name), person=b"traceless id 001").digest())

    def _ids(self, ids: Any, n: int, places: NDArray[np.intp]) -> list[bytes]:
        """The hashes of the ids of rows with positive weight."""
        if self.secret is None:
            return []
        if ids is None:
            return [b""] * len(places)
        if len(ids) != n:
            raise ValueError(
                f"ids must be one for each of the {n} rows, got {len(ids)}. Nothing was changed."
            )
        given = list(ids)  # a Series would count by its index
        names = [given[i] for i in places.tolist()]
        try:
            kinds = {(type(name), name) for name in names}  # 1, 1.0 and True are equal
        except TypeError:  # a list, say
            return [self.id_hash(name) for name in names]
        known = {(kind, name): self.id_hash(name) for kind, name in kinds}
        return [known[type(name), name] for name in names]

    def request(self, *what: Any) -> str | None:
        """Keyed hash by which a request is recognised; None without a secret."""
        if self.secret is None:
            return None
        return str(self._hash(" ".join(map(str, what)), person=b"traceless asks 1").hexdigest())

    def queued(self, classes: str, content: bytes) -> str:
        """Keyed hash of the rows that wait, in the bytes in which they are kept."""
        hashed = self._hash(f"{classes}\0", person=b"traceless queue1", size=32)
        hashed.update(content)
        return str(hashed.hexdigest())

    def check_secret(self, expected: str) -> None:
        """Raise if the secret is not the one with this hash, with which the store was made."""
        if self.secret is not None and self.request("secret") != expected:
            raise StoreError(
                "The store is damaged: its secret is not the one it was made with. Restore the "
                "secret from a backup."
            )

    def _start(self, width: int, label: str) -> Any:
        """The hash of what the rows of one class have in common."""
        return self._hash(f"{width} {label}\0", person=b"traceless row 01")

    def _hash(self, text: str, person: bytes, size: int = SIZE) -> Any:
        key = self.secret or b""
        return hashlib.blake2b(text.encode(), digest_size=size, key=key, person=person)


def _digests(X: Any, columns: Any, places: NDArray[np.intp], starts: list[Any]) -> list[bytes]:
    """Finish the hash of each row with its values; `starts` has the hash of what comes before."""
    digests = []
    for first in range(0, len(places), _CHUNK):
        at = places[first : first + _CHUNK]
        table = np.column_stack([dense_rows(X, at), columns[at]]) + 0.0  # -0.0 becomes 0.0
        rows = table.astype("<f8", copy=False).view(f"V{table.shape[1] * 8}")[:, 0].tolist()
        for row, start in zip(rows, starts[first : first + _CHUNK], strict=True):
            h = start.copy()
            h.update(row)
            digests.append(h.digest())
    return digests


def text_of(label: Any) -> str:
    """A label as a name in JSON."""
    return label.decode(errors="backslashreplace") if isinstance(label, bytes) else str(label)


def counted_lanes(counted: list[Counted]) -> tuple[Lanes, int]:
    """Lanes and number of rows that are counted."""
    counts = [n for _, _, n in counted]
    once = counts.count(1) == len(counts)
    weights = None if once else np.array(counts, np.int64).astype(np.uint16)
    lanes = lanes_of([d for d, _, _ in counted], [one for _, one, _ in counted], weights)
    return lanes, sum(counts)


def chunks(rows: Iterable[Any]) -> Iterator[list[Any]]:
    """Rows in lists of a moderate length."""
    left = iter(rows)
    while some := list(islice(left, _CHUNK)):
        yield some


def row_batches(
    X: Any, y: Any, sample_weight: Any, ids: Any = None, origin: Mapping[str, Any] | None = None
) -> Iterator[RowBatch]:
    """Rows that came as arrays, or as an iterable of batches, as batches (X, y, weight[, ids]).

    Where the model of a store with this `origin` has no labels, rows in an array need none.
    """
    kind = None if origin is None else origin["model"]["kind"]
    if y is None and kind == "PathOneClass" and hasattr(X, "shape"):
        y = np.zeros(X.shape[0], dtype=np.int64)
    if y is not None:
        yield (X, y, sample_weight) if ids is None else (X, y, sample_weight, ids)
        return
    alone = sample_weight is None and ids is None
    if hasattr(X, "shape") or not alone or not isinstance(X, Iterable):
        raise ValueError(
            "Rows need labels or targets: give X and y, or an iterable of batches (X, y), "
            "(X, y, sample_weight) or (X, y, sample_weight, ids); got "
            f"{type(X).__name__} and no y. Nothing was changed."
        )
    for batch in X:
        if not isinstance(batch, tuple | list) or len(batch) not in (2, 3, 4):
            raise ValueError(
                "A batch must be (X, y), (X, y, sample_weight) or (X, y, sample_weight, ids), got "
                f"{type(batch).__name__}. Nothing was changed."
            )
        yield tuple(batch) if len(batch) > 2 else (*batch, None)


@dataclass
class Tally:
    """How many rows were counted, of which classes, and the hashes over them.

    Parameters
    ----------
    rows : int
    classes, ids : Counter
        Rows of each class, and of each id that the store holds them by.
    lanes : ndarray of uint16
        Of the rows under the ids that the store holds them by.
    asked : ndarray of uint16
        Of the rows under the ids that the caller gave.
    named : bool
        Whether the caller gave an id with any row.
    """

    rows: int = 0
    classes: Counter[str] = field(default_factory=Counter)
    ids: Counter[bytes] = field(default_factory=Counter)
    lanes: Lanes = field(default_factory=no_lanes)
    asked: Lanes = field(default_factory=no_lanes)
    named: bool = False

    def add(self, rows: RowDigests, held_as: list[bytes] | None = None) -> None:
        """Count the rows of a batch; `held_as` has the ids that they were found under."""
        self.rows += len(rows.places)
        self.classes.update(rows.classes)
        self.named |= any(rows.ids)
        self.ids.update(rows.ids if held_as is None else held_as)
        asked = lanes_of(rows.digests, rows.ids)
        same = held_as is None or held_as == rows.ids
        self.asked += asked
        self.lanes += asked if held_as is None or same else lanes_of(rows.digests, held_as)

    def add_counted(self, counted: list[Counted]) -> None:
        """Add rows of another store to the hashes; number and classes are counted elsewhere."""
        lanes, _ = counted_lanes(counted)
        self.lanes += lanes
        self.asked += lanes
        self.named |= any(one for _, one, _ in counted)
        for _, one, n in counted:
            self.ids[one] += n

    def __str__(self) -> str:
        """The rows as the caller named them, by which a request is recognised."""
        return f"{self.rows} {lanes_text(self.asked)}"
