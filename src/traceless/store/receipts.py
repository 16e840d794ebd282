"""Receipts: entries of the ledger that can be checked without the store.

A receipt is JSON, or a page to print: one file of HTML, with nothing to be loaded from elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from traceless.exceptions import StoreError
from traceless.files.container import parsed_json
from traceless.store import receipt_page
from traceless.store.entries import VERSION, Entry, hash_of

_FORMAT = f"traceless receipt {VERSION}"


@dataclass(frozen=True, kw_only=True)
class Receipt(Entry):
    """The proof of one change, for the person who asked for it.

    Its fields are those of the `Entry`: counts, the digests of the model before and after, and
    hashes. None of them names a row.

    Attributes
    ----------
    store : dict
        The description of the store: its ``model``, what it is ``about``, when it was
        ``created``. The field `origin` is its hash, so a changed description shows.
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

    store: Mapping[str, Any]
    replayed: bool = field(default=False, compare=False)
    dry_run: bool = field(default=False, compare=False)
    tried: Any = field(default=None, compare=False, repr=False)
    log_emptied: bool = field(default=True, compare=False)

    @classmethod
    def of(cls, entry: Entry, store: Mapping[str, Any], replayed: bool = False) -> Self:
        """The receipt of an entry."""
        said = {f.name: getattr(entry, f.name) for f in fields(Entry)}
        return cls(**said, store=store, replayed=replayed)

    def check(self) -> bool:
        """Whether hashes and signature are right: nothing was changed after it was written."""
        return self.origin == hash_of(self.store) and self.is_intact()

    def to_json(self) -> str:
        """The receipt as JSON, to be kept or sent."""
        said = {"format": _FORMAT, "entry": self.facts(), "hash": self.hash}
        said |= {"signature": self.signature, "store": self.store}
        return json.dumps(said, indent=2, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read the text of `to_json`.

        Raises
        ------
        StoreError
            If the text is no receipt. `check` says whether its hashes are right.
        """
        try:
            said = parsed_json(text)
            known = said["format"] == _FORMAT and isinstance(said["store"], dict) and len(said) == 5
            parts = json.dumps(said["entry"]), said["hash"], said["signature"]
        except (ValueError, TypeError, KeyError, RecursionError):
            known = False
        if not known:
            raise StoreError(f"This is not a receipt: a JSON object of format '{_FORMAT}' is.")
        return cls.of(Entry.from_body(*parts), said["store"])

    def to_html(self) -> str:
        """The receipt as an HTML page to print, which loads nothing from elsewhere."""
        return receipt_page.page(self)
