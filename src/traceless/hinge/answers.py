"""What a solved model of the hinge loss says: values of its problems, attributes, its digest."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats, Integers
from traceless.hinge import multiclass, precomputed
from traceless.hinge.groups import BLOCK
from traceless.hinge.kernels import Kernel
from traceless.hinge.machines import Classifier, Pair
from traceless.hinge.margin import sum_of_rows
from traceless.hinge.multiclass import Coefficients
from traceless.hinge.problem import HingeProblem
from traceless.hinge.settings import Settings, name_of
from traceless.knowledge.training_rows import TrainingRows


@dataclass(frozen=True, eq=False)
class SolvedModel:
    """Training rows, and the solution of their binary problems, only to be read.

    Parameters
    ----------
    rows : TrainingRows
        With kernel="precomputed", numbers of rows of the kernel matrix.
    settings : Settings
    kernel : Kernel
    problems : dict
        By their two classes.
    n_breakpoints : int
        On the paths of the change that has led here.
    """

    rows: TrainingRows
    settings: Settings
    kernel: Kernel
    problems: Mapping[Pair, HingeProblem] = field(default_factory=dict)
    n_breakpoints: int = 0

    def values(self, X: Floats, only_signs: bool = False) -> Floats:
        """One column for each problem; as in LIBSVM, positive for the first of two in a pair.

        With two classes, or one class against the rest, it is positive for the second. If
        `only_signs` are needed, values may be those of the path, where that cannot change a sign.
        """
        if not self.problems:  # one class only
            return np.ones((len(X), 1))
        problems = list(self.problems.values())
        if self.kernel.name == "linear" and not any(p.is_ahead for p in problems):
            columns = [problem.decision_function(X) for problem in problems]
        else:
            only_signs = only_signs and self.kernel.definite  # else `doubt` is no bound
            unsure = [only_signs and not (p.is_ahead or p.is_published) for p in problems]
            as_path = [p.is_ahead or it for p, it in zip(problems, unsure, strict=True)]
            columns = self._sums(X, problems, as_path)
            self._settle(X, columns, [k for k, it in enumerate(unsure) if it])
        scaled = [p.scale * f + p.offset for p, f in zip(problems, columns, strict=True)]
        return self.oriented(np.column_stack(scaled))

    def _settle(self, X: Floats, columns: Sequence[Floats], as_path: Sequence[int]) -> None:
        """Replace values of the path whose sign is in doubt by those that are published."""
        problems = list(self.problems.values())
        doubted = {k: np.abs(columns[k]) <= problems[k].doubt(X) for k in as_path}
        doubted = {k: rows for k, rows in doubted.items() if rows.any()}
        if not doubted:
            return
        at = np.flatnonzero(np.any([*doubted.values()], axis=0))
        again = self._sums(X[at], [problems[k] for k in doubted], [False] * len(doubted))
        for k, f in zip(doubted, again, strict=True):
            columns[k][at] = f

    def _sums(
        self, X: Floats, problems: Sequence[HingeProblem], as_path: Sequence[bool]
    ) -> list[Floats]:
        """The f of problems, each kernel value computed once; the same bits in any batch."""
        terms = [
            (np.searchsorted(self.rows.ids, ids // problem.copies), c, b)
            for problem, it in zip(problems, as_path, strict=True)
            for ids, c, b in [problem.terms(it)]
        ]
        if self.kernel.name == "precomputed":
            numbers = self._numbers()
            return [precomputed.values(X, numbers, numbers[at], c) + b for at, c, b in terms]
        used = np.unique(np.concatenate([at for at, _, _ in terms]))
        support, out = (
            np.ascontiguousarray(self.rows.values(used).T),
            np.zeros((len(terms), len(X))),
        )
        step = max(1, BLOCK // max(1, len(used)))
        for start in range(0, len(X), step):
            part = slice(start, start + step)
            V = np.ascontiguousarray(self.kernel.exact_values(X[part], support).T)
            for f, (at, c, _) in zip(out, terms, strict=True):
                sum_of_rows(V, np.searchsorted(used, at), c, f[part])
        return [f + b for f, (_, _, b) in zip(out, terms, strict=True)]

    def intercepts(self) -> Floats:
        """The constant of each problem."""
        found = [p.scale * p.canonical().intercept + p.offset for p in self.problems.values()]
        return self.oriented(np.array(found))

    def weights(self) -> Floats:
        """Of the columns, with a linear kernel: one row for each problem."""
        rows = [np.zeros(self.rows.X.shape[1])]
        for problem in self.problems.values():
            w = problem.canonical().weights
            assert w is not None
            rows.append(problem.scale * w)
        return self.oriented(np.array(rows[1:] or rows))

    def oriented(self, values: Floats) -> Floats:
        """Values of pairs among several classes get the sign for the first; no negative zeros."""
        return 0.0 - values if self._several_pairs() else values + 0.0

    def _several_pairs(self) -> int:
        """The number of classes, if there is a problem for each pair of several, else 0."""
        machine = self.settings.machine
        if not isinstance(machine, Classifier) or machine.strategy != "ovo":
            return 0
        n = len(self.rows.classes)
        return n if n > 2 else 0

    def support(self) -> tuple[NDArray[np.intp], list[Coefficients]]:
        """Places of the support vectors, by class; and for each problem its own, with Σyα."""
        rows, found = self.rows, list[Coefficients]()
        for problem in self.problems.values():
            alpha = problem.canonical().alpha_of_points(problem.bounds)
            at = np.searchsorted(rows.ids, problem.ids // problem.copies)
            c = np.asarray(np.bincount(at, problem.scale * problem.y * alpha, len(rows)), float)
            used = np.flatnonzero(c)
            found.append((used, c[used]))
        places = np.unique(np.concatenate([np.zeros(0, np.intp), *(at for at, _ in found)]))
        if isinstance(self.settings.machine, Classifier):
            places = places[np.argsort(rows.y[places], kind="stable")]
        return places, found

    def decisive_ids(self) -> Integers:
        """Ids of the rows whose removal, each by itself, would change the solution."""
        rows, moves = self.rows, self.settings.machine.needs_all_rows
        if moves or not all(problem.spares() for problem in self.problems.values()):
            return rows.ids
        decisive = self.moves_gamma.copy()
        decisive[self.support()[0]] = True
        return rows.ids[decisive]

    @cached_property
    def moves_gamma(self) -> NDArray[np.bool_]:
        """The rows whose removal, each by itself, might change gamma."""
        return self.settings.moves_gamma(self.rows.X, self.rows.weight)

    def dual_coef(self) -> Floats:
        """Coefficients of the support vectors in scikit-learn's layout."""
        support, found = self.support()
        if not found:
            return np.zeros((1, 0))
        n_pairs = self._several_pairs()
        label = np.searchsorted(self.rows.classes, self.rows.y[support]) if n_pairs else support
        out = multiclass.dual_coefficients(found, support, label, n_pairs)
        return self.oriented(out) if n_pairs else out

    def digest(self) -> str:
        """SHA-256 of the kernel, the rows, their bounds and the solution.

        Of a kernel matrix that was given: of the kernel values, labels and weights of the points.
        """
        settings, kernel = self.settings, self.kernel
        used = {"rbf": ("gamma",), "poly": ("gamma", "coef0", "degree")}
        used["sigmoid"] = ("gamma", "coef0")
        said: dict[str, Any] = {p: float(getattr(kernel, p)) for p in used.get(kernel.name, ())}
        name = name_of(settings.kernel) if callable(settings.kernel) else settings.kernel
        own = getattr(settings.machine, settings.machine.said)
        said |= {"kernel": name, settings.machine.said: own if isinstance(own, str) else float(own)}
        if settings.name == "precomputed":
            numbers, rows = self._numbers(), self.rows
            bounds = {
                ascii(k): np.sort(p.scale * p.bounds).tolist() for k, p in self.problems.items()
            }
            h = sha256(json.dumps(said | {"bounds": bounds}, sort_keys=True).encode())
            gram = self.gram[np.ix_(numbers, numbers)]
            h.update(precomputed.content(gram + 0.0, rows.y, rows.weight))
            return h.hexdigest()
        h = sha256(json.dumps(said, sort_keys=True).encode())
        for piece in self.rows.content():
            h.update(piece)
        for pair, problem in self.problems.items():
            solution = problem.canonical()
            h.update(ascii(pair).encode())
            for values in (solution.bounds, solution.shares + 0.0, solution.intercept + 0.0):
                h.update(np.asarray(values).tobytes())
        return h.hexdigest()

    def excess(self, tol: float, asked: bool) -> float:
        """The largest KKT residual that is to be reported, or 0; each is reported once.

        `asked`: whether somebody is about to use what is published.
        """
        return max([problem.excess(tol, asked) for problem in self.problems.values()], default=0.0)

    @property
    def gram(self) -> Floats:
        """The kernel matrix, with kernel="precomputed"."""
        assert self.kernel.gram is not None
        return self.kernel.gram

    def _numbers(self) -> Integers:
        """The rows of the kernel matrix that are points held, with kernel="precomputed"."""
        return self.rows.X[:, 0].astype(np.int64)
