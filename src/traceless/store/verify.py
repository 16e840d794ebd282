"""Verification: everything that the ledger says is recomputed from what is there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from traceless.estimators import loading
from traceless.exceptions import StoreBusyError, StoreError
from traceless.files import saving
from traceless.store import version_1
from traceless.store.alive import Alive
from traceless.store.checks import Check, Verification
from traceless.store.entries import Entry, hash_of
from traceless.store.folder import Folder
from traceless.store.ledger import Ledger, changing, reading
from traceless.store.lock import writing
from traceless.store.queue import Queue
from traceless.store.receipts import compared, learned
from traceless.store.roots import digest_of, held, root_of
from traceless.store.rows import Batch, Printer, Tally, checksum_text
from traceless.store.snapshot import snapshot


def verify(folder: Folder, batches: Iterable[Batch] | None) -> Verification:
    """All checks of a store; with rows, those of the model, the root and the digests."""
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
        said = self.ledger.origin()
        origin, old = hash_of(said), version_1.made(said)
        for entry in self.ledger.entries():
            _need(entry.origin == origin, f"entry {entry.sequence} is of another store")
            _need(old or entry.version > 1, f"entry {entry.sequence} is older than its store")
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
        rows, checksum = Alive(self.ledger.sql).totals()
        _need(
            rows == last.held - last.unknown,
            f"{rows} rows are known by their digests, and should be {last.held - last.unknown}",
        )
        _need(
            checksum_text(checksum) == (last.alive or checksum_text(0)),
            "the checksum over the digests is not that of the latest entry",
        )
        return f"{rows} digests have the checksum {last.alive}"

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
        if self.ledger.last().alive is None:
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
        _need(held(model) == last.held, f"it holds {held(model)} rows, and should {last.held}")
        made = loading.from_description(self.ledger.origin()["model"])
        _need(
            saving.described(model) == saving.described(made),
            "its parameters are not those that the store was made with",
        )
        if last.version == 1:
            return self._old_model(last)
        _need(digest_of(model) == last.digest_after, "its digest is not that of the latest entry")
        _need(root_of(model) == last.root_after, "its root is not that of the latest entry")
        return f"its file, root and digest {last.digest_after} are those of the latest entry"

    def _old_model(self, last: Entry) -> str:
        digest = version_1.digest(self.model) if last.held else None
        if digest is None and last.held:
            return f"its file is that of the latest entry; its digest is {version_1.UNKNOWN}"
        _need(digest == last.digest_after, "its digest is not that of the latest entry")
        return f"its file and its digest {digest} are those of the latest entry ({version_1.LACKS})"

    def _against(self, batches: Iterable[Batch]) -> Iterator[Check]:
        """The model, the root and the checksum over the digests, recomputed from rows."""
        last, tally, printer = self.ledger.last(), Tally(), self._printer()

        def counted() -> Iterator[Batch]:
            for batch in batches:
                tally.take(printer(batch))
                yield batch

        model = learned(self.ledger.origin(), counted())
        if last.version > 1 or version_1.digest(model) is not None or not last.held:
            yield from compared(model, last, "refit")
        else:  # a model that keeps its rows: they can be compared, and its digest cannot
            same = self.model is not None and digest_of(model) == digest_of(self.model)
            said = "is" if same else "is not"
            yield Check("refit", same, f"a fit from scratch {said} the model in the file")
        if last.alive is not None and not last.unknown:
            ok = checksum_text(tally.checksum) == last.alive
            said = "have" if ok else "do not have"
            yield Check("digests", ok, f"these rows {said} the digests that are kept here")

    def _printer(self) -> Printer:
        return Printer.of(self.folder.secret(self.ledger.last()), self.ledger.origin())


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
