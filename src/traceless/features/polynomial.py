"""Monomials, scaled so that their inner product is the polynomial kernel."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement
from typing import Any, ClassVar

import numpy as np

from traceless.arithmetic.integers import Floats
from traceless.features.feature_map import TABLE, FeatureMap
from traceless.parameters import FLAG, NOT_NEGATIVE, POSITIVE, STEPS, check_parameters, whole


class Polynomial(FeatureMap):
    """Monomials whose inner product is the polynomial kernel.

    φ(x)·φ(z) = (γ x·z + c)^d, with the constant term c^d replaced by the bias.

    Parameters
    ----------
    degree : int, default=2
    gamma : float, default=1.0
    coef0 : float, default=1.0
        The constant c ≥ 0; with 0 only monomials of the full degree remain.
    bias : bool, default=True
    resolution : float, default=2**-14
    table : Table, optional
        What the columns of a frame mean; its features, without the constant one, are multiplied.

    Examples
    --------
    >>> Polynomial(degree=2).transform([[1.0, 2.0]]).round(3)
    array([[1.414, 2.828, 1.   , 2.828, 4.   , 1.   ]])
    """

    constraints: ClassVar = {
        "degree": whole("a positive integer", 1, 1024),
        "gamma": POSITIVE,
        "coef0": NOT_NEGATIVE,
        "bias": FLAG,
        "resolution": STEPS,
        "table": TABLE,
    }

    def __init__(
        self,
        degree: int = 2,
        gamma: float = 1.0,
        coef0: float = 1.0,
        bias: bool = True,
        resolution: float = 2**-14,
        table: Any = None,
    ) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.bias = bias
        self.resolution = resolution
        self.table = table

    def n_outputs(self, n_features: int) -> int:  # noqa: D102
        check_parameters(self)
        degree, width = int(self.degree), self.n_inputs(n_features)
        if self.coef0:
            return math.comb(width + degree, degree) - 1 + bool(self.bias)
        return math.comb(width + degree - 1, degree) + bool(self.bias)

    def values(self, X: Floats) -> Floats:  # noqa: D102
        X = X if self.table is None else self.table.values(X)
        each = self.monomials(X.shape[1])
        return np.stack([scale * math.prod(X[:, c] for c in columns) for columns, scale in each], 1)

    def columns_of(self, n_features: int) -> list[tuple[int, ...]]:  # noqa: D102
        # In lexicographic order, which the monomials without some columns keep; and the scale of
        # one depends on how often each column is in it, not on which column that is.
        made_of = [columns for columns, _ in self.monomials(self.n_inputs(n_features))]
        if self.table is None:
            return made_of
        of = [column for (column,) in self.table.columns_of(n_features)]
        return [tuple([of[feature] for feature in features]) for features in made_of]

    def feature_names(self, columns: Sequence[str]) -> list[str]:  # noqa: D102
        names = columns if self.table is None else self.table.feature_names(columns)
        each = self.monomials(len(names))
        return [_name(scale, [names[c] for c in which]) for which, scale in each]

    def monomials(self, n_features: int) -> Iterator[tuple[tuple[int, ...], float]]:
        """The columns that are multiplied, and by what, in the order of the features."""
        check_parameters(self)
        gamma, coef0, degree = float(self.gamma), float(self.coef0), int(self.degree)
        for k in range(1, degree + 1):
            for columns in combinations_with_replacement(range(n_features), k):
                scale = _monomial_scale(columns, degree, gamma, coef0)
                if scale:
                    yield columns, scale


def _monomial_scale(columns: tuple[int, ...], degree: int, gamma: float, coef0: float) -> float:
    """√(multinomial · γ^k · c^(d-k)): the coefficient of a monomial in (γ x·z + c)^d."""
    k = len(columns)
    ways = math.factorial(degree) // math.factorial(degree - k)
    for c in set(columns):
        ways //= math.factorial(columns.count(c))
    power = math.prod([gamma] * k + [coef0] * (degree - k))
    return math.sqrt(ways * power)


def _name(scale: float, factors: Sequence[str]) -> str:
    """A monomial in words, such as "1.414 age × height^2"."""
    powers = [name + (f"^{n}" if n > 1 else "") for name, n in Counter(factors).items()]
    return ("" if scale == 1.0 else f"{scale:.4g} ") + " × ".join(powers)
