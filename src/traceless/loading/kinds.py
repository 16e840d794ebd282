"""The kinds of files there are: what is in each of them, and how it becomes an estimator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from traceless.arithmetic import integers
from traceless.estimators.least_squares import LeastSquares
from traceless.estimators.row_guard import KEY, SIZE, Book, Guard
from traceless.estimators.sliding_window import SlidingWindow
from traceless.estimators.window_rows import plain_values
from traceless.files import facts
from traceless.hinge.file_format import labels_of, restore_hinge
from traceless.knowledge.provenance import Provenance, Slice
from traceless.loading.descriptions import from_description
from traceless.loading.knowledge import knowledge, responses, sums_of, width_of
from traceless.solvers.cholesky import Recipe, Settled
from traceless.solvers.inverse import Inverse
from traceless.solvers.woodbury import Live

Tensors = Mapping[str, NDArray[Any]]
_INVERSE = {"rho", "strain", "floor", "patience"}


def made(kind: str, said: Any, tensors: Tensors) -> Any:
    """What a file of a kind holds."""
    if kind == "Knowledge":
        facts.only(tensors, *sums_of(tensors))
        return knowledge(said, tensors)
    parameters = _learned(kind, said)["parameters"]
    estimator = from_description({"kind": kind, "parameters": parameters})
    if "state" not in said:
        facts.only(tensors)
        return estimator
    _take_columns(estimator, said["columns"])
    if isinstance(estimator, SlidingWindow):
        _restore_window(estimator, said["state"], tensors)
    elif isinstance(estimator, LeastSquares):
        _restore_least_squares(estimator, said, tensors)
    else:
        restore_hinge(estimator, said["state"], tensors)
    return estimator


def _learned(kind: str, said: Any) -> dict[str, Any]:
    least_squares = kind in ("LSSVC", "LSSVR")
    fitted = {"columns", "state"} | ({"merged"} if least_squares else set())
    if not (isinstance(said, Mapping) and "state" in said):
        return facts.named(said, {"parameters"})
    return facts.named(said, {"parameters"} | fitted, {"guard"} if least_squares else set())


def _take_columns(estimator: Any, said: Any) -> None:
    said = facts.named(said, {"n", "names"})
    estimator.n_features_in_ = facts.whole(said["n"], 0, 2**48)
    if said["names"] is not None:
        names = [facts.text(name) for name in facts.several(said["names"])]
        if len(names) != estimator.n_features_in_:
            raise ValueError(f"{len(names)} names for {estimator.n_features_in_} columns.")
        estimator.feature_names_in_ = np.array(names, dtype=object)


# --- least squares ---------------------------------------------------------------------------


def _restore_least_squares(
    estimator: LeastSquares, said: Mapping[str, Any], tensors: Tensors
) -> None:
    state, tensors = said["state"], dict(tensors)
    guard = _guard(said["guard"], tensors) if "guard" in said else None
    J = estimator._map().n_outputs(estimator.n_features_in_)
    known = None
    if facts.named(state, {"knowledge"}, set(state))["knowledge"] is not None:
        known = knowledge(state["knowledge"], tensors)
        if known.n_outputs != J:
            raise ValueError(f"sums of {known.n_outputs} features, not of {facts.short(J)}.")
        estimator._check_ours(known.specification, known.task)
        known.check_possible()
    elif _width_of_inverse(tensors) != J:  # before a recipe of J features is made
        raise ValueError(f"an inverse of other than {facts.short(J)} features.")
    recipe = estimator._recipe(known)
    if estimator.solver == "woodbury":
        estimator._state = _live(recipe, known, state, tensors)
    elif estimator.solver == "cholesky" and known is not None and set(state) == {"knowledge"}:
        facts.only(tensors, *sums_of(tensors))
        estimator._state = Settled(recipe, known)
    else:
        raise ValueError(f"no state of the solver {estimator.solver!r}.")
    estimator._merged = Provenance(
        {name: _slice(piece) for name, piece in facts.mapping(said["merged"]).items()}
    )
    if guard is not None:
        if len(guard) != estimator.n_samples_:
            raise ValueError(f"digests of {len(guard)} rows for {estimator.n_samples_}.")
        estimator._guard = guard


def _guard(keys: Any, tensors: dict[str, NDArray[Any]]) -> Guard:
    """The guard of a file, whose tensors are taken out of those given."""
    books = []
    for k, key in enumerate(facts.several(keys)):
        raw = facts.tensor(tensors, f"guard.{k}", "u", (None, SIZE))
        digests = np.frombuffer(tensors.pop(f"guard.{k}").tobytes(), dtype=f"S{SIZE}")
        if (digests[1:] < digests[:-1]).any() or len(raw) != len(digests):
            raise ValueError("digests of rows are not in order.")
        books.append(Book(bytes.fromhex(facts.text(key)), digests))
    if not books or any(len(book.key) != KEY for book in books):
        raise ValueError("digests of rows without a key.")
    return Guard(tuple(books))


def _slice(said: Any) -> Slice:
    said = facts.named(said, {"times", "brought"})
    brought = {name: facts.whole(n, 1) for name, n in facts.mapping(said["brought"]).items()}
    times = facts.whole(said["times"], -facts.LARGEST)
    if not times:
        raise ValueError("a slice that was merged as often as it was taken out.")
    return Slice(times, brought)


def _width_of_inverse(tensors: Tensors) -> int:
    return width_of(len(facts.tensor(tensors, "P", "f", (None,))))


def _live(recipe: Recipe, known: Any, said: Mapping[str, Any], tensors: Tensors) -> Live:
    alone = {"responses", "counts"} if known is None else set()
    said = facts.named(said, {"knowledge", "sealed", "inverse"} | alone)
    sums = [] if alone else sums_of(tensors)
    facts.only(tensors, *sums, *(["P", "U"] if said["inverse"] else []))
    if alone:
        known = responses(said["responses"], said["counts"], recipe.task)
        if said["inverse"] is None or min(known[1], default=0) < 0 or said["sealed"]:
            raise ValueError("a state without knowledge needs an inverse, and cannot be sealed.")
    if said["inverse"] is None:
        state = Live(recipe, known)
    else:
        shape = len(recipe.phi.steps), len(known[0] if alone else known.responses)
        state = Live(recipe, known, _inverse(said["inverse"], tensors, shape))
    return state.sealed() if facts.truth(said["sealed"]) else state


def _inverse(said: Any, tensors: Tensors, shape: tuple[int, int]) -> Inverse:
    """The inverse, with how far it is trusted."""
    said = facts.named(said, _INVERSE)
    rho, strain, patience = (facts.number(said[k], 0.0) for k in ("rho", "strain", "patience"))
    floor = facts.numbers(said["floor"], 0.0)
    if len(floor) != 2 or not rho:
        raise ValueError("what is said of the inverse is not complete.")
    triangle = facts.tensor(tensors, "P", "f", (shape[0] * (shape[0] + 1) // 2,))
    U = facts.tensor(tensors, "U", "f", shape)
    P = integers.unpacked(triangle, shape[0])
    return Inverse(P, U.copy(), rho, strain, (floor[0], floor[1]), patience)


# --- a window --------------------------------------------------------------------------------


def _restore_window(window: SlidingWindow, said: Any, tensors: Tensors) -> None:
    said = facts.named(said, {"classes", "estimator"})
    kind, inside = type(window.estimator).__name__, "estimator."
    theirs = {name.removeprefix(inside): t for name, t in tensors.items() if inside in name}
    ours = {name: tensor for name, tensor in tensors.items() if inside not in name}
    inner = made(kind, said["estimator"], theirs)
    weight = facts.tensor(ours, "weights", "f", (None,))
    X = _window_rows(ours, (len(weight), window.n_features_in_))
    facts.only(ours, "weights", "rows", "responses", *({"places", "ends"} & set(ours)))
    if said["classes"] is None:
        y = _targets(ours, len(weight))
    else:
        y = labels_of(said["classes"], facts.tensor(ours, "responses", "i", (len(weight),)))
    if (
        not len(weight) == inner.n_samples_ <= window.size
        or not (weight > 0.0).all()
        or inner.n_features_in_ != window.n_features_in_
        or (said["classes"] is not None) != hasattr(inner, "classes_")
    ):
        raise ValueError("the window does not hold the rows of its estimator.")
    window._model, window._rows = inner, (plain_values(X), y, weight.copy())


def _targets(tensors: Tensors, n: int) -> NDArray[Any]:
    shape = (n, None) if tensors["responses"].ndim == 2 else (n,)
    return facts.tensor(tensors, "responses", "f", shape) + 0.0


def _window_rows(tensors: Tensors, shape: tuple[int, int]) -> Any:
    if "ends" not in tensors:
        return facts.tensor(tensors, "rows", "f", shape).copy()
    ends = facts.tensor(tensors, "ends", "i", (shape[0],))
    starts = np.concatenate([[0], ends])
    values = facts.tensor(tensors, "rows", "f", (int(starts[-1]),))
    places = facts.tensor(tensors, "places", "i", values.shape)
    facts.within("places", places, 0, shape[1] - 1)
    facts.within("ends", np.diff(starts), 0, len(values))
    X = sparse.csr_matrix((values.copy(), places, starts), shape=shape)
    if not X.has_canonical_format:
        raise ValueError("places are not in order.")
    return X
