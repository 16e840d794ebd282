"""All changes of a store: those of rows, of the queue and of slices, and of the store itself."""

from __future__ import annotations

from traceless.exceptions import StoreError
from traceless.store.keys import SigningKey
from traceless.store.queue_changes import QueueChanges
from traceless.store.receipts import Receipt
from traceless.store.slice_changes import SliceChanges


class Writer(QueueChanges, SliceChanges):
    """One change of a store, of any kind."""

    def destroy(self, what: str) -> Receipt:
        """Destroy the secret or the model; digests and ids go with either."""
        if self._known:
            return self._first_answer("destroy", 0, what)
        if self.secret is None if what == "secret" else self.before.generation is None:
            raise StoreError(f"The {what} of this store was destroyed before. Nothing was changed.")
        if self.before.waiting:
            raise StoreError(
                "Requests wait in the queue, and could then never be met: flush them first. "
                "Nothing was changed."
            )
        self.ledger.rows.clear()
        self.ledger.ids.clear()
        self.emptied, removed = True, 0
        if what == "secret":
            self.secret = None
        else:
            self.model, self.cached, self.unknown = None, None, 0
            self.removed.classes.update(self.ledger.class_counts())
            removed = self.before.held
        return self.finish("destroy", what, subject=what, removed=removed)

    def new_key(self, key: SigningKey, keep: bool) -> Receipt:
        """Hand over to another key, which is kept in the folder or elsewhere."""
        if key.public == self.before.next_signer:
            raise StoreError("This is the key that the store has already. Nothing was changed.")
        if keep and not self.asked.dry_run:
            self.folder.write_private("key.new", key.pem())
        self.note("key", subject=key.public)
        receipt = self.commit(key)
        if not (keep or self.asked.dry_run):
            self.folder.remove(self.folder.path / "key")  # the old one, if it was there
        return receipt
