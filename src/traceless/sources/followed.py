"""A table that a store follows: its rows as they are now, and what each version of it changed.

A Delta table has versions, each a commit in its log. What versions changed comes from the change
data feed; where there is none, from the files that were added and removed, whose unchanged rows
cancel. Everything else (files, a query) has rows, and no versions.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any
from unicodedata import normalize
from urllib.parse import unquote

from traceless.exceptions import TableError
from traceless.sources.files import reading
from traceless.sources.layouts import DELTA, VersionGoneError, is_delta, open_delta
from traceless.sources.reader import Files
from traceless.sources.schema import Schema

Batches = Callable[[], Iterator[Any]]  # (X, y, weight, ids), as `Files.rows` has them
_ADDED, _REMOVED = ("insert", "update_postimage"), ("delete", "update_preimage")
_KIND = "_change_type"  # the column of a feed
_BATCH, _KEPT = 2**14, 8  # rows of a batch; batches that are kept to be read again
_SQLITE = b"SQLite format 3\0"


class FollowedTable:
    """Files, or the result of a query, as they are now.

    Parameters
    ----------
    path : str
        A file, a folder or a pattern; with a query a database of DuckDB or SQLite.
    schema : Schema
    query : str, optional

    Attributes
    ----------
    id : str
        That of a Delta table; one that takes its place has another.
    latest : int
        The number of its latest version.
    """

    id, latest = "snapshot", 0

    def __init__(self, path: str, schema: Any, query: str | None = None) -> None:
        self.where, self._schema, self._query = path, schema, query

    def name(self, version: int) -> str:  # noqa: ARG002
        """The name of a version, for receipts."""
        return f"snapshot of {self.where}" + (f": {self._query}" if self._query else "")

    def rows(self, version: int = 0) -> Iterator[Any]:  # noqa: ARG002
        """All rows of a version."""
        if self._query is None:
            return Files([self.where], self._schema).rows()
        return self._read(_answers(self.where, self._query), self.where)

    def commit(self, version: int) -> str | None:
        """SHA-256 of a commit in the log; None if that no longer has it."""
        raise VersionGoneError(f"{self.where} has no version {version}.")

    def changes(self, since: int, version: int) -> tuple[Batches, Batches]:
        """Rows that the versions after `since` removed and added, up to this one.

        Rows that are in both may be in neither. Whoever reads them gets a `VersionGoneError` if
        files are no longer there.
        """
        raise VersionGoneError(f"{self.where} has no versions {since} to {version}.")

    def _read(self, batches: Iterable[Any], where: str) -> Iterator[Any]:
        """Batches of Arrow as the schema reads them."""
        for batch in batches:
            try:
                yield from Files([_plain(batch)], self._schema).rows() if batch.num_rows else ()
            except TableError as error:
                raise TableError(f"{where}: {error}") from error


class DeltaVersions(FollowedTable):
    """The versions of a Delta table, in a folder."""

    def __init__(self, path: str, schema: Schema | None = None) -> None:
        super().__init__(str(Path(path).expanduser().resolve()), schema)
        self._tables = dict[int | None, Any]()
        table = self._table(None)
        self.id, self.latest = str(table.metadata().id), int(table.version())

    def name(self, version: int) -> str:
        """Where the table is, its version and id, and the hash of the commit."""
        commit = self.commit(version) or "-"
        return f"{self.where}, version {version} of {self.id}, commit {commit}"

    def rows(self, version: int = 0) -> Iterator[Any]:
        """All rows of a version."""
        return self._version_rows(self._files(version), version)

    def commit(self, version: int) -> str | None:
        """SHA-256 of a commit in the log; None if that no longer has it."""
        path = self._log(version)
        return sha256(path.read_bytes()).hexdigest() if path.exists() else None

    def changes(self, since: int, version: int) -> tuple[Batches, Batches]:
        """Rows that the versions after `since` removed and added, up to this one."""
        commits = [self._actions(one) for one in range(since + 1, version + 1)]
        if not any(map(_changes_data, commits)):
            return lambda: iter(()), lambda: iter(())  # OPTIMIZE, or another schema
        feeds = self._table(version).metadata().configuration.get("delta.enableChangeDataFeed")
        if feeds == "true" and all(map(self._feed_is_whole, commits)):
            removed, added = self._feed(since + 1, version)
        else:
            removed, added = self._files(since, version), self._files(version, since)
        rows = self._version_rows
        return lambda: rows(removed, version), lambda: rows(added, version)

    def _feed_is_whole(self, actions: list[Any]) -> bool:
        """Whether the feed of a commit has all that it changed, and under the columns of now.

        Of an update, deltalake (1.6) leaves out the rows that equal others of the table.
        """
        from pyarrow.parquet import read_metadata

        said = {kind: one for action in actions for kind, one in action.items()}
        metrics = said.get("commitInfo", {}).get("operationMetrics") or {}
        updated = metrics.get("num_updated_rows", 0)
        paths = [Path(self.where, unquote(one["cdc"]["path"])) for one in actions if "cdc" in one]
        rows = sum(read_metadata(one).num_rows for one in paths if updated and one.exists())
        return "metaData" not in said and rows == 2 * updated

    def _feed(self, first: int, last: int) -> list[Batches]:
        import pyarrow as pa
        import pyarrow.compute as pc

        table = self._table(last)
        declared = {*self._schema.names, self._schema.id}  # another column may be of any type
        every = [field.name for field in table.schema().fields]
        columns = [*(name for name in every if normalize("NFC", name) in declared), _KIND]

        def read() -> Iterator[Any]:
            feed = table.load_cdf(first, last, columns=columns)
            return map(_plain, pa.RecordBatchReader.from_stream(feed))

        def batches(kinds: tuple[str, ...]) -> Iterator[Any]:
            return (one.filter(pc.is_in(one[_KIND], pa.array(kinds))) for one in feed())

        feed = read_once(read)
        return [partial(batches, kinds) for kinds in (_REMOVED, _ADDED)]

    def _files(self, version: int, other: int | None = None) -> Batches:
        """The batches of the files of a version; with `other`, of those that it has not."""
        from pyarrow.dataset import FileSystemDataset

        data = self._table(version).to_pyarrow_dataset()
        others = () if other is None else self._table(other).to_pyarrow_dataset().get_fragments()
        known = {one.path for one in others}
        some = [one for one in data.get_fragments() if one.path not in known]
        of = data.schema, data.format, data.filesystem
        return lambda: (
            FileSystemDataset(some, *of).to_batches(batch_size=_BATCH) if some else iter(())
        )

    def _version_rows(self, batches: Batches, version: int) -> Iterator[Any]:
        from deltalake.exceptions import DeltaError
        from pyarrow import ArrowException

        where = f"Version {version} of {self.where}"
        try:
            yield from self._read(batches(), where)
        except (FileNotFoundError, DeltaError, ArrowException) as error:
            raise VersionGoneError(f"{where} cannot be read: {error}") from error

    def _table(self, version: int | None) -> Any:
        """The table at a version; None is the latest. Each is opened once."""
        if version not in self._tables:
            table = open_delta(self.where, version)
            self._tables[version] = self._tables[table.version()] = table
        return self._tables[version]

    def _log(self, version: int) -> Path:
        return Path(self.where) / DELTA / f"{version:020}.json"

    def _actions(self, version: int) -> list[Any]:
        """What a commit says."""
        if not self._log(version).exists():
            raise VersionGoneError(f"The log of {self.where} has no version {version}.")
        return [*map(json.loads, self._log(version).read_text().splitlines())]


def followed_table(path: str, schema: Schema, query: str | None = None) -> FollowedTable:
    """A table to be followed; see `FollowedTable`. A folder may be a Delta table."""
    if query is None and is_delta(path):
        return DeltaVersions(path, schema)
    return FollowedTable(path, schema, query)


def read_once(read: Batches) -> Batches:
    """The same batches, kept after the first time if they are few."""
    kept = list[Any]()

    def batches() -> Iterator[Any]:
        first = []
        for n, batch in enumerate(kept or read()):
            first += [batch] if n <= _KEPT else []
            yield batch
        kept[:] = first if len(first) <= _KEPT else []

    return batches


def _changes_data(actions: list[Any]) -> bool:
    """Whether a commit changed rows, and not only their files, or the schema."""
    each = (action.get("add") or action.get("remove") for action in actions)
    return any(one.get("dataChange", True) for one in each if one)


def _plain(batch: Any) -> Any:
    """A batch as a table whose text is in one piece: few functions of Arrow take views of it."""
    import pyarrow as pa

    table, text = pa.table(batch), pa.string()
    plain = [f.with_type(text) if f.type == pa.string_view() else f for f in table.schema]
    return table.cast(pa.schema(plain))


def _answers(path: str, query: str) -> Iterator[Any]:
    """The result of a query, a batch at a time."""
    import pyarrow as pa

    with open(path, "rb") as file:
        is_sqlite = file.read(len(_SQLITE)) == _SQLITE
    if not is_sqlite:
        with reading(path):
            import duckdb
    try:
        if is_sqlite:
            address = f"{Path(path).resolve().as_uri()}?mode=ro"
            with closing(sqlite3.connect(address, uri=True)) as connection:
                answer = connection.execute(query)
                names = [column[0] for column in answer.description]
                while rows := answer.fetchmany(_BATCH):
                    yield pa.table(list(map(pa.array, zip(*rows, strict=True))), names)
        else:
            with duckdb.connect(path, read_only=True) as connection:
                yield from pa.RecordBatchReader.from_stream(connection.sql(query))
    except Exception as error:  # of either database, or of Arrow about a cell
        raise TableError(f"{path}: the query {query!r} failed: {error}") from error
