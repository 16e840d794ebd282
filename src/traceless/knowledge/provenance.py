"""Provenance: the slices that a model has taken in, so that none is merged twice.

A slice is known by the name it was given, or by the digest of its knowledge. A model that is
merged brings along the slices that it has merged before: where both have s, so that s would
count twice, the merge is refused.

A version of a Delta table is a slice with a name, also where it is learned and not merged.

What this cannot see: other rows that were learned, not merged, have no name, so two models that
learned the same such rows are recognised only where they hold the same rows and no others; and
knowledge is a value that does not say where it came from, so of ``model.knowledge_`` nothing is
known but its own digest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from traceless.exceptions import AlreadyMergedError
from traceless.files import facts
from traceless.knowledge.sums import Knowledge

__all__ = ["Provenance", "Slice"]


@dataclass(frozen=True)
class Slice:
    """A slice that was merged.

    Attributes
    ----------
    times : int
        How often it was merged, less how often it was taken out: below 0 where it came as part
        of another slice, or where a version of a table was forgotten that was not learned.
    brought : mapping
        The slices in it, with how often each was in it; empty unless it was a model that had
        merged some.
    """

    times: int
    brought: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Provenance:
    """Where merged knowledge came from: an immutable value.

    Attributes
    ----------
    merged : mapping of names or digests to Slice
    """

    merged: Mapping[str, Slice] = field(default_factory=dict)

    def facts(self) -> dict[str, Any]:
        """All of it in JSON's types, for a file."""
        return {
            identity: {"times": piece.times, "brought": dict(piece.brought)}
            for identity, piece in self.merged.items()
        }

    @classmethod
    def from_facts(cls, said: Any) -> Provenance:
        """Inverse of `facts`; raises ValueError where a file says something impossible."""
        return cls({name: _slice(piece) for name, piece in said.items()})

    def counts(self) -> dict[str, int]:
        """All slices, those that came with others included, and how often each is held.

        Below 0 for a version of a table that was forgotten and not learned.
        """
        return dict(self._counts)

    @cached_property
    def _counts(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for identity, piece in self.merged.items():
            _count(found, identity, piece, 1)
        return found

    def _with(self, identity: str, piece: Slice) -> Provenance:
        """The same with another entry of a slice, none if it is held no times.

        What is held is counted on from here: a merge of many slices is not counted anew by each.
        """
        merged, held = dict(self.merged), dict(self._counts)
        _count(held, identity, merged.pop(identity, Slice(0)), -1)
        _count(held, identity, piece, 1)
        after = Provenance(merged | ({identity: piece} if piece.times else {}))
        after.__dict__["_counts"] = held
        return after

    def learned(self, name: str | None, times: int) -> Provenance:
        """The provenance once a table is learned, or forgotten (-1 times); all others have no name.

        What is forgotten need not have been learned: a newer version may have its rows.
        """
        if name is None:
            return self
        before = self.merged.get(name, Slice(0))
        return self._with(name, Slice(before.times + times, before.brought))

    def after(
        self,
        held: Knowledge | None,
        piece: Knowledge,
        theirs: Provenance,
        name: str | None,
        again: bool,
    ) -> Provenance:
        """The provenance once a piece is merged, or taken out if it has fewer than no rows.

        Parameters
        ----------
        held : Knowledge or None
            What is known before.
        piece : Knowledge
            What comes.
        theirs : Provenance
            That of the model that the piece is the knowledge of; an empty one if it came bare.
        name : str, optional
            What the piece is called.
        again : bool
            Whether slices may be merged that have been merged before.

        Raises
        ------
        AlreadyMergedError
            If the piece, or a slice in it, is held already.
        """
        taken_out = piece.n_samples < 0
        identity = name or (-piece if taken_out else piece).digest()
        before = self.merged.get(identity, Slice(0))
        brought = theirs.counts()
        if taken_out:
            if self._counts.get(identity, 0) < 1:
                return self  # rows that were learned, or a part of a slice
            return self._with(identity, Slice(before.times - 1, before.brought))
        if not again:
            self._check_new(held, piece, identity, brought)
        return self._with(identity, Slice(before.times + 1, brought or before.brought))

    def _check_new(
        self, held: Knowledge | None, piece: Knowledge, identity: str, brought: Mapping[str, int]
    ) -> None:
        everything = held.digest() if held is not None and held.n_samples else None

        def is_held(name: str) -> bool:
            return self._counts.get(name, 0) > 0 or name == everything

        mend = (
            "Pass again=True (--again) if that is meant; merge(-knowledge) takes a slice out. "
            "Nothing was changed."
        )
        if is_held(identity):
            raise AlreadyMergedError(
                f"The slice {identity!r} was merged before, or is all that is held: its "
                f"{piece.n_samples} rows would count twice. {mend}"
            )
        twice = sorted(name for name, n in brought.items() if n > 0 and is_held(name))
        if twice:
            raise AlreadyMergedError(
                f"The model to be merged has itself merged the slice {twice[0]!r}, which is held "
                f"here already: the rows of it would count twice. {mend}"
            )


def _count(held: dict[str, int], identity: str, piece: Slice, sign: int) -> None:
    """Add a slice, and those that it brought, to what is held; or take it out (sign -1)."""
    for name, n in (identity, 1), *piece.brought.items():
        held[name] = held.get(name, 0) + sign * n * piece.times
        if not held[name]:
            del held[name]


def _slice(said: Any) -> Slice:
    brought = {name: facts.whole(n, -facts.LARGEST) for name, n in said["brought"].items()}
    times = facts.whole(said["times"], -facts.LARGEST)
    if not times or 0 in brought.values():
        raise ValueError("a slice that was merged as often as it was taken out.")
    return Slice(times, brought)
