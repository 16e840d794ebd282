"""One change of a store: what it adds and removes, its entries, and the commit that makes it.

A request with an idempotency key that is repeated gets its first answer.

Whatever is raised before the commit leaves the store as it was: the transaction is rolled back,
the model in memory is thrown away, and a model file that was written is removed. A dry run ends
before the commit, and before a model is written.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple, cast

from traceless.exceptions import FileError, RevealingWarning, StoreError, StoreWarning
from traceless.store import keys
from traceless.store.commit import commit
from traceless.store.entries import UNDO, WAITING, Entry, ModelState
from traceless.store.folder import Folder
from traceless.store.keys import SigningKey
from traceless.store.ledger import Ledger, Request
from traceless.store.opening import log_is_empty
from traceless.store.personal import PersonalReceipt
from traceless.store.queue import SAFE_ROWS
from traceless.store.receipts import Receipt
from traceless.store.row_digests import RowHasher, Tally
from traceless.store.row_table import lanes_of_pairs, lanes_text, no_lanes
from traceless.store.suppression import Suppression

Cached = tuple[str, Any] | None  # a generation, and the model that it holds

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
        Give each person that was named a receipt of his own.
    """

    key: str | None = None
    dry_run: bool = False
    signing_key: Any = None
    personal: bool = False


class Change:
    """One change of a store, made once however often it is requested with the same key.

    Parameters
    ----------
    folder : Folder
    ledger : Ledger
        In a transaction.
    asked : Asked
    cached : tuple, optional
        A generation, and its model, which the change may modify. Afterwards the attribute of this
        name holds the latest generation that was read, for the next change.

    Attributes
    ----------
    before : Entry
        The latest entry.
    secret : bytes or None
    removed, added : Tally
        Rows that leave the model, and rows that come.
    persons : Counter
        Rows of each id for which a receipt is wanted, as it was given.
    people : Counter
        Change in the number of rows of each id.
    records_sum : ndarray of uint16
        Change in the lanes of the records.
    unknown : int
        How many rows have no digest afterwards.
    emptied : bool
        Whether all digests were destroyed.
    committed : bool
        Whether the change was made.
    """

    def __init__(self, folder: Folder, ledger: Ledger, asked: Asked, cached: Cached = None) -> None:
        self.folder, self.ledger, self.asked, self.cached = folder, ledger, asked, cached
        self.before, self.origin = ledger.last(), ledger.origin
        self.secret = folder.secret(self.before)
        self.hasher = RowHasher.of(self.secret, self.origin)
        self.hasher.check_secret(self.origin["secret"])
        self.unknown, self.emptied, self.committed = self.before.unknown, False, False
        self.removed, self.added = Tally(), Tally()
        self.people, self.records_sum = Counter[bytes](), no_lanes()
        self.persons = Counter[str]()
        if asked.dry_run:
            ledger.sql.execute("PRAGMA cache_spill = OFF")  # nothing goes into the log
        self._known = None if asked.key is None else ledger.request(asked.key)
        if self._known is None:
            self.signing_key  # noqa: B018  raises at once if it is not there

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
    def _number(self) -> int:
        return self.before.sequence + 1

    # --- entries --------------------------------------------------------------------------

    def note(self, kind: str, request: str | None = None, **facts: Any) -> Entry:
        """Append the entry of a change that leaves the model as it is."""
        return self._append(self.before.state, kind, request, **facts)

    def finish(self, kind: str, request: str | None = None, **facts: Any) -> Receipt:
        """Write the new model and the entry, commit both, and remove the model before."""
        revealing = self.removed.rows > 0 and not self.removed.are_enough()
        if revealing:
            warnings.warn(_REVEALING, RevealingWarning, stacklevel=4)
        model = None if self.before.generation is None else self.model
        state = ModelState.of(model)
        files: dict[str, str | None] = {"generation": None, "sha256": None}
        gone, made = self._people_gone(), list[str]()
        try:
            if model is not None and not self.asked.dry_run:
                name, sha256 = self.folder.write(model, self._number)
                made, files = [name], {"generation": name, "sha256": sha256}
                self._read_back(name, sha256, state)
            if kind == "forget" and not str(facts.get("subject")).startswith(UNDO):
                facts |= self._suppressed(gone, made)
            self._append(state, kind, request, **files, revealing=revealing, **facts)
        except BaseException:
            for name in made:
                self.folder.remove(self.folder.generations / name)
            raise
        return self.commit()

    def _people_gone(self) -> list[bytes]:
        """Settle the numbers of rows of people; returns the names of those whose last is gone."""
        gone = self.ledger.people.count(self.people)
        self.records_sum -= lanes_of_pairs(gone)
        self.people.clear()
        return [name for name, _ in gone]

    def _suppressed(self, names: list[bytes], made: list[str]) -> dict[str, str | None]:
        """Put names on the suppression list, if the store has one: its file, for the entry."""
        period = self.origin.get("suppress")
        if not names or period is None or self.asked.dry_run:
            return {}
        self.suppression.add(names, period)
        name, sha256 = self.folder.write_suppression(self.suppression, self._number)
        made.append(name)
        return {"suppression": name, "suppression_sha256": sha256}

    def commit(self, *next_key: SigningKey) -> Receipt:
        """Commit the change; returns the receipt of its latest entry."""
        entry = self.before
        if self.asked.dry_run:
            self.cached, receipt = None, Receipt.of(entry, self.ledger.document, "")  # it changed
            return replace(receipt, dry_run=True, tried=self.__dict__.get("model"))
        self.ledger.seal([cast(SigningKey, self.signing_key), *next_key])
        receipt = self.ledger.receipt(entry.sequence)
        people = tuple(self._personal(receipt, *one) for one in self.persons.items())
        receipt = replace(receipt, people=people)
        make(self.folder, self.ledger, entry)
        self.committed = True
        return replace(receipt, log_emptied=log_is_empty(self.folder.ledger))

    def _personal(self, receipt: Receipt, given: str, rows: int) -> PersonalReceipt:
        """The receipt of a person for what was done with so many rows of his."""
        name, people = self.hasher.name_of(given), self.ledger.people
        one = people.ids([name]).get(name, b"")
        return PersonalReceipt.of(
            receipt,
            cast(SigningKey, self.signing_key),
            receipt.proof,
            id=given,
            rows=rows,
            held=people.held(one),
            waiting=people.waiting().get(one, 0),
            suppressed=self.suppression.until(name),
        )

    def tidy(self) -> None:
        """Remove what others left behind, also if there was nothing to change."""
        if not (self.committed or self.asked.dry_run) and self.folder.left_over(self.before):
            self.ledger.sql.execute("ROLLBACK")
            self.folder.tidy(self.ledger)

    # --- inside ---------------------------------------------------------------------------

    def _first_answer(self, kind: str, rows: int, request: str | None) -> Receipt:
        """The receipt of the request that came with this key before.

        Raises if that was another request: of another kind, number of rows, or hash.
        """
        key, known = self.asked.key, cast(Request, self._known)
        first = known.first
        if self.secret is None and rows:
            raise StoreError(
                f"A request with the key {key!r} came before, and since the secret of this "
                "store was destroyed nobody can tell whether it is this one. Look at its entry "
                f"({known.latest}), and give a new request a key of its own. Nothing was changed."
            )
        same = first.request == request
        if (kind, rows) != (known.kind, first.rows) or not same:
            raise StoreError(
                f"The key {key!r} is that of another request: {known.kind} of {first.rows} rows, "
                f"where this one is {kind} of {rows}{'' if same else ' other'} rows. Give every "
                "request a key of its own. Nothing was changed."
            )
        answer = self.ledger.receipt(known.latest, replayed=True)
        if answer.kind == "cancel":
            raise StoreError(
                f"The request with the key {key!r} was cancelled (entry {answer.sequence}, "
                f"{answer.time}). Give a new request a key of its own. Nothing was changed."
            )
        return answer

    def _append(self, state: ModelState, kind: str, request: str | None, **facts: Any) -> Entry:
        removed, added, key = self.removed, self.added, self.asked.key
        counts = Counter(added.classes)
        counts.subtract(removed.classes)
        said = {
            "keys": () if key is None else (key,),
            "rows": max(removed.rows, added.rows),
            "added": added.rows,
            "removed": removed.rows,
            "classes": _nonzero(counts),
            "unknown": state.held if self.secret is None else self.unknown,
            "kind": kind,
            "request": request,
        } | facts
        if kind not in WAITING:  # their classes are of rows that wait, or no longer do
            counts.update(self.before.totals)
            said["totals"] = _nonzero(counts)
        self._people_gone()
        said["records"] = self._keep_lanes()
        entry = Entry.after(self.before, state, self.signing_key, **said)
        if entry.time < self.before.time:
            warnings.warn(_BACKWARDS.format(self.before), StoreWarning, stacklevel=5)
        self.ledger.append(entry)
        self.before = entry
        self.removed, self.added, self.records_sum = Tally(), Tally(), no_lanes()
        return entry

    def _keep_lanes(self) -> str | None:
        """Update the lanes of the records; returns their hash."""
        rows, lanes = self.ledger.rows, no_lanes()
        if self.secret is not None and not self.emptied:
            before = rows.kept_lanes()
            if lanes_text(before) != self.before.records:
                raise StoreError(
                    "The ledger is damaged: the sum over the rows held is not that of the latest "
                    "entry. Restore the store from a backup. Nothing was changed."
                )
            lanes = before + self.records_sum
        rows.keep_lanes(lanes)
        return None if self.secret is None else lanes_text(lanes)

    def _read_back(self, name: str, sha256: str | None, state: ModelState) -> None:
        """Make sure that the file holds the model, since the model before will be removed."""
        try:
            self.model = self.folder.read(name, sha256)
            self.cached = name, self.model
        except FileError as error:
            raise StoreError(
                f"The new model cannot be read back from its file: {error} Nothing was changed."
            ) from error
        if ModelState.of(self.model) != state:
            raise StoreError("The file of the new model holds another one. Nothing was changed.")


def make(folder: Folder, ledger: Ledger, entry: Entry) -> None:
    """Commit a transaction whose latest entry is this one, and remove what it replaced."""
    try:
        still_open = commit(folder.ledger, ledger, entry)
    except BaseException:
        folder.sweep()
        raise
    keys.settle(folder, entry.next_signer)
    if still_open:
        folder.tidy(ledger, committed=entry)
    else:
        folder.sweep()


def _nonzero(counts: Mapping[str, int]) -> dict[str, int]:
    return {label: n for label, n in sorted(counts.items()) if n}
