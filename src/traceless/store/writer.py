"""The writer of a store: it makes one change, which one commit of the ledger completes.

Whatever is raised before the commit leaves the store as it was: the transaction is rolled back,
the model in memory is thrown away, and a model file that was written is removed.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from typing import Any, cast

from traceless.exceptions import (
    AlreadyLearnedError,
    FileError,
    NotLearnedError,
    RevealingWarning,
    StoreError,
)
from traceless.knowledge.sums import Knowledge
from traceless.store import version_1
from traceless.store.entries import Entry, ModelState
from traceless.store.folder import Folder
from traceless.store.ledger import Ledger, Request
from traceless.store.merge_source import MergeSource, open_merge_source
from traceless.store.queue import SAFE_ROWS, Queued, are_enough, plain_arrays
from traceless.store.receipts import Receipt
from traceless.store.row_counts import Taken
from traceless.store.row_digests import RowBatch, RowHasher, Tally, checksum_text, row_batches

Cached = tuple[str, Any] | None  # a generation, and the model that it holds

_SHOWN = 5  # positions of rows that an error names
_REVEALING = (
    f"Fewer than {SAFE_ROWS} rows of a class change at once: whoever holds the models before and "
    "after can reconstruct them. Collect requests to forget with batch=True (--batch), and see "
    "that no copy of the model before is left."
)


class Writer:
    """One change of a store.

    Parameters
    ----------
    folder : Folder
    ledger : Ledger
        In a transaction.
    key : str or None
        Idempotency key of the request. If a request came with it before, its answer is given
        again, and nothing is changed.
    cached : tuple, optional
        A generation, and its model, which the change may modify. Afterwards the attribute of this
        name holds the latest generation that was read, for the next change.
    """

    def __init__(
        self, folder: Folder, ledger: Ledger, key: str | None, cached: Cached = None
    ) -> None:
        self._folder, self._ledger, self._key, self.cached = folder, ledger, key, cached
        self._before, self.origin = ledger.last(), ledger.origin
        self._secret = folder.secret(self._before)
        self._hasher = RowHasher.of(self._secret, self.origin)
        self._hasher.check_secret(self.origin["secret"])
        self._known = None if key is None else ledger.request(key)
        self._unknown = self._before.unknown
        self._removed, self._added = Tally(), Tally()

    @cached_property
    def model(self) -> Any:
        """The model, to be changed."""
        if self.cached is None or self.cached[0] != self._before.generation:
            self.cached = str(self._before.generation), self._folder.load(self._before)
        return self.cached[1]

    # --- requests that came before --------------------------------------------------------

    def _first_answer(self, kind: str, rows: int, *requests: str | None) -> Any:
        """The answer to the request that came with this key before.

        The request is recognised by its kind, its number of rows, and one of these hashes; if it
        was another request, this raises.
        """
        before = cast(Request, self._known)
        same = before.request in requests or self._secret is None
        if (kind, rows) != (before.kind, before.rows) or not same:
            raise StoreError(
                f"The key {before.key!r} is that of another request: {before.kind} of "
                f"{before.rows} rows, where this one is {kind} of {rows}"
                f"{'' if same else ' other'} rows. Give every request a key of its own. Nothing "
                "was changed."
            )
        if before.sequence is None:
            pending = self._ledger.queue.pending(replayed=True)
            return next(queued for queued in pending if queued.key == before.key)
        return Receipt.of(self._ledger.entry(before.sequence), self.origin, replayed=True)

    def _rows_again(
        self, kind: str, removed: Iterable[RowBatch] = (), added: Iterable[RowBatch] = ()
    ) -> Any:
        """The answer to a request with these rows that came with this key before."""
        old, new = self._tally(removed), self._tally(added)
        return self._first_answer(kind, max(old.rows, new.rows), self._hasher.request(old, new))

    def _tally(self, batches: Iterable[RowBatch]) -> Tally:
        tally = Tally()
        for batch in batches:
            tally.add(self._hasher(batch))
        return tally

    def _slice_requests(self, source: MergeSource) -> list[str | None]:
        """The hashes by which a request with a slice can be recognised."""
        digests = [source.knowledge.digest(), *self._old_digest(source)]
        return [self._hasher.request(digest) for digest in digests]

    def _old_digest(self, source: MergeSource) -> list[str]:
        """The digest that version 1 gave to a slice, in a store of that version."""
        if version_1.is_version_1(self.origin):
            with suppress(ValueError):  # version 1 did not have these weights
                return [version_1.digest_of_knowledge(source.knowledge)]
        return []

    # --- rows -----------------------------------------------------------------------------

    def learn(self, batches: Iterable[RowBatch], once: bool) -> Any:
        """Learn rows."""
        if self._known:
            return self._rows_again("learn", added=batches)
        for batch in batches:
            rows = self._hasher(batch)
            if len(rows.places):
                X, y, weight = version_1.rounded_as_in(self.origin, batch)
                self.model.partial_fit(X, y, sample_weight=weight)
                self._ledger.rows.add(rows.digests, rows.ids)
                self._added.add(rows)
        last, request = self._before, self._rows_request()
        learned = "learn", self._added.rows, request
        if once and self._secret and learned == (last.kind, last.rows, last.request):
            raise AlreadyLearnedError(
                f"The last change (entry {last.sequence}, {last.time}) learned exactly these "
                f"{last.rows} rows. Leave out once to learn them twice. Nothing was changed."
            )
        return self._commit("learn", request)

    def forget(self, rows: RowBatch, batch: bool, name: str | None) -> Any:
        """Forget rows, or a slice; with `batch`, once there are enough rows in the queue."""
        X = rows[0]
        if (
            isinstance(X, str | os.PathLike | Knowledge)
            or hasattr(X, "partial_fit")
            or hasattr(X, "_folder")
        ):
            return self.take_out(X, name)
        batches = row_batches(*rows)
        if self._known:
            return self._rows_again("forget", removed=batches)
        if batch:
            return self._enqueue(batches)
        for held in self._taken(batches, self._ledger.rows.remove):
            self.model.forget(*version_1.rounded_as_in(self.origin, held))
        return self._commit("forget", self._rows_request())

    def relabel(self, before: RowBatch, after: RowBatch) -> Any:
        """Give rows other labels or targets."""
        if self._known:
            return self._rows_again("relabel", [before], [after])
        for held in self._taken([before], self._ledger.rows.remove):
            rows = self._hasher(after)
            self._ledger.rows.add(rows.digests, rows.ids)
            self._added.add(rows)
            old, new = (version_1.rounded_as_in(self.origin, rows) for rows in (held, after))
            self.model.update(add=new, forget=old)
        return self._commit("relabel", self._rows_request())

    def _rows_request(self) -> str | None:
        """The hash of a request for these rows; raises if there are none."""
        if not (self._removed.rows or self._added.rows):
            raise ValueError("There are no rows, or all have weight zero. Nothing was changed.")
        return self._hasher.request(self._removed, self._added)

    def _taken(
        self, batches: Iterable[RowBatch], remove: Callable[[list[bytes], list[bytes]], Taken]
    ) -> Iterator[RowBatch]:
        """Remove the digests of batches, and yield each batch; raises if a row is not held."""
        if self._secret is None:
            raise StoreError(
                "The secret of this store was destroyed, so it cannot tell which rows it holds: "
                "only whole slices can be forgotten (a Knowledge, or the file of a model), and not "
                "rows. Nothing was changed."
            )
        start, reserved, missing = 0, 0, []
        for batch in batches:
            rows = self._hasher(batch)
            ours = getattr(self.model, "n_features_in_", rows.width)
            if rows.width != ours:
                raise ValueError(
                    f"X has {rows.width} features, but the model of this store has {ours}. Nothing "
                    "was changed."
                )
            lost, held_as = remove(rows.digests, rows.ids)
            if lost:
                missing += [start + int(rows.places[i]) for i in lost]
                reserved += self._ledger.rows.count_reserved(rows.digests[i] for i in lost)
            if rows.digests and not missing:
                yield (*batch[:3], rows.spread(held_as)) if any(held_as) else batch
            self._removed.add(rows, held_as)
            start += rows.length
        if missing:
            raise NotLearnedError(self._not_held(missing, start, reserved))

    def _not_held(self, missing: list[int], n: int, reserved: int) -> str:
        places = ", ".join(map(str, missing[:_SHOWN])) + (", …" if len(missing) > _SHOWN else "")
        said = (
            f"{len(missing)} of {n} rows are not held here (with this label and weight, as often): "
            f"number {places} (counted from 0). They were never learned, or are forgotten already."
        )
        if reserved:
            said += f" {reserved} of them wait in the queue already."
        if self._before.unknown:
            said += (
                f" {self._before.unknown} rows came by merge, without their digests, and can only "
                "go as the slice they came in: forget the Knowledge, or the file, that was merged."
            )
        return f"{said} Nothing was changed."

    # --- the queue ------------------------------------------------------------------------

    def _enqueue(self, batches: Iterable[RowBatch]) -> Receipt | Queued:
        """Keep rows until they can be forgotten with others; forget all if that is safe now."""
        kept = [plain_arrays(batch) for batch in self._taken(batches, self._ledger.rows.reserve)]
        again = self._tally(kept).checksum
        if checksum_text(again) != checksum_text(self._removed.checksum):
            raise ValueError(
                "These labels cannot be kept in the queue as they are. Forget the rows without "
                "batch=True (--batch). Nothing was changed."
            )
        request = self._rows_request()
        self._ledger.queue.put(self._key, kept, self._removed)
        if self._key is not None:
            self._ledger.note(Request(self._key, "forget", self._removed.rows, request, None))
        if self._ledger.queue.is_safe():
            return self._flush()
        self._ledger.commit()
        return self._ledger.queue.pending()[-1]

    def flush(self, force: bool) -> list[Receipt]:
        """Forget all rows that wait, if there are enough of them, or by force."""
        queue = self._ledger.queue
        return [self._flush()] if queue.pending() and (force or queue.is_safe()) else []

    def _flush(self) -> Receipt:
        queue, self._removed = self._ledger.queue, Tally()
        keys = tuple(queued.key for queued in queue.pending() if queued.key is not None)
        with warnings.catch_warnings():  # the queue keeps rows without the names of columns
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            for held in self._taken(queue.batches(), self._ledger.rows.remove_reserved):
                self.model.forget(*version_1.rounded_as_in(self.origin, held))
        queue.clear()
        return self._commit("forget", self._rows_request(), keys=keys)

    # --- slices ---------------------------------------------------------------------------

    def merge(self, other: Any, name: str | None, again: bool) -> Any:
        """Take in what another model has learned; knowledge of fewer than no rows takes it out."""
        if isinstance(other, Knowledge) and other.n_samples < 0:
            return self.take_out(-other, name)
        with open_merge_source(other, self._hasher, self._folder) as source:
            requests = self._slice_requests(source)
            if self._known:
                return self._first_answer("merge", source.rows, *requests)
            what = source.knowledge if source.estimator is None else source.estimator
            self._merge(what, source, name, again)
            self._ledger.rows.add_counted(source.count_into(self._added))
            self._unknown += source.unknown
            return self._commit("merge", requests[0], subject=name)

    def take_out(self, other: Any, name: str | None) -> Any:
        """Take out a slice that was merged."""
        with open_merge_source(other, self._hasher, self._folder) as source:
            requests = self._slice_requests(source)
            if self._known:
                return self._first_answer("forget", source.rows, *requests)
            self._check_merged(source, requests)
            self._merge(-source.knowledge, source, name, again=False)
            counted = source.count_into(self._removed)
            each = [row for *row, n in counted for _ in range(n)]
            lost, _ = self._ledger.rows.remove([d for d, _ in each], [i for _, i in each])
            if lost:
                raise NotLearnedError(
                    f"{len(lost)} of the {source.rows} rows of the slice are not held here, or "
                    "wait in the queue. Nothing was changed."
                )
            self._unknown -= source.unknown
            return self._commit("forget", requests[0], subject=name)

    def _merge(self, other: Any, source: MergeSource, name: str | None, again: bool) -> None:
        """Merge under a name, or under the digest by which a model of version 1 knows the slice."""
        if not hasattr(self.model, "merge"):
            raise TypeError(
                f"A {type(self.model).__name__} has no merge: it keeps its rows. Learn, or forget, "
                "the rows themselves. Nothing was changed."
            )
        merged = getattr(self.model, "merged_", {})
        old = next((digest for digest in self._old_digest(source) if digest in merged), None)
        self.model.merge(other, name=name or old, again=again)

    def _check_merged(self, source: MergeSource, requests: list[str | None]) -> None:
        """Raise unless the rows without digests came in this slice."""
        came = [entry.kind for entry in self._ledger.entries() if entry.request in requests]
        merged = self._secret is None or came.count("merge") > came.count("forget")
        if source.unknown and (source.unknown > self._unknown or not merged):
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
        return self._commit("seal", None)

    def destroy(self, what: str) -> Any:
        """Destroy the secret or the model; the digests go with either."""
        if self._known:
            return self._first_answer("destroy", 0, what)
        if self._secret is None if what == "secret" else self._before.generation is None:
            raise StoreError(f"The {what} of this store was destroyed before. Nothing was changed.")
        if self._ledger.queue.pending():
            raise StoreError(
                "Requests wait in the queue, and could then never be met: flush them first. "
                "Nothing was changed."
            )
        self._ledger.rows.clear()
        if what == "secret":
            self._secret = None
        else:
            self.model, self.cached, self._unknown = None, None, 0
            self._removed.checksum = int(self._before.alive or "0", 16)  # chain: and the lanes
            self._removed.classes.update(self._ledger.class_counts())
        return self._commit("destroy", what, subject=what)

    # --- the entry ------------------------------------------------------------------------

    def _commit(
        self,
        kind: str,
        request: str | None,
        subject: str | None = None,
        keys: tuple[str, ...] | None = None,
    ) -> Receipt:
        """Write the new model and the entry, commit both, and remove the model before."""
        before, removed, added = self._before, self._removed, self._added
        counts = Counter(added.classes)
        counts.subtract(removed.classes)
        classes = {label: n for label, n in sorted(counts.items()) if n}
        alive = checksum_text(int(before.alive or "0", 16) + added.checksum - removed.checksum)
        revealing = removed.rows > 0 and not are_enough(removed.rows, removed.classes)
        if revealing:
            warnings.warn(_REVEALING, RevealingWarning, stacklevel=4)
        model = None if before.generation is None else self.model
        state, name, sha256 = ModelState.of(model), None, None
        if model is not None:
            name, sha256 = self._folder.write(model, before.sequence + 1)
        try:
            if name is not None:
                self._read_back(name, sha256, state)
            entry = Entry.after(
                before,
                state,
                kind=kind,
                keys=keys or (() if self._key is None else (self._key,)),
                rows=max(removed.rows, added.rows),
                classes=classes,
                unknown=state.held if self._secret is None else self._unknown,
                alive=None if self._secret is None else alive,
                request=request,
                generation=name,
                sha256=sha256,
                revealing=revealing,
                subject=subject,
                origin=before.origin,
            )
            self._ledger.append(entry)
        except BaseException:
            if name is not None:
                self._folder.remove(self._folder.generations / name)
            raise
        self._ledger.commit()
        self._folder.tidy(self._ledger, committed=entry)
        self._before = entry
        return Receipt.of(entry, self.origin)

    def _read_back(self, name: str, sha256: str | None, state: ModelState) -> None:
        """Make sure that the file holds the model, since the model before will be removed."""
        try:
            self.model = self._folder.read(name, sha256)
            self.cached = name, self.model
        except FileError as error:
            raise StoreError(
                f"The new model cannot be read back from its file: {error} Nothing was changed."
            ) from error
        if ModelState.of(self.model) != state:
            raise StoreError("The file of the new model holds another one. Nothing was changed.")
