"""A store: one model on disk, a ledger of all its changes, and receipts for them.

    store = Store.new("store", LSSVC())
    store.learn(X, y)
    receipt = store.forget(X[:40], y[:40])
    assert store.verify(X[40:], y[40:]).ok

Every change is one commit of one SQLite file, which names the file of the model. The store keeps
keyed digests of the rows, not the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from traceless.store.entries import Entry, Followed
from traceless.store.people import Event, Found
from traceless.store.queue import SAFE_ROWS, Queued
from traceless.store.reading import Status
from traceless.store.receipts import PersonalReceipt, Receipt
from traceless.store.store import Store

if TYPE_CHECKING:
    from traceless.store.verification import Check, Verification, verify_receipt

__all__ = [
    "SAFE_ROWS",
    "Check",
    "Entry",
    "Event",
    "Followed",
    "Found",
    "PersonalReceipt",
    "Queued",
    "Receipt",
    "Status",
    "Store",
    "Verification",
    "verify_receipt",
]


if not TYPE_CHECKING:  # a verification fits models: import scikit-learn only when it is used

    def __getattr__(name: str) -> Any:
        if name not in ("Check", "Verification", "verify_receipt"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from traceless.store import verification

        return getattr(verification, name)
