"""Requests to forget that wait for others, so that no row is forgotten alone.

The arrival of a request is an entry of the ledger, with a receipt. Its rows are reserved, and kept
until they are forgotten; then they are overwritten with zeros.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from sqlite3 import Connection
from typing import TYPE_CHECKING, Any

from traceless.exceptions import StoreError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceless.store.entries import Entry
    from traceless.store.people import HeldId
    from traceless.store.receipts import Receipt
    from traceless.store.row_digests import RowBatch, RowHasher

SAFE_ROWS = 20


@dataclass(frozen=True)
class Queued:
    """A request that waits.

    Attributes
    ----------
    time : str
        When it came, UTC.
    key : str or None
        Its idempotency key.
    rows : int
        How many rows it is about.
    classes : dict
        How many of each class; empty for regressions.
    sequence : int
        Number of the entry of its arrival.
    receipt : Receipt or None
        Of that entry: evidence that the request arrived.
    replayed : bool
        Whether the same request was in the queue already.
    """

    time: str
    key: str | None
    rows: int
    classes: Mapping[str, int]
    sequence: int
    receipt: Receipt | None = field(default=None, compare=False)
    replayed: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Queue:
    """The rows of the requests that wait, in a transaction of the ledger."""

    _sql: Connection

    def put(self, sequence: int, content: bytes) -> None:
        """Add the request that came with an entry, whose rows are in these bytes."""
        self._sql.execute("INSERT INTO queue VALUES (?, ?)", (sequence, content))

    def numbers(self) -> list[int]:
        """The entries of all requests, the oldest first."""
        return [n for (n,) in self._sql.execute("SELECT sequence FROM queue ORDER BY sequence")]

    def checked(self, entry: Entry, hasher: RowHasher) -> list[RowBatch]:
        """The rows of a request; raises unless they are those that its entry recorded."""
        query = "SELECT content FROM queue WHERE sequence = ?"
        (content,) = self._sql.execute(query, (entry.sequence,)).fetchone() or (None,)
        content = content if type(content) is bytes else b""
        if entry.kind != "queue" or hasher.queued(content) != entry.queued:
            raise StoreError(
                f"The ledger is damaged: the request that waits since entry {entry.sequence} is "
                "not the one that came. Restore the store from a backup. Nothing was changed."
            )
        return list(unpacked(content))

    def clear(self, which: int | None = None) -> None:
        """Delete all requests, or the one with this number."""
        self._sql.execute("DELETE FROM queue WHERE ?1 IS NULL OR sequence = ?1", (which,))


def plain_arrays(batch: RowBatch) -> RowBatch:
    """Rows with positive weight as arrays that NumPy can save; ids must be those of the table."""
    import numpy as np
    from scipy.sparse import issparse

    X, y, weight, *ids = batch
    X = X.toarray() if issparse(X) else X
    y = np.asarray(y)
    if y.dtype == object:
        y = np.array(y.tolist())
    weights = np.ones(len(y)) if weight is None else np.broadcast_to(weight, len(y))
    kept = np.asarray(weights, dtype=np.float64) > 0
    rows = np.asarray(X, dtype=np.float64)[kept], y[kept], np.asarray(weights)[kept]
    return (*rows, _ids_as_array(ids[0])[kept]) if ids and ids[0] is not None else rows


def packed(batches: list[RowBatch]) -> bytes:
    """The rows of a request, made by `plain_arrays`, as bytes."""
    import numpy as np

    file, each = io.BytesIO(), enumerate(batches)
    arrays = {f"{i}{k}": a for i, b in each for k, a in zip("Xywi", b, strict=False)}
    np.savez(file, **arrays, allow_pickle=False)
    return file.getvalue()


def unpacked(content: Any) -> Iterator[RowBatch]:
    """The inverse of `packed`; raises `StoreError` for other bytes."""
    import zipfile

    import numpy as np

    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            if any(info.compress_type != zipfile.ZIP_STORED for info in arrays.zip.infolist()):
                raise ValueError("they are compressed")
            for i in range(sum(name.endswith("X") for name in arrays.files)):
                rows = arrays[f"{i}X"], arrays[f"{i}y"], arrays[f"{i}w"]
                named = f"{i}i" in arrays.files
                yield (*rows, _ids_from(arrays[f"{i}i"])) if named else rows
    except (ValueError, TypeError, LookupError, OSError, MemoryError, zipfile.BadZipFile) as error:
        raise StoreError(f"The ledger is damaged: rows that wait ({error}).") from None


def _ids_as_array(ids: list[bytes]) -> NDArray[Any]:
    """Ids as an array; zeros where there is none."""
    import numpy as np

    from traceless.store.people import SIZE

    text = b"".join(one or bytes(SIZE) for one in ids)
    return np.frombuffer(text, dtype=np.uint8).reshape(-1, SIZE)


def _ids_from(array: NDArray[Any]) -> list[HeldId]:
    """Inverse of `_ids_as_array`."""
    from traceless.store.people import HeldId

    return [HeldId(row.tobytes() if row.any() else b"") for row in array]
