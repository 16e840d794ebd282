"""The file format of solvers: knowledge and, for `Woodbury`, P and U as they stand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic import integers
from traceless.files import facts, saving
from traceless.knowledge.file_format import responses, width_of
from traceless.knowledge.sums import Knowledge, Recipe
from traceless.solvers.cholesky import Cholesky
from traceless.solvers.inverse import Inverse
from traceless.solvers.woodbury import STRAIN, Woodbury

Tensors = Mapping[str, NDArray[Any]]


def written(state: Cholesky) -> saving.Pieces:
    """What a file needs to make a solver again."""
    out: dict[str, Any] = {"knowledge": None}
    tensors: dict[str, NDArray[Any]] = {}
    if not isinstance(state, Woodbury) or state.has_knowledge:
        out["knowledge"], tensors = state.knowledge()._pieces()
    if not isinstance(state, Woodbury):
        return out, tensors
    if not state.has_knowledge:
        out |= {"responses": saving.labels(state.responses), "counts": list(state.counts)}
        out |= {"task": "multilabel"} if state.recipe.task == "multilabel" else {}
    inverse, P = state.snapshot()
    out |= {"sealed": state.is_sealed, "inverse": None}
    if inverse is not None and P is not None:
        tensors |= {"P": integers.packed(P.T) + 0.0, "U": np.ascontiguousarray(inverse.U) + 0.0}
        out["inverse"] = {
            "rho": inverse.rho,
            "strain": inverse.strain,
            "floor": list(inverse.floor),
            "patience": min(inverse.patience, STRAIN),
        }
    return out, tensors


def read(
    solver: str, recipe: Recipe, known: Knowledge | None, said: Mapping[str, Any], tensors: Tensors
) -> Cholesky:
    """The solver that was written, once its knowledge has been read."""
    if solver == "woodbury":
        return _woodbury(recipe, known, said, tensors)
    if known is None:
        raise ValueError(f"no state of the solver {solver!r}.")
    return Cholesky(recipe, known)


def width_of_inverse(tensors: Tensors) -> int:
    """The number of features that P has."""
    return width_of(len(facts.tensor(tensors, "P", "f", (None,))))


def _woodbury(recipe: Recipe, known: Any, said: Mapping[str, Any], tensors: Tensors) -> Woodbury:
    inverse, sealed = said["inverse"], said["sealed"]
    names = () if known is None else known.responses
    if known is None:
        known = names, counts = responses(said["responses"], said["counts"], recipe.task)
        if inverse is None or min(counts, default=0) < 0 or sealed:
            raise ValueError("a state without knowledge needs an inverse, and cannot be sealed.")
    if inverse is not None:
        inverse = _inverse(inverse, tensors, (len(recipe.phi.steps), len(names)))
    state = Woodbury(recipe, known, inverse)
    return state.sealed() if sealed else state


def _inverse(said: Any, tensors: Tensors, shape: tuple[int, int]) -> Inverse:
    """The inverse, with how far it is trusted."""
    found = (said["rho"], said["strain"], said["patience"], *said["floor"])
    rho, strain, patience, low, high = (facts.number(value, 0.0) for value in found)
    if not rho:
        raise ValueError("the inverse has no rho.")
    triangle = facts.tensor(tensors, "P", "f", (shape[0] * (shape[0] + 1) // 2,))
    U = facts.tensor(tensors, "U", "f", shape)
    P = integers.unpacked(triangle, shape[0])
    return Inverse(P, U.copy(), rho, strain, (low, high), patience)
