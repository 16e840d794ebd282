"""The store: a folder with one model, a ledger of all its changes, and receipts for them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from traceless.store.lock import write_lock
from traceless.store.opening import open_ledger
from traceless.store.queue import Queued
from traceless.store.reading import StoreReader
from traceless.store.receipts import Receipt
from traceless.store.schema import ForeignTablesError

if TYPE_CHECKING:
    from traceless.store.change import Cached
    from traceless.store.ledger import Ledger
    from traceless.store.writer import Writer


class Store(StoreReader):
    """A model on disk, with a ledger of all its changes.

    Every change is all or nothing, also if the process is killed or the disk is full, and gives a
    `Receipt`. Rows are not kept: the store recognises them by keyed digests, and refuses to forget
    a row that it does not hold. Any number of processes may read, and one at a time may write.

    Parameters
    ----------
    path : str or path
        The folder of the store; `Store.new` makes one.
    wait : float, default=0.0
        Seconds to wait for another process that is changing the store.
    signing_key : str or path, optional
        The file of the key that signs its changes, if that is not in the folder. By default the
        one that the environment variable TRACELESS_SIGNING_KEY names, if any.

    Attributes
    ----------
    about : dict
        What `Store.new` was given to keep with the store.
    public_key : str
        The public half of the key that signs its changes.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from traceless import LSSVC, Store
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> y = np.where(X[:, 0] > 0, "yes", "no")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store.new(f"{folder}/store", LSSVC())
    ...     learned = store.learn(X, y, key="first delivery")
    ...     again = store.learn(X, y, key="first delivery")  # the same request: nothing is done
    ...     forgotten = store.forget(X[:80], y[:80])
    ...     proof = store.verify(X[80:], y[80:])
    >>> again.replayed, forgotten.held, proof.ok
    (True, 120, True)
    >>> forgotten.digest_after == LSSVC(fingerprint=True).fit(X[80:], y[80:]).digest()
    True
    """

    def __init__(self, path: Any, *, wait: float = 0.0, signing_key: Any = None) -> None:
        self._wait, self._signing_key = float(wait), signing_key
        self._cache: Cached = None
        super().__init__(path)

    @classmethod
    def new(
        cls,
        path: Any,
        estimator: Any,
        *,
        about: Mapping[str, Any] | None = None,
        secret: Any = None,
        shared: bool = False,
        signing_key: Any = None,
    ) -> Self:
        """Make a store for a model that has learned nothing yet.

        Parameters
        ----------
        path : str or path
            A folder that does not exist, or is empty.
        estimator : LSSVC, LSSVR or one of the path family
            It is cloned. The first two get ``fingerprint=True``, so that their digests, and the
            roots in receipts, tell which rows they hold.
        about : dict, optional
            Whatever should be kept with the store, such as the columns of its tables: JSON's
            types only. It goes into every receipt.
        secret : bytes, optional
            32 random bytes that key the digests of rows, to be shared by stores that will be
            merged. By default new ones.
        shared : bool, default=False
            Whether the group of the folder may read and change the store too. By default only
            its owner may.
        signing_key : str or path, optional
            The file of an Ed25519 key, as ``openssl genpkey -algorithm ed25519`` writes it, which
            stays where it is. By default that which TRACELESS_SIGNING_KEY names, or else a new
            one, in the folder.

        Returns
        -------
        Store
        """
        from traceless.store.creation import create_store

        create_store(Path(path), estimator, about, secret, shared, signing_key)
        with suppress(OSError):
            return cls(path, signing_key=signing_key)
        return cast(Self, UnreadStore(path, signing_key=signing_key))  # made, if not readable now

    # --- changes --------------------------------------------------------------------------

    def learn(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        ids: Any = None,
        key: str | None = None,
        once: bool = False,
        dry_run: bool = False,
    ) -> Receipt:
        """Learn rows.

        Parameters
        ----------
        X, y, sample_weight
            As `partial_fit` takes them; or in place of X an iterable of batches (X, y),
            (X, y, sample_weight) or (X, y, sample_weight, ids), which are one change together.
            `PathOneClass` needs no y for an array X.
        ids : sequence of str or int, optional
            What each row is known by, such as the number of a customer; None for a row that has
            none. It is no feature, and only its keyed hash is kept.
        key : str, optional
            A name of the request. If it comes again, the first receipt is returned.
        once : bool, default=False
            Refuse the rows if they are those of the last change.
        dry_run : bool, default=False
            Only try: the answer is the one that would be given, and not signed.

        Returns
        -------
        Receipt

        Raises
        ------
        AlreadyLearnedError
            With `once`, if the last change learned exactly these rows.
        """
        with self._writing(key, dry_run) as writer:
            return cast(Receipt, writer.learn((X, y, sample_weight, ids), once))

    def forget(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        ids: Any = None,
        whole: bool = False,
        key: str | None = None,
        batch: bool = False,
        name: str | None = None,
        dry_run: bool = False,
    ) -> Receipt | Queued:
        """Forget rows; the model before is destroyed.

        Parameters
        ----------
        X, y, sample_weight
            The rows as they were learned, in any form that `learn` takes. Or in place of X what
            was merged: a Knowledge, an estimator, the path of a file or of a store, or a Store.
        ids : sequence of str or int, optional
            The id of each row: only a row that was learned under it is then forgotten.
        whole : bool, default=False
            Refuse if the store holds more rows of these ids than those given.
        key : str, optional
            A name of the request. If it comes again, the first answer is returned.
        batch : bool, default=False
            Keep the rows in a queue until so many of each class are to be forgotten that
            they hide among each other, and then forget all of them at once.
        name : str, optional
            Under which a slice was merged.
        dry_run : bool, default=False
            As for `learn`.

        Returns
        -------
        Receipt or Queued

        Raises
        ------
        NotLearnedError
            If a row is not held; with `whole`, if others of these ids are. Nothing is changed.

        Warns
        -----
        RevealingWarning
            If the models before and after would reveal the rows.
        """
        with self._writing(key, dry_run) as writer:
            rows = X, y, sample_weight, ids
            return cast(Receipt | Queued, writer.forget(rows, batch, name, whole))

    def undo(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        ids: Any = None,
        key: str | None = None,
        dry_run: bool = False,
    ) -> Receipt:
        """Forget what the last learning has learned, given its rows.

        Parameters
        ----------
        X, y, sample_weight, ids
            All rows of the last change that learned, in any form that `learn` takes and any order.
        key, dry_run
            As for `learn`.

        Returns
        -------
        Receipt
            That of a forgetting.

        Raises
        ------
        NotLearnedError
            If these are other rows, or some are forgotten already. Nothing is changed.
        """
        with self._writing(key, dry_run) as writer:
            return cast(Receipt, writer.undo((X, y, sample_weight, ids)))

    def relabel(
        self,
        X: Any,
        old: Any,
        new: Any,
        sample_weight: Any = None,
        *,
        ids: Any = None,
        whole: bool = False,
        key: str | None = None,
        dry_run: bool = False,
    ) -> Receipt:
        """Give rows other labels or targets; the model before is destroyed.

        Parameters
        ----------
        X, old, sample_weight
            The rows as they were learned.
        new
            Their labels or targets from now on.
        ids : sequence of str or int, optional
            The id of each row: only a row that was learned under it is then changed. Rows keep
            their ids in any case.
        whole : bool, default=False
            Refuse if the store holds more rows of these ids than those given.
        key, dry_run
            As for `learn`.

        Returns
        -------
        Receipt
        """
        beside = (sample_weight,) if ids is None else (sample_weight, ids)
        with self._writing(key, dry_run) as writer:
            before, after = (X, old, *beside), (X, new, *beside)
            return cast(Receipt, writer.correct(before, after, True, whole))

    def correct(
        self,
        old: tuple[Any, ...],
        new: tuple[Any, ...],
        *,
        whole: bool = False,
        key: str | None = None,
        dry_run: bool = False,
    ) -> Receipt:
        """Forget rows and learn others in their place, in one change.

        Parameters
        ----------
        old, new : tuple
            (X, y), (X, y, sample_weight) or (X, y, sample_weight, ids): the rows as they were
            learned, and as they should be. They need not be as many. New rows have the ids that
            are given with them.
        whole : bool, default=False
            Refuse if the store holds more rows of these ids than those given.
        key, dry_run
            As for `learn`.

        Returns
        -------
        Receipt
            Of the kind "relabel".
        """
        from traceless.store.row_digests import row_batches

        (before,), (after,) = row_batches([old], None, None), row_batches([new], None, None)
        with self._writing(key, dry_run) as writer:
            return cast(Receipt, writer.correct(before, after, False, whole))

    def merge(
        self,
        other: Any,
        *,
        name: str | None = None,
        key: str | None = None,
        again: bool = False,
        dry_run: bool = False,
    ) -> Receipt:
        """Take in what another model has learned.

        The rows of a store with the same secret are then known here too. Others are only
        counted, and can only be forgotten as the slice they came in. What is merged must have a
        fingerprint of its rows: stores have, and models made with ``fingerprint=True``.

        Parameters
        ----------
        other : path of a file or of a store, Store, estimator or Knowledge
        name : str, optional
            What the slice is called; by default its digest identifies it.
        key : str, optional
            A name of the request.
        again : bool, default=False
            Merge it even if it was merged before: its rows then count twice.
        dry_run : bool, default=False
            As for `learn`.

        Returns
        -------
        Receipt
        """
        with self._writing(key, dry_run) as writer:
            return cast(Receipt, writer.merge(other, name, again))

    def seal(self, *, key: str | None = None, dry_run: bool = False) -> Receipt:
        """Compute the coefficients exactly: to the last bit as in a fit from scratch.

        Parameters
        ----------
        key, dry_run
            As for `learn`.

        Returns
        -------
        Receipt
        """
        with self._writing(key, dry_run) as writer:
            return cast(Receipt, writer.seal())

    def destroy(self, what: str, *, key: str | None = None, dry_run: bool = False) -> Receipt:
        """Destroy something for good.

        Parameters
        ----------
        what : {"secret", "model"}
            "secret": the digests of the rows, and the key without which checksums and hashes of
            requests in the ledger say nothing about any row. The model stays; it learns on, and
            forgets whole slices only. "model": the model, and the digests; the ledger stays.
        key, dry_run
            As for `learn`.

        Returns
        -------
        Receipt
        """
        if what not in ("secret", "model"):
            raise ValueError(f"destroy takes 'secret' or 'model', got {what!r}.")
        with self._writing(key, dry_run) as writer:
            return cast(Receipt, writer.destroy(what))

    # --- the queue ------------------------------------------------------------------------

    def flush(self, force: bool = False, *, dry_run: bool = False) -> list[Receipt]:
        """Forget all rows that wait, in one change, if that is safe.

        Parameters
        ----------
        force : bool, default=False
            Do it even if the models before and after would reveal them.
        dry_run : bool, default=False
            As for `learn`.

        Returns
        -------
        list of Receipt
            Empty if nothing was done.
        """
        with self._writing(None, dry_run) as writer:
            return writer.flush(force)

    def cancel(self, request: Queued | int | str, *, dry_run: bool = False) -> Receipt:
        """Take a request out of the queue: its rows stay.

        Parameters
        ----------
        request : Queued, int or str
            The request, the number of its entry, or its key.
        dry_run : bool, default=False
            As for `learn`.

        Returns
        -------
        Receipt
            Of the kind "cancel".
        """
        which = request.sequence if isinstance(request, Queued) else request
        with self._writing(None, dry_run) as writer:
            return writer.cancel(which)

    # --- the key --------------------------------------------------------------------------

    def new_key(self, signing_key: Any = None, *, dry_run: bool = False) -> Receipt:
        """Hand over to another key: the old one signs its public half, and nothing after that.

        Parameters
        ----------
        signing_key : str or path, optional
            The file of the new key, which stays where it is. By default a new one, which takes the
            place of the old one in the folder.
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
        """The private half of the key that signs changes, as PEM: to be kept elsewhere."""
        from traceless.store import keys

        found = keys.find(self._folder, self._signing_key, self.public_key or "")
        return found.pem().decode()

    def upgrade(self, signing_key: Any = None, *, dry_run: bool = False) -> Receipt:
        """Bring a store of an older version to this one, in place, all or nothing.

        Parameters
        ----------
        signing_key : str or path, optional
            As for `Store.new`.
        dry_run : bool, default=False
            As for `learn`.

        Returns
        -------
        Receipt
            Of the kind "upgrade": the history up to here is signed by it.
        """
        from traceless.store.upgrade import upgrade

        given = signing_key or self._signing_key
        with self._locked(dry_run) as ledger:
            receipt = upgrade(self._folder, ledger, given, dry_run)
        self._signing_key = given
        return receipt

    # --- inside ---------------------------------------------------------------------------

    @contextmanager
    def _writing(self, key: str | None, dry_run: bool = False) -> Iterator[Writer]:
        """The one writer of the store, for one change."""
        if key is not None and (not isinstance(key, str) or not 0 < len(key) <= 200):
            raise ValueError(f"key must be a text of 1 to 200 characters, got {key!r}.")
        from traceless.store.change import Asked
        from traceless.store.writer import Writer

        with self._locked(dry_run) as ledger:
            cached, self._cache = self._cache, None  # here, as threads may share a store
            asked = Asked(key, dry_run, self._signing_key)
            writer = Writer(self._folder, ledger, asked, cached)
            self._about = writer.origin["about"]
            yield writer
            self._cache = writer.cached
            writer.tidy()

    @contextmanager
    def _locked(self, dry_run: bool) -> Iterator[Ledger]:
        """The ledger, in a transaction that writes, while no other process does."""
        folder, patience = self._folder, max(self._wait, 1.0)
        with write_lock(folder.lock, self._wait, folder.permissions(), dry_run):
            folder.sweep()
            with open_ledger(folder.ledger, "BEGIN IMMEDIATE", patience) as ledger:
                yield ledger

    def _look(self) -> None:
        """Read what the store is about."""
        damages = ValueError, LookupError, sqlite3.Error  # `verify` names them
        with (
            suppress(ForeignTablesError),
            open_ledger(self._folder.ledger) as ledger,
            suppress(*damages),
        ):
            self._about = ledger.origin["about"]


class UnreadStore(Store):
    """A store that is read by its first change: a command that makes one opens the ledger once."""

    def _look(self) -> None:
        pass
