"""Verification: everything in the ledger or a receipt is recomputed and compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from traceless.estimators import loading
from traceless.exceptions import StoreError
from traceless.files import saving
from traceless.knowledge.fingerprint import to_bytes
from traceless.store import chain
from traceless.store.chain import Chain, require
from traceless.store.entries import Entry, ModelState, hash_of
from traceless.store.folder import Folder
from traceless.store.kept import Kept, check_continued, check_witnessed, public_key_of
from traceless.store.ledger import Ledger
from traceless.store.lock import no_writer
from traceless.store.opening import log_is_empty, open_ledger
from traceless.store.receipts import PersonalReceipt, Receipt
from traceless.store.row_digests import Given, RowBatch, RowHasher, row_batches
from traceless.store.row_table import lanes_text, no_lanes

_CHECKS = (
    *("ledger", "chain", "signatures", "requests", "rows", "queue", "secret", "suppression"),
    *("files", "log"),
)
# errors that a forged value may lead to: they are reported as damage
_DAMAGES = ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError


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
    receipt: Receipt | PersonalReceipt,
    X: Any = None,
    y: Any = None,
    sample_weight: Any = None,
    *,
    public_key: Any = None,
    head: str | None = None,
    consistency: str | None = None,
    witnesses: Sequence[str] | None = None,
) -> Verification:
    """Check a receipt, without the store: its signature, and the rows that remained.

    A model as the receipt describes it learns the rows from scratch. If it has the digest and
    the root that the receipt gives, then the model held these rows after the change, and no
    others: as often, with these labels and weights, and to the resolution of the feature map.

    Parameters
    ----------
    receipt : Receipt
    X, y, sample_weight
        All rows that the model held after the change, in any order; or in place of X an
        iterable of batches (X, y) or (X, y, sample_weight). Without them only hashes and the
        signature are checked.
    public_key : str or path, optional
        The key of the store, as its owner has published it: 64 digits, or a file with them or
        with PEM. Without it the signature says only that nothing was changed since it was made.
    head : str, optional
        A head of the store that was kept elsewhere: the entry must be in its log.
    consistency : str, optional
        The proof that one of the two logs, that of the receipt and that of the head, continues
        the other, as `Store.consistency` gives it. Only where their sizes differ.
    witnesses : sequence of str, optional
        Verifier keys of witnesses, as C2SP writes them: each must have signed the head.

    Returns
    -------
    Verification
    """
    said = f"it is in the log of its store; signed with the key {receipt.signer}"
    if not (ok := receipt.check()):
        said = "it was changed after it was written, or is not signed"
    found = [Check("receipt", ok, said)]
    if head is not None:
        found.append(_check("kept head", partial(check_continued, receipt, head, consistency)))
    if witnesses:
        found.append(_check("witnesses", partial(check_witnessed, head or "", witnesses)))
    if public_key is not None:
        key = public_key_of(public_key)
        same = receipt.signer == key
        said = f"it is {'' if same else 'not '}signed with {key[:16]}…"
        found.append(Check("signer", same, said))
    # or a stranger, without the right key, would say what is fitted here
    if isinstance(receipt, Receipt) and X is not None and all(check.ok for check in found):
        batches = row_batches(X, y, sample_weight, None, receipt.store)
        found += _compare(_fit_from_scratch(receipt.store, batches), receipt, "model")
    return Verification(tuple(found))


def verify(folder: Folder, rows: Given | None, kept: Kept) -> Verification:
    """Check a store, also against what was kept; with rows, also fit its model from scratch."""
    kept.check_form()
    try:
        with folder.snapshot() as (ledger, _, model):
            batches = None if rows is None else row_batches(*rows, ledger.origin)
            return Verification(tuple(Auditor(folder, ledger, model, kept).checks(batches)))
    except StoreError as error:
        found = [Check("model", False, str(error))]
    try:
        with open_ledger(folder.ledger) as ledger:
            found += Auditor(folder, ledger, None, kept).ledger_checks()
    except StoreError as error:
        found.append(Check("ledger", False, str(error)))
    return Verification(tuple(found))


class Auditor:
    """The checks of one state of a store. Each returns what it found, or raises `StoreError`."""

    def __init__(self, folder: Folder, ledger: Ledger, model: Any, kept: Kept = Kept()) -> None:  # noqa: B008
        self._folder, self._ledger, self._model, self._kept = folder, ledger, model, kept

    @cached_property
    def _chain(self) -> Chain:
        ledger = self._ledger
        origin, key = hash_of(ledger.document.encode()), ledger.origin.get("key")
        found = chain.checked(ledger.entries(), origin, key)
        chain.check_heads(found, ledger.heads(), ledger.log)
        return found

    def checks(self, batches: Iterable[RowBatch] | None) -> Iterator[Check]:
        """All checks; with rows, also the comparison with a fit from scratch."""
        yield from self.ledger_checks()
        yield _check("model", self._check_model)
        if batches is not None:
            yield from self._check_rows_given(batches)

    def ledger_checks(self) -> Iterator[Check]:
        """The checks that need no model."""
        for name in _CHECKS:
            yield _check(name, getattr(self, f"_check_{name}"))
        for name in Kept._fields:
            if getattr(self._kept, name) is not None:
                yield _check(f"kept {name.replace('_', ' ')}", partial(self._check_kept, name))

    def _check_kept(self, name: str) -> str:
        said: str = getattr(self._kept, f"check_{name}")(self._ledger, self._chain)
        return said

    def _check_ledger(self) -> str:
        found = [row[0] for row in self._ledger.sql.execute("PRAGMA integrity_check(5)")]
        require(found == ["ok"], f"SQLite finds its file damaged: {'; '.join(found)}")
        return "the file is sound"

    def _check_chain(self) -> str:
        nodes = self._ledger.sql.execute("SELECT level, place, hash FROM nodes")
        same = {(level, place): node for level, place, node in nodes} == self._chain.nodes
        require(same, "the tree that is kept is not that of the entries")
        said = f"{self._ledger.last().sequence + 1} entries are the log whose head is signed"
        misdated = ", ".join(map(str, self._chain.misdated[:5]))
        return f"{said}; the clock ran backwards before entry {misdated}" if misdated else said

    def _check_signatures(self) -> str:
        names = ", then ".join(f"{key[:16]}…" for key in self._chain.signers)
        return f"every entry is signed with the key {names}"

    def _check_requests(self) -> str:
        found = self._ledger.sql.execute("SELECT * FROM requests").fetchall()
        same = {*found} == self._chain.requests
        require(same, "the keys of requests are not those of the entries")
        return f"{len({key for key, _ in found})} keys of requests are those of the entries"

    def _check_rows(self) -> str:
        last, table = self._ledger.last(), self._ledger.rows
        rows, lanes = table.totals()
        known = last.held - last.unknown
        require(rows == known, f"{rows} rows have a digest, and {known} should")
        kept = [row[0] for row in self._ledger.sql.execute("SELECT content FROM sums")]
        same = (kept or [to_bytes(no_lanes())]) == [to_bytes(lanes)]
        require(same, "the sum that is kept is not that of the records")
        same = lanes_text(lanes) == (last.records or lanes_text(no_lanes()))
        require(same, "the sum over the records is not that of the latest entry")
        return f"{rows} rows, and the people they are of, have the sum {last.records}"

    def _check_queue(self) -> str:
        ledger, hasher, waiting = self._ledger, self._hasher, self._chain.waiting
        require(ledger.queue.numbers() == list(waiting), "other requests wait than entries say")
        query = "SELECT request, sum(count) FROM rows WHERE request > 0 GROUP BY 1"
        same = dict(ledger.sql.execute(query)) == waiting
        require(same, "the rows in the queue are not those that are reserved")
        for number in waiting:
            batches = ledger.queue.checked(ledger.entry(number), ledger.rows, hasher)
            left = Counter(digest for batch in batches for digest in hasher(batch).digests)
            for record, count in zip(*ledger.rows.waiting(number), strict=True):
                left[record.digest] -= count
            require(not any(left.values()), "the rows in the queue are not those that are reserved")
        return f"{sum(waiting.values())} rows wait to be forgotten"

    def _check_suppression(self) -> str:
        last = self._ledger.last()
        if last.suppression is None:
            return "there is no list"
        return f"{len(self._folder.suppression(last))} people are on the list, which entries name"

    def _check_secret(self) -> str:
        if self._ledger.last().records is None:
            return "it was destroyed"
        self._hasher  # noqa: B018  raises if it is another
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
        require(not strange, f"there are files that are not of the store: {strange}")
        names = ", ".join(path.name for path in left[:5])
        said = f"there are files that should be gone, and the next change removes: {names}"
        require(not left, said)
        return "there are none but those that the ledger names"

    def _check_log(self) -> str:
        folder = self._folder
        if not log_is_empty(folder.ledger):
            with no_writer(folder.lock) as quiet:
                if not quiet:
                    return "another process is changing the store, and will empty its log"
            require(
                log_is_empty(folder.ledger),
                "SQLite's log is not yet emptied, because a process was reading: rows that were "
                "forgotten may still be in it. The next change empties it",
            )
        return "nothing is left in it"

    def _check_model(self) -> str:
        last, model = self._ledger.last(), self._model
        if model is None:
            return "it was destroyed"
        state = ModelState.of(model)
        require(state.held == last.held, f"it holds {state.held} rows, and should {last.held}")
        made = loading.from_description(self._ledger.origin["model"])
        same = saving.described(model) == saving.described(made)
        require(same, "its parameters are not those that the store was made with")
        same = state == last.state
        require(same, "its digest or root is not that of the latest entry")
        return f"its file, root and digest {state.digest_after} are those of the latest entry"

    def _check_rows_given(self, batches: Iterable[RowBatch]) -> Iterator[Check]:
        """Fit a model from scratch, and compare digest, root and digests of the rows."""
        last, hasher = self._ledger.last(), self._hasher
        given = Counter[tuple[bytes, bytes]]()

        def counted() -> Iterator[RowBatch]:
            for batch in batches:
                rows = hasher(batch)
                given.update(zip(rows.digests, rows.names, strict=False))
                yield batch

        yield from _compare(_fit_from_scratch(self._ledger.origin, counted()), last, "refit")
        if last.records is not None and not last.unknown:
            named, held = any(name for _, name in given), Counter[tuple[bytes, bytes]]()
            for digest, name, n in self._ledger.rows.named():  # rows may be known without their ids
                held[digest, name if named else b""] += n
            said = "have" if held == given else "do not have"
            yield Check("digests", held == given, f"these rows {said} the digests that are kept")

    @cached_property
    def _hasher(self) -> RowHasher:
        return self._folder.hasher(self._ledger)


def _fit_from_scratch(origin: Mapping[str, Any], batches: Iterable[RowBatch]) -> Any:
    """The model of a store with this description, fitted to these rows alone."""
    model = loading.from_description(origin.get("model", {}))
    for batch in batches:
        if len(batch[1]):
            X, y, weight = batch[:3]
            loading.check_size(model, np.shape(X)[1])
            model.partial_fit(X, y, sample_weight=weight)
    return model


def _compare(model: Any, entry: Entry, name: str) -> Iterator[Check]:
    """Whether a model that was fitted from scratch is the model of an entry."""
    rows, digest, root = ModelState.of(model)
    same = digest == entry.digest_after and rows == entry.held
    said = f"a model made from scratch of {rows} rows has the digest {digest}"
    if not same:
        said += (
            f"; after entry {entry.sequence} the model held {entry.held} rows and had the digest "
            f"{entry.digest_after}"
        )
    yield Check(name, same, said)
    if entry.root_after is not None:
        ok = root == entry.root_after
        is_it = "is" if ok else "is not"
        yield Check("root", ok, f"the root over these rows {is_it} that of entry {entry.sequence}")


def _check(name: str, check: Callable[[], str]) -> Check:
    try:
        return Check(name, True, check())
    except StoreError as error:
        return Check(name, False, str(error))
    except _DAMAGES as error:
        return Check(name, False, f"it says what cannot be: {type(error).__name__}, {error}")
