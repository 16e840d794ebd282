"""Put requests to forget into the queue, forget all that wait, or cancel one."""

from __future__ import annotations

import warnings

from traceless.exceptions import StoreError
from traceless.store.entries import Entry
from traceless.store.queue import Queued, packed, plain_arrays, unpacked
from traceless.store.receipts import Receipt
from traceless.store.row_changes import RowChanges
from traceless.store.row_digests import Given, RowBatch, Tally, row_batches


class QueueChanges(RowChanges):
    """Changes of the queue."""

    def enqueue(self, rows: Given, whole: bool) -> Receipt | Queued:
        """Keep rows until they can be forgotten with others; forget all if that is safe now."""
        batches = row_batches(*rows, self.origin)
        if self._known:
            return self._forgotten_before(batches)
        asked = Tally()
        taken = list(self._taken(batches, whole, asked))
        content = packed(list(map(plain_arrays, taken)))
        again = self.hasher.tally(unpacked(content))
        if again.in_order() != asked.in_order():
            raise ValueError(
                "These labels cannot be kept in the queue as they are. Forget the rows without "
                "batch=True (--batch). Nothing was changed."
            )
        number = self.before.sequence + 1
        self._put([record._replace(request=number) for record in self.records])
        said = {"rows": asked.rows, "classes": dict(asked.classes)}
        said |= {"waiting": self.before.waiting + asked.rows}
        entry = self.note("queue", self._request(asked), queued=self.hasher.queued(content), **said)
        self.ledger.queue.put(number, content)
        if self._waiting_rows().are_enough():
            return self._flush()
        told = entry.time, self.asked.key, entry.rows, dict(entry.classes), number
        return Queued(*told, receipt=self.commit())

    def flush(self, force: bool) -> list[Receipt]:
        """Forget all rows that wait, if there are enough of them, or by force."""
        pending = self.ledger.pending()
        enough = pending and (force or self._waiting_rows().are_enough())
        return [self._flush()] if enough else []

    def _waiting(self) -> list[tuple[Entry, list[RowBatch]]]:
        """The requests that wait, with their rows, which nobody may have exchanged."""
        ledger = self.ledger
        entries = [ledger.entry(queued.sequence) for queued in ledger.pending()]
        return [(entry, ledger.queue.checked(entry, self.hasher)) for entry in entries]

    def _waiting_rows(self) -> Tally:
        return self.hasher.tally(batch for _, batches in self._waiting() for batch in batches)

    def _flush(self) -> Receipt:
        keys, self.asked = list[str](), self.asked._replace(personal=False)
        with warnings.catch_warnings():  # the queue keeps rows without the names of columns
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            for entry, batches in self._waiting():
                keys += entry.keys
                for held in self._taken(batches, False, request=entry.sequence):
                    self.model.forget(*held[:3])
        self.ledger.queue.clear()
        return self.finish("forget", self._request(self.removed), keys=tuple(keys), waiting=0)

    def cancel(self, which: int | str) -> Receipt:
        """Take a request out of the queue, by its number or its key."""
        taken = Tally()
        found = (entry for entry, _ in self._waiting() if which in (entry.sequence, *entry.keys))
        entry = next(found, None)
        if entry is None:
            waiting = ", ".join(map(str, self.ledger.queue.numbers())) or "none"
            raise StoreError(
                f"No request {which!r} waits in the queue. Their numbers: {waiting}. Nothing was "
                "changed."
            )
        batches = self.ledger.queue.checked(entry, self.hasher)
        for _ in self._taken(batches, into=taken, request=entry.sequence):
            pass
        self._put([record._replace(request=0) for record in self.records])
        self.ledger.queue.clear(entry.sequence)
        said = {"keys": entry.keys, "rows": taken.rows, "classes": dict(taken.classes)}
        said |= {"subject": f"entry {entry.sequence}", "waiting": self.before.waiting - taken.rows}
        self.note("cancel", entry.request, **said)
        return self.commit()
