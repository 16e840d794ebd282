"""Receipts: an entry of the ledger that can leave the store, and be checked without it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from traceless import loading
from traceless.container import parsed_json
from traceless.exceptions import StoreError
from traceless.store.checks import Check, Verification
from traceless.store.entries import Entry, hash_of
from traceless.store.page import page
from traceless.store.rows import batches_of

FORMAT = "traceless receipt 1"


@dataclass(frozen=True, kw_only=True)
class Receipt(Entry):
    """What was changed, for those who asked for it.

    Its fields are those of the `Entry`. They name no rows: counts, the digests of the model
    before and after, and hashes.

    Attributes
    ----------
    store : dict
        What the store is: its ``model``, what it is ``about``, when it was ``created``. Its
        hash is the field `origin`, so it is part of what is hashed.
    replayed : bool
        Whether the request had been answered before; this is then the answer of that time,
        and nothing was changed again.

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

    @classmethod
    def of(cls, entry: Entry, store: Mapping[str, Any], replayed: bool = False) -> Self:
        """The receipt of an entry."""
        return cls(**entry.facts(), hash=entry.hash, store=store, replayed=replayed)

    def check(self) -> bool:
        """Whether its hashes are right: nothing in it was changed after it was written."""
        return self.is_intact() and self.origin == hash_of(self.store)

    def to_json(self) -> str:
        """The receipt as a text to keep, or to send to whoever asked."""
        said = {"format": FORMAT, "entry": self.facts(), "hash": self.hash, "store": self.store}
        return json.dumps(said, indent=2, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The receipt of such a text.

        Raises
        ------
        StoreError
            If the text is no receipt. Whether it is an honest one is for `check` to say.
        """
        try:
            said = parsed_json(text)
            known = said["format"] == FORMAT and isinstance(said["store"], dict)
            facts, told = json.dumps(said["entry"]), said["hash"]
        except (ValueError, TypeError, KeyError, RecursionError):
            known = False
        if not known:
            raise StoreError(f"This is not a receipt: a JSON object of format {FORMAT!r} is.")
        return cls.of(Entry.from_body(facts, told), said["store"])

    def to_html(self) -> str:
        """The receipt as a page to print, with nothing to be loaded from elsewhere."""
        return page(self, self.store, self.check())


def verify_receipt(
    receipt: Receipt, X: Any, y: Any = None, sample_weight: Any = None
) -> Verification:
    """Check a receipt against the rows that remained, without the store.

    A model as the receipt describes it learns the rows from scratch; if it has the digest
    that the receipt gives, then these rows, and nothing else, are in the model.

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
    intact = Check(
        "receipt",
        receipt.check(),
        "its hashes are right" if receipt.check() else "it was changed after it was written",
    )
    model = loading.from_description(receipt.store.get("model", {}))
    return Verification((intact, refitted(model, receipt, X, y, sample_weight)))


def refitted(
    model: Any, entry: Entry, X: Any, y: Any, sample_weight: Any, name: str = "model"
) -> Check:
    """Whether an empty model that learns these rows is the one of an entry."""
    for X_part, y_part, weight in batches_of(X, y, sample_weight):
        if len(y_part):
            model.partial_fit(X_part, y_part, sample_weight=weight)
    rows, digest = held(model), digest_of(model)
    ok = digest == entry.digest_after and rows == entry.held
    said = f"a fit from scratch on {rows} rows has the digest {digest}"
    return Check(
        name,
        ok,
        said
        if ok
        else f"{said}; after entry {entry.sequence} the model held {entry.held} rows "
        f"and had the digest {entry.digest_after}",
    )


def held(model: Any) -> int:
    """How many rows a model holds."""
    return int(getattr(model, "n_samples_", 0))


def digest_of(model: Any) -> str | None:
    """The digest of a model; one of no rows has none."""
    return str(model.digest()) if held(model) else None
