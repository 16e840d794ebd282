"""The base class of feature maps: a specification, and codes for rows."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_array

from traceless.arithmetic.integers import Floats
from traceless.features.bound_map import (
    BoundMap,
    Encoder,
    encode_bias,
    is_ours,
    plain,
    specification_digest,
)
from traceless.features.grid import encode_linear, grid_steps
from traceless.parameters import NOTHING, Constraint

__all__ = ["BoundMap", "FeatureMap"]

TABLE = NOTHING | Constraint(
    "a Table that declares columns",
    (lambda value: isinstance(value, FeatureMap) and value.table is value,),
)


class FeatureMap(BaseEstimator):
    """Base class: rounds ``values(X)`` to the grid. See `traceless.features`.

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
    constraints: ClassVar[Mapping[str, Constraint]] = {}  # what parameters may be
    version = 1  # to be raised whenever the same parameters come to give other codes
    features_are_columns = False  # True: feature j is column j, so `coef_` speaks of columns
    features_are_named = False  # True: each has a name of its own, so `coef_` speaks of these
    table: Any = None  # the declared `Table` by which it reads frames, of maps that have one
    has_units = True  # False: features are bounded numbers, which need not be standardised

    def __init_subclass__(cls, **options: Any) -> None:
        """Refuse a subclass whose `values` would never be called."""
        super().__init_subclass__(**options)
        if "values" in vars(cls) and "bind" not in vars(cls) and cls.bind is not FeatureMap.bind:
            raise TypeError(
                f"{cls.__name__}.values would never be called: {cls.bind.__qualname__} makes the "
                "codes without it. Subclass FeatureMap instead, or define bind as well."
            )

    def values(self, X: Floats) -> Floats:
        """Features of some rows, before rounding; each row by itself.

        The rows may be the caller's own memory, so they cannot be written to.
        """
        raise NotImplementedError(f"{type(self).__name__} must define values(X)")

    def bind(self, n_features: int) -> BoundMap:
        """Check the parameters and prepare the map for rows of `n_features` columns.

        The map is copied: whatever happens to it and its arrays later, the same
        specification gives the same codes.
        """
        own = copy.deepcopy(self)
        with np.errstate(all="ignore"):  # only the shape matters
            width = own.values(np.zeros((1, n_features))).shape[1]
        steps = grid_steps(own.resolution, width)
        return own._bound(n_features, steps, partial(_encode_values, own.values, 1.0 / steps))

    def n_outputs(self, n_features: int) -> int:
        """Number of features for rows of `n_features` columns, the constant one included.

        Maps of this package count them without computing their tables.
        """
        return len(self.bind(n_features).steps)

    def input_steps(self, n_features: int) -> Floats:
        """The grid that the input columns are rounded to, one step per column.

        For a map that rounds only its features, each to its own grid, this is the finest.
        """
        if self.table is not None:
            finest = np.min(getattr(self, "input_resolution", self.resolution))
            steps: Floats = self.table.steps_of_columns(n_features, float(finest))
            return steps
        if hasattr(self, "input_resolution"):
            return grid_steps(self.input_resolution, n_features, "input_resolution")
        finest = self.resolution if self.features_are_columns else np.min(self.resolution)
        return grid_steps(finest, n_features)

    def n_inputs(self, n_features: int) -> int:
        """How many numbers the features are made of: those of the columns, or of the table."""
        return n_features if self.table is None else int(self.table.width(n_features))

    def after_table(self, encode: Encoder) -> Encoder:
        """An encoder that is given what the table makes of the rows."""
        own = copy.deepcopy(self.table)
        return encode if own is None else partial(encode_after, own, encode)

    def columns_of(self, n_features: int) -> list[tuple[int, ...]] | None:
        """The columns that each feature is made of, without the constant one; None if all are."""
        return [(j,) for j in range(n_features)] if self.features_are_columns else None

    def feature_names(self, columns: Sequence[str]) -> list[str]:
        """Names of the features, without the constant one, for columns of these names."""
        if self.features_are_columns:
            return list(columns)
        return [f"feature {j}" for j in range(self.n_outputs(len(columns)) - bool(self.bias))]

    @property
    def single_features(self) -> list[str]:
        """Names of features that can be forgotten without their column."""
        return []

    def without_columns(
        self, columns: Sequence[int], n_features: int
    ) -> tuple[FeatureMap, NDArray[np.intp]]:
        """The map for rows without some columns, so that these can be forgotten.

        Maps of this package keep the features that do not use these columns (`columns_of`), and
        refuse if every feature uses all columns; a class of your own must define it. The code of
        each feature that stays must be the one that the returned map gives to the shorter row.

        Parameters
        ----------
        columns : sequence of int
            The columns to remove: in order, each once, not all of them.
        n_features : int
            Number of columns that there are now.

        Returns
        -------
        FeatureMap
            To be bound to ``n_features - len(columns)`` columns.
        ndarray of int
            The features of this map that the returned one keeps, in its order, with the bias.
        """
        name, ours = type(self).__name__, is_ours(type(self))
        made_of = self.columns_of(n_features) if ours else None
        if made_of is not None:
            free = [k for k, own in enumerate(made_of) if not {*own} & {*columns}]
            kept = np.array(free, dtype=np.intp)
            return self._on_features(kept), np.append(kept, len(made_of)) if self.bias else kept
        why = (
            f"every feature of {name} is made of all columns. Use Linear or Polynomial"
            if ours
            else f"{name} does not say which of its features do without some. Define "
            "without_columns in that class"
        )
        raise TypeError(
            f"Columns cannot be forgotten: {why}, or fit a new model to rows without these "
            "columns. Nothing was changed."
        )

    def _on_features(self, kept: NDArray[np.intp]) -> Self:
        """The same map, with the resolutions of some features where each has its own."""
        if not np.ndim(self.resolution):
            return self
        each = self.resolution
        left = each[kept] if isinstance(each, np.ndarray) else type(each)(each[k] for k in kept)
        return type(self)(**self.get_params(deep=False) | {"resolution": left})

    def specification(self) -> dict[str, Any]:
        """Everything that fixes the map, in JSON's types: name, version and parameters.

        The name and version of a class of your own prove nothing, so knowledge gathered with it
        also carries a hash of its codes for fixed rows: `BoundMap.describe`.
        """
        parameters = self.get_params(deep=False)
        if parameters.get("table") is None:
            parameters.pop("table", None)
        if "bias" in parameters:  # 1 and True are equal, but not in JSON
            parameters["bias"] = bool(self.bias)
        name = {"map": type(self).__name__, "version": self.version}
        taken = sorted(name.keys() & parameters.keys())
        if taken:
            raise TypeError(
                f"A parameter of {type(self).__name__} is called {taken[0]!r}, which stands for "
                "something else in a specification. Give it another name."
            )
        return name | {k: plain(v) for k, v in parameters.items()}

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
        said, bias, kind = self.specification(), bool(self.bias), type(self)
        if bias:
            steps, encode = np.append(steps, 1.0), partial(encode_bias, encode)
        steps.setflags(write=False)
        made_of = dict(vars(self)) if is_ours(kind) else None
        units = bool(self.has_units)
        return BoundMap(said, n_features, steps, bias, encode, kind, made_of, units)


def encode_after(table: Any, encode: Encoder, X: Floats, out: Floats) -> None:
    """Write the codes of what a table makes of the rows."""
    encode(table.values(X), out)


def _encode_values(
    values: Callable[[Floats], Floats], scale: Floats, X: Floats, out: Floats
) -> None:
    rows = X.view()
    rows.setflags(write=False)
    encode_linear(scale, values(rows), out)
