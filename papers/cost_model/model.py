"""What parallel incremental learning costs on many machines: the model, without numbers.

For n rows, J features, K classes and p workers,

    gather   (n/p) (a + b J + c J²) + d m J²        m matrices: 1 pooled, K class-wise
    merge    tree: log₂ p rounds; flat: p pieces one after another at the driver
             each step moves, unpacks, adds and packs a piece of m J²/2 integers
    solve    pooled        J³, J², K J² and K J
             shared        J³, J², K J² and K J
             one_vs_rest   K times J³, J² and J

where the coefficients are seconds measured on one machine (`costs`). A piece whose diagonal
passes 2^63 is of two limbs of 64 bits: its steps are dearer by measured factors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product

import numpy as np
from scipy.optimize import nnls

from papers.rows import Rows

Powers = tuple[int, int, int]  # of n, J and K
Terms = Mapping[str, Powers]
Coefficients = dict[str, float]

RESOLUTION = 2.0**-14  # of the features, by default

GATHER: Terms = {"row": (1, 0, 0), "row·J": (1, 1, 0), "row·J²": (1, 2, 0), "m·J²": (0, 2, 1)}
_ONE: Terms = {"J³": (0, 3, 0), "J²": (0, 2, 0), "K·J²": (0, 2, 1), "K·J": (0, 1, 1)}
SOLVE: Mapping[str, Terms] = {
    "pooled": _ONE,
    "shared": _ONE,
    "one_vs_rest": {"K·J³": (0, 3, 1), "K·J²": (0, 2, 1), "K·J": (0, 1, 1)},
}


def value(powers: Powers, point: Sequence[float]) -> float:
    """A product of powers: n^a J^b K^c."""
    return math.prod(float(x) ** power for x, power in zip(point, powers, strict=True))


def fitted(
    terms: Terms,
    points: Sequence[Sequence[float]],
    seconds: Sequence[float],
    known: Mapping[str, float] | None = None,
) -> Coefficients:
    """Coefficients ≥ 0 of the terms, with the least relative errors; some may be known.

    Examples
    --------
    >>> linear = {"a": (1, 0, 0), "b": (0, 1, 0)}
    >>> fit = fitted(linear, [(1, 2, 0), (3, 1, 0), (5, 5, 0)], [8, 9, 25])
    >>> {name: round(value, 6) for name, value in fit.items()}
    {'a': 2.0, 'b': 3.0}
    """
    known = dict(known or {})
    free = [name for name in terms if name not in known]
    A = {name: [value(terms[name], p) for p in points] / np.array(seconds) for name in terms}
    scale = np.array([A[name].max() for name in free])
    rest = np.ones(len(seconds)) - sum(known[name] * A[name] for name in known)
    solution, _ = nnls(np.column_stack([A[name] for name in free]) / scale, rest)
    return known | dict(zip(free, (solution / scale).tolist(), strict=True))


def evaluated(
    terms: Terms, coefficients: Coefficients, n: float = 0.0, J: float = 0.0, K: float = 0.0
) -> float:
    """The sum of the terms."""
    return sum(coefficients[name] * value(powers, (n, J, K)) for name, powers in terms.items())


@dataclass(frozen=True)
class Handling:
    """Seconds for each integer of a packed piece, and its bytes."""

    add: float
    dump: float
    load: float
    size: float


@dataclass(frozen=True)
class Costs:
    """What was measured on one machine, in seconds.

    Attributes
    ----------
    gather : coefficients of `GATHER`
    solve : by kind of solve, coefficients of `SOLVE`
    narrow, wide : Handling
        Of pieces in int64, and in two limbs of 64 bits.
    wide_solve : float
        Further seconds for each entry of a matrix of two limbs.
    file : float
        For each byte, written and read again.
    dispatch : float
        To hand out one round of tasks to processes and wait for them.
    mean_square : float
        The largest mean of φ² over the features.
    """

    gather: Coefficients
    solve: Mapping[str, Coefficients]
    narrow: Handling
    wide: Handling
    wide_solve: float
    file: float
    dispatch: float
    mean_square: float


@dataclass(frozen=True)
class Engine:
    """What carries pieces to where they are added.

    Attributes
    ----------
    byte, round_ : float
        Seconds to move a byte, and to begin a round.
    loads : int
        Pieces that are unpacked for an addition: one if the other is in memory.
    pieces : int
        Of each worker.
    """

    byte: float
    round_: float
    loads: int = 1
    pieces: int = 1


CLUSTER = Engine(byte=1e-9, round_=0.01)  # assumed: 1 GB/s between any two, 10 ms a round


@dataclass(frozen=True)
class Problem:
    """What is to be learned.

    Attributes
    ----------
    rows, features, classes : numbers n, J, K
    kind : {"pooled", "class-wise"}
    """

    rows: float
    features: int
    classes: int
    kind: str

    @property
    def matrices(self) -> int:
        """How many J × J matrices a piece has."""
        return 1 if self.kind == "pooled" else self.classes

    @property
    def entries(self) -> float:
        """Integers in the packed triangles of a piece."""
        width = self.features + (self.classes if self.kind == "pooled" else 1)
        return self.matrices * width * (width + 1) / 2

    @property
    def memory(self) -> float:
        """Bytes of a piece in memory, as full matrices of int64."""
        return 8.0 * self.matrices * self.features**2

    def is_wide(self, rows: float, limit: float) -> bool:
        """Whether a piece of so many rows (of K equal classes) is beyond int64."""
        return rows / self.matrices > limit


def rows_in_int64(mean_square: float, resolution: float = RESOLUTION) -> float:
    """Rows of one matrix until its diagonal passes 2^63.

    Examples
    --------
    >>> f"{rows_in_int64(1.0):.3g}"  # 2^63 · 2^-28
    '3.44e+10'
    """
    return 2.0**63 * resolution**2 / mean_square


@dataclass(frozen=True)
class Wall:
    """Predicted seconds, and what they are made of."""

    gather: float
    merge: float
    solve: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.gather + self.merge + self.solve

    @property
    def dominant(self) -> str:
        """What takes longest."""
        return max(vars(self), key=lambda name: float(vars(self)[name]))


@dataclass(frozen=True)
class Model:
    """Costs on an engine."""

    costs: Costs
    engine: Engine = CLUSTER

    @property
    def limit(self) -> float:
        """Rows of one matrix until its integers are beyond int64."""
        return rows_in_int64(self.costs.mean_square)

    def gather(self, problem: Problem, rows: float, pieces: int = 1) -> float:
        """Seconds of one worker to gather rows into some pieces."""
        once = evaluated(GATHER, self.costs.gather, rows, problem.features)
        return once + pieces * evaluated(
            GATHER, self.costs.gather, 0, problem.features, problem.matrices
        )

    def step(self, problem: Problem, rows: float) -> float:
        """Seconds to add one piece to another, up to the packed sum of so many rows."""
        handling = self._handling(problem, rows)
        each = self.engine.loads * handling.load + handling.add + handling.dump
        return problem.entries * (each + handling.size * self.engine.byte)

    def tree(self, problem: Problem, workers: int) -> float:
        """Seconds of all rounds in which pairs of pieces are added."""
        left = workers * self.engine.pieces
        rows, total = problem.rows / left, 0.0
        while left > 1:
            pairs, rows = left // 2, 2 * rows
            total += math.ceil(pairs / workers) * self.step(problem, rows) + self.engine.round_
            left -= pairs
        return total

    def flat(self, problem: Problem, workers: int) -> float:
        """Seconds of a driver that takes in all pieces, one after another."""
        pieces = workers * self.engine.pieces
        safe = min(pieces, math.floor(pieces * self.limit * problem.matrices / problem.rows))
        narrow, wide = self.step(problem, 0.0), self.step(problem, math.inf)
        return self.engine.round_ + safe * narrow + (pieces - safe) * wide

    def solve(self, problem: Problem, weighting: str = "shared") -> float:
        """Seconds of the solve, on one thread of one machine."""
        J, K = problem.features, problem.classes
        scope = weighting if K > 2 else "shared"  # two classes have one problem only
        how = "pooled" if problem.kind == "pooled" else scope
        seconds = evaluated(SOLVE[how], self.costs.solve[how], 0, J, K)
        pooled = how == "one_vs_rest"  # the rest of the classes is one matrix
        if problem.rows > self.limit if pooled else problem.is_wide(problem.rows, self.limit):
            seconds += (2 if pooled else 1) * problem.matrices * J * J * self.costs.wide_solve
        return seconds

    def wall(self, problem: Problem, workers: int, how: str = "tree") -> Wall:
        """Everything, on so many workers; one of them merges nothing."""
        engine = self.engine
        pieces = engine.pieces if workers > 1 else 1
        gather = self.gather(problem, problem.rows / workers, pieces)
        if workers == 1:
            return Wall(gather, 0.0, self.solve(problem))
        handling = self._handling(problem, problem.rows / (workers * pieces))
        leave = pieces * problem.entries * (handling.dump + handling.size * engine.byte)
        merge = self.tree(problem, workers) if how == "tree" else self.flat(problem, workers)
        return Wall(gather + leave, merge + engine.round_, self.solve(problem))

    def _handling(self, problem: Problem, rows: float) -> Handling:
        wide = problem.is_wide(rows, self.limit)
        return self.costs.wide if wide else self.costs.narrow


FEATURES, CLASSES = (256, 1024, 4096), (2, 10, 100)
ROWS, WORKERS = (1e9, 1e10, 1e11, 1e12), (10, 100, 1000, 10_000)


def grid(model: Model) -> Rows:
    """Predictions for all combinations of features, classes, kinds, rows, workers and merging."""
    rows: Rows = []
    kinds = ("pooled", "class-wise")
    for J, K, kind, n, p in product(FEATURES, CLASSES, kinds, ROWS, WORKERS):
        problem = Problem(n, J, K, kind)
        for how in ("tree", "flat"):
            wall = model.wall(problem, p, how)
            told = {"features": J, "classes": K, "knowledge": kind, "rows": n, "workers": p}
            told |= {"merging": how, **asdict(wall), "seconds": wall.total}
            told |= {"dominant": wall.dominant, "piece_bytes": 8 * problem.entries}
            rows.append(told | {"beyond_int64": problem.is_wide(n, model.limit)})
    return rows
