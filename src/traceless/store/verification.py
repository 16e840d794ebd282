"""Verification: everything that the ledger or a receipt says is recomputed and compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from traceless.estimators import loading
from traceless.exceptions import StoreError
from traceless.files import saving
from traceless.store import version_1
from traceless.store.entries import Entry, ModelState, hash_of
from traceless.store.folder import Folder
from traceless.store.ids import hash_of_lines
from traceless.store.ledger import Ledger
from traceless.store.lock import no_writer
from traceless.store.opening import open_ledger
from traceless.store.receipts import Receipt
from traceless.store.row_digests import RowBatch, RowHasher, Tally, checksum_text, row_batches
from traceless.store.row_lanes import lanes_text, no_lanes


@dataclass(frozen=True)
class Check:
    """One check of a verification.

    Attributes
    ----------
    name : str
    ok : bool
    said : str
        What was found.
    """

    name: str
    ok: bool
    said: str


@dataclass(frozen=True)
class Verification:
    """All checks of a verification.

    Attributes
    ----------
    checks : tuple of Check
    """

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether every check passed."""
        return all(check.ok for check in self.checks)

    def __str__(self) -> str:
        return "\n".join(f"{'ok ' if c.ok else 'BAD'} {c.name}: {c.said}" for c in self.checks)


def verify_receipt(
    receipt: Receipt, X: Any, y: Any = None, sample_weight: Any = None
) -> Verification:
    """Check a receipt against the rows that remained, without the store.

    A model as the receipt describes it learns the rows from scratch. If it has the digest and
    the root that the receipt gives, then the model held these rows after the change, and no
    others: as often, with these labels and weights, and to the resolution of the feature map.
    (A receipt of version 1 has no root: other rows with the same sums pass as well.)

    Parameters
    ----------
    receipt : Receipt
    X, y, sample_weight
        All rows that the model held after the change, in any order; or in place of X an
        iterable of batches (X, y) or (X, y, sample_weight).

    Returns
    -------
    Verification
    """
    ok = receipt.check()
    said = "its hashes are right" if ok else "it was changed after it was written"
    model = _fit_from_scratch(receipt.store, row_batches(X, y, sample_weight))
    return Verification((Check("receipt", ok, said), *_compare(model, receipt, "model")))


def verify(folder: Folder, batches: Iterable[RowBatch] | None) -> Verification:
    """Check a store; with rows, also fit its model from scratch and compare."""
    try:
        with folder.snapshot() as (ledger, _, model):
            return Verification(tuple(Auditor(folder, ledger, model).checks(batches)))
    except StoreError as error:
        found = [Check("model", False, str(error))]
    try:
        with open_ledger(folder.ledger) as ledger:
            found += Auditor(folder, ledger, None).ledger_checks()
    except StoreError as error:
        found.append(Check("ledger", False, str(error)))
    return Verification(tuple(found))


class Auditor:
    """The checks of one state of a store. Each returns what it found, or raises `StoreError`."""

    def __init__(self, folder: Folder, ledger: Ledger, model: Any) -> None:
        self._folder, self._ledger, self._model = folder, ledger, model

    def checks(self, batches: Iterable[RowBatch] | None) -> Iterator[Check]:
        """All checks; with rows, also the comparison with a fit from scratch."""
        yield from self.ledger_checks()
        yield _check("model", self._check_model)
        if batches is not None:
            yield from self._check_rows_given(batches)

    def ledger_checks(self) -> Iterator[Check]:
        """The checks that need no model."""
        for name in ("ledger", "chain", "requests", "rows", "ids", "queue", "secret", "files"):
            yield _check(name, getattr(self, f"_check_{name}"))

    def _check_ledger(self) -> str:
        found = [row[0] for row in self._ledger.sql.execute("PRAGMA integrity_check(5)")]
        _require(found == ["ok"], f"SQLite finds its file damaged: {'; '.join(found)}")
        return "the file is sound"

    def _check_chain(self) -> str:
        before: Entry | None = None
        classes: Counter[str] = Counter()
        described = self._ledger.origin
        origin, old = hash_of(described), version_1.is_version_1(described)
        for entry in self._ledger.entries():
            where = f"entry {entry.sequence}"
            _require(entry.origin == origin, f"{where} belongs to another store")
            _require(old or entry.version > 1, f"{where} is older than its store")
            _require(entry.is_intact(), f"{where} was changed after it was written")
            signer = described.get("key") if before is None else before.next_signer
            if before is not None and entry.kind == "upgrade" and before.signer is None:
                signer = entry.signer
            _require(entry.signer == signer, f"{where} is not signed with the key of this store")
            if before is None:
                first = entry.sequence == 0 and entry.kind == "new"
                _require(first, f"the first is {where}, a {entry.kind}")
            else:
                next_ = entry.sequence == before.sequence + 1
                _require(next_, f"{where} follows entry {before.sequence}")
                links = entry.previous, entry.digest_before, entry.root_before
                same = links == (before.hash, before.digest_after, before.root_after)
                _require(same, f"{where} does not continue the entry before")
                _require(entry.time >= before.time, f"{where} is older than the entry before")
                if entry.added is not None and entry.removed is not None:
                    held = before.held + entry.added - entry.removed
                    _require(
                        entry.held == held, f"{where} does not add up: {held} rows would be held"
                    )
            classes.update(entry.classes)
            before = entry
        if before is None:
            raise StoreError("there are no entries")
        counts = {label: n for label, n in classes.items() if n}
        same = counts == self._ledger.class_counts()
        _require(same, "the rows of each class are not the sum of the changes")
        return f"{before.sequence + 1} entries, each with the hash of the one before"

    def _check_requests(self) -> str:
        entries = {key: entry.sequence for entry in self._ledger.entries() for key in entry.keys}
        pending: dict[str, int | None] = {}
        if self._ledger.version < 3:
            pending = {q.key: None for q in self._ledger.queue.pending() if q.key is not None}
        found = dict(self._ledger.sql.execute("SELECT key, sequence FROM requests"))
        same = found == {**pending, **entries}
        _require(same, "the keys of requests are not those of the entries and of the queue")
        return f"{len(entries)} keys of requests are those of the entries"

    def _check_rows(self) -> str:
        last, ledger = self._ledger.last(), self._ledger
        rows, lanes = ledger.rows.totals()
        known = last.held - last.unknown
        _require(rows == known, f"{rows} rows have a digest, and {known} should")
        if last.version < 3:
            found, none = checksum_text(ledger.rows.checksum()), checksum_text(0)
        else:
            found, none = lanes_text(lanes), lanes_text(no_lanes())
            kept = lanes_text(ledger.rows.kept_lanes())
            _require(kept == found, "the sum that is kept is not that of the digests")
        same = found == (last.alive or none)
        _require(same, "the sum over the digests is not that of the latest entry")
        return f"{rows} digests have the sum {last.alive}"

    def _check_ids(self) -> str:
        ledger = self._ledger
        if ledger.version < 3:
            return "a store of this version has none"
        found = {n: hash_of_lines(lines) for n, lines in ledger.ids.lines()}
        said = {e.sequence: e.ids for e in ledger.entries() if e.ids is not None}
        destroyed = any(e.kind == "destroy" for e in ledger.entries())
        _require(
            found == ({} if destroyed else said), "what happened to ids is not what entries say"
        )
        return f"{len(found)} changes with ids are as their entries say"

    def _check_queue(self) -> str:
        waiting: Counter[tuple[bytes, bytes]] = Counter()
        for batch in self._ledger.queue.batches():
            rows = self._hasher()(batch)
            waiting.update(zip(rows.digests, rows.ids, strict=True))
        same = waiting == self._ledger.rows.reserved()
        _require(same, "the rows in the queue are not those that are reserved")
        said = self._ledger.last().waiting
        same = said in (None, waiting.total()) and self._waiting() in (None, self._queued())
        _require(same, "the requests in the queue are not those of the entries")
        return f"{waiting.total()} rows wait to be forgotten"

    def _queued(self) -> dict[int, tuple[str | None, int]]:
        """The requests in the queue: key and rows, by number."""
        return {q.sequence: (q.key, q.rows) for q in self._ledger.queue.pending()}

    def _waiting(self) -> dict[int, tuple[str | None, int]] | None:
        """The same by the entries; None before version 3."""
        if self._ledger.version < 3:
            return None
        waiting: dict[int, tuple[str | None, int]] = {}
        for entry in self._ledger.entries():
            if entry.kind == "queue":
                waiting[entry.sequence] = (entry.keys[0] if entry.keys else None, entry.rows)
            elif entry.kind == "cancel":
                waiting.pop(int(str(entry.subject).removeprefix("entry ")), None)
            elif entry.kind == "forget" and entry.waiting == 0:
                waiting.clear()
        return waiting

    def _check_secret(self) -> str:
        if self._ledger.last().alive is None:
            return "it was destroyed"
        self._hasher().check_secret(self._ledger.origin["secret"])
        return "it is that of this store"

    def _check_files(self) -> str:
        folder = self._folder
        left = folder.left_over(self._ledger.last())
        if left:  # a process may be at work: look again while none can be
            with no_writer(folder.lock) as quiet, open_ledger(folder.ledger) as ledger:
                if not quiet:
                    return "another process is changing the store, and will remove what it replaces"
                left = folder.left_over(ledger.last())
        strange = ", ".join(repr(path.name) for path in folder.strangers()[:5])
        _require(not strange, f"there are files that are not of the store: {strange}")
        names = ", ".join(path.name for path in left[:5])
        said = f"there are files that should be gone, and the next change removes: {names}"
        _require(not left, said)
        return "there are none but those that the ledger names"

    def _check_model(self) -> str:
        last, model = self._ledger.last(), self._model
        if model is None:
            return "it was destroyed"
        state = ModelState.of(model)
        _require(state.held == last.held, f"it holds {state.held} rows, and should {last.held}")
        made = loading.from_description(self._ledger.origin["model"])
        same = saving.described(model) == saving.described(made)
        _require(same, "its parameters are not those that the store was made with")
        digest = state.digest
        if last.version == 1 and last.held:
            digest = version_1.digest_of_model(model)
            if digest is None:
                return f"its file is that of the latest entry; its digest is {version_1.UNKNOWN}"
        _require(digest == last.digest_after, "its digest is not that of the latest entry")
        if last.version == 1:
            lacks = version_1.LACKS
            return f"its file and its digest {digest} are those of the latest entry ({lacks})"
        _require(state.root == last.root_after, "its root is not that of the latest entry")
        return f"its file, root and digest {digest} are those of the latest entry"

    def _check_rows_given(self, batches: Iterable[RowBatch]) -> Iterator[Check]:
        """Fit a model from scratch, and compare digest, root and checksum of the rows."""
        last, tally, hasher = self._ledger.last(), Tally(), self._hasher()

        def counted() -> Iterator[RowBatch]:
            for batch in batches:
                tally.add(hasher(batch))
                yield batch

        model = _fit_from_scratch(self._ledger.origin, counted())
        if last.version > 1 or version_1.digest_of_model(model) is not None or not last.held:
            yield from _compare(model, last, "refit")
        else:  # a PathSVC of version 1: its digest cannot be compared, but the models can
            ok = ModelState.of(model) == ModelState.of(self._model)
            said = "is" if ok else "is not"
            yield Check("refit", ok, f"a fit from scratch {said} the model in the file")
        if last.alive is not None and not last.unknown:
            sum_ = checksum_text(tally.checksum) if last.version < 3 else lanes_text(tally.lanes)
            ok = sum_ == last.alive
            said = "have" if ok else "do not have"
            yield Check("digests", ok, f"these rows {said} the digests that are kept here")

    def _hasher(self) -> RowHasher:
        return RowHasher.of(self._folder.secret(self._ledger.last()), self._ledger.origin)


def _fit_from_scratch(origin: Mapping[str, Any], batches: Iterable[RowBatch]) -> Any:
    """The model of a store with this description, fitted to these rows alone."""
    model = loading.from_description(origin.get("model", {}))
    for batch in batches:
        if len(batch[1]):
            X, y, weight = version_1.rounded_as_in(origin, batch)
            model.partial_fit(X, y, sample_weight=weight)
    return model


def _compare(model: Any, entry: Entry, name: str) -> Iterator[Check]:
    """Whether a model that was fitted from scratch is the model of an entry."""
    rows, digest, root = ModelState.of(model)
    if entry.version == 1 and rows:
        digest = version_1.digest_of_model(model)
    same = digest == entry.digest_after and rows == entry.held
    said = f"a fit from scratch on {rows} rows has the digest {digest}"
    if not same:
        said += (
            f"; after entry {entry.sequence} the model held {entry.held} rows and had the digest "
            f"{entry.digest_after}"
        )
        said += "" if digest or not rows else f" ({version_1.UNKNOWN})"
    elif root is None and rows:
        said += f" ({version_1.LACKS})"
    yield Check(name, same, said)
    if entry.version > 1 and entry.root_after is not None:
        ok = root == entry.root_after
        is_it = "is" if ok else "is not"
        yield Check("root", ok, f"the root over these rows {is_it} that of entry {entry.sequence}")


def _check(name: str, check: Callable[[], str]) -> Check:
    try:
        return Check(name, True, check())
    except StoreError as error:
        return Check(name, False, str(error))


def _require(ok: bool, said: str) -> None:
    if not ok:
        raise StoreError(said)
