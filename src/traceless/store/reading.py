"""The part of a store that only reads.

Reading the ledger needs SQLite and JSON only: whatever loads scikit-learn is imported where it is
used, so that `traceless status` starts quickly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traceless.exceptions import StoreError
from traceless.store.entries import Entry, Followed
from traceless.store.folder import Folder
from traceless.store.merkle import Tree
from traceless.store.opening import log_is_empty, open_ledger
from traceless.store.people import ids_of, keys_of, names_of
from traceless.store.queue import Queued
from traceless.store.receipts import Receipt

if TYPE_CHECKING:
    from traceless.store.people import Found
    from traceless.store.verification import Verification


@dataclass(frozen=True)
class Status:
    """The state of a store.

    Attributes
    ----------
    path : str
    model : str
        The class of the model, such as LSSVC.
    sequence : int
        Number of the latest entry.
    time : str
        When it was written, UTC.
    rows : int
        Rows that the model holds.
    classes : dict
        Rows of each class; empty for regressions.
    unknown : int
        Rows among them whose digests are not in the store.
    waiting : int
        Rows that wait in the queue to be forgotten.
    digest, root : str or None
    hash : str
        Hash of the latest entry.
    has_secret, has_model : bool
        False once they were destroyed.
    followed : Followed or None
        The version of a table that it has moved to last.
    size : int
        Bytes of all files.
    log_emptied : bool
        Whether nothing of what was replaced is left in the log of the ledger. A process that was
        reading can keep it for a while; the next change, or opening, empties it.
    """

    path: str
    model: str
    sequence: int
    time: str
    rows: int
    classes: Mapping[str, int]
    unknown: int
    waiting: int
    digest: str | None
    root: str | None
    hash: str
    has_secret: bool
    has_model: bool
    followed: Followed | None
    size: int
    log_emptied: bool


class StoreReader:
    """The part of a store that reads.

    Parameters
    ----------
    path : str or path
        The folder of the store.
    """

    def __init__(self, path: Any) -> None:
        self._folder = Folder(path)
        self._folder.check()
        self._about: dict[str, Any] | None = None

    @property
    def path(self) -> Path:
        """The folder."""
        return self._folder.path

    @property
    def about(self) -> dict[str, Any]:
        """What was given to `Store.new` to be kept with the store."""
        if self._about is None:
            with open_ledger(self._folder.ledger) as ledger:
                self._about = ledger.origin["about"]
        return deepcopy(self._about)

    @property
    def public_key(self) -> str:
        """The public half of the key that signs the next change."""
        with open_ledger(self._folder.ledger) as ledger:
            return ledger.last().next_signer

    def model(self) -> Any:
        """A copy of the model as it is now; the store ignores what you do with it."""
        with self._folder.snapshot() as (_, entry, model):
            return self._folder.load(entry) if model is None else model

    def status(self) -> Status:
        """The state of the store."""
        with open_ledger(self._folder.ledger) as ledger:
            last, moved = ledger.last(), ledger.followed()
            return Status(
                *(str(self.path), str(ledger.origin["model"]["kind"]), last.sequence, last.time),
                *(last.held, last.totals, last.unknown, last.waiting),
                *(last.digest_after, last.root_after, last.hash),
                *(last.records is not None, last.generation is not None),
                None if moved is None else moved.followed,
                *(self._folder.size(), log_is_empty(self._folder.ledger)),
            )

    def history(self) -> list[Entry]:
        """All entries of the ledger, the first one first."""
        with open_ledger(self._folder.ledger) as ledger:
            last, entries = ledger.last(), list(ledger.entries())
            nodes = dict[tuple[int, int], bytes]()
            for entry in entries:
                Tree(nodes).append(entry.sequence, entry.payload)
            if Tree(nodes).root(last.sequence + 1) != ledger.head().root:
                raise StoreError(
                    "The ledger is damaged: an entry was changed after it was written (see "
                    "traceless verify). Restore the store from a backup."
                )
            return entries

    def receipt(self, sequence: int | None = None) -> Receipt:
        """The receipt of an entry.

        Parameters
        ----------
        sequence : int, optional
            Its number; by default the latest.

        Returns
        -------
        Receipt
        """
        with open_ledger(self._folder.ledger) as ledger:
            entry = ledger.last() if sequence is None else ledger.entry(sequence)
            return ledger.receipt(entry.sequence)

    def find(self, name: str | int) -> Found:
        """How many rows of an id are held and wait, and whether it is on the suppression list.

        Parameters
        ----------
        name : str or int
            The id, as it was given to `learn` with the rows.

        Returns
        -------
        Found
        """
        with open_ledger(self._folder.ledger) as ledger:
            secret = self._folder.secret(ledger.last())
            if secret is None:
                raise StoreError(
                    "The secret of this store was destroyed, and with it all that could tell ids "
                    "apart."
                )
            (hashed,) = names_of([name], keys_of(secret)["id"])
            return ledger.find(hashed, *self._folder.suppression(ledger.last()).days(hashed))

    def known(self, names: Iterable[str]) -> list[str]:
        """Those of some ids of which rows are held.

        Parameters
        ----------
        names : iterable of str
        """
        names = list(names)
        with open_ledger(self._folder.ledger) as ledger:
            secret = self._folder.secret(ledger.last())
            hashed = names_of(names, keys_of(secret)["id"]) if secret else []
            held = ids_of(ledger.sql, hashed)
            return [name for name, one in zip(names, hashed, strict=False) if one in held]

    def head(self) -> str:
        """A few lines that identify the whole history, to be kept or published elsewhere.

        It is a signed checkpoint in the form of C2SP: the name of the log, the number of entries,
        the root of their Merkle tree, and a signature. A store that was set back, or rewritten,
        does not continue it.
        """
        with open_ledger(self._folder.ledger) as ledger:
            ledger.last()
            return str(ledger.head())

    def consistency(self, head: str) -> str:
        """The proof that the log continues that of a head: the hashes of RFC 9162, one a line.

        Parameters
        ----------
        head : str
            As `head` gave it once.
        """
        from traceless.store.checkpoint import Head

        with open_ledger(self._folder.ledger) as ledger:
            ledger.last()
            return ledger.consistency(Head.parsed(head))

    def verify(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        ids: Any = None,
        receipt: Receipt | None = None,
        head: str | None = None,
        public_key: Any = None,
        witnesses: Sequence[str] | None = None,
    ) -> Verification:
        """Check the ledger and the files; with rows, also fit the model from scratch and compare.

        Parameters
        ----------
        X, y, sample_weight
            All rows that the model should hold, in any form that `learn` takes and any order.
        ids : sequence of str or int, optional
            The id of each row; given ids are checked too.
        receipt : Receipt, optional
            One that was kept elsewhere: the store must continue its history.
        head : str, optional
            A `head` that was kept elsewhere, likewise.
        public_key : str or path, optional
            The key of the store, as it is known elsewhere: 64 digits, or a file with them or with
            PEM. The store must be signed with it, or with one that it has handed over to.
        witnesses : sequence of str, optional
            Verifier keys of witnesses, as C2SP writes them: each must have signed the head.

        Returns
        -------
        Verification
        """
        from traceless.store.kept import Kept
        from traceless.store.verification import verify

        rows = None if X is None else (X, y, sample_weight, ids)
        return verify(self._folder, rows, Kept(receipt, head, public_key, witnesses))

    def pending(self) -> list[Queued]:
        """The requests to forget that wait, the oldest first."""
        with open_ledger(self._folder.ledger) as ledger:
            return ledger.pending()

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"
