"""All that is wrong with a table, and not only the first thing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from traceless.exceptions import TableError
from traceless.features.cells import CellError, Cells
from traceless.sources.reader import Batch, Files
from traceless.sources.schema import ids_of, weights_of


@dataclass
class Findings:
    """What a table was found to be.

    Attributes
    ----------
    rows : int
        Rows that were read, good and bad.
    problems : list of str
        One sentence each, with file, line, column and value.
    labels : dict of str to int
        Rows of each label; empty for regressions.
    """

    rows: int = 0
    problems: list[str] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)


def check_table(table: Files, most: int = 20) -> Findings:
    """Read a table by its schema, and collect what does not fit.

    Parameters
    ----------
    table : Files
    most : int, default=20
        Problems after which reading stops.
    """
    schema, found, given_up = table.schema, Findings(), set[str]()
    names = [*schema.names, *([] if schema.id is None else [schema.id])]
    try:
        for batch in table.batches(names):
            found.rows += batch.n_rows
            for name, read in _readers(batch):
                if name in given_up:  # the whole column is of the wrong type
                    continue
                for problem, place in _problems(batch.cells(name), read):
                    found.problems.append(problem)
                    if place is None:
                        given_up.add(name)
                    if len(found.problems) >= most:
                        return found
            _count_labels(batch, found)
    except TableError as error:  # nothing after it can be read
        found.problems.append(str(error))
    return found


def _readers(batch: Batch) -> Iterator[tuple[str, Callable[[Cells], Any]]]:
    """The columns, and how each is read."""
    schema = batch.schema
    for column in schema.table.columns or ():
        yield column.name, column.numbers
    for name in schema.target:
        yield name, schema.target_of
    if schema.weight is not None:
        yield schema.weight, weights_of
    if schema.id is not None:
        yield schema.id, ids_of


def _problems(cells: Cells, read: Callable[[Cells], Any]) -> Iterator[tuple[str, int | None]]:
    """What is wrong with a column, each with its row; None if it is the column as a whole."""
    while len(cells.array):
        try:
            read(cells)
            return
        except CellError as error:
            yield str(error), error.place
            cells = _after(cells, error.place + 1)
        except TableError as error:
            yield str(error), None
            return


def _after(cells: Cells, first: int) -> Cells:
    """The cells from this position on."""
    name = cells.row_name
    return replace(cells, array=cells.array[first:], row_name=lambda k: name(first + k))


def _count_labels(batch: Batch, found: Findings) -> None:
    if batch.schema.labels in ("number", "none") or found.problems:
        return
    labels, counts = np.unique(batch.y, return_counts=True)
    for label, count in zip(labels.tolist(), counts.tolist(), strict=True):
        found.labels[str(label)] = found.labels.get(str(label), 0) + count
