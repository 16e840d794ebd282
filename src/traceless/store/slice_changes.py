"""Merge what another model has learned, or take out such a slice again."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from traceless.exceptions import NotLearnedError
from traceless.knowledge.sums import Knowledge
from traceless.store import version_1
from traceless.store.answering import Answering
from traceless.store.merge_source import MergeSource, open_merge_source
from traceless.store.receipts import Receipt


class SliceChanges(Answering):
    """Changes of slices."""

    def merge(self, other: Any, name: str | None, again: bool) -> Receipt:
        """Take in what another model has learned; knowledge of fewer than no rows takes it out."""
        if isinstance(other, Knowledge) and other.n_samples < 0:
            return self.take_out(-other, name)
        with open_merge_source(other, self.hasher, self.folder) as source:
            requests = self._slice_requests(source)
            if self._known:
                return self._first_answer("merge", source.rows, *requests)
            what = source.knowledge if source.estimator is None else source.estimator
            self._merge(what, source, name, again)
            self.ledger.rows.add_counted(source.count_into(self.added))
            self.unknown += source.unknown
            return self.finish("merge", requests[0], subject=name)

    def take_out(self, other: Any, name: str | None) -> Receipt:
        """Take out a slice that was merged."""
        with open_merge_source(other, self.hasher, self.folder) as source:
            requests = self._slice_requests(source)
            if self._known:
                return self._first_answer("forget", source.rows, *requests)
            self._check_merged(source, requests)
            self._merge(-source.knowledge, source, name, again=False)
            counted = source.count_into(self.removed)
            each = [row for *row, n in counted for _ in range(n)]
            lost, _ = self.ledger.rows.remove([d for d, _ in each], [i for _, i in each])
            if lost:
                raise NotLearnedError(
                    f"{len(lost)} of the {source.rows} rows of the slice are not held here, or "
                    "wait in the queue. Nothing was changed."
                )
            self.unknown -= source.unknown
            return self.finish("forget", requests[0], subject=name)

    def _merge(self, other: Any, source: MergeSource, name: str | None, again: bool) -> None:
        """Merge under a name, or under the digest by which a model of version 1 knows the slice."""
        model = self.model
        if not hasattr(model, "merge"):
            raise TypeError(
                f"A {type(model).__name__} has no merge: it keeps its rows. Learn, or forget, "
                "the rows themselves. Nothing was changed."
            )
        merged = getattr(model, "merged_", {})
        old = next((digest for digest in self._old_digest(source) if digest in merged), None)
        model.merge(other, name=name or old, again=again)

    def _check_merged(self, source: MergeSource, requests: list[str | None]) -> None:
        """Raise unless the rows without digests came in this slice."""
        came = [entry.kind for entry in self.ledger.entries() if entry.request in requests]
        merged = self.secret is None or came.count("merge") > came.count("forget")
        if source.unknown and (source.unknown > self.unknown or not merged):
            raise NotLearnedError(
                f"This slice of {source.rows} rows was not merged here as it is now, or is taken "
                "out already. Slices go as they came; forget other rows themselves, or give a "
                "store with the same secret that holds them. Nothing was changed."
            )

    def _slice_requests(self, source: MergeSource) -> list[str | None]:
        """The hashes by which a request with a slice can be recognised."""
        digests = [source.knowledge.digest(), *self._old_digest(source)]
        return [self.hasher.request(digest) for digest in digests]

    def _old_digest(self, source: MergeSource) -> list[str]:
        """The digest that version 1 gave to a slice, in a store of that version."""
        if version_1.is_version_1(self.origin):
            with suppress(ValueError):  # version 1 did not have these weights
                return [version_1.digest_of_knowledge(source.knowledge)]
        return []
