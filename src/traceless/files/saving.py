"""Parameters in a file: how they are written as facts, and how they are read back.

Parameters become plain facts: numbers, strings, lists of them, arrays, numbers by label, and
feature maps and estimators of traceless. What would need code to be restored (a function, a class
from elsewhere) is refused when it is written.
"""

from __future__ import annotations

import math
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.files import container, facts
from traceless.parameters import check_parameters

_LARGEST = 10**300  # whole number of a parameter: a seed may be that large
Kinds = dict[str, Any]  # classes by name
Pieces = tuple[dict[str, Any], dict[str, NDArray[Any]]]  # facts, and tensors


class Savable:
    """Base of all classes with a `save`; `_pieces` gives the facts and tensors of the file."""

    def save(self, path: Any) -> str:
        """Write everything to one file, all or nothing; `traceless.load` restores it.

        Parameters
        ----------
        path : str or path
            An existing file is replaced when the new one is complete.

        Returns
        -------
        str
            The SHA-256 of the file.
        """
        return save(self, path)

    def _pieces(self) -> Pieces:
        raise NotImplementedError


def save(thing: Savable, path: Any, like: container.Permissions | None = None) -> str:
    """Write a thing to a file, with given permissions; see `container.write`."""
    kind, (said, tensors) = _kind(thing), thing._pieces()
    return container.write(path, kind, said, tensors, like)


def described(thing: Any) -> dict[str, Any]:
    """Kind and parameters of an estimator or a feature map, in JSON's types."""
    return {"kind": _kind(thing), "parameters": parameters(thing)}


def parameters(thing: Any) -> dict[str, Any]:
    """The parameters of an estimator or a feature map as facts."""
    out = {}
    for name, value in thing.get_params(deep=False).items():
        try:
            out[name] = _fact(value)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{name} of {type(thing).__name__}: {error}") from None
    return out


def labels(several: Iterable[Any]) -> list[Any]:
    """Labels as facts."""
    return [_label(label) for label in several]


def names(estimator: Any) -> list[str] | None:
    """The column names that an estimator knows."""
    found = getattr(estimator, "feature_names_in_", None)
    return None if found is None else [str(name) for name in found]


def _kind(thing: Any) -> str:
    ours = type(thing)
    if ours.__module__.split(".")[0] != "traceless":
        raise TypeError(
            f"{ours.__name__} cannot be written to a file, which holds no code: only estimators "
            "and feature maps of traceless can. Save the knowledge_ of a model instead."
        )
    return ours.__name__


def _fact(value: Any) -> Any:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        if not math.isfinite(value):
            raise ValueError(f"{value} cannot be written to a file: a finite number is needed.")
        return float(value)
    if isinstance(value, list | tuple):
        return [_fact(v) for v in value]
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value, dtype="<f8")
        text = b64encode(array.tobytes()).decode()
        return {"kind": "array", "shape": list(value.shape), "float64": text}
    if isinstance(value, Mapping):
        pairs = [[_label(label), _fact(v)] for label, v in value.items()]
        return {"kind": "by label", "pairs": pairs}
    if hasattr(value, "get_params") and not isinstance(value, type):
        return described(value)
    if is_dataclass(value) and hasattr(value, "facts"):  # a column of a table
        return {"kind": "column", "facts": value.facts()}
    what = "a function" if callable(value) else f"a {type(value).__name__}"
    raise TypeError(f"{what} cannot be written to a file, which holds no code.")


def _label(label: Any) -> Any:
    if isinstance(label, bytes):
        return {"bytes": label.hex()}
    if isinstance(label, float) and label.is_integer():
        label = int(label)  # the same class
    fact = _fact(label)
    if isinstance(fact, str) or (isinstance(fact, int) and -(2**63) <= fact < 2**64):
        return fact
    raise TypeError(f"the label {label!r} cannot be written to a file.")


# --- reading ---------------------------------------------------------------------------------


def made(kind: str, parameters: dict[str, Any], kinds: Kinds, inside: Kinds) -> Any:
    """The estimator or feature map that `described` described; it has learned nothing.

    Nothing is made but numbers, arrays and objects of these kinds. Whether a parameter may have
    its value is for the `constraints` of its class to say.

    Parameters
    ----------
    kind : str
    parameters : dict
        In JSON's types.
    kinds, inside : mappings of names to classes
        What may be made, and what else may be a parameter of it.
    """
    if kind not in kinds:
        raise ValueError(f"{facts.short(kind)} is none of {', '.join(kinds)}.")
    values = dict(parameters)
    for name, fact in values.items():
        if isinstance(fact, int) and abs(fact) > _LARGEST:
            raise ValueError(f"{name} is a number of too many digits.")
        if isinstance(fact, list):
            values[name] = [_one_of_several(value, kinds) for value in fact]
        elif isinstance(fact, dict) and fact["kind"] == "array":
            values[name] = _array(fact)
        elif isinstance(fact, dict) and fact["kind"] == "by label":
            labelled, weights = zip(*fact["pairs"], strict=True) if fact["pairs"] else ((), ())
            for weight in weights:
                if not isinstance(weight, bool):
                    facts.number(weight)
            values[name] = dict(zip(labels_from(labelled), weights, strict=True))
        elif isinstance(fact, dict):
            others = {k: v for k, v in kinds.items() if k != kind} | inside  # no window in a window
            values[name] = made(str(fact["kind"]), fact["parameters"], others, {})
    thing = kinds[kind](**values)
    check_parameters(thing)
    return thing


def _one_of_several(fact: Any, kinds: Kinds) -> Any:
    """A number of a list, or a column of a table."""
    if isinstance(fact, dict) and fact["kind"] == "column":
        return kinds["Table"].column(fact["facts"])
    return facts.number(fact)


def labels_from(several: Iterable[Any]) -> tuple[Any, ...]:
    """Labels from their facts."""
    return tuple([bytes.fromhex(v["bytes"]) if isinstance(v, dict) else v for v in several])


def _array(fact: dict[str, Any]) -> NDArray[np.float64]:
    raw, shape = b64decode(fact["float64"], validate=True), fact["shape"]
    if not {*map(type, shape)} <= {int} or len(shape) > 1 or 8 * math.prod(shape) != len(raw):
        raise ValueError(f"{len(raw)} bytes are no array of shape {facts.short(shape)}.")
    return np.frombuffer(raw, dtype="<f8").reshape(shape).astype(np.float64)
