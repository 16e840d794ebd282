"""All changes of a store: those of rows, of slices that were merged, and of the store itself."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sklearn.utils.validation import check_is_fitted

from traceless.estimators import loading
from traceless.exceptions import AlreadyLearnedError, NotLearnedError, StoreError
from traceless.knowledge.sums import Knowledge
from traceless.store.entries import UNDO, check_text
from traceless.store.folder import Folder
from traceless.store.following import FollowingChanges
from traceless.store.keys import SigningKey
from traceless.store.receipts import Receipt
from traceless.store.row_digests import RowHasher, Tally, text_of
from traceless.store.row_table import Record


@dataclass(frozen=True)
class Slice:
    """A slice to merge or to take out, and the digests of its rows where they are known."""

    model: Any  # Knowledge, or an estimator: it has column names, where there are any
    counted: Sequence[tuple[bytes, bytes, int]] = ()  # digest, name and count

    @property
    def knowledge(self) -> Knowledge:
        """What its rows add up to."""
        found: Knowledge = getattr(self.model, "knowledge_", self.model)
        return found

    @property
    def rows(self) -> int:
        """Number of rows."""
        return abs(self.knowledge.n_samples)

    @property
    def unknown(self) -> int:
        """How many of them have no digest."""
        return self.rows - sum(n for *_, n in self.counted)

    def count_into(self, tally: Tally) -> None:
        """Add the rows to the tally."""
        tally.rows = self.rows
        if self.knowledge.task == "classification":
            counts = self.knowledge.class_counts
            tally.classes.update({text_of(label): abs(n) for label, n in counts.items()})


class Writer(FollowingChanges):
    """One change of a store, of any kind."""

    @staticmethod
    def is_slice(given: Any) -> bool:
        """Whether this is something that was merged, rather than rows."""
        known = isinstance(given, str | os.PathLike | Knowledge)
        return known or hasattr(given, "partial_fit") or hasattr(given, "_folder")

    def merge(self, other: Any, name: str | None, again: bool) -> Receipt:
        """Take in what another model has learned; knowledge of fewer than no rows takes it out."""
        if isinstance(other, Knowledge) and other.n_samples < 0:
            return self.take_out(-other, name)
        with open_slice(other, self.hasher) as source:
            request = self.hasher.request(source.knowledge.digest())
            if self._known:
                return self._first_answer("merge", source.rows, request)
            names = [name for _, name, _ in source.counted]
            if not again and self._not_to_come_back(names):
                raise AlreadyLearnedError(
                    "It has rows of ids whose last row was forgotten here on request, or waits to "
                    "be. To learn them all the same use again=True (--again)."
                )
            self._merge(source.model, name, again)
            ids = {b"": b"", **self.rows.ids(names, new=True)}
            records = [Record(digest, ids[name], self.number) for digest, name, _ in source.counted]
            self.rows.put(records, [n for *_, n in source.counted])
            source.count_into(self.added)
            self.unknown += source.unknown
            return self.finish("merge", request, subject=name)

    def take_out(self, other: Any, name: str | None) -> Receipt:
        """Take out a slice that was merged."""
        with open_slice(other, self.hasher) as source:
            request = self.hasher.request(source.knowledge.digest())
            if self._known:
                return self._first_answer("forget", source.rows, request)
            self._check_merged(source, request)
            self._merge(-source.knowledge, name, again=False)
            source.count_into(self.removed)
            each = [row for *row, n in source.counted for _ in range(n)]
            taken = self._take([digest for digest, _ in each], [name for _, name in each])
            if None in taken:
                raise NotLearnedError(
                    f"{taken.count(None)} of the {source.rows} rows of the slice are not held "
                    "here, or wait in the queue."
                )
            self.unknown -= source.unknown
            return self.finish("forget", request, subject=name)

    def destroy(self, what: str) -> Receipt:
        """Destroy the secret or the model, and all rows and people; or the suppression list."""
        if self._known:
            return self._first_answer("destroy", 0, what)
        last = self.before
        there = {"model": last.generation, "secret": self.secret, "suppression": last.suppression}
        if there[what] is None:
            raise StoreError(f"The {what} of this store was destroyed before, or is not there.")
        if what != "suppression" and last.waiting:
            raise StoreError(
                "Requests wait in the queue, and could then never be met: flush them first."
            )
        facts: dict[str, Any] = {"suppression": None, "suppression_sha256": None}
        if what == "model":
            self.model, self.cached, self.unknown = None, None, 0
            self.removed.classes.update(last.totals)
            facts = {"removed": last.held}
        elif what == "secret":
            self.secret = None  # without it nobody can be found on the list
        if what != "suppression":
            self.rows.clear()
        return self.finish("destroy", what, subject=what, **facts)

    def new_key(self, key: SigningKey, keep: bool) -> Receipt:
        """Hand over to another key, which is kept in the folder or elsewhere."""
        if key.public == self.before.next_signer:
            raise StoreError("This is the key that the store has already.")
        if keep and not self.asked.dry_run:
            self.folder.write_private("key.new", key.pem())
        self.note("key", subject=key.public)
        receipt = self.commit(key)
        if not (keep or self.asked.dry_run):
            self.folder.remove(self.folder.path / "key")  # the old one, if it was there
        return receipt

    # --- inside ---------------------------------------------------------------------------

    def _merge(self, other: Any, name: str | None, again: bool) -> None:
        model = self.model
        check_text(name or "", "name")
        if name is not None and name.startswith(UNDO):
            raise ValueError(
                f"A slice cannot have the name {name!r}: its entries would say that a learning was "
                "undone."
            )
        if not hasattr(model, "merge"):
            raise TypeError(
                f"A {type(model).__name__} has no merge: it keeps its rows. Learn, or forget, "
                "the rows themselves."
            )
        model.merge(other, name=name, again=again)

    def _check_merged(self, source: Slice, request: str | None) -> None:
        """Raise unless the rows without digests came in this slice."""
        came = Counter(entry.kind for entry in self.ledger.answering(str(request)))
        merged = self.secret is None or came["merge"] > came["forget"]
        if source.unknown and (source.unknown > self.unknown or not merged):
            raise NotLearnedError(
                f"This slice of {source.rows} rows was not merged here as it is now, or is taken "
                "out already. Slices go as they came; forget other rows themselves, or give a "
                "store with the same secret that holds them."
            )


@contextmanager
def open_slice(other: Any, hasher: RowHasher) -> Iterator[Slice]:
    """Open a file, a store, an estimator or knowledge, to be merged or taken out.

    The rows of a store come with their digests if they have the same digests here.
    """
    folder = getattr(other, "_folder", None)
    if isinstance(other, str | os.PathLike):
        if os.path.isdir(other):
            folder = Folder(other)
            folder.check()
        else:
            other = loading.load(other)
    if folder is None:
        _check(other)
        yield Slice(other)
        return
    with folder.snapshot() as (ledger, entry, model):
        _check(model)
        same = hasher.secret is not None and hasher == folder.hasher(ledger)
        source = Slice(model, list(ledger.rows.named()) if same else ())
        if same and source.unknown != entry.unknown:
            raise StoreError(
                f"That store has no digests of {source.unknown} rows, and should of "
                f"{entry.unknown}: look at it with traceless verify."
            )
        yield source


def _check(other: Any) -> None:
    if isinstance(other, Knowledge):
        return
    if not hasattr(type(other), "knowledge_"):
        raise TypeError(
            f"A {type(other).__name__} has no knowledge that could be merged or taken out. Give a "
            "file, a store, an LSSVC, an LSSVR or a Knowledge."
        )
    check_is_fitted(other)
