"""Verification: everything that the ledger says is recomputed from what is there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from traceless import loading, saving
from traceless.exceptions import StoreBusyError, StoreError
from traceless.store.alive import Alive
from traceless.store.checks import Check, Verification
from traceless.store.entries import Entry, hash_of
from traceless.store.folder import Folder
from traceless.store.ledger import Ledger, changing, reading
from traceless.store.lock import writing
from traceless.store.queue import Queue
from traceless.store.receipts import digest_of, held, refitted
from traceless.store.rows import Batch, Printer, Tally, root_text
from traceless.store.snapshot import snapshot


def verify(folder: Folder, batches: Iterable[Batch] | None) -> Verification:
    """All checks of a store; with rows, those of the model and the root against them."""
    try:
        with snapshot(folder) as (ledger, _, model):
            return Verification(tuple(Auditor(folder, ledger, model).checks(batches)))
    except StoreError as error:
        return Verification((Check("model", False, str(error)), *_of_ledger_alone(folder)))


def _of_ledger_alone(folder: Folder) -> Iterator[Check]:
    try:
        with reading(folder.ledger) as ledger:
            yield from Auditor(folder, ledger, None).of_ledger()
    except StoreError as error:
        yield Check("ledger", False, str(error))


class Auditor:
    """The checks of one state of a store. Each returns what it found, or raises `StoreError`."""

    def __init__(self, folder: Folder, ledger: Ledger, model: Any) -> None:
        self.folder, self.ledger, self.model = folder, ledger, model

    def checks(self, batches: Iterable[Batch] | None) -> Iterator[Check]:
        """All of them."""
        yield from self.of_ledger()
        yield _checked("model", self._model)
        if batches is not None:
            yield from self._against(batches)

    def of_ledger(self) -> Iterator[Check]:
        """Those that need no model."""
        yield _checked("ledger", self._ledger)
        yield _checked("chain", self._chain)
        yield _checked("requests", self._requests)
        yield _checked("rows", self._rows)
        yield _checked("queue", self._queue)
        yield _checked("secret", self._secret)
        yield _checked("files", self._files)

    def _ledger(self) -> str:
        problems = self.ledger.problems()
        _need(not problems, f"SQLite finds its file damaged: {'; '.join(problems)}")
        return "the file is sound"

    def _chain(self) -> str:
        before: Entry | None = None
        classes: Counter[str] = Counter()
        origin = hash_of(self.ledger.origin())
        for entry in self.ledger.entries():
            _need(entry.origin == origin, f"entry {entry.sequence} is of another store")
            _check_link(before, entry)
            classes.update(entry.classes)
            before = entry
        _need(before is not None, "there are no entries")
        counts = {label: n for label, n in classes.items() if n}
        _need(counts == self.ledger.class_counts(), "the counts of the classes are not their sum")
        return f"{self.ledger.last().sequence + 1} entries, each with the hash of the one before"

    def _requests(self) -> str:
        said = {key: entry.sequence for entry in self.ledger.entries() for key in entry.keys}
        waiting = {queued.key for queued in Queue(self.ledger.sql).pending()} - {None}
        found = self.ledger.requests()
        answered = {r.key: r.sequence for r in found if r.sequence is not None}
        _need(said == answered, "the keys of requests are not those of the entries")
        _need(
            {r.key for r in found if r.sequence is None} == waiting,
            "the keys of requests that wait are not those of the queue",
        )
        return f"{len(said)} keys of requests are those of the entries"

    def _rows(self) -> str:
        last = self.ledger.last()
        rows, root = Alive(self.ledger.sql).totals()
        _need(
            rows == last.held - last.unknown,
            f"{rows} rows are known by their digests, and should be {last.held - last.unknown}",
        )
        _need(
            root_text(root) == (last.root_after or root_text(0)),
            "the root over the digests is not that of the latest entry",
        )
        return f"{rows} digests have the root {last.root_after}"

    def _queue(self) -> str:
        waiting: Counter[bytes] = Counter()
        for batch in Queue(self.ledger.sql).batches():
            waiting.update(self._printer()(batch).digests)
        _need(
            waiting == Counter(dict(Alive(self.ledger.sql).queued())),
            "the rows that wait are not those that are reserved",
        )
        return f"{waiting.total()} rows wait to be forgotten"

    def _secret(self) -> str:
        if self.ledger.last().root_after is None:
            return "it was destroyed"
        self._printer().check_secret(self.ledger.origin()["secret"])
        return "it is that of this store"

    def _files(self) -> str:
        left = self.folder.left_over(self.ledger.last())
        if left:
            try:
                with (
                    writing(self.folder.lock, 0.0),
                    changing(self.folder.ledger, 0.0) as now,
                ):
                    left = self.folder.left_over(now.last())
            except StoreBusyError:
                return "another process is changing the store, and will remove what it replaces"
        names = ", ".join(path.name for path in left[:5])
        _need(not left, f"there are files that should be gone: {names}")
        return "there are none but those that the ledger names"

    def _model(self) -> str:
        last, model = self.ledger.last(), self.model
        if model is None:
            return "it was destroyed"
        _need(digest_of(model) == last.digest_after, "its digest is not that of the latest entry")
        _need(held(model) == last.held, f"it holds {held(model)} rows, and should {last.held}")
        _need(
            saving.described(model) == self.ledger.origin()["model"],
            "its parameters are not those that the store was made with",
        )
        return f"its file and its digest {last.digest_after} are those of the latest entry"

    def _against(self, batches: Iterable[Batch]) -> Iterator[Check]:
        """The model and the root, recomputed from rows."""
        last, tally, printer = self.ledger.last(), Tally(), self._printer()

        def counted() -> Iterator[Batch]:
            for batch in batches:
                tally.take(printer(batch))
                yield batch

        model = loading.from_description(self.ledger.origin()["model"])
        yield refitted(model, last, counted(), None, None, name="refit")
        if last.root_after is not None and not last.unknown:
            ok = root_text(tally.root) == last.root_after
            said = "is" if ok else "is not"
            yield Check("root", ok, f"the root over these rows {said} that of the latest entry")

    def _printer(self) -> Printer:
        secret = self.folder.secret(self.ledger.last())
        return Printer(secret, self.ledger.origin()["task"] == "classification")


def _check_link(before: Entry | None, entry: Entry) -> None:
    """Raise if an entry is not intact, or does not go on where the one before ended."""
    where = f"entry {entry.sequence}"
    _need(entry.is_intact(), f"{where} was changed after it was written")
    if before is None:
        _need(entry.sequence == 0 and entry.kind == "new", f"the first is {where}, a {entry.kind}")
        return
    _need(entry.sequence == before.sequence + 1, f"{where} follows entry {before.sequence}")
    _need(
        (entry.previous, entry.digest_before, entry.root_before)
        == (before.hash, before.digest_after, before.root_after),
        f"{where} does not go on where the one before ended",
    )


def _checked(name: str, check: Callable[[], str]) -> Check:
    try:
        return Check(name, True, check())
    except StoreError as error:
        return Check(name, False, str(error))


def _need(ok: bool, said: str) -> None:
    if not ok:
        raise StoreError(said)
