"""A home for models: generations, a ledger, receipts."""

from traceless.store.home import Store

__all__ = ["Store"]
