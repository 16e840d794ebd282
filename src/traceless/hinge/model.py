"""A solved hinge-loss model: rows, the binary problems they make, and what follows from both.

    min ½ αᵀQα - 1ᵀα,    0 ≤ α_i ≤ C ω_i,    Σ y_i α_i = 0,     Q_ij = y_i y_j k(x_i, x_j)

for each pair of classes, or each class against the rest; ω_i is the weight of the row times
that of its class. `traceless.path_svc` has the estimator.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.exact import Floats, Integers, packed
from traceless.exceptions import MismatchError
from traceless.features.parameters import positive
from traceless.hinge import given_kernel, voting
from traceless.hinge.committee import Committee, Duel, Part, Problem, duels, part_of
from traceless.hinge.held_rows import Batch, HeldRows
from traceless.path import Kernel
from traceless.saving import Pieces, labels

KERNELS = ("linear", "poly", "rbf", "precomputed")


@dataclass(frozen=True)
class Settings:
    """The parameters that a solution depends on."""

    C: float
    class_weight: Any
    kernel: Any
    gamma: Any
    degree: Any
    coef0: Any
    strategy: str

    def __post_init__(self) -> None:
        positive("C", self.C)
        if not callable(self.kernel) and self.kernel not in KERNELS:
            raise ValueError(
                f"kernel must be one of {', '.join(map(repr, KERNELS))} or a callable, got "
                f"{self.kernel!r}."
            )
        if self.strategy not in ("ovo", "ovr"):
            raise ValueError(f"strategy must be 'ovo' or 'ovr', got {self.strategy!r}.")

    @property
    def structure(self) -> tuple[Any, ...]:
        """Those that no path leads from one value of to another."""
        return self.kernel, self.gamma, self.degree, self.coef0, self.strategy

    @property
    def precomputed(self) -> bool:
        """Whether kernel values come in place of rows."""
        return isinstance(self.kernel, str) and self.kernel == "precomputed"


@dataclass(frozen=True, eq=False)
class Hinge:
    """Rows, and the solution of their problems for some settings.

    Parameters
    ----------
    rows : HeldRows
        With kernel="precomputed", numbers of rows of the kernel matrix.
    committee : Committee
    settings : Settings
    gamma : float
    only_to_read : bool
        Whether the kernel matrix belongs to another model.
    """

    rows: HeldRows
    committee: Committee
    settings: Settings
    gamma: float
    only_to_read: bool = False

    # --- learning and forgetting -----------------------------------------------------------

    @classmethod
    def learned(cls, new: Batch, settings: Settings, memory: int, verbose: bool) -> Hinge:
        """The model of some rows."""
        X, y, weight = new
        gram = None
        if settings.precomputed:
            gram, numbers = given_kernel.joined(np.zeros((0, 0)), np.zeros(0, np.int64), X)
            X = numbers[:, None].astype(np.float64)
        rows = HeldRows.none(X.shape[1])
        rows = rows.changed(rows.ids, _with_weight((X, y, weight)))
        if not len(rows):
            raise ValueError(
                "There is nothing to learn: no rows, or all of them with sample_weight zero."
            )
        return cls.solved(rows, settings, gamma_of(settings, rows), gram, memory, verbose)

    @classmethod
    def solved(
        cls,
        rows: HeldRows,
        settings: Settings,
        gamma: float,
        gram: Floats | None,
        memory: int,
        verbose: bool,
    ) -> Hinge:
        """The model of rows, from scratch."""
        committee = Committee(_kernel(settings, gamma, gram), rows.X.shape[1], memory)
        committee.change(_parts(rows, settings), rows, verbose)
        return cls(rows, committee, settings, gamma)

    @classmethod
    def restored(
        cls,
        rows: HeldRows,
        settings: Settings,
        gamma: float,
        gram: Floats | None,
        memory: int,
        solutions: Mapping[str, Floats],
    ) -> Hinge:
        """The model of rows, from the solutions that `pieces` found; raises if they do not fit."""
        committee = Committee(_kernel(settings, gamma, gram), rows.X.shape[1], memory)
        committee.restore(_parts(rows, settings), rows, solutions)
        return cls(rows, committee, settings, gamma)

    def pieces(self) -> Pieces:
        """What a file needs to make this model again."""
        if self.only_to_read:
            raise TypeError("A model made by without() cannot be saved: save a copy that forgets.")
        rows, classes = self.rows, self.rows.classes
        facts = {
            "gamma": self.gamma,
            "classes": labels(classes.tolist()),
            "next_id": rows.next_id,
            "n_breakpoints": self.committee.n_breakpoints,
        }
        tensors = {"rows": rows.X, "weights": rows.weight, "ids": rows.ids}
        tensors["labels"] = np.searchsorted(classes, rows.y).astype(np.int64)
        if self.settings.precomputed:
            tensors["gram"] = packed(self._gram()) + 0.0  # there is one zero
        return facts, tensors | self.committee.solutions()

    def find(self, old: Batch) -> Integers:
        """The ids of rows with this content."""
        if self.settings.precomputed:
            raise ValueError(
                "With kernel='precomputed' points have no content to be found by: forget them by "
                "their ids (ids_, last_ids_)."
            )
        return self.rows.find(_with_weight(old))

    def updated(
        self, new: Batch | None, gone: Integers, settings: Settings, memory: int, verbose: bool
    ) -> Hinge:
        """The model with new rows, less some; this one is used up, unless there is an error."""
        if self.only_to_read:
            raise TypeError(
                "A model made by without() shares the kernel matrix of another and can only be "
                "asked: change a copy (copy.copy) of the other one."
            )
        kernel = None
        if new is not None and self.settings.precomputed:
            X, y, weight = new
            gram, numbers = given_kernel.joined(self._gram(), self._numbers(), X)
            new, kernel = (numbers[:, None] + 0.0, y, weight), _kernel(settings, self.gamma, gram)
        rows = self.rows.changed(gone, None if new is None else _with_weight(new))
        if settings.structure != self.settings.structure:
            return self._remade(rows, settings, kernel, memory, verbose)
        self.committee.change(_parts(rows, settings), rows, verbose, kernel)
        if settings.precomputed:
            given_kernel.without(self._gram(), self._numbers()[np.isin(self.rows.ids, gone)])
        return Hinge(rows, self.committee, settings, self.gamma)

    def without(self, gone: Integers) -> Hinge:
        """The model less some rows, only to be read; this one stays as it is."""
        rows = self.rows.less(gone)
        ahead = self.committee.look_ahead(_parts(rows, self.settings), rows)
        return Hinge(rows, ahead, self.settings, self.gamma, only_to_read=True)

    def _remade(
        self, rows: HeldRows, settings: Settings, kernel: Kernel | None, memory: int, verbose: bool
    ) -> Hinge:
        if settings.precomputed != self.settings.precomputed:
            raise MismatchError(
                f"The model holds {'kernel values' if self.settings.precomputed else 'rows'}, and "
                f"kernel={settings.kernel!r} needs the other kind: fit it anew."
            )
        same = settings.gamma == self.settings.gamma
        gamma = self.gamma if same else gamma_of(settings, rows)
        gram = (kernel or self.committee.kernel).gram
        return Hinge.solved(rows, settings, gamma, gram, memory, verbose)

    # --- what follows ------------------------------------------------------------------------

    def values(self, X: Floats) -> Floats:
        """One column for each problem; as in LIBSVM, positive for the first of two in a pair.

        Of two classes only, and of a class and the rest, it is positive for the second.
        """
        if not self.committee.problems:  # one class only
            return np.ones((len(X), 1))
        columns = [self._values_of(problem, X) for problem in self.committee]
        return self.oriented(np.column_stack(columns))

    def _values_of(self, problem: Problem, X: Floats) -> Floats:
        if problem.is_ahead and not self.settings.precomputed:
            return problem.values_ahead(X, self.rows)
        if self.settings.precomputed:
            solution = problem.canonical()
            at = solution.support[:, 0].astype(np.int64)
            f = given_kernel.values(X, self._numbers(), at, solution.coefficients)
            return np.asarray(f + solution.intercept)
        return np.asarray(problem.decision_function(X))

    def oriented(self, values: Floats) -> Floats:
        """Of pairs among several classes, with the sign for the first; no negative zeros."""
        pairs = self.settings.strategy == "ovo" and len(self.rows.classes) > 2
        return 0.0 - values if pairs else values + 0.0

    def support(self) -> tuple[NDArray[np.intp], list[voting.Coefficients]]:
        """Places of the support vectors, by class; and for each problem its own, with yα."""
        rows = self.rows
        found = []
        for problem in self.committee:
            ids, signed = problem.alpha_of_rows()
            found.append((np.searchsorted(rows.ids, ids), signed))
        places = np.unique(np.concatenate([np.zeros(0, np.intp), *(at for at, _ in found)]))
        return places[np.argsort(rows.y[places], kind="stable")], found

    def decisive_ids(self) -> Integers:
        """Ids of the rows without any one of which the solution would be another."""
        moves = self.settings.class_weight is not None  # with the counts
        if moves or not all(problem.spares() for problem in self.committee):
            return self.rows.ids
        return self.rows.ids[self.support()[0]]

    def dual_coef(self) -> Floats:
        """Coefficients of the support vectors in scikit-learn's layout."""
        support, found = self.support()
        classes = self.rows.classes
        if not found:
            return np.zeros((1, 0))
        if len(classes) == 2 or self.settings.strategy == "ovr":
            return voting.rest_layout(found, support)
        label = np.searchsorted(classes, self.rows.y[support])
        return self.oriented(voting.pair_layout(found, support, label, len(classes)))

    def digest(self) -> str:
        """SHA-256 of the kernel, the rows, their bounds and the solution."""
        if self.settings.precomputed:
            raise ValueError(
                "There is no digest with kernel='precomputed': points that are known by their "
                "kernel values only have no content to be sorted by."
            )
        h = sha256(json.dumps(self._specification(), sort_keys=True).encode())
        for piece in self.rows.content():
            h.update(piece)
        for duel, problem in self.committee.problems.items():
            solution = problem.canonical()
            h.update(repr(duel).encode())
            for values in (solution.bounds, solution.alpha + 0.0, solution.intercept + 0.0):
                h.update(np.asarray(values).tobytes())
        return h.hexdigest()

    def excess(self, tol: float) -> float:
        """The largest KKT residual that neither `tol` nor rounding explains, or 0."""
        found = 0.0
        for problem in self.committee:
            if not problem.residual <= tol:
                size = float(np.abs(problem.kernel.diagonal(self.rows.X)).max())
                rounding = 10 * float(np.finfo(float).eps) * float(problem.alpha.sum()) * size
                found = max(found, 0.0 if problem.residual <= rounding else problem.residual)
        return found

    def _specification(self) -> dict[str, Any]:
        settings, kernel = self.settings, self.committee.kernel
        used = {"linear": (), "rbf": ("gamma",), "poly": ("gamma", "coef0", "degree")}
        name = settings.kernel
        if callable(name):
            name = f"{name.__module__}.{name.__qualname__}"
        parameters = {p: float(getattr(kernel, p)) for p in used.get(name, ())}
        return {"kernel": name, "strategy": settings.strategy, **parameters}

    def _gram(self) -> Floats:
        gram = self.committee.kernel.gram
        assert gram is not None
        return gram

    def _numbers(self) -> Integers:
        return self.rows.X[:, 0].astype(np.int64) if self.settings.precomputed else self.rows.ids


# --- from settings and rows to problems --------------------------------------------------------


def _with_weight(new: Batch) -> Batch:
    """The rows that are any: those of a weight above 0."""
    X, y, weight = new
    kept = weight > 0.0
    return new if kept.all() else (X[kept], y[kept], weight[kept])


def _kernel(settings: Settings, gamma: float, gram: Floats | None) -> Kernel:
    if callable(settings.kernel):
        return Kernel("callable", function=settings.kernel)
    if settings.precomputed:
        return Kernel("precomputed", gram=gram)
    degree = settings.degree if settings.kernel == "poly" else 0
    return Kernel(settings.kernel, gamma, float(settings.coef0), degree)


def gamma_of(settings: Settings, rows: HeldRows) -> float:
    """The number that gamma stands for; the same bits for the rows in any order."""
    gamma, width = settings.gamma, rows.X.shape[1]
    if isinstance(gamma, str) and gamma == "auto":
        return float(1.0 / width)
    if not (isinstance(gamma, str) and gamma == "scale"):
        return positive("gamma", gamma, zero=True)
    if settings.precomputed or not len(rows):
        return 1.0
    total = math.fsum(rows.weight)
    mean = math.fsum(rows.weight * (rows.X / width).sum(axis=1)) / total
    variance: float = math.fsum(rows.weight * (((rows.X - mean) ** 2) / width).sum(axis=1)) / total
    return float(1.0 / (width * variance)) if variance > 0.0 else 1.0


def _parts(rows: HeldRows, settings: Settings) -> dict[Duel, Part]:
    classes = rows.classes
    label = np.searchsorted(classes, rows.y)
    bounds = settings.C * _class_weights(settings.class_weight, rows, label)[label] * rows.weight
    if not np.isfinite(bounds).all():
        raise ValueError("C times the weights is beyond the largest float64: make one smaller.")
    return {duel: part_of(duel, rows, bounds) for duel in duels(classes, settings.strategy)}


def _class_weights(rule: Any, rows: HeldRows, label: NDArray[np.intp]) -> Floats:
    """One for each class."""
    classes = rows.classes
    if rule is None:
        return np.ones(len(classes))
    if isinstance(rule, str) and rule == "balanced":  # a row of weight 2 counts as two
        totals = [math.fsum(rows.weight[label == k]) for k in range(len(classes))]
        return np.array([math.fsum(totals) / (len(totals) * total) for total in totals])
    if not isinstance(rule, Mapping):
        raise ValueError(
            f"class_weight must be None, 'balanced' or a dict of labels, got {rule!r}."
        )
    weights = np.array([rule.get(name, 1.0) for name in classes.tolist()], dtype=np.float64)
    if not ((weights >= 0.0) & (weights < np.inf)).all():
        raise ValueError(f"Class weights must be finite and not negative, got {rule!r}.")
    return weights
