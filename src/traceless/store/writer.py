"""All changes of a store: those of rows, of slices that were merged, and of the store itself."""

from __future__ import annotations

from collections import Counter
from typing import Any

from traceless.exceptions import AlreadyLearnedError, NotLearnedError, StoreError
from traceless.knowledge.sums import Knowledge
from traceless.store.entries import UNDO, check_text
from traceless.store.keys import SigningKey
from traceless.store.merge_source import MergeSource, open_merge_source
from traceless.store.receipts import Receipt
from traceless.store.row_changes import RowChanges
from traceless.store.row_table import Record


class Writer(RowChanges):
    """One change of a store, of any kind."""

    def merge(self, other: Any, name: str | None, again: bool) -> Receipt:
        """Take in what another model has learned; knowledge of fewer than no rows takes it out."""
        if isinstance(other, Knowledge) and other.n_samples < 0:
            return self.take_out(-other, name)
        with open_merge_source(other, self.hasher, self.folder) as source:
            request = self.hasher.request(source.knowledge.digest())
            if self._known:
                return self._first_answer("merge", source.rows, request)
            names = [name for _, name, _ in source.counted]
            if not again and self._not_to_come_back(names):
                raise AlreadyLearnedError(
                    "It has rows of ids whose last row was forgotten here on request, or waits to "
                    "be. To learn them all the same use again=True (--again). Nothing was changed."
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
        with open_merge_source(other, self.hasher, self.folder) as source:
            request = self.hasher.request(source.knowledge.digest())
            if self._known:
                return self._first_answer("forget", source.rows, request)
            self._check_merged(source, request)
            self._merge(-source.knowledge, name, again=False)
            source.count_into(self.removed)
            each = [row for *row, n in source.counted for _ in range(n)]
            missing = self._take([digest for digest, _ in each], [name for _, name in each])[0]
            if missing:
                raise NotLearnedError(
                    f"{len(missing)} of the {source.rows} rows of the slice are not held here, or "
                    "wait in the queue. Nothing was changed."
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
            raise StoreError(
                f"The {what} of this store was destroyed before, or is not there. Nothing was "
                "changed."
            )
        if what != "suppression" and last.waiting:
            raise StoreError(
                "Requests wait in the queue, and could then never be met: flush them first. "
                "Nothing was changed."
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
            raise StoreError("This is the key that the store has already. Nothing was changed.")
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
                "undone. Nothing was changed."
            )
        if not hasattr(model, "merge"):
            raise TypeError(
                f"A {type(model).__name__} has no merge: it keeps its rows. Learn, or forget, "
                "the rows themselves. Nothing was changed."
            )
        model.merge(other, name=name, again=again)

    def _check_merged(self, source: MergeSource, request: str | None) -> None:
        """Raise unless the rows without digests came in this slice."""
        came = Counter(entry.kind for entry in self.ledger.answering(str(request)))
        merged = self.secret is None or came["merge"] > came["forget"]
        if source.unknown and (source.unknown > self.unknown or not merged):
            raise NotLearnedError(
                f"This slice of {source.rows} rows was not merged here as it is now, or is taken "
                "out already. Slices go as they came; forget other rows themselves, or give a "
                "store with the same secret that holds them. Nothing was changed."
            )
