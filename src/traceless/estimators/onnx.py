"""Models for other runtimes: ONNX.

A fitted `LSSVC` or `LSSVR` is a feature map, rounded to its grid, and one matrix product. The
graph has the operations of `traceless.features` in their order, in float64, so its features are
those of the model to the bit; the product is added up in the order of the runtime, so scores
differ by a few units in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from traceless.arithmetic import elementary
from traceless.arithmetic.integers import LIMB_BITS, Floats
from traceless.estimators.lssvm import LSSVC, LSSVR
from traceless.exceptions import UnsealableError
from traceless.features import (
    BoundMap,
    FeatureMap,
    Landmarks,
    Linear,
    Polynomial,
    RandomFourier,
    RandomLayer,
)
from traceless.features.grid import InputGrid
from traceless.files import container

__all__ = ["to_onnx"]

OPSET, IR_VERSION = 17, 8  # of 2022: old enough for every runtime in use


def to_onnx(estimator: Any, path: Any = None) -> Any:
    """The ONNX model of a fitted `LSSVC` or `LSSVR`.

    It takes ``X``, float64 of shape (n, n_features) with any n. A classifier gives ``label``
    (strings, int64 or bool) and ``scores``, the values of `decision_function`; a regressor
    ``prediction``. Rows are not checked: what `predict` refuses (NaN, values beyond the grid)
    has no meaningful answer, and features are those of the model to the bit for values up to
    2^41 steps of their grid.

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
    ['label', 'scores']
    """
    if type(estimator) not in (LSSVC, LSSVR):
        raise TypeError(
            f"to_onnx takes a fitted LSSVC or LSSVR, got {type(estimator).__name__}. A PathSVC "
            "depends on its rows, and has no ONNX form here."
        )
    check_is_fitted(estimator)
    weights, phi = estimator._weights()
    Z = weights.Z
    graph = _Graph()
    features = _features(graph, estimator._map(), phi)
    if phi.has_bias:
        scores = graph("Add", graph("MatMul", features, Z[:-1]), Z[-1])
    else:
        scores = graph("MatMul", features, Z)
    finish = _labelled if isinstance(estimator, LSSVC) else _predicted
    model = graph.model(finish(graph, estimator, scores, Z.shape[1]), phi.n_features)
    _sign(model, estimator)
    if path is not None:
        container.replace(path, [model.SerializeToString()])
    return model


class _Graph:
    """Nodes that are added by calling it: ``graph("Add", a, 1.0)`` gives the name of a + 1."""

    def __init__(self) -> None:
        try:
            import onnx
        except ImportError as error:
            raise ImportError(
                "ONNX models need the package onnx: pip install 'traceless[onnx]'"
            ) from error
        self._onnx = onnx
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def __call__(self, operation: str, *inputs: Any, **attributes: Any) -> str:
        out = f"v{len(self._nodes)}"
        names = [value if isinstance(value, str) else self._constant(value) for value in inputs]
        self._nodes.append(self._onnx.helper.make_node(operation, names, [out], **attributes))
        return out

    def _constant(self, value: Any) -> str:
        name = f"c{len(self._constants)}"
        array = np.asarray(value)
        if array.dtype.kind == "U":
            array = array.astype(object)  # what onnx knows as strings
        self._constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def model(self, outputs: Mapping[str, tuple[str, Any, list[Any]]], n_features: int) -> Any:
        """The model with these outputs: name, and the value, type and shape of each."""
        helper = self._onnx.helper
        infos = []
        for name, (value, dtype, shape) in outputs.items():
            self._nodes.append(helper.make_node("Identity", [value], [name]))
            kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
            infos.append(helper.make_tensor_value_info(name, kind, shape))
        double = self._onnx.TensorProto.DOUBLE
        X = helper.make_tensor_value_info("X", double, ["n", n_features])
        graph = helper.make_graph(self._nodes, "traceless", [X], infos, self._constants)
        opset = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opset, producer_name="traceless")
        model.ir_version = IR_VERSION
        self._onnx.checker.check_model(model)
        return model


# --- answers ---------------------------------------------------------------------------------


def _labelled(graph: _Graph, estimator: LSSVC, scores: str, width: int) -> dict[str, Any]:
    labels = _labels(estimator.classes_)
    if width == 1 and len(labels) == 2:
        scores = graph("Squeeze", scores, np.array([1]))
        best = graph("Cast", graph("Greater", scores, 0.0), to=_int64(graph))
        shape: list[Any] = ["n"]
    else:
        best = graph("ArgMax", scores, axis=1, keepdims=0)
        shape = ["n", width]
    label = graph("Gather", labels, best)
    kind = object if labels.dtype.kind == "U" else labels.dtype
    return {"label": (label, kind, ["n"]), "scores": (scores, np.float64, shape)}


def _labels(classes: NDArray[Any]) -> NDArray[Any]:
    if classes.dtype.kind not in "iUb":
        raise TypeError(
            f"ONNX has no labels of {classes.dtype}: use strings, booleans or integers below 2^63."
        )
    return classes.astype(np.int64) if classes.dtype.kind == "i" else classes


def _predicted(graph: _Graph, estimator: LSSVR, scores: str, width: int) -> dict[str, Any]:
    values = graph("Mul", scores, float(estimator.target_resolution))
    if width == 1:
        return {"prediction": (graph("Squeeze", values, np.array([1])), np.float64, ["n"])}
    return {"prediction": (values, np.float64, ["n", width])}


def _sign(model: Any, estimator: Any) -> None:
    """Say which model it is."""
    try:
        digest = estimator.digest()
    except UnsealableError:  # it has none
        return
    model.metadata_props.add(key="digest", value=digest)


def _int64(graph: _Graph) -> int:
    return int(graph._onnx.TensorProto.INT64)


# --- feature maps ----------------------------------------------------------------------------


def _features(graph: _Graph, feature_map: FeatureMap, phi: BoundMap) -> str:
    """The codes of X, without the constant one."""
    if type(feature_map) not in _MAPS:
        known = ", ".join(kind.__name__ for kind in _MAPS)
        raise TypeError(
            f"{type(feature_map).__name__} has no ONNX form: only {known} are known here."
        )
    encode: Any = phi.encode
    inner = encode.args[0] if phi.has_bias else encode
    return _MAPS[type(feature_map)](graph, feature_map, phi, inner)


def _linear(graph: _Graph, feature_map: Any, phi: BoundMap, encode: Any) -> str:  # noqa: ARG001
    return graph("Round", graph("Mul", "X", encode.args[0]))


def _polynomial(graph: _Graph, feature_map: Polynomial, phi: BoundMap, encode: Any) -> str:
    parts = []
    for _, several in groupby(feature_map.monomials(phi.n_features), lambda one: len(one[0])):
        columns, scales = map(np.array, zip(*several, strict=True))
        product = graph("Gather", "X", columns[:, 0], axis=1)
        for place in columns.T[1:]:
            product = graph("Mul", product, graph("Gather", "X", place, axis=1))
        parts.append(graph("Mul", product, scales))
    return graph("Round", graph("Mul", graph("Concat", *parts, axis=1), encode.args[1]))


def _fourier(graph: _Graph, feature_map: Any, phi: BoundMap, encode: Any) -> str:  # noqa: ARG001
    W, turn, scale = (encode.keywords[name] for name in ("W", "turn", "scale"))
    parts = []
    for shift, product in _projections(graph, W, encode.keywords["grid"]):
        turns = graph("Mul", product, 2.0**shift / turn)
        parts.append(graph("Sub", turns, graph("Round", turns)))
    turns = graph("Add", *parts)
    n_sines = len(phi.steps) - phi.has_bias - W.shape[1]
    some = graph("Slice", turns, np.array([0]), np.array([n_sines]), np.array([1]))
    each = np.broadcast_to(scale, W.shape[1] + n_sines)
    both = (
        _cosine(graph, turns, each[: W.shape[1]]),
        _cosine(graph, graph("Sub", some, 0.25), each[W.shape[1] :]),
    )
    return graph("Round", graph("Concat", *both, axis=1))


def _layer(graph: _Graph, feature_map: RandomLayer, phi: BoundMap, encode: Any) -> str:  # noqa: ARG001
    tables = encode.keywords
    low, high = (
        graph("Mul", product, 2.0**shift)
        for shift, product in _projections(graph, tables["W"], tables["grid"])
    )
    z = graph("Add", graph("Mul", graph("Add", low, high), tables["unit"]), tables["offset"])
    values = _ACTIVATIONS[feature_map.activation](graph, z)
    return graph("Round", graph("Mul", values, tables["scale"]))


def _landmarks(graph: _Graph, feature_map: Any, phi: BoundMap, encode: Any) -> str:  # noqa: ARG001
    tables = encode.keywords
    P = tables["P"]
    codes = _codes(graph, tables["grid"])
    norms = graph("ReduceSum", graph("Mul", codes, codes), np.array([1]), keepdims=1)
    distance = graph("Add", norms, (P * P).sum(axis=0))
    distance = graph("Sub", distance, graph("Mul", graph("MatMul", codes, P), 2.0))
    values = _exponential(graph, graph("Mul", distance, tables["rate"]))
    return graph("Round", graph("Mul", values, tables["scale"]))


_MAPS: dict[type, Callable[[_Graph, Any, BoundMap, Any], str]] = {
    Linear: _linear,
    Polynomial: _polynomial,
    RandomFourier: _fourier,
    RandomLayer: _layer,
    Landmarks: _landmarks,
}


# --- as in `projection` and `elementary` -------------------------------------------------------


def _codes(graph: _Graph, grid: InputGrid) -> str:
    """The rows in steps of the finest grid."""
    codes = graph("Round", graph("Mul", "X", grid.scale))
    return graph("Mul", codes, grid.stretch) if np.ndim(grid.stretch) else codes


def _projections(graph: _Graph, W: Floats, grid: InputGrid) -> list[tuple[int, str]]:
    """(shift, product) with Σ product · 2^shift = codes(X) W, exact up to 2^41 steps."""
    codes = _codes(graph, grid)
    high = graph("Round", graph("Mul", codes, 2.0**-LIMB_BITS))
    low = graph("Sub", codes, graph("Mul", high, 2.0**LIMB_BITS))
    return [(0, graph("MatMul", low, W)), (LIMB_BITS, graph("MatMul", high, W))]


def _cosine(graph: _Graph, turns: str, scale: Floats | float = 1.0) -> str:
    u = graph("Sub", turns, graph("Round", turns))
    u = graph("Sub", 0.25, graph("Abs", u))
    series = _horner(graph, [scale * c for c in elementary._SINE], graph("Mul", u, u))
    return graph("Mul", series, u)


def _exponential(graph: _Graph, x: str) -> str:
    x = graph("Clip", x, -700.0, 700.0)
    k = graph("Round", graph("Mul", x, elementary._LOG2_E))
    r = graph("Sub", x, graph("Mul", k, elementary._LN2_HIGH))
    r = graph("Sub", r, graph("Mul", k, elementary._LN2_LOW))
    place = graph("Cast", graph("Add", k, 1010.0), to=_int64(graph))
    power = graph("Gather", np.ldexp(1.0, np.arange(-1010, 1011)), place)
    value = graph("Mul", _horner(graph, elementary._EXP, r), power)
    return graph("Where", graph("LessOrEqual", x, -700.0), 0.0, value)


def _horner(graph: _Graph, coefficients: Sequence[Floats | float], x: str) -> str:
    out = graph("Mul", x, coefficients[-1])
    for c in coefficients[-2:0:-1]:
        out = graph("Mul", graph("Add", out, c), x)
    return graph("Add", out, coefficients[0])


def _sigmoid(graph: _Graph, z: str) -> str:
    return graph("Div", 1.0, graph("Add", _exponential(graph, graph("Neg", z)), 1.0))


def _tanh(graph: _Graph, z: str) -> str:
    e = _exponential(graph, graph("Mul", z, 2.0))
    return graph("Sub", 1.0, graph("Div", 2.0, graph("Add", e, 1.0)))


def _relu(graph: _Graph, z: str) -> str:
    return graph("Max", z, 0.0)


def _sine(graph: _Graph, z: str) -> str:
    return _cosine(graph, graph("Sub", graph("Div", z, 2.0 * math.pi), 0.25))


_ACTIVATIONS = {"sigmoid": _sigmoid, "tanh": _tanh, "relu": _relu, "sine": _sine}
