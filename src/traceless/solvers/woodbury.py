"""The solver whose coefficients are ready after each change (Lee et al. 2019).

Besides the knowledge it keeps P = (ρI + S)⁻¹ and U = P V, which every change
updates at once (`traceless.solvers.inverse`). The knowledge is brought up to date in batches:
copies of the rows wait in a short queue until it is asked for, or the queue is full.

Rounding errors are held in check with the knowledge. When enough strain has gathered, the
residual R = V - (ρI + S) U is computed and U refined by P R; where P no longer does what a
new inverse would (U does not reach its residual, or P A x is too far from x), it is built
anew. So the error stays that of a float64 retrain.

It is not changed: `updated` gives the next one, and the one before keeps its coefficients and
its knowledge, but hands P over, which it can build again. What is computed when it is asked for
(the knowledge with the queue in it, an inverse for another ρ) is kept in single attributes, each
replaced whole, so that any number of threads may ask.

It may come without knowledge, as P and U alone: the paper's state. It can then be updated, but
neither repaired nor sealed, and its successors copy P.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.blas import dgemm, dnrm2, dsymm

from traceless.arithmetic.integers import Floats
from traceless.arithmetic.products import Coefficients
from traceless.exceptions import ConditionError, NotLearnedError, UnsealableError
from traceless.features.feature_map import BoundMap
from traceless.knowledge.feasibility import check_counts, response_names
from traceless.knowledge.responses import Label, label_array, union
from traceless.knowledge.specifications import check_targets
from traceless.solvers.centring import shifted, shifted_right_side, whole_means
from traceless.solvers.cholesky import Cholesky
from traceless.solvers.class_weights import Coding, Weights
from traceless.solvers.inverse import Frame, Inverse, Plan, expected_error, worth_updating
from traceless.solvers.queued_rows import QueuedRows, spread
from traceless.solvers.ridge import Penalty

if TYPE_CHECKING:
    from traceless.knowledge.sums import Knowledge, Recipe, Rows

    _Base = tuple[Knowledge, Floats, Floats, Floats, float]  # offset, S, V, and the size of S
    _Exact = tuple[Knowledge | None, tuple["QueuedRows", ...]]  # knowledge, and what it lacks yet

STATE_FORMAT = "traceless state 1"
_QUEUE = 64  # rows that wait at least before the knowledge takes them in
STRAIN = 128.0  # updates between two looks at the residual, while P is good
_STRAINED = 1e3  # a removal so close to singular that it must be looked at with care
_DECAY = 1e-8  # error of P beyond which U is refined whenever it is read
_REFINEMENTS = 4  # at most, each time the residual is looked at


class Woodbury(Cholesky):
    """Coefficients that are ready after each change.

    Parameters
    ----------
    recipe : Recipe
    knowledge : Knowledge, or a tuple of responses and counts
        The latter without knowledge, which needs an inverse.
    inverse : Inverse, optional
    """

    solver = "woodbury"

    def __init__(
        self,
        recipe: Recipe,
        knowledge: Knowledge | tuple[tuple[Label, ...], tuple[int, ...]],
        inverse: Inverse | None = None,
    ) -> None:
        self.recipe, self._inverse = recipe, inverse
        if isinstance(knowledge, tuple):
            self.responses, self.counts = knowledge
            self._exact: _Exact = None, ()
        else:
            self.responses, self.counts = knowledge.responses, knowledge.counts
            self._exact = knowledge, ()
        self._base: _Base | None = None
        self._solved = None
        self._sealed = False
        self.other = None

    def export(self, rho: float) -> dict[str, Any]:
        """The paper's state, as arrays and strings."""
        inverse = self.whole_inverse(rho)
        return {
            "format": STATE_FORMAT,
            "task": self.recipe.task,
            "specification": json.dumps(self.recipe.specification, sort_keys=True),
            "rho": inverse.rho,
            "responses": label_array(self.responses),
            "counts": np.array(self.counts),
            "P": inverse.full()[np.triu_indices(len(inverse.U))],
            "U": inverse.U.copy(),
        }

    @classmethod
    def imported(cls, recipe: Recipe, exported: Mapping[str, Any]) -> Woodbury:
        """Without knowledge, from what `export` returned."""
        P = np.zeros((len(recipe.phi.steps),) * 2, order="F")
        P[np.triu_indices(len(P))] = exported["P"]
        U = np.array(exported["U"], dtype=np.float64)
        names, counts = (np.asarray(exported[key]).tolist() for key in ("responses", "counts"))
        return cls(recipe, (tuple(names), tuple(counts)), Inverse(P, U, float(exported["rho"])))

    @property
    def has_knowledge(self) -> bool:
        """False after `imported` and `forget_estimate`."""
        return self._exact[0] is not None

    @property
    def is_sealed(self) -> bool:
        """Whether coefficients are correctly rounded now."""
        return self._sealed

    def snapshot(self) -> tuple[Inverse | None, Floats | None]:
        """The inverse as it stands, and a copy of its P; None where there is none."""
        inverse = self._inverse
        return inverse, None if inverse is None else inverse.copy_of_P()

    def __getstate__(self) -> dict[str, Any]:
        """For pickle: rows in the queue must not travel, least of all forgotten ones."""
        if self._exact[0] is not None:
            self.knowledge()
        return super().__getstate__() | {"_base": None}

    def knowledge(self) -> Knowledge:
        """The exact knowledge of all rows, those in the queue included."""
        known, queue = self._exact
        if known is None:
            raise UnsealableError(
                "This model came as (w, P) without the knowledge of its rows, or has forgotten an "
                "estimate: it can learn, forget and predict, but it cannot be sealed, merged or "
                "given a digest."
            )
        if queue:
            known = self._folded(known, queue)
            self._exact = known, ()
        return known

    def sealed(self) -> Woodbury:
        """The same with correctly rounded coefficients, until the next change."""
        self.knowledge()
        other = self._twin()
        other._sealed = True
        return other

    def _twin(self) -> Woodbury:
        """Another that shares everything with this one, to be made the next."""
        other = object.__new__(Woodbury)
        other.__dict__.update(self.__dict__)
        other.other = other._solved = None
        other._answers = {}
        return other

    def __copy__(self) -> Woodbury:
        """A copy with a P of its own."""
        other, inverse = self._twin(), self._inverse
        other._inverse = None if inverse is None else copy.copy(inverse)
        return other

    def coefficients(
        self, penalty: Penalty, phi: BoundMap, code: Coding, class_weights: Weights | None
    ) -> Coefficients:
        """Coefficients in float64; correctly rounded once sealed.

        Class weights change the whole matrix with every count, so P is of no use for them:
        the knowledge is solved. So it is where each target has a ρ of its own, or features are
        standardised beside a penalised intercept.
        """
        if self._exactly(penalty, class_weights):
            return super().coefficients(penalty, phi, code, class_weights)
        question, solved = (penalty, class_weights), self._solved
        if solved is None or solved[0] != question:
            solved = self._solved = question, self._solution(penalty, phi, code)
        return solved[1]

    def _exactly(self, penalty: Penalty, class_weights: Weights | None) -> bool:
        """Whether P cannot answer, and the knowledge is solved."""
        mixed = penalty.standardize and not penalty.free_intercept
        return class_weights is not None or self._sealed or isinstance(penalty.rho, tuple) or mixed

    def _solution(self, penalty: Penalty, phi: BoundMap, code: Coding) -> Coefficients:
        inverse = self.inverse(penalty)
        U = self._answer(inverse)
        if U is None:
            inverse = self._inverse = self._built(penalty)
            U = self._answer(inverse)  # as a copy or a file of it would have it
            U = inverse.U if U is None else U
        frame = inverse.frame
        Z = code(U) * phi.steps[:, None] + 0.0
        if frame is None or not penalty.free_intercept:
            return Coefficients(Z)
        return Coefficients(Z, np.rint(frame.offset / phi.steps))

    def intercepts(
        self, penalty: Penalty, phi: BoundMap, code: Coding, class_weights: Weights | None
    ) -> Floats:
        """Intercepts of codes that are not shifted, β' - Σ_j m_j w_j; exact ones if sealed."""
        solution = self.coefficients(penalty, phi, code, class_weights)
        if solution.shift is None or self._exactly(penalty, class_weights):
            return super().intercepts(penalty, phi, code, class_weights)
        return np.asarray(solution.Z[-1] - (solution.shift[:, None] * solution.Z).sum(axis=0))

    def _answer(self, inverse: Inverse) -> Floats | None:
        """U for the rows held now; None where P is gone, or too far from them."""
        return inverse.with_ridge_now() if inverse.penalty.standardize else inverse.U

    def inverse(self, penalty: Penalty) -> Inverse:
        """U for this penalty, and P unless a later state has taken it over."""
        inverse = self._inverse
        if inverse is None or inverse.penalty != penalty:
            inverse = self._inverse = self._built(penalty)
        return inverse

    def whole_inverse(self, rho: float) -> Inverse:
        """P and U of the papers' penalty ρI, for the caller alone."""
        inverse = self.inverse(Penalty(rho))
        P = inverse.copy_of_P()
        return self._built(Penalty(rho)) if P is None else Inverse(P, inverse.U, rho)

    # --- changes -------------------------------------------------------------------------

    def updated(
        self,
        add: Rows | Any | None,
        forget: Rows | Any | None,
        gather: Callable[[Any], Knowledge],
        certain: bool = False,
    ) -> Cholesky:
        """The solver after a change; this one is what it was, except that P may be gone.

        Rows that are not in memory are gathered, and P is built anew.
        """
        sides = [(rows, sign) for rows, sign in ((add, 1), (forget, -1)) if rows is not None]
        if not all(isinstance(rows, tuple) for rows, _ in sides):
            return super().updated(add, forget, gather, certain)
        return self._after(
            [QueuedRows.of(self.recipe, rows, sign) for rows, sign in sides], certain
        )

    def forget_estimate(
        self, rows: Rows, rho: float, code: Coding, error: float
    ) -> tuple[Woodbury, float]:
        """Forget rows that are known only approximately; the knowledge is given up for it.

        Also returns the relative error of the coefficients to be expected if the features of
        the rows are off by `error`, relatively.
        """
        queued = QueuedRows.of(self.recipe, rows, -1)
        bare = Woodbury(self.recipe, (self.responses, self.counts), self.whole_inverse(rho))
        state = bare._after([queued])
        inverse = state.inverse(Penalty(rho))
        change = queued.aligned(state.responses)
        W = np.asfortranarray(code(inverse.U))
        expected = expected_error(inverse, W, replace(change, Y=code(change.Y)), error)
        return state, expected

    def _after(self, new: list[QueuedRows], certain: bool = False) -> Woodbury:
        responses, counts = self._totals(new)
        plan = self._plan(new, responses)
        try:
            emptied = 0 in counts if self.recipe.task == "classification" else not counts[-1]
            exact = self._enqueued(new, certain, doubtful=plan is None or emptied)
        except BaseException:
            if plan is not None:
                plan.drop()
            raise
        state = self._twin()
        state._sealed = False
        state._exact, state.responses, state.counts = exact, responses, counts
        state._inverse = None if plan is None else plan.done(keep=exact[0] is None)
        inverse, leaves = state._inverse, any(q.change.sign < 0 for q in new)
        if inverse is not None and exact[0] is not None and leaves and inverse.floor[1] > _DECAY:
            state._inverse = None  # of an ill-conditioned matrix, which may be better without them
        if 0 in counts and self.recipe.task == "classification":
            state._drop_empty_classes()
        state._look()
        return state

    def _totals(self, new: list[QueuedRows]) -> tuple[tuple[Label, ...], tuple[int, ...]]:
        """Responses and counts after the change; raises if a count would be negative."""
        task = self.recipe.task
        if task != "classification":
            counts = np.array(self.counts, dtype=object)
            for q in new:
                check_targets(task, self.responses, q.names)
                counts = counts + q.change.sign * np.array(q.counts, dtype=object)
            check_counts(response_names(task, self.responses), counts.tolist())
            return self.responses, tuple(counts.tolist())
        totals = dict(zip(self.responses, self.counts, strict=True))
        for q in new:
            for name, count in zip(q.names, q.counts, strict=True):
                totals[name] = totals.get(name, 0) + q.change.sign * count
        names = union(self.responses, *(q.names for q in new))
        left = tuple(totals[name] for name in names)
        check_counts(response_names(task, names), left)
        return names, left

    def _plan(self, new: list[QueuedRows], responses: tuple[Label, ...]) -> Plan | None:
        """A plan for P and U; None where building them anew is cheaper, safer or needed."""
        L, known = sum(len(q.change.F) for q in new), self._exact[0]
        inverse = self._inverse
        if inverse is None or (known is not None and not worth_updating(len(inverse.U), L)):
            return None
        U = spread(inverse.U, self.responses, responses)
        try:
            return inverse.plan([q.aligned(responses) for q in new], U)
        except LinAlgError as error:
            if known is None:
                raise NotLearnedError(
                    f"The rows cannot be forgotten: {error}. Nothing was changed."
                ) from None
            return None  # `_enqueued` looks at the knowledge instead

    def _enqueued(self, new: list[QueuedRows], certain: bool, doubtful: bool) -> _Exact:
        """Knowledge and queue with new rows: in the queue, or in the sums where that is due.

        With P at hand its pivots have checked the rows to be forgotten; without, or when a
        class has lost its last row, the knowledge itself is checked.
        """
        known, queue = self._exact
        if known is None:
            return None, ()
        queue = (*queue, *new)
        doubtful = doubtful and not certain and any(q.change.sign < 0 for q in new)
        n_queued = sum(len(q.change.F) for q in queue)
        if not doubtful and n_queued <= max(_QUEUE, len(self.recipe.phi.steps)):
            return known, queue
        known = self._folded(known, queue)
        return known.check_possible() if doubtful else known, ()

    def _folded(self, known: Knowledge, queue: tuple[QueuedRows, ...]) -> Knowledge:
        """The knowledge with the queue, gathered at once: all additions, all removals."""
        for sign in (1, -1):
            several = [q.rows for q in queue if q.change.sign == sign]
            if several:
                X, y, weight = (np.concatenate(parts) for parts in zip(*several, strict=True))
                part = self.recipe.knowledge((X, y, weight))
                known = known + part if sign > 0 else known - part
        return known

    def _drop_empty_classes(self) -> None:
        kept = [k for k, n in enumerate(self.counts) if n]
        if self._inverse is not None:
            self._inverse.U = np.asfortranarray(self._inverse.U[:, kept])
        self.responses = tuple(self.responses[k] for k in kept)
        self.counts = tuple(self.counts[k] for k in kept)

    # --- repair ----------------------------------------------------------------------------

    def _built(self, penalty: Penalty) -> Inverse:
        """A new inverse, from the knowledge."""
        if self._exact[0] is None:
            raise UnsealableError(
                "rho and the penalty cannot be changed: this model came without the knowledge of "
                "its rows."
            )
        known = self.knowledge()
        offset = np.zeros(len(self.recipe.phi.steps))
        ridge = penalty.ridge(known.feature_gram, known, self.recipe.phi)
        if penalty.free_intercept:
            offset = whole_means(known.feature_gram) * self.recipe.phi.steps
        S, V, _ = self._floats(offset)
        frame = None
        if penalty.free_intercept:
            D = ridge.near * (self.recipe.phi.steps**2 * 2.0**-known.weight_bits)
            usual = np.median(D[D > 0.0]) if (D > 0.0).any() else penalty.rho
            D[:-1][D[:-1] == 0.0] = usual  # columns that have not varied yet
            squares = S.diagonal().copy()
            frame = Frame(penalty, D, offset, S[:, -1].copy(), squares, squares)
        try:
            inverse = Inverse.of(S, V, penalty.rho, frame)
        except LinAlgError:
            raise ConditionError(
                "The linear system is too ill-conditioned for solver='woodbury': increase rho, "
                "use standardize=True, or solver='cholesky'."
            ) from None
        inverse.floor = self._refine(inverse), self._decay(inverse)
        inverse.patience = _patience(inverse, inverse.floor[1])
        return inverse

    def _floats(self, offset: Floats) -> tuple[Floats, Floats, float]:
        """S and V of the knowledge (without the queue) in real units, and the size of S."""
        known, base = self._exact[0], self._base
        assert known is not None
        if base is None or base[0] is not known or not np.array_equal(base[1], offset):
            steps = self.recipe.phi.steps
            unit = 2.0**-known.weight_bits
            gram, sums = known.normal_equations()
            if offset.any():
                m = np.rint(offset / steps).astype(np.int64)
                gram, sums = shifted(gram, m), shifted_right_side(sums, m)
            S = gram.astype(np.float64, order="F")
            S *= steps[:, None] * unit
            S *= steps
            V = sums.astype(np.float64) * (steps[:, None] * unit)
            base = self._base = known, offset, S, V, _norm(S)
        return base[2:]

    def _base_of(self, inverse: Inverse) -> tuple[Floats, Floats, float]:
        frame = inverse.frame
        return self._floats(np.zeros(len(inverse.U)) if frame is None else frame.offset)

    def _residual(self, inverse: Inverse) -> tuple[Floats, float]:
        """R = V - (D + S) U with the queue, and its size relative to the terms in it."""
        known, queue = self._exact
        assert known is not None
        S, V, norm = self._base_of(inverse)
        U, ridge = inverse.U, inverse.ridge[:, None]
        R = spread(V, known.responses, self.responses) - ridge * U - dsymm(1.0, S, U)
        for q in queue:
            change = inverse.moved(q.aligned(self.responses))
            error = change.Y - dgemm(1.0, change.F.T, U, trans_a=True)
            error *= change.sign * change.weights[:, None]
            R += dgemm(1.0, change.F.T, np.asfortranarray(error))
        size = _norm(V) + (float(ridge.max()) + norm) * _norm(U)
        return R, _norm(R) / size if size else 0.0

    def _refine(self, inverse: Inverse) -> float:
        """U += P R for as long as that makes the residual smaller; returns its size."""
        R, size = self._residual(inverse)
        for _ in range(_REFINEMENTS):
            U = inverse.U
            inverse.U = np.asfortranarray(U + inverse.times(R))
            before, (R, size) = size, self._residual(inverse)
            if size >= before:
                inverse.U, size = U, before
            if size > before / 4:
                break
        return size

    def _decay(self, inverse: Inverse) -> float:
        """How far P A x is from x, relatively, for a probe x: the error that P has."""
        S, _, _ = self._base_of(inverse)
        x = np.cos(np.arange(1.0, len(S) + 1.0))[:, None]
        y = inverse.ridge[:, None] * x + dsymm(1.0, S, x)
        for q in self._exact[1]:
            change = inverse.moved(q.change)
            Fx = dgemm(1.0, change.F.T, x, trans_a=True)
            Fx *= change.sign * change.weights[:, None]
            y += dgemm(1.0, change.F.T, Fx)
        return _norm(inverse.times(y) - x) / _norm(x)

    def _look(self) -> None:
        """Where enough has happened, refine U and look at P; give up what a new one would better.

        For a state that nobody else has yet.
        """
        inverse = self._inverse
        if inverse is None or self._exact[0] is None or inverse.strain <= inverse.patience:
            return
        if inverse.strain > _STRAINED:
            self.knowledge()  # large rows that have left must not blur the residual
        inverse.strain = 0.0
        size, decay = self._refine(inverse), self._decay(inverse)
        inverse.patience = _patience(inverse, decay)
        if not (size <= 4 * inverse.floor[0] and decay <= max(1e-12, 100 * inverse.floor[1])):
            self._inverse = None  # built anew when it is asked for


def _patience(inverse: Inverse, decay: float) -> float:
    """Look at U again after some changes; at once where P is no longer as good as new."""
    good = decay <= min(_DECAY, max(1e-14, 10 * inverse.floor[1]))
    return STRAIN if good else 0.0


def _norm(a: Floats) -> float:
    """Euclidean length, by the one BLAS that is used here (numpy.linalg.norm has another)."""
    return float(dnrm2(a.ravel(order="K"))) if a.size else 0.0
