"""What can be written to a file, and how its parameters are written.

Parameters become plain facts: numbers, strings, lists of them, arrays, numbers by label, and
feature maps and estimators of traceless. What would need code to come back (a function, a class
of somebody else) is refused here, not when it is read.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.files import container

Pieces = tuple[dict[str, Any], dict[str, NDArray[Any]]]  # facts, and tensors


class Savable:
    """Whatever has a `save`; `_pieces` says what goes into the file."""

    def save(self, path: Any) -> str:
        """Write everything to one file, all or nothing; `traceless.load` gives it back.

        Parameters
        ----------
        path : str or path
            Where to. A file that is there is replaced, once the new one is complete.

        Returns
        -------
        str
            The SHA-256 of the file.
        """
        facts, tensors = self._pieces()
        return container.write(path, _kind(self), facts, tensors)

    def _pieces(self) -> Pieces:
        raise NotImplementedError


def described(thing: Any) -> dict[str, Any]:
    """What an estimator or a feature map is, without what it has learned: JSON's types only."""
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
        return _number(float(value))
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
    what = "a function" if callable(value) else f"a {type(value).__name__}"
    raise TypeError(f"{what} cannot be written to a file, which holds no code.")


def _number(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError(f"{value} cannot be written to a file: a finite number is needed.")
    return value


def _label(label: Any) -> Any:
    if isinstance(label, bytes):
        return {"bytes": label.hex()}
    if isinstance(label, float) and label.is_integer():
        label = int(label)  # the same class
    fact = label if isinstance(label, str) else _fact(label)
    if not isinstance(fact, bool | int | str) or not (
        isinstance(fact, str) or -(2**63) <= fact < 2**64
    ):
        raise TypeError(f"the label {label!r} cannot be written to a file.")
    return fact
