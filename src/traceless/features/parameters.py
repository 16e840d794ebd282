"""Checks of parameters."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any


def count(name: str, value: Any) -> int:
    """`value` as a positive integer."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} must be a positive integer, got {value!r}.")
    return int(value)


def seed(value: Any) -> int:
    """`value` as a seed, which must be given so that others can build the same map."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
        raise ValueError(
            "random_state must be a non-negative integer: it is part of the feature map's "
            f"specification, so that others can build the same map; got {value!r}."
        )
    return int(value)


def positive(name: str, value: Any, zero: bool = False) -> float:
    """`value` as a finite number above zero (or, if asked for, not below)."""
    real = isinstance(value, Real) and math.isfinite(value) and not isinstance(value, bool)
    if not real or value < 0 or (value == 0 and not zero):
        kind = "non-negative" if zero else "positive"
        raise ValueError(f"{name} must be a {kind} finite number, got {value!r}.")
    return float(value)
