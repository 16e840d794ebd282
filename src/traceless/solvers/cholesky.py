"""The default solver: knowledge, solved to the last bit when coefficients are asked for.

A solver is a value that an estimator holds: it begins with the knowledge of some rows,
`updated` gives the next one after a change, and `coefficients` answers for a ρ. It is never
changed, so threads that still read the one before read on. `traceless.solvers.woodbury` is the
other: it keeps float64 coefficients ready after each change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from traceless.arithmetic.integers import Floats, Integers, Sums, add, wide
from traceless.arithmetic.products import Coefficients
from traceless.device.tensors import device_for
from traceless.exceptions import MismatchError
from traceless.features.feature_map import BoundMap
from traceless.knowledge.responses import Label, n_rows
from traceless.solvers.centring import whole_means
from traceless.solvers.class_weights import Coding, Weights
from traceless.solvers.moments import Moments, moments
from traceless.solvers.ridge import Penalty, Ridge
from traceless.solvers.solve import solve, weighted

if TYPE_CHECKING:
    from traceless.knowledge.sums import Knowledge, Recipe, Rows


class Cholesky:
    """Knowledge, solved when first asked for; asking again is free.

    Attributes
    ----------
    recipe : Recipe
        How the rows became knowledge.
    responses : tuple
        Class labels in order, or the numbers of the targets.
    counts : tuple of int
        Rows per class; one number for regression; rows with each label, and all rows.
    other : Cholesky or None
        The same rows for another solver, once asked for.
    """

    solver = "cholesky"

    def __init__(self, recipe: Recipe, knowledge: Knowledge) -> None:
        self.recipe, self._known = recipe, knowledge
        self.responses: tuple[Label, ...] = knowledge.responses
        self.counts: tuple[int, ...] = knowledge.counts
        self.other: Cholesky | None = None
        self._solved: tuple[tuple[Penalty, Weights | None], Coefficients] | None = None

    _answers: Mapping[str, tuple[Knowledge, Any, Any]] = MappingProxyType({})

    def __getstate__(self) -> dict[str, Any]:
        """For pickle: what can be made again, and is larger than the knowledge, stays here."""
        return {name: value for name, value in self.__dict__.items() if name != "_answers"}

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return n_rows(self.recipe.task, self.counts)

    def knowledge(self) -> Knowledge:
        """The exact knowledge of all rows."""
        return self._known

    def sealed(self) -> Cholesky:
        """The same with correctly rounded coefficients."""
        return self

    def updated(
        self,
        add: Rows | Any | None,
        forget: Rows | Any | None,
        change: Callable[[Knowledge, Any, int], Knowledge],
        certain: bool = False,
    ) -> Cholesky:
        """The solver after a change; this one stays what it was.

        Parameters
        ----------
        add, forget : rows or a source of rows, or None
        change : callable
            Makes of some knowledge that with rows of a source, or in memory (1), or without (-1).
        certain : bool
            Whether the rows to be forgotten are known to be held, so that sums need no check.
        """
        known = self.knowledge()
        for rows, sign in ((add, 1), (forget, -1)):
            known = known if rows is None else change(known, rows, sign)
        if forget is not None and not certain:
            known.check_possible()
        return type(self)(self.recipe, known)

    def coefficients(
        self, penalty: Penalty, phi: BoundMap, code: Coding, class_weights: Weights | None
    ) -> Coefficients:
        """Correctly rounded coefficients, in steps of the grids."""
        question, found = (penalty, class_weights), self._solved
        if found is None or found[0] != question:
            Z, shift = solved(self.knowledge(), penalty, phi, code, class_weights)
            found = self._solved = question, Coefficients(Z, shift)
        return found[1]

    def intercepts(
        self, penalty: Penalty, phi: BoundMap, code: Coding, class_weights: Weights | None
    ) -> Floats:
        """Correctly rounded intercepts of codes that are not shifted: if they are, a new solve."""
        solution = self.coefficients(penalty, phi, code, class_weights)
        if solution.shift is None:
            return np.asarray(solution.Z[-1])

        def make(known: Knowledge) -> Floats:
            Z, _ = solved(known, penalty, phi, code, class_weights, intercept=True)
            return np.asarray(Z[-1])

        found: Floats = self.answer("intercepts", (penalty, class_weights), make)
        return found

    def moments(
        self, penalty: Penalty, phi: BoundMap, class_weights: tuple[float, ...] | None
    ) -> Moments:
        """Means and covariances of the rows, in float64."""
        question = penalty, class_weights
        found: Moments = self.answer(
            "moments", question, lambda known: moments(known, penalty, phi, class_weights)
        )
        return found

    def answer(self, name: str, question: Any, make: Callable[[Knowledge], Any]) -> Any:
        """What `make` finds out about the rows; asking the same question again is free."""
        known, found = self.knowledge(), self._answers.get(name)
        if found is None or found[0] is not known or found[1] != question:
            found = known, question, make(known)
            self._answers = {**self._answers, name: found}
        return found[2]


def solved(
    known: Knowledge,
    penalty: Penalty,
    phi: BoundMap,
    code: Coding,
    class_weights: Weights | None = None,
    intercept: bool = False,
) -> tuple[Floats, Floats | None]:
    """Correctly rounded coefficients of some knowledge, and the shift of codes that they need.

    If asked for, the last row is the intercept of codes that are not shifted.
    """
    S, V = known.feature_gram, known.response_sums
    m = whole_means(S) if penalty.free_intercept else None
    problem = _Problem(penalty.ridge(S, known, phi), code, m, intercept)
    if class_weights is None:
        Z = problem.pooled(known, S, V)
    else:
        Z = problem.weighted(known, V, class_weights)
    Z.setflags(write=False)
    return Z, None if m is None else m.astype(np.float64)


class _Problem(NamedTuple):
    """What all systems of some knowledge have in common."""

    ridge: Ridge
    code: Coding
    shift: Integers | None
    intercept: bool

    def pooled(self, known: Knowledge, S: Any, V: Integers) -> Floats:
        """One system of sums that are not weighted, on a device where there is one for it."""
        found, device = None, device_for(len(V))
        G = None if device is None else known.gram[: known.n_outputs]
        if isinstance(G, np.ndarray):
            from traceless.device.solve import solved_there

            found = solved_there(G, self.code, self.ridge, self.shift, self.intercept, device)
            if found is not None and found[1].all():
                return found[0]
        fits = V.dtype == np.int64 and V.size and np.abs(V).max() < 2**60 // V.shape[1]
        Q = self.code(V if fits else V.astype(object))
        if found is None:
            return self._solve(S, Q)
        Z, decided = found
        Z[:, ~decided] = self._solve(S, Q[:, ~decided])
        return Z

    def weighted(self, known: Knowledge, V: Integers, weights: Weights) -> Floats:
        """Coefficients of class-wise knowledge; problems share weights, or have their own."""
        if not known.classwise:
            raise MismatchError(
                "Class weights need what is known of each class apart, and the knowledge of this "
                "model is pooled. Learn with class_weight set, or with classwise=True to be able "
                "to set it later; or set class_weight=None."
            )
        J = known.n_outputs
        M = [part[:J, :J] for part in known.total]
        if len(weights) == 1:
            return self._mixed(M, V, weights[0])
        S, v = known.feature_gram, wide(V).sum(axis=1)
        columns = [
            self._mixed((add(S, -M[k]), M[k]), np.column_stack([v - V[:, k], V[:, k]]), pair)
            for k, pair in enumerate(weights)
        ]
        return np.hstack(columns)

    def _mixed(self, M: Sequence[Sums], V: Integers, weights: Sequence[float]) -> Floats:
        """One system of classes with weights."""
        S, whole, unit = weighted(M, weights)
        return self._solve(S, self.code(wide(V) * np.array(whole, dtype=object)), unit)

    def _solve(self, S: Any, Q: Integers, unit: int = 0) -> Floats:
        return solve(S, self.ridge, Q, self.shift, self.intercept, unit)
