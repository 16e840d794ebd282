"""Slices: what another model, file or store has learned, to be merged or taken out as a whole."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from sklearn.utils.validation import check_is_fitted

from traceless.estimators import loading
from traceless.knowledge.sums import Knowledge
from traceless.store.alive import Alive
from traceless.store.folder import Folder
from traceless.store.ledger import Ledger
from traceless.store.rows import Printer, text_of
from traceless.store.snapshot import snapshot


@dataclass(frozen=True)
class Slice:
    """What is merged, and which of its rows are known by their digests."""

    knowledge: Knowledge
    estimator: Any = None  # has column names, where there are any
    counted: Iterable[tuple[bytes, int]] = ()
    unknown: int = 0

    @property
    def rows(self) -> int:
        """Number of rows."""
        return abs(self.knowledge.n_samples)

    def classes(self) -> dict[str, int]:
        """Rows per class, by the text of the label."""
        if self.knowledge.task != "classification":
            return {}
        return {text_of(k): abs(n) for k, n in self.knowledge.class_counts.items()}


def is_slice(other: Any) -> bool:
    """Whether this is something that has learned, not rows."""
    return isinstance(other, str | os.PathLike | Knowledge) or any(
        hasattr(other, name) for name in ("partial_fit", "_folder")
    )


@contextmanager
def opened(other: Any, printer: Printer) -> Iterator[Slice]:
    """The slice that a file, a store, an estimator or a knowledge is.

    Rows of a store come with their digests if they would have the same ones here.
    """
    path = other if isinstance(other, str | os.PathLike) else None
    folder = getattr(other, "_folder", None)
    if path is not None and os.path.isdir(path):
        folder = Folder(path)
        folder.check()
    if folder is not None:
        with snapshot(folder) as (ledger, entry, model):
            theirs = Printer.of(folder.secret(entry), ledger.origin())
            yield _of_store(model, ledger, printer.agrees_with(theirs), entry.unknown)
    else:
        yield _of(other if path is None else loading.load(path))


def _of_store(model: Any, ledger: Ledger, known: bool, unknown: int) -> Slice:
    whole = _of(model)
    return replace(whole, counted=Alive(ledger.sql).counted(), unknown=unknown) if known else whole


def _of(other: Any) -> Slice:
    if isinstance(other, Knowledge):
        return Slice(other, unknown=abs(other.n_samples))
    if not hasattr(type(other), "knowledge_"):
        raise TypeError(
            f"A {type(other).__name__} has no knowledge that could be merged or taken out. Give a "
            "file, a store, an LSSVC, an LSSVR or a Knowledge. Nothing was changed."
        )
    check_is_fitted(other)
    return Slice(other.knowledge_, other, unknown=other.n_samples_)
