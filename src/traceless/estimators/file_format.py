"""The file format of least-squares estimators: how they are written, and how they are read back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from traceless.estimators.inputs import LABEL_TYPES
from traceless.estimators.row_guard import Guard
from traceless.files import facts, saving
from traceless.knowledge import file_format as knowledge_format
from traceless.knowledge.provenance import Provenance
from traceless.solvers import file_format as solver_format

if TYPE_CHECKING:
    from traceless.estimators.least_squares import LeastSquares

Tensors = Mapping[str, NDArray[Any]]


def written(estimator: LeastSquares) -> saving.Pieces:
    """What a file needs to make an estimator again."""
    state = estimator._current()
    if state is None:
        return {"parameters": saving.parameters(estimator)}, {}
    merged = estimator._provenance
    estimator._phi(state)
    columns = {"n": estimator.n_features_in_, "names": saving.names(estimator)}
    out: dict[str, Any] = {"parameters": saving.parameters(estimator), "columns": columns}
    out["merged"] = merged.facts()
    if "_label_type" in estimator.__dict__:
        out["labels"] = estimator._label_type
    out["state"], tensors = solver_format.written(state)
    if "_guard" in estimator.__dict__:
        out["guard"], digests = estimator._guard.pieces()
        tensors |= digests
    return out, tensors


def restore(estimator: LeastSquares, said: Mapping[str, Any], tensors: Tensors) -> None:
    """Give an estimator, whose parameters are set, what a file says it had learned."""
    state, tensors = said["state"], dict(tensors)
    guard = Guard.from_pieces(said["guard"], tensors) if "guard" in said else None
    knowledge, known = state["knowledge"], None
    J = estimator._map().n_outputs(estimator.n_features_in_)
    if knowledge is not None:
        known = knowledge_format.read(knowledge, tensors)
        width = known.n_outputs
    else:
        width = solver_format.width_of_inverse(tensors)
    if width != J:  # before tables of J features are made
        raise ValueError(f"sums or an inverse of {width} features, not of {facts.short(J)}.")
    estimator._begin(state.get("task", "classification") if known is None else known.task)
    recipe = estimator._recipe(known)
    if known is not None:
        if known.specification != recipe.specification or known.task != recipe.task:
            estimator._check_ours(known.specification, known.task)
        known.check_possible()
    estimator._state = solver_format.read(estimator.solver, recipe, known, state, tensors)
    estimator._merged = Provenance.from_facts(said["merged"])
    if "labels" in said:
        if said["labels"] not in LABEL_TYPES:
            raise ValueError(f"no labels are of type {facts.short(said['labels'])}.")
        estimator._label_type = said["labels"]
    if guard is not None:
        if len(guard) != estimator.n_samples_:
            raise ValueError(f"digests of {len(guard)} rows for {estimator.n_samples_}.")
        estimator._guard = guard
