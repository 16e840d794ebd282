"""The store: a folder with one model, a ledger of all its changes, and receipts for them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from traceless.exceptions import StoreWarning
from traceless.store.entries import check_text
from traceless.store.queue import Queued
from traceless.store.reading import StoreReader
from traceless.store.receipts import Receipt

if TYPE_CHECKING:
    from traceless.sources.schema import Schema
    from traceless.store.change import Cached
    from traceless.store.writer import Writer


class Store(StoreReader):
    """A model on disk, with a ledger of all its changes.

    Every change is all or nothing, also if the process is killed or the disk is full, and returns
    a signed `Receipt`. Rows are not kept: the store recognises them by keyed digests, and refuses
    to forget a row that it does not hold. Any number of processes may read, one at a time may
    write.

    Parameters
    ----------
    path : str or path
        The folder of a store made by `Store.new`.
    wait : float, default=0.0
        Seconds to wait for another process that is changing the store.
    signing_key : str or path, optional
        The file of the key that signs changes, if it is not in the folder. By default the file
        named by the environment variable TRACELESS_SIGNING_KEY, if it is set.

    Attributes
    ----------
    about : dict
        What was given to `Store.new` to be kept with the store.
    public_key : str
        The public half of the key that signs changes.

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
        suppress: str | None = "24 months",
    ) -> Self:
        """Make a store for a model that has learned nothing yet.

        Parameters
        ----------
        path : str or path
            A folder that does not exist, or is empty.
        estimator : LSSVC, LSSVR or one of the path family
            It is cloned. The first two get ``fingerprint=True``, so that their digests, and the
            roots in receipts, depend on every row.
        about : dict, optional
            Facts to keep with the store, such as the columns of its tables; JSON types only. They
            are part of every receipt.
        secret : bytes, optional
            32 random bytes that key the digests of rows. Stores that will be merged should have
            the same. By default new ones are drawn.
        shared : bool, default=False
            Let the group of the folder read and change the store. By default only its owner can.
        signing_key : str or path, optional
            The file of an Ed25519 key, as written by ``openssl genpkey -algorithm ed25519``; it
            stays where it is. By default the file named by TRACELESS_SIGNING_KEY, or a new key in
            the folder.
        suppress : str or None, default="24 months"
            How long ids stay on the suppression list once all their rows were forgotten, so that
            they are not learned again with the next table: a number of months, "never" for a list
            that does not expire, None for no list. The list is about people, too.

        Returns
        -------
        Store
        """
        from traceless.store.creation import create_store

        create_store(Path(path), estimator, about, secret, shared, signing_key, suppress)
        return cls(path, signing_key=signing_key)

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
        again: bool = False,
        dry_run: bool = False,
    ) -> Receipt:
        """Learn rows.

        Parameters
        ----------
        X, y, sample_weight
            As for `partial_fit`; or in place of X an iterable of batches (X, y),
            (X, y, sample_weight) or (X, y, sample_weight, ids), learned in one change.
            `PathOneClass` needs no y for an array X.
        ids : sequence of str or int, optional
            An identifier for each row, such as a customer number; None for a row without one. It
            is not a feature, and only its keyed hash is kept.
        key : str, optional
            An idempotency key: a request repeated with its key changes nothing and returns the
            first receipt.
        once : bool, default=False
            Refuse the rows if an earlier change learned exactly these, and was not undone; and
            rows that are held already under the same id.
        again : bool, default=False
            Learn also rows of ids on the suppression list, or whose last row waits to be forgotten.
        dry_run : bool, default=False
            Compute the receipt, unsigned, and change nothing.

        Raises
        ------
        AlreadyLearnedError
            If rows are of ids that were forgotten; with `once`, if an earlier change learned
            exactly these rows.
        """
        with self._writing(key, dry_run) as writer:
            return writer.learn((X, y, sample_weight, ids), once, again)

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
        personal: bool = False,
        dry_run: bool = False,
    ) -> Receipt | Queued:
        """Forget rows, and destroy the model that held them.

        Parameters
        ----------
        X, y, sample_weight
            The rows as they were learned, in any form that `learn` takes. Or in place of X what
            was merged: a Knowledge, an estimator, a Store, or the path of a file or of a store.
        ids : sequence of str or int, optional
            The id of each row: only rows learned under these ids match.
        whole : bool, default=False
            Refuse if the store holds more rows of these ids than those given.
        batch : bool, default=False
            Keep the rows in a queue until `SAFE_ROWS` rows of each class wait, then forget all of
            them at once, so that no single row can be reconstructed.
        name : str, optional
            The name under which the slice was merged.
        personal : bool, default=False
            Give each person whose `ids` are given a receipt of his own, which says what was done
            with his rows alone: the attribute `people` of the receipt. They are not kept, and
            cannot be had again.
        key, dry_run
            As for `learn`.

        Returns
        -------
        Receipt or Queued
            With `batch`, a `Queued` while the rows wait.

        Raises
        ------
        NotLearnedError
            If a row is not held; with `whole`, if rows of these ids would be left. Nothing is
            changed.

        Warns
        -----
        RevealingWarning
            If so few rows are forgotten that the models before and after reveal them.
        """
        with self._writing(key, dry_run, personal) as writer:
            if writer.is_slice(X):
                return writer.take_out(X, name)
            forget = writer.enqueue if batch else writer.forget
            return forget((X, y, sample_weight, ids), whole)

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
        """Undo the last `learn`, given its rows; the receipt is one of the kind "forget".

        Parameters
        ----------
        X, y, sample_weight, ids
            All rows of the last `learn`, in any form that it takes and any order; ids if given.
        key, dry_run
            As for `learn`.

        Raises
        ------
        NotLearnedError
            If these are other rows, or some of them are no longer held. Nothing is changed.
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
        """Give rows other labels or targets, and destroy the model before.

        Parameters
        ----------
        X, old, sample_weight
            The rows as they were learned.
        new
            Their new labels or targets. Rows keep their ids.
        ids, whole
            As for `forget`.
        key, dry_run
            As for `learn`.
        """
        beside = (sample_weight,) if ids is None else (sample_weight, ids)
        with self._writing(key, dry_run) as writer:
            before, after = (X, old, *beside), (X, new, *beside)
            return writer.correct(before, after, True, whole)

    def correct(
        self,
        old: tuple[Any, ...],
        new: tuple[Any, ...],
        *,
        whole: bool = False,
        again: bool = False,
        key: str | None = None,
        dry_run: bool = False,
    ) -> Receipt:
        """Forget rows and learn others in their place, in one change.

        Parameters
        ----------
        old, new : tuple
            (X, y), (X, y, sample_weight) or (X, y, sample_weight, ids): the rows as they were
            learned, and as they should be. Their numbers may differ. New rows get the ids given
            with them.
        whole : bool, default=False
            As for `forget`.
        again, key, dry_run
            As for `learn`.

        Returns
        -------
        Receipt
            Of the kind "relabel".
        """
        from traceless.store.row_digests import row_batches

        (before,), (after,) = row_batches([old], None, None), row_batches([new], None, None)
        with self._writing(key, dry_run) as writer:
            return writer.correct(before, after, False, whole, again)

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

        Rows of a store with the same secret can then be forgotten one by one. All others are
        counted only, and can be forgotten as a whole slice. What is merged must have a
        fingerprint, as stores and models with ``fingerprint=True`` have.

        Parameters
        ----------
        other : path of a file or of a store, Store, estimator or Knowledge
        name : str, optional
            A name for the slice; by default its digest identifies it.
        again : bool, default=False
            Merge it even if it was merged before: its rows then count twice. And even if it has
            rows of ids that `learn` would refuse.
        key, dry_run
            As for `learn`.
        """
        with self._writing(key, dry_run) as writer:
            return writer.merge(other, name, again)

    def follow(
        self,
        table: Any,
        *,
        query: str | None = None,
        schema: Schema | None = None,
        snapshot: bool = False,
        batch: bool = False,
        again: bool = False,
        drop_suppressed: bool = False,
        watch: Callable[[Iterator[Any]], Iterator[Any]] = iter,
        dry_run: bool = False,
    ) -> list[Receipt]:
        """Move the store to what a table holds now: a row that was deleted there is forgotten here.

        Of a Delta table each new version is one change, whose receipt names it: from its change
        data feed, or the files that it added and removed. The first time, and where these are no
        longer there, the whole table is read once, as any other table always is.

        Parameters
        ----------
        table : str or path
            The folder of a Delta table; or files as `Files` takes them; or, with a query, a
            database of DuckDB or SQLite.
        query : str, optional
            SQL whose result is the table.
        schema : Schema, optional
            How the table is read; by default what ``traceless new`` declared.
        snapshot : bool, default=False
            Read the whole table, whatever was followed before.
        batch : bool, default=False
            One change for all new versions.
        again : bool, default=False
            Learn also rows of ids on the suppression list.
        drop_suppressed : bool, default=False
            Leave these rows out, and warn of how many there are.
        watch : callable, optional
            Called with the batches that are learned, and gives them back, to show progress.
        dry_run : bool, default=False
            As for `learn`, of all new versions as one change.

        Returns
        -------
        list of Receipt
            Of the kind "follow", one for each change; empty if there was nothing to do.

        Raises
        ------
        AlreadyLearnedError
            If the table brings ids back that are on the suppression list.
        StoreError
            If it is another table than before, or its history was rewritten or set back.
        """
        from traceless.sources.followed import followed_table
        from traceless.sources.layouts import VersionGoneError
        from traceless.sources.schema import Schema

        if schema is None:
            if "table" not in self.about:
                raise ValueError(
                    "No table is declared for this store: say by schema= how it is read."
                )
            schema = Schema.from_facts(self.about["table"])
        options, receipts = (batch or dry_run, again, drop_suppressed, watch), list[Receipt]()
        while True:
            try:
                with self._writing(None, dry_run) as writer:
                    found = followed_table(os.fspath(table), schema, query)
                    receipt = writer.follow(found, snapshot, *options)
            except VersionGoneError as error:
                if snapshot:
                    raise
                warnings.warn(f"{error} All of the table is read.", StoreWarning, stacklevel=2)
                snapshot = True
                continue
            receipts += [] if receipt is None else [receipt]
            now = None if receipt is None else receipt.followed
            if now is None or now.version == found.latest:
                return receipts

    def destroy(self, what: str, *, key: str | None = None, dry_run: bool = False) -> Receipt:
        """Destroy the secret, the model or the suppression list for good.

        Parameters
        ----------
        what : {"secret", "model", "suppression"}
            "secret": the digests of the rows, and the key without which the hashes in the ledger
            tell nothing about any row. The model stays: it can still learn, and forget whole
            slices. "model": the model and the digests; the ledger stays. "suppression": the list of
            those who are not to be learned again; people who are forgotten later begin a new one.
        key, dry_run
            As for `learn`.
        """
        if what not in ("secret", "model", "suppression"):
            raise ValueError(f"destroy takes 'secret', 'model' or 'suppression', got {what!r}.")
        with self._writing(key, dry_run) as writer:
            return writer.destroy(what)

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

    # --- the queue ------------------------------------------------------------------------

    def flush(self, force: bool = False, *, dry_run: bool = False) -> list[Receipt]:
        """Forget all rows that wait, in one change, if there are `SAFE_ROWS` of each class.

        Parameters
        ----------
        force : bool, default=False
            Forget them even if they are fewer.
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
        """Cancel a request that waits in the queue: its rows stay in the model.

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

    # --- inside ---------------------------------------------------------------------------

    @contextmanager
    def _writing(
        self, key: str | None, dry_run: bool = False, personal: bool = False
    ) -> Iterator[Writer]:
        """The one writer of the store, for one change."""
        if key is not None and (not isinstance(key, str) or not 0 < len(key) <= 200):
            raise ValueError(f"key must be a text of 1 to 200 characters, got {key!r}.")
        check_text(key or "", "key")
        from traceless.store.change import Asked
        from traceless.store.writer import Writer

        asked = Asked(key, dry_run, self._signing_key, personal, self._wait)
        with Writer.writing(self._folder, asked) as writer:  # threads may share a store
            writer.cached, self._cache = self._cache, None
            self._about = writer.origin["about"]
            yield writer
            self._cache = writer.cached
