"""Requests with an idempotency key: one that is repeated gets its first answer."""

from __future__ import annotations

from typing import cast

from traceless.exceptions import StoreError
from traceless.store.change import Asked, Cached, Change
from traceless.store.folder import Folder
from traceless.store.ledger import Ledger, Request
from traceless.store.receipts import Receipt


class Answering(Change):
    """One change of a store, made once however often it is requested with the same key."""

    def __init__(self, folder: Folder, ledger: Ledger, asked: Asked, cached: Cached = None) -> None:
        super().__init__(folder, ledger, asked, cached)
        self._known = None if asked.key is None else ledger.request(asked.key)
        if self._known is None:
            self.signing_key  # noqa: B018  raises at once if it is not there

    def tidy(self) -> None:
        """Remove what others left behind, also if there was nothing to change."""
        if not (self.committed or self.asked.dry_run) and self.folder.left_over(self.before):
            self.ledger.sql.execute("ROLLBACK")
            self.folder.tidy(self.ledger)

    def _first_answer(self, kind: str, rows: int, request: str | None) -> Receipt:
        """The receipt of the request that came with this key before.

        Raises if that was another request: of another kind, number of rows, or hash.
        """
        before = cast(Request, self._known)
        if self.secret is None and rows:
            raise StoreError(
                f"A request with the key {before.key!r} came before, and since the secret of this "
                "store was destroyed nobody can tell whether it is this one. Look at its entry "
                f"({before.sequence}), and give a new request a key of its own. Nothing was "
                "changed."
            )
        same = before.request == request
        if (kind, rows) != (before.kind, before.rows) or not same:
            raise StoreError(
                f"The key {before.key!r} is that of another request: {before.kind} of "
                f"{before.rows} rows, where this one is {kind} of {rows}"
                f"{'' if same else ' other'} rows. Give every request a key of its own. Nothing "
                "was changed."
            )
        answer = self.ledger.receipt(before.sequence, replayed=True)
        if answer.kind == "cancel":
            raise StoreError(
                f"The request with the key {before.key!r} was cancelled (entry {answer.sequence}, "
                f"{answer.time}). Give a new request a key of its own. Nothing was changed."
            )
        return answer
