"""What least-squares estimators share: learn, forget, merge, solve.

    minimise  ρ ‖w‖² + Σ_n ω_n (w·φ(x_n) - y_n)²,     (ρI + Σωφφᵀ) w = Σωyφ

the LS-SVM of Lee et al. 2019 (eq. 1 and 2), the proximal SVM that Zhu et al. 2018 build
on, and ridge regression on φ: one computation. The estimators keep the knowledge of
their rows (`traceless.knowledge.sums`), never the rows, and solve it when coefficients are
asked for. Coefficients, digest and predictions are functions of the rows held now.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from traceless.arithmetic.integers import Floats, Wide
from traceless.arithmetic.products import Coefficients
from traceless.device.tensors import is_on_device, on_host, taken
from traceless.estimators.inputs import (
    checked,
    checked_tensor,
    known_rows,
    sides,
    take_names,
)
from traceless.estimators.row_guard import Guard
from traceless.estimators.scoring import scores
from traceless.exceptions import MismatchError
from traceless.features.feature_map import BoundMap, FeatureMap
from traceless.features.grid import dense_rows, report_coarse, report_large
from traceless.features.linear import Linear
from traceless.features.table import Table
from traceless.files import saving
from traceless.knowledge.provenance import Provenance
from traceless.knowledge.responses import SAID, Task
from traceless.knowledge.sample_weights import rounded_weights
from traceless.knowledge.specifications import check_same_specification
from traceless.knowledge.sums import Knowledge, Recipe, Rows
from traceless.parameters import (
    FLAG,
    JOBS,
    NOTHING,
    POSITIVE,
    Constraint,
    check_parameters,
    choice,
    instance,
)
from traceless.solvers.cholesky import Cholesky
from traceless.solvers.class_weights import SCOPES, Weights, class_weights, shared_weights
from traceless.solvers.evidence import Evidence
from traceless.solvers.moments import Moments
from traceless.solvers.ridge import Penalty
from traceless.solvers.woodbury import Woodbury
from traceless.sources.first_look import LookingRecipe
from traceless.sources.partitions import partition_arrays, sum_partitions
from traceless.sources.source import Source
from traceless.transaction import Changeable, changing, snapshot

_LINEAR = Linear()  # the map where none is given
_SOLVERS = {"cholesky": Cholesky, "woodbury": Woodbury}
_FLAGS = {bool, type(None)}  # types of `standardize` that need no check
ROWS = 4096  # rows that are looked at for a grid that is too coarse


class LeastSquares(Changeable, saving.Savable, BaseEstimator):
    """Base of the classifier and the regressor."""

    constraints: ClassVar[dict[str, Constraint]] = {
        "feature_map": NOTHING
        | instance("a FeatureMap such as traceless.features.Linear()", FeatureMap, error=TypeError),
        "rho": POSITIVE | choice("evidence"),
        "free_intercept": FLAG,
        "standardize": NOTHING | FLAG,
        "solver": choice(*_SOLVERS),
        "guard": FLAG,
        "fingerprint": FLAG,
        "n_jobs": JOBS,
        "verbose": FLAG,
    }
    feature_map: FeatureMap | None
    rho: float | str
    free_intercept: bool
    standardize: bool | None
    solver: str
    n_jobs: int | None
    verbose: bool
    class_weight: Any = None
    weighting: str = "shared"
    classwise: bool | None = None  # False: what is merged is pooled
    guard: bool
    fingerprint: bool
    n_features_in_: int
    _task: Task
    _state: Cholesky
    _guard: Guard
    _label_type: str  # of the first labels, where it is not the usual one

    # --- learning and forgetting ----------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from scratch: whatever was known before is dropped.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows. Every value must be finite. Also a Dask array or dataframe, with y and
            sample_weight of the same kind; or a source that holds them all
            (`traceless.sources`): files, or a Spark dataframe.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Class labels, or targets; or, for a classifier, a matrix of 0 and 1, dense or sparse,
            with a column for each of several labels.
        sample_weight : array-like of shape (n_samples,), optional
            Weights ≥ 0. Whole numbers up to 2^32 are exact, all others rounded to 20
            significant bits, a relative error below 1e-6. A row of weight 0 is no row.

        Returns
        -------
        self

        Notes
        -----
        Coefficients are solved for at once; of rows that a GPU works on, when they are first asked
        for, as after every other change.
        """
        with changing(self) as draft:
            draft._start_anew()
            draft._learn((X, y, sample_weight), None)
            there = type(X) is not np.ndarray and is_on_device(taken(X))
            draft._problem() if there else draft._weights()
        return self

    def forget(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Unlearn rows: afterwards the model is as if it had never seen them.

        Parameters
        ----------
        X, y, sample_weight
            The rows as they were learned, in any form that `fit` takes.

        Returns
        -------
        self

        Raises
        ------
        NotLearnedError
            If the model cannot have learned these rows. It is then unchanged.

        Notes
        -----
        The check misses errors: with more rows than features, a repeated, invented or
        mislabelled row is often accepted. With ``guard=True`` only rows that are held are.
        """
        return self.update(forget=(X, y, sample_weight))

    def update(self, add: Rows | Source | None = None, forget: Rows | Source | None = None) -> Self:
        """Learn some rows and forget others, all or nothing.

        Parameters
        ----------
        add, forget : tuple (X, y) or (X, y, sample_weight), or a source, optional
            Rows to be forgotten are held before the change. Where both are given, one without rows
            changes nothing.

        Returns
        -------
        self
        """
        add, forget = sides(add, forget)
        if add is None and forget is None:
            self._held()
            return self
        with changing(self) as draft:
            draft._learn(add, forget)
        return self

    def merge(self, other: Any, *, name: str | None = None, again: bool = False) -> Self:
        """Take in what another model, or a piece of knowledge, has learned.

        Parameters
        ----------
        other : fitted estimator of the same kind, or Knowledge
            ``merge(-knowledge)`` takes it out again, exactly.
        name : str, optional
            What this slice is called, such as a site and a month. Without a name its digest
            identifies it. A slice that was merged is refused the next time, also where it comes
            as part of a model that has merged it.
        again : bool, default=False
            Merge it even so: its rows then count twice.

        Returns
        -------
        self

        Raises
        ------
        AlreadyMergedError
            If `merged_` has the slice, or one that the other model has merged. The model is
            unchanged.
        """
        with changing(self) as draft:
            theirs, state = Provenance(), draft._current()
            other = snapshot(other) if isinstance(other, LeastSquares) else other
            guard = draft.__dict__.pop("_guard", None)  # without guard=True it would fall behind
            if draft.guard:
                draft._guard = Guard.of(guard, state.n_samples if state else 0).joined(other)
            if isinstance(other, LeastSquares):
                other._held()
                take_names(draft, getattr(other, "feature_names_in_", None))
                if state is None and "_label_type" in vars(other):
                    draft._label_type = other._label_type
                theirs, other = other._provenance, other.knowledge_
            if not isinstance(other, Knowledge):
                raise TypeError(
                    f"merge takes a fitted {type(self).__name__} or a Knowledge, got "
                    f"{type(other).__name__}."
                )
            if state is None:
                draft._begin(other.task)
                draft.n_features_in_ = int(other.specification["n_features"])
            draft._check_ours(other.specification, other.task)
            held = None if state is None else state.knowledge()
            draft._merged = draft._provenance.after(held, other, theirs, name, again)
            known = draft._joined(held, other)
            draft._state = draft._new_state(known.check_possible())
        return self

    def digest(self) -> str:
        """SHA-256 of the feature map's specification and the knowledge.

        Equal digests mean equal sums and feature map, whatever the history; with an equal penalty
        (``rho``, ``free_intercept``, ``standardize``), class weights and solver, equal coefficients
        and predictions. Only with
        ``fingerprint=True`` do they mean equal rows.
        """
        return self.knowledge_.digest()

    def seal(self) -> Self:
        """Make the model that of a fit from scratch, to the last bit.

        With ``solver="woodbury"`` coefficients carry rounding errors of their history; a
        sealed model has the correctly rounded ones, until the next change. With
        ``solver="cholesky"`` every model is sealed.
        """
        with changing(self) as draft:
            draft._state = draft._held().sealed()
        return self

    # --- what is known ---------------------------------------------------------------------

    @property
    def knowledge_(self) -> Knowledge:
        """All that is kept of the rows."""
        return self._held().knowledge()

    @property
    def n_samples_(self) -> int:
        """Number of rows the model holds now."""
        return self._held().n_samples

    @property
    def rho_(self) -> Any:
        """The ρ that is used: the parameter's, or what the evidence of the rows held now chose."""
        return self._problem()[2].rho

    @property
    def coef_(self) -> Floats:
        """Coefficients of the columns, or of the features of a `Table`, in the order of its names.

        AttributeError if the features are neither.
        """
        self._check_columns("coef_", "coefficient", "feature_coef_ has those of the features")
        return self.feature_coef_

    @property
    def feature_coef_(self) -> Floats:
        """Coefficients of the features that the map makes, without the constant one."""
        return self._coefficients()

    @property
    def intercept_(self) -> Any:
        """Coefficients of the constant feature; 0 if the feature map has none."""
        return self._intercepts()

    def _check_columns(self, name: str, what: str, instead: str) -> None:
        """Raise if the features are not the columns: RFE would choose columns at random."""
        phi = self._map()
        if not (phi.features_are_columns or phi.features_are_named):
            raise AttributeError(
                f"{name} has one {what} for each column, as with Linear(); the features of "
                f"{type(phi).__name__} are not the columns. {instead}."
            )

    @property
    def merged_(self) -> dict[str, int]:
        """The slices merged so far: names, or digests, and how often each was taken in.

        A model that was merged has brought those along that it had merged; bare knowledge
        brings none. Versions of Delta tables that were learned are among them, such as
        ``"file:///data/sales@v7"``: less often than 0 if forgotten and not learned.

        It says where knowledge came from, so it is no part of the digest; `fit` empties it.
        """
        return self._provenance.counts()

    @property
    def _provenance(self) -> Provenance:
        found: Provenance = self.__dict__.get("_merged", Provenance())
        return found

    # --- inside ------------------------------------------------------------------------------

    def _pieces(self) -> saving.Pieces:
        from traceless.estimators.file_format import written

        return written(self)

    def _start_anew(self) -> None:
        for name in ("_state", "_merged", "_guard", "_task", "_label_type"):
            self.__dict__.pop(name, None)

    def _begin(self, task: Task) -> None:
        """Take the task of the first rows, or knowledge: a classifier may be for several labels."""
        if task == "multilabel" and self._task == "classification":
            self._task = task

    def _learn(self, add: Rows | Source | None, forget: Rows | Source | None) -> None:
        check_parameters(self)
        state = self._current()
        if state is None and add is None:
            raise NotFittedError(f"This {type(self).__name__} has not learned anything to forget.")
        new = None if add is None else checked(self, add, reset=state is None)
        old = None if forget is None else checked(self, forget, reset=False)
        if self.guard or (state is not None and self.solver != "cholesky"):
            new, old = on_host(new), on_host(old)
        given, guarded = ((new, 1), (old, -1)), self._keep_guard(state, new, old)
        if state is None and new is not None:
            recipe = self._recipe()
            known, first = self._first_knowledge(new, recipe)
            self._check_first(known, *first)
            state, new = _SOLVERS[self.solver](recipe, known), None
        assert state is not None
        if new is not None or old is not None:
            self._phi(state)
            recipe = state.recipe
            state = state.updated(
                new,
                old,
                lambda known, rows, sign: self._knowledge_of(rows, recipe, known, sign),
                certain=guarded,
            )
        self._state = state
        for rows, times in given:
            if isinstance(rows, Source):
                self._merged = self._provenance.learned(rows.name, times)

    def _first_knowledge(self, rows: Rows | Source, recipe: Recipe) -> tuple[Knowledge, Any]:
        """The knowledge of the first rows that are learned, and some of these: X and y."""
        if not isinstance(rows, Source):
            return self._knowledge_of(rows, recipe), rows[:2]
        if isinstance(self.class_weight, Mapping):  # before the pass over all rows
            class_weights(self.class_weight, self.weighting, [*self.class_weight], [])
        looking = LookingRecipe.of(recipe, self._map().input_steps(self.n_features_in_))
        looked: Any = self._knowledge_of(rows, looking)
        return looked.knowledge, (looked.X, looked.y)

    def _keep_guard(
        self, state: Cholesky | None, new: Rows | Source | None, old: Rows | Source | None
    ) -> bool:
        """Let the guard, if there is to be one, follow a change; whether it has approved of it."""
        guard = self.__dict__.pop("_guard", None)
        if not self.guard:
            return False
        if isinstance(new, Source) or isinstance(old, Source):
            raise ValueError(
                "guard=True keeps a digest of each row, and needs rows in memory: a source has its "
                "rows elsewhere. Use guard=False, or a store (traceless.Store)."
            )
        held = 0 if state is None else state.n_samples
        self._guard = Guard.of(guard, held).changed(self._recipe(), new, old)
        return True

    def _check_first(self, part: Knowledge, X: Any, y: NDArray[Any]) -> None:  # noqa: ARG002
        """Check the first rows: there are some, on a grid neither too coarse nor too fine."""
        if not any(part.counts):
            raise ValueError("There is nothing to learn: no rows, or all with sample_weight zero.")
        names, phi = getattr(self, "feature_names_in_", None), self._map()
        if phi.features_are_columns and isinstance(part.total, Wide):
            report_large(part.large_features(), names)
        steps = phi.input_steps(self.n_features_in_)
        if type(X) is not np.ndarray and is_on_device(X):
            from traceless.device.encoders import narrow_columns

            values, columns = narrow_columns(X[:ROWS], steps)
            report_coarse(values, steps[columns], "Column", "resolution", columns, names)
        else:
            values = dense_rows(X, slice(0, ROWS))
            report_coarse(values, steps, "Column", "resolution", names=names)

    def _knowledge_of(
        self, rows: Rows | Source, recipe: Recipe, known: Knowledge | None = None, sign: int = 1
    ) -> Knowledge:
        """The knowledge of some rows; or what is known with them (1), or without them (-1)."""
        if recipe.verbose != bool(self.verbose):
            recipe = replace(recipe, verbose=bool(self.verbose))
        if isinstance(rows, Source):
            part = rows.knowledge(recipe, self.n_jobs)
        elif self.n_jobs is None or is_on_device(rows[0]):
            return recipe.knowledge(rows) if known is None else recipe.changed(known, rows, sign)
        else:
            X, y, weight = rows
            rounded_weights(weight, X.shape[0])  # raises what is wrong before they are cut
            partitions = partition_arrays(X, y, weight, self.n_jobs, len(recipe.phi.steps))
            part = sum_partitions(recipe, partitions, self.n_jobs)
        if known is None:
            return part
        return known + part if sign > 0 else known - part

    def _recipe(self, known: Knowledge | None = None) -> Recipe:
        """How rows become knowledge: as the parameters are set now, or as some of it was made."""
        weighted = self.class_weight is not None
        if known is None and (weighted or self.classwise):
            self._check_unweighted()
        keeps_classes = weighted if self.classwise is None else bool(self.classwise)
        return Recipe(
            self._bind(),
            self._task,
            self._target_resolution(),
            keeps_classes if known is None else known.classwise,
            bool(self.fingerprint) if known is None else known.fingerprint is not None,
            bool(self.verbose),
        )

    def _target_resolution(self) -> float:
        return 1.0  # of class indicators

    def _map(self) -> FeatureMap:
        feature_map: Any = _LINEAR if self.feature_map is None else self.feature_map
        if not isinstance(feature_map, FeatureMap):
            check_parameters(self, "feature_map")
        chosen: FeatureMap = feature_map
        return chosen

    def _bind(self) -> BoundMap:
        """The feature map for our columns, made anew only if it has changed."""
        feature_map = _LINEAR if self.feature_map is None else self.feature_map
        bound: BoundMap | None = self.__dict__.get("_bound_map")
        if bound is None or not bound.is_of(feature_map, self.n_features_in_):
            bound = self._bound_map = self._map().bind(self.n_features_in_)
        return bound

    def _check_ours(self, specification: Mapping[str, Any], task: str) -> None:
        """Raise if knowledge of this specification and task is not that of our parameters."""
        if task != self._task:
            raise MismatchError(
                f"This {type(self).__name__} is for {SAID[self._task]}, and cannot use the "
                f"knowledge of {SAID.get(task, task)}."
            )
        check_same_specification(self._recipe().specification, specification)

    def _phi(self, state: Cholesky) -> BoundMap:
        """Our feature map, as it is set now; raises if it is not the one that was learned with."""
        recipe = state.recipe
        feature_map = _LINEAR if self.feature_map is None else self.feature_map
        if recipe.phi.is_of(feature_map, self.n_features_in_) and (
            self._task == "classification" or self._target_resolution() == recipe.target_resolution
        ):
            return recipe.phi
        self._check_ours(recipe.specification, self._task)
        return self._bind()

    def _new_state(self, knowledge: Knowledge) -> Cholesky:
        check_parameters(self, "solver")
        return _SOLVERS[self.solver](self._recipe(knowledge), knowledge)

    def _joined(self, ours: Knowledge | None, theirs: Knowledge) -> Knowledge:
        """Both together; what is not to be kept of theirs, by class or by row, is left out."""
        pools = self.classwise is False if ours is None else not ours.classwise
        theirs = theirs.pooled() if pools else theirs
        prints = bool(self.fingerprint) if ours is None else ours.fingerprint is not None
        if prints and theirs.fingerprint is None:
            raise MismatchError(
                "This model has a fingerprint of its rows, and what is to be merged has none. Make "
                "that with fingerprint=True too (a parameter of estimators and of Knowledge.of), "
                "or learn its rows here. Nothing was changed."
            )
        theirs = theirs if prints else theirs.without_fingerprint()
        return theirs if ours is None else ours + theirs

    def _current(self) -> Cholesky | None:
        """The state, in the form that the solver asks for; None before anything is learned."""
        return self._held() if "_state" in self.__dict__ else None

    def _held(self) -> Cholesky:
        """The state, or NotFittedError, which is an AttributeError: there is nothing to ask for."""
        state: Cholesky | None = self.__dict__.get("_state")
        if state is None:
            raise NotFittedError(
                f"This {type(self).__name__} is not fitted yet: call fit or partial_fit first."
            )
        if state.solver == self.solver:
            return state
        if state.other is None or state.other.solver != self.solver:
            state.other = self._new_state(state.knowledge())
        return state.other

    def _code(self, V: Any) -> Any:
        """Responses to right-hand sides (or their solutions), column by column."""
        raise NotImplementedError

    def _weights(self) -> tuple[Coefficients, BoundMap]:
        """The solution, in steps of the grids, and the feature map."""
        state, phi, penalty, weights = self._problem()
        return state.coefficients(penalty, phi, self._code, weights), phi

    def _problem(self) -> tuple[Cholesky, BoundMap, Penalty, Weights | None]:
        """What is to be solved: the state, the feature map, the penalty and the class weights."""
        state = self._held()
        if not any(state.counts):
            raise NotFittedError(
                f"This {type(self).__name__} holds no rows: all were forgotten. Learn some first."
            )
        weights = None
        if self.class_weight is not None or self.classwise:
            self._check_unweighted()
        if self.class_weight is not None or self.weighting not in SCOPES:
            known = state.knowledge()
            weights = class_weights(
                self.class_weight, self.weighting, known.responses, known.class_totals
            )
        phi = self._phi(state)
        rho: Any = self.rho
        if isinstance(rho, str) and rho == "evidence":
            rho = self._evidence(state, phi, weights)
        elif type(rho) is not float or not 0.0 < rho < np.inf:
            check_parameters(self, "rho")
            rho = float(rho)
        return state, phi, self._penalty(rho, phi), weights

    def _penalty(self, rho: Any, phi: BoundMap) -> Penalty:
        """The papers' where there is no constant feature: sums without it have no means."""
        if type(self.free_intercept) is not bool or type(self.standardize) not in _FLAGS:
            check_parameters(self, "free_intercept", "standardize")
        if not phi.has_bias:
            return Penalty(rho)
        scaled = phi.has_units if self.standardize is None else bool(self.standardize)
        return Penalty(rho, bool(self.free_intercept), scaled)

    def _evidence(self, state: Cholesky, phi: BoundMap, weights: Weights | None) -> float:
        """The ρ that the sums choose, once for each state."""
        penalty, shared = self._penalty(1.0, phi), shared_weights(weights)
        found: float = state.answer(
            "evidence",
            (penalty, shared),
            lambda known: Evidence(known, penalty, phi, self._code, shared).chosen(),
        )
        return found

    def _check_unweighted(self) -> None:
        """Raise if classes cannot be weighted."""

    def _moments(self) -> Moments:
        """Means and covariances of the rows, in float64, with weights that all problems share."""
        state, phi, penalty, weights = self._problem()
        return state.moments(penalty, phi, shared_weights(weights))

    def _coefficients(self) -> Floats:
        """Weights of the features' values without the constant one, a row per class or target."""
        solution, phi = self._weights()
        w = (solution.Z / phi.steps[:, None]).T + 0.0  # zero is +0.0, also where it underflows
        return np.ascontiguousarray(w[:, :-1] if phi.has_bias else w)

    def _intercepts(self) -> Floats:
        """Weights of the constant feature, one per class or target; 0 where there is none."""
        state, phi, penalty, weights = self._problem()
        if not phi.has_bias:
            return np.zeros(state.coefficients(penalty, phi, self._code, weights).Z.shape[1])
        return state.intercepts(penalty, phi, self._code, weights) + 0.0

    def _decision(self, X: Any) -> Any:
        """The scores of rows: an array, or a tensor on the device of the rows."""
        solution, phi = self._weights()
        X = X if type(X) is np.ndarray else taken(X)
        if type(X) is not np.ndarray and is_on_device(X):
            from traceless.device.products import scores as scores_there

            return scores_there(solution, phi, checked_tensor(self, X, reset=False))
        return scores(solution, phi, known_rows(self, X))

    def __sklearn_is_fitted__(self) -> bool:
        return "_state" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        phi = self.feature_map
        tags.input_tags.allow_nan = (
            isinstance(phi, Table) or getattr(phi, "table", None) is not None
        )
        return tags
