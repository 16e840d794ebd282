"""Named columns of a frame as features: the declaration of a table is a feature map.

    φ(x) = [kind_1(x_1), ..., kind_d(x_d), 1]

What a column means is declared (`traceless.features.kinds`), and part of the specification. So a
table learns nothing, has nothing to forget, and the same row gives the same features everywhere.

A frame first becomes an array with one number for each declared column, NaN where there is none
(`Table.rows`); all that works with arrays, sums, windows and folds, works with these.
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from traceless.arithmetic.integers import Floats
from traceless.exceptions import RangeError, TableError
from traceless.features.bound_map import BoundMap
from traceless.features.cells import Frame
from traceless.features.feature_map import FeatureMap
from traceless.features.grid import grid_steps
from traceless.features.kinds import Column, Number, from_facts
from traceless.features.suggestion import proposals
from traceless.parameters import FLAG, NOTHING, STEPS, Constraint, check_parameters

_COLUMNS = Constraint(
    "a list of declared columns, such as Number('age')",
    (lambda v: isinstance(v, list | tuple) and not [c for c in v if not isinstance(c, Column)],),
)


class Table(TransformerMixin, FeatureMap):
    """φ(x) = the features of named columns, as they are declared.

    It is a transformer too, whose `transform` gives the features without the constant one.

    Parameters
    ----------
    columns : sequence of Number, Category, Date, Boolean and Hashed, optional
        By default all columns of an array are numbers, which may be NaN.
    bias : bool, default=True
        Append the constant feature 1, whose coefficient is the intercept.
    resolution : float or sequence of float, default=2**-14
        Step of the grid, a power of two; one for all features, or one for each.

    Attributes
    ----------
    reasons : dict of str
        Of a table that `suggest` proposed: why each column is declared, or left out.

    Examples
    --------
    >>> from traceless import LSSVC
    >>> from traceless.features import Category, Number, Table
    >>> rows = [{"age": 31, "color": "red"}, {"age": None, "color": "green"}]
    >>> table = Table([Number("age"), Category("color", ["green", "red"])])
    >>> table.feature_names()
    ['age', 'age missing', 'color=green', 'color=red']
    >>> table.transform(rows)
    array([[31.,  0.,  0.,  1.],
           [ 0.,  1.,  1.,  0.]])
    >>> LSSVC(table).fit(rows, ["yes", "no"]).predict([{"color": "red", "age": 29}]).tolist()
    ['yes']
    """

    constraints: ClassVar = {"columns": NOTHING | _COLUMNS, "bias": FLAG, "resolution": STEPS}
    features_are_named = True

    def __init__(
        self,
        columns: Sequence[Column] | None = None,
        bias: bool = True,
        resolution: Any = 2**-14,
    ) -> None:
        self.columns = columns
        self.bias = bias
        self.resolution = resolution

    # --- a declaration, and its file ---------------------------------------------------------

    @classmethod
    def suggest(cls, X: Any, target: Any = None, **options: Any) -> Self:
        """A proposal for a frame, to be reviewed: ``print`` shows it with its reasons.

        A declaration that is taken from rows is a trace of them, so values seen in fewer than
        five rows are counted, not listed. Put in what you know without the rows.

        Parameters
        ----------
        X : frame
            As `rows` takes it.
        target : str or list of str, optional
            Columns to predict, which are no features.
        **options
            ``ids``, the name of a column of ids, and ``scales=True``, which proposes a shift and
            a scale for all numbers.

        Returns
        -------
        Table
        """
        frame = Frame.of(X)
        if frame is None:
            raise TypeError(
                f"Table.suggest needs a frame with named columns, got {type(X).__name__}. For an "
                "array of numbers take Table() or Linear()."
            )
        columns, reasons = proposals(frame, target, **options)
        return cls.of(columns, reasons)

    @classmethod
    def of(cls, columns: Sequence[Column], reasons: Mapping[str, str]) -> Self:
        """A table with a reason for each column."""
        table = cls(list(columns))
        table.reasons = dict(reasons)
        return table

    column = staticmethod(from_facts)

    @classmethod
    def load(cls, path: Any) -> Self:
        """The table that a file declares; sections other than [table] are for the command line."""
        path = Path(path)
        try:
            said = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise TableError(f"{path} is not a TOML file: {error}.") from error
        try:
            return cls.from_facts(said.get("table"))
        except ValueError as error:
            raise TableError(f"{path}: {error}") from error

    def save(self, path: Any) -> None:
        """Write the declaration to a TOML file, with its reasons, as `load` reads it."""
        Path(path).write_text(str(self), encoding="utf-8")

    @classmethod
    def from_facts(cls, said: Any) -> Self:
        """The table of a section [table] of a file, or of what `facts` describes."""
        columns = said.get("columns") if isinstance(said, Mapping) else None
        if isinstance(columns, Mapping):
            columns = [{"name": name, **facts} for name, facts in columns.items()]
        if not isinstance(columns, list):
            raise ValueError("a section [table.columns] is needed, with a line for each column.")
        other = {*said} - {"columns", "bias", "resolution"}
        if other:
            raise ValueError(f"[table] has no {min(other)!r}.")
        columns = list(map(from_facts, columns))
        table = cls(columns, **{k: v for k, v in said.items() if k != "columns"})
        table.bind(len(columns))  # raises what is wrong with it
        return table

    def facts(self) -> dict[str, Any]:
        """The section [table] of a file, its columns as a list, in order."""
        said: dict[str, Any] = {} if self.bias else {"bias": False}
        if np.ndim(self.resolution) or self.resolution != 2**-14:
            said["resolution"] = np.asarray(self.resolution, dtype=np.float64).tolist()
        return said | {"columns": [column.facts() for column in self._columns()]}

    def __str__(self) -> str:
        if self.columns is None:
            return repr(self)
        said, reasons = self.facts(), dict(getattr(self, "reasons", {}))
        lines = ["[table]", *(f"{k} = {as_toml(v)}" for k, v in said.items() if k != "columns")]
        lines += ["[table.columns]"]
        for facts in said["columns"]:
            name = facts.pop("name")
            why = f"  # {reasons.pop(name)}" if name in reasons else ""
            lines.append(f"{as_toml(name)} = {as_toml(facts)}{why}")
        left = [f"# {as_toml(name)}: {why}" for name, why in reasons.items()]
        return "\n".join([*lines, *left, ""])

    # --- a feature map -----------------------------------------------------------------------

    @property
    def table(self) -> Table | None:
        """The table itself, if it declares columns: estimators read frames by it."""
        return None if self.columns is None else self

    @property
    def names(self) -> list[str]:
        """The names of the declared columns."""
        return [column.name for column in self._columns()]

    def rows(self, X: Any) -> Floats:
        """The declared columns as an array: one number for each, NaN for absent values.

        Parameters
        ----------
        X : frame, or array of shape (n_samples, n_columns)
            pandas, polars, Arrow, a DuckDB relation, a dict of columns, a list of dicts: by the
            names of the columns. An array has the declared columns in their order, with numbers
            as they are, dates as their distance from the origin, and categories and buckets as
            their numbers from 0.
        """
        columns = self._columns()
        frame = Frame.of(X)
        if frame is None:
            return self._array(X, len(columns))
        frame.check_names(self.names)
        out = np.empty((frame.n_rows, len(columns)), order="F")
        for column, values in zip(columns, out.T, strict=True):
            values[:] = column.numbers(frame.cells(column.name))
        return one_nan(out)

    def values(self, X: Floats) -> Floats:
        """The features of such an array, before rounding, without the constant one."""
        return _values(self._columns(X.shape[1]), X)

    def bind(self, n_features: int) -> BoundMap:  # noqa: D102
        columns = self._columns(n_features)  # values that nobody can change
        steps = grid_steps(self.resolution, self.width(n_features))
        return self._bound(n_features, steps, partial(_encode, columns, 1.0 / steps))

    def width(self, n_features: int) -> int:
        """Number of features, without the constant one."""
        return sum([column.width for column in self._columns(n_features)])

    def n_outputs(self, n_features: int) -> int:  # noqa: D102
        return self.width(n_features) + bool(self.bias)

    def input_steps(self, n_features: int) -> Floats:  # noqa: D102
        return self.steps_of_columns(n_features, float(np.min(self.resolution)))

    def steps_of_columns(self, n_features: int, step: float) -> Floats:
        """How much of each column makes a step of its feature."""
        return np.array([step * column.divisor for column in self._columns(n_features)])

    def columns_of(self, n_features: int) -> list[tuple[int, ...]]:  # noqa: D102
        columns = self._columns(n_features)
        return [(j,) for j, column in enumerate(columns) for _ in range(column.width)]

    def feature_names(self, columns: Sequence[str] | None = None) -> list[str]:
        """Names of the features, without the constant one.

        Parameters
        ----------
        columns : sequence of str, optional
            Names of the columns, where none are declared.
        """
        declared = self._columns(None if columns is None else len(columns))
        if self.columns is None and columns is not None:
            declared = [Number(name) for name in columns]
        return [name for column in declared for name in column.feature_names]

    def without_columns(
        self, columns: Sequence[Any], n_features: int
    ) -> tuple[Table, NDArray[np.intp]]:
        """The table without some columns, by number, or categories, as in "color=red"."""
        declared = self._columns(n_features)
        names = [name for column in declared for name in column.feature_names]
        gone = {name for j in columns if isinstance(j, int) for name in declared[j].feature_names}
        gone |= {name for name in columns if isinstance(name, str)}
        left = []
        for j, column in enumerate(declared):
            for name in column.feature_names:
                if name in columns:
                    column = column.without(name.removeprefix(f"{column.name}="))  # type: ignore[attr-defined]
            if j not in columns:
                left.append(column)
        kept = np.array([k for k, name in enumerate(names) if name not in gone], dtype=np.intp)
        shorter = Table(None if self.columns is None else left, self.bias, self.resolution)
        outputs = np.append(kept, len(names)) if self.bias else kept
        return shorter._on_features(kept), outputs

    @property
    def single_features(self) -> list[str]:
        """The categories that can be forgotten without their column."""
        return [
            name
            for column in self._columns(None if self.columns is not None else 0)
            if column.kind == "category" and column.width > 1
            for name in column.feature_names
        ]

    def specification(self) -> dict[str, Any]:  # noqa: D102
        check_parameters(self)
        declared = None if self.columns is None else [one.facts() for one in self._columns()]
        with_others = Table(None, self.bias, self.resolution)
        return super(Table, with_others).specification() | {"columns": declared}

    # --- a transformer -----------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Check the columns; nothing is learned from the rows.

        Parameters
        ----------
        X : frame or array of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        if self.columns is None:
            validate_data(self, X, dtype=np.float64, ensure_all_finite=False, accept_sparse="csr")
        else:
            self.rows(X)
            self.n_features_in_ = len(self.columns)
            self.feature_names_in_ = np.array(self.names, dtype=object)
        self.bind(self.n_features_in_)
        return self

    def transform(self, X: Any) -> Any:
        """Feature values of some rows, without the constant one.

        Parameters
        ----------
        X : frame or array of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_outputs), or what `set_output` asks for
        """
        if self.columns is None and hasattr(self, "n_features_in_"):
            options = {"dtype": np.float64, "ensure_all_finite": False, "accept_sparse": "csr"}
            X = validate_data(self, X, reset=False, **options)
        rows = self.rows(X)
        bound = self.bind(rows.shape[1])
        n = self.width(rows.shape[1])
        return bound.codes(rows)[:, :n] * bound.steps[:n]

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the features that `transform` gives.

        Parameters
        ----------
        input_features : sequence of str, optional
            Names of the columns, where none are declared; by default x0, x1, ...

        Returns
        -------
        ndarray of str
        """
        if self.columns is not None:
            return np.array(self.feature_names(), dtype=object)
        check_is_fitted(self, "n_features_in_")
        plain = [f"x{j}" for j in range(self.n_features_in_)]
        known: Any = getattr(self, "feature_names_in_", None)
        given = known if input_features is None else np.asarray(input_features, dtype=object)
        if known is not None and not np.array_equal(given, known):
            raise ValueError("input_features is not equal to feature_names_in_")
        if given is not None and len(given) != self.n_features_in_:
            raise ValueError(
                "input_features should have length equal to number of features "
                f"({self.n_features_in_}), got {len(given)}"
            )
        return np.array(self.feature_names(plain if given is None else list(given)), dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return self.columns is not None or hasattr(self, "n_features_in_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        tags.input_tags.string = tags.input_tags.categorical = self.columns is not None
        tags.requires_fit = False
        return tags

    # --- inside ------------------------------------------------------------------------------

    def _columns(self, n_features: int | None = None) -> list[Column]:
        """What is declared, checked; numbers where nothing is."""
        check_parameters(self)
        if self.columns is None:
            return [Number(f"x{j}") for j in range(n_features or 0)]
        if not self.columns:
            raise ValueError("The table declares no columns.")
        names = Counter([name for one in self.columns for name in {one.name, *one.feature_names}])
        name, times = names.most_common(1)[0]
        if times > 1:
            raise ValueError(f"Two columns, or features, of the table are called {name!r}.")
        if n_features not in (None, len(self.columns)):
            raise ValueError(
                f"X has {n_features} features, but this Table declares {len(self.columns)} columns."
            )
        return list(self.columns)

    def _array(self, X: Any, n_columns: int) -> Floats:
        try:
            X = check_array(X, dtype=np.float64, accept_sparse="csr", ensure_all_finite=False)
        except ValueError as error:
            if self.columns is None:
                raise
            raise ValueError(
                f"An array has numbers for the columns of this Table, and this is none of them: "
                f"{error}. Give a frame that has {', '.join(map(repr, self.names[:3]))}, by name."
            ) from error
        if self.columns is not None and X.shape[1] != n_columns:
            raise ValueError(
                f"X has {X.shape[1]} features, but this Table declares {n_columns} columns. Give a "
                "frame that has them, by name."
            )
        return one_nan(np.array(X.toarray() if hasattr(X, "toarray") else X))


def one_nan(X: Floats) -> Floats:
    """The same numbers, with one pattern of bits for NaN, which has many: rows are hashed."""
    X[np.isnan(X)] = np.nan
    return X


def table_of(estimator: Any) -> Table | None:
    """The table by which an estimator reads frames, if it has one: its own, or that of its map."""
    found: Any = getattr(
        estimator._map() if hasattr(estimator, "_map") else estimator, "table", None
    )
    return found if isinstance(found, Table) else None


def _encode(columns: Sequence[Column], scale: Floats, X: Floats, out: Floats) -> None:
    np.rint(np.multiply(_values(columns, X), scale, out=out), out=out)


def _values(columns: Sequence[Column], X: Floats) -> Floats:
    ends = list(accumulate([column.width for column in columns], initial=0))
    out = np.zeros((len(X), ends[-1]))
    if np.isinf(X).any():
        j = int(np.argmax(np.isinf(X).any(axis=0)))
        raise RangeError(
            f"Input X contains infinity (column {j}): {columns[j].name!r} must be finite, or NaN "
            "where it is absent."
        )
    for k, (column, (start, end)) in enumerate(zip(columns, pairwise(ends), strict=True)):
        if column.required and np.isnan(X[:, k]).any():
            raise RangeError(
                f"Input X contains NaN (column {k}): {column.name!r} is declared as required."
            )
        column.write(X[:, k], out[:, start:end])
    return out


def as_toml(value: Any) -> str:
    """A value, or a key, as TOML has it."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{k} = {as_toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    return json.dumps(value)
