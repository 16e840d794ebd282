"""The rows of a cross-validation: checked once, then selected, coded and summed by index."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import indexable

from traceless.arithmetic.integers import Floats, Integers, Sums, wide
from traceless.arithmetic.products import Coefficients
from traceless.device.tensors import on_host, taken_rows
from traceless.estimators.inputs import checked_arrays, read_rows
from traceless.estimators.least_squares import LeastSquares
from traceless.knowledge.responses import Label
from traceless.knowledge.sample_weights import rounded_weights
from traceless.knowledge.sums import Knowledge
from traceless.model_selection.splits import Indices, as_slice
from traceless.parameters import positive
from traceless.solvers.centring import shifted, whole_means
from traceless.solvers.ridge import Penalty, Ridge
from traceless.solvers.solve import solve
from traceless.transaction import apart


class System(NamedTuple):
    """(S + diag(ridge)) Z = Q of features less a shift, in integers."""

    S: Sums
    Q: Integers
    ridge: Ridge
    shift: Floats | None

    def used(self) -> NDArray[np.intp]:
        """The features that have a coefficient."""
        there = (self.S.diagonal() > 0) & (self.ridge.near > 0)
        there[-1] |= self.ridge.is_free
        return np.flatnonzero(there)

    def solution(self) -> Coefficients:
        """Correctly rounded."""
        return Coefficients(solve(self.S, self.ridge, self.Q), self.shift)

    def moved(self, codes: Floats) -> Floats:
        """Codes less the shift; `codes` is given away for that."""
        if self.shift is not None:
            codes -= self.shift
        return codes


@dataclass(frozen=True)
class Dataset:
    """Checked rows, with a clone of the estimator that checked them and knows their columns."""

    estimator: LeastSquares
    probe: LeastSquares
    X: Any
    y: NDArray[Any]
    sample_weight: Floats | None

    @classmethod
    def check(cls, estimator: Any, X: Any, y: Any, sample_weight: Any) -> Dataset:
        """Rows as the estimator's own ``fit`` would take them; the estimator stays as it is."""
        if not isinstance(estimator, LeastSquares):
            raise TypeError(
                "Only the estimators of traceless (LSSVC, LSSVR) can be cross-validated by "
                f"unlearning, got {type(estimator).__name__}. For any other estimator, and for "
                "pipelines, use the function of the same name in sklearn.model_selection."
            )
        probe = clone(estimator)
        rows = on_host(taken_rows((X, y, sample_weight)))
        X, y, weight = checked_arrays(probe, rows, probe._task, reset=True)
        rounded_weights(weight, len(y))  # raises what is wrong with them
        if weight is not None:
            weight = np.array(np.broadcast_to(weight, len(y)), dtype=np.float64)
        return cls(estimator, probe, X, y, weight)

    @classmethod
    def for_closed_form(
        cls, what: str, estimator: Any, X: Any, y: Any, sample_weight: Any
    ) -> Dataset:
        """Checked rows; raises where they cannot be held out in closed form."""
        X, y = indexable(read_rows(estimator, X), y)
        data = cls.check(estimator, X, y, sample_weight)
        data.check_closed_form(what)
        return data

    def __len__(self) -> int:
        return len(self.y)

    @property
    def n_outputs(self) -> int:
        """Number J of features."""
        return len(self.probe._bind().steps)

    @property
    def has_closed_form(self) -> bool:
        """Whether one system serves all folds.

        Class weights and ρ that are taken from the rows differ by fold.
        """
        weighted = getattr(self.estimator, "class_weight", None) is not None
        return not weighted and not isinstance(self.probe.rho, str)

    def check_closed_form(self, what: str) -> None:
        """Raise if class weights or ρ would change as soon as a row leaves."""
        if not self.has_closed_form:
            raise ValueError(
                f"{what} holds rows out in closed form, which class weights and rho='evidence' do "
                "not allow: each row that leaves changes them for all others. Use "
                "cross_val_predict; or give weights as sample_weight with class_weight=None, and "
                "rho as a number."
            )

    def knowledge(self, index: Indices) -> Knowledge:
        """The knowledge of some of the rows."""
        span = as_slice(index)
        weight = None if self.sample_weight is None else self.sample_weight[span]
        rows = self.X[span], self.y[span], weight
        return self.probe._knowledge_of(rows, self.probe._recipe())

    def total(self, parts: Iterable[Knowledge] = ()) -> Knowledge:
        """The knowledge of all rows, or the sum of these parts of it, checked as in ``fit``."""
        total = sum(parts) or self.knowledge(np.arange(len(self)))
        assert isinstance(total, Knowledge)
        self.probe._check_first(total, self.X, self.y)
        return total

    def model(self, knowledge: Knowledge, own_map: bool = True) -> LeastSquares:
        """A new model with this knowledge, as if fitted to the rows it came from.

        Without a feature map of its own it is made faster, and is not to be handed out.
        """
        if not knowledge.n_samples:
            raise ValueError("There is nothing to learn: no rows, or all with sample_weight zero.")
        model: LeastSquares = clone(self.estimator) if own_map else apart(self.probe)
        model.__dict__ = vars(self.probe) | vars(model)  # and what was learned of the columns
        model._state = model._new_state(knowledge)  # merge would check what cannot be wrong
        return model

    def codes(self, index: Indices) -> Floats:
        """The integer features of some rows."""
        return self.probe._bind().codes(self.X, as_slice(index))

    def targets(self, index: Indices, total: Knowledge) -> Floats:
        """The right-hand sides of some rows: ±1 for classes (of `total`), else targets in steps."""
        y = self.y[as_slice(index)]
        if total.task == "regression":
            step = float(total.specification["target_resolution"])
            return np.asarray(np.rint(y.reshape(len(y), -1) / step))
        indicators = (y[:, None] == np.array(total.responses)).astype(np.float64)
        return np.asarray(self.probe._code(indicators))

    def right_sides(self, known: Knowledge, classes: tuple[Label, ...]) -> Integers:
        """Σ ω y φ in integers, y as in `targets`; a class without rows is -1 throughout."""
        V = wide(known.response_sums)
        if known.responses != classes:
            absent = np.zeros(len(V), dtype=np.int64).astype(object)
            sums = dict(zip(known.responses, V.T, strict=True))
            V = np.column_stack([sums.get(label, absent) for label in classes])
        coded: Integers = self.probe._code(V)
        return coded

    def weights(self, total: Knowledge) -> Floats | None:
        """The weights as they were rounded, in the units of `total`."""
        rounded = rounded_weights(self.sample_weight, len(self))
        return None if rounded is None else np.ldexp(rounded, total.weight_bits)

    def penalty(self, rho: float | None = None) -> Penalty:
        """How coefficients are penalised, with the estimator's ρ or another."""
        rho = positive("rho", self.probe.rho if rho is None else rho)
        return self.probe._penalty(rho, self.probe._bind())

    def system(
        self, known: Knowledge, classes: tuple[Label, ...], rho: float | None = None
    ) -> System:
        """The normal equations of some knowledge, in the classes of all rows."""
        S, Q = known.feature_gram, self.right_sides(known, classes)
        ridge = self.penalty(rho).ridge(S, known, self.probe._bind())
        if not ridge.is_free:
            return System(S, Q, ridge, None)
        shift = whole_means(S)
        return System(*shifted(S, Q, shift), ridge, shift.astype(np.float64))

    def in_units(self, scores: Floats, total: Knowledge) -> Floats:
        """Scores of the integer model as an estimator returns them."""
        if total.task == "regression":
            scores = scores * float(total.specification["target_resolution"])
        return scores[:, 0] if scores.shape[1] == 1 else scores
