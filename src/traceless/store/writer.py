"""The writer of a store: requests, of which each is recognised if it comes again, and answered."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, cast

from traceless.exceptions import AlreadyLearnedError, NotLearnedError, StoreError
from traceless.knowledge.sums import Knowledge
from traceless.store import version_1
from traceless.store.change import Asked, Cached, Change
from traceless.store.entries import ModelState
from traceless.store.folder import Folder
from traceless.store.keys import SigningKey
from traceless.store.ledger import Ledger, Request
from traceless.store.merge_source import MergeSource, open_merge_source
from traceless.store.queue import Queued, plain_arrays
from traceless.store.receipts import Receipt
from traceless.store.row_counts import Taken
from traceless.store.row_digests import Given, RowBatch, RowDigests, Tally, row_batches

Take = Callable[[list[bytes], list[bytes]], Taken]  # digests and ids
_SHOWN = 5  # positions of rows that an error names


class Writer(Change):
    """One change of a store, as it was asked for.

    If a request came before with the key that is asked for, its answer is given again, and nothing
    is changed.
    """

    def __init__(self, folder: Folder, ledger: Ledger, asked: Asked, cached: Cached = None) -> None:
        if ledger.version < 3:
            raise StoreError(
                f"This store is of version {ledger.version}: it can be read, and must be upgraded "
                f"before it is changed, with Store.upgrade (or traceless upgrade {folder.path}). "
                "Nothing was changed."
            )
        super().__init__(folder, ledger, asked, cached)
        self._known = None if asked.key is None else ledger.request(asked.key)
        if self._known is None:
            self.signing_key  # noqa: B018  raises at once if it is not there

    def tidy(self) -> None:
        """Remove what others left behind, also if there was nothing to change."""
        if not (self.committed or self.asked.dry_run) and self.folder.left_over(self.before):
            self.ledger.sql.execute("ROLLBACK")
            self.folder.tidy(self.ledger)

    # --- requests that came before --------------------------------------------------------

    def _first_answer(self, kind: str, rows: int, *requests: str | None) -> Any:
        """The answer to the request that came with this key before.

        The request is recognised by its kind, its number of rows, and one of these hashes; if it
        was another request, this raises.
        """
        before = cast(Request, self._known)
        if self.secret is None and rows:
            raise StoreError(
                f"A request with the key {before.key!r} came before, and since the secret of this "
                "store was destroyed nobody can tell whether it is this one. Look at its entry "
                f"({before.sequence}), and give a new request a key of its own. Nothing was "
                "changed."
            )
        same = before.request in requests
        if (kind, rows) != (before.kind, before.rows) or not same:
            raise StoreError(
                f"The key {before.key!r} is that of another request: {before.kind} of "
                f"{before.rows} rows, where this one is {kind} of {rows}"
                f"{'' if same else ' other'} rows. Give every request a key of its own. Nothing "
                "was changed."
            )
        answer = self.ledger.receipt(cast(int, before.sequence), replayed=True)
        if answer.kind == "cancel":
            raise StoreError(
                f"The request with the key {before.key!r} was cancelled (entry {answer.sequence}, "
                f"{answer.time}). Give a new request a key of its own. Nothing was changed."
            )
        if answer.kind == "queue":
            pending = self.ledger.pending(replayed=True)
            return next(queued for queued in pending if queued.sequence == answer.sequence)
        return answer

    def _rows_again(
        self, kind: str, removed: Iterable[RowBatch] = (), added: Iterable[RowBatch] = ()
    ) -> Any:
        """The answer to a request with these rows that came with this key before."""
        old, new = self.hasher.tally(removed), self.hasher.tally(added)
        return self._first_answer(kind, max(old.rows, new.rows), self.hasher.request(old, new))

    def _slice_requests(self, source: MergeSource) -> list[str | None]:
        """The hashes by which a request with a slice can be recognised."""
        digests = [source.knowledge.digest(), *self._old_digest(source)]
        return [self.hasher.request(digest) for digest in digests]

    def _old_digest(self, source: MergeSource) -> list[str]:
        """The digest that version 1 gave to a slice, in a store of that version."""
        if version_1.is_version_1(self.origin):
            with suppress(ValueError):  # version 1 did not have these weights
                return [version_1.digest_of_knowledge(source.knowledge)]
        return []

    # --- rows -----------------------------------------------------------------------------

    def learn(self, rows: Given, once: bool) -> Any:
        """Learn rows."""
        batches = row_batches(*rows, self.origin)
        if self._known:
            return self._rows_again("learn", added=batches)
        for batch in batches:
            found = self.hasher(batch)
            with self._adding(found, found.ids):
                if len(found.places):
                    X, y, weight = version_1.rounded_as_in(self.origin, batch)
                    self.model.partial_fit(X, y, sample_weight=weight)
        last, request = self.before, self._rows_request()
        learned = "learn", self.added.rows, request
        if once and self.secret and learned == (last.kind, last.rows, last.request):
            raise AlreadyLearnedError(
                f"The last change (entry {last.sequence}, {last.time}) learned exactly these "
                f"{last.rows} rows. Leave out once to learn them twice. Nothing was changed."
            )
        return self.finish("learn", request)

    def forget(self, rows: Given, batch: bool, name: str | None, whole: bool) -> Any:
        """Forget rows, or a slice; with `batch`, once there are enough rows in the queue."""
        X = rows[0]
        known = isinstance(X, str | os.PathLike | Knowledge)
        if known or hasattr(X, "partial_fit") or hasattr(X, "_folder"):
            return self.take_out(X, name)
        batches = row_batches(*rows, self.origin)
        if self._known:
            return self._rows_again("forget", removed=batches)
        if batch:
            return self._enqueue(batches, whole)
        self._forget(batches, self.ledger.rows.remove, whole)
        return self.finish("forget", self._rows_request())

    def undo(self, rows: Given) -> Any:
        """Forget what the last change that learned has learned, if it is these rows."""
        kept = list(row_batches(*rows, self.origin))
        if self._known:
            return self._rows_again("forget", removed=kept)
        tally, since = self.hasher.tally(kept), set()
        for last in self.ledger.entries("ORDER BY sequence DESC"):
            if last.kind == "learn":
                break
            since.add((last.subject, last.request))
        else:
            raise StoreError(
                "This store has learned nothing that could be undone. Nothing was changed."
            )
        subject, said = f"undo of entry {last.sequence}", f"entry {last.sequence}, {last.time}"
        if (subject, self.hasher.request(tally, Tally())) in since:
            raise StoreError(f"The last learning ({said}) was undone before. Nothing was changed.")
        if self.secret and last.request != self.hasher.request(Tally(), tally):
            raise NotLearnedError(
                f"The last learning ({said}) was one of {last.rows} rows, and these are not they. "
                "Give the rows, and the ids, as they were learned. Nothing was changed."
            )
        self._forget(kept, self.ledger.rows.remove)
        return self.finish("forget", self._rows_request(), subject=subject)

    def correct(self, before: RowBatch, after: RowBatch, keep_ids: bool, whole: bool) -> Any:
        """Put rows in the place of others, under their ids or under ids of their own."""
        if self._known:
            return self._rows_again("relabel", [before], [after])
        for held in self._taken([before], self.ledger.rows.remove, whole):
            rows = self.hasher(after)
            keep = keep_ids and len(held) > 3
            ids = [held[3][i] for i in rows.places.tolist()] if keep else rows.ids
            with self._adding(rows, ids):
                old, new = (version_1.rounded_as_in(self.origin, rows) for rows in (held, after))
                self.model.update(add=new, forget=old)
        return self.finish("relabel", self._rows_request())

    @contextmanager
    def _adding(self, rows: RowDigests, ids: list[bytes]) -> Iterator[None]:
        """Count rows as learned, under these ids, while the model learns them."""
        with self.ledger.rows.adding(rows.digests, ids):
            self.added.add(rows, ids)
            yield

    def _forget(self, batches: Iterable[RowBatch], take: Take, whole: bool = False) -> None:
        for held in self._taken(batches, take, whole):
            self.model.forget(*version_1.rounded_as_in(self.origin, held))

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
        places = ", ".join(map(str, missing[:_SHOWN])) + (", …" if len(missing) > _SHOWN else "")
        said = (
            f"{len(missing)} of {n} rows are not held here (with this label and weight, as often): "
            f"number {places} (counted from 0). They were never learned, or are forgotten already."
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

    # --- the queue ------------------------------------------------------------------------

    def _enqueue(self, batches: Iterable[RowBatch], whole: bool) -> Receipt | Queued:
        """Keep rows until they can be forgotten with others; forget all if that is safe now."""
        queue, asked = self.ledger.queue, Tally()
        taken = self._taken(batches, self.ledger.rows.reserve, whole, asked)
        kept = list(map(plain_arrays, taken))
        self.waiting = asked.ids
        request = self._rows_request(asked)
        wait = cast(int, self.before.waiting) + asked.rows
        entry = self.note("queue", request, rows=asked.rows, waiting=wait)
        queue.put(entry, asked.classes, kept)
        found = Queued(entry.time, self.asked.key, entry.rows, dict(asked.classes), entry.sequence)
        try:
            queue.check(found, entry, self.hasher)
        except StoreError:
            raise ValueError(
                "These labels or ids cannot be kept in the queue as they are. Give an id with "
                "every row or with none, or forget the rows without batch=True (--batch). Nothing "
                "was changed."
            ) from None
        if queue.is_safe():
            return self._flush(checked=entry.sequence)
        return found.with_receipt(self.commit())

    def flush(self, force: bool) -> list[Receipt]:
        """Forget all rows that wait, if there are enough of them, or by force."""
        queue = self.ledger.queue
        return [self._flush()] if queue.pending() and (force or queue.is_safe()) else []

    def _flush(self, checked: int | None = None) -> Receipt:
        queue = self.ledger.queue
        pending = queue.pending()
        keys = tuple(queued.key for queued in pending if queued.key is not None)
        for queued in pending:
            if queued.sequence != checked:  # nobody may exchange rows while they wait
                queue.check(queued, self.ledger.entry(queued.sequence), self.hasher)
        with warnings.catch_warnings():  # the queue keeps rows without the names of columns
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            self._forget(queue.batches(), self.ledger.rows.remove_reserved)
        self.waiting.subtract(self.removed.ids)
        queue.clear()
        return self.finish("forget", self._rows_request(), keys=keys, waiting=0)

    def cancel(self, which: int | str) -> Receipt:
        """Take a request out of the queue, by its number or its key."""
        queue, taken = self.ledger.queue, Tally()
        queued = next((q for q in queue.pending() if which in (q.sequence, q.key)), None)
        if queued is None:
            waiting = ", ".join(str(q.sequence) for q in queue.pending()) or "none"
            raise StoreError(
                f"No request {which!r} waits in the queue. Their numbers: {waiting}. Nothing was "
                "changed."
            )
        batches, release = queue.batches(queued.sequence), self.ledger.rows.release
        for _ in self._taken(batches, release, into=taken):
            pass
        self.waiting.subtract(taken.ids)
        queue.clear(queued.sequence)
        entry = self.ledger.entry(queued.sequence)
        wait = cast(int, self.before.waiting) - taken.rows
        said = {"keys": entry.keys, "rows": taken.rows, "subject": f"entry {queued.sequence}"}
        self.note("cancel", entry.request, waiting=wait, **said)
        return self.commit()

    # --- slices ---------------------------------------------------------------------------

    def merge(self, other: Any, name: str | None, again: bool) -> Any:
        """Take in what another model has learned; knowledge of fewer than no rows takes it out."""
        if isinstance(other, Knowledge) and other.n_samples < 0:
            return self.take_out(-other, name)
        with open_merge_source(other, self.hasher, self.folder) as source:
            requests = self._slice_requests(source)
            if self._known:
                return self._first_answer("merge", source.rows, *requests)
            what = source.knowledge if source.estimator is None else source.estimator
            self._merge(what, source, name, again)
            self.ledger.rows.add_counted(source.count_into(self.added))
            self.unknown += source.unknown
            return self.finish("merge", requests[0], subject=name)

    def take_out(self, other: Any, name: str | None) -> Any:
        """Take out a slice that was merged."""
        with open_merge_source(other, self.hasher, self.folder) as source:
            requests = self._slice_requests(source)
            if self._known:
                return self._first_answer("forget", source.rows, *requests)
            self._check_merged(source, requests)
            self._merge(-source.knowledge, source, name, again=False)
            counted = source.count_into(self.removed)
            each = [row for *row, n in counted for _ in range(n)]
            lost, _ = self.ledger.rows.remove([d for d, _ in each], [i for _, i in each])
            if lost:
                raise NotLearnedError(
                    f"{len(lost)} of the {source.rows} rows of the slice are not held here, or "
                    "wait in the queue. Nothing was changed."
                )
            self.unknown -= source.unknown
            return self.finish("forget", requests[0], subject=name)

    def _merge(self, other: Any, source: MergeSource, name: str | None, again: bool) -> None:
        """Merge under a name, or under the digest by which a model of version 1 knows the slice."""
        model = self.model
        if not hasattr(model, "merge"):
            raise TypeError(
                f"A {type(model).__name__} has no merge: it keeps its rows. Learn, or forget, "
                "the rows themselves. Nothing was changed."
            )
        merged = getattr(model, "merged_", {})
        old = next((digest for digest in self._old_digest(source) if digest in merged), None)
        model.merge(other, name=name or old, again=again)

    def _check_merged(self, source: MergeSource, requests: list[str | None]) -> None:
        """Raise unless the rows without digests came in this slice."""
        came = [entry.kind for entry in self.ledger.entries() if entry.request in requests]
        merged = self.secret is None or came.count("merge") > came.count("forget")
        if source.unknown and (source.unknown > self.unknown or not merged):
            raise NotLearnedError(
                f"This slice of {source.rows} rows was not merged here as it is now, or is taken "
                "out already. Slices go as they came; forget other rows themselves, or give a "
                "store with the same secret that holds them. Nothing was changed."
            )

    # --- the rest -------------------------------------------------------------------------

    def seal(self) -> Any:
        """Compute the exact coefficients; models without `seal` have them always."""
        if self._known:
            return self._first_answer("seal", 0, None)
        if hasattr(self.model, "seal") and ModelState.of(self.model).held:
            self.model.seal()
        return self.finish("seal")

    def destroy(self, what: str) -> Any:
        """Destroy the secret or the model; digests and ids go with either."""
        if self._known:
            return self._first_answer("destroy", 0, what)
        if self.secret is None if what == "secret" else self.before.generation is None:
            raise StoreError(f"The {what} of this store was destroyed before. Nothing was changed.")
        if self.ledger.queue.pending():
            raise StoreError(
                "Requests wait in the queue, and could then never be met: flush them first. "
                "Nothing was changed."
            )
        self.ledger.rows.clear()
        self.ledger.ids.clear()
        self.emptied, removed = True, 0
        if what == "secret":
            self.secret = None
        else:
            self.model, self.cached, self.unknown = None, None, 0
            self.removed.classes.update(self.ledger.class_counts())
            removed = self.before.held
        return self.finish("destroy", what, subject=what, removed=removed)

    def new_key(self, key: SigningKey, keep: bool) -> Receipt:
        """Hand over to another key, which is kept in the folder or elsewhere."""
        if key.public == self.before.next_signer:
            raise StoreError("This is the key that the store has already. Nothing was changed.")
        if keep and not self.asked.dry_run:
            self.folder.write_private("key.new", key.pem())
        self.note("key", subject=key.public)
        receipt = self.commit()
        if not (keep or self.asked.dry_run):
            self.folder.remove(self.folder.path / "key")  # the old one, if it was there
        return receipt
