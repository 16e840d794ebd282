"""Which rows a change is about: those of files, or those of some ids in tables of the user."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from traceless.cli import inputs
from traceless.cli.inputs import Function, RowsPath
from traceless.cli.output import Grid, Result
from traceless.cli.places import keep
from traceless.cli.trials import Change, How
from traceless.exceptions import NotLearnedError, TableError

if TYPE_CHECKING:
    from traceless.sources import Files, Selection
    from traceless.sources.reader import Ids
    from traceless.store import Store

_SHOWN = 20  # ids that are listed
_WIDEST = 12  # digits of a number that may have lost its leading zeros

where_option = click.option(
    "--where",
    metavar="[COLUMN=]IDS",
    help="Only rows of these ids, as patient=17,23, or patient=@FILE with one in each line.",
)


def files_argument(function: Function) -> Function:
    """Add FILES and --format; the function gets `chosen`, their rows, after the store."""

    @click.argument("files", nargs=-1, required=True, type=RowsPath())
    @inputs.format_option
    @functools.wraps(function)
    def called(store: Store, files: Sequence[str], format_: str | None, **options: Any) -> Result:
        return function(store, chosen=Chosen(store, files, format_), **options)

    return called


def chosen_rows(function: Function) -> Function:
    """Add FILES, --format, --from and --where; the function gets `chosen`, after the store."""

    @click.argument("files", nargs=-1, type=RowsPath())
    @inputs.format_option
    @inputs.rows_option("--from", "tables", help="A table of yours with the rows of --where.")
    @where_option
    @functools.wraps(function)
    def called(
        store: Store,
        files: Sequence[str],
        format_: str | None,
        tables: Sequence[str],
        where: str | None,
        **options: Any,
    ) -> Result:
        if bool(tables) != (where is not None) or (files and tables):
            raise click.UsageError(
                "Give FILES, of which all rows are meant; or --from FILE and --where COLUMN=IDS, "
                "for the rows of these ids. Nothing was changed."
            )
        return function(store, chosen=Chosen(store, files or tables, format_, where), **options)

    return called


@dataclass
class Chosen:
    """Rows of files; with `where`, those of some ids, which must be all that the store holds.

    Parameters
    ----------
    store : Store
    files : sequence of str
    format_ : str or None
    where : str, optional
        As in ``patient=17,23``.
    """

    store: Store
    files: Sequence[str]
    format_: str | None
    where: str | None = None

    @functools.cached_property
    def table(self) -> Files:
        """The table, with the chosen rows only."""
        if self.where is None:
            return inputs.open_table(self.store.about, self.files, self.format_)
        ids = ids_in(self.where, id_column(self.store))
        from traceless.sources import Selection

        table = Selection(self.files, inputs.declared(self.store.about), self.format_, ids)
        keep(table=table)
        return table

    def rows(self, label: str, ids: Ids = "if there") -> Iterator[Any]:
        """The rows in batches; a change reads them once it knows what the store is about."""
        yield from inputs.rows_of(self.table, label, ids)

    def count(self) -> int:
        """How many rows there are, for a question."""
        return sum(len(batch[0]) for batch in self.rows("counting"))

    def made(self, change: Change, how: How, asks: bool = True) -> Result:
        """Make a change of these rows; the answer says how many there are of each id."""
        count = self.count if asks else None
        if self.where is None:
            return how.made(change, count)
        try:
            result = how.made(change, count)
        except (NotLearnedError, TableError) as error:
            plain = type(error) in (NotLearnedError, TableError)  # not one about a cell
            for one, rows in self._found().items() if plain else ():
                if why := self._refusal(one, rows):
                    raise type(error)(f"{why} Nothing was changed.") from error
            raise
        found, more = self._found(), len(self._found()) - _SHOWN
        grid = Grid(found.most_common(_SHOWN), [self.table.schema.id or "", "rows"])
        shown = [grid, *([f"and {more} others"] if more > 0 else []), *result.shown]
        return Result({**result.data, "ids": dict(found)}, shown, result.ok)

    def _found(self) -> Counter[str]:
        """How many rows each id has in the tables; the ids that have none are the last."""
        counts = Counter(cast("Selection", self.table).found)
        for one in ids_in(self.where or "", self.table.schema.id or ""):
            counts.setdefault(one, 0)
        return counts

    def _refusal(self, one: str, rows: int) -> str | None:
        """What is to be said of an id, if it is the reason."""
        known, name = self.store.find(one), f"{self.table.schema.id} {one}"
        free, until = known.held - known.waiting, known.suppressed
        if not known.held:
            since = f": they were forgotten on {known.forgotten}" if until else ""
            since += f", and are suppressed until {until}" if until else ""
            meant = hint(similar(self.store, one))
            return f"The store holds no rows of {name}{since} (see traceless find).{meant}"
        if not rows:  # the table says so
            return None
        if not free:
            return f"All {known.held} rows of {name} wait in the queue to be forgotten already."
        if free > rows:
            return (
                f"The store holds {free} rows of {name} that do not wait to be forgotten, and "
                f"{self.table.where} has {rows} of that id. Give all tables with such rows, each "
                "with --from."
            )
        return None


def id_column(store: Store) -> str:
    """The column of ids that is declared for a store."""
    try:
        return str(store.about["table"]["id"]["column"])
    except (KeyError, TypeError):
        raise click.UsageError(
            "No column of ids is declared for this store, so its rows cannot be found by one. "
            "Declare it when a store is made: [id] column = NAME. Nothing was changed."
        ) from None


def ids_in(where: str, column: str) -> list[str]:
    """The ids that ``patient=17,23`` names, or ``17,23``, or the lines of a file as in ``@FILE``.

    Parameters
    ----------
    where : str
    column : str
        That of ids.
    """
    from traceless.files.words import canonical_id

    name, sign, said = ("", "", where) if where.startswith("@") else where.partition("=")
    said = said if sign else where
    if sign and name.strip() != column:
        raise click.UsageError(
            f"{where}: rows are found by the column of ids, as in {column}=17,23. Nothing was "
            "changed."
        )
    if said.startswith("@"):
        given = Path(said[1:]).read_text(encoding="utf-8-sig").splitlines()
    else:
        given = inputs.split_names(said)
    ids = [canonical_id(one) for one in given if one.strip()]
    if not ids:
        raise click.UsageError(f"{where} names no id. Nothing was changed.")
    return list(dict.fromkeys(ids))


def similar(store: Store, one: str) -> list[str]:
    """Ids that are held and differ from this one by leading zeros, blanks or letter case alone."""
    bare = "".join(one.split())
    texts = dict.fromkeys([one, bare, " ".join(one.split())])
    cased = dict.fromkeys([f(t) for t in texts for f in (str, str.upper, str.lower, str.title)])
    meant = list(cased)
    for text in cased:
        if number := re.fullmatch(r"(\D*)0*([0-9]{1,12})", text):
            meant += [number[1] + number[2].zfill(n) for n in range(_WIDEST + 1)]
            meant.append(number[1] + (number[2].lstrip("0") or "0"))
    return store.known([text for text in dict.fromkeys(meant) if text != one])


def hint(meant: Sequence[str]) -> str:
    """A hint at the ids that may be meant; nothing if there are none."""
    said = "zeros, blanks and capitals count in an id."
    return f" Held is {', '.join(meant)}: {said}" if meant else ""
