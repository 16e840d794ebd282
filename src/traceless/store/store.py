"""The store: a folder with one model, a ledger of all its changes, and receipts for them.

Reading what the ledger says needs SQLite and JSON only: whatever loads scikit-learn is imported
where it is used, so that `traceless status` answers at once.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from traceless.exceptions import StoreError
from traceless.store.entries import Entry
from traceless.store.folder import Folder
from traceless.store.lock import write_lock
from traceless.store.opening import open_ledger
from traceless.store.queue import Queued
from traceless.store.receipts import Receipt
from traceless.store.status import Status

if TYPE_CHECKING:
    from traceless.store.verification import Verification
    from traceless.store.writer import Cached, Writer


class Store:
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

    Attributes
    ----------
    about : dict
        What `Store.new` was given to keep with the store.

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

    def __init__(self, path: Any, *, wait: float = 0.0) -> None:
        self._folder, self._wait = Folder(path), float(wait)
        self._folder.check()
        self._cache: Cached = None
        self._about: dict[str, Any] | None = None
        self._look()

    @classmethod
    def new(
        cls,
        path: Any,
        estimator: Any,
        *,
        about: Mapping[str, Any] | None = None,
        secret: Any = None,
        shared: bool = False,
    ) -> Self:
        """Make a store for a model that has learned nothing yet.

        Parameters
        ----------
        path : str or path
            A folder that does not exist, or is empty.
        estimator : LSSVC, LSSVR or PathSVC
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

        Returns
        -------
        Store
        """
        from traceless.store.creation import create_store

        create_store(Path(path), estimator, about, secret, shared)
        return cls(path)

    # --- changes --------------------------------------------------------------------------

    def learn(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        key: str | None = None,
        once: bool = False,
    ) -> Receipt:
        """Learn rows.

        Parameters
        ----------
        X, y, sample_weight
            As `partial_fit` takes them; or in place of X an iterable of batches (X, y) or
            (X, y, sample_weight), which are one change together.
        key : str, optional
            A name of the request. If it comes again, the first receipt is returned.
        once : bool, default=False
            Refuse the rows if they are those of the last change.

        Returns
        -------
        Receipt

        Raises
        ------
        AlreadyLearnedError
            With `once`, if the last change learned exactly these rows.
        """
        from traceless.store.row_digests import row_batches

        with self._writing(key) as writer:
            return cast(Receipt, writer.learn(row_batches(X, y, sample_weight), once))

    def forget(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        key: str | None = None,
        batch: bool = False,
        name: str | None = None,
    ) -> Receipt | Queued:
        """Forget rows; the model before is destroyed.

        Parameters
        ----------
        X, y, sample_weight
            The rows as they were learned, in any form that `learn` takes. Or in place of X what
            was merged: a Knowledge, an estimator, the path of a file or of a store, or a Store.
        key : str, optional
            A name of the request. If it comes again, the first answer is returned.
        batch : bool, default=False
            Keep the rows in a queue until so many of each class are to be forgotten that
            they hide among each other, and then forget all of them at once.
        name : str, optional
            Under which a slice was merged.

        Returns
        -------
        Receipt or Queued

        Raises
        ------
        NotLearnedError
            If a row is not held. Nothing is changed.

        Warns
        -----
        RevealingWarning
            If the models before and after would reveal the rows.
        """
        with self._writing(key) as writer:
            return cast(Receipt | Queued, writer.forget((X, y, sample_weight), batch, name))

    def relabel(
        self, X: Any, old: Any, new: Any, sample_weight: Any = None, *, key: str | None = None
    ) -> Receipt:
        """Give rows other labels or targets; the model before is destroyed.

        Parameters
        ----------
        X, old, sample_weight
            The rows as they were learned.
        new
            Their labels or targets from now on.
        key : str, optional
            A name of the request.

        Returns
        -------
        Receipt
        """
        before, after = (X, old, sample_weight), (X, new, sample_weight)
        with self._writing(key) as writer:
            return cast(Receipt, writer.relabel(before, after))

    def merge(
        self,
        other: Any,
        *,
        name: str | None = None,
        key: str | None = None,
        again: bool = False,
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

        Returns
        -------
        Receipt
        """
        with self._writing(key) as writer:
            return cast(Receipt, writer.merge(other, name, again))

    def seal(self, *, key: str | None = None) -> Receipt:
        """Compute the coefficients exactly: to the last bit as in a fit from scratch.

        Parameters
        ----------
        key : str, optional
            A name of the request.

        Returns
        -------
        Receipt
        """
        with self._writing(key) as writer:
            return cast(Receipt, writer.seal())

    def destroy(self, what: str, *, key: str | None = None) -> Receipt:
        """Destroy something for good.

        Parameters
        ----------
        what : {"secret", "model"}
            "secret": the digests of the rows, and the key without which checksums and hashes of
            requests in the ledger say nothing about any row. The model stays; it learns on, and
            forgets whole slices only. "model": the model, and the digests; the ledger stays.
        key : str, optional
            A name of the request.

        Returns
        -------
        Receipt
        """
        if what not in ("secret", "model"):
            raise ValueError(f"destroy takes 'secret' or 'model', got {what!r}.")
        with self._writing(key) as writer:
            return cast(Receipt, writer.destroy(what))

    # --- the queue ------------------------------------------------------------------------

    def pending(self) -> list[Queued]:
        """The requests to forget that wait, the oldest first."""
        with open_ledger(self._folder.ledger) as ledger:
            return ledger.queue.pending()

    def flush(self, force: bool = False) -> list[Receipt]:
        """Forget all rows that wait, in one change, if that is safe.

        Parameters
        ----------
        force : bool, default=False
            Do it even if the models before and after would reveal them.

        Returns
        -------
        list of Receipt
            Empty if nothing was done.
        """
        with self._writing(None) as writer:
            return writer.flush(force)

    # --- what is known --------------------------------------------------------------------

    @property
    def path(self) -> Path:
        """The folder."""
        return self._folder.path

    @property
    def about(self) -> dict[str, Any]:
        """What `Store.new` was given to keep with the store."""
        if self._about is None:  # nothing has been read, or damage was found: say how
            with open_ledger(self._folder.ledger) as ledger:
                self._about = ledger.origin["about"]
        return deepcopy(self._about)

    def model(self) -> Any:
        """A copy of the model as it is now; the store ignores what you do with it."""
        with self._folder.snapshot() as (_, entry, model):
            return self._folder.load(entry) if model is None else model

    def status(self) -> Status:
        """The state of the store."""
        with open_ledger(self._folder.ledger) as ledger:
            last = ledger.last()
            return Status(
                path=str(self.path),
                model=str(ledger.origin["model"]["kind"]),
                sequence=last.sequence,
                time=last.time,
                rows=last.held,
                classes=ledger.class_counts(),
                unknown=last.unknown,
                waiting=sum(queued.rows for queued in ledger.queue.pending()),
                digest=last.digest_after,
                root=last.root_after,
                hash=last.hash,
                has_secret=last.alive is not None,
                has_model=last.generation is not None,
                size=self._folder.size(),
            )

    def history(self) -> list[Entry]:
        """All entries of the ledger, the first one first."""
        with open_ledger(self._folder.ledger) as ledger:
            return list(ledger.entries())

    def receipt(self, sequence: int | None = None) -> Receipt:
        """The receipt of an entry.

        Parameters
        ----------
        sequence : int, optional
            Its number; by default the latest.

        Returns
        -------
        Receipt
        """
        with open_ledger(self._folder.ledger) as ledger:
            entry = ledger.last() if sequence is None else ledger.entry(sequence)
            return Receipt.of(entry, ledger.origin)

    def verify(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> Verification:
        """Check the ledger and the files; with rows, also fit the model from scratch and compare.

        Parameters
        ----------
        X, y, sample_weight
            All rows that the model should hold, in any form that `learn` takes and any order.

        Returns
        -------
        Verification
        """
        from traceless.store.row_digests import row_batches
        from traceless.store.verification import verify

        with suppress(OSError, StoreError):
            self._look()
        return verify(self._folder, None if X is None else row_batches(X, y, sample_weight))

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"

    # --- inside ---------------------------------------------------------------------------

    @contextmanager
    def _writing(self, key: str | None) -> Iterator[Writer]:
        """The one writer of the store, for one change."""
        if key is not None and (not isinstance(key, str) or not 0 < len(key) <= 200):
            raise ValueError(f"key must be a text of 1 to 200 characters, got {key!r}.")
        from traceless.store.writer import Writer

        cached, self._cache = self._cache, None
        folder, patience = self._folder, max(self._wait, 1.0)
        with write_lock(folder.lock, self._wait, folder.permissions()):
            folder.sweep()
            with open_ledger(folder.ledger, "BEGIN IMMEDIATE", patience) as ledger:
                writer = Writer(folder, ledger, key, cached)
                self._about = writer.origin["about"]
                yield writer
                self._cache = writer.cached

    def _look(self) -> None:
        """Read what the store is about."""
        damages = ValueError, LookupError, sqlite3.Error  # `verify` names them
        with open_ledger(self._folder.ledger) as ledger, suppress(*damages):
            self._about = ledger.origin["about"]


class UnreadStore(Store):
    """A store that is read by its first change: a command that makes one opens the ledger once."""

    def _look(self) -> None:
        pass
