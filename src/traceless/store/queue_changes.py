"""Put requests to forget into the queue, forget all that wait, or cancel one."""

from __future__ import annotations

import warnings

import numpy as np

from traceless.exceptions import StoreError
from traceless.files.container import canonical_json
from traceless.store.queue import Queued, packed, plain_arrays, unpacked
from traceless.store.receipts import Receipt
from traceless.store.row_changes import RowChanges
from traceless.store.row_digests import Given, Tally, row_batches


class QueueChanges(RowChanges):
    """Changes of the queue."""

    def enqueue(self, rows: Given, whole: bool) -> Receipt | Queued:
        """Keep rows until they can be forgotten with others; forget all if that is safe now."""
        batches = row_batches(*rows, self.origin)
        if self._known:
            return self._forgotten_before(batches)
        queue, asked = self.ledger.queue, Tally()
        taken = self._taken(batches, self.ledger.rows.reserve, whole, asked)
        content = packed(list(map(plain_arrays, taken)))
        if not np.array_equal(self.hasher.tally(unpacked(content)).asked, asked.lanes):
            raise ValueError(
                "These labels cannot be kept in the queue as they are. Forget the rows without "
                "batch=True (--batch). Nothing was changed."
            )
        self.waiting, classes = asked.ids, dict(asked.classes)
        request = self._rows_request(asked)
        wait = self.before.waiting + asked.rows
        hashed = self.hasher.queued(canonical_json(classes), content)
        entry = self.note("queue", request, rows=asked.rows, waiting=wait, queued=hashed)
        queue.put(entry, classes, content)
        if queue.is_safe():
            return self._flush(checked=entry.sequence)
        said = entry.time, self.asked.key, entry.rows, classes, entry.sequence
        return Queued(*said, receipt=self.commit())

    def flush(self, force: bool) -> list[Receipt]:
        """Forget all rows that wait, if there are enough of them, or by force."""
        pending = self.ledger.pending()
        return [self._flush()] if pending and (force or self.ledger.queue.is_safe()) else []

    def _flush(self, checked: int | None = None) -> Receipt:
        queue = self.ledger.queue
        pending = self.ledger.pending()
        keys = tuple(queued.key for queued in pending if queued.key is not None)
        for queued in pending:
            if queued.sequence != checked:  # nobody may exchange rows while they wait
                queue.check(queued, self.hasher)
        with warnings.catch_warnings():  # the queue keeps rows without the names of columns
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            self._forget(queue.batches(), self.ledger.rows.remove_reserved)
        self.waiting.subtract(self.removed.ids)
        queue.clear()
        return self.finish("forget", self._rows_request(), keys=keys, waiting=0)

    def cancel(self, which: int | str) -> Receipt:
        """Take a request out of the queue, by its number or its key."""
        queue, taken = self.ledger.queue, Tally()
        pending = self.ledger.pending()
        queued = next((q for q in pending if which in (q.sequence, q.key)), None)
        if queued is None:
            waiting = ", ".join(str(q.sequence) for q in pending) or "none"
            raise StoreError(
                f"No request {which!r} waits in the queue. Their numbers: {waiting}. Nothing was "
                "changed."
            )
        entry = queue.check(queued, self.hasher)
        batches, release = queue.batches(queued.sequence), self.ledger.rows.release
        for _ in self._taken(batches, release, into=taken):
            pass
        self.waiting.subtract(taken.ids)
        queue.clear(queued.sequence)
        wait = self.before.waiting - taken.rows
        said = {"keys": entry.keys, "rows": taken.rows, "subject": f"entry {queued.sequence}"}
        self.note("cancel", entry.request, waiting=wait, **said)
        return self.commit()
