"""Arrow columns as NumPy arrays: shared by Parquet files, tables and Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.features.cells import Cells, Frame, index_names, is_nameless_index, kind_of
from traceless.features.table import Table
from traceless.sources.batches import Rows


@dataclass(frozen=True)
class Columns:
    """Which columns are features, target and weight."""

    features: tuple[str, ...]  # columns of numbers, or a single column of lists
    width: int  # number of features, or of the columns of the table
    target: str | tuple[str, ...]  # several targets make y two-dimensional
    weight: str | tuple[str, ...] | None  # several for the keys of groups, which stand there
    table: Table | None = None  # by which they are read
    lists: bool = False  # whether the features are the entries of lists, and have no names

    @property
    def feature_names(self) -> list[str] | None:
        """The names of the features."""
        return None if self.lists else list(self.features)

    @property
    def n_targets(self) -> int:
        """Number of columns of y."""
        return 1 if isinstance(self.target, str) else len(self.target)

    @property
    def names(self) -> list[str]:
        """All columns, each once."""
        return [*self.features, *_not_features(self.target, self.weight)]


def choose(
    present: list[str],
    columns: Any,
    target: Any,
    weight: Any,
    where: str,
    index: frozenset[str] = frozenset(),
) -> tuple[tuple[str, ...], str | tuple[str, ...]]:
    """The features (by default all that are neither target, weight nor index), and the target."""
    if not target:
        raise TypeError(
            f"The columns of {where} have names: say which one is the target, target=..."
        )
    if not isinstance(target, str):
        target = tuple(target)
    rest = _not_features(target, weight)
    if isinstance(columns, Table):
        columns = columns.names
    elif columns is None:
        columns = [
            name
            for name in present
            if name not in rest and name not in index and not is_nameless_index(name)
        ]
    features = (columns,) if isinstance(columns, str) else tuple(columns)
    check_present(present, [*rest, *features], where)
    both = [name for name in features if name in rest]
    if both or not features:
        what = "has no columns left that could be features"
        if both:
            what = f"has {both[0]!r} both as a feature and as target or weight"
        raise ValueError(f"{where} {what}; say which columns to learn from with columns=[...].")
    return features, target


def check_present(present: list[str], wanted: list[str], where: str) -> None:
    """Raise if a column is not there."""
    missing = [name for name in wanted if name not in present]
    if missing:
        shown = ", ".join(map(repr, present[:20])) + (", ..." if len(present) > 20 else "")
        raise ValueError(f"{where} has no column {missing[0]!r}; it has {shown}.")


def check_once(names: list[str], where: str) -> None:
    """Raise if a column is there more than once."""
    name, times = Counter(names).most_common(1)[0] if names else ("", 1)
    if times > 1:
        raise ValueError(
            f"{where} has the column {name!r} more than once, so it is unclear which is meant. "
            "Give each column a name of its own."
        )


def layout_of(
    schema: Any, columns: Any, target: Any, weight: Any, where: str, length: Callable[[str], int]
) -> Columns:
    """Which columns of an Arrow schema are what, checked to be of types that suit.

    `length` says how long the lists of a column are, where its type does not.
    """
    check_once(schema.names, where)
    features, target = choose(schema.names, columns, target, weight, where, index_names(schema))
    layout = Columns(features, len(features), target, weight, table_in(columns))
    check_kinds(schema, layout, where)
    kind = schema.field(features[0]).type
    if layout.table is not None or not is_list(kind):
        return layout
    width = kind.list_size if hasattr(kind, "list_size") else length(features[0])
    return replace(layout, width=int(width), lists=True)


def table_in(columns: Any) -> Table | None:
    """The table, where features are declared by one."""
    return columns if isinstance(columns, Table) else None


def check_kinds(schema: Any, layout: Columns, where: str) -> None:
    """Raise unless features are declared, or columns of numbers, or one column of lists of them."""
    features = () if layout.table is not None else layout.features
    for name in features:
        kind = schema.field(name).type
        within = kind.value_type if is_list(kind) and len(features) == 1 else kind
        if kind_of(within) not in ("number", "boolean"):
            raise not_numbers(name, kind, where)


def not_numbers(name: str, kind: Any, where: str) -> TypeError:
    """The error for a feature that does not hold numbers."""
    return TypeError(
        f"Column {name!r} of {where} is of type {kind}; features must be numbers, or one column "
        "of lists of numbers. Leave it out with columns=[...], or declare the columns, as "
        "traceless.features.Table.suggest proposes, and give columns=table."
    )


def is_list(kind: Any) -> bool:
    """Whether an Arrow type is a list, of fixed size or not."""
    from pyarrow import types

    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def written_out(batch: Any) -> int:
    """Bytes of a record batch in which each row has its own text.

    Columns may repeat a text by its number in a dictionary.
    """
    return sum(max(column.nbytes, _text_bytes(column)) for column in batch.columns)


def _text_bytes(column: Any) -> int:
    """Bytes of all texts of a column that can repeat a text without repeating its bytes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    types = pa.types
    texts = types.is_string, types.is_large_string, types.is_binary, types.is_large_binary
    tests = *texts, types.is_fixed_size_binary
    if not (types.is_dictionary(column.type) and any(t(column.type.value_type) for t in tests)):
        return 0
    lengths = pc.binary_length(column.dictionary).cast(pa.int64())
    return pc.sum(lengths.take(column.indices)).as_py() or 0


def rows_of(
    batch: Any, columns: Columns, where: str, row_name: Callable[[int], str] = "row {}".format
) -> Rows:
    """X, y and weights of a record batch; a null in X becomes NaN, which coding refuses."""
    first = batch.column(columns.features[0])
    if columns.table is not None:
        X = columns.table.rows(Frame.of_arrow(batch, Cells(None, "", where, row_name)))
    elif is_list(first.type):
        X = _from_lists(first, columns, where)
    else:
        X = np.empty((batch.num_rows, len(columns.features)), order="F")
        for name, values in zip(columns.features, X.T, strict=True):
            values[:] = Cells(batch.column(name), name).floats()
    if isinstance(columns.target, str):
        y = _labels(batch, columns.target, where)
    else:
        y = np.column_stack([_labels(batch, name, where) for name in columns.target])
    weight = columns.weight
    if isinstance(weight, tuple):
        keys = np.rec.fromarrays([_labels(batch, name, where) for name in weight])
        return X, y, keys
    return X, y, None if weight is None else _labels(batch, weight, where)


def _not_features(target: str | tuple[str, ...], weight: Any) -> list[str]:
    several = [(one,) if isinstance(one, str) else one for one in (target, weight or ())]
    return list(dict.fromkeys(chain(*several)))


def _from_lists(column: Any, columns: Columns, where: str) -> NDArray[Any]:
    import pyarrow.compute as pc

    lengths = pc.list_value_length(column)
    if column.null_count or pc.any(pc.not_equal(lengths, columns.width)).as_py():
        raise ValueError(
            f"Column {columns.features[0]!r} of {where} must hold {columns.width} numbers in "
            "every row, as in its first; some rows have another length, or none."
        )
    found: Any = Cells(column.flatten(), columns.features[0]).floats()
    return np.asarray(found).reshape(len(column), columns.width)


def _labels(batch: Any, name: str, where: str) -> NDArray[Any]:
    import pyarrow as pa

    column = batch.column(name)
    if column.null_count:
        raise ValueError(
            f"Column {name!r} of {where} has nulls; every row needs a target (and a weight, "
            "where there are weights). Drop these rows first."
        )
    if pa.types.is_dictionary(column.type):
        values = column.dictionary.to_numpy(zero_copy_only=False)
        return np.asarray(values[column.indices.to_numpy(zero_copy_only=False)])
    return np.asarray(column.to_numpy(zero_copy_only=False))
