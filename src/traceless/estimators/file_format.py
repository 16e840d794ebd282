"""The file format of least-squares estimators: how they are written, and how they are read back.

The state is knowledge and, for the solver `Woodbury`, P and U as they stand. While `Woodbury` has
no knowledge, responses and counts stand in its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic import integers
from traceless.estimators.inputs import LABEL_TYPES
from traceless.estimators.row_guard import Guard
from traceless.files import facts, saving
from traceless.knowledge import file_format as knowledge_format
from traceless.knowledge.provenance import Provenance
from traceless.knowledge.sums import Recipe
from traceless.solvers.cholesky import Cholesky
from traceless.solvers.inverse import Frame, Inverse
from traceless.solvers.ridge import Penalty
from traceless.solvers.woodbury import Woodbury

if TYPE_CHECKING:
    from traceless.estimators.least_squares import LeastSquares

Tensors = Mapping[str, NDArray[Any]]


def written(estimator: LeastSquares) -> saving.Pieces:
    """What a file needs to make an estimator again."""
    state = estimator._current()
    if state is None:
        return {"parameters": saving.parameters(estimator)}, {}
    merged = estimator._provenance
    estimator._phi(state)  # raises if the feature map was changed since rows were learned
    columns = {"n": estimator.n_features_in_, "names": saving.names(estimator)}
    out: dict[str, Any] = {"parameters": saving.parameters(estimator), "columns": columns}
    out["merged"] = merged.facts()
    if "_label_type" in estimator.__dict__:
        out["labels"] = estimator._label_type
    out["state"] = {"knowledge": None}
    tensors: dict[str, NDArray[Any]] = {}
    if not isinstance(state, Woodbury) or state.has_knowledge:
        out["state"]["knowledge"], tensors = state.knowledge()._pieces()
    if isinstance(state, Woodbury):
        inverse, arrays = _woodbury_pieces(state)
        out["state"] |= inverse
        tensors |= arrays
    if "_guard" in estimator.__dict__:
        out["guard"], digests = estimator._guard.pieces()
        tensors |= digests
    return out, tensors


def _woodbury_pieces(state: Woodbury) -> saving.Pieces:
    """What `Woodbury` has besides its knowledge."""
    out: dict[str, Any] = {"sealed": state.is_sealed, "inverse": None}
    if not state.has_knowledge:
        out |= {"responses": saving.labels(state.responses), "counts": list(state.counts)}
        out |= {"task": "multilabel"} if state.recipe.task == "multilabel" else {}
    inverse = state._inverse
    if inverse is None:
        return out, {}
    rho, free_intercept, standardize = inverse.frame.penalty
    out["inverse"] = {
        "rho": rho,
        "free_intercept": free_intercept,
        "standardize": standardize,
        "error": inverse.error,
        "way": inverse.way,
    }
    P, U = integers.packed(inverse.P().T), np.ascontiguousarray(inverse.U)
    tensors = {"P": P + 0.0, "U": U + 0.0, "frame": np.array(inverse.frame[1:]) + 0.0}
    if inverse.C is not None:
        tensors["C"] = np.ascontiguousarray(inverse.C) + 0.0
    return out, tensors


def restore(estimator: LeastSquares, said: Mapping[str, Any], tensors: Tensors) -> None:
    """Give an estimator, whose parameters are set, what a file says it had learned."""
    state, tensors = said["state"], dict(tensors)
    guard = Guard.from_pieces(said["guard"], tensors) if "guard" in said else None
    J = estimator._map().n_outputs(estimator.n_features_in_)
    knowledge, known = state["knowledge"], None
    if knowledge is not None:
        known = knowledge_format.read(knowledge, tensors).check_possible()
        width = known.n_outputs
    else:
        width = knowledge_format.width_of(len(facts.tensor(tensors, "P", "f", (None,))))
    if width != J:  # before tables of J features are made
        raise ValueError(f"sums or an inverse of {width} features, not of {facts.short(J)}.")
    estimator._begin(state.get("task", "classification") if known is None else known.task)
    recipe = estimator._recipe(known)
    if known is not None and (known.specification, known.task) != (
        recipe.specification,
        recipe.task,
    ):
        estimator._check_ours(known.specification, known.task)
    if estimator.solver == "woodbury":
        estimator._state = _woodbury(recipe, known, state, tensors)
    elif known is None:
        raise ValueError(f"no state of the solver {estimator.solver!r}.")
    else:
        estimator._state = Cholesky(recipe, known)
    estimator._merged = Provenance.from_facts(said["merged"])
    restore_label_type(estimator, said)
    if guard is not None:
        if len(guard) != estimator.n_samples_:
            raise ValueError(f"digests of {len(guard)} rows for {estimator.n_samples_}.")
        estimator._guard = guard


def _woodbury(recipe: Recipe, known: Any, said: Mapping[str, Any], tensors: Tensors) -> Woodbury:
    inverse, sealed = said["inverse"], said["sealed"]
    names = () if known is None else known.responses
    if known is None:
        counted = knowledge_format.responses(said["responses"], said["counts"], recipe.task)
        known = names, counts = counted
        if inverse is None or min(counts, default=0) < 0 or sealed:
            raise ValueError("a state without knowledge needs an inverse, and cannot be sealed.")
    if inverse is not None:
        inverse = _inverse(inverse, tensors, (len(recipe.phi.steps), len(names)))
    state = Woodbury(recipe, known, inverse)
    return state.sealed() if sealed else state


def _inverse(said: Any, tensors: Tensors, shape: tuple[int, int]) -> Inverse:
    """The inverse, with how far it is trusted."""
    rho, error, way = (facts.number(said[k], 0.0) for k in ("rho", "error", "way"))
    flags = said["free_intercept"], said["standardize"]
    if not rho or {*map(type, flags)} != {bool}:
        raise ValueError("the inverse has no rho, or no penalty.")
    triangle = facts.tensor(tensors, "P", "f", (shape[0] * (shape[0] + 1) // 2,))
    U = facts.tensor(tensors, "U", "f", shape)
    vectors = facts.tensor(tensors, "frame", "f", (5, shape[0]))
    if not (vectors[0] >= 0.0).all():
        raise ValueError("a penalty below zero.")
    frame = Frame(Penalty(rho, *flags), *vectors.copy())
    C = np.array(facts.tensor(tensors, "C", "f", shape)) if flags[1] else None
    return Inverse(integers.unpacked(triangle, shape[0]), U.copy(), frame, C, error, way)


def restore_label_type(estimator: Any, said: Mapping[str, Any]) -> None:
    """The type that labels come back in, where a file says one."""
    if "labels" in said:
        if said["labels"] not in LABEL_TYPES:
            raise ValueError(f"no labels are of type {facts.short(said['labels'])}.")
        estimator._label_type = said["labels"]
