"""Receipts: entries of the ledger that can be checked without the store.

A receipt is JSON, or a page to print: one file of HTML, with nothing to be loaded from elsewhere.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Self

from traceless.exceptions import StoreError
from traceless.files.container import parsed_json
from traceless.store import receipt_page
from traceless.store.checkpoint import Head, proven_by
from traceless.store.entries import Entry, hash_of
from traceless.store.envelope import opened
from traceless.store.personal import PersonalReceipt

_FORMAT = "traceless receipt 1"
_FACTS = {"store": str, "created": str, "task": str, "secret": str, "model": dict, "about": dict}


@dataclass(frozen=True, kw_only=True)
class Receipt(Entry):
    """The proof of one change, for the person who asked for it.

    Its fields are those of the `Entry`: counts, the digests of the model before and after, and
    hashes. None of them names a row.

    Attributes
    ----------
    document : str
        The description of the store, of which `origin` is the hash; `store` is what it says: the
        ``model``, what it is ``about``, when it was ``created``.
    proof : str
        That the entry is in the log of the store, with a head of it (`checkpoint`).
    people : tuple of PersonalReceipt
        One for each id that was given, if that was asked for.
    replayed : bool
        Whether the request had been answered before: this is the first answer, and nothing was
        changed again.
    dry_run : bool
        Whether the change was only tried: nothing was changed, and the receipt is not signed.
    tried : LSSVC, LSSVR, PathSVC or None
        After a dry run: the model as it would be.
    log_emptied : bool
        Whether nothing of what was replaced is left in the log of the ledger. A process that was
        reading can keep it for a while; the next change, or opening, empties it.

    Examples
    --------
    >>> import tempfile
    >>> from traceless import LSSVC, Store
    >>> from traceless.store import Receipt, verify_receipt
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store.new(f"{folder}/store", LSSVC())
    ...     text = store.learn([[0.0], [1.0]], ["no", "yes"]).to_json()
    >>> receipt = Receipt.from_json(text)
    >>> receipt.kind, receipt.rows, receipt.check()
    ('learn', 2, True)
    >>> verify_receipt(receipt, [[1.0], [0.0]], ["yes", "no"]).ok  # no store is needed
    True
    """

    document: str
    proof: str = field(default="", compare=False, repr=False)
    people: tuple[PersonalReceipt, ...] = field(default=(), compare=False, repr=False)
    replayed: bool = field(default=False, compare=False)
    dry_run: bool = field(default=False, compare=False)
    tried: Any = field(default=None, compare=False, repr=False)
    log_emptied: bool = field(default=True, compare=False)

    @classmethod
    def of(cls, entry: Entry, document: str, proof: str, replayed: bool = False) -> Self:
        """The receipt of an entry."""
        said = {f.name: getattr(entry, f.name) for f in fields(Entry)}
        return cls(**said, document=document, proof=proof, replayed=replayed)

    @cached_property
    def store(self) -> dict[str, Any]:
        """The description of the store."""
        return _parsed(self.document)

    def check(self) -> bool:
        """Whether all of it is signed with one key: nothing was changed after it was written."""
        try:
            head = self.head()
        except StoreError:
            return False
        same = self.origin == hash_of(self.document.encode())
        same = same and Entry.from_payload(self.payload).facts() == self.facts()
        logged = head.origin == f"traceless/{self.store.get('store')}"
        return same and logged and self.is_intact() and head.is_signed(self.signer)

    def head(self) -> Head:
        """The head of the log that the entry is in; raises `StoreError` if that is not proven."""
        return proven_by(self.proof, self.sequence, bytes.fromhex(self.hash))

    def to_json(self) -> str:
        """The receipt as JSON, to be kept or sent."""
        said = {"format": _FORMAT, "envelope": self.envelope(), "proof": self.proof}
        return json.dumps(said | {"store": self.document}, indent=2, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read the text of `to_json`.

        Raises
        ------
        StoreError
            If the text is no receipt. `check` says whether it was changed.
        """
        try:
            said = parsed_json(text)
            known = said["format"] == _FORMAT and len(said) == 4
            sealed, *texts = said["envelope"], said["proof"], said["store"]
            known = known and {*map(type, texts)} == {str}
        except (ValueError, TypeError, KeyError, RecursionError):
            known = False
        if not known:
            raise StoreError(f"This is not a receipt: a JSON object of format '{_FORMAT}' is.")
        payload, signature, signer = opened(sealed)
        entry = Entry.from_payload(payload, signature)
        if entry.signer != signer:
            raise StoreError("This is not a receipt: its envelope names another key.")
        proof, document = texts
        return cls.of(entry, document, proof)

    def to_html(self) -> str:
        """The receipt as an HTML page to print, which loads nothing from elsewhere."""
        return receipt_page.page(self)


def described(document: str) -> dict[str, Any]:
    """The facts of the description of a store; raises `StoreError` if they are none."""
    facts = _parsed(document)
    known = {name: type(facts.get(name)) for name in _FACTS} == _FACTS
    if not known or type(facts["model"].get("kind")) is not str:
        raise StoreError("The ledger is damaged: it has no description of the store.")
    return facts


def _parsed(document: str) -> dict[str, Any]:
    """What a description says; nothing if it is no JSON object."""
    found: Any = None
    with suppress(ValueError, TypeError, RecursionError):
        found = parsed_json(document)
    return found if isinstance(found, dict) else {}
