"""A table of knowledge: that of the rows of each group, for thousands of small groups at once.

One matrix of sums for each group, G × (J + K) × (J + K) integers in one array, so that tables add
and subtract as single pieces of knowledge do, group by group. What is gathered for a group is, to
the bit, what its rows alone would give.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic import integers
from traceless.arithmetic.integers import Sums
from traceless.exceptions import MismatchError
from traceless.features.grid import chunks
from traceless.knowledge.gathering import Gathering
from traceless.knowledge.responses import (
    Classes,
    Label,
    framed,
    in_both,
    label_bytes,
    label_of,
    union,
)
from traceless.knowledge.specifications import check_combinable
from traceless.knowledge.sums import Knowledge, Recipe, Rows
from traceless.knowledge.values import has_missing

Key = Label | tuple[Label, ...]
_ROWS = 2**14  # coded at a time
_MANY = 2**19  # products of a group that BLAS does faster


@dataclass(frozen=True, eq=False)
class KnowledgeTable:
    """What the rows of each group add up to: an immutable value, closed under ``+`` and ``-``.

    Attributes
    ----------
    recipe : Recipe
        How rows become knowledge.
    keys : tuple
        The groups, in order: whole numbers, or text; tuples of these if several columns name them.
    responses : tuple
        The class labels of all groups, or the numbers of the targets.
    counts : int64 array of shape (G, K), or (G, 1) for regression
        Rows of each group, by class.
    sums : int64 array or Wide, of shape (G, J + K, J + K)
        Σ ω [φ; r][φ; r]ᵀ over the rows of each group, in integers.
    weight_bits : int
        `sums` is in units of 2^-weight_bits: 0 unless some weights were fractions.
    """

    recipe: Recipe
    keys: tuple[Key, ...]
    responses: tuple[Label, ...]
    counts: NDArray[np.int64]
    sums: Sums
    weight_bits: int = 0

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, key: Any) -> Knowledge:
        """The knowledge of one group; KeyError if it has no rows."""
        place = self.place(key)
        return Knowledge(
            dict(self.recipe.specification),
            self.recipe.task,
            self.responses,
            tuple(self.counts[place].tolist()),
            integers.least(self.sums[place]),
            self.weight_bits,
        )._canonical()

    def place(self, key: Any) -> int:
        """Where a group is."""
        try:
            return self._places[_key(key)]
        except KeyError:
            raise KeyError(
                f"There is no group {key!r} among the {len(self)} of this table."
            ) from None

    def places(self, keys: Any) -> NDArray[np.intp]:
        """Where the groups of many rows are."""
        if isinstance(next(iter(self.keys), None), tuple):
            frame = hasattr(keys, "columns")
            if not frame and np.ndim(next(iter(keys), ())) != 1:
                raise TypeError(
                    f"Groups by several columns are named by tuples, such as {self.keys[0]!r}: "
                    "give one for each row, or a dataframe of these columns."
                )
            columns = (keys[name] for name in keys.columns) if frame else zip(*keys, strict=True)
            keys = np.rec.fromarrays([np.array([*column], dtype=object) for column in columns])
        found, inverse = numbered(keys)
        return np.array([self.place(key) for key in found], dtype=np.intp)[inverse]

    def __add__(self, other: Any) -> KnowledgeTable:
        if not isinstance(other, KnowledgeTable):
            return NotImplemented
        check_combinable(self.recipe, other.recipe, self.responses, other.responses)
        keys, responses = _both(self.keys, other.keys), union(self.responses, other.responses)
        a, b = self._with(keys, responses), other._with(keys, responses)
        *both, bits = integers.alike(a.sums, a.weight_bits, b.sums, b.weight_bits)
        counts, sums = a.counts + b.counts, integers.add(*both)
        return replace(a, counts=counts, sums=sums, weight_bits=bits)._canonical()

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
            name = framed(*map(label_bytes, key)) if isinstance(key, tuple) else label_bytes(key)
            state.update(framed(name, self[key].digest().encode()))
        return state.hexdigest()

    def check_possible(self, among: Iterable[Key]) -> KnowledgeTable:
        """Raise `NotLearnedError` if one of these groups is no sum of rows; else return self."""
        some = set(among)
        for key in self.keys:
            if key in some:
                self[key].check_possible()
        return self

    @cached_property
    def _places(self) -> dict[Key, int]:
        return {key: place for place, key in enumerate(self.keys)}

    def _with(self, keys: tuple[Key, ...], responses: tuple[Label, ...]) -> KnowledgeTable:
        """The same of these groups and classes: zeros for new ones, and without some."""
        if keys == self.keys and responses == self.responses:
            return self
        J, K = len(self.recipe.phi.steps), len(responses)
        groups, into = in_both(self.keys, keys)
        classes, new = in_both(self.responses, responses)
        sums = integers.with_classes(self.sums[groups], J, classes, new, K)
        sums = integers.with_rows(sums, np.arange(len(into)), into, len(keys))
        counts = np.zeros((len(keys), K), dtype=np.int64)
        if self.recipe.task == "classification":
            counts[np.ix_(into, new)] = self.counts[np.ix_(groups, classes)]
        else:
            counts = counts[:, :1]
            counts[into] = self.counts[groups]
        return replace(self, keys=keys, responses=responses, counts=counts, sums=sums)

    def _canonical(self) -> KnowledgeTable:
        """Drop groups and classes of which nothing is left."""
        limbs, J = integers.as_limbs(self.sums), len(self.recipe.phi.steps)
        groups = self.counts.any(axis=1) | np.any(limbs, axis=(0, 2, 3))
        responses = self.responses
        if self.recipe.task == "classification":
            classes = self.counts.any(axis=0) | np.any(limbs[:, :, J:], axis=(0, 1, 3))
            responses = tuple(compress(responses, classes.tolist()))
        return self._with(tuple(compress(self.keys, groups.tolist())), responses)


@dataclass(frozen=True)
class GroupRecipe(Recipe):
    """A recipe that makes a table: in place of the weights of rows it is given their groups.

    Where rows are weighted, `weight` is the column of X that has the weights.
    """

    weight: int | None = None

    def knowledge(self, rows: Rows) -> Any:
        """The table of some rows (X, y, key)."""
        X, y, key = rows
        keys, group = numbered(key)
        order = np.argsort(group, kind="stable")
        X, y, group, weights = X[order], np.asarray(y)[order], group[order], None
        if self.weight is not None:
            weights = X[:, self.weight]
            X = np.delete(X, self.weight, axis=1)
        gathering = Gathering(self, (X, y, weights))
        responses, weights, bits = gathering.responses, gathering.weights, gathering.bits
        names, width = responses.names, len(self.phi.steps) + len(responses.names)
        counts = np.zeros((len(keys), len(responses.counts)), dtype=np.int64)
        classes = responses.numbers if isinstance(responses, Classes) else np.zeros_like(group)
        alive = slice(None) if weights is None else weights > 0
        np.add.at(counts, (group[alive], classes[alive]), 1)
        sums = np.zeros((len(keys), width, width), dtype=np.int64)
        alone = np.bincount(group, minlength=len(keys)) * width**2 > _MANY
        for some in chunks(np.flatnonzero(~alone[group]), _ROWS):
            fits = gathering.add_to(sums, np.arange(len(names)), bits, 1, some, group[some])
            alone[group[some]] |= not fits
        apart = np.flatnonzero(alone)
        sums[apart], counts[apart] = 0, 0
        recipe = Recipe(self.phi, self.task, self.target_resolution)  # of one group
        table = KnowledgeTable(recipe, keys, names, counts, sums, bits)
        if apart.size:  # gathered one by one
            held = np.ones(len(group)) if weights is None else weights
            ends = np.searchsorted(group, [apart, apart + 1]).T.tolist()
            known = [recipe.knowledge((X[a:b], y[a:b], held[a:b])) for a, b in ends]
            table += _stacked(recipe, tuple(keys[g] for g in apart), known)
        return table._canonical()


def _stacked(recipe: Recipe, keys: tuple[Key, ...], known: list[Knowledge]) -> KnowledgeTable:
    """The table of groups whose knowledge is there."""
    responses = union(*(one.responses for one in known))
    bits = max(one.weight_bits for one in known)
    alike = [one._with(responses) for one in known]
    sums = integers.stack([integers.shifted(k.total, bits - k.weight_bits) for k in alike])
    counts = np.array([one.counts for one in alike], dtype=np.int64)
    return KnowledgeTable(recipe, keys, responses, counts, sums, bits)


def numbered(key: Any) -> tuple[tuple[Any, ...], NDArray[np.intp]]:
    """The groups in order, and the number of each row's; those of records are tuples."""
    keys = np.asarray(key)
    if keys.dtype.names:
        each = [numbered(keys[name]) for name in keys.dtype.names]
        places, group = np.unique(
            np.column_stack([numbers for _, numbers in each]), axis=0, return_inverse=True
        )
        columns = [[names[k] for k in c] for (names, _), c in zip(each, places.T, strict=True)]
        return tuple(zip(*columns, strict=True)), group.reshape(-1)
    if (keys.dtype.kind == "O" and has_missing(keys)) or (keys != keys).any():
        raise ValueError("The group of some rows is missing. Drop these rows first.")
    if keys.dtype.kind in "mM":  # NumPy would make whole numbers of nanoseconds
        raise _no_key(keys[0])
    found, group = np.unique(keys, return_inverse=True)
    return tuple([_key(value) for value in found.tolist()]), group.reshape(-1)


def _both(ours: tuple[Key, ...], theirs: tuple[Key, ...]) -> tuple[Key, ...]:
    """All groups in order; raises if their keys are of several types: 1 == True."""
    keys: set[Any] = {*ours, *theirs}
    kinds = {tuple(map(type, k)) if isinstance(k, tuple) else type(k) for k in (*ours, *theirs)}
    if len(kinds) > 1:
        raise MismatchError(
            "The keys of all groups must be of the same types, and of as many columns, got "
            f"{ours[0]!r} and {theirs[0]!r}. Nothing was changed."
        )
    return tuple(sorted(keys))


def _key(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_key, value))
    try:
        return label_of(value)
    except ValueError:
        raise _no_key(value) from None


def _no_key(value: Any) -> ValueError:
    return ValueError(
        f"The key of a group must be a whole number, a text or a truth value, got {value!r}. Turn "
        "it into one of these. Nothing was changed."
    )
