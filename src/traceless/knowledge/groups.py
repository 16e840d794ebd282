"""A table of knowledge: that of the rows of each group, for thousands of small groups at once.

One matrix of sums for each group, G × (J + K) × (J + K) integers in one array, so that tables add
and subtract as single pieces of knowledge do, group by group. What is gathered for a group is, to
the bit, what its rows alone would give.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic import integers
from traceless.arithmetic.integers import Floats, Integers
from traceless.exceptions import MismatchError
from traceless.features.grid import dense_rows
from traceless.knowledge.responses import (
    Label,
    framed,
    label_bytes,
    label_of,
    responses_of,
    union,
)
from traceless.knowledge.specifications import check_same_specification, check_targets
from traceless.knowledge.sums import Knowledge, Recipe, Rows
from traceless.knowledge.values import has_missing

_ROWS = 2**14  # coded at a time


@dataclass(frozen=True, eq=False)
class KnowledgeTable:
    """What the rows of each group add up to: an immutable value, closed under ``+`` and ``-``.

    Attributes
    ----------
    recipe : Recipe
        How rows become knowledge.
    keys : tuple
        The groups, in order: whole numbers, or text.
    responses : tuple
        The class labels of all groups, or the numbers of the targets.
    counts : int64 array of shape (G, K), or (G, 1) for regression
        Rows of each group, by class.
    sums : array of shape (G, J + K, J + K)
        Σ [φ; r][φ; r]ᵀ over the rows of each group, in integers.
    """

    recipe: Recipe
    keys: tuple[Label, ...]
    responses: tuple[Label, ...]
    counts: NDArray[np.int64]
    sums: Integers

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[Label]:
        return iter(self.keys)

    def __getitem__(self, key: Any) -> Knowledge:
        """The knowledge of one group; KeyError if it has no rows."""
        place = self.place(key)
        return Knowledge(
            dict(self.recipe.specification),
            self.recipe.task,
            self.responses,
            tuple(self.counts[place].tolist()),
            integers.narrow(self.sums[place].copy()),
            0,
        )._canonical()

    def place(self, key: Any) -> int:
        """Where a group is."""
        try:
            return self._places()[label_of(key)]
        except KeyError:
            raise KeyError(
                f"There is no group {key!r} among the {len(self)} of this table."
            ) from None

    def places(self, keys: Any) -> NDArray[np.intp]:
        """Where the groups of many rows are."""
        found, inverse = np.unique(np.asarray(keys), return_inverse=True)
        return np.array([self.place(key) for key in found.tolist()], dtype=np.intp)[inverse]

    def __add__(self, other: Any) -> KnowledgeTable:
        if not isinstance(other, KnowledgeTable):
            return NotImplemented
        if self.recipe.task != other.recipe.task:
            raise MismatchError("One table is for a classification, the other for a regression.")
        check_same_specification(self.recipe.specification, other.recipe.specification)
        if self.recipe.task != "classification":
            check_targets(self.recipe.task, self.responses, other.responses)
        keys, responses = union(self.keys, other.keys), union(self.responses, other.responses)
        a, b = self._spread(keys, responses), other._spread(keys, responses)
        sums = integers.as_array(integers.add(a.sums, b.sums))
        return replace(a, counts=a.counts + b.counts, sums=sums)._canonical()

    def __neg__(self) -> KnowledgeTable:
        return replace(self, counts=-self.counts, sums=-self.sums)

    def __sub__(self, other: Any) -> KnowledgeTable:
        return self + (-other) if isinstance(other, KnowledgeTable) else NotImplemented

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, KnowledgeTable) and self.digest() == other.digest()

    def __hash__(self) -> int:
        return hash(self.digest())

    def digest(self) -> str:
        """SHA-256 of all groups and the digest of each."""
        state = hashlib.sha256(b"traceless table of knowledge 1")
        for key in self.keys:
            state.update(framed(label_bytes(key), self[key].digest().encode()))
        return state.hexdigest()

    def check_possible(self) -> KnowledgeTable:
        """Raise `NotLearnedError` if there is a group that no rows add up to; else return self."""
        for key in self.keys:
            self[key].check_possible()
        return self

    def _places(self) -> dict[Label, int]:
        found: dict[Label, int] | None = self.__dict__.get("_found")
        if found is None:
            found = {key: place for place, key in enumerate(self.keys)}
            self.__dict__["_found"] = found
        return found

    def _spread(self, keys: tuple[Label, ...], responses: tuple[Label, ...]) -> KnowledgeTable:
        """The same with room for further groups and classes, all zero."""
        if keys == self.keys and responses == self.responses:
            return self
        J = len(self.recipe.phi.steps)
        K = len(responses)
        where = np.array([responses.index(r) for r in self.responses], dtype=np.intp)
        both = np.concatenate([np.arange(J), J + where])
        places = {key: place for place, key in enumerate(keys)}
        groups = np.array([places[key] for key in self.keys], dtype=np.intp)
        sums = np.zeros((len(keys), J + K, J + K), dtype=self.sums.dtype)
        sums[np.ix_(groups, both, both)] = self.sums
        by_class = self.recipe.task == "classification"
        counts = np.zeros((len(keys), K if by_class else 1), dtype=np.int64)
        counts[groups[:, None], where if by_class else 0] = self.counts
        return replace(self, keys=keys, responses=responses, counts=counts, sums=sums)

    def _canonical(self) -> KnowledgeTable:
        """Drop groups and classes of which nothing is left."""
        groups = self.counts.any(axis=1) | (self.sums != 0).any(axis=(1, 2))
        classes = np.ones(len(self.responses), dtype=bool)
        J = len(self.recipe.phi.steps)
        if self.recipe.task == "classification":
            classes = self.counts.any(axis=0) | (self.sums[:, J:] != 0).any(axis=(0, 2))
        if groups.all() and classes.all():
            return self
        both = np.concatenate([np.arange(J), J + np.flatnonzero(classes)])
        by_class = self.recipe.task == "classification"
        return replace(
            self,
            keys=tuple(key for key, kept in zip(self.keys, groups, strict=True) if kept),
            responses=tuple(r for r, kept in zip(self.responses, classes, strict=True) if kept),
            counts=self.counts[groups][:, classes] if by_class else self.counts[groups],
            sums=self.sums[np.ix_(np.flatnonzero(groups), both, both)],
        )


@dataclass(frozen=True)
class GroupRecipe(Recipe):
    """A recipe that makes a table: in place of the weights of rows it is given their groups."""

    @classmethod
    def of(cls, recipe: Recipe) -> GroupRecipe:
        """The same recipe, group by group."""
        return cls(recipe.phi, recipe.task, recipe.target_resolution)

    def knowledge(self, rows: Rows) -> Any:
        """The table of some rows (X, y, key)."""
        X, y, key = rows
        keys, group = _groups(key)
        order = np.argsort(group, kind="stable")
        X, y, group = X[order], np.asarray(y)[order], group[order]
        responses = responses_of(y, None, self.task, self.target_resolution)
        J, K = len(self.phi.steps), len(responses.names)
        sums = np.zeros((len(keys), J + K, J + K), dtype=np.int64)
        wide: list[int] = []
        for start in range(0, len(group), _ROWS):
            part = slice(start, min(start + _ROWS, len(group)))
            Z = np.empty((part.stop - part.start, J + K))
            self.phi.encode(dense_rows(X, part), Z[:, :J])
            responses.encode(part, Z[:, J:])
            wide += _add_groups(sums, Z, group[part])
        classes = group if self.task != "classification" else None
        counts = np.zeros((len(keys), K if classes is None else 1), dtype=np.int64)
        if classes is None:
            labels = {label: k for k, label in enumerate(responses.names)}
            number = np.array([labels[label_of(v)] for v in y.ravel().tolist()], dtype=np.intp)
            np.add.at(counts, (group, number), 1)
        else:
            counts[:, 0] = np.bincount(group, minlength=len(keys))
        table = KnowledgeTable(Recipe(*self._made()), keys, responses.names, counts, sums)
        return self._replaced(table, sorted({*wide}), X, y, group)

    def _made(self) -> tuple[Any, ...]:
        return self.phi, self.task, self.target_resolution

    def _replaced(
        self, table: KnowledgeTable, wide: list[int], X: Any, y: Any, group: Any
    ) -> KnowledgeTable:
        """The table with the groups gathered anew whose sums float64 does not hold exactly."""
        if not wide:
            return table
        J, sums = len(self.phi.steps), table.sums.astype(object)
        for g in wide:
            members = group == g
            known = super().knowledge((X[members], y[members], None))
            where = [table.responses.index(r) for r in known.responses]
            both = np.array([*range(J), *(J + k for k in where)])
            sums[g] = 0
            sums[g][np.ix_(both, both)] = known.sums
        return replace(table, sums=integers.narrow(sums))


def _groups(key: Any) -> tuple[tuple[Label, ...], NDArray[np.intp]]:
    """The groups in order, and the number of each row's."""
    keys = np.asarray(key)
    if keys.dtype.kind == "O" and has_missing(keys):
        raise ValueError("The group of some rows is missing. Drop these rows first.")
    found, group = np.unique(keys, return_inverse=True)
    return tuple([label_of(v) for v in found.tolist()]), group.reshape(-1)


def _add_groups(sums: Integers, Z: Floats, group: NDArray[np.intp]) -> list[int]:
    """Add ZᵀZ of the rows of each group, which are together; the groups that need more care."""
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    ends = np.append(starts[1:], len(group))
    wide = []
    for a, b in zip(starts.tolist(), ends.tolist(), strict=True):
        g, rows = int(group[a]), Z[a:b]
        if not integers.energy(np.ascontiguousarray(rows)) <= integers.LARGEST:
            wide.append(g)
            continue
        sums[g] += (rows.T @ rows).astype(np.int64)
    return wide
