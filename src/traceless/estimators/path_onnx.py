"""The path family in ONNX: kernel values with the support vectors, and one matrix product.

Everything is float64 (ONNX's own operators of support vector machines are float32), and close to
what the estimators say, not to the bit: distances are computed from norms and products of rows
less the mean of the support vectors, and sums are added up in the order of the runtime.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from traceless.arithmetic.integers import Floats
from traceless.estimators.onnx_graph import Value, concat, known_labels
from traceless.hinge.machines import Classifier, Regressor
from traceless.hinge.probabilities import LEAST

if TYPE_CHECKING:
    from traceless.estimators.path_machine import PathMachine
    from traceless.hinge.model import HingeModel


def path_outputs(X: Value, estimator: Any) -> dict[str, Any]:
    """What an estimator of the path family answers: for each name a value, its type and shape."""
    model = estimator._current()
    values = _values(X, model, estimator)
    if isinstance(model.settings.machine, Classifier):
        return _labelled(values, model, estimator)
    values = values.squeeze(np.array([1]))
    if isinstance(model.settings.machine, Regressor):
        return {"prediction": (values, np.float64, ["n"])}
    inside = (values >= 0.0).cast(to=X.graph.int64)
    label = inside * np.array(2) - np.array(1)
    return {"label": (label, np.int64, ["n"]), "scores": (values, np.float64, ["n"])}


def _values(X: Value, model: HingeModel, estimator: PathMachine) -> Any:
    """One column for each problem, positive for the second of two classes."""
    problems = [(p.canonical(), p.scale, p.offset) for p in model.problems.values()]
    if not problems:  # one class only
        return X @ np.zeros((estimator.n_features_in_, 1)) + 1.0
    constants = np.array([scale * s.constant + offset for s, scale, offset in problems])
    kernel = model.kernel
    if kernel.name == "callable":
        raise TypeError("A kernel that is a function has no ONNX form: use one with a name.")
    if kernel.name == "linear":
        W = np.column_stack([scale * np.asarray(s.weights) for s, scale, _ in problems])
        return (X if kernel.centre is None else X - kernel.centre) @ W + constants
    support = np.unique(np.concatenate([s.support for s, *_ in problems]), axis=0)
    place = {row.tobytes(): k for k, row in enumerate(support)}
    coefficients = np.zeros((len(support), len(problems)))
    for column, (s, scale, _) in zip(coefficients.T, problems, strict=True):
        column[[place[row.tobytes()] for row in s.support]] = scale * s.coefficients
    return _kernel_values(X, model, support) @ coefficients + constants


def _kernel_values(X: Value, model: HingeModel, support: Floats) -> Any:
    kernel = model.kernel
    if kernel.name == "precomputed":  # the columns of X are points held, rows are their numbers
        held = model.rows.X[:, 0].tolist()
        return X.columns(np.array([held.index(s) for s in support[:, 0].tolist()]), axis=1)
    if kernel.name in ("poly", "sigmoid"):
        # not (X @ support.T) * gamma: onnxruntime makes one node of it, with gamma in float32
        base: Any = X @ np.ascontiguousarray(kernel.gamma * support.T) + kernel.coef0
        if kernel.name == "sigmoid":
            return X.graph.node("Tanh", base)
        out = base if kernel.degree else base * 0.0 + 1.0
        for _ in range(kernel.degree - 1):
            out = out * base
        return out
    middle = support.mean(axis=0)
    X, support = X - middle, support - middle
    norms = (X * X).sum(np.array([1]), keepdims=1) + (support**2).sum(axis=1)
    distances = norms - X @ np.ascontiguousarray(2.0 * support.T)
    return (distances.maximum(0.0) * -float(kernel.gamma)).exp()


def _labelled(values: Value, model: HingeModel, estimator: Any) -> dict[str, Any]:
    labels, kind = known_labels(estimator.classes_)
    n, pairwise, scores = len(labels), estimator.strategy == "ovo", values
    shape: list[Any] = ["n", len(model.problems)]
    if n <= 2:
        scores, shape = values.squeeze(np.array([1])), ["n"]
        best = (scores >= 0.0).cast(to=values.graph.int64) * np.array(n - 1)
    elif not pairwise:
        best = scores.argmax(axis=1, keepdims=0)
    else:
        pairs = -values  # positive for the first
        by_class, votes = _by_class(pairs, n)
        best = (by_class if estimator.break_ties else votes).argmax(axis=1, keepdims=0)
        ovr = estimator.decision_function_shape == "ovr"
        scores, shape = (by_class, ["n", n]) if ovr else (pairs, shape)
    out = {"label": (best.taken_from(labels), kind, ["n"]), "scores": (scores, np.float64, shape)}
    if estimator.probability:
        p = _probabilities(values, model, n, pairwise)
        out["probabilities"] = (p, np.float64, ["n", n])
    return out


def _by_class(pairs: Any, n: int) -> tuple[Any, Any]:
    """Decision values of classes, and their votes, as in `traceless.hinge.multiclass`."""
    first, second = _members(n)
    double = pairs.graph.double
    won, ahead = (pairs > 0.0).cast(to=double), (pairs >= 0.0).cast(to=double)
    lost = (1.0 - ahead) @ first + ahead @ second
    total = pairs @ (first - second)
    return total / (abs(total) * 3.0 + 3.0) - lost + (n - 1.0), won @ first + (1.0 - won) @ second


def _members(n: int) -> tuple[Floats, Floats]:
    """Which class is the first, and which the second, of each pair: one row for each."""
    both = np.eye(n)[np.array(list(combinations(range(n), 2)))]
    return both[:, 0], both[:, 1]


def _probabilities(values: Any, model: HingeModel, n: int, pairwise: bool) -> Any:
    """As in `traceless.hinge.probabilities`."""
    if n == 1:
        return values
    a, b = np.array(model.sigmoids).T
    z = values * a + b
    second, first = (1.0 / (one.exp() + 1.0) for one in (z, -z))
    if n == 2:
        return concat([first, second])
    p = _coupled(first, second, n) if pairwise else second
    p = p.maximum(float(np.finfo(np.float64).tiny))
    return p / p.sum(np.array([1]), keepdims=1)


def _coupled(first: Any, second: Any, n: int) -> Any:
    """Gauss and Jordan's elimination on an n × (n + 1) matrix for each row."""
    first, second = (r.clip(LEAST, 1.0 - LEAST) for r in (first, second))
    i, j = _members(n)

    def placed(x: Floats, y: Floats) -> Floats:
        """Where a number of each pair goes in Q + 11ᵀ, which has the right side behind it."""
        places = x[:, :, None] * y[:, None, :]
        return np.pad(places, ((0, 0), (0, 0), (0, 1))).reshape(len(x), -1)

    A = (second * second) @ placed(i, i) + (first * first) @ placed(j, j) + 1.0
    A = A - (first * second) @ (placed(i, j) + placed(j, i))
    A = A.reshape(np.array([0, n, n + 1]))
    for c in range(n):
        here = np.array([c])
        row = A.columns(here, axis=1)
        row = row / row.columns(here, axis=2)
        A = A - (A.columns(here, axis=2) - np.eye(n)[:, here]) * row
    return A.columns(np.array(n), axis=2)
