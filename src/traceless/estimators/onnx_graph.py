"""An ONNX graph, written as arithmetic: ``a + 1.0`` adds the node of a sum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

OPSET, IR_VERSION = 17, 8  # of 2022: old enough for every runtime in use


class Graph:
    """The nodes and constants of an ONNX graph."""

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
        self.int64, self.double = int(onnx.TensorProto.INT64), int(onnx.TensorProto.DOUBLE)

    def node(self, operation: str, *inputs: Any, unused: int = 0, **attributes: Any) -> Value:
        """The value of an operation on values and constants, the first of those it has."""
        out = f"v{len(self._nodes)}"
        names = [v.name if isinstance(v, Value) else self._constant(v) for v in inputs]
        outputs = [out, *(f"{out}.{k}" for k in range(unused))]
        self._nodes.append(self._onnx.helper.make_node(operation, names, outputs, **attributes))
        return Value(self, out)

    def _constant(self, value: Any) -> str:
        name = f"c{len(self._constants)}"
        array = np.asarray(value)
        if array.dtype.kind == "U":
            array = array.astype(object)  # the type that onnx takes for strings
        self._constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def model(self, outputs: Mapping[str, tuple[Value, Any, list[Any]]], n_features: int) -> Any:
        """The model with these outputs: name, and the value, type and shape of each."""
        helper = self._onnx.helper
        infos = []
        for name, (value, dtype, shape) in outputs.items():
            self._nodes.append(helper.make_node("Identity", [value.name], [name]))
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


def _operation(name: str) -> Any:
    return lambda value, *others, **attributes: value.graph.node(name, value, *others, **attributes)


def _reflected(name: str) -> Any:
    return lambda value, other: value.graph.node(name, other, value)


class Value:
    """A value in the graph: ``a + 1.0`` adds the node of a sum."""

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name = graph, name

    __add__, __sub__, __mul__ = map(_operation, ("Add", "Sub", "Mul"))
    __matmul__, __gt__, __le__ = map(_operation, ("MatMul", "Greater", "LessOrEqual"))
    __rsub__, __rtruediv__ = map(_reflected, ("Sub", "Div"))
    __truediv__, __neg__, __abs__, __round__ = map(_operation, ("Div", "Neg", "Abs", "Round"))
    cast, clip, columns = map(_operation, ("Cast", "Clip", "Gather"))
    concat, maximum, squeeze = map(_operation, ("Concat", "Max", "Squeeze"))
    argmax, sum, some = map(_operation, ("ArgMax", "ReduceSum", "Slice"))
    where, taken_from = _operation("Where"), _reflected("Gather")
    log, softmax, equal = map(_operation, ("Log", "Softmax", "Equal"))
    minimum, largest, cumulated = map(_operation, ("Min", "ReduceMax", "CumSum"))
    sorted_down = _operation("TopK")


def concat(parts: list[Value]) -> Any:
    """The columns of several values."""
    return parts[0].concat(*parts[1:], axis=1)


def known_labels(labels: NDArray[Any]) -> tuple[NDArray[Any], Any]:
    """Labels in a type that ONNX has, and that type."""
    if labels.dtype.kind not in "iUb":
        raise TypeError(
            f"ONNX has no labels of {labels.dtype}: use strings, booleans or integers below 2^63."
        )
    if labels.dtype.kind == "i":
        labels = labels.astype(np.int64)
    return labels, object if labels.dtype.kind == "U" else labels.dtype
