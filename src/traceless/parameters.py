"""The allowed values of each parameter, declared once on its class.

    constraints = {"rho": POSITIVE, "solver": choice("cholesky", "woodbury"), ...}

A declaration is a phrase and a test. It is used by the class, which checks its parameters
when they are used (scikit-learn's constructors check nothing), and the loader, which checks what
a file says. What depends on the data, such as one resolution for each column, is checked later.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import repeat
from numbers import Integral, Real
from operator import call
from typing import Any

import numpy as np

Test = Callable[[Any], bool]


@dataclass(frozen=True)
class Constraint:
    """The allowed values of a parameter; ``a | b`` allows either.

    Attributes
    ----------
    said : str
        In words: "rho must be a positive finite number".
    tests : functions of a value that is not None, a string or a bool
        One of them must be True.
    constants : None, strings and bools that are allowed
    error : type
        What is raised.
    """

    said: str
    tests: tuple[Test, ...] = ()
    constants: tuple[str | bool | None, ...] = ()
    error: type[Exception] = ValueError

    def __or__(self, other: Constraint) -> Constraint:
        first = self.said.replace(" or ", ", ")
        return Constraint(
            f"{first} or {other.said}",
            self.tests + other.tests,
            self.constants + other.constants,
            other.error,
        )


def number(said: str, low: float, above: bool = False) -> Constraint:
    """A finite number from `low` on, or above it."""

    def test(value: Any) -> bool:
        real = isinstance(value, Real) and not isinstance(value, np.bool_)
        return real and math.isfinite(value) and (value > low if above else value >= low)

    return Constraint(said, (test,))


def whole(said: str, low: int, high: int = 2**62) -> Constraint:
    """A whole number from `low` to `high`."""
    return Constraint(
        said, (lambda value: isinstance(value, Integral) and low <= int(value) <= high,)
    )


def choice(*names: str) -> Constraint:
    """One of some strings."""
    said = " or ".join([", ".join(map(repr, names[:-1])), repr(names[-1])][len(names) == 1 :])
    return Constraint(said, constants=names)


def instance(said: str, *types: type, error: type[Exception] = ValueError) -> Constraint:
    """An object of one of some types."""
    return Constraint(said, (lambda value: isinstance(value, types),), error=error)


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
FLAG = replace(instance("True or False", np.bool_, Integral), constants=(True, False))
NOTHING = Constraint("None", constants=(None,))
JOBS = NOTHING | whole("a number of processes", -(2**20), 2**20)
ARRAY = instance("an array of numbers", list, tuple, np.ndarray)
STEPS = instance("a power of two, or one for each column", Real, list, tuple, np.ndarray)
BY_LABEL = instance("a dict of labels", Mapping)


def check_parameters(thing: Any, *names: str) -> None:
    """Raise ValueError if a parameter, or one of these names, is not what its class declares."""
    for name in names or thing.constraints:
        constraint, value = thing.constraints[name], getattr(thing, name)
        if value is None or isinstance(value, (str, bool)):
            good = value in constraint.constants
        else:
            good = any(map(call, constraint.tests, repeat(value)))
        if not good:
            raise constraint.error(f"{name} must be {constraint.said}, got {value!r}.")


def positive(name: str, value: Any, zero: bool = False) -> float:
    """`value` as a finite number above zero; with `zero`, zero is allowed too."""
    constraint = NOT_NEGATIVE if zero else POSITIVE
    if isinstance(value, bool) or not constraint.tests[0](value):
        raise ValueError(f"{name} must be {constraint.said}, got {value!r}.")
    return float(value)
