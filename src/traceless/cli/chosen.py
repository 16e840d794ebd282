"""Which rows a change is about: those of files, or those of some ids in tables of the user."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from traceless.cli import inputs
from traceless.cli.inputs import Function
from traceless.cli.output import Grid, Result
from traceless.cli.trials import Change, How
from traceless.exceptions import NotLearnedError

if TYPE_CHECKING:
    from traceless.sources import Files, Schema, Selection
    from traceless.sources.reader import Ids
    from traceless.store import Store

_SHOWN = 20  # ids that are listed

where_option = click.option(
    "--where",
    metavar="COLUMN=IDS",
    help="Only rows of these ids, as patient=17,23, or patient=@FILE with one in each line.",
)


def files_argument(function: Function) -> Function:
    """Add FILES and --format; the function gets `chosen`, their rows, after the store."""

    @click.argument("files", nargs=-1, required=True, type=click.Path())
    @inputs.format_option
    @functools.wraps(function)
    def called(store: Store, files: Sequence[str], format_: str | None, **options: Any) -> Result:
        return function(store, chosen=Chosen(store, files, format_), **options)

    return called


def chosen_rows(function: Function) -> Function:
    """Add FILES, --format, --from and --where; the function gets `chosen`, after the store."""

    @click.argument("files", nargs=-1, type=click.Path())
    @inputs.format_option
    @inputs.path_option(
        *("--from", "tables"),
        multiple=True,
        help="A table of yours that has the rows of --where, and others.",
    )
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
        from traceless.cli.places import keep
        from traceless.sources import Selection

        if self.where is None:
            return inputs.open_table(self.store.about, self.files, self.format_)
        schema = inputs.declared(self.store.about)
        table = Selection(self.files, schema, self.format_, ids_in(self.where, schema))
        keep(table=table)
        return table

    def rows(self, label: str, ids: Ids = "if there") -> Iterator[Any]:
        """The rows in batches; a change reads them once it knows what the store is about."""
        yield from inputs.rows_of(self.table, label, ids)

    def made(self, change: Change, how: How) -> Result:
        """Make a change of these rows; the answer says how many there are of each id."""
        if self.where is None:
            return how.made(change)
        try:
            result = how.made(change)
        except NotLearnedError as error:
            for one, rows in self._found().items():
                if why := self._refusal(one, rows):
                    raise NotLearnedError(f"{why} Nothing was changed.") from error
            raise
        found, more = self._found(), len(self._found()) - _SHOWN
        grid = Grid(found.most_common(_SHOWN), [self.table.schema.id or "", "rows"])
        shown = [grid, *([f"and {more} others"] if more > 0 else []), *result.shown]
        return Result({**result.data, "ids": dict(found)}, shown, result.ok)

    def _found(self) -> Counter[str]:
        return cast("Selection", self.table).found

    def _refusal(self, one: str, rows: int) -> str | None:
        """What is to be said of an id, if it is the reason."""
        known, name = self.store.find(one), f"{self.table.schema.id} {one}"
        free, until = known.held - known.waiting, known.suppressed
        if not known.held:
            since = f": they were forgotten, and are suppressed until {until}" if until else ""
            return f"The store holds no rows of {name}{since} (see traceless find)."
        if not free:
            return f"All {known.held} rows of {name} wait in the queue to be forgotten already."
        if free > rows:
            return (
                f"The store holds {free} rows of {name} that do not wait to be forgotten, and "
                f"{self.table.where} has {rows} of that id. Give all tables with such rows, each "
                "with --from."
            )
        return None


def ids_in(where: str, schema: Schema) -> list[str]:
    """The ids that ``patient=17,23`` names, or the lines of a file as in ``patient=@letters.txt``.

    Parameters
    ----------
    where : str
    schema : Schema
        Declares the column of ids.
    """
    from traceless.files.words import canonical_id

    column, sign, said = where.partition("=")
    if schema.id is None:
        raise click.UsageError(
            "No column of ids is declared for this store, so its rows cannot be found by one. "
            "Declare it when a store is made: [id] column = NAME. Nothing was changed."
        )
    if not sign or column.strip() != schema.id:
        raise click.UsageError(
            f"{where}: rows are found by the column of ids, as in {schema.id}=17,23. Nothing was "
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
