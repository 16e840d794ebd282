"""ONNX files of fitted models, for other runtimes.

A fitted `LSSVC` or `LSSVR` is a feature map, rounded to its grid, and one matrix product. The
graph has the operations of `traceless.features` in their order, in float64, so its features are
those of the model to the bit; the product is added up in the order of the runtime, so scores
differ by a few units in the last place. Probabilities are the formula of
`traceless.solvers.probabilities` by the runtime's own logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from traceless.arithmetic import elementary
from traceless.arithmetic.integers import PART_BITS, Floats
from traceless.estimators.lssvm import LSSVC, LSSVR
from traceless.estimators.onnx_graph import Graph, Value, concat, known_labels
from traceless.exceptions import ConditionError, UnsealableError
from traceless.features import (
    BoundMap,
    FeatureMap,
    Linear,
    Polynomial,
    RandomFourier,
    RandomLayer,
    Table,
)
from traceless.features.feature_map import encode_after
from traceless.features.grid import InputGrid
from traceless.features.kinds import Column, Number, Words
from traceless.files import container
from traceless.knowledge.responses import label_array
from traceless.solvers.probabilities import BELOW, NU, RISE, Discriminant, contrasts

__all__ = ["to_onnx"]


def to_onnx(estimator: Any, path: Any = None) -> Any:
    """The ONNX model of a fitted `LSSVC` or `LSSVR`.

    It takes ``X``, float64 of shape (n, n_features) with any n; of a model with a `Table` what
    `Table.rows` makes of a frame, with NaN for absent values. A classifier gives ``label``
    (strings, int64 or bool), ``scores``, the values of `decision_function`, and, where it has
    them, ``probabilities``, one column for each class; a regressor gives ``prediction``. Rows are
    not checked: what `predict` refuses (NaN, values beyond the grid) has no meaningful answer.
    Features are those of the model to the bit for values up to 2^41 steps of their grid.

    Parameters
    ----------
    estimator : LSSVC or LSSVR
        Fitted, with a feature map of `traceless.features`.
    path : str or path, optional
        Where to write it.

    Returns
    -------
    onnx.ModelProto

    Examples
    --------
    >>> from traceless import LSSVC
    >>> from traceless.estimators.onnx import to_onnx
    >>> model = to_onnx(LSSVC().fit([[0.0], [1.0]], ["no", "yes"]))
    >>> [output.name for output in model.graph.output]
    ['label', 'scores', 'probabilities']
    """
    if type(estimator) not in (LSSVC, LSSVR):
        raise TypeError(f"to_onnx takes a fitted LSSVC or LSSVR, got {type(estimator).__name__}.")
    check_is_fitted(estimator)
    graph = Graph()
    X = Value(graph, "X")
    model = graph.model(*_outputs(X, estimator))
    with suppress(UnsealableError):  # a model without knowledge has no digest
        model.metadata_props.add(key="digest", value=estimator.digest())
    if path is not None:
        container.replace(path, [model.SerializeToString()])
    return model


def _outputs(X: Value, estimator: Any) -> tuple[dict[str, Any], int]:
    """What a least-squares model answers, and the width of its rows."""
    weights, phi = estimator._weights()
    Z = weights.Z
    features = _features(X, estimator._map(), phi)
    if weights.shift is not None:  # a free intercept counts from near the means
        features = features - weights.shift[:-1]
    scores = features @ Z[:-1] + Z[-1] if phi.has_bias else features @ Z
    finish = _labelled if isinstance(estimator, LSSVC) else _predicted
    return finish(scores, estimator, Z.shape[1]), phi.n_features


# --- answers ---------------------------------------------------------------------------------


def _labelled(scores: Value, estimator: LSSVC, width: int) -> dict[str, Any]:
    if estimator._task == "multilabel":
        raise TypeError("to_onnx takes models of one label per row, and this one has several.")
    labels, kind = known_labels(label_array(estimator._held().responses))
    shape: list[Any] = ["n", width]
    columns, found = scores, _discriminant(estimator)
    if width == 1 and len(labels) == 2:
        scores, shape = scores.squeeze(np.array([1])), ["n"]
        best = (scores > 0.0).cast(to=scores.graph.int64)
    else:
        best = scores.argmax(axis=1, keepdims=0)
    out = {"scores": (scores, np.float64, shape)}
    if found is not None:
        p = _probabilities(columns, found, estimator)
        out["probabilities"] = (p, np.float64, ["n", len(labels)])
        if estimator.decision == "posterior":
            best = p.argmax(axis=1, keepdims=0)
    return {"label": (best.taken_from(labels), kind, ["n"])} | out


def _discriminant(estimator: LSSVC) -> Discriminant | None:
    """What probabilities are made of, where the model has any."""
    if hasattr(estimator, "predict_proba"):
        with suppress(UnsealableError, ConditionError):  # no knowledge, or none for float64
            return estimator._discriminant()
    if estimator.decision == "posterior":
        raise ValueError(
            "decision='posterior' needs the probabilities that this model lacks. "
            "Use decision='scores'."
        )
    return None


def _probabilities(scores: Value, found: Discriminant, estimator: LSSVC) -> Any:
    """As in `traceless.solvers.probabilities`."""
    K, priors = len(found.means), estimator._checked_priors(len(found.means))
    with np.errstate(divide="ignore"):
        floor = np.log(found.priors if priors is None else priors)
    scale = found.exponent
    if K == 1 or not found.is_informative:
        return (scores * np.zeros((1, K)) + floor).softmax(axis=1)
    if K == 2:
        return (_log_odds(scores, found) + floor).softmax(axis=1)
    H = contrasts(np.eye(K))
    parts = []
    for c in range(K):
        A, half_volume = (each[c % len(each)] for each in found.whitenings)
        whitened = (scores @ H - found.means[c]) @ np.ascontiguousarray(A.T)
        distance = (whitened * whitened).sum(np.array([1]), keepdims=1)
        parts.append((distance * (1.0 / NU) + 1.0).log() * -scale - float(half_volume))
    p = (concat(parts) + floor).softmax(axis=1)
    return _agreeing(p, scores, K) if estimator.decision == "scores" and priors is None else p


def _log_odds(scores: Value, found: Discriminant) -> Any:
    middle, delta, spread, reach = found.of_two
    t = scores - middle
    u = t * (1.0 / reach)
    t = t.clip(-reach, reach)
    near, far = t - delta, t + delta
    odds = ((far * far + spread) / (near * near + spread)).log() * found.exponent
    odds = odds + u / (abs(u) + 1.0) * RISE
    return odds * np.array([[0.0, 1.0]])


def _agreeing(p: Value, scores: Value, K: int) -> Any:
    """The nearest probabilities of which that of the largest score is the largest."""
    wins = scores.argmax(axis=1, keepdims=1).equal(np.arange(K))
    own = wins.where(p, 0.0).sum(np.array([1]), keepdims=1)
    others = wins.where(0.0, p).sorted_down(np.array([K - 1]), axis=1, unused=1)
    means = concat([own, others]).cumulated(np.array(1)) / np.arange(1.0, K + 1.0)
    largest = means.largest(axes=[1], keepdims=1)
    return wins.where(largest, p.minimum(largest * BELOW))


def _predicted(scores: Value, estimator: LSSVR, width: int) -> dict[str, Any]:
    values = scores * float(estimator.target_resolution)
    if width == 1:
        return {"prediction": (values.squeeze(np.array([1])), np.float64, ["n"])}
    return {"prediction": (values, np.float64, ["n", width])}


# --- feature maps ----------------------------------------------------------------------------


def _features(X: Value, feature_map: FeatureMap, phi: BoundMap) -> Any:
    """The codes of X, without the constant one."""
    if type(feature_map) not in _MAPS:
        known = ", ".join(kind.__name__ for kind in _MAPS)
        raise TypeError(
            f"{type(feature_map).__name__} has no ONNX form: only {known} are known here."
        )
    encode: Any = phi.encode
    inner = encode.args[0] if phi.has_bias else encode
    if type(feature_map) is not Table and feature_map.table is not None:
        X = _table_values(X, feature_map.table.columns)
        inner = inner.args[1] if getattr(inner, "func", None) is encode_after else inner
    return _MAPS[type(feature_map)](X, inner, feature_map, phi)


def _linear(X: Value, encode: Any, *_: Any) -> Any:
    return round(X * encode.args[0])


def _table(X: Value, encode: Any, *_: Any) -> Any:
    columns, scale = encode.args
    return round(_table_values(X, columns) * scale)


def _table_values(X: Value, columns: Sequence[Column]) -> Any:
    """The features of one number for each column, NaN where it is absent."""
    parts: list[Any] = []
    for k, column in enumerate(columns):
        x = X.columns(np.array([k]), axis=1)
        if isinstance(column, Words):
            hit = x.equal(np.arange(float(column.width)))
            parts.append(hit.cast(to=x.graph.double))
            continue
        there = x.equal(x)
        if isinstance(column, Number):
            x = (x - column.shift) / column.scale
        parts.append(there.where(x, 0.0))
        if not column.required:
            parts.append(1.0 - there.cast(to=x.graph.double))
    return concat(parts)


def _polynomial(X: Value, encode: Any, feature_map: Polynomial, phi: BoundMap) -> Any:
    parts = []
    each = feature_map.monomials(feature_map.n_inputs(phi.n_features))
    for _, several in groupby(each, lambda one: len(one[0])):
        columns, scales = map(np.array, zip(*several, strict=True))
        product = X.columns(columns[:, 0], axis=1)
        for place in columns.T[1:]:
            product = product * X.columns(place, axis=1)
        parts.append(product * scales)
    return round(concat(parts) * encode.args[1])


def _fourier(X: Value, encode: Any, _: Any, phi: BoundMap) -> Any:
    W, turn, scale = (encode.keywords[name] for name in ("W", "turn", "scale"))
    parts = []
    for shift, product in _projections(X, W, encode.keywords["grid"]):
        turns = product * (2.0**shift / turn)
        parts.append(turns - round(turns))
    turns = parts[0] + parts[1]
    n_sines = len(phi.steps) - phi.has_bias - W.shape[1]
    some = turns.some(np.array([0]), np.array([n_sines]), np.array([1]))
    each = np.broadcast_to(scale, W.shape[1] + n_sines)
    cosines = _cosine(turns, each[: W.shape[1]])
    return round(concat([cosines, _cosine(some - 0.25, each[W.shape[1] :])]))


def _layer(X: Value, encode: Any, feature_map: RandomLayer, _: BoundMap) -> Any:
    tables = encode.keywords
    low, high = (p * 2.0**shift for shift, p in _projections(X, tables["W"], tables["grid"]))
    z = (low + high) * tables["unit"] + tables["offset"]
    return round(_ACTIVATIONS[feature_map.activation](z) * tables["scale"])


_MAPS: dict[type, Callable[[Value, Any, Any, BoundMap], Any]] = {
    Linear: _linear,
    Polynomial: _polynomial,
    RandomFourier: _fourier,
    RandomLayer: _layer,
    Table: _table,
}


# --- as in `projection` and `elementary` -------------------------------------------------------


def _codes(X: Value, grid: InputGrid) -> Any:
    """The rows in steps of the finest grid."""
    codes = round(X * grid.scale)
    return codes * grid.stretch if np.ndim(grid.stretch) else codes


def _projections(X: Value, W: Floats, grid: InputGrid) -> list[tuple[int, Value]]:
    """(shift, product) with Σ product · 2^shift = codes(X) W, exact up to 2^41 steps."""
    codes = _codes(X, grid)
    high = round(codes * 2.0**-PART_BITS)
    low = codes - high * 2.0**PART_BITS
    return [(0, low @ W), (PART_BITS, high @ W)]


def _cosine(turns: Value, scale: Floats | float = 1.0) -> Any:
    u = 0.25 - abs(turns - round(turns))
    return _horner([scale * c for c in elementary.SINE], u * u) * u


def _exponential(x: Value) -> Any:
    x = x.clip(-700.0, 700.0)
    k = round(x * elementary.LOG2_E)
    r = x - k * elementary.LN2_HIGH - k * elementary.LN2_LOW
    place = (k + 1010.0).cast(to=x.graph.int64)
    power = place.taken_from(np.ldexp(1.0, np.arange(-1010, 1011)))
    value = _horner(elementary.EXP, r) * power
    return (x <= -700.0).where(0.0, value)


def _horner(coefficients: Sequence[Floats | float], x: Value) -> Any:
    out = x * coefficients[-1]
    for c in coefficients[-2:0:-1]:
        out = (out + c) * x
    return out + coefficients[0]


_ACTIVATIONS: dict[str, Callable[[Value], Any]] = {
    "sigmoid": lambda z: 1.0 / (_exponential(-z) + 1.0),
    "tanh": lambda z: 1.0 - 2.0 / (_exponential(z * 2.0) + 1.0),
    "relu": lambda z: z.maximum(0.0),
    "sine": lambda z: _cosine(z / (2.0 * math.pi) - 0.25),
}
