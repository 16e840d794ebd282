"""Receipts: an entry of the ledger that can leave the store, and be checked without it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from traceless.estimators import loading
from traceless.exceptions import StoreError
from traceless.files.container import parsed_json
from traceless.store import version_1
from traceless.store.checks import Check, Verification
from traceless.store.entries import VERSION, Entry, hash_of
from traceless.store.page import page
from traceless.store.roots import digest_of, held, root_of
from traceless.store.rows import Batch, batches_of

_FORMAT = "traceless receipt "  # and the version of the entry


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
        said = {f.name: getattr(entry, f.name) for f in fields(Entry)}
        return cls(**said, store=store, replayed=replayed)

    def check(self) -> bool:
        """Whether its hashes are right: nothing in it was changed after it was written."""
        honest = self.version > 1 or version_1.made(self.store)
        return honest and self.is_intact() and self.origin == hash_of(self.store)

    def to_json(self) -> str:
        """The receipt as a text to keep, or to send to whoever asked."""
        said = {
            "format": f"{_FORMAT}{self.version}",
            "entry": self.facts(),
            "hash": self.hash,
            "store": self.store,
        }
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
            known = said["format"].startswith(_FORMAT) and isinstance(said["store"], dict)
            facts, told = json.dumps(said["entry"]), said["hash"]
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            known = False
        if not known:
            raise StoreError(
                f"This is not a receipt: a JSON object of format '{_FORMAT}{VERSION}' is."
            )
        entry = Entry.from_body(facts, told)
        if said["format"] != f"{_FORMAT}{entry.version}":
            raise StoreError(f"This is not a receipt: its entry is of version {entry.version}.")
        return cls.of(entry, said["store"])

    def to_html(self) -> str:
        """The receipt as a page to print, with nothing to be loaded from elsewhere."""
        return page(self, self.store, self.check())


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
    intact = Check(
        "receipt",
        receipt.check(),
        "its hashes are right" if receipt.check() else "it was changed after it was written",
    )
    model = learned(receipt.store, batches_of(X, y, sample_weight))
    return Verification((intact, *compared(model, receipt, "model")))


def learned(store: Mapping[str, Any], batches: Iterable[Batch]) -> Any:
    """The model of a store, known by what it said when it was made, after a fit from scratch."""
    model = loading.from_description(store.get("model", {}))
    for batch in batches:
        if len(batch[1]):
            X, y, weight = version_1.weighed(store, batch)
            model.partial_fit(X, y, sample_weight=weight)
    return model


def compared(model: Any, entry: Entry, name: str) -> Iterator[Check]:
    """Whether the model of an entry is this one, which was fitted from scratch."""
    rows, digest = held(model), digest_of(model)
    if entry.version == 1 and rows:
        digest = version_1.digest(model)
    same = digest == entry.digest_after and rows == entry.held
    said = f"a fit from scratch on {rows} rows has the digest {digest}"
    if not same:
        said += (
            f"; after entry {entry.sequence} the model held {entry.held} rows and had the digest "
            f"{entry.digest_after}"
        )
        said += "" if digest or not rows else f" ({version_1.UNKNOWN})"
    elif root_of(model) is None and rows:
        said += f" ({version_1.LACKS})"
    yield Check(name, same, said)
    if entry.version > 1 and entry.root_after is not None:
        ok = root_of(model) == entry.root_after
        is_it = "is" if ok else "is not"
        yield Check("root", ok, f"the root over these rows {is_it} that of entry {entry.sequence}")
