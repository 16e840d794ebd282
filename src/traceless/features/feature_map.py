"""What every feature map is: a specification, and a way from rows to integer codes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array

from traceless.exact import Floats
from traceless.features.grid import check_range, encode_linear, grid_steps

Encoder = Callable[[Floats, Floats], None]


@dataclass(frozen=True)
class BoundMap:
    """A feature map for a given number of columns, with all its tables made.

    Attributes
    ----------
    specification : dict
        What fixes the map; see `FeatureMap.specification`.
    n_features : int
        Number of columns of the rows it takes.
    steps : ndarray of shape (n_outputs,)
        Value of one step of each feature: ``φ(x) = steps * codes(x)``.
    has_bias : bool
        Whether the last feature is the constant 1.
    encode : callable
        ``encode(X, out)`` writes the codes of the rows into `out`. Codes that are not
        finite or beyond 2^53 are left to `check`.
    """

    specification: Mapping[str, Any]
    n_features: int
    steps: Floats
    has_bias: bool
    encode: Encoder

    def describe(self) -> dict[str, Any]:
        """The specification together with the number of columns."""
        return {"features": dict(self.specification), "n_features": self.n_features}

    def codes(self, X: Floats) -> Floats:
        """The integer codes of some rows, as float64."""
        out = np.empty((len(X), len(self.steps)))
        self.encode(X, out)
        self.check(X, out)
        return out

    def check(self, X: Floats, codes: Floats) -> None:
        """Raise `RangeError` if codes are not finite or too large to be held exactly."""
        check_range(codes, self.steps, X, "Feature")


class Later:
    """An encoder whose tables are made when the first row comes.

    Tables are as large as a row times the number of features, whatever a file says of either:
    so they wait for somebody who has such rows. Copies for other processes come with them.
    """

    def __init__(self, make: Callable[[], partial[None]]) -> None:
        self._make = make
        self._encode: partial[None] | None = None

    @property
    def keywords(self) -> dict[str, Any]:
        """The tables, by name."""
        return self._made().keywords

    def __call__(self, X: Floats, out: Floats) -> None:  # noqa: D102
        self._made()(X, out)

    def _made(self) -> partial[None]:
        if self._encode is None:
            self._encode = self._make()
        return self._encode

    def __getstate__(self) -> dict[str, Any]:
        self._made()
        return self.__dict__


class FeatureMap(BaseEstimator):
    """Base class: rounds ``values(X)`` to the grid. See the module's text.

    Examples
    --------
    >>> import numpy as np
    >>> class Squares(FeatureMap):
    ...     def __init__(self, bias=True, resolution=2**-14):
    ...         self.bias = bias
    ...         self.resolution = resolution
    ...     def values(self, X):
    ...         return X * X
    >>> Squares().transform(np.array([[0.5, 3.0]]))
    array([[0.25, 9.  , 1.  ]])
    """

    bias: bool
    resolution: Any
    version = 1  # to be raised whenever the same parameters come to give other codes

    def values(self, X: Floats) -> Floats:
        """Features of some rows, before rounding; each row by itself."""
        raise NotImplementedError(f"{type(self).__name__} must define values(X)")

    def bind(self, n_features: int) -> BoundMap:
        """Check the parameters and prepare the map for rows of `n_features` columns."""
        width = self.values(np.zeros((1, n_features))).shape[1]
        steps = grid_steps(self.resolution, width)
        return self._bound(n_features, steps, partial(_encode_values, self.values, 1.0 / steps))

    def n_outputs(self, n_features: int) -> int:
        """Number of features for rows of `n_features` columns, the constant one included.

        Maps of this package count them without making anything.
        """
        return len(self.bind(n_features).steps)

    def input_steps(self, n_features: int) -> Floats:
        """The grid that the input columns are rounded to, one step per column."""
        resolution = getattr(self, "input_resolution", self.resolution)
        return grid_steps(resolution, n_features, "input_resolution")

    def specification(self) -> dict[str, Any]:
        """Everything that fixes the map, in JSON's types: name and parameters."""
        parameters = self.get_params(deep=False)
        name = {"map": type(self).__name__, "version": self.version}
        return name | {k: _plain(v) for k, v in parameters.items()}

    def digest(self) -> str:
        """SHA-256 of the specification, in hexadecimal."""
        return specification_digest(self.specification())

    def transform(self, X: Any) -> Floats:
        """Feature values of some rows: multiples of the resolution, float64.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_outputs)
        """
        rows = check_array(X, dtype=np.float64, order="C")
        bound = self.bind(rows.shape[1])
        return bound.codes(rows) * bound.steps

    def _bound(self, n_features: int, steps: Floats, encode: Encoder) -> BoundMap:
        if self.bias:
            steps, encode = np.append(steps, 1.0), partial(_encode_bias, encode)
        return BoundMap(self.specification(), n_features, steps, bool(self.bias), encode)


def specification_digest(specification: Mapping[str, Any]) -> str:
    """SHA-256 of a specification as canonical JSON."""
    text = json.dumps(specification, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    """A parameter in JSON's types; an array as the hash of its values."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        return int(number) if number.is_integer() else number
    if isinstance(value, np.ndarray | list | tuple):
        array = np.asarray(value, dtype="<f8", order="C")
        return {"shape": list(array.shape), "sha256": hashlib.sha256(array.tobytes()).hexdigest()}
    raise TypeError(
        f"A feature map's parameters must be numbers, strings or arrays of them, so that "
        f"they can be part of its specification; got {type(value).__name__}."
    )


def _encode_bias(encode: Encoder, X: Floats, out: Floats) -> None:
    out[:, -1] = 1.0
    encode(X, out[:, :-1])


def _encode_values(
    values: Callable[[Floats], Floats], scale: Floats, X: Floats, out: Floats
) -> None:
    encode_linear(scale, values(X), out)
