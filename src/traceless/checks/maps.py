"""Feature maps: the codes of a row depend on the row and on the specification only."""

from __future__ import annotations

import copy
import json
import pickle
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from traceless.arithmetic.integers import LARGEST, Floats
from traceless.checks import histories, memory
from traceless.checks.trial import POOL, Trial, demand, drawn_rows, same_bits
from traceless.estimators.lssvm import LSSVR
from traceless.features import FeatureMap, Table
from traceless.features.kinds import Column
from traceless.knowledge.sums import Knowledge

_ROWS = 1100  # more than are worked on at a time


class MapTrial:
    """A feature map, and rows that it takes."""

    def __init__(
        self, feature_map: Any, *, seed: int = 0, n_features: int = 3, X: Any = None
    ) -> None:
        if not isinstance(feature_map, FeatureMap):
            raise TypeError(f"A feature map is a FeatureMap, got {type(feature_map).__name__}.")
        self.map, self.seed, self.given = feature_map, seed, X
        self.rng = np.random.default_rng(seed)
        self.X = drawn_rows(self.rng, _ROWS, n_features, X)
        self.n_features = int(self.X.shape[1])


def check_one_row_equals_a_batch(trial: MapTrial) -> None:
    """The codes of a row are the same alone, in pieces, in another order and next to other rows."""
    bound = trial.map.bind(trial.n_features)
    codes = bound.codes(trial.X)
    promise = "the codes of a row do not depend on the rows beside it"
    for i in trial.rng.integers(_ROWS, size=20):
        demand(same_bits(bound.codes(trial.X[i : i + 1])[0], codes[i]), promise, f"row {i} alone")
    ends = np.sort(trial.rng.integers(_ROWS, size=5))
    pieces = np.vstack([bound.codes(part) for part in np.split(trial.X, ends) if len(part)])
    demand(same_bits(pieces, codes), promise, f"other codes in pieces that end at {ends.tolist()}")
    order = trial.rng.permutation(_ROWS)
    mixed = bound.codes(trial.X[order])
    demand(same_bits(mixed, codes[order]), promise, "other codes in another order")
    again = trial.map.bind(trial.n_features).codes(trial.X)
    demand(same_bits(again, codes), "a map gives the same codes each time", "others")


def check_codes_are_integers(trial: MapTrial) -> None:
    """Codes are whole numbers of at most 2^53, in steps that are powers of two."""
    bound = trial.map.bind(trial.n_features)
    codes, J = bound.codes(trial.X), len(bound.steps)
    demand(codes.shape == (_ROWS, J), f"{J} codes for each row", f"an array of {codes.shape}")
    whole = bool((codes == np.rint(codes)).all() and np.abs(codes).max() <= LARGEST)
    demand(whole, "codes are whole numbers of at most 2**53", "others")
    power = bool((np.frexp(bound.steps)[0] == 0.5).all())
    demand(power, "steps are powers of two", f"{bound.steps}")
    said = trial.map.n_outputs(trial.n_features)
    demand(said == J, "n_outputs says how many features there are", f"{said}, where there are {J}")
    constant = bool((codes[:, -1] * bound.steps[-1] == 1.0).all())
    demand(constant or not bound.has_bias, "with a bias the last feature is 1", "another")
    features = codes * bound.steps
    if isinstance(trial.map, Table):  # a transformer, whose features have names
        features = features[:, : trial.map.width(trial.n_features)]
    same = same_bits(trial.map.transform(trial.X), features)
    demand(same, "transform gives codes times steps", "something else")


def check_rows_in_any_memory(trial: MapTrial) -> None:
    """Rows may be read-only, mapped, in any layout or type; they are not written to, nor kept."""
    bound = trial.map.bind(trial.n_features)
    X = trial.X[:50]
    codes = bound.codes(X)
    kept = codes.copy()
    for layout, rows in [("in plain memory", X.copy()), *memory.layouts(X)]:
        before = rows.copy()
        same = same_bits(bound.codes(rows), codes)
        demand(same, f"the same codes for rows that are {layout}", "others")
        demand(
            same_bits(before, rows), "rows are only read", f"rows that are {layout} were written"
        )
    bound.codes(X[::-1].copy())[:] = 7.0
    demand(same_bits(codes, kept), "codes are the caller's own", "a later call changed them")
    y = np.arange(len(X)) % 2
    dense, thin = (Knowledge.of(trial.map, rows, y) for rows in (X, sparse.csr_matrix(X)))
    demand(dense == thin, "sparse rows are the same rows", "they add up to something else")


def check_rows_that_are_refused(trial: MapTrial) -> None:
    """NaN and infinity have no codes; in a table NaN is an absent value."""
    bound = trial.map.bind(trial.n_features)
    absent = isinstance(trial.map, Table) or trial.map.table is not None
    for bad in (np.inf, -np.inf) if absent else (np.nan, np.inf, -np.inf):
        X = trial.X[:5].copy()
        X[3, -1] = bad
        try:
            with np.errstate(all="ignore"):
                bound.codes(X)
        except ValueError:
            continue
        demand(False, f"a row with {bad} is refused with ValueError", "it has codes")


def check_specification(trial: MapTrial) -> None:
    """The specification is plain JSON with a version; copies have it too, and give equal codes."""
    phi, n = trial.map, trial.n_features
    said = phi.specification()
    demand(json.loads(json.dumps(said, allow_nan=False)) == said, "it is plain JSON", f"{said}")
    version = said.get("version")
    demand(type(version) is int, "it has a version, a whole number", f"{version!r}")
    own = phi.bind(n).is_of(phi, n)
    demand(own, "bind gives a bound map of this class and specification", "one of another")
    described = phi.bind(n).describe()
    codes = phi.bind(n).codes(trial.X[:20])
    for how, other in _copies(phi):
        demand(other.specification() == said, f"{how} has the same specification", "another")
        demand(other.digest() == phi.digest(), f"{how} has the same digest", "another")
        bound = other.bind(n)
        demand(bound.describe() == described, f"{how} is the same map", "another")
        demand(same_bits(bound.codes(trial.X[:20]), codes), f"{how} gives the same codes", "others")
    if _can_be_found(type(phi)):
        bound = pickle.loads(pickle.dumps(phi.bind(n)))
        same = same_bits(bound.codes(trial.X[:20]), codes) and bound.describe() == described
        demand(same, "a bound map comes out of a pickle as it was", "it gives other codes")


def check_every_parameter_is_specified(trial: MapTrial) -> None:
    """A map with another parameter has another specification, and another digest."""
    for name, value in trial.map.get_params(deep=False).items():
        for other in _other_values(value):
            phi = clone(trial.map).set_params(**{name: other})
            promise = f"{name} is part of the specification"
            differs = phi.specification() != trial.map.specification()
            demand(
                differs and phi.digest() != trial.map.digest(), promise, f"{other!r} is not seen"
            )


def check_a_bound_map_stays_what_it_was(trial: MapTrial) -> None:
    """Later changes of the map and its arrays do not change a bound map."""
    phi = copy.deepcopy(trial.map)
    bound, late = phi.bind(trial.n_features), phi.bind(trial.n_features)
    codes, described = bound.codes(trial.X[:20]), bound.describe()
    for name, value in phi.get_params(deep=False).items():
        if isinstance(value, np.ndarray) and value.flags.writeable:
            value += 1
        for other in _other_values(value):
            phi.set_params(**{name: other})
    for one in (bound, late):
        same = same_bits(one.codes(trial.X[:20]), codes) and one.describe() == described
        demand(same, "a bound map does not change with the map it was made of", "other codes")


def check_models_on_it_forget(trial: MapTrial) -> None:
    """`LSSVR` on it: updated equals refitted, to the bit."""
    X = None if trial.given is None else trial.X[:POOL]
    model = LSSVR(clone(trial.map))
    learning = Trial(model, seed=trial.seed, n_features=trial.n_features, X=X, n_histories=1)
    histories.check_updated_equals_refitted(learning)


def _copies(phi: FeatureMap) -> Iterator[tuple[str, FeatureMap]]:
    yield "a clone", clone(phi)
    yield "a deep copy", copy.deepcopy(phi)
    if _can_be_found(type(phi)):
        yield "a pickle", pickle.loads(pickle.dumps(phi))
    yield "one with the same parameters", type(phi)(**phi.get_params(deep=False))


def _can_be_found(kind: type) -> bool:
    """Whether pickle finds a class by its name; one defined in a function it does not."""
    return getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind


def _other_values(value: Any) -> Iterator[Any]:
    """Another value of the same kind, where one can be guessed."""
    number = isinstance(value, int | float | np.number) and np.isfinite(float(value))
    if isinstance(value, bool | np.bool_):
        yield not value
    elif number or (isinstance(value, np.ndarray) and value.dtype.kind in "iuf"):
        yield value * 2 + (value == 0)
    elif isinstance(value, list | tuple) and any(isinstance(v, Column) for v in value):
        yield value[:-1]
    elif isinstance(value, list | tuple):
        array: Floats = np.asarray(value, dtype=np.float64)
        yield (array * 2 + (array == 0)).tolist()
