"""A change in the making: the model, the digests and the entry, until one commit makes it so.

Whatever is raised before the commit leaves the store as it was: the transaction is rolled
back, the model in memory is thrown away, and a file that was written is removed.
"""

from __future__ import annotations

import sqlite3
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

from traceless.exceptions import (
    AlreadyLearnedError,
    FileError,
    NotLearnedError,
    RevealingWarning,
    StoreError,
)
from traceless.store import version_1
from traceless.store.alive import Alive
from traceless.store.entries import Entry, now
from traceless.store.folder import Folder
from traceless.store.ledger import Ledger, Request
from traceless.store.queue import SAFE_ROWS, Queue, Queued, is_safe, plain
from traceless.store.receipts import Receipt
from traceless.store.roots import digest_of, held, root_of
from traceless.store.rows import Batch, Printer, Prints, Tally, checksum_text
from traceless.store.slices import Slice

Asked = tuple[int, Sequence[str | None]]  # rows of a request, and what it can be recognised by
Cached = tuple[str, Any] | None  # a generation, and the model that it holds

_SHOWN = 5  # places of rows that an error names
_REVEALING = (
    f"Fewer than {SAFE_ROWS} rows of a class change at once: whoever holds the models before and "
    "after can reconstruct them. Collect requests to forget with batch=True (--batch), and see "
    "that no copy of the model before is left."
)


class Change:
    """One change of a store.

    Parameters
    ----------
    folder : Folder
    ledger : Ledger
        In a transaction.
    cached : tuple, optional
        A generation, and its model, which is used up.
    """

    def __init__(self, folder: Folder, ledger: Ledger, cached: Cached = None) -> None:
        self._folder, self._ledger, self._cached = folder, ledger, cached
        self._before, self._origin = ledger.last(), ledger.origin()
        self.secret = folder.secret(self._before)
        self.printer = Printer.of(self.secret, self._origin)
        self.printer.check_secret(self._origin["secret"])
        self._alive, self.queue = Alive(ledger.sql), Queue(ledger.sql)
        self._gone, self._come = Tally(), Tally()
        self._unknown = self._before.unknown
        self._request: str | None = None
        self._revealing = False
        self._subject: str | None = None

    @cached_property
    def model(self) -> Any:
        """The model, to be changed."""
        if self._cached and self._cached[0] == self._before.generation:
            return self._cached[1]
        return self._folder.load(self._before)

    # --- requests that came before --------------------------------------------------------

    def recall(
        self, kind: str, key: str | None, asked: Callable[[], Asked]
    ) -> Receipt | Queued | None:
        """The answer to a request of this key, if there was one; raises if it was another one."""
        said = None if key is None else self._ledger.request(key)
        if said is None:
            return None
        rows, requests = asked()
        same = said.request in requests or self.secret is None
        if (kind, rows) != (said.kind, said.rows) or not same:
            raise StoreError(
                f"The key {key!r} is that of another request: {said.kind} of {said.rows} rows, "
                f"where this one is {kind} of {rows}{'' if same else ', and other ones'}. Give "
                "every request a key of its own. Nothing was changed."
            )
        if said.sequence is None:
            return next(q for q in self.queue.pending(replayed=True) if q.key == key)
        return Receipt.of(self._ledger.entry(said.sequence), self._origin, replayed=True)

    def asked(self, gone: Iterable[Batch] = (), come: Iterable[Batch] = ()) -> Asked:
        """What a request for these rows is recognised by."""
        both = [Tally().take_all(self.printer, batches) for batches in (gone, come)]
        return max(tally.rows for tally in both), [self.printer.request(*both)]

    def requests_of(self, part: Slice) -> list[str | None]:
        """What a request with a slice can be recognised by."""
        digests = [part.knowledge.digest(), *self._old_digest(part)]
        return [self.printer.request(digest) for digest in digests]

    def _old_digest(self, part: Slice) -> list[str]:
        """The digest that a slice had when this store was made, if it had one."""
        if version_1.made(self._origin):
            with suppress(ValueError):  # of weights that it could not have had then
                return [version_1.digest_of_knowledge(part.knowledge)]
        return []

    def _known_as(self, part: Slice, name: str | None) -> str | None:
        """The name of a slice; an old digest, if the model knows it by that."""
        merged = getattr(self.model, "merged_", {})
        return name or next((old for old in self._old_digest(part) if old in merged), None)

    # --- rows -----------------------------------------------------------------------------

    def learn(self, key: str | None, batches: Iterable[Batch], once: bool) -> Receipt:
        """Rows that come."""
        for X, y, weight in batches:
            prints = self.printer((X, y, weight))
            if len(prints.places):
                self.model.partial_fit(X, y, sample_weight=self._weighed((X, y, weight))[2])
                self._alive.learn(prints.digests)
                self._come.take(prints)
        self._recognise()
        last = self._before
        asked = "learn", self._come.rows, self._request
        if once and asked == (last.kind, last.rows, last.request) and self.secret:
            raise AlreadyLearnedError(
                f"The last change (entry {last.sequence}, {last.time}) learned exactly these "
                f"{last.rows} rows. Leave out once to learn them twice. Nothing was changed."
            )
        return self._commit("learn", key)

    def forget(self, key: str | None, batches: Iterable[Batch]) -> Receipt:
        """Rows that go."""
        self._claim(batches, self._alive.forget, self._forget)
        self._recognise()
        self._warn()
        return self._commit("forget", key)

    def relabel(self, key: str | None, before: Batch, after: Batch) -> Receipt:
        """Rows that get other labels or targets."""
        self._claim([before], self._alive.forget, lambda _: None)
        prints = self.printer(after)
        if prints.digests:
            self._alive.learn(prints.digests)
            self._come.take(prints)
            self.model.update(add=self._weighed(after), forget=self._weighed(before))
        self._recognise()
        self._warn()
        return self._commit("relabel", key)

    # --- the queue ------------------------------------------------------------------------

    def put_aside(self, key: str | None, batches: Iterable[Batch]) -> Receipt | Queued:
        """Rows that are to be forgotten with others; all of them, if that is safe now."""
        kept: list[Batch] = []
        self._claim(batches, self._alive.reserve, lambda batch: kept.append(plain(batch)))
        if str(Tally().take_all(self.printer, kept)) != str(self._gone):
            raise ValueError(
                "These labels cannot be kept in the queue as they are. Forget the rows without "
                "batch=True (--batch). Nothing was changed."
            )
        self._check_rows()
        self._recognise()
        self.queue.put(key, kept, self._gone)
        if key is not None:
            self._ledger.note(Request(key, "forget", self._gone.rows, self._request, None))
        if self.queue.is_safe():
            return self.flush()
        self._ledger.commit()
        return self.queue.pending()[-1]

    def flush(self) -> Receipt:
        """Forget all rows that wait."""
        keys = [queued.key for queued in self.queue.pending() if queued.key is not None]
        self._gone = Tally()
        with warnings.catch_warnings():  # the queue keeps rows, and not the names of columns
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            self._claim(self.queue.batches(), self._alive.forget_queued, self._forget)
        self.queue.clear()
        self._recognise()
        self._warn()
        return self._commit("forget", *keys)

    # --- slices ---------------------------------------------------------------------------

    def merge(self, key: str | None, part: Slice, name: str | None, again: bool) -> Receipt:
        """What another model has learned."""
        what = part.knowledge if part.estimator is None else part.estimator
        self._merge(what, self._known_as(part, name), again)
        self._alive.learn_counted(_summed(part, self._come))
        self._note_slice(part, name, self._come)
        self._unknown += part.unknown
        return self._commit("merge", key)

    def take_out(self, key: str | None, part: Slice, name: str | None) -> Receipt:
        """A whole slice that goes again."""
        self._check_merged(part)
        self._merge(-part.knowledge, self._known_as(part, name), again=False)
        counted = _summed(part, self._gone)
        missing = self._alive.forget(digest for digest, n in counted for _ in range(n))
        if missing:
            raise NotLearnedError(
                f"{len(missing)} of the {part.rows} rows of the slice are not held here, or wait "
                "in the queue. Nothing was changed."
            )
        self._note_slice(part, name, self._gone)
        self._unknown -= part.unknown
        self._warn()
        return self._commit("forget", key)

    # --- the rest -------------------------------------------------------------------------

    def seal(self, key: str | None) -> Receipt:
        """Coefficients to the last bit; models without `seal` have them always."""
        if hasattr(self.model, "seal") and held(self.model):
            self.model.seal()
        return self._commit("seal", key)

    def destroy(self, key: str | None, what: str) -> Receipt:
        """Give up the secret, or the model; the digests go with either."""
        gone = self.secret is None if what == "secret" else self._before.generation is None
        if gone or self.queue.pending():
            why = (
                f"The {what} of this store was destroyed before."
                if gone
                else "Requests wait in the queue, and could then never be met: flush them first."
            )
            raise StoreError(f"{why} Nothing was changed.")
        self._subject = self._request = what
        self._alive.clear()
        if what == "secret":
            self.secret = None
        else:
            self.model, self._unknown = None, 0
            self._gone.checksum = self._checksum_before()
            self._gone.classes.update(self._ledger.class_counts())
        return self._commit("destroy", key)

    # --- the entry ------------------------------------------------------------------------

    def _commit(self, kind: str, *keys: str | None) -> Receipt:
        """Write the new model and the entry, make both so, and remove what they replace."""
        if kind in ("learn", "forget", "relabel"):
            self._check_rows()
        facts = self._facts(kind, [key for key in keys if key is not None])
        name, sha256 = None, None
        if self._kept is not None:
            name, sha256 = self._folder.write(self._kept, facts["sequence"])
        try:
            if name is not None:
                self._read_back(name, sha256, facts["digest_after"])
            entry = Entry.hashed(**facts, generation=name, sha256=sha256)
            self._ledger.append(entry)
        except BaseException:
            self._folder.discard(name)
            raise
        self._ledger.commit()
        tidy(self._folder, self._ledger)
        self._before = entry
        return Receipt.of(entry, self._origin)

    def _read_back(self, name: str, sha256: str | None, digest: str | None) -> None:
        """Make sure that the file holds the model, since the one before will be gone."""
        try:
            self.model = self._folder.read(name, sha256)
        except FileError as error:
            raise StoreError(
                f"The new model cannot be read back from its file: {error} Nothing was changed."
            ) from error
        if digest_of(self.model) != digest:
            raise StoreError("The file of the new model holds another one. Nothing was changed.")

    def result(self) -> Cached:
        """The model after the change, for the next one."""
        generation = self._before.generation
        if generation is None or "model" not in self.__dict__:
            return self._cached
        return generation, self.model

    @property
    def _kept(self) -> Any:
        """The model as it is to be kept; None if it was destroyed."""
        return None if self._before.generation is None else self.model

    @property
    def _rows(self) -> int:
        return max(self._gone.rows, self._come.rows)

    def _check_rows(self) -> None:
        if not self._rows:
            raise ValueError("There are no rows, or all have weight zero. Nothing was changed.")

    def _checksum_before(self) -> int:
        return int(self._before.alive or "0", 16)

    def _facts(self, kind: str, keys: Sequence[str]) -> dict[str, Any]:
        before, model = self._before, self._kept
        changed = Counter(self._come.classes)
        changed.subtract(self._gone.classes)
        alive = self._checksum_before() + self._come.checksum - self._gone.checksum
        return {
            "sequence": before.sequence + 1,
            "kind": kind,
            "time": now(),
            "keys": keys,
            "rows": self._rows,
            "classes": {label: n for label, n in sorted(changed.items()) if n},
            "held": held(model),
            "unknown": held(model) if self.secret is None else self._unknown,
            "digest_before": before.digest_after,
            "digest_after": digest_of(model),
            "root_before": before.root_after,
            "root_after": root_of(model),
            "alive": None if self.secret is None else checksum_text(alive),
            "request": self._request,
            "revealing": self._revealing,
            "subject": self._subject,
            "origin": before.origin,
            "previous": before.hash,
        }

    # --- inside ---------------------------------------------------------------------------

    def _claim(
        self,
        batches: Iterable[Batch],
        claim: Callable[[Iterable[bytes]], list[int]],
        act: Callable[[Batch], object],
    ) -> None:
        """Act on batches if each of their rows can be claimed; raises if one cannot."""
        if self.secret is None:
            raise StoreError(
                "The secret of this store was destroyed, so it cannot tell which rows it holds: "
                "only whole slices can be forgotten (a Knowledge, or the file of a model), and not "
                "rows. Nothing was changed."
            )
        start, queued, missing = 0, 0, []
        for batch in batches:
            prints = self.printer(batch)
            self._check_width(prints)
            lost = claim(prints.digests)
            missing += [start + int(prints.places[i]) for i in lost]
            queued += self._alive.queued_among(prints.digests[i] for i in lost)
            if prints.digests and not missing:
                act(batch)
            self._gone.take(prints)
            start += prints.length
        if missing:
            raise NotLearnedError(self._who_is_missing(missing, start, queued))

    def _check_width(self, prints: Prints) -> None:
        ours = getattr(self.model, "n_features_in_", prints.width)
        if prints.width != ours:
            raise ValueError(
                f"X has {prints.width} features, but the model of this store has {ours}. Nothing "
                "was changed."
            )

    def _who_is_missing(self, missing: list[int], n: int, queued: int) -> str:
        places = ", ".join(map(str, missing[:_SHOWN])) + (", …" if len(missing) > _SHOWN else "")
        waiting = f" {queued} of them wait in the queue already." if queued else ""
        unknown = self._before.unknown
        merged = (
            f" {unknown} rows came by merge, without their digests, and can only go as the slice "
            "they came in: forget the Knowledge, or the file, that was merged."
        )
        return (
            f"{len(missing)} of {n} rows are not held here (with this label and weight, as often): "
            f"number {places} (counted from 0). They were never learned, or are forgotten already."
            f"{waiting}{merged if unknown else ''} Nothing was changed."
        )

    def _forget(self, batch: Batch) -> None:
        self.model.forget(*self._weighed(batch))

    def _weighed(self, batch: Batch) -> Batch:
        """A batch with weights as this store has always rounded them."""
        return version_1.weighed(batch) if version_1.made(self._origin) else batch

    def _merge(self, other: Any, name: str | None, again: bool) -> None:
        if not hasattr(self.model, "merge"):
            raise TypeError(
                f"A {type(self.model).__name__} has no merge: it keeps its rows. Learn, or forget, "
                "the rows themselves. Nothing was changed."
            )
        self.model.merge(other, name=name, again=again)

    def _check_merged(self, part: Slice) -> None:
        """Raise if rows without digests would go that did not come so."""
        came = self.secret is None or self._ledger.times_merged(*self.requests_of(part))
        if part.unknown and (part.unknown > self._unknown or not came):
            raise NotLearnedError(
                f"This slice of {part.rows} rows was not merged here as it is now, or is taken out "
                "already. Slices go as they came; forget other rows themselves, or give a store "
                "with the same secret that holds them. Nothing was changed."
            )

    def _note_slice(self, part: Slice, name: str | None, tally: Tally) -> None:
        tally.rows = part.rows
        tally.classes.update(part.classes())
        self._subject = name
        self._request = self.requests_of(part)[0]

    def _recognise(self) -> None:
        self._request = self.printer.request(self._gone, self._come)

    def _warn(self) -> None:
        """Say so, and note it, if the rows that go are too few to hide among each other."""
        self._revealing = bool(self._rows) and not is_safe(self._gone)
        if self._revealing:
            warnings.warn(_REVEALING, RevealingWarning, stacklevel=6)


def _summed(part: Slice, tally: Tally) -> Iterator[tuple[bytes, int]]:
    """The digests of a slice, added to the checksum on their way."""
    for digest, n in part.counted:
        tally.checksum += n * int.from_bytes(digest, "little")
        yield digest, n


def tidy(folder: Folder, ledger: Ledger, committed: bool = True) -> None:
    """Empty SQLite's log, and remove the files that the ledger no longer names.

    After a commit the change is made, whatever happens here: what cannot be removed is left to
    the next process. Before one, files go only once the log is empty, since what a failed
    commit wrote into it could still come back.
    """
    with suppress(OSError, sqlite3.Error):
        if ledger.empty_log() or committed:
            with ledger.alone():
                folder.sweep(ledger.last())
