"""A solved hinge-loss model: rows, the binary problems they make, and what follows from both.

    min ½ αᵀQα - 1ᵀα,    0 ≤ α_i ≤ C ω_i,    Σ y_i α_i = 0,     Q_ij = y_i y_j k(x_i, x_j)

for each pair of classes, or each class against the rest; ω_i is the weight of the row times
that of its class. `traceless.estimators.path_svc` has the estimator.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats, Integers, packed, unpacked
from traceless.exceptions import MismatchError
from traceless.files.saving import Pieces, labels
from traceless.hinge import given_kernel, voting
from traceless.hinge.committee import Committee, Duel, Part, Problem, duels, part_of
from traceless.hinge.held_rows import Batch, HeldRows
from traceless.hinge.settings import Settings, centre_of, name_of
from traceless.path import Kernel


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
        return cls.solved(rows, settings, gram, memory, verbose)

    @classmethod
    def solved(
        cls, rows: HeldRows, settings: Settings, gram: Floats | None, memory: int, verbose: bool
    ) -> Hinge:
        """The model of rows, from scratch."""
        gamma = settings.gamma_of(rows.X, rows.weight)
        committee = Committee(_kernel(settings, gamma, rows, gram), rows.X.shape[1], memory)
        committee = committee.changed(_parts(rows, settings), rows, memory, verbose)
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
        n_breakpoints: int,
    ) -> Hinge:
        """The model of rows, from the solutions that `pieces` found; raises if they do not fit."""
        committee = Committee(_kernel(settings, gamma, rows, gram), rows.X.shape[1], memory)
        committee = committee.restored(_parts(rows, settings), rows, solutions, n_breakpoints)
        return cls(rows, committee, settings, gamma)

    def take_over(self) -> None:
        """Own the kernel matrices from now on: the last step before the model is published."""
        self.committee.take_over()

    def updated(
        self, new: Batch | None, gone: Integers, settings: Settings, memory: int, verbose: bool
    ) -> Hinge:
        """The model with new rows, less some; this one stays what it is."""
        if self.only_to_read:
            raise TypeError(
                "A model made by without() shares the kernel matrix of another and can only be "
                "asked: change a copy (copy.copy) of the other one."
            )
        if settings.precomputed != self.settings.precomputed:
            raise MismatchError(
                f"The model holds {'kernel values' if self.settings.precomputed else 'rows'}, and "
                f"kernel={settings.kernel!r} needs the other kind: fit it anew."
            )
        if settings.precomputed:
            return self._updated_values(new, gone, settings, memory, verbose)
        rows = self.rows.changed(gone, None if new is None else _with_weight(new))
        if self._needs_fit(rows, settings):
            return Hinge.solved(rows, settings, None, memory, verbose)
        committee = self.committee.changed(_parts(rows, settings), rows, memory, verbose)
        return Hinge(rows, committee, settings, self.gamma)

    def _updated_values(
        self, new: Batch | None, gone: Integers, settings: Settings, memory: int, verbose: bool
    ) -> Hinge:
        """The same where kernel values come in place of rows."""
        gram, dropped = self._gram(), self._numbers()[np.isin(self.rows.ids, gone)]
        if new is not None:
            X, y, weight = new
            gram, numbers = given_kernel.joined(gram, self._numbers(), X)
            new = _with_weight((numbers[:, None] + 0.0, y, weight))
        rows = self.rows.changed(gone, new)
        left = given_kernel.less(gram, dropped) if len(dropped) else gram
        if settings.structure != self.settings.structure:
            return Hinge.solved(rows, settings, left, memory, verbose)
        on_the_way = Kernel("precomputed", gram=gram)
        parts = _parts(rows, settings)
        committee = self.committee.changed(parts, rows, memory, verbose, on_the_way)
        committee = committee.with_kernel(Kernel("precomputed", gram=left))
        return Hinge(rows, committee, settings, self.gamma)

    def without(self, gone: Integers) -> Hinge:
        """The model less some rows, only to be read; this one stays as it is."""
        rows = self.rows.less(gone)
        if self._has_other_gamma(rows, self.settings):
            other = Hinge.solved(rows, self.settings, None, self.committee.memory, False)
            return replace(other, only_to_read=True)
        ahead = self.committee.look_ahead(_parts(rows, self.settings), rows)
        return Hinge(rows, ahead, self.settings, self.gamma, only_to_read=True)

    def _needs_fit(self, rows: HeldRows, settings: Settings) -> bool:
        """Whether no path leads to these rows and settings, because the kernel is another."""
        if settings.structure != self.settings.structure or self._has_other_gamma(rows, settings):
            return True
        return settings.linear and not _same(centre_of(rows.X), self.committee.kernel.centre)

    def _has_other_gamma(self, rows: HeldRows, settings: Settings) -> bool:
        return settings.uses_gamma and settings.gamma_of(rows.X, rows.weight) != self.gamma

    # --- files and copies ------------------------------------------------------------------

    def pieces(self) -> Pieces:
        """What a file needs to make this model again."""
        self._check_whole()
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

    def __getstate__(self) -> dict[str, Any]:
        """As a file: rows and solutions, and no kernel matrix but one that was given."""
        self._check_whole()
        rows, settings = self.rows, self.settings
        return {
            "settings": settings,
            "rows": {"X": rows.X, "y": rows.y, "weight": rows.weight, "ids": rows.ids},
            "next_id": rows.next_id,
            "gamma": self.gamma,
            "gram": packed(self._gram()) if settings.precomputed else None,
            "memory": self.committee.memory,
            "n_breakpoints": self.committee.n_breakpoints,
            "solutions": self.committee.solutions(),
        }

    def _check_whole(self) -> None:
        if self.only_to_read:
            raise TypeError(
                "A model made by without() cannot be saved or pickled: save a copy that forgets."
            )

    def __setstate__(self, state: dict[str, Any]) -> None:
        # copies: the arrays may be those of a file that is mapped, or shared with another process
        said = {name: value.copy() for name, value in state["rows"].items()}
        rows = HeldRows.restored(**said, next_id=state["next_id"])
        gram = state["gram"]
        other = Hinge.restored(
            rows,
            state["settings"],
            state["gamma"],
            None if gram is None else unpacked(gram, math.isqrt(2 * len(gram))),
            state["memory"],
            state["solutions"],
            state["n_breakpoints"],
        )
        self.__dict__.update(other.__dict__)

    def __copy__(self) -> Hinge:
        return self

    def __deepcopy__(self, memo: Any) -> Hinge:
        """What never changes is shared; kernel matrices are copied when the copy changes."""
        settings = copy.deepcopy(self.settings, memo)
        return replace(self, settings=settings, committee=self.committee.lent())

    def find(self, old: Batch) -> Integers:
        """The ids of rows with this content."""
        if self.settings.precomputed:
            raise ValueError(
                "With kernel='precomputed' points have no content to be found by: forget them by "
                "their ids (ids_, last_ids_)."
            )
        return self.rows.find(_with_weight(old))

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
            return problem.values_ahead(X)
        solution = problem.solution
        if self.settings.precomputed:
            at = solution.support[:, 0].astype(np.int64)
            f = given_kernel.values(X, self._numbers(), at, solution.coefficients)
            return np.asarray(f + solution.constant)
        return solution.decision_function(X)

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
        rows, moves = self.rows, self.settings.class_weight is not None  # with the counts
        if moves or not all(problem.spares() for problem in self.committee):
            return rows.ids
        decisive = self.settings.moves_gamma(rows.X, rows.weight)
        decisive[self.support()[0]] = True
        return rows.ids[decisive]

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
            solution = problem.solution
            h.update(ascii(duel).encode())
            for values in (solution.bounds, solution.shares + 0.0, solution.intercept + 0.0):
                h.update(np.asarray(values).tobytes())
        return h.hexdigest()

    def residual(self) -> float:
        """The largest violation of a KKT condition by what is published, measured now."""
        return max((problem.violation() for problem in self.committee), default=0.0)

    def excess(self, tol: float, asked: bool) -> float:
        """The largest KKT residual that is to be reported, or 0; each is reported once.

        `asked`: whether somebody is about to use what is published.
        """
        ours = () if self.only_to_read else self.committee  # who asks without() knows
        return max((problem.excess(tol, asked) for problem in ours), default=0.0)

    def _specification(self) -> dict[str, Any]:
        settings, kernel = self.settings, self.committee.kernel
        used = {"linear": (), "rbf": ("gamma",), "poly": ("gamma", "coef0", "degree")}
        if callable(settings.kernel):
            return {"kernel": name_of(settings.kernel), "strategy": settings.strategy}
        name = settings.kernel
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
    """Rows with positive weight."""
    X, y, weight = new
    kept = weight > 0.0
    return new if kept.all() else (X[kept], y[kept], weight[kept])


def _kernel(settings: Settings, gamma: float, rows: HeldRows, gram: Floats | None) -> Kernel:
    if callable(settings.kernel):
        return Kernel("callable", function=settings.kernel)
    if settings.precomputed:
        return Kernel("precomputed", gram=gram)
    degree = settings.degree if settings.kernel == "poly" else 0
    centre = centre_of(rows.X) if settings.linear else None
    return Kernel(settings.kernel, gamma, float(settings.coef0), degree, centre=centre)


def _same(a: Floats | None, b: Floats | None) -> bool:
    return a is b or (a is not None and b is not None and np.array_equal(a, b))


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
