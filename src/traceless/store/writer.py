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
        """Destroy the secret or the model, and all rows and people; or the suppression list."""
        if self._known:
            return self._first_answer("destroy", 0, what)
        last = self.before
        there = {"model": last.generation, "secret": self.secret, "suppression": last.suppression}
        if there[what] is None:
            raise StoreError(
                f"The {what} of this store was destroyed before, or is not there. Nothing was "
                "changed."
            )
        no_list = {"suppression": None, "suppression_sha256": None}
        if what == "suppression":
            return self.finish("destroy", what, subject=what, **no_list)
        if last.waiting:
            raise StoreError(
                "Requests wait in the queue, and could then never be met: flush them first. "
                "Nothing was changed."
            )
        self.ledger.rows.clear()
        self.emptied = True
        if what == "secret":  # without it nobody can be found on the list
            self.secret = None
            return self.finish("destroy", what, subject=what, **no_list)
        self.model, self.cached, self.unknown = None, None, 0
        self.removed.classes.update(last.totals)
        return self.finish("destroy", what, subject=what, removed=last.held)

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
