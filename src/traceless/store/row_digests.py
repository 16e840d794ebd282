"""Row digests: rows are recognised by keyed hashes, and are not kept.

    digest(row)  = BLAKE3-128, keyed, of (width, label | targets), values, weight
    name(id)     = BLAKE3-128, keyed, of the text that the user knows the row by, if any

Values, targets and weights are float64, little-endian, with one zero. Labels carry their type, so
that 1, "1" and True differ. Rows of weight 0 do not count. Without the key nobody can test whether
a row is among the digests, or an id among the names. Each purpose has a key of its own, which is
derived from the secret.
"""

from __future__ import annotations

import io
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from struct import pack
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import column_or_1d

from traceless.exceptions import StoreError
from traceless.features.grid import dense_rows
from traceless.files.hashing import blake3, hashes
from traceless.knowledge.responses import Classes
from traceless.knowledge.sample_weights import rounded_weights
from traceless.store.people import SIZE, keys_of, names_of
from traceless.store.queue import SAFE_ROWS
from traceless.store.row_table import Counted

_CHUNK = 2**14  # rows made dense at a time

RowBatch = tuple[Any, ...]  # X, y, sample_weight, and ids if there are any, as the caller gave them
Given = tuple[Any, Any, Any, Any]  # all four, or batches in place of X


@dataclass(frozen=True)
class RowDigests:
    """The digests of a batch of rows; rows of weight 0 have none.

    Parameters
    ----------
    digests : list of bytes
        Empty if there is no secret.
    names : list of bytes
        As many: the keyed hash of the id of each row, empty for a row without one.
    places : ndarray of int
        Positions, in the batch, of the rows with positive weight.
    classes : dict
        Rows of each class, by the text of its label; empty for regressions.
    different : dict
        Digests of different rows of each class, or of all of a regression: `SAFE_ROWS` of them if
        there are so many.
    length, width : int
        Rows, with those of weight 0, and columns.
    """

    digests: list[bytes]
    names: list[bytes]
    places: NDArray[np.intp]
    classes: dict[str, int]
    different: dict[str, set[bytes]]
    length: int
    width: int


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
        """The hasher of a store with this description; raises if that has another secret."""
        hasher = cls(secret, origin["task"] == "classification")
        if secret is not None and hasher.request("secret") != origin["secret"]:
            raise StoreError(
                "The store is damaged: its secret is not the one it was made with. Restore the "
                "secret from a backup."
            )
        return hasher

    def __call__(self, batch: RowBatch) -> RowDigests:
        """Check a batch of rows and compute its digests."""
        X, y, weight, ids = (*batch, None)[:4]
        X = check_array(
            X, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False, ensure_min_samples=0
        )
        check_consistent_length(X, y)
        n, width = X.shape
        rounded_weights(weight, n)  # raises if they cannot be weights
        weights = np.ones(n) if weight is None else np.broadcast_to(np.asarray(weight, float), n)
        places = np.flatnonzero(weights)
        columns, members = weights[:, None], {"": np.arange(len(places))}
        starts = np.zeros((len(places), SIZE), dtype=np.uint8)
        if self.classifies:
            classes = Classes(column_or_1d(y)[places], None)
            labels = list(zip(classes.names, classes.members(), strict=True))
            members = {text_of(label): some for label, some in labels}
            for label, some in labels:
                starts[some] = self._start(width, f"{type(label).__name__} {label!a}")
        else:
            targets = np.asarray(y, dtype=np.float64).reshape(n, -1)
            columns = np.column_stack([targets, weights])
            starts[:] = self._start(width, f"targets {targets.shape[1]}")
        counts = {label: len(some) for label, some in members.items()} if self.classifies else {}
        digests = [] if self.secret is None else self._digests(X, columns, places, starts)
        different = {label: _different(digests, some) for label, some in members.items()}
        return RowDigests(digests, self._names(ids, n, places), places, counts, different, n, width)

    def _digests(
        self, X: Any, columns: Any, places: NDArray[np.intp], starts: NDArray[np.uint8]
    ) -> list[bytes]:
        digests = list[bytes]()
        for first in range(0, len(places), _CHUNK):
            at = places[first : first + _CHUNK]
            table = np.column_stack([dense_rows(X, at), columns[at]]) + 0.0  # -0.0 becomes 0.0
            raw = np.ascontiguousarray(table, dtype="<f8").view(np.uint8)
            whole = np.concatenate([starts[first : first + _CHUNK], raw], axis=1)
            rows = whole.view(f"V{whole.shape[1]}")[:, 0].tolist()
            digests += hashes(rows, self._keys["row"], SIZE)
        return digests

    def tally(self, batches: Iterable[RowBatch]) -> Tally:
        """The rows of batches, counted."""
        tally = Tally()
        for batch in batches:
            tally.add(self(batch))
        return tally

    def names(self, ids: Iterable[Any]) -> list[bytes]:
        """The keyed hashes of ids (`people.names_of`)."""
        return names_of(ids, self._keys["id"])

    def _names(self, ids: Any, n: int, places: NDArray[np.intp]) -> list[bytes]:
        """The names of the ids of rows with positive weight."""
        if self.secret is None:
            return []
        if ids is None:
            return [b""] * len(places)
        if len(ids) != n:
            raise ValueError(
                f"ids must be one for each of the {n} rows, got {len(ids)}. Nothing was changed."
            )
        every = list(ids)  # a Series would count by its index
        return self.names(every[i] for i in places.tolist())

    def request(self, *what: Tally | str) -> str | None:
        """Keyed hash by which a request is recognised; None without a secret.

        Rows count in any order, and without their ids: who was forgotten is not to be found by it.
        """
        if self.secret is None:
            return None
        parts = [one.encode() if isinstance(one, str) else one.in_order() for one in what]
        return self._keyed("request", b"".join(b"%d " % len(p) + p for p in parts)).hex()

    def queued(self, content: bytes, reserved: Counted) -> str:
        """Keyed hash of rows that wait: the bytes in which they are kept, and their records."""
        each = (pack("<16s16sqq", *r[:3], n) for r, n in zip(*reserved, strict=True))
        return self._keyed("queue", b"".join([*each, content]), 32).hex()

    @cached_property
    def _keys(self) -> dict[str, bytes]:
        """The keys of all purposes."""
        return keys_of(self.secret)

    def _keyed(self, purpose: str, content: bytes, size: int = SIZE) -> bytes:
        found: bytes = blake3(self._keys[purpose]).update(content).digest(size)
        return found

    def _start(self, width: int, label: str) -> NDArray[np.uint8]:
        """What the rows of one class have in common."""
        return np.frombuffer(self._keyed("start", f"{width} {label}".encode()), np.uint8)


def _different(digests: list[bytes], members: NDArray[np.intp]) -> set[bytes]:
    """So many different ones of some digests as make them safe, or all there are."""
    found = set[bytes]()
    for i in members if digests else ():
        found.add(digests[i])
        if len(found) >= SAFE_ROWS:
            break
    return found


def text_of(label: Any) -> str:
    """A label as a name in JSON."""
    return label.decode(errors="backslashreplace") if isinstance(label, bytes) else str(label)


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


def packed(batches: list[RowBatch]) -> bytes:
    """The rows with positive weight of batches, as bytes."""
    file, each = io.BytesIO(), enumerate(map(_plain_arrays, batches))
    arrays = {f"{i}{k}": a for i, b in each for k, a in zip("Xyw", b, strict=True)}
    np.savez(file, **arrays, allow_pickle=False)
    return file.getvalue()


def unpacked(content: Any) -> Iterator[RowBatch]:
    """The inverse of `packed`; raises `StoreError` for other bytes."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            if any(info.compress_type != zipfile.ZIP_STORED for info in arrays.zip.infolist()):
                raise ValueError("they are compressed")
            for i in range(len(arrays.files) // 3):
                yield arrays[f"{i}X"], arrays[f"{i}y"], arrays[f"{i}w"]
    except (ValueError, TypeError, LookupError, OSError, MemoryError, zipfile.BadZipFile) as error:
        raise StoreError(f"The ledger is damaged: rows that wait ({error}).") from None


def _plain_arrays(batch: RowBatch) -> RowBatch:
    """Rows with positive weight as arrays that NumPy can save."""
    X, y, weight = batch[:3]
    y = np.asarray(y)
    if y.dtype == object:
        y = np.array(y.tolist())
    given = np.asarray(1.0 if weight is None else weight, dtype=np.float64)
    weights = np.broadcast_to(given, len(y))
    kept = weights > 0
    X = np.asarray(X.toarray() if issparse(X) else X, dtype=np.float64)
    return X[kept], y[kept], weights[kept]


@dataclass
class Tally:
    """How many rows were counted, of which classes, and which.

    Parameters
    ----------
    rows : int
    classes : Counter
        Rows of each class.
    different : dict
        Digests of some different rows of each class.
    digests : list of bytes
        Of all rows, many in each.
    """

    rows: int = 0
    classes: Counter[str] = field(default_factory=Counter)
    different: dict[str, set[bytes]] = field(default_factory=lambda: defaultdict(set))
    digests: list[bytes] = field(default_factory=list)

    def add(self, rows: RowDigests) -> None:
        """Count the rows of a batch."""
        self.rows += len(rows.places)
        self.classes.update(rows.classes)
        for label, some in rows.different.items():
            self.different[label] |= some
        self.digests.append(b"".join(rows.digests))

    def are_enough(self) -> bool:
        """Whether so many different rows of each class can be forgotten without being revealed."""
        if any(self.digests):
            return min(map(len, filter(None, self.different.values())), default=0) >= SAFE_ROWS
        return min(filter(None, self.classes.values()), default=self.rows) >= SAFE_ROWS

    def in_order(self) -> bytes:
        """The digests of all rows, whatever order they came in."""
        table = np.frombuffer(b"".join(self.digests), dtype="<u8").reshape(-1, 2)
        order = np.argsort(table[:, 0])
        if (np.diff(table[order, 0]) == 0).any():  # equal rows, at most
            order = np.lexsort((table[:, 1], table[:, 0]))
        return bytes(table[order].tobytes())
