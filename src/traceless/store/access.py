"""Who may change a store: the holder of its lock and of its signing key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from traceless.store.lock import write_lock
from traceless.store.opening import open_ledger
from traceless.store.reading import StoreReader
from traceless.store.receipts import Receipt

if TYPE_CHECKING:
    from traceless.store.change import Cached
    from traceless.store.writer import Writer


class StoreAccess(StoreReader):
    """A store that can be changed, and the key that signs its changes.

    Parameters
    ----------
    path, wait, signing_key
        As for `Store`.
    """

    def __init__(self, path: Any, *, wait: float = 0.0, signing_key: Any = None) -> None:
        self._wait, self._signing_key = float(wait), signing_key
        self._cache: Cached = None
        super().__init__(path)

    def new_key(self, signing_key: Any = None, *, dry_run: bool = False) -> Receipt:
        """Replace the signing key: the last thing the old key signs is the new public key.

        Parameters
        ----------
        signing_key : str or path, optional
            The file of the new key, which stays where it is. By default a new key is made in the
            folder.
        dry_run : bool, default=False
            As for `learn`.

        Returns
        -------
        Receipt
            Of the kind "key".
        """
        from traceless.store.keys import SigningKey

        key = SigningKey.new() if signing_key is None else SigningKey.read(signing_key)
        with self._writing(None, dry_run) as writer:
            receipt = writer.new_key(key, keep=signing_key is None)
        if not dry_run:
            self._signing_key = signing_key
        return receipt

    def private_key(self) -> str:
        """The private half of the signing key as PEM, for a backup elsewhere."""
        from traceless.store import keys

        found = keys.find(self._folder, self._signing_key, self.public_key)
        return found.pem().decode()

    # --- inside ---------------------------------------------------------------------------

    @contextmanager
    def _writing(self, key: str | None, dry_run: bool = False) -> Iterator[Writer]:
        """The one writer of the store, for one change."""
        if key is not None and (not isinstance(key, str) or not 0 < len(key) <= 200):
            raise ValueError(f"key must be a text of 1 to 200 characters, got {key!r}.")
        from traceless.store.change import Asked
        from traceless.store.writer import Writer

        folder, patience = self._folder, max(self._wait, 1.0)
        with write_lock(folder.lock, self._wait, folder.permissions(), dry_run):
            folder.sweep()
            with open_ledger(folder.ledger, "BEGIN IMMEDIATE", patience) as ledger:
                cached, self._cache = self._cache, None  # under the lock: threads may share a store
                asked = Asked(key, dry_run, self._signing_key)
                writer = Writer(folder, ledger, asked, cached)
                self._about = writer.origin["about"]
                yield writer
                self._cache = writer.cached
                writer.tidy()
