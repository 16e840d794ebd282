"""Learn, forget and correct rows; a request to forget names rows that the store holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from traceless.exceptions import AlreadyLearnedError, NotLearnedError, StoreError
from traceless.store.change import Change
from traceless.store.entries import UNDO, Entry
from traceless.store.queue import Queued
from traceless.store.receipts import Receipt
from traceless.store.row_counts import Taken
from traceless.store.row_digests import Given, RowBatch, RowDigests, Tally, row_batches

Take = Callable[[list[bytes], list[bytes]], Taken]  # digests and ids
_SHOWN = 5  # positions of rows that an error names


class RowChanges(Change):
    """Changes of single rows."""

    def learn(self, rows: Given, once: bool, again: bool) -> Receipt:
        """Learn rows; `once` refuses those of an earlier change, `again` allows the forgotten."""
        batches = row_batches(*rows, self.origin)
        if self._known:
            return self._rows_again("learn", added=batches)
        start, back = 0, dict[int, Entry]()
        for batch in batches:
            found = self.hasher(batch)
            gone = {} if again else self.ledger.forgotten(found.ids)
            named = zip(found.places.tolist(), found.ids, strict=False)
            back |= {start + place: gone[one] for place, one in named if one in gone}
            start += found.length
            self._add(found, found.ids)
            if len(found.places) and not back:
                X, y, weight = batch[:3]
                self.model.partial_fit(X, y, sample_weight=weight)
        request = self._rows_request()
        if once and request is not None:
            self._refuse_repeated(request)
        if back:
            raise AlreadyLearnedError(_come_back(back))
        return self.finish("learn", request)

    def _refuse_repeated(self, request: str) -> None:
        """Raise if an earlier change learned exactly these rows, and was not undone."""
        undoing, undone = str(self.hasher.request(self.added, Tally())), set[int | None]()
        for entry in self.ledger.answering(request, undoing):
            undone.add(entry.undoes)
            learned = (entry.kind, entry.request) == ("learn", request)
            if learned and entry.sequence not in undone:
                raise AlreadyLearnedError(
                    f"An earlier change ({_named(entry)}) learned exactly these {entry.rows} rows. "
                    "To learn them twice, use once=False (--again). Nothing was changed."
                )

    def forget(self, rows: Given, whole: bool) -> Receipt | Queued:
        """Forget rows."""
        batches = row_batches(*rows, self.origin)
        if self._known:
            return self._forgotten_before(batches)
        self._forget(batches, self.ledger.rows.remove, whole)
        return self.finish("forget", self._rows_request())

    def undo(self, rows: Given) -> Receipt | Queued:
        """Forget what the last change that learned has learned, if it is these rows."""
        kept = list(row_batches(*rows, self.origin))
        if self._known:
            return self._forgotten_before(kept)
        tally, undone = self.hasher.tally(kept), set[int | None]()
        for last in self.ledger.backwards():
            if last.kind == "learn":
                break
            undone.add(last.undoes)
        else:
            raise StoreError(
                "This store has learned nothing that could be undone. Nothing was changed."
            )
        said = _named(last)
        if last.sequence in undone:
            raise StoreError(f"The last learning ({said}) was undone before. Nothing was changed.")
        if self.secret and last.request != self.hasher.request(Tally(), tally):
            raise NotLearnedError(
                f"The last learning ({said}) was one of {last.rows} rows, and these are not they. "
                "Give the rows, and the ids, as they were learned. Nothing was changed."
            )
        self._forget(kept, self.ledger.rows.remove)
        return self.finish("forget", self._rows_request(), subject=f"{UNDO}{last.sequence}")

    def correct(self, before: RowBatch, after: RowBatch, keep_ids: bool, whole: bool) -> Receipt:
        """Put rows in the place of others, under their ids or under ids of their own."""
        if self._known:
            return self._rows_again("relabel", [before], [after])
        for held in self._taken([before], self.ledger.rows.remove, whole):
            rows = self.hasher(after)
            keep = keep_ids and len(held) > 3
            ids = [held[3][i] for i in rows.places.tolist()] if keep else rows.ids
            self._add(rows, ids)
            self.model.update(add=after[:3], forget=held[:3])
        return self.finish("relabel", self._rows_request())

    def _rows_again(
        self, kind: str, removed: Iterable[RowBatch] = (), added: Iterable[RowBatch] = ()
    ) -> Receipt:
        """The receipt of a request with these rows that came with this key before."""
        old, new = self.hasher.tally(removed), self.hasher.tally(added)
        return self._first_answer(kind, max(old.rows, new.rows), self.hasher.request(old, new))

    def _forgotten_before(self, batches: Iterable[RowBatch]) -> Receipt | Queued:
        """The answer to a request to forget these rows that came before, and may still wait."""
        answer = self._rows_again("forget", removed=batches)
        if answer.kind != "queue":
            return answer
        pending = self.ledger.pending(replayed=True)
        return next(queued for queued in pending if queued.sequence == answer.sequence)

    def _add(self, rows: RowDigests, ids: list[bytes]) -> None:
        """Count rows as learned, under these ids."""
        self.ledger.rows.add(rows.digests, ids)
        self.added.add(rows, ids)

    def _forget(self, batches: Iterable[RowBatch], take: Take, whole: bool = False) -> None:
        for held in self._taken(batches, take, whole):
            self.model.forget(*held[:3])

    def _rows_request(self, asked: Tally | None = None) -> str | None:
        """The hash of a request for these rows; raises if there are none."""
        removed, added = asked or self.removed, self.added
        if not (removed.rows or added.rows):
            raise ValueError("There are no rows, or all have weight zero. Nothing was changed.")
        return self.hasher.request(removed, added)

    def _taken(
        self,
        batches: Iterable[RowBatch],
        take: Take,
        whole: bool = False,
        into: Tally | None = None,
    ) -> Iterator[RowBatch]:
        """Take the digests of batches, and yield each batch; raises if a row is not held.

        They are counted as removed, or into the tally given.
        """
        if self.secret is None:
            raise StoreError(
                "The secret of this store was destroyed, so it cannot tell which rows it holds: "
                "only whole slices can be forgotten (a Knowledge, or the file of a model), and not "
                "rows. Nothing was changed."
            )
        tally = self.removed if into is None else into
        start, reserved, missing = 0, 0, []
        for batch in batches:
            rows = self.hasher(batch)
            ours = getattr(self.model, "n_features_in_", rows.width)
            if rows.width != ours:
                raise ValueError(
                    f"X has {rows.width} features, but the model of this store has {ours}. Nothing "
                    "was changed."
                )
            lost, held_as = take(rows.digests, rows.ids)
            if lost:
                missing += [start + int(rows.places[i]) for i in lost]
                reserved += self.ledger.rows.count_reserved(rows.digests[i] for i in lost)
            if rows.digests and not missing:
                yield (*batch[:3], rows.spread(held_as)) if any(held_as) else batch[:3]
            tally.add(rows, held_as)
            start += rows.length
        if missing:
            raise NotLearnedError(self._not_held(missing, start, reserved))
        if whole:
            self._check_whole(tally.ids)

    def _check_whole(self, ids: Counter[bytes]) -> None:
        """Raise if rows of these ids are left that nobody has asked to forget."""
        if ids[b""] or not ids:
            raise ValueError(
                "whole=True (--whole) asks that all rows of the ids given go, and some rows have "
                "no id. Give one for each row. Nothing was changed."
            )
        before = {one: self.ledger.ids.held(one) for one in ids}
        left = [held - waiting - ids[one] for one, (held, waiting) in before.items()]
        if any(left):
            raise NotLearnedError(
                f"{sum(left)} more rows of {sum(map(bool, left))} of these {len(left)} ids are "
                "held here, and are not among those given. Give all rows of each id, or leave out "
                "whole=True (--whole). Nothing was changed."
            )

    def _not_held(self, missing: list[int], n: int, reserved: int) -> str:
        said = (
            f"{len(missing)} of {n} rows are not held here (with this label and weight, as often): "
            f"{_places(missing)}. They were never learned, or are forgotten already."
        )
        if reserved:
            said += f" {reserved} of them wait in the queue already."
        unknown = self.before.unknown
        if unknown:
            said += (
                f" {unknown} rows came by merge, without their digests, and can only "
                "go as the slice they came in: forget the Knowledge, or the file, that was merged."
            )
        return f"{said} Nothing was changed."


def _come_back(back: dict[int, Entry]) -> str:
    """The refusal of rows, by their number, whose ids were forgotten with these entries."""
    entries = {entry.sequence: _named(entry) for entry in back.values()}
    return (
        f"{len(back)} rows are of ids whose last row was forgotten on request, or waits to be "
        f"({_some([entries[number] for number in sorted(entries)])}): {_places([*back])}. Leave "
        "them out, or learn them all the same with again=True (--again). Nothing was changed."
    )


def _named(entry: Entry) -> str:
    return f"entry {entry.sequence}, {entry.time}"


def _places(numbers: list[int]) -> str:
    return f"number {_some(numbers)} (counted from 0)"


def _some(items: list[Any]) -> str:
    """The first of several things."""
    return ", ".join(map(str, items[:_SHOWN])) + (", …" if len(items) > _SHOWN else "")
