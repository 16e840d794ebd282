"""The solver whose coefficients are ready after each change (Lee et al. 2019).

Besides the knowledge it keeps P = (ρI + S)⁻¹ and U = P V, which every change
updates at once (`traceless.solvers.inverse`). The knowledge is brought up to date in batches:
copies of the rows wait in a short queue until it is asked for, or the queue is full.

Between two looks at the sums all is float64, and P no more than a preconditioner. A step that P
makes is as wrong, relatively, as a float64 retrain: so when U has gone half its own length
(`Inverse.way`), the queue is taken in, and U ← U + P R with the residual R of U, which the core
computes exactly. The length of P R says what U was wrong by. Where that is more than what a retrain
would be wrong by, P is made anew; that is measured in the same way, when P is made.

It is not changed: `updated` gives the next one, and the one before stays what it is, to the bit,
whatever becomes of the next. What is computed when it is asked for (the knowledge with the queue
in it, an inverse for another ρ) is kept in single attributes, each replaced whole, so that any
number of threads may ask.

It may come without knowledge, as P and U alone: the paper's state. It can then be updated, but
neither repaired nor sealed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError

from traceless.arithmetic.integers import Floats, wide
from traceless.arithmetic.products import Coefficients
from traceless.exceptions import ConditionError, NotLearnedError, RangeError, UnsealableError
from traceless.features.feature_map import BoundMap
from traceless.knowledge.feasibility import check_counts, response_names
from traceless.knowledge.responses import Label, label_array, union
from traceless.knowledge.specifications import check_targets
from traceless.solvers.centring import whole_means
from traceless.solvers.cholesky import Cholesky
from traceless.solvers.class_weights import Coding, Weights
from traceless.solvers.inverse import P_IS_LOST, Frame, Inverse, norm, spread, worth_updating
from traceless.solvers.queued_rows import QueuedRows
from traceless.solvers.ridge import Penalty
from traceless.solvers.solve import System

if TYPE_CHECKING:
    from traceless.knowledge.sums import Knowledge, Recipe, Rows

STATE_FORMAT = "traceless state 1"
_QUEUE = 64  # rows that wait at least before the knowledge takes them in
_EXACT = 2.0**-50  # relative error of U that no retrain is asked to better
_HALF = 2.0**-26  # the same where half of the digits are lost: rows that went may be why
_LEAST_GAIN = 0.25  # of an error, that P must leave no more of
_FAR_ENOUGH = 0.5  # lengths of U after which it is held against the sums


class _Exact(NamedTuple):
    """Exact knowledge, or none, the rows that it lacks yet, and how many these are."""

    known: Knowledge | None
    queue: tuple[QueuedRows, ...] = ()
    n_queued: int = 0


class Woodbury(Cholesky):
    """Coefficients that are ready after each change.

    Parameters
    ----------
    recipe : Recipe
    knowledge : Knowledge, or a tuple of responses and counts
        The latter without knowledge, which needs an inverse.
    inverse : Inverse, optional

    Attributes
    ----------
    is_sealed : bool
        Whether coefficients are correctly rounded now.
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
            self._exact = _Exact(None)
        else:
            self.responses, self.counts = knowledge.responses, knowledge.counts
            self._exact = _Exact(knowledge)
        self._solved = None
        self.is_sealed = False
        self.other = None

    def export(self, rho: float) -> dict[str, Any]:
        """The paper's state, as arrays and strings."""
        inverse = self.inverse(Penalty(rho))
        return {
            "format": STATE_FORMAT,
            "task": self.recipe.task,
            "specification": json.dumps(self.recipe.specification, sort_keys=True),
            "rho": rho,
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
        frame = Frame.plain(float(exported["rho"]), len(P))
        return cls(recipe, (tuple(names), tuple(counts)), Inverse(P, U, frame))

    @property
    def has_knowledge(self) -> bool:
        """Whether the sums of the rows are here; False after `imported`."""
        return self._exact.known is not None

    def __getstate__(self) -> dict[str, Any]:
        """For pickle: rows in the queue must not travel, least of all forgotten ones."""
        exact = _Exact(self.knowledge() if self.has_knowledge else None)
        return super().__getstate__() | {"_exact": exact}

    def knowledge(self) -> Knowledge:
        """The exact knowledge of all rows, those in the queue included."""
        known, queue, _ = self._exact
        if known is None:
            raise UnsealableError(
                "This model came as (w, P) without the knowledge of its rows: it can learn, forget "
                "and predict, but it cannot be sealed, merged or given a digest."
            )
        if queue:
            known = self._folded(known, queue)
            self._exact = _Exact(known)
        return known

    def sealed(self) -> Woodbury:
        """The same with correctly rounded coefficients, until the next change."""
        self.knowledge()
        other = self._twin()
        other.is_sealed = True
        return other

    def _twin(self) -> Woodbury:
        """Another that shares everything with this one, to be made the next."""
        other = object.__new__(Woodbury)
        other.__dict__.update(self.__dict__)
        other.other = other._solved = None
        other._answers = {}
        return other

    def coefficients(
        self, penalty: Penalty, phi: BoundMap, code: Coding, class_weights: Weights | None
    ) -> Coefficients:
        """Coefficients in float64; correctly rounded once sealed.

        Class weights change the whole matrix with every count, so P is of no use for them:
        the knowledge is solved. So it is where features are standardised beside a penalised
        intercept.
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
        return class_weights is not None or self.is_sealed or mixed

    def _solution(self, penalty: Penalty, phi: BoundMap, code: Coding) -> Coefficients:
        inverse = self.inverse(penalty)
        Z = code(inverse.U) * phi.steps[:, None] + 0.0
        if not penalty.free_intercept:
            return Coefficients(Z)
        return Coefficients(Z, np.rint(inverse.frame.offset / phi.steps))

    def intercepts(
        self, penalty: Penalty, phi: BoundMap, code: Coding, class_weights: Weights | None
    ) -> Floats:
        """Intercepts of codes that are not shifted, β' - Σ_j m_j w_j; exact ones if sealed."""
        solution = self.coefficients(penalty, phi, code, class_weights)
        if solution.shift is None or self._exactly(penalty, class_weights):
            return super().intercepts(penalty, phi, code, class_weights)
        return np.asarray(solution.Z[-1] - (solution.shift[:, None] * solution.Z).sum(axis=0))

    def inverse(self, penalty: Penalty) -> Inverse:
        """P and U for this penalty."""
        inverse = self._inverse
        if inverse is None or inverse.frame.penalty != penalty:
            inverse = self._inverse = self._built(penalty)
        return inverse

    # --- changes -------------------------------------------------------------------------

    def updated(
        self,
        add: Rows | Any | None,
        forget: Rows | Any | None,
        change: Callable[[Knowledge, Any, int], Knowledge],
        certain: bool = False,
    ) -> Cholesky:
        """The solver after a change; this one is what it was.

        After a change of many rows, or of rows that are not in memory, P is built anew.
        """
        sides = [(sign, rows) for rows, sign in ((add, 1), (forget, -1)) if rows is not None]
        if not all(isinstance(rows, tuple) for _, rows in sides):
            return super().updated(add, forget, change, certain)
        L = sum(rows[0].shape[0] for _, rows in sides)
        if self.has_knowledge and not worth_updating(len(self.recipe.phi.steps), L):
            return super().updated(add, forget, change, certain)
        return self._after(
            [QueuedRows.of(self.recipe, rows, sign) for sign, rows in sides], certain
        )

    def _after(self, new: list[QueuedRows], certain: bool = False) -> Woodbury:
        responses, counts = self._totals(new)
        inverse = self._inverse_after(new, responses)
        emptied = 0 in counts if self.recipe.task == "classification" else not counts[-1]
        exact = self._enqueued(new, certain, doubtful=inverse is None or emptied)
        state = self._twin()
        state.is_sealed, state._exact = False, exact
        kept = [k for k, n in enumerate(counts) if n or self.recipe.task != "classification"]
        state.responses = tuple([responses[k] for k in kept])
        state.counts = tuple([counts[k] for k in kept])
        if kept and inverse is not None:
            state._inverse = state._looked_at(inverse.spread(responses, state.responses))
        else:  # BLAS has no products with a U of no columns
            state._inverse = None
            if kept and any(counts) and self._inverse is not None:
                with suppress(ConditionError, RangeError):  # for those who ask for coefficients
                    state._inverse = state._built(self._inverse.frame.penalty)
        return state

    def _totals(self, new: list[QueuedRows]) -> tuple[tuple[Label, ...], tuple[int, ...]]:
        """Responses and counts after a change; raises if a count would be negative."""
        task, names = self.recipe.task, self.responses
        if task == "classification" and any(q.names != names for q in new):
            names = union(names, *(q.names for q in new))
        left = [*self.counts]
        if names != self.responses:
            held = dict(zip(self.responses, self.counts, strict=True))
            left = [held.get(name, 0) for name in names]
        for q in new:
            where: Sequence[int] = range(len(q.counts))
            if task == "classification" and q.names != names:
                where = [names.index(name) for name in q.names]
            elif q.names != names:
                check_targets(task, names, q.names)
            for k, count in zip(where, q.counts, strict=True):
                left[k] += q.change.sign * count
        if min(left, default=0) < 0:
            check_counts(response_names(task, names), left)
        return names, tuple(left)

    def _inverse_after(self, new: list[QueuedRows], responses: tuple[Label, ...]) -> Inverse | None:
        """P and U with new rows; None where they are to be made anew."""
        if self._inverse is None:
            return None
        try:
            inverse = self._inverse.spread(self.responses, responses)
            return inverse.after([q.aligned(responses) for q in new])
        except LinAlgError as error:
            if not self.has_knowledge:
                raise NotLearnedError(
                    f"The rows cannot be forgotten: {error}. Nothing was changed."
                ) from None
            return None  # `_enqueued` looks at the knowledge instead

    def _enqueued(self, new: list[QueuedRows], certain: bool, doubtful: bool) -> _Exact:
        """Knowledge and queue with new rows: in the queue, or in the sums where that is due.

        With P at hand its pivots have checked the rows to be forgotten; without, or when a
        class has lost its last row, the knowledge itself is checked.
        """
        known, queue, n = self._exact
        if known is None:
            return _Exact(None)
        queue, n = (*queue, *new), n + sum([len(q.change.F) for q in new])
        doubtful = doubtful and not certain and any(q.change.sign < 0 for q in new)
        if not doubtful and n <= max(_QUEUE, len(self.recipe.phi.steps)):
            return _Exact(known, queue, n)
        known = self._folded(known, queue)
        return _Exact(known.check_possible() if doubtful else known)

    def _folded(self, known: Knowledge, queue: tuple[QueuedRows, ...]) -> Knowledge:
        """The knowledge with the queue, all additions and all removals at once."""
        sides: list[tuple[int, Rows]] = []
        for sign in (1, -1):
            several = [q.rows for q in queue if q.change.sign == sign]
            if several:
                X, y = (np.concatenate([rows[k] for rows in several]) for k in (0, 1))
                weights = [np.ones(len(X)) if w is None else w for X, _, w in several]
                sides.append((sign, (X, y, np.concatenate(weights))))
        for sign, rows in sides:
            known = self.recipe.changed(known, rows, sign)
        return known

    # --- exactness -------------------------------------------------------------------------

    def _built(self, penalty: Penalty) -> Inverse:
        """P made of the sums, and U refined twice, from 0: as a retrain has it, and exactly."""
        if not self.has_knowledge:
            raise UnsealableError(
                "rho and the penalty cannot be changed: this model came without the knowledge of "
                "its rows."
            )
        known, steps = self.knowledge(), self.recipe.phi.steps
        gram, unit = known.feature_gram, 2.0**-known.weight_bits
        m = whole_means(gram) if penalty.free_intercept else np.zeros(len(steps), np.int64)
        system = System(gram, penalty.ridge(gram, known, self.recipe.phi), m)
        A, D = system.matrix(), system.ridge.near * (steps**2 * unit)
        A *= (scale := np.ldexp(steps * np.sqrt(unit), system.e))
        A *= scale[:, None]
        never = np.flatnonzero(A.diagonal() == 0.0)  # columns that have not varied yet
        A[never, never] = D[never] = np.median(D[D > 0.0]) if (D > 0.0).any() else penalty.rho
        frame = Frame(penalty, D, m * steps, *np.zeros((3, len(steps))))
        try:
            nothing = np.zeros((len(steps), len(self.responses)))
            retrained, _ = self._refined(Inverse.of(A.T, nothing, frame))
            inverse, error = self._refined(retrained)
        except LinAlgError:
            error = np.inf
        if not error < 0.5:
            raise ConditionError(
                "The linear system is too ill-conditioned for solver='woodbury': increase rho, "
                "use standardize=True, or solver='cholesky'."
            )
        inverse.error = error
        return inverse

    def _refined(self, inverse: Inverse) -> tuple[Inverse, float]:
        """An inverse whose U is a step closer to the sums, and what it was wrong by.

        P may be blind to what U is wrong by: for a probe x, P A x must not be far from x.
        """
        known, steps, frame = self.knowledge(), self.recipe.phi.steps, inverse.frame
        gram, unit = known.feature_gram, 2.0**-known.weight_bits
        m = np.rint(frame.offset / steps).astype(np.int64)
        system = System(gram, frame.penalty.ridge(gram, known, self.recipe.phi), m)
        s, n, far = wide(gram[-1, :]), int(gram[-1, -1]), wide(m)
        squares = wide(gram.diagonal()) - far * (2 * s - n * far)
        squares = squares.astype(np.float64) * (steps**2 * unit)
        if frame.penalty.standardize or frame.penalty.free_intercept:
            sums = (s - n * far).astype(np.float64) * (steps * unit)
            frame = frame._replace(sums=sums, squares=squares, peaks=squares)
        size = np.sqrt(squares + system.ridge.near * (steps**2 * unit))  # A_jj^½
        probe = np.cos(np.arange(1.0, len(size) + 1.0)) * (size > 0.0)
        x = np.divide(probe, size, out=np.zeros_like(size), where=size > 0.0)
        Q = spread(known.response_sums, known.responses, self.responses)
        U = np.column_stack([inverse.U, x])
        Z, R = system.residual(np.column_stack([Q, 0 * Q[:, 0]]), U * steps[:, None])
        U, R = Z / steps[:, None], R * (steps * unit)[:, None]
        refined, error = inverse.refined(U[:, :-1], R[:, :-1], frame)
        left = U[:, -1:] + inverse.times(R[:, -1:])
        is_blind = norm(size[:, None] * left) > _LEAST_GAIN * norm(probe)
        return refined, np.inf if is_blind else error

    def _looked_at(self, inverse: Inverse) -> Inverse | None:
        """The same, or one whose U has been held against the sums; None where there is none."""
        if inverse.way <= _FAR_ENOUGH or not self.has_knowledge:
            return inverse
        if inverse.way < P_IS_LOST:
            with suppress(ConditionError, RangeError, LinAlgError):
                looked, error = self._refined(inverse)
                if error <= max(min(inverse.error, _HALF), _EXACT):
                    return looked
        with suppress(ConditionError, RangeError):  # for those who ask for coefficients
            return self._built(inverse.frame.penalty)
        return None
