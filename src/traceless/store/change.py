"""One change of a store: what it adds and removes, its entries, and the commit that makes it.

A request with an idempotency key that is repeated gets its first answer.

Whatever is raised before the commit leaves the store as it was: `writing` rolls the transaction
back, throws the model in memory away, and removes a model file that was written. A dry run ends
before the commit, and before a model is written.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from sqlite3 import Error
from typing import Any, NamedTuple, Self

from traceless.exceptions import FileError, RevealingWarning, StoreError, StoreWarning
from traceless.store import keys
from traceless.store.commit import commit
from traceless.store.entries import UNDO, WAITING, Entry, ModelState
from traceless.store.folder import Folder
from traceless.store.keys import SigningKey
from traceless.store.ledger import Ledger
from traceless.store.lock import write_lock
from traceless.store.opening import log_is_empty, open_ledger
from traceless.store.queue import SAFE_ROWS
from traceless.store.receipts import PersonalReceipt, Receipt
from traceless.store.row_digests import RowBatch, Tally
from traceless.store.suppression import Suppression

Cached = tuple[str, Any] | None  # a generation, and the model that it holds

_SAID = re.compile("was (changed|made)|do not repeat")
_REVEALING = (
    f"Fewer than {SAFE_ROWS} different rows of a class change at once: whoever holds the models "
    "before and after can reconstruct them. Collect requests to forget with batch=True (--batch), "
    "and see that no copy of the model before is left."
)
_BACKWARDS = (
    "The clock of this machine is behind the time of the latest entry ({0.sequence}, {0.time}): "
    "one of the two is wrong. This change has the time of the clock as it is now."
)


class Asked(NamedTuple):
    """The options of a request.

    Attributes
    ----------
    key : str or None
        Idempotency key of the request.
    dry_run : bool
        Do everything but write.
    signing_key : path or None
        The file of the key, if it is not in the folder.
    personal : bool
        Give each person that was named a receipt of their own.
    wait : float
        Seconds to wait for another process.
    """

    key: str | None = None
    dry_run: bool = False
    signing_key: Any = None
    personal: bool = False
    wait: float = 0.0


class Change:
    """One change of a store, made once however often it is requested with the same key.

    Parameters
    ----------
    folder : Folder
    ledger : Ledger
        In a transaction.
    asked : Asked

    Attributes
    ----------
    before : Entry
        The latest entry.
    cached : tuple or None
        A generation, and its model, which the change may modify: that of the last change, and
        afterwards that of this one.
    removed, added : Tally
        Rows that leave the model, and rows that come.
    persons : Counter
        Rows of each id for which a receipt is wanted, as it was given.
    unknown : int
        How many rows have no digest afterwards.
    """

    def __init__(self, folder: Folder, ledger: Ledger, asked: Asked) -> None:
        self.folder, self.ledger, self.asked = folder, ledger, asked
        self.cached: Cached = None
        self.before, self.origin, self.rows = ledger.last(), ledger.origin, ledger.rows
        self.hasher = folder.hasher(ledger)
        self.secret, self.unknown = self.hasher.secret, self.before.unknown
        self.removed, self.added, self.persons = Tally(), Tally(), Counter[str]()
        if asked.dry_run:
            ledger.sql.execute("PRAGMA cache_spill = OFF")  # nothing goes into the log
        self._known = () if asked.key is None else ledger.requests(asked.key)
        if not self._known:
            self.signing_key  # noqa: B018  raises at once if it is not there

    @classmethod
    @contextmanager
    def writing(cls, folder: Folder, asked: Asked) -> Iterator[Self]:
        """The one change that is being made to a store.

        On any error nothing is left of it; and one that does not say so, because it knows of no
        store, then does.
        """
        wait, permissions = asked.wait, folder.permissions()
        with (
            write_lock(folder.lock, wait, permissions, asked.dry_run),
            open_ledger(folder.ledger, "", max(wait, 1.0)) as ledger,
        ):
            before = ledger.last()
            if folder.left_over(before):
                folder.tidy(ledger, before)
            ledger.sql.execute("BEGIN IMMEDIATE")
            try:
                yield cls(folder, ledger, asked)
            except BaseException as error:
                with suppress(Error):  # of a commit that failed, there is no transaction left
                    ledger.sql.execute("ROLLBACK")
                    folder.tidy(ledger, before)
                if isinstance(error, ValueError | TypeError) and not _SAID.search(str(error)):
                    error.args = (f"{error} Nothing was changed.",)
                raise

    @cached_property
    def model(self) -> Any:
        """The model, to be changed."""
        if self.cached is None or self.cached[0] != self.before.generation:
            self.cached = str(self.before.generation), self.folder.load(self.before)
        return self.cached[1]

    @cached_property
    def signing_key(self) -> SigningKey | None:
        """The key of the store; a dry run needs none, and only looks at the one that is named."""
        if self.asked.dry_run and self.asked.signing_key is None:
            return None
        found = keys.find(self.folder, self.asked.signing_key, self.before.next_signer)
        return None if self.asked.dry_run else found

    @cached_property
    def suppression(self) -> Suppression:
        """The list of those who are not to be learned again."""
        return self.folder.suppression(self.before)

    @property
    def number(self) -> int:
        """Number of the next entry."""
        return self.before.sequence + 1

    # --- entries --------------------------------------------------------------------------

    def note(self, kind: str, request: str | None = None, **facts: Any) -> Entry:
        """Append the entry of a change that leaves the model as it is."""
        return self._append(self.before.state, kind, request, facts)

    def finish(self, kind: str, request: str | None = None, **facts: Any) -> Receipt:
        """Write the new model and the entry, commit both, and remove the model before."""
        revealing = self.removed.rows > 0 and not self.removed.are_enough()
        if revealing:
            warnings.warn(_REVEALING, RevealingWarning, stacklevel=4)
        model = None if self.before.generation is None else self.model
        state, gone = ModelState.of(model), self.rows.settle()
        if model is None:
            facts |= {"generation": None, "sha256": None}
        elif not self.asked.dry_run:
            name, sha256 = self.folder.write(model, self.number)
            facts |= {"generation": name, "sha256": sha256}
            self._read_back(name, sha256, state)
        if kind in ("forget", "follow") and not str(facts.get("subject")).startswith(UNDO):
            facts |= self._suppressed(gone)
        self._append(state, kind, request, facts | {"revealing": revealing})
        return self.commit()

    def _suppressed(self, names: list[bytes]) -> dict[str, str | None]:
        """Put names on the suppression list, if the store has one: its file, for the entry."""
        period = self.origin.get("suppress")
        if not names or period is None or self.asked.dry_run:
            return {}
        self.suppression.add(names, period)
        name, sha256 = self.folder.write_suppression(self.suppression, self.number)
        return {"suppression": name, "suppression_sha256": sha256}

    def commit(self, *next_key: SigningKey) -> Receipt:
        """Commit the change; returns the receipt of its latest entry."""
        entry, key = self.before, self.signing_key
        if key is None:  # a dry run
            self.cached, receipt = None, Receipt.of(entry, self.ledger.document, "")  # it changed
            return replace(receipt, dry_run=True, tried=self.__dict__.get("model"))
        self.ledger.seal([key, *next_key])
        receipt = self.ledger.receipt(entry.sequence)
        people = tuple(self._personal(receipt, key, *one) for one in self.persons.items())
        commit(self.folder, self.ledger, entry)
        return replace(receipt, people=people, log_emptied=log_is_empty(self.folder.ledger))

    def _personal(
        self, receipt: Receipt, key: SigningKey, given: str, rows: int
    ) -> PersonalReceipt:
        """The receipt of a person for what was done with so many rows of theirs."""
        (name,), until = self.hasher.names([given]), self.suppression.until
        ((held, waiting),) = self.rows.numbers([self.rows.ids([name]).get(name, b"")]).values()
        numbers = {"rows": rows, "held": held, "waiting": waiting, "suppressed": until(name)}
        return PersonalReceipt.of(receipt, key, id=given, **numbers)

    # --- inside ---------------------------------------------------------------------------

    def _rows_again(
        self, kind: str, removed: Iterable[RowBatch] = (), added: Iterable[RowBatch] = ()
    ) -> Receipt:
        """The receipt of a request with these rows that came with this key before."""
        old, new = self.hasher.tally(removed), self.hasher.tally(added)
        return self._first_answer(kind, max(old.rows, new.rows), self.hasher.request(old, new))

    def _first_answer(self, kind: str, rows: int, request: str | None) -> Receipt:
        """The receipt of the request that came with this key before.

        Raises if that was another request: of another kind, number of rows, or hash.
        """
        key, latest = self.asked.key, self._known[-1]
        first = self.ledger.named(self._known[0])
        known = "forget" if first.kind == "queue" else first.kind
        if self.secret is None and rows:
            raise StoreError(
                f"A request with the key {key!r} came before, and since the secret of this "
                "store was destroyed nobody can tell whether it is this one. Look at its entry "
                f"({latest}), and give a new request a key of its own."
            )
        same = first.request == request
        if (kind, rows) != (known, first.rows) or not same:
            raise StoreError(
                f"The key {key!r} is that of another request: {known} of {first.rows} rows, "
                f"where this one is {kind} of {rows}{'' if same else ' other'} rows. Give every "
                "request a key of its own."
            )
        answer = self.ledger.receipt(latest, replayed=True)
        if answer.kind == "cancel":
            raise StoreError(
                f"The request with the key {key!r} was cancelled (entry {answer.sequence}, "
                f"{answer.time}). Give a new request a key of its own."
            )
        return answer

    def _append(
        self, state: ModelState, kind: str, request: str | None, facts: dict[str, Any]
    ) -> Entry:
        before, removed, added, key = self.before, self.removed, self.added, self.asked.key
        counts = Counter(added.classes)
        counts.subtract(removed.classes)
        totals = Counter(before.totals)
        if kind not in WAITING:  # their classes are of rows that wait, or no longer do
            totals.update(counts)
        self.rows.settle()
        known = self.secret is not None
        said: dict[str, Any] = {
            "kind": kind,
            "request": request,
            "keys": () if key is None else (key,),
            "rows": max(removed.rows, added.rows),
            "added": added.rows,
            "removed": removed.rows,
            "classes": nonzero(counts),
            "totals": nonzero(totals),
            "unknown": self.unknown if known else state.held,
            "records": self.rows.keep_lanes(before.records) if known else None,
        }
        entry = Entry.after(before, state, self.signing_key, **said | facts)
        if entry.time < before.time:
            warnings.warn(_BACKWARDS.format(before), StoreWarning, stacklevel=5)
        self.ledger.append(entry)
        self.before, self.removed, self.added = entry, Tally(), Tally()
        return entry

    def _read_back(self, name: str, sha256: str, state: ModelState) -> None:
        """Make sure that the file holds the model, since the model before will be removed."""
        try:
            self.model = self.folder.read(name, sha256)
        except FileError as error:
            raise StoreError(f"The new model cannot be read back from its file: {error}") from error
        if ModelState.of(self.model) != state:
            raise StoreError("The file of the new model holds another one.")
        self.cached = name, self.model


def nonzero(counts: Mapping[str, int]) -> dict[str, int]:
    """The classes of which there are rows, in order."""
    return {label: n for label, n in sorted(counts.items()) if n}
