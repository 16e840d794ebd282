"""The binary problems behind a classifier, changed all together or not at all.

Two classes are one problem. More are one problem for each pair (one against one), or one for
each class against the rest. A change follows the paths of all problems that it touches first,
and only then takes their ends over: an error in any of them leaves every one as it was.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.exact import Floats, Integers
from traceless.hinge.held_rows import HeldRows, found_among
from traceless.path import Change, HingeProblem, Kernel
from traceless.progress import progress

Duel = tuple[Any, Any]  # labels of the negative and the positive class
REST = None  # in place of the label of the negative class: all the others


def duels(classes: NDArray[Any], strategy: str) -> list[Duel]:
    """The binary problems of some classes, in scikit-learn's order."""
    labels = classes.tolist()
    if strategy == "ovo" or len(labels) <= 2:
        return list(combinations(labels, 2))
    return [(REST, label) for label in labels]


@dataclass(frozen=True, eq=False)
class Part:
    """What a binary problem should hold: ids of rows in order, signs and bounds."""

    ids: Integers
    sign: Floats
    bounds: Floats


def part_of(duel: Duel, rows: HeldRows, bounds: Floats) -> Part:
    """The rows of a problem; those whose bound is 0 are left out."""
    negative, positive = duel
    ours = rows.y == positive
    at = np.flatnonzero((ours | (rows.y == negative) | (negative is REST)) & (bounds > 0.0))
    return Part(rows.ids[at], np.where(ours[at], 1.0, -1.0), bounds[at])


class Problem(HingeProblem):
    """A binary problem that takes a change over when told to, and knows its rows by their ids."""

    def __init__(self, kernel: Kernel, width: int, memory: int) -> None:
        super().__init__(kernel, width, memory)
        self.ids: Integers = np.zeros(0, dtype=np.int64)
        self.sign: Floats = np.zeros(0)
        self._change: Change | None = None
        self.is_ahead = False

    def follow(self, part: Part, rows: HeldRows) -> None:
        """Go along the path to what `part` says, and wait for `take_over` or `drop`."""
        kept, at = found_among(self.ids, part.ids)
        stays, new = self.ids[kept], np.ones(len(part.ids), dtype=bool)
        new[at] = False
        bounds = self.bounds.copy()
        bounds[kept] = part.bounds[at]
        moved = not np.array_equal(bounds, self.bounds)
        self._next = (
            np.concatenate([stays, part.ids[new]]),
            np.concatenate([self.sign[kept], part.sign[new]]),
        )
        if not (moved or new.any() or not kept.all()):
            return
        X = rows.X[np.searchsorted(rows.ids, part.ids[new])]
        self._change = self.prepare(
            add=(X, part.sign[new], part.bounds[new]) if new.any() else None,
            remove=np.flatnonzero(~kept),
            bounds=bounds if moved else None,
        )

    def take_over(self) -> int:
        """Make the prepared state ours; the number of breakpoints on the way to it."""
        before = self.n_breakpoints
        if self._change is not None:
            self.take(self._change)
            self._change, (self.ids, self.sign) = None, self._next
        return self.n_breakpoints - before

    def drop(self) -> None:
        """Forget what was prepared."""
        self._change = None

    def spares(self) -> bool:
        """Whether rows with α = 0 can go without a change of the canonical solution."""
        solution = self.canonical()
        margin = (solution.alpha > 0.0) & (solution.alpha < solution.bounds)
        return bool(solution.certain and margin.any())

    def is_spared(self, part: Part) -> bool:
        """Whether `part` only lacks rows without which the canonical solution is the same."""
        kept, at = found_among(self.ids, part.ids)
        if len(at) < len(part.ids):
            return False
        solution = self.canonical()
        return bool(
            (solution.alpha[solution.group[~kept]] <= 0.0).all()
            and np.array_equal(self.bounds[kept], part.bounds[at])
            and self.spares()
        )

    def look_ahead(self) -> Problem:
        """The state that waits to be taken over, or ours, only to be read."""
        ahead = copy.copy(self) if self._change is None else self.ahead(self._change)
        ahead.is_ahead = True
        if self._change is not None:
            ahead._change, (ahead.ids, ahead.sign) = None, self._next
        return ahead

    def values_ahead(self, X: Floats, rows: HeldRows) -> Floats:
        """F at other rows from where the path ended, within its residual, not to the bit."""
        used = np.flatnonzero(self.alpha > 0.0)
        support = rows.X[np.searchsorted(rows.ids, self.ids[used])]
        V = self.kernel.values(support, np.ascontiguousarray(X.T))
        return np.asarray((self.sign[used] * self.alpha[used]) @ V + self.intercept)

    def alpha_of_rows(self) -> tuple[Integers, Floats]:
        """Ids of the rows with α > 0, and their signed α in the canonical solution."""
        alpha = self.canonical().alpha_of_points(self.bounds)
        used = np.flatnonzero(alpha > 0.0)
        return self.ids[used], self.sign[used] * alpha[used]


class Committee:
    """Binary problems by their classes.

    Parameters
    ----------
    kernel : Kernel
    width : int
        Columns of the rows.
    memory : int
        Bytes that the kernel matrices of all problems may take.
    """

    def __init__(self, kernel: Kernel, width: int, memory: int) -> None:
        self.kernel, self.width, self.memory = kernel, width, memory
        self.problems: dict[Duel, Problem] = {}
        self.n_breakpoints = 0  # of the last change

    def change(
        self,
        parts: Mapping[Duel, Part],
        rows: HeldRows,
        verbose: bool,
        kernel: Kernel | None = None,
    ) -> None:
        """Follow all paths to these parts, all or nothing.

        A kernel, if given, must have the values of ours for the rows that are there.
        """
        before = self.kernel
        self._use(kernel or before)
        try:
            ready = self._prepared(parts, rows, verbose)
        except BaseException:
            self._use(before)
            raise
        self.n_breakpoints = sum(problem.take_over() for problem in ready.values())
        self.problems = ready

    def look_ahead(self, parts: Mapping[Duel, Part], rows: HeldRows) -> Committee:
        """The committee after a change that is not made; only to be read."""
        ours = self.problems
        spared = {d: ours[d] for d, part in parts.items() if d in ours and ours[d].is_spared(part)}
        touched = {duel: part for duel, part in parts.items() if duel not in spared}
        ready = self._prepared(touched, rows, verbose=False)
        changed = {duel: problem.look_ahead() for duel, problem in ready.items()}
        for problem in ready.values():
            problem.drop()
        ahead = copy.copy(self)
        ahead.problems = {duel: (spared | changed)[duel] for duel in parts}
        return ahead

    def solutions(self) -> dict[str, Floats]:
        """Numbers that say how all problems are solved, rows in the order of their ids."""
        ordered = [(problem, np.argsort(problem.ids)) for problem in self]
        none = np.zeros(0)
        return {
            "alpha": np.concatenate([none, *(problem.alpha[at] for problem, at in ordered)]),
            "slopes": np.concatenate([none, *(problem.slopes[at] for problem, at in ordered)]),
            "intercepts": np.array([problem.intercept for problem in self]),
            "residuals": np.array([problem.residual for problem in self]),
        }

    def restore(
        self, parts: Mapping[Duel, Part], rows: HeldRows, solutions: Mapping[str, Floats]
    ) -> None:
        """Be what `solutions` were taken from; raises ValueError if they cannot be of the parts."""
        if sum(len(part.ids) for part in parts.values()) != len(solutions["alpha"]):
            raise ValueError("alpha does not have one number for each row of each problem.")
        end, share = 0, self.memory // max(1, len(parts))
        for k, (duel, part) in enumerate(parts.items()):
            begin, end = end, end + len(part.ids)
            alpha, slopes = (solutions[name][begin:end] for name in ("alpha", "slopes"))
            if (alpha > part.bounds).any():
                raise ValueError("a row has an alpha above its bound.")
            problem = self.problems[duel] = Problem(self.kernel, self.width, share)
            points = rows.X[np.searchsorted(rows.ids, part.ids)], part.sign, part.bounds
            problem.restore(points, alpha, slopes, float(solutions["intercepts"][k]))
            problem.residual = float(solutions["residuals"][k])
            problem.ids, problem.sign = part.ids, part.sign

    def __iter__(self) -> Iterator[Problem]:
        return iter(self.problems.values())

    def _use(self, kernel: Kernel) -> None:
        self.kernel = kernel
        for problem in self:
            problem.use(kernel)

    def _prepared(
        self, parts: Mapping[Duel, Part], rows: HeldRows, verbose: bool
    ) -> dict[Duel, Problem]:
        share = self.memory // max(1, len(parts))
        ready = {
            duel: self.problems.get(duel) or Problem(self.kernel, self.width, share)
            for duel in parts
        }
        try:
            for duel in progress(list(parts), "following paths", verbose):
                ready[duel].follow(parts[duel], rows)
        except BaseException as error:
            for problem in ready.values():
                problem.drop()
            if isinstance(error, MemoryError):
                raise MemoryError(
                    f"cache_size allows {share >> 20} MB for the kernel matrix of each of the "
                    f"{len(parts)} binary problems, which is too little: raise it. Nothing was "
                    f"changed. ({error})"
                ) from error
            raise
        return ready
