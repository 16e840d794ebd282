"""From the description of an estimator to the estimator: its parameters, and nothing learned."""

from __future__ import annotations

import binascii
import math
from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from traceless.arithmetic.integers import Floats
from traceless.estimators.lssvm import LSSVC, LSSVR
from traceless.estimators.path_svc import PathSVC
from traceless.estimators.sliding_window import SlidingWindow
from traceless.features import Landmarks, Linear, Polynomial, RandomFourier, RandomLayer
from traceless.files import facts

Check = Callable[[Any], Any]
LATER = {"guard", "fingerprint"}  # parameters that descriptions of version 1 do not have


def from_description(description: Mapping[str, Any]) -> Any:
    """The estimator that `saving.described` described; it has learned nothing.

    Parameters
    ----------
    description : mapping
        In JSON's types: ``kind`` and ``parameters``.
    """
    return _described(description, _ESTIMATORS)


def _described(description: Any, kinds: Mapping[str, tuple[Any, dict[str, Check]]]) -> Any:
    said = facts.named(description, {"kind", "parameters"})
    if facts.text(said["kind"]) not in kinds:
        raise ValueError(f"{said['kind']!r} is none of {', '.join(kinds)}.")
    make, checks = kinds[said["kind"]]
    parameters = facts.named(said["parameters"], set(checks) - LATER, LATER & set(checks))
    return make(**{name: checks[name](value) for name, value in parameters.items()})


# --- parameters ------------------------------------------------------------------------------
# Types are checked here, and sizes where they matter; the rest where parameters always are.


def _or(*checks: Check) -> Check:
    """The first check that passes."""

    def check(value: Any) -> Any:
        for one in checks[:-1]:
            try:
                return one(value)
            except ValueError:
                pass
        return checks[-1](value)

    return check


def _none(value: Any) -> None:
    if value is not None:
        raise ValueError("expected null.")


def _number(value: Any) -> int | float:
    facts.number(value)
    out: int | float = value  # 1 stays 1, and 1.0 stays 1.0
    return out


def _list(value: Any) -> list[int | float]:
    facts.numbers(value)
    return list(value)


def _rows(value: Any) -> list[list[int | float]]:
    if not isinstance(value, list):
        raise ValueError("expected rows of numbers.")
    return [_list(row) for row in value]


def _array(value: Any) -> Floats:
    said = facts.named(value, {"kind", "shape", "float64"})
    try:
        raw = b64decode(facts.text(said["float64"]), validate=True)
    except binascii.Error:
        raise ValueError("an array is not in base64.") from None
    shape = [facts.whole(int(n)) for n in facts.numbers(said["shape"], 0.0)]
    if (
        said["kind"] != "array"
        or len(shape) > 2
        or 0 in shape[1:]  # behind which any number of rows takes no bytes
        or 8 * math.prod(shape) != len(raw)
    ):
        raise ValueError(f"{len(raw)} bytes are no array of shape {facts.short(shape)}.")
    return np.frombuffer(raw, dtype="<f8").reshape(shape).astype(np.float64)


def _by_label(value: Any) -> dict[Any, int | float]:
    said = facts.named(value, {"kind", "pairs"})
    if said["kind"] != "by label" or not isinstance(said["pairs"], list):
        raise ValueError("expected numbers by label.")
    out = {facts.label(label): _number(weight) for label, weight in said["pairs"]}
    if len(out) < len(said["pairs"]):
        raise ValueError("a label has two weights.")
    return out


def _feature_map(value: Any) -> Any:
    return _described(value, _MAPS)


def _estimator(value: Any) -> Any:
    return _described(value, {k: v for k, v in _ESTIMATORS.items() if k != "SlidingWindow"})


def _count(value: Any) -> int:
    return facts.whole(value, 1)


def _degree(value: Any) -> int:
    return facts.whole(value, 0, 1024)


def _seed(value: Any) -> int:
    return facts.whole(value, 0, 10**300)


def _jobs(value: Any) -> int:
    return facts.whole(value, -(2**20), 2**20)


_text, _truth = facts.text, facts.truth
_yes: Check = _or(facts.truth, facts.whole)
_steps: Check = _or(_number, _list, _array)  # one for all columns, or one each
_weights: Check = _or(_none, facts.text, _by_label)
_MAPS: dict[str, tuple[Any, dict[str, Check]]] = {
    "Linear": (Linear, {"bias": _yes, "resolution": _steps}),
    "Polynomial": (
        Polynomial,
        {
            "degree": _degree,
            "gamma": _number,
            "coef0": _number,
            "bias": _yes,
            "resolution": _steps,
        },
    ),
    "RandomFourier": (
        RandomFourier,
        {
            "n_components": _count,
            "gamma": _number,
            "random_state": _seed,
            "bias": _yes,
            "resolution": _steps,
            "input_resolution": _steps,
        },
    ),
    "RandomLayer": (
        RandomLayer,
        {
            "n_units": _count,
            "activation": _text,
            "scale": _number,
            "random_state": _seed,
            "bias": _yes,
            "resolution": _steps,
            "input_resolution": _steps,
        },
    ),
    "Landmarks": (
        Landmarks,
        {
            "points": _or(_count, _rows, _array),
            "gamma": _number,
            "random_state": _seed,
            "bias": _yes,
            "resolution": _steps,
            "input_resolution": _steps,
        },
    ),
}
_ESTIMATORS: dict[str, tuple[Any, dict[str, Check]]] = {
    "LSSVC": (
        LSSVC,
        {
            "feature_map": _or(_none, _feature_map),
            "rho": _number,
            "solver": _text,
            "class_weight": _weights,
            "weighting": _text,
            "classwise": _or(_none, _truth),
            "guard": _yes,
            "fingerprint": _yes,
            "n_jobs": _or(_none, _jobs),
            "verbose": _yes,
        },
    ),
    "LSSVR": (
        LSSVR,
        {
            "feature_map": _or(_none, _feature_map),
            "rho": _number,
            "target_resolution": _number,
            "solver": _text,
            "guard": _yes,
            "fingerprint": _yes,
            "n_jobs": _or(_none, _jobs),
            "verbose": _yes,
        },
    ),
    "PathSVC": (
        PathSVC,
        {
            "C": _number,
            "kernel": _text,
            "gamma": _or(_text, _number),
            "degree": _degree,
            "coef0": _number,
            "class_weight": _weights,
            "decision_function_shape": _text,
            "break_ties": _yes,
            "strategy": _text,
            "tol": _number,
            "cache_size": _number,
            "verbose": _yes,
        },
    ),
    "SlidingWindow": (SlidingWindow, {"estimator": _estimator, "size": _count}),
}
