"""A home for models: one model on disk, a ledger of what was done to it, and receipts.

    store = Store.new("store", LSSVC())
    store.learn(X, y)
    receipt = store.forget(X[:40], y[:40])
    assert store.verify(X[40:], y[40:]).ok

Every change is one commit of one SQLite file, which names the file of the model; rows are
known by keyed digests, and are not kept.
"""

from traceless.store.checks import Check, Verification
from traceless.store.entries import Entry
from traceless.store.home import Store
from traceless.store.queue import SAFE_ROWS, Queued
from traceless.store.receipts import Receipt, verify_receipt
from traceless.store.status import Status

__all__ = [
    "SAFE_ROWS",
    "Check",
    "Entry",
    "Queued",
    "Receipt",
    "Status",
    "Store",
    "Verification",
    "verify_receipt",
]
