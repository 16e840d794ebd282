"""From a batch of Arrow columns to rows: shared by Parquet files and Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.knowledge.sums import Rows


@dataclass(frozen=True)
class Columns:
    """Which columns are what.

    Attributes
    ----------
    features : tuple of str
        Columns of numbers, or a single column of lists.
    width : int
        Number of features.
    target : str or tuple of str
        Several targets make y two-dimensional.
    weight : str or None
    """

    features: tuple[str, ...]
    width: int
    target: str | tuple[str, ...]
    weight: str | None

    @property
    def names(self) -> list[str]:
        """All of them, each once."""
        return [*self.features, *others(self.target, self.weight)]


def others(target: str | tuple[str, ...], weight: str | None) -> list[str]:
    """The columns that are not features."""
    targets = [target] if isinstance(target, str) else list(target)
    return list(dict.fromkeys([*targets, *([] if weight is None else [weight])]))


def choose(
    present: list[str], columns: Any, target: Any, weight: str | None, where: str
) -> tuple[tuple[str, ...], str | tuple[str, ...]]:
    """The names of the features and of the target, checked to be there.

    `columns` None means all that are neither target nor weight.
    """
    if not isinstance(target, str):
        target = tuple(target)
    rest = others(target, weight)
    if isinstance(columns, str):
        columns = [columns]
    features = tuple(n for n in present if n not in rest) if columns is None else tuple(columns)
    check_present(present, [*rest, *features], where)
    both = [name for name in features if name in rest]
    if both or not features:
        what = (
            f"has {both[0]!r} both as a feature and as target or weight"
            if both
            else ("has no columns left that could be features")
        )
        raise ValueError(f"{where} {what}; say which columns to learn from with columns=[...].")
    return features, target


def check_present(present: list[str], wanted: list[str], where: str) -> None:
    """Raise if a column is not there."""
    missing = [name for name in wanted if name not in present]
    if missing:
        shown = ", ".join(map(repr, present[:20])) + (", ..." if len(present) > 20 else "")
        raise ValueError(f"{where} has no column {missing[0]!r}; it has {shown}.")


def not_numbers(name: str, kind: Any, where: str) -> TypeError:
    """What to raise when a feature cannot be taken as numbers."""
    return TypeError(
        f"Column {name!r} of {where} is of type {kind}; features must be numbers, or one column "
        "of lists of numbers. Encode it, or leave it out with columns=[...]."
    )


def rows_of(batch: Any, columns: Columns, where: str) -> Rows:
    """X, y and weights of a record batch, in NumPy's types."""
    first = batch.column(columns.features[0])
    if is_list(first.type):
        X = _from_lists(first, columns, where)
    else:
        features = [batch.column(name) for name in columns.features]
        table = np.empty((len(features), batch.num_rows), dtype=_common_type(features))
        for row, column in zip(table, features, strict=True):
            row[:] = _numbers(column)
        X = table.T
    if isinstance(columns.target, str):
        y = _labels(batch, columns.target, where)
    else:
        y = np.column_stack([_labels(batch, name, where) for name in columns.target])
    weight = columns.weight
    return X, y, None if weight is None else _labels(batch, weight, where).astype(np.float64)


def is_list(kind: Any) -> bool:
    """Whether an Arrow type is a list, of fixed size or not."""
    import pyarrow as pa

    types = pa.types
    lists = types.is_list, types.is_large_list, types.is_fixed_size_list
    return any(test(kind) for test in lists)


def is_number(kind: Any) -> bool:
    """Whether an Arrow type is one of numbers or truth values."""
    import pyarrow as pa

    types = pa.types
    numbers = types.is_integer, types.is_floating, types.is_decimal, types.is_boolean
    return any(test(kind) for test in numbers)


def _common_type(columns: list[Any]) -> type[np.floating[Any]]:
    """Single precision takes half the memory, where all columns have it."""
    import pyarrow as pa

    return np.float32 if all(pa.types.is_float32(c.type) for c in columns) else np.float64


def _numbers(column: Any) -> NDArray[Any]:
    """A column of floats; nulls become NaN, which is found when it is coded."""
    import pyarrow as pa

    if pa.types.is_float32(column.type):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))


def _from_lists(column: Any, columns: Columns, where: str) -> NDArray[Any]:
    import pyarrow.compute as pc

    lengths = pc.list_value_length(column)
    wrong = column.null_count or pc.any(pc.not_equal(lengths, columns.width)).as_py()
    if wrong:
        raise ValueError(
            f"Column {columns.features[0]!r} of {where} must hold {columns.width} numbers in "
            "every row, as in its first; some rows have another length, or none."
        )
    return _numbers(column.flatten()).reshape(len(column), columns.width)


def _labels(batch: Any, name: str, where: str) -> NDArray[Any]:
    import pyarrow as pa

    column = batch.column(name)
    if column.null_count:
        raise ValueError(
            f"Column {name!r} of {where} has nulls; every row needs a target (and a weight, "
            "where there are weights). Drop these rows first."
        )
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return np.asarray(column.to_numpy(zero_copy_only=False))
