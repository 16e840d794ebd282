"""The binary problems behind a classifier, changed all together or not at all.

Two classes are one problem. More are one problem for each pair (one against one), or one for
each class against the rest. A change follows the paths of all problems that it touches and makes
another committee; this one stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats, Integers
from traceless.hinge.held_rows import HeldRows, found_among
from traceless.path import Canonical, Kernel, State
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


@dataclass(frozen=True, eq=False)
class Problem:
    """A binary problem that is solved: which rows it has, and the state they are in.

    Parameters
    ----------
    ids : ids of its rows, in the order of the state
    rows : HeldRows
        All rows there are, its own among them.
    state : State
    is_ahead : bool
        Whether it is only to be looked at: its values are those of the path.
    """

    ids: Integers
    rows: HeldRows
    state: State
    is_ahead: bool = False

    def content(self) -> Floats:
        """Its rows."""
        return self.rows.X[np.searchsorted(self.rows.ids, self.ids)]

    @property
    def solution(self) -> Canonical:
        """What is published of it."""
        return self.state.canonical(self.content)

    def changed(
        self, part: Part, rows: HeldRows, kernel: Kernel | None = None, memory: int | None = None
    ) -> Problem:
        """The problem that `part` says, at the end of a path from this one."""
        kept, at = found_among(self.ids, part.ids)
        new = np.ones(len(part.ids), dtype=bool)
        new[at] = False
        before = self.state.bounds
        bounds = before.copy()
        bounds[kept] = part.bounds[at]
        moved = not np.array_equal(bounds, before)
        if not (moved or new.any() or not kept.all()):
            return replace(self, rows=rows)
        X = rows.X[np.searchsorted(rows.ids, part.ids[new])]
        state = self.state.changed(
            self.content,
            (X, part.sign[new], part.bounds[new]),
            np.flatnonzero(~kept),
            bounds if moved else None,
            kernel,
            memory,
        )
        return Problem(np.concatenate([self.ids[kept], part.ids[new]]), rows, state)

    def excess(self, tol: float, asked: bool) -> float:
        """The residual, if it is to be reported and has not been yet, or 0.

        What the path certifies needs no report before the solution is asked for: then it is
        computed, and measured on all rows, so that nothing wrong is published without a word.
        """
        if self.state.is_reported or not (asked or not self.state.certified(tol)):
            return 0.0
        found = self.solution.excess(tol)
        self.state.is_reported = True
        return found

    def spares(self) -> bool:
        """Whether rows with α = 0 can go without a change of the solution."""
        solution = self.solution
        margin = (solution.alpha > 0.0) & (solution.alpha < solution.bounds)
        return bool(solution.certain and margin.any())

    def is_spared(self, part: Part) -> bool:
        """Whether `part` only lacks rows without which the solution is the same."""
        kept, at = found_among(self.ids, part.ids)
        if len(at) < len(part.ids):
            return False
        solution = self.solution
        return bool(
            (solution.alpha[solution.group[~kept]] <= 0.0).all()
            and np.array_equal(self.state.bounds[kept], part.bounds[at])
            and self.spares()
        )

    def values_ahead(self, X: Floats) -> Floats:
        """F at other rows from where the path ended, within its residual, not to the bit."""
        alpha = self.state.alpha
        used = np.flatnonzero(alpha > 0.0)
        V = self.state.kernel.values(self.content()[used], np.ascontiguousarray(X.T))
        return np.asarray((self.state.y[used] * alpha[used]) @ V + self.state.intercept)

    def alpha_of_rows(self) -> tuple[Integers, Floats]:
        """Ids of the rows with α > 0, and their signed α."""
        alpha = self.solution.alpha_of_points(self.state.bounds)
        used = np.flatnonzero(alpha > 0.0)
        return self.ids[used], self.state.y[used] * alpha[used]

    def violation(self) -> float:
        """The largest violation of a KKT condition by what is published, measured anew."""
        return self.solution.violation(self.content(), self.state.y, self.state.bounds)


@dataclass(frozen=True, eq=False)
class Committee:
    """Binary problems by their classes.

    Parameters
    ----------
    kernel : Kernel
    width : int
        Columns of the rows.
    memory : int
        Bytes that the kernel matrices of all problems may take.
    problems : dict
    n_breakpoints : int
        On the paths of the change that has led here.
    """

    kernel: Kernel
    width: int
    memory: int
    problems: Mapping[Duel, Problem] = field(default_factory=dict)
    n_breakpoints: int = 0

    def __iter__(self) -> Iterator[Problem]:
        return iter(self.problems.values())

    def changed(
        self,
        parts: Mapping[Duel, Part],
        rows: HeldRows,
        memory: int,
        verbose: bool,
        kernel: Kernel | None = None,
    ) -> Committee:
        """Follow all paths to these parts.

        A kernel, if given, must have the values of ours for the rows that are there. Kernel
        matrices are still ours, until the other one is told to `take_over`.
        """
        share = memory // max(1, len(parts))
        ours = replace(self, kernel=kernel or self.kernel, memory=memory)
        done: dict[Duel, Problem] = {}
        try:
            for duel in progress(list(parts), "following paths", verbose):
                before = ours._problem(duel, rows, share)
                done[duel] = before.changed(parts[duel], rows, ours.kernel, share)
        except MemoryError as error:
            raise MemoryError(
                f"cache_size allows {share / 2**20:.3g} MB for the kernel matrix of each of the "
                f"{len(parts)} binary problems, which is too little: raise it (set_params, then "
                f"again). Nothing was changed. ({error})"
            ) from error
        steps = [p.state.n_breakpoints - self._steps(duel) for duel, p in done.items()]
        return replace(ours, problems=done, n_breakpoints=sum(steps))

    def take_over(self) -> None:
        """Own the kernel matrices from now on: what they hold of rows that are gone is erased."""
        for problem in self:
            problem.state.take_over()

    def lent(self) -> Committee:
        """The same for a copy, which is to make kernel matrices of its own."""
        return self._mapped(lambda p: replace(p, state=p.state.lent()))

    def with_kernel(self, kernel: Kernel) -> Committee:
        """The same with a kernel that has the same values for the rows that are there."""
        other = self._mapped(lambda p: replace(p, state=p.state.with_kernel(kernel)))
        return replace(other, kernel=kernel)

    def look_ahead(self, parts: Mapping[Duel, Part], rows: HeldRows) -> Committee:
        """The committee after a change that is not made; only to be read."""
        ours = self.problems
        ahead: dict[Duel, Problem] = {}
        for duel, part in parts.items():
            if duel in ours and ours[duel].is_spared(part):
                ahead[duel] = ours[duel]
            else:
                share = self.memory // max(1, len(parts))
                after = self._problem(duel, rows, share).changed(part, rows)
                ahead[duel] = replace(after, is_ahead=True)
        return replace(self, problems=ahead)

    def solutions(self) -> dict[str, Floats]:
        """Numbers that say how all problems are solved, rows in the order of their ids."""
        ordered = [(problem.state, np.argsort(problem.ids)) for problem in self]
        none = np.zeros(0)
        return {
            "alpha": np.concatenate([none, *(state.alpha[at] for state, at in ordered)]),
            "slopes": np.concatenate([none, *(state.slopes[at] for state, at in ordered)]),
            "intercepts": np.array([problem.state.intercept for problem in self]),
            "residuals": np.array([problem.state.residual for problem in self]),
        }

    def restored(
        self,
        parts: Mapping[Duel, Part],
        rows: HeldRows,
        solutions: Mapping[str, Floats],
        n_breakpoints: int,
    ) -> Committee:
        """What `solutions` were taken from; raises ValueError if they cannot be of the parts."""
        if sum(len(part.ids) for part in parts.values()) != len(solutions["alpha"]):
            raise ValueError("alpha does not have one number for each row of each problem.")
        end, share = 0, self.memory // max(1, len(parts))
        problems: dict[Duel, Problem] = {}
        for k, (duel, part) in enumerate(parts.items()):
            begin, end = end, end + len(part.ids)
            alpha, slopes = (solutions[name][begin:end] for name in ("alpha", "slopes"))
            if (alpha > part.bounds).any():
                raise ValueError("a row has an alpha above its bound.")
            state = State(self.kernel, self.width, share).restored(
                part.sign, part.bounds, alpha, slopes, float(solutions["intercepts"][k])
            )
            state.residual = float(solutions["residuals"][k])
            problems[duel] = Problem(part.ids, rows, state)
        return replace(self, problems=problems, n_breakpoints=n_breakpoints)

    def _problem(self, duel: Duel, rows: HeldRows, share: int) -> Problem:
        """Ours, or one without rows."""
        none = np.zeros(0, dtype=np.int64)
        found = self.problems.get(duel)
        return found or Problem(none, rows, State(self.kernel, self.width, share))

    def _steps(self, duel: Duel) -> int:
        return self.problems[duel].state.n_breakpoints if duel in self.problems else 0

    def _mapped(self, change: Any) -> Committee:
        return replace(self, problems={duel: change(p) for duel, p in self.problems.items()})
