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
from traceless.hinge.kernels import Kernel
from traceless.hinge.machines import Classifier, Pair
from traceless.hinge.multiclass import Coefficients
from traceless.hinge.problem import HingeProblem
from traceless.hinge.published import kernel_sums, linear_values
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

    def values(self, X: Floats) -> Floats:
        """One column for each problem; as in LIBSVM, positive for the first of two in a pair.

        With two classes, or one class against the rest, it is positive for the second.
        """
        if not self.problems:  # one class only
            return np.ones((len(X), 1))
        problems = list(self.problems.values())
        solutions = [problem.published for problem in problems]
        if all(solution.weights is not None for solution in solutions):
            columns = linear_values(self.kernel, X, solutions)
        else:
            columns = self._sums(X, problems)
        scaled = [p.scale * f + p.offset for p, f in zip(problems, columns, strict=True)]
        return self.oriented(np.column_stack(scaled))

    def _sums(self, X: Floats, problems: Sequence[HingeProblem]) -> list[Floats]:
        """The f of problems by kernel values."""
        terms = []
        for problem in problems:
            ids, c, b = problem.published.terms()
            terms.append((np.searchsorted(self.rows.ids, ids // problem.copies), c, b))
        if self.kernel.name == "precomputed":
            return [precomputed.values(X, at, c) + b for at, c, b in terms]
        return kernel_sums(self.kernel, X, self.rows, terms)

    def intercepts(self) -> Floats:
        """The constant of each problem."""
        found = [p.scale * p.published.intercept + p.offset for p in self.problems.values()]
        return self.oriented(np.array(found))

    def weights(self) -> Floats:
        """Of the columns, with a linear kernel: one row for each problem."""
        rows = [np.zeros(self.rows.X.shape[1])]
        for problem in self.problems.values():
            w = problem.published.weights
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
            alpha = problem.published.alpha_of_points(problem.bounds)
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
        if moves or not all(problem.published.spares for problem in self.problems.values()):
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
            bounds = {
                ascii(k): np.sort(p.scale * p.bounds).tolist() for k, p in self.problems.items()
            }
            h = sha256(json.dumps(said | {"bounds": bounds}, sort_keys=True).encode())
            numbers = self._numbers()
            gram = self.gram[np.ix_(numbers, numbers)] + 0.0
            h.update(precomputed.content(gram, self.rows.y, self.rows.weight))
            return h.hexdigest()
        h = sha256(json.dumps(said, sort_keys=True).encode())
        for piece in self.rows.content():
            h.update(piece)
        for pair, problem in self.problems.items():
            solution = problem.published
            h.update(ascii(pair).encode())
            for values in (solution.bounds, solution.shares + 0.0, solution.intercept + 0.0):
                h.update(np.asarray(values).tobytes())
        return h.hexdigest()

    def excess(self, tol: float) -> float:
        """The largest KKT residual that is to be reported, or 0."""
        return max([p.published.excess(tol) for p in self.problems.values()], default=0.0)

    @property
    def gram(self) -> Floats:
        """The kernel matrix, with kernel="precomputed"."""
        assert self.kernel.gram is not None
        return self.kernel.gram

    def _numbers(self) -> Integers:
        """The rows of the kernel matrix that are points held, with kernel="precomputed"."""
        return self.rows.X[:, 0].astype(np.int64)
