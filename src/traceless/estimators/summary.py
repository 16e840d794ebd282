"""A model as a table: what statistics programs print of a regression."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_ROWS = 60  # of a table that is printed; `to_frame` has all of them


@dataclass(frozen=True, eq=False)
class Summary:
    """Coefficients with their errors, and what the fit is. Made by ``summary()``.

    It prints as a table; `to_frame` has the numbers.

    Attributes
    ----------
    title : str
    facts : dict
        What is said of the whole model, by name.
    columns : dict of lists
        The table, by the names of its columns.
    note : str
        What the numbers do not say.
    """

    title: str
    facts: Mapping[str, Any]
    columns: Mapping[str, Sequence[Any]]
    note: str

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame, one row for each coefficient.

        Returns
        -------
        pandas.DataFrame
            Indexed by name, or by target and name where there are several targets.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        import pandas as pd

        names = [name for name in ("target", "name") if name in self.columns]
        return pd.DataFrame(dict(self.columns)).set_index(names)

    def __repr__(self) -> str:
        width = max(map(len, self.facts))
        said = [f"{name:<{width}}  {_said(value)}" for name, value in self.facts.items()]
        head, *rows = self._cells()
        widths = [max(len(row[k]) for row in (head, *rows)) for k in range(len(head))]
        aligned = [" " + "  ".join(self._aligned(row, widths)) for row in (head, *rows)]
        rule = "─" * max(map(len, aligned))
        table = [rule, aligned[0].rstrip(), rule, *aligned[1:], rule]
        return "\n".join([self.title, *said, *table, self.note])

    def _aligned(self, row: Sequence[str], widths: Sequence[int]) -> Iterable[str]:
        """Words to the left, numbers to the right."""
        for cell, width, name in zip(row, widths, self.columns, strict=True):
            yield cell.ljust(width) if name in ("name", "target") else cell.rjust(width)

    def _cells(self) -> list[list[str]]:
        """The head and the rows as text; of many rows the first and the last."""
        rows = [[_said(value) for value in row] for row in zip(*self.columns.values(), strict=True)]
        if len(rows) > _ROWS:
            half = _ROWS // 2
            rows = [*rows[:half], ["…"] * len(self.columns), *rows[-half:]]
        return [list(self.columns), *rows]


def _said(value: Any) -> str:
    """A number with six digits, anything else as it is."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
