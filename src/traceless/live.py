"""Live states: coefficients that are ready after each change (Lee et al. 2019).

Besides the knowledge a live state keeps P = (ρI + S)⁻¹ and U = P V, which every change
updates at once (`traceless.update`). The knowledge is brought up to date in batches: rows
wait in a short queue until it is asked for, or the queue is full.

Rounding errors are held in check with the knowledge. When enough strain has gathered, the
residual R = V - (ρI + S) U is computed and U refined by P R; where P no longer does what a
new inverse would (U does not reach its residual, or P A x is too far from x), it is built
anew. So the error stays that of a float64 retrain.

A live state may come without knowledge, as P and U alone: the paper's state. It can then
be updated, but neither repaired nor sealed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.blas import dgemm, dnrm2, dsymm

from traceless.exact import Floats, packed
from traceless.exceptions import ConditionError, NotLearnedError, UnsealableError
from traceless.features import BoundMap
from traceless.gather import Label, dense_rows, responses_of, union
from traceless.knowledge import Knowledge
from traceless.possible import check_counts
from traceless.sample_weights import rounded_weights
from traceless.saving import Pieces, labels
from traceless.states import Recipe, Rows, Settled
from traceless.update import Change, Inverse, expected_error, worth_updating
from traceless.weighting import Coding, Weights

STATE_FORMAT = "traceless state 1"
_QUEUE = 64  # rows that wait at least before the knowledge takes them in
_STRAIN = 128.0  # updates between two looks at the residual, while P is good
_STRAINED = 1e3  # a removal so close to singular that it must be looked at with care
_DECAY = 1e-8  # error of P beyond which U is refined whenever it is read
_REFINEMENTS = 4  # at most, each time the residual is looked at


@dataclass(frozen=True)
class _Queued:
    """Rows that P and U have taken in, and the knowledge has not."""

    rows: Rows
    change: Change
    names: tuple[Label, ...]
    counts: tuple[int, ...]


class Live:
    """Coefficients that are ready after each change.

    Parameters
    ----------
    recipe : Recipe
    knowledge : Knowledge, optional
        None for a state that was `imported`.
    """

    solver = "woodbury"

    def __init__(self, recipe: Recipe, knowledge: Knowledge | None = None) -> None:
        self.recipe, self._known = recipe, knowledge
        self._responses = knowledge.responses if knowledge is not None else ()
        self._counts = knowledge.counts if knowledge is not None else ()
        self._queue: list[_Queued] = []
        self._inverse: Inverse | None = None
        self._base: tuple[Floats, Floats] | None = None  # S and V of the knowledge in float64
        self._norm_of_S = 0.0
        self._floor = 0.0, 0.0  # residual and decay that the last new inverse had
        self._patience = _STRAIN
        self._sealed: Settled | None = None

    def export(self, rho: float) -> dict[str, Any]:
        """The paper's state, as arrays and strings."""
        inverse = self.inverse(rho)
        return {
            "format": STATE_FORMAT,
            "task": self.recipe.task,
            "specification": json.dumps(self.recipe.specification, sort_keys=True),
            "rho": inverse.rho,
            "responses": np.array(self._responses),
            "counts": np.array(self._counts),
            "P": inverse.P[np.triu_indices(len(inverse.P))],
            "U": inverse.U,
        }

    @classmethod
    def imported(cls, recipe: Recipe, exported: Mapping[str, Any]) -> Live:
        """A state without knowledge from what `export` returned."""
        P = np.zeros((len(recipe.phi.steps),) * 2, order="F")
        P[np.triu_indices(len(P))] = exported["P"]
        inverse = Inverse(P, np.array(exported["U"], dtype=np.float64), float(exported["rho"]))
        names, counts = (np.asarray(exported[key]).tolist() for key in ("responses", "counts"))
        return cls.restored(recipe, (tuple(names), tuple(counts)), inverse)

    def pieces(self) -> Pieces:
        """What a file needs to make this state again, as it stands."""
        facts, tensors = self._known_pieces()
        inverse = self._inverse
        facts |= {"sealed": self._sealed is not None, "inverse": None}
        if inverse is not None:
            tensors |= {"P": packed(inverse.P.T) + 0.0, "U": np.ascontiguousarray(inverse.U)}
            watched = {"floor": list(self._floor), "patience": self._patience}
            facts["inverse"] = {"rho": inverse.rho, "strain": inverse.strain} | watched
        return facts, tensors

    def _known_pieces(self) -> Pieces:
        if self._known is None:
            said = {"responses": labels(self._responses), "counts": list(self._counts)}
            return {"knowledge": None, **said}, {}
        facts, tensors = self.knowledge()._pieces()
        return {"knowledge": facts}, tensors

    @classmethod
    def restored(
        cls,
        recipe: Recipe,
        known: Knowledge | tuple[tuple[Label, ...], tuple[int, ...]],
        inverse: Inverse | None,
        floor: tuple[float, float] = (0.0, 0.0),
        patience: float = _STRAIN,
    ) -> Live:
        """A state as it was; in place of knowledge it may have responses and counts alone."""
        state = cls(recipe, known if isinstance(known, Knowledge) else None)
        if isinstance(known, tuple):
            state._responses, state._counts = known
        state._inverse, state._floor, state._patience = inverse, floor, patience
        return state

    @property
    def responses(self) -> tuple[Label, ...]:
        """Class labels in order, or numbers of the targets."""
        return self._responses

    @property
    def counts(self) -> tuple[int, ...]:
        """Rows per class; one number for a regression."""
        return self._counts

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return sum(self._counts)

    def __getstate__(self) -> dict[str, Any]:
        """For pickle: rows in the queue must not travel, least of all forgotten ones."""
        if self._known is not None:
            self.knowledge()
        return self.__dict__ | {"_base": None}

    def knowledge(self) -> Knowledge:
        """The exact knowledge of all rows, those in the queue included."""
        if self._known is None:
            raise UnsealableError(
                "This model came as (w, P) without the knowledge of its rows, or has forgotten an "
                "estimate: it can learn, forget and predict, but it cannot be sealed, merged or "
                "given a digest."
            )
        if self._queue:
            self._known, self._queue, self._base = self._fold(self._queue), [], None
        return self._known

    def seal(self) -> None:
        """From now until the next change, coefficients are correctly rounded."""
        self._sealed = Settled(self.recipe, self.knowledge())

    def weights(
        self, rho: float, phi: BoundMap, code: Coding, class_weights: Weights | None
    ) -> Floats:
        """Coefficients in float64; correctly rounded once sealed.

        Class weights change the whole matrix with every count, so P is of no use for them:
        the knowledge is solved.
        """
        if class_weights is not None and self._sealed is None:
            self.seal()
        if self._sealed is not None:
            return self._sealed.weights(rho, phi, code, class_weights)
        return np.ascontiguousarray(code(self.inverse(rho).U) * phi.steps[:, None])

    def inverse(self, rho: float) -> Inverse:
        """P and U for this rho, checked against the knowledge if enough has happened."""
        if self._inverse is None or self._inverse.rho != rho:
            self._build(rho)
        elif self._known is not None and self._inverse.strain > self._patience:
            self._watch(self._inverse)
        assert self._inverse is not None
        return self._inverse

    # --- changes -------------------------------------------------------------------------

    def updated(self, add: Rows | None, forget: Rows | None) -> Live:
        """The same state, changed in place: all or nothing."""
        new = [
            self._queued(rows, sign) for rows, sign in ((add, 1), (forget, -1)) if rows is not None
        ]
        responses, counts = self._after(new)
        kept = self._known, self._queue, self._base
        backup = self._inverse.copy() if self._inverse and self._known is None else None
        try:
            self._take(new, responses)
            self._enqueue(new, vanished=0 in counts)
        except BaseException:
            self._known, self._queue, self._base = kept
            self._inverse = backup  # None where it can be built anew from the knowledge
            raise
        self._sealed = None
        self._responses, self._counts = responses, counts
        if 0 in counts and self.recipe.task == "classification":
            self._drop_empty_classes()
        return self

    def forget_estimate(self, rows: Rows, rho: float, code: Coding, error: float) -> float:
        """Forget rows that are known only approximately; the knowledge is given up for it.

        Returns the relative error of the coefficients to be expected if the features of
        the rows are off by `error`, relatively.
        """
        self.inverse(rho)
        change = self._queued(rows, -1)
        kept = self._known, self._queue, self._base
        self._known, self._queue, self._base = None, [], None
        try:
            self.updated(None, rows)
        except BaseException:
            self._known, self._queue, self._base = kept
            raise
        assert self._inverse is not None
        Y = _aligned(change, self._responses).Y
        W = np.asfortranarray(code(self._inverse.U))
        return expected_error(self._inverse, W, replace(change.change, Y=code(Y)), error)

    def _queued(self, rows: Rows, sign: int) -> _Queued:
        X, y, sample_weight = rows
        rounded = rounded_weights(sample_weight, X.shape[0])
        responses = responses_of(y, rounded, self.recipe.task, self.recipe.target_resolution)
        dense = dense_rows(X, slice(None))
        F = self.recipe.phi.codes(dense) * self.recipe.phi.steps
        Y = np.empty((len(F), len(responses.names)))
        responses.encode(slice(None), Y)
        weights = np.ones(len(F)) if rounded is None else rounded
        alive = weights > 0
        change = Change(F[alive], Y[alive], weights[alive], sign)
        return _Queued((dense, y, sample_weight), change, responses.names, responses.counts)

    def _after(self, new: list[_Queued]) -> tuple[tuple[Label, ...], tuple[int, ...]]:
        """Responses and counts after the change; raises if a count would be negative."""
        if self.recipe.task == "regression":
            n = self.n_samples + sum(q.change.sign * q.counts[0] for q in new)
            check_counts(["rows"], (n,))
            return self._responses, (n,)
        totals = dict(zip(self._responses, self._counts, strict=True))
        for q in new:
            for name, count in zip(q.names, q.counts, strict=True):
                totals[name] = totals.get(name, 0) + q.change.sign * count
        names = union(self._responses, *(q.names for q in new))
        counts = tuple(totals[name] for name in names)
        check_counts([f"class {name!r}" for name in names], counts)
        return names, counts

    def _take(self, new: list[_Queued], responses: tuple[Label, ...]) -> None:
        """Update P and U, or give them up where building anew is cheaper or safer."""
        L = sum(len(q.change.F) for q in new)
        if self._inverse is None or (
            self._known is not None and not worth_updating(len(self.recipe.phi.steps), L)
        ):
            self._inverse = None
            return
        self._inverse.U = _spread(self._inverse.U, self._responses, responses)
        try:
            for q in new:
                self._inverse.apply(_aligned(q, responses))
        except LinAlgError as error:
            if self._known is None:
                raise NotLearnedError(
                    f"The rows cannot be forgotten: {error}. Nothing was changed."
                ) from None
            self._inverse = None  # _enqueue looks at the knowledge instead

    def _enqueue(self, new: list[_Queued], vanished: bool) -> None:
        """Let the knowledge take rows in: later, or now where it must be checked or is due.

        With P at hand its pivots have checked the rows to be forgotten; without, or when a
        class has lost its last row, the knowledge itself is.
        """
        if self._known is None:
            return
        queue = [*self._queue, *new]
        doubtful = vanished or (self._inverse is None and any(q.change.sign < 0 for q in new))
        n_queued = sum(len(q.change.F) for q in queue)
        if doubtful or n_queued > max(_QUEUE, len(self.recipe.phi.steps)):
            known, queue = self._fold(queue), []
            self._known, self._base = known.check_possible() if doubtful else known, None
        self._queue = queue

    def _fold(self, queue: list[_Queued]) -> Knowledge:
        """The knowledge with the queue, gathered at once: all additions, all removals."""
        assert self._known is not None
        known = self._known
        for sign in (1, -1):
            several = [q.rows for q in queue if q.change.sign == sign]
            if several:
                part = self.recipe.knowledge(_joined(several))
                known = known + part if sign > 0 else known - part
        return known

    def _drop_empty_classes(self) -> None:
        kept = [k for k, n in enumerate(self._counts) if n]
        if self._inverse is not None:
            self._inverse.U = np.asfortranarray(self._inverse.U[:, kept])
        self._responses = tuple(self._responses[k] for k in kept)
        self._counts = tuple(self._counts[k] for k in kept)

    # --- repair ----------------------------------------------------------------------------

    def _build(self, rho: float) -> None:
        if self._known is None:
            raise UnsealableError(
                "rho cannot be changed: this model came without the knowledge of its rows."
            )
        self.knowledge()
        S, V = self._floats()
        try:
            self._inverse = Inverse.of(S, V, rho)
        except LinAlgError:
            raise ConditionError(
                "The linear system is too ill-conditioned for solver='woodbury': increase rho, "
                "scale the columns, or use solver='cholesky'."
            ) from None
        self._floor = self._refine(self._inverse), self._decay(self._inverse)
        self._be_patient(self._floor[1])

    def _floats(self) -> tuple[Floats, Floats]:
        """S and V of the knowledge (without the queue), in real units."""
        if self._base is None:
            assert self._known is not None
            steps = self.recipe.phi.steps
            unit = 2.0**-self._known.weight_bits
            S = self._known.feature_gram.astype(np.float64, order="F")
            S *= steps[:, None] * unit
            S *= steps
            V = self._known.response_sums.astype(np.float64) * (steps[:, None] * unit)
            self._base, self._norm_of_S = (S, V), _norm(S)
        return self._base

    def _residual(self, inverse: Inverse) -> tuple[Floats, float]:
        """R = V - (ρI + S) U with the queue, and its size relative to the terms in it."""
        assert self._known is not None
        S, V = self._floats()
        U = inverse.U
        R = _spread(V, self._known.responses, self._responses) - inverse.rho * U - dsymm(1.0, S, U)
        for q in self._queue:
            change = _aligned(q, self._responses)
            error = change.Y - dgemm(1.0, change.F.T, U, trans_a=True)
            error *= change.sign * change.weights[:, None]
            R += dgemm(1.0, change.F.T, np.asfortranarray(error))
        size = _norm(V) + (inverse.rho + self._norm_of_S) * _norm(U)
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
        S, _ = self._floats()
        x = np.cos(np.arange(1.0, len(S) + 1.0))[:, None]
        y = inverse.rho * x + dsymm(1.0, S, x)
        for q in self._queue:
            Fx = dgemm(1.0, q.change.F.T, x, trans_a=True)
            Fx *= q.change.sign * q.change.weights[:, None]
            y += dgemm(1.0, q.change.F.T, Fx)
        return _norm(inverse.times(y) - x) / _norm(x)

    def _watch(self, inverse: Inverse) -> None:
        """Refine U and look at P; where a new inverse would do better, build it anew."""
        if inverse.strain > _STRAINED:
            self.knowledge()  # large rows that have left must not blur the residual
        inverse.strain = 0.0
        size, decay = self._refine(inverse), self._decay(inverse)
        self._be_patient(decay)
        if not (size <= 4 * self._floor[0] and decay <= max(1e-12, 100 * self._floor[1])):
            self._build(inverse.rho)

    def _be_patient(self, decay: float) -> None:
        """Look at U again after some changes; at once where P is no longer as good as new."""
        good = decay <= min(_DECAY, max(1e-14, 10 * self._floor[1]))
        self._patience = _STRAIN if good else 0.0


def _spread(columns: Floats, names: tuple[Label, ...], into: tuple[Label, ...]) -> Floats:
    """Columns by name, in another order, with zeros for names that are new."""
    if names == into:
        return columns
    out = np.zeros((len(columns), len(into)), order="F")
    for k, name in enumerate(names):
        if name in into:
            out[:, into.index(name)] = columns[:, k]
    return out


def _aligned(queued: _Queued, responses: tuple[Label, ...]) -> Change:
    change = queued.change
    Y = _spread(change.Y, queued.names, responses)
    return Change(change.F, Y, change.weights, change.sign)


def _norm(a: Floats) -> float:
    """Euclidean length, by the one BLAS that is used here (numpy.linalg.norm has another)."""
    return float(dnrm2(a.ravel(order="K"))) if a.size else 0.0


def _joined(several: list[Rows]) -> Rows:
    """Rows behind one another; weights are 1 where none were given."""
    X, y, weights = zip(*several, strict=True)
    weight = None
    if any(w is not None for w in weights):
        each = [1.0 if w is None else w for w in weights]
        weight = np.concatenate([np.broadcast_to(w, len(x)) for w, x in zip(each, X, strict=True)])
    return np.concatenate(X), np.concatenate(y), weight
