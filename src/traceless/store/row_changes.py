"""Learn, forget and correct rows; a request to forget names rows that the store holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from traceless.exceptions import AlreadyLearnedError, NotLearnedError, StoreError
from traceless.store.change import Change
from traceless.store.entries import UNDO, Entry
from traceless.store.people import SIZE
from traceless.store.queue import Queued
from traceless.store.receipts import Receipt
from traceless.store.row_digests import Given, RowBatch, RowDigests, Tally, row_batches
from traceless.store.row_table import Record, lanes_of, lanes_of_new, lanes_of_pairs

_NOBODY = bytes(SIZE)  # an id that nobody has
_LEAVE_OUT = (
    "Leave them out, or learn them all the same with again=True (--again). Nothing was changed."
)
_SHOWN = 5  # positions of rows that an error names


class RowChanges(Change):
    """Changes of single rows."""

    def learn(self, rows: Given, once: bool, again: bool) -> Receipt:
        """Learn rows; `once` refuses those of an earlier change, `again` allows the forgotten."""
        batches = row_batches(*rows, self.origin)
        if self._known:
            return self._rows_again("learn", added=batches)
        start, back, held = 0, list[int](), list[int]()
        for batch in batches:
            found = self.hasher(batch)
            returned = set() if again else self._not_to_come_back(found.names)
            ids = self._add(found, found.names)
            twice = self.ledger.rows.held(found.digests, ids, self._number) if once else set()
            for place, digest, name, one in zip(
                found.places.tolist() if returned or twice else (),
                found.digests, found.names, ids, strict=False,
            ):  # fmt: skip
                back += [start + place] if name in returned else []
                held += [start + place] if (digest, one) in twice else []
            start += found.length
            if len(found.places) and not back and not held:
                X, y, weight = batch[:3]
                self.model.partial_fit(X, y, sample_weight=weight)
        if back:
            raise AlreadyLearnedError(
                f"{len(back)} rows are of ids whose last row was forgotten on request, or waits to "
                f"be: {_places(back)}. {_LEAVE_OUT}"
            )
        request = self._request()
        if once and request is not None:
            self._refuse_repeated(request)
        if held:
            raise AlreadyLearnedError(
                f"{len(held)} rows are held already, under the same ids: {_places(held)}. They may "
                f"be part of an earlier table. {_LEAVE_OUT}"
            )
        return self.finish("learn", request)

    def _not_to_come_back(self, names: list[bytes]) -> set[bytes]:
        """Those of some names who were forgotten, or all of whose rows wait to be."""
        if not any(names):
            return set()
        people, waiting = self.ledger.people, self.ledger.people.waiting()
        known, listed = people.ids(names), self.suppression
        new = set(names) - {b""} - known.keys()
        wait = {name for name, one in known.items() if people.held(one) == waiting.get(one, 0)}
        return {name for name in wait if known[name] not in self.people} | {
            name for name in new if listed.until(name) is not None
        }

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
        self._forget(batches, whole)
        return self.finish("forget", self._request())

    def undo(self, rows: Given) -> Receipt | Queued:
        """Forget what the last change that learned has learned, if it is these rows."""
        kept = list(row_batches(*rows, self.origin))
        if self._known:
            return self._forgotten_before(kept)
        undone = set[int | None]()
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
        if self.secret and last.rows != self.hasher.tally(kept).rows:
            raise NotLearnedError(
                f"The last learning ({said}) was one of {last.rows} rows, and these are not they. "
                "Give the rows as they were learned. Nothing was changed."
            )
        self._forget(kept, entry=last.sequence)
        return self.finish("forget", self._request(), subject=f"{UNDO}{last.sequence}")

    def correct(
        self, before: RowBatch, after: RowBatch, keep_ids: bool, whole: bool, again: bool = False
    ) -> Receipt:
        """Put rows in the place of others, under their ids or under ids of their own."""
        if self._known:
            return self._rows_again("relabel", [before], [after])
        rows = self.hasher(after)
        back = set() if again or keep_ids else self._not_to_come_back(rows.names)
        for held in self._taken([before], whole):
            keep = keep_ids and len(held) > 3
            self._add(rows, [held[3][i] for i in rows.places.tolist()] if keep else rows.names)
            self.model.update(add=after[:3], forget=held[:3])
        if back:
            raise AlreadyLearnedError(
                f"New rows are of {len(back)} ids whose last row was forgotten on request, or "
                f"waits to be. {_LEAVE_OUT}"
            )
        return self.finish("relabel", self._request())

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

    def _add(self, rows: RowDigests, names: list[bytes]) -> list[bytes]:
        """Count rows as learned, under the ids of these names; returns the ids."""
        held = self._ids(names)
        self.ledger.rows.add(rows.digests, held, self._number)
        self.records_sum += lanes_of_new(rows.digests, held, self._number)
        self.people.update(filter(None, held))
        self.added.add(rows)
        return held

    def _ids(self, names: list[bytes]) -> list[bytes]:
        """The ids of names, which get new ones if they have none."""
        people = self.ledger.people
        if not any(names):
            return names
        ids = people.ids(names)
        new = people.add(set(names) - ids.keys())
        ids |= new | {b"": b""}
        self.records_sum += lanes_of_pairs(new.items())
        return [ids[name] for name in names]

    def _take(
        self, digests: list[bytes], names: list[bytes], request: int = 0, entry: int | None = None
    ) -> tuple[list[int], list[Record], list[bytes]]:
        """Take rows: the positions of those that are not there, and the others with their ids."""
        known = {b"": b"", **(self.ledger.people.ids(names) if any(names) else {})}
        ids = [known.get(name, _NOBODY) for name in names]
        missed, taken, held = self.ledger.rows.take(digests, ids, request, entry)
        self.records_sum -= lanes_of(taken)
        self.people.subtract(filter(None, held))
        return missed, taken, held

    def _put(self, records: list[Record]) -> None:
        """Hold records again that were taken, for another request."""
        self.ledger.rows.put(records)
        self.records_sum += lanes_of(records)
        self.people.update(record.id for record in records if record.id)

    def _forget(
        self, batches: Iterable[RowBatch], whole: bool = False, entry: int | None = None
    ) -> None:
        for held in self._taken(batches, whole, entry=entry):
            self.model.forget(*held[:3])

    def _request(self, asked: Tally | None = None) -> str | None:
        """The hash of a request for these rows; raises if there are none."""
        removed, added = asked or self.removed, self.added
        if not (removed.rows or added.rows):
            raise ValueError("There are no rows, or all have weight zero. Nothing was changed.")
        return self.hasher.request(removed, added)

    def _taken(
        self,
        batches: Iterable[RowBatch],
        whole: bool = False,
        into: Tally | None = None,
        request: int = 0,
        entry: int | None = None,
    ) -> Iterator[RowBatch]:
        """Take the rows of batches, and yield each batch; raises if a row is not held.

        They are counted as removed, or into the tally given. Rows that wait are those of `request`;
        only rows of `entry` are taken, if it is given.
        """
        if self.secret is None:
            raise StoreError(
                "The secret of this store was destroyed, so it cannot tell which rows it holds: "
                "only whole slices can be forgotten (a Knowledge, or the file of a model), and not "
                "rows. Nothing was changed."
            )
        tally = self.removed if into is None else into
        start, reserved, missing, ids = 0, 0, [], Counter[bytes]()
        self.records = list[Record]()
        for batch in batches:
            rows = self.hasher(batch)
            ours = getattr(self.model, "n_features_in_", rows.width)
            if rows.width != ours:
                raise ValueError(
                    f"X has {rows.width} features, but the model of this store has {ours}. Nothing "
                    "was changed."
                )
            lost, taken, held = self._take(rows.digests, rows.names, request, entry)
            if lost:
                missing += [start + int(rows.places[i]) for i in lost]
                reserved += self.ledger.rows.count_waiting(rows.digests[i] for i in lost)
            self.records += taken
            if rows.digests and not missing:
                yield (*batch[:3], rows.spread(held)) if any(held) else batch[:3]
            ids.update(held)
            tally.add(rows)
            if self.asked.personal and len(batch) > 3:
                given = [None] * rows.length if batch[3] is None else list(batch[3])
                named = (given[i] for i in rows.places.tolist())
                self.persons.update(str(one) for one in named if one not in (None, ""))
            start += rows.length
        if missing:
            raise NotLearnedError(self._not_held(missing, start, reserved))
        if whole:
            self._check_whole(ids)

    def _check_whole(self, ids: Counter[bytes]) -> None:
        """Raise if rows of these ids are left that nobody has asked to forget."""
        if ids[b""] or not ids:
            raise ValueError(
                "whole=True (--whole) asks that all rows of the ids given go, and some rows have "
                "no id. Give one for each row. Nothing was changed."
            )
        waiting = self.ledger.people.waiting()
        before = {one: self.ledger.people.held(one) for one in ids}
        left = [held - waiting.get(one, 0) - ids[one] for one, held in before.items()]
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


def _named(entry: Entry) -> str:
    return f"entry {entry.sequence}, {entry.time}"


def _places(numbers: list[int]) -> str:
    return f"number {_some(numbers)} (counted from 0)"


def _some(items: list[Any]) -> str:
    """The first of several things."""
    return ", ".join(map(str, items[:_SHOWN])) + (", …" if len(items) > _SHOWN else "")
