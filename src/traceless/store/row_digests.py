"""Row digests: rows are recognised by keyed hashes, and are not kept.

    digest(row)    = BLAKE2b-128, keyed, of (width, label | targets, values, weight)
    checksum(rows) = Σ digest(row)  mod 2^128

Values, targets and weights are float64, little-endian, with one zero. Labels carry their type, so
that 1, "1" and True differ. A row of weight 0 is no row. Without the key nobody can tell whether a
row is among the digests. Sums commute and can be undone, so each change adds to the checksum and
subtracts from it. The checksum shows that no digest was lost or damaged. It does not stop a forger,
who can raise one digest and lower another; the root (`entries.ModelState`) proves which rows a
model holds.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import column_or_1d

from traceless.exceptions import StoreError
from traceless.features.grid import dense_rows
from traceless.knowledge.responses import Classes
from traceless.knowledge.sample_weights import rounded_weights

SECRET_BYTES = 32
SIZE = 16  # bytes of a digest
_MODULUS = 1 << (8 * SIZE)
_CHUNK = 2**14  # rows made dense at a time

RowBatch = tuple[Any, Any, Any]  # X, y and sample_weight as the caller gave them


@dataclass(frozen=True)
class RowDigests:
    """The digests of a batch of rows; rows of weight 0 have none.

    Parameters
    ----------
    digests : list of bytes
        Empty if there is no secret.
    places : ndarray of int
        Positions, in the batch, of the rows with positive weight.
    classes : dict
        Rows of each class, by the text of its label; empty for regressions.
    length, width : int
        Rows, with those of weight 0, and columns.
    """

    digests: list[bytes]
    places: NDArray[np.intp]
    classes: dict[str, int]
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
    label_text : callable, default=ascii
        How a label is written. Stores of version 1 have `repr`, which escapes other letters with
        each version of Python.
    """

    secret: bytes | None = field(repr=False)
    classifies: bool
    label_text: Callable[[Any], str] = ascii

    @classmethod
    def of(cls, secret: bytes | None, origin: Mapping[str, Any]) -> Self:
        """The hasher of a store with this description."""
        label_text = ascii if "version" in origin else repr
        return cls(secret, origin["task"] == "classification", label_text)

    def __call__(self, batch: RowBatch) -> RowDigests:
        """Check a batch of rows and compute its digests."""
        X, y, weight = batch
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
                start = self._start(width, f"{type(label).__name__} {self.label_text(label)}")
                for i in members.tolist():
                    starts[i] = start
        else:
            targets = np.asarray(y, dtype=np.float64).reshape(n, -1)
            columns = np.column_stack([targets, weights])
            starts = [self._start(width, f"targets {targets.shape[1]}")] * len(places)
        digests = [] if self.secret is None else _digests(X, columns, places, starts)
        return RowDigests(digests, places, counts, n, width)

    def request(self, *what: Any) -> str | None:
        """Keyed hash by which a request is recognised; None without a secret."""
        if self.secret is None:
            return None
        return str(self._hash(" ".join(map(str, what)), person=b"traceless asks 1").hexdigest())

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

    def _hash(self, text: str, person: bytes) -> Any:
        key = self.secret or b""
        return hashlib.blake2b(text.encode(), digest_size=SIZE, key=key, person=person)


def _digests(X: Any, columns: Any, places: NDArray[np.intp], starts: list[Any]) -> list[bytes]:
    """Finish the hash of each row with its values; `starts` has the hash of what comes before."""
    digests = []
    for first in range(0, len(places), _CHUNK):
        at = places[first : first + _CHUNK]
        table = np.column_stack([dense_rows(X, at), columns[at]]) + 0.0  # -0.0 becomes 0.0
        text, size = table.astype("<f8").tobytes(), table.shape[1] * 8
        for i, start in enumerate(starts[first : first + _CHUNK]):
            h = start.copy()
            h.update(text[i * size : (i + 1) * size])
            digests.append(h.digest())
    return digests


def text_of(label: Any) -> str:
    """A label as a name in JSON."""
    return label.decode(errors="backslashreplace") if isinstance(label, bytes) else str(label)


def digest_sum(digests: Iterable[bytes]) -> int:
    """Σ of digests mod 2^128, all of them at once in four lanes of 32 bits."""
    lanes = np.frombuffer(b"".join(digests), dtype="<u4").reshape(-1, SIZE // 4)
    total = 0
    for k, lane_sum in enumerate(lanes.sum(axis=0, dtype=np.uint64).tolist()):
        total += lane_sum << (32 * k)
    return total % _MODULUS


def checksum_text(checksum: int) -> str:
    """A checksum in hexadecimal."""
    return f"{checksum % _MODULUS:032x}"


def row_batches(X: Any, y: Any, sample_weight: Any) -> Iterator[RowBatch]:
    """Rows that came as arrays, or as an iterable of batches, as batches (X, y, weight)."""
    if y is not None:
        yield X, y, sample_weight
        return
    if hasattr(X, "shape") or sample_weight is not None or not isinstance(X, Iterable):
        raise ValueError(
            "Rows need labels or targets: give X and y, or an iterable of batches (X, y) or "
            f"(X, y, sample_weight); got {type(X).__name__} and no y. Nothing was changed."
        )
    for batch in X:
        if not isinstance(batch, tuple | list) or len(batch) not in (2, 3):
            raise ValueError(
                "A batch must be (X, y) or (X, y, sample_weight), got "
                f"{type(batch).__name__}. Nothing was changed."
            )
        yield batch[0], batch[1], batch[2] if len(batch) == 3 else None


@dataclass
class Tally:
    """How many rows were counted, of which classes, and the sum of their digests."""

    rows: int = 0
    checksum: int = 0
    classes: Counter[str] = field(default_factory=Counter)

    def add(self, rows: RowDigests) -> None:
        """Count the rows of a batch."""
        self.rows += len(rows.places)
        self.checksum += digest_sum(rows.digests)
        self.classes.update(rows.classes)

    def __str__(self) -> str:
        return f"{self.rows} {checksum_text(self.checksum)}"
