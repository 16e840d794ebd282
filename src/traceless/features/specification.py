"""What fixes a feature map, in JSON's types, and its digest."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

PROBE = "codes of the probe rows"  # in a specification: no parameter can have such a name


def specification_digest(specification: Mapping[str, Any]) -> str:
    """SHA-256 of a specification as canonical JSON."""
    text = json.dumps(specification, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def plain(value: Any) -> Any:
    """A parameter in JSON's types; an array as the hash of its values."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        if not math.isfinite(number):
            return str(number)  # JSON has no such numbers, and NaN would not equal itself
        return int(number) if number.is_integer() else number
    if isinstance(value, np.ndarray | list | tuple):
        array = np.asarray(value, dtype="<f8", order="C")
        return {"shape": list(array.shape), "sha256": hashlib.sha256(array.tobytes()).hexdigest()}
    if hasattr(value, "specification"):  # of a map inside a map
        return value.specification()
    raise TypeError(
        f"A feature map's parameters must be numbers, strings or arrays of them, so that "
        f"they can be part of its specification; got {type(value).__name__}."
    )
