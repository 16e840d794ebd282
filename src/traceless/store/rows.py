"""Rows as the store knows them: keyed digests, and a checksum over many.

    digest(row)    = BLAKE2b-128, keyed, of (width, label | targets, values, weight)
    checksum(rows) = Σ digest(row)  mod 2^128

Values, targets and weights are float64, little-endian, with one zero. Labels carry their
type, so that 1, "1" and True differ. A row of weight 0 is no row. Without the key nobody
can tell whether a row is among the digests. Sums commute and can be undone, so the checksum is
kept up to date by what comes and goes. It shows that no digest was lost or damaged; it does not
stop a forger, who can raise one digest and lower another. What proves rows is the root (`roots`).
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import column_or_1d

from traceless.arithmetic.integers import Floats
from traceless.exceptions import StoreError
from traceless.features.grid import dense_rows
from traceless.knowledge.responses import Classes
from traceless.knowledge.sample_weights import rounded_weights

SECRET_BYTES = 32
SIZE = 16  # bytes of a digest
_MODULUS = 1 << (8 * SIZE)
_PARTS = 2**14  # rows written out at a time

Batch = tuple[Any, Any, Any]  # X, y and sample_weight as they came


@dataclass(frozen=True)
class Prints:
    """The digests of some rows, those of weight 0 left out.

    Parameters
    ----------
    digests : list of bytes
    places : ndarray of int
        Where each row was among those that came.
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


class Printer:
    """Digests of rows under one secret; without a secret it only counts.

    Parameters
    ----------
    secret : bytes or None
    classifies : bool
        Whether rows have labels, not targets.
    text : callable, default=ascii
        How a label is written. Stores of version 1 have `repr`, whose answer for a letter depends
        on the Unicode tables of each Python.
    """

    def __init__(
        self, secret: bytes | None, classifies: bool, text: Callable[[Any], str] = ascii
    ) -> None:
        self._secret, self._classifies, self._text = secret, classifies, text

    @classmethod
    def of(cls, secret: bytes | None, store: Mapping[str, Any]) -> Self:
        """That of a store, known by what it said when it was made."""
        text = ascii if "version" in store else repr
        return cls(secret, store["task"] == "classification", text)

    def __call__(self, batch: Batch) -> Prints:
        """The digests of a batch of rows."""
        X, y, weight = batch
        X = check_array(
            X, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False, ensure_min_samples=0
        )
        check_consistent_length(X, y)
        n = X.shape[0]
        rounded_weights(weight, n)  # raises what is wrong with them
        weights = np.ones(n) if weight is None else np.broadcast_to(np.asarray(weight, float), n)
        places = np.flatnonzero(weights)
        if self._classifies:
            return self._of_classes(X, column_or_1d(y), weights, places)
        targets = np.asarray(y, dtype=np.float64).reshape(n, -1)
        beside = np.column_stack([targets, weights])
        start = self._start(X.shape[1], f"targets {targets.shape[1]}")
        digests = list(self._digests(X, beside, places, [start] * len(places)))
        return Prints(digests, places, {}, *X.shape)

    def request(self, *what: Any) -> str | None:
        """What a request is recognised by: a keyed hash; None without a secret."""
        if self._secret is None:
            return None
        text = " ".join(map(str, what))
        return str(self._hash(b"traceless asks 1", text.encode()).hexdigest())

    def agrees_with(self, other: Printer) -> bool:
        """Whether both have a secret, and give one row one digest."""
        ours, theirs = self._secret, other._secret
        same = ours is not None and theirs is not None and hmac.compare_digest(ours, theirs)
        return same and (self._classifies, self._text) == (other._classifies, other._text)

    def check_secret(self, said: str) -> None:
        """Raise if the secret is not the one that the origin of a store speaks of."""
        if self._secret is not None and self.request("secret") != said:
            raise StoreError(
                "The store is damaged: its secret is not the one it was made with. Take that from "
                "a backup."
            )

    def _of_classes(
        self, X: Any, y: NDArray[Any], weights: Floats, places: NDArray[np.intp]
    ) -> Prints:
        classes = Classes(y[places], None)
        starts: list[Any] = [None] * len(places)
        for label, members in zip(classes.names, classes.members(), strict=True):
            start = self._start(X.shape[1], f"{type(label).__name__} {self._text(label)}")
            for i in members.tolist():
                starts[i] = start
        digests = list(self._digests(X, weights[:, None], places, starts))
        counts = dict(zip(map(text_of, classes.names), classes.counts, strict=True))
        return Prints(digests, places, counts, *X.shape)

    def _start(self, width: int, label: str) -> Any:
        """The hash of what many rows have in common."""
        return self._hash(b"traceless row 01", f"{width} {label}\0".encode())

    def _hash(self, person: bytes, text: bytes) -> Any:
        return hashlib.blake2b(text, digest_size=SIZE, key=self._secret or b"", person=person)

    def _digests(
        self, X: Any, beside: Floats, places: NDArray[np.intp], starts: list[Any]
    ) -> Iterator[bytes]:
        if self._secret is None:
            return
        for first in range(0, len(places), _PARTS):
            at = places[first : first + _PARTS]
            table = np.column_stack([dense_rows(X, at), beside[at]]) + 0.0  # one zero
            table = np.ascontiguousarray(table, dtype="<f8")
            text, size = table.tobytes(), table.shape[1] * 8
            for i, start in enumerate(starts[first : first + _PARTS]):
                h = start.copy()
                h.update(text[i * size : (i + 1) * size])
                yield h.digest()


def text_of(label: Any) -> str:
    """A label as a name in JSON."""
    return label.decode(errors="backslashreplace") if isinstance(label, bytes) else str(label)


def digest_sum(digests: Iterable[bytes]) -> int:
    """Σ of digests mod 2^128, all of them at once in four lanes."""
    lanes = np.frombuffer(b"".join(digests), dtype="<u4").reshape(-1, SIZE // 4)
    sums: list[int] = lanes.sum(axis=0, dtype=np.uint64).tolist()
    return sum(s << (32 * k) for k, s in enumerate(sums)) % _MODULUS


def checksum_text(checksum: int) -> str:
    """A checksum in hexadecimal."""
    return f"{checksum % _MODULUS:032x}"


def new_secret() -> bytes:
    """Random bytes to key digests with."""
    return os.urandom(SECRET_BYTES)


def checked_secret(secret: Any) -> bytes:
    """A secret that was given; raises if it is none."""
    if not isinstance(secret, bytes) or len(secret) != SECRET_BYTES:
        got = f"{len(secret)} bytes" if isinstance(secret, bytes) else type(secret).__name__
        raise ValueError(
            f"secret must be {SECRET_BYTES} random bytes, such as os.urandom({SECRET_BYTES}), got "
            f"{got}."
        )
    return secret


def batches_of(X: Any, y: Any, sample_weight: Any) -> Iterator[Batch]:
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


class Tally:
    """What some rows come to: how many, of which classes, and the checksum over them."""

    def __init__(self) -> None:
        self.rows, self.checksum = 0, 0
        self.classes: Counter[str] = Counter()

    def take(self, prints: Prints) -> None:
        """Count further rows."""
        self.rows += len(prints.places)
        self.checksum += digest_sum(prints.digests)
        self.classes.update(prints.classes)

    def take_all(self, printer: Printer, batches: Iterable[Batch]) -> Self:
        """Count the rows of batches."""
        for batch in batches:
            self.take(printer(batch))
        return self

    def __str__(self) -> str:
        return f"{self.rows} {checksum_text(self.checksum)}"
