"""What each parameter may be, declared once on its class.

    constraints = {"rho": POSITIVE, "solver": choice("cholesky", "woodbury"), ...}

A declaration is a phrase and a test. It serves the class itself, which checks its parameters
when they are used (scikit-learn's constructors check nothing), and the loader, which checks what
a file says. What depends on the data, such as one resolution for each column, is checked there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Constraint:
    """What a parameter may be, in words and as a test; ``a | b`` is either."""

    said: str
    accepts: Callable[[Any], bool]

    def __or__(self, other: Constraint) -> Constraint:
        first = self.said.replace(" or ", ", ")
        return Constraint(
            f"{first} or {other.said}", lambda value: self.accepts(value) or other.accepts(value)
        )

    def check(self, name: str, value: Any) -> None:
        """Raise ValueError if the parameter of this name may not have this value."""
        if not self.accepts(value):
            raise ValueError(f"{name} must be {self.said}, got {value!r}.")


def number(said: str, low: float, above: bool = False) -> Constraint:
    """A finite number from `low` on, or above it."""

    def accepts(value: Any) -> bool:
        real = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
        return real and math.isfinite(value) and (value > low if above else value >= low)

    return Constraint(said, accepts)


def whole(said: str, low: int, high: int = 2**62) -> Constraint:
    """A whole number from `low` to `high`."""
    return Constraint(
        said,
        lambda value: (
            isinstance(value, Integral)
            and not isinstance(value, bool)
            and low <= int(value) <= high
        ),
    )


def choice(*names: str) -> Constraint:
    """One of some strings."""
    said = ", ".join(map(repr, names[:-1])) + f" or {names[-1]!r}"
    return Constraint(said, lambda value: isinstance(value, str) and value in names)


POSITIVE = number("a positive finite number", 0.0, above=True)
NOT_NEGATIVE = number("a non-negative finite number", 0.0)
FINITE = number("a finite number", -math.inf)
COUNT = whole("a positive integer", 1)
SEED = whole(
    "a non-negative integer (it is part of the feature map's specification, so that others can "
    "build the same map)",
    0,
    10**300,
)
FLAG = Constraint("True or False", lambda value: isinstance(value, bool | np.bool_ | Integral))
NOTHING = Constraint("None", lambda value: value is None)
JOBS = NOTHING | whole("a number of processes", -(2**20), 2**20)
STEPS = FINITE | Constraint(
    "one for each column", lambda value: isinstance(value, list | tuple | np.ndarray)
)
BY_LABEL = Constraint("a dict of labels", lambda value: isinstance(value, Mapping))
FUNCTION = Constraint("a callable", callable)


def check_parameters(thing: Any) -> None:
    """Raise ValueError if a parameter is not what its class declares."""
    for name, constraint in thing.constraints.items():
        constraint.check(name, getattr(thing, name))


def positive(name: str, value: Any, zero: bool = False) -> float:
    """`value` as a finite number above zero (or, if asked for, not below)."""
    (NOT_NEGATIVE if zero else POSITIVE).check(name, value)
    return float(value)
