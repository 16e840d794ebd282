"""The rows of a table that have certain ids: what a help desk takes from a table of everybody."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from traceless.exceptions import TableError
from traceless.sources.reader import Batch, Files
from traceless.sources.schema import Schema, ids_of

_SHOWN = 5  # ids that an error names


class Selection(Files):
    """The rows of files that have one of these ids; only these are checked and encoded.

    Parameters
    ----------
    paths, schema, format_
        As for `Files`; the schema has a column of ids.
    ids : sequence of str
        As `canonical_id` writes them. Each must be found.

    Attributes
    ----------
    found : Counter
        How many rows of each id were read.
    """

    def __init__(
        self, paths: Sequence[Any], schema: Schema, format_: str | None, ids: Sequence[str]
    ) -> None:
        super().__init__(paths, schema, format_)
        self._ids = dict.fromkeys(ids)
        self._places: list[int] = []  # of the rows selected, among all that were read
        self.found = Counter[str]()

    def batches(
        self, names: Sequence[str] | None = None, maybe: Sequence[str] = ()
    ) -> Iterator[Batch]:
        """The rows of these ids, a batch at a time; raises at the end if an id was not found."""
        column = self.schema.id or ""
        wanted = [*(self.schema.names if names is None else names), column]
        self._places, self.found, start = [], Counter(), 0
        for batch in super().batches(wanted, maybe):
            ids = ids_of(batch.cells(column))
            at = [k for k, one in enumerate(ids) if one in self._ids]
            self.found.update(ids[k] for k in at)
            self._places += [start + k for k in at]
            start += batch.n_rows
            if at:
                yield batch.taken(at)
        lost = [one for one in self._ids if not self.found[one]]
        if lost:
            named = ", ".join(lost[:_SHOWN]) + (", …" if len(lost) > _SHOWN else "")
            raise TableError(
                f"{self.where}: no row has {column} {named}. Give the tables that have all rows "
                "of these ids. Nothing was changed."
            )

    def place_of(self, row: int) -> str:
        """Where a row of the selection is, counted from 0: its file, and its line there."""
        return super().place_of(self._places[row])
