"""Learn, forget and correct rows, and let requests to forget wait for each other."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator

from traceless.exceptions import AlreadyLearnedError, NotLearnedError, StoreError, StoreWarning
from traceless.store.change import Change
from traceless.store.entries import UNDO, Entry
from traceless.store.people import SIZE
from traceless.store.queue import Queued
from traceless.store.receipts import Receipt
from traceless.store.row_digests import (
    Given,
    RowBatch,
    RowDigests,
    Tally,
    packed,
    row_batches,
    unpacked,
)
from traceless.store.row_table import Record

_NOBODY = bytes(SIZE)  # an id that nobody has
_LEAVE_OUT = "Leave them out, or learn them all the same with again=True (--again)."
_EQUAL = (
    "{} of these {} rows equal rows that are held already. Without ids nobody can tell whether "
    "they are part of an earlier table, and now count twice: if so, undo this change."
)
_SHOWN = 5  # positions of rows that an error names


class RowChanges(Change):
    """Changes of single rows; a request to forget names rows that the store holds."""

    def learn(self, rows: Given, once: bool, again: bool) -> Receipt:
        """Learn rows; `once` refuses those of an earlier change, `again` allows the forgotten."""
        batches = row_batches(*rows, self.origin)
        if self._known:
            return self._rows_again("learn", added=batches)
        start, back, held, equal = 0, list[int](), list[int](), 0
        for batch in batches:
            found = self.hasher(batch)
            returned = set() if again else self._not_to_come_back(found.names)
            ids = self._add(found)
            twice = self.rows.held(found.digests, ids, self.number) if once else set()
            equal += sum(1 for pair in twice if not pair[1])
            for place, pair, name in zip(
                found.places.tolist() if returned or twice else (),
                zip(found.digests, ids, strict=True), found.names, strict=False,
            ):  # fmt: skip
                back += [start + place] if name in returned else []
                held += [start + place] if pair[1] and pair in twice else []
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
        if 2 * equal >= self.added.rows:
            warnings.warn(_EQUAL.format(equal, self.added.rows), StoreWarning, stacklevel=4)
        return self.finish("learn", request)

    def forget(self, rows: Given, whole: bool) -> Receipt | Queued:
        """Forget rows."""
        batches = row_batches(*rows, self.origin)
        if self._known:
            return self._forgotten_before(batches)
        for batch, _ in self._taken(batches, whole):
            self.model.forget(*batch[:3])
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
            raise StoreError("This store has learned nothing that could be undone.")
        said = _named(last)
        if last.sequence in undone:
            raise StoreError(f"The last learning ({said}) was undone before.")
        if self.secret and last.rows != self.hasher.tally(kept).rows:
            raise NotLearnedError(
                f"The last learning ({said}) was one of {last.rows} rows, and these are not they. "
                "Give the rows as they were learned."
            )
        for batch, _ in self._taken(kept, entry=last.sequence):
            self.model.forget(*batch[:3])
        return self.finish("forget", self._request(), subject=f"{UNDO}{last.sequence}")

    def correct(
        self, before: RowBatch, after: RowBatch, keep_ids: bool, whole: bool, again: bool = False
    ) -> Receipt:
        """Put rows in the place of others, under their ids or under ids of their own."""
        if self._known:
            return self._rows_again("relabel", [before], [after])
        rows = self.hasher(after)
        back = set() if again or keep_ids else self._not_to_come_back(rows.names)
        for batch, ids in self._taken([before], whole):
            self._add(rows, ids if keep_ids else None)
            self.model.update(add=after[:3], forget=batch[:3])
        if back:
            raise AlreadyLearnedError(
                f"New rows are of {len(back)} ids whose last row was forgotten on request, or "
                f"waits to be. {_LEAVE_OUT}"
            )
        return self.finish("relabel", self._request())

    # --- the queue ------------------------------------------------------------------------

    def enqueue(self, rows: Given, whole: bool) -> Receipt | Queued:
        """Keep rows until they can be forgotten with others; forget all if that is safe now."""
        batches = row_batches(*rows, self.origin)
        if self._known:
            return self._forgotten_before(batches)
        content = packed([batch for batch, _ in self._taken(batches, whole)])
        asked, self.removed = self.removed, Tally()
        if self.hasher.tally(unpacked(content)).in_order() != asked.in_order():
            raise ValueError(
                "These labels cannot be kept in the queue as they are. Forget the rows without "
                "batch=True (--batch)."
            )
        self.rows.put([record._replace(request=self.number) for record in self.records])
        queued = self.hasher.queued(content, self.rows.waiting(self.number))
        said = {"rows": asked.rows, "classes": dict(asked.classes), "queued": queued}
        said |= {"waiting": self.before.waiting + asked.rows}
        self.ledger.queue.put(self.number, content)
        self.note("queue", self._request(asked), **said)
        if self._waiting_rows().are_enough():
            return self._flush()
        return Queued.of(self.commit())

    def flush(self, force: bool) -> list[Receipt]:
        """Forget all rows that wait, if there are enough of them, or by force."""
        pending = self.ledger.pending()
        enough = pending and (force or self._waiting_rows().are_enough())
        return [self._flush()] if enough else []

    def cancel(self, which: int | str) -> Receipt:
        """Take a request out of the queue, by its number or its key."""
        found = (entry for entry, _ in self._waiting() if which in (entry.sequence, *entry.keys))
        entry = next(found, None)
        if entry is None:
            waiting = ", ".join(map(str, self.ledger.queue.numbers())) or "none"
            raise StoreError(f"No request {which!r} waits in the queue. Their numbers: {waiting}.")
        records, counts = self.rows.take_waiting(entry.sequence)
        self.rows.put([record._replace(request=0) for record in records], counts)
        self.ledger.queue.clear(entry.sequence)
        said = {"keys": entry.keys, "rows": entry.rows, "classes": entry.classes}
        said |= {"subject": f"entry {entry.sequence}", "waiting": self.before.waiting - entry.rows}
        self.note("cancel", entry.request, **said)
        return self.commit()

    def _flush(self) -> Receipt:
        request_keys, self.asked = list[str](), self.asked._replace(personal=False)
        with warnings.catch_warnings():  # the queue keeps rows without the names of columns
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            for entry, batches in self._waiting():
                request_keys += entry.keys
                self.rows.take_waiting(entry.sequence)
                for batch in batches:
                    self.removed.add(self.hasher(batch))
                    self.model.forget(*batch)
        self.ledger.queue.clear()
        return self.finish("forget", self._request(), keys=tuple(request_keys), waiting=0)

    def _waiting(self) -> list[tuple[Entry, list[RowBatch]]]:
        """The requests that wait, with their rows, which nobody may have exchanged."""
        ledger = self.ledger
        entries = [ledger.entry(queued.sequence) for queued in ledger.pending()]
        checked = ledger.queue.checked
        return [(entry, checked(entry, self.rows, self.hasher)) for entry in entries]

    def _waiting_rows(self) -> Tally:
        return self.hasher.tally(batch for _, batches in self._waiting() for batch in batches)

    # --- inside ---------------------------------------------------------------------------

    def _not_to_come_back(self, names: list[bytes]) -> set[bytes]:
        """Those of some names who were forgotten, or all of whose rows wait to be."""
        known = self.rows.ids(names)
        numbers = self.rows.numbers(known.values())
        wait = {name for name, one in known.items() if len({*numbers[one]}) == 1}
        return {name for name in wait if not self.rows.learned_now(known[name])} | {
            name
            for name in set(names) - {b""} - known.keys()
            if self.suppression.until(name) is not None
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
                    "To learn them twice, use once=False (--again)."
                )

    def _forgotten_before(self, batches: Iterable[RowBatch]) -> Receipt | Queued:
        """The answer to a request to forget these rows that came before, and may still wait."""
        answer = self._rows_again("forget", removed=batches)
        return Queued.of(answer, replayed=True) if answer.kind == "queue" else answer

    def _add(self, rows: RowDigests, ids: list[bytes] | None = None) -> list[bytes]:
        """Count rows as learned, under these ids or those of their names; returns the ids."""
        if ids is None:
            known = {b"": b"", **self.rows.ids(rows.names, new=True)} if any(rows.names) else {}
            ids = [known[name] for name in rows.names] if known else rows.names
        self.rows.add(rows.digests, ids, self.number)
        self.added.add(rows)
        return ids

    def _request(self, asked: Tally | None = None) -> str | None:
        """The hash of a request for these rows; raises if there are none."""
        removed, added = asked or self.removed, self.added
        if not (removed.rows or added.rows):
            raise ValueError("There are no rows, or all have weight zero.")
        return self.hasher.request(removed, added)

    def _take(
        self, digests: list[bytes], names: list[bytes], entry: int | None = None
    ) -> list[Record | None]:
        """Take rows of these names: see `RowTable.take`."""
        known = {b"": b"", **(self.rows.ids(names) if any(names) else {})}
        return self.rows.take(digests, [known.get(name, _NOBODY) for name in names], entry)

    def _taken(
        self, batches: Iterable[RowBatch], whole: bool = False, entry: int | None = None
    ) -> Iterator[tuple[RowBatch, list[bytes]]]:
        """Take the rows of batches; yields each batch, and the ids of its rows of positive weight.

        Raises if a row is not held, or with `entry` if that did not learn it. They are counted as
        removed, and `records` are those of all of them.
        """
        if self.secret is None:
            raise StoreError(
                "The secret of this store was destroyed, so it cannot tell which rows it holds: "
                "only whole slices can be forgotten (a Knowledge, or the file of a model), and not "
                "rows."
            )
        start, reserved, missing, ids = 0, 0, list[int](), Counter[bytes]()
        self.records = list[Record]()
        for batch in batches:
            rows = self.hasher(batch)
            ours = getattr(self.model, "n_features_in_", rows.width)
            if rows.width != ours:
                raise ValueError(
                    f"X has {rows.width} features, but the model of this store has {ours}."
                )
            taken = self._take(rows.digests, rows.names, entry)
            held = [record.id for record in taken if record is not None]
            if len(held) < len(taken):
                lost = [i for i, record in enumerate(taken) if record is None]
                missing += [start + int(rows.places[i]) for i in lost]
                reserved += self.rows.count_waiting(rows.digests[i] for i in lost)
            self.records += filter(None, taken)
            if rows.digests and not missing:
                yield batch, held
            ids.update(held)
            self.removed.add(rows)
            if self.asked.personal and len(batch) > 3 and batch[3] is not None:
                given = list(batch[3])
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
                "no id. Give one for each row."
            )
        numbers = self.rows.numbers(ids)
        left = [held - waiting - ids[one] for one, (held, waiting) in numbers.items()]
        if any(left):
            raise NotLearnedError(
                f"{sum(left)} more rows of {sum(map(bool, left))} of these {len(left)} ids are "
                "held here, and are not among those given. Give all rows of each id, or leave out "
                "whole=True (--whole)."
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
        return said


def _named(entry: Entry) -> str:
    return f"entry {entry.sequence}, {entry.time}"


def _places(numbers: list[int]) -> str:
    more = ", …" if len(numbers) > _SHOWN else ""
    return f"number {', '.join(map(str, numbers[:_SHOWN]))}{more} (counted from 0)"
