"""The file format of solvers: knowledge and, for `Woodbury`, P and U as they stand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic import integers
from traceless.files import facts, saving
from traceless.knowledge.file_format import responses, sums_of, width_of
from traceless.knowledge.sums import Knowledge, Recipe
from traceless.solvers.cholesky import Cholesky
from traceless.solvers.inverse import Inverse
from traceless.solvers.woodbury import STRAIN, Woodbury

Tensors = Mapping[str, NDArray[Any]]


def written(state: Cholesky) -> saving.Pieces:
    """What a file needs to make a solver again."""
    if not isinstance(state, Woodbury):
        said, tensors = state.knowledge()._pieces()
        return {"knowledge": said}, tensors
    out: dict[str, Any] = {"knowledge": None}
    tensors = {}
    if state.has_knowledge:
        out["knowledge"], tensors = state.knowledge()._pieces()
    else:
        out |= {"responses": saving.labels(state.responses), "counts": list(state.counts)}
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
    if solver != "cholesky" or known is None or set(said) != {"knowledge"}:
        raise ValueError(f"no state of the solver {solver!r}.")
    facts.only(tensors, *sums_of(tensors))
    return Cholesky(recipe, known)


def width_of_inverse(tensors: Tensors) -> int:
    """The number of features that P has."""
    return width_of(len(facts.tensor(tensors, "P", "f", (None,))))


def _woodbury(recipe: Recipe, known: Any, said: Mapping[str, Any], tensors: Tensors) -> Woodbury:
    alone = {"responses", "counts"} if known is None else set()
    said = facts.named(said, {"knowledge", "sealed", "inverse"} | alone)
    sums = [] if alone else sums_of(tensors)
    facts.only(tensors, *sums, *(["P", "U"] if said["inverse"] else []))
    if alone:
        known = responses(said["responses"], said["counts"], recipe.task)
        if said["inverse"] is None or min(known[1], default=0) < 0 or said["sealed"]:
            raise ValueError("a state without knowledge needs an inverse, and cannot be sealed.")
    if said["inverse"] is None:
        state = Woodbury(recipe, known)
    else:
        shape = len(recipe.phi.steps), len(known[0] if alone else known.responses)
        state = Woodbury(recipe, known, _inverse(said["inverse"], tensors, shape))
    return state.sealed() if facts.truth(said["sealed"]) else state


def _inverse(said: Any, tensors: Tensors, shape: tuple[int, int]) -> Inverse:
    """The inverse, with how far it is trusted."""
    said = facts.named(said, {"rho", "strain", "floor", "patience"})
    rho, strain, patience = (facts.number(said[k], 0.0) for k in ("rho", "strain", "patience"))
    floor = facts.numbers(said["floor"], 0.0)
    if len(floor) != 2 or not rho:
        raise ValueError("what is said of the inverse is not complete.")
    triangle = facts.tensor(tensors, "P", "f", (shape[0] * (shape[0] + 1) // 2,))
    U = facts.tensor(tensors, "U", "f", shape)
    P = integers.unpacked(triangle, shape[0])
    return Inverse(P, U.copy(), rho, strain, (floor[0], floor[1]), patience)
