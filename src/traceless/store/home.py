"""The store: a home for one model that loses nothing and answers for itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self, TypeVar, cast

from traceless.exceptions import StoreError
from traceless.knowledge.sums import Knowledge
from traceless.store.changes import Asked, Cached, Change, tidy
from traceless.store.checks import Verification
from traceless.store.entries import Entry
from traceless.store.folder import Folder
from traceless.store.ledger import changing, outside, reading
from traceless.store.lock import writing
from traceless.store.making import make
from traceless.store.queue import Queue, Queued
from traceless.store.receipts import Receipt
from traceless.store.rows import batches_of
from traceless.store.slices import Slice, is_slice, opened
from traceless.store.snapshot import snapshot
from traceless.store.status import Status
from traceless.store.verify import verify

Answer = TypeVar("Answer", bound=Receipt | Queued)


class Store:
    """A model on disk, with a ledger of all that was done to it.

    Every change is all or nothing, also for a process that is killed or a disk that is full,
    and gives a `Receipt`. Rows are not kept: the store knows them again by keyed digests, and
    refuses to forget what it does not hold. Any number of processes may read, and one at a
    time may write.

    Parameters
    ----------
    path : str or path
        The folder of the store; `Store.new` makes one.
    wait : float, default=0.0
        Seconds to wait for another process that is changing the store.

    Attributes
    ----------
    about : dict
        What was said of the store when it was made.

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
        with reading(self._folder.ledger):  # or it is not a store
            pass
        self._tidy()

    @classmethod
    def new(
        cls,
        path: Any,
        estimator: Any,
        *,
        about: Mapping[str, Any] | None = None,
        secret: Any = None,
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

        Returns
        -------
        Store
        """
        make(Path(path), estimator, about, secret)
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
        batches = batches_of(X, y, sample_weight)
        return self._change(
            "learn",
            key,
            lambda change: change.learn(key, batches, once),
            lambda change: change.asked(come=batches),
        )

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
        if is_slice(X):
            return self._take_out(X, name, key)
        batches = batches_of(X, y, sample_weight)

        def act(change: Change) -> Receipt | Queued:
            return (change.put_aside if batch else change.forget)(key, batches)

        return self._change("forget", key, act, lambda change: change.asked(gone=batches))

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
        return self._change(
            "relabel",
            key,
            lambda change: change.relabel(key, before, after),
            lambda change: change.asked(gone=[before], come=[after]),
        )

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
        if isinstance(other, Knowledge) and other.n_samples < 0:
            return self._take_out(-other, name, key)
        return self._with_slice(
            "merge", key, other, lambda change, part: change.merge(key, part, name, again)
        )

    def seal(self, *, key: str | None = None) -> Receipt:
        """Make the coefficients of the model those of a fit from scratch, to the last bit.

        Parameters
        ----------
        key : str, optional
            A name of the request.

        Returns
        -------
        Receipt
        """
        return self._change("seal", key, lambda change: change.seal(key), lambda _: (0, [None]))

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
        return self._change(
            "destroy", key, lambda change: change.destroy(key, what), lambda _: (0, [what])
        )

    # --- the queue ------------------------------------------------------------------------

    def pending(self) -> list[Queued]:
        """The requests to forget that wait, the oldest first."""
        with reading(self._folder.ledger) as ledger:
            return Queue(ledger.sql).pending()

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
        with self._writing() as change:
            waits = change.queue.pending()
            return [change.flush()] if waits and (force or change.queue.is_safe()) else []

    # --- what is known --------------------------------------------------------------------

    @property
    def path(self) -> Path:
        """The folder."""
        return self._folder.path

    @property
    def about(self) -> dict[str, Any]:
        """What was said of the store when it was made."""
        with reading(self._folder.ledger) as ledger:
            return dict(ledger.origin()["about"])

    def model(self) -> Any:
        """The model as it is now: an estimator of your own, whose changes the store ignores."""
        with snapshot(self._folder) as (_, entry, model):
            return self._folder.load(entry) if model is None else model

    def status(self) -> Status:
        """How the store stands."""
        with reading(self._folder.ledger) as ledger:
            last = ledger.last()
            return Status(
                path=str(self.path),
                model=str(ledger.origin()["model"]["kind"]),
                sequence=last.sequence,
                time=last.time,
                rows=last.held,
                classes=ledger.class_counts(),
                unknown=last.unknown,
                waiting=sum(queued.rows for queued in Queue(ledger.sql).pending()),
                digest=last.digest_after,
                root=last.root_after,
                hash=last.hash,
                has_secret=last.alive is not None,
                has_model=last.generation is not None,
                size=self._folder.size(),
            )

    def history(self) -> list[Entry]:
        """All entries of the ledger, the first one first."""
        with reading(self._folder.ledger) as ledger:
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
        with reading(self._folder.ledger) as ledger:
            entry = ledger.last() if sequence is None else ledger.entry(sequence)
            return Receipt.of(entry, ledger.origin())

    def verify(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> Verification:
        """Recompute the chain and the files; and with rows, the model and its root from scratch.

        Parameters
        ----------
        X, y, sample_weight
            All rows that the model should hold, in any form that `learn` takes and any order.

        Returns
        -------
        Verification
        """
        self._tidy()
        rows = None if X is None else batches_of(X, y, sample_weight)
        return verify(self._folder, rows)

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"

    # --- inside ---------------------------------------------------------------------------

    @contextmanager
    def _writing(self) -> Iterator[Change]:
        cached, self._cache = self._cache, None
        folder = self._folder
        with writing(folder.lock, self._wait), changing(folder.ledger, self._wait) as ledger:
            change = Change(folder, ledger, cached)
            yield change
            self._cache = change.result()

    def _change(
        self,
        kind: str,
        key: str | None,
        act: Callable[[Change], Answer],
        asked: Callable[[Change], Asked],
    ) -> Answer:
        """Make a change, unless the request was answered before."""
        _check_key(key)
        with self._writing() as change:
            before = change.recall(kind, key, lambda: asked(change))
            return act(change) if before is None else cast(Answer, before)

    def _with_slice(
        self, kind: str, key: str | None, other: Any, act: Callable[[Change, Slice], Receipt]
    ) -> Receipt:
        def acts(change: Change) -> Receipt:
            with opened(other, change.printer) as part:
                return act(change, part)

        def asked(change: Change) -> Asked:
            with opened(other, change.printer) as part:
                return part.rows, change.requests_of(part)

        return self._change(kind, key, acts, asked)

    def _take_out(self, other: Any, name: str | None, key: str | None) -> Receipt:
        return self._with_slice(
            "forget", key, other, lambda change, part: change.take_out(key, part, name)
        )

    def _tidy(self) -> None:
        """Finish what a process that was killed had left undone, unless one is at work."""
        folder = self._folder
        with suppress(OSError, StoreError):
            with reading(folder.ledger) as ledger:
                left_over = folder.left_over(ledger.last())
            if left_over:
                with writing(folder.lock, 0.0), outside(folder.ledger, 0.0) as ledger:
                    tidy(folder, ledger, committed=False)


def _check_key(key: Any) -> None:
    if key is not None and (not isinstance(key, str) or not 0 < len(key) <= 200):
        raise ValueError(f"key must be a text of 1 to 200 characters, got {key!r}.")
