"""The source of a merge, or of taking a slice out again: a file, a store, a model, knowledge."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from traceless.estimators import loading
from traceless.exceptions import StoreError
from traceless.knowledge.sums import Knowledge
from traceless.store.row_digests import RowHasher, Tally, text_of

if TYPE_CHECKING:
    from traceless.store.folder import Folder


@dataclass(frozen=True)
class MergeSource:
    """A slice to merge or to take out, and the digests of its rows where they are known."""

    model: Any  # Knowledge, or an estimator: it has column names, where there are any
    counted: Sequence[tuple[bytes, bytes, int]] = ()  # digest, name and count

    @property
    def knowledge(self) -> Knowledge:
        """What its rows add up to."""
        found: Knowledge = getattr(self.model, "knowledge_", self.model)
        return found

    @property
    def rows(self) -> int:
        """Number of rows."""
        return abs(self.knowledge.n_samples)

    @property
    def unknown(self) -> int:
        """How many of them have no digest."""
        return self.rows - sum(n for *_, n in self.counted)

    def count_into(self, tally: Tally) -> None:
        """Add the rows to the tally."""
        tally.rows = self.rows
        if self.knowledge.task == "classification":
            counts = self.knowledge.class_counts
            tally.classes.update({text_of(label): abs(n) for label, n in counts.items()})


def is_slice(given: Any) -> bool:
    """Whether this is something that was merged, rather than rows."""
    known = isinstance(given, str | os.PathLike | Knowledge)
    return known or hasattr(given, "partial_fit") or hasattr(given, "_folder")


@contextmanager
def open_merge_source(other: Any, hasher: RowHasher, own: Folder) -> Iterator[MergeSource]:
    """Open a file, a store, an estimator or knowledge, to be merged into the store in `own`.

    The rows of a store come with their digests if they have the same digests here.
    """
    folder = getattr(other, "_folder", None)
    if isinstance(other, str | os.PathLike):
        if os.path.isdir(other):
            folder = type(own)(other)
            folder.check()
        else:
            other = loading.load(other)
    if folder is None:
        _check(other)
        yield MergeSource(other)
        return
    with folder.snapshot() as (ledger, entry, model):
        _check(model)
        same = hasher.secret is not None and hasher == folder.hasher(ledger)
        source = MergeSource(model, list(ledger.rows.named()) if same else ())
        if same and source.unknown != entry.unknown:
            raise StoreError(
                f"That store has no digests of {source.unknown} rows, and should of "
                f"{entry.unknown}: look at it with traceless verify. Nothing was changed."
            )
        yield source


def _check(other: Any) -> None:
    if isinstance(other, Knowledge):
        return
    if not hasattr(type(other), "knowledge_"):
        raise TypeError(
            f"A {type(other).__name__} has no knowledge that could be merged or taken out. Give a "
            "file, a store, an LSSVC, an LSSVR or a Knowledge. Nothing was changed."
        )
    check_is_fitted(other)
