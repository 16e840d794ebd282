"""Move a store to a version of a table: what is new is learned, and what is gone is forgotten.

    new   =  added - removed        each a multiset of rows, by digest and keyed hash of the id
    gone  =  removed - added

Of a version, `added` and `removed` are what it changed, so nothing else of the table is read. Of
a snapshot, `added` is the whole table and `removed` all that the store holds: then the values of
gone rows are not known, and need not be, since the new model is made of the table in the same pass.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from traceless.estimators import loading
from traceless.exceptions import AlreadyLearnedError, StoreWarning
from traceless.sources.followed import Batches, read_once
from traceless.sources.followed import FollowedTable as Table
from traceless.store.chain import require
from traceless.store.entries import FOLLOW, Entry, check_text
from traceless.store.people import SIZE
from traceless.store.receipts import Receipt
from traceless.store.row_changes import RowChanges
from traceless.store.row_digests import RowBatch, RowDigests, row_batches

Watch = Callable[[Iterator[RowBatch]], Iterator[RowBatch]]
Keys = NDArray[np.bytes_]  # a digest and a name each
_CHUNK = 2**14  # rows
_KEY = f"S{2 * SIZE}"
_WHOLE = (
    "snapshot=True (--snapshot) moves the store to what the table holds now. Nothing was changed."
)


class Multiset:
    """Rows by digest and name, as often as they are there.

    Parameters
    ----------
    keys : iterable of Keys
        Of all rows, many in each.
    """

    def __init__(self, keys: Iterable[Keys]) -> None:
        last = np.array([b"\xff" * 2 * SIZE])  # so that each key has a place
        self.keys, self.counts = np.unique(np.concatenate([last, *keys]), return_counts=True)
        self.counts[-1] -= 1

    def take(self, keys: Keys) -> NDArray[np.bool_]:
        """Which of these rows are there, each as often as it is; they are taken out."""
        each, inverse, wanted = np.unique(keys, return_inverse=True, return_counts=True)
        place = np.searchsorted(self.keys, each)
        taken = np.minimum(wanted, self.counts[place]) * (self.keys[place] == each)
        np.subtract.at(self.counts, place, taken)
        order, starts = np.argsort(inverse, kind="stable"), np.cumsum(wanted) - wanted
        rank = np.empty(len(keys), int)  # of each row, among those that equal it
        rank[order] = np.arange(len(keys)) - np.repeat(starts, wanted)
        return np.asarray(rank < taken[inverse])

    def left(self) -> tuple[list[bytes], list[bytes]]:
        """Digests and names of what was not taken."""
        keys = np.repeat(self.keys, self.counts).tolist()
        whole = [key.ljust(2 * SIZE, b"\0") for key in keys]  # NumPy drops zeros at the end
        names = [key[SIZE:] if any(key[SIZE:]) else b"" for key in whole]
        return [key[:SIZE] for key in whole], names


class FollowingChanges(RowChanges):
    """Changes that follow a table."""

    def follow(
        self, table: Table, snapshot: bool, batch: bool, again: bool, drop: bool, watch: Watch
    ) -> Receipt | None:
        """Move to the next version, or to the latest; None if there is nothing to do.

        Parameters
        ----------
        table : FollowedTable
        snapshot : bool
            Read the whole table, whatever the store has followed before.
        batch : bool
            Move to the latest version at once.
        again, drop : bool
            Learn also rows of ids on the suppression list, or leave these out.
        watch : callable
            Called with the batches that are learned.
        """
        entry, version = self.ledger.followed(), table.latest
        last = None if entry is None else entry.followed
        self._check(table, entry, snapshot)
        removed: Batches | None = None
        if last is None or snapshot:
            added = table.rows(version)
        elif last.version == version:
            return None
        else:
            version = version if batch else last.version + 1
            removed, new = table.changes(last.version, version)
            added = new()
        self._move(watch(added), removed, again, drop)
        name, keys = table.name(version), (f"{FOLLOW}{table.id}:{version}",)
        check_text(name, "The name of the table")
        if self.added.rows or self.removed.rows:
            return self.finish("follow", self._request(), subject=name, keys=keys)
        if entry is not None and entry.subject == name:
            return None
        self.note("follow", subject=name, keys=keys)
        return self.commit()

    def _check(self, table: Table, entry: Entry | None, snapshot: bool) -> None:
        """Raise unless the store can follow this table, and it continues the version before."""
        now, last = self.before, None if entry is None else entry.followed
        there = self.secret is not None and now.generation is not None
        require(there, "The secret or the model of this store was destroyed: it cannot follow.")
        said = f"{now.waiting} rows wait in the queue: flush it first. Nothing was changed."
        require(not now.waiting, said)
        if entry is None or last is None:
            return
        said = f"This store follows {entry.subject}, and {table.where} is another table: make a"
        require(table.id == last.id, f"{said} store of its own for it. Nothing was changed.")
        if snapshot:
            return
        where, version = table.where, last.version
        said = f"{where} is at version {table.latest}, and this store has followed version"
        require(table.latest >= version, f"{said} {version}: the table was set back. {_WHOLE}")
        said = f"Version {version} of {where} is not the one that this store has followed"
        same = table.commit(version) in (None, last.commit)
        require(same, f"{said}: its history was rewritten. {_WHOLE}")
        said = f"The model was changed since entry {entry.sequence}, which followed the table, and"
        same = (now.digest_after, now.held) == (entry.digest_after, entry.held)
        require(same, f"{said} not by following it. {_WHOLE}")

    # --- the move -------------------------------------------------------------------------

    def _move(
        self, added: Iterable[RowBatch], removed: Batches | None, again: bool, drop: bool
    ) -> None:
        """Learn what is new and forget what is gone; without `removed`, of all rows held."""
        whole = removed is None
        old = read_once(lambda: self._hashed(removed() if removed else ()))
        gone = Multiset(self._held() if whole else (keys(rows) for _, rows in old()))
        if whole:
            self.model = loading.from_description(self.origin["model"])
        back, totals = Counter[bytes](), Counter[str]()
        for batch, found in self._hashed(added):
            fresh = ~gone.take(keys(found))
            if not again and (listed := self._listed(found, fresh)).any():
                back.update(name for name, one in zip(found.names, listed, strict=True) if one)
                if listed.all():
                    continue
                batch, found = self._chosen(batch, found, ~listed)
                fresh = fresh[~listed]
            totals.update(found.classes)
            new = batch
            if fresh.any():
                new, learned = self._chosen(batch, found, fresh)
                self._add(learned)
            if found.digests if whole else fresh.any():
                X, y, weight = (batch if whole else new)[:3]
                self.model.partial_fit(X, y, sample_weight=weight)
        self._tell(back, drop)
        if whole:
            self._forget_unseen(gone, totals)
        elif gone.counts.any():
            for batch, _ in self._taken(self._gone(old(), gone)):
                self.model.forget(*batch[:3])

    def _held(self) -> Iterator[Keys]:
        rows = self.rows.named()
        while some := list(islice(rows, _CHUNK)):
            yield keys_of((digest, name) for digest, name, n in some for _ in range(n))

    def _hashed(self, batches: Iterable[RowBatch]) -> Iterator[tuple[RowBatch, RowDigests]]:
        for batch in row_batches(batches, None, None):
            yield batch, self.hasher(batch)

    def _chosen(
        self, batch: RowBatch, rows: RowDigests, these: NDArray[np.bool_]
    ) -> tuple[RowBatch, RowDigests]:
        """Some rows of a batch, of those with positive weight."""
        if these.all():
            return batch, rows
        places = rows.places[these]
        X, y, weight, ids = (*batch, None)[:4]
        weight = None if weight is None else weight[places]
        some = X[places], y[places], weight, ids and [ids[k] for k in places.tolist()]
        return some, self.hasher(some)

    def _listed(self, rows: RowDigests, among: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which of some rows are of ids that are not to be learned again."""
        names = [name for name, one in zip(rows.names, among, strict=True) if one]
        back = self._not_to_come_back(names)
        listed: NDArray[np.bool_] = among & np.array([name in back for name in rows.names], bool)
        return listed

    def _tell(self, back: Counter[bytes], drop: bool) -> None:
        """Say how many rows of forgotten people the table has; raises unless they are left out."""
        if not back:
            return
        said = f"{back.total()} rows are of {len(back)} ids whose last row was forgotten on request"
        if not drop:
            raise AlreadyLearnedError(
                f"{said}. Learn them all the same with again=True (--again), or the table without "
                "them with drop_suppressed=True (--drop-suppressed). Nothing was changed."
            )
        warnings.warn(f"{said}: they were left out.", StoreWarning, stacklevel=5)

    def _gone(
        self, batches: Iterable[tuple[RowBatch, RowDigests]], gone: Multiset
    ) -> Iterator[RowBatch]:
        """Of rows that were removed, those that were not added again, and are held."""
        for batch, rows in batches:
            here = gone.take(keys(rows))
            here &= ~self._listed(rows, here)
            if here.any():
                yield self._chosen(batch, rows, here)[0]

    def _forget_unseen(self, gone: Multiset, totals: Counter[str]) -> None:
        """Forget rows that are held and were not in the table, of which only digests are known."""
        digests, names = gone.left()
        self._take(digests, names)
        tally, unknown, self.unknown = self.removed, self.unknown, 0
        tally.rows = len(digests) + unknown
        tally.digests.append(b"".join(digests))
        tally.classes = Counter(self.before.totals) + self.added.classes - totals
        different = sorted({*digests})
        twice = tally.rows - len(different)  # in whichever class they are
        for label, n in (tally.classes or {"": tally.rows}).items():
            tally.different[label] = {*different[: max(n - twice, 1)]}


def keys(rows: RowDigests) -> Keys:
    """Digest and name of each row."""
    return keys_of(zip(rows.digests, rows.names, strict=True))


def keys_of(rows: Iterable[tuple[bytes, bytes]]) -> Keys:
    """Digest and name of each row as one."""
    return np.frombuffer(b"".join([d + name.ljust(SIZE, b"\0") for d, name in rows]), _KEY)
