"""Merge what another model has learned, or take out such a slice again."""

from __future__ import annotations

from typing import Any

from traceless.exceptions import AlreadyLearnedError, NotLearnedError
from traceless.knowledge.sums import Knowledge
from traceless.store.entries import UNDO, check_text
from traceless.store.merge_source import MergeSource, open_merge_source
from traceless.store.receipts import Receipt
from traceless.store.row_changes import RowChanges
from traceless.store.row_table import Record, lanes_of


class SliceChanges(RowChanges):
    """Changes of slices."""

    def merge(self, other: Any, name: str | None, again: bool) -> Receipt:
        """Take in what another model has learned; knowledge of fewer than no rows takes it out."""
        if isinstance(other, Knowledge) and other.n_samples < 0:
            return self.take_out(-other, name)
        with open_merge_source(other, self.hasher, self.folder) as source:
            request = self.hasher.request(source.knowledge.digest())
            if self._known:
                return self._first_answer("merge", source.rows, request)
            what = source.knowledge if source.estimator is None else source.estimator
            if not again and self._not_to_come_back([name for _, name, _ in source.counted]):
                raise AlreadyLearnedError(
                    "It has rows of ids whose last row was forgotten here on request, or waits to "
                    "be. To learn them all the same use again=True (--again). Nothing was changed."
                )
            self._merge(what, name, again)
            counts = [n for *_, n in source.counted]
            ids = self._ids([name for _, name, _ in source.counted])
            rows = zip(source.counted, ids, strict=True)
            records = [Record(row[0], one, self._number) for row, one in rows]
            self.ledger.rows.put(records, counts)
            self.records_sum += lanes_of(records, counts)
            for one, n in zip(ids, counts, strict=True):
                self.people[one] += n
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
        came = [entry.kind for entry in self.ledger.answering(str(request))]
        merged = self.secret is None or came.count("merge") > came.count("forget")
        if source.unknown and (source.unknown > self.unknown or not merged):
            raise NotLearnedError(
                f"This slice of {source.rows} rows was not merged here as it is now, or is taken "
                "out already. Slices go as they came; forget other rows themselves, or give a "
                "store with the same secret that holds them. Nothing was changed."
            )
