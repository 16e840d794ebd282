"""The solver whose coefficients are ready after each change (Lee et al. 2019).

Besides the knowledge it keeps P = (ρI + S)⁻¹ and U = P V, which every change
updates at once (`traceless.solvers.inverse`). The knowledge is brought up to date in batches:
copies of the rows wait in a short queue until it is asked for, or the queue is full.

Rounding errors are held in check with the knowledge. When enough strain has gathered, the queue is
taken in, the residual R = V - (ρI + S) U is computed and U refined by P R; where P no longer does
what a new inverse would (U does not reach its residual, or P A x is too far from x), it is built
anew. So the error stays that of a float64 retrain.

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
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError

from traceless.arithmetic.integers import Floats
from traceless.arithmetic.products import Coefficients
from traceless.exceptions import ConditionError, NotLearnedError, RangeError, UnsealableError
from traceless.features.feature_map import BoundMap
from traceless.knowledge.feasibility import check_counts, response_names
from traceless.knowledge.responses import Label, label_array, union
from traceless.knowledge.specifications import check_targets
from traceless.solvers.centring import shifted, whole_means
from traceless.solvers.cholesky import Cholesky
from traceless.solvers.class_weights import Coding, Weights
from traceless.solvers.equations import Equations, mended, polished
from traceless.solvers.inverse import Frame, Inverse, worth_updating
from traceless.solvers.queued_rows import QueuedRows, spread
from traceless.solvers.ridge import Penalty

if TYPE_CHECKING:
    from traceless.knowledge.sums import Knowledge, Recipe, Rows

    _Base = tuple[Knowledge, Floats, Equations]  # of sums, with an offset

STATE_FORMAT = "traceless state 1"
_QUEUE = 64  # rows that wait at least before the knowledge takes them in
STRAIN = 512.0  # updates between two looks at the residual, while P is good
_NEGLIGIBLE = 5e-16  # error of P up to which a new one would not be better
_DECAY = 1e-8  # error of P beyond which U is refined whenever it is read


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
        self._base: _Base | None = None
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
        """Whether the sums of the rows are here; False after `imported`."""
        return self._exact.known is not None

    def inverse_for_others(self) -> Inverse | None:
        """The inverse as pickles and files have it, with today's answer; our own is not changed."""
        inverse = self._inverse
        if inverse is not None:
            with suppress(ConditionError, RangeError):  # for those who ask for coefficients
                return self._twin()._answered(inverse.penalty)[0]
        return inverse

    def __getstate__(self) -> dict[str, Any]:
        """For pickle: rows in the queue must not travel, least of all forgotten ones."""
        exact = _Exact(self.knowledge() if self.has_knowledge else None)
        mine = {"_base": None, "_exact": exact, "_inverse": self.inverse_for_others()}
        return super().__getstate__() | mine

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
        inverse, U = self._answered(penalty)
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

    def _answered(self, penalty: Penalty) -> tuple[Inverse, Floats]:
        """P and U for this penalty, built anew where P is too far; and U for the rows held now."""
        inverse = self.inverse(penalty)
        if not penalty.standardize:
            return inverse, inverse.U
        U = inverse.with_ridge_now()
        if U is None:
            inverse = self._inverse = self._built(penalty)
            U = inverse.with_ridge_now()
        return inverse, inverse.U if U is None else U

    def inverse(self, penalty: Penalty) -> Inverse:
        """P and U for this penalty."""
        inverse = self._inverse
        if inverse is None or inverse.penalty != penalty:
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
        leaves = any(q.change.sign < 0 for q in new)
        floor = None if inverse is None else inverse.floor
        if floor is not None and floor[1] > _DECAY and leaves and self.has_knowledge:
            inverse = None  # of an ill-conditioned matrix, which may be better without these rows
        state = self._twin()
        state.is_sealed, state._inverse = False, inverse
        state._exact, state.responses, state.counts = exact, responses, counts
        if 0 in counts and self.recipe.task == "classification":
            state._drop_empty_classes()
        state._look()
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
        """P and U with new rows; None where they are to be built anew."""
        inverse = self._looked_at()
        if inverse is None:
            return None
        U = spread(inverse.U, self.responses, responses)
        try:
            return inverse.after([q.aligned(responses) for q in new], U)
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

    def _drop_empty_classes(self) -> None:
        kept = [k for k, n in enumerate(self.counts) if n]
        if not kept:
            self._inverse = None  # BLAS has no products with a U of no columns
        elif self._inverse is not None:
            self._inverse.U = np.asfortranarray(self._inverse.U[:, kept])
            self._inverse.tail = None
        self.responses = tuple(self.responses[k] for k in kept)
        self.counts = tuple(self.counts[k] for k in kept)

    # --- repair ----------------------------------------------------------------------------

    def _built(self, penalty: Penalty) -> Inverse:
        """A new inverse, from the knowledge."""
        if not self.has_knowledge:
            raise UnsealableError(
                "rho and the penalty cannot be changed: this model came without the knowledge of "
                "its rows."
            )
        offset, frame = np.zeros(len(self.recipe.phi.steps)), None
        if penalty.free_intercept:
            known = self.knowledge()
            gram = known.feature_gram
            offset = whole_means(gram) * self.recipe.phi.steps
        equations = self._equations(offset)
        S = equations.matrix()
        if penalty.free_intercept:
            ridge = penalty.ridge(gram, known, self.recipe.phi)
            D = ridge.near * (self.recipe.phi.steps**2 * 2.0**-known.weight_bits)
            usual = np.median(D[D > 0.0]) if (D > 0.0).any() else penalty.rho
            D[:-1][D[:-1] == 0.0] = usual  # columns that have not varied yet
            squares = S.diagonal().copy()
            frame = Frame(penalty, D, offset, S[:, -1].copy(), squares, squares)
        try:
            inverse = Inverse.of(S, equations.V, penalty.rho, frame, ours=True)
        except LinAlgError:
            raise ConditionError(
                "The linear system is too ill-conditioned for solver='woodbury': increase rho, "
                "use standardize=True, or solver='cholesky'."
            ) from None
        inverse.floor = None
        return inverse if polished(inverse, equations) else _judged(inverse, equations)

    def _looked_at(self) -> Inverse | None:
        """Our inverse; one that is new is looked at before its first update."""
        inverse = self._inverse
        if inverse is None or inverse.floor is not None or not self.has_knowledge:
            return inverse
        return _judged(inverse.twin(), self._equations(inverse.offset))

    def _equations(self, offset: Floats) -> Equations:
        """S and V of all rows, of features less an offset."""
        known, base = self.knowledge(), self._base
        if base is None or base[0] is not known or not np.array_equal(base[1], offset):
            found = _equations(known, self.recipe.phi.steps, offset)
            V = spread(found.V, known.responses, self.responses)
            base = self._base = known, offset, replace(found, V=V)
        return base[2]

    def _look(self) -> None:
        """Where enough has happened, refine U and look at P; build it anew where that is better.

        For a state that nobody else has yet.
        """
        inverse = self._inverse
        if inverse is None or inverse.floor is None or not self.has_knowledge:
            return
        if inverse.strain <= inverse.patience:
            return
        inverse.strain = 0.0
        size, decay = mended(inverse, self._equations(inverse.offset))
        least = inverse.floor
        inverse.patience = _patience(len(inverse.U), decay, least[1])
        if not (size <= 4 * least[0] and decay <= max(_NEGLIGIBLE, 4 * least[1])):
            self._inverse = None
            with suppress(ConditionError, RangeError):  # for those who ask for coefficients
                self._inverse = self._built(inverse.penalty)


def _equations(known: Knowledge, steps: Floats, offset: Floats) -> Equations:
    """The normal equations of features less an offset."""
    m = np.rint(offset / steps).astype(np.int64)
    unit = 2.0**-known.weight_bits
    gram, right = known.feature_gram, known.response_sums
    if m.any():
        gram, right = shifted(gram, right, m)
    S = np.asfortranarray(gram.astype(np.float64))
    S *= unit
    return Equations(S, steps, right.astype(np.float64) * (steps[:, None] * unit))


def _judged(inverse: Inverse, equations: Equations) -> Inverse:
    """A new inverse, refined, with what it can do and how long that may be trusted."""
    inverse.floor = mended(inverse, equations)
    inverse.patience = _patience(len(inverse.U), inverse.floor[1], inverse.floor[1])
    return inverse


def _patience(J: int, decay: float, least: float) -> float:
    """Look at U again after some changes; at once where P is no longer as good as new.

    Small matrices are looked at more often: there a change moves U further, and a look is cheap.
    """
    good = decay <= min(_DECAY, max(1e-14, 10 * least))
    return min(STRAIN, max(4.0, J**2 / 400)) if good else 0.0
