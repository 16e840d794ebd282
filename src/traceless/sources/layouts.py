"""Folders that are more than their files: Delta, Iceberg and Hudi tables, and hive partitions.

The files of a Delta table are not its rows: some were removed from the table and are still there.
To learn them all would bring deleted rows back, so its own log says which files are meant. Hive
partitions keep a column in the names of folders: ``year=2025/part-0.parquet``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from traceless.exceptions import TableError

if TYPE_CHECKING:
    from traceless.sources.files import File

Constants = tuple[tuple[str, Any], ...]  # columns that have one value in all rows of a file

DELTA = "_delta_log"
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_WHOLE = re.compile(r"-?[0-9]{1,18}").fullmatch  # Python would also read 1_000, and others' digits
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?").fullmatch


class VersionGoneError(TableError):
    """A version of a table, or its files, are not there."""


def is_delta(path: Any) -> bool:
    """Whether a path is the folder of a Delta table."""
    return isinstance(path, str | Path) and (Path(path).expanduser() / DELTA).is_dir()


def hidden(name: str) -> bool:
    """Whether a file or folder holds no rows by convention: ``_temporary``, ``.crc``, ``_SUCCESS``.

    A hive partition such as ``_year=2025`` does.
    """
    return name.startswith((".", "_")) and "=" not in name


def open_delta(folder: Any, version: int | None) -> Any:
    """A version of a Delta table, or its latest, as a DeltaTable."""
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError
    except ImportError as error:
        raise ImportError(
            f"{folder} is a Delta table, whose log says which of its files are meant. Reading it "
            f"needs a library: pip install 'traceless[delta]' ({error})."
        ) from error
    try:
        table = DeltaTable(str(folder), version=version)
    except (DeltaError, ValueError) as error:
        said = str(error).splitlines()[0]
        raise VersionGoneError(f"The Delta table {folder} cannot be read: {said}.") from error
    needed = table.protocol()
    unknown = {"deletionVectors", "columnMapping"}.intersection(needed.reader_features or ())
    if unknown or needed.min_reader_version == 2:
        raise ValueError(
            f"The Delta table {folder} uses {', '.join(sorted(unknown)) or 'columnMapping'}: its "
            "files have rows that are deleted, or columns under other names. Let Spark read it and "
            "pass it with from_spark, or write it anew without these."
        )
    return table


def delta_files(folder: File, version: int | None) -> tuple[list[File], list[Constants], int, str]:
    """The files of a version of a Delta table, what their folders say, and its number and name."""
    table = open_delta(folder, version)
    from pyarrow.dataset import get_partition_keys

    parts = list(table.to_pyarrow_dataset().get_fragments())
    if not parts:
        raise ValueError(
            f"Version {table.version()} of the Delta table {folder} has no files: all of its rows "
            "were deleted, or none was written yet. Nothing was learned."
        )
    columns = table.metadata().partition_columns
    keys = [get_partition_keys(part.partition_expression) for part in parts]
    constants = [tuple((name, one[name]) for name in columns) for one in keys]
    files = [folder.at(folder.path / part.path) for part in parts]
    return files, constants, table.version(), delta_name(table)


def delta_name(table: Any) -> str:
    """The address of a DeltaTable with its version, as Delta's readers write it."""
    return f"{table.table_uri.rstrip('/')}@v{table.version()}"


def check_no_table(files: Iterable[File]) -> None:
    """Raise if a file is one of a table that has its own list of files."""
    seen: dict[str, str | None] = {}

    def table(folder: File) -> str | None:
        if str(folder) not in seen:
            seen[str(folder)] = _table_of(folder) or (
                table(folder.parent) if len(folder.path.parts) > 1 else None
            )
        return seen[str(folder)]

    for file in files:
        found = table(file.parent)
        if found:
            raise ValueError(
                f"{file} belongs to {found}. Which files are meant is said by the table's own "
                "list; some may hold rows that were deleted from it. Nothing was learned."
            )


def _table_of(folder: File) -> str | None:
    """Which table a folder is, and how it is learned; None if it is none."""
    if folder.has_folder(DELTA):
        how = "scan takes the folder of the table"
        if not folder.is_here:
            how = "from_batches takes DeltaTable(address)"
        return f"the Delta table {folder}. In Python, {how}"
    if folder.has_folder(".hoodie"):
        return f"the Hudi table {folder}. In Python, from_spark takes what Spark reads"
    if folder.has_files("metadata", "*.metadata.json"):
        return f"the Iceberg table {folder}. In Python, from_batches takes pyiceberg's batches"
    return None


def hive_columns(files: Sequence[File]) -> list[Constants]:
    """The columns that folders such as ``year=2025`` stand for, for each file.

    They are those directly above the file, as far as all of them are such folders. Where all
    values of a column are numbers they become numbers; text otherwise, null for Hive's own name
    for it.
    """
    said = []
    for file in files:
        above = list(takewhile(lambda part: "=" in part, reversed(file.path.parts[:-1])))
        pairs = [part.partition("=") for part in reversed(above)]
        said.append({name: unquote(value) for name, _, value in pairs if name and value})
    for file, one in zip(files, said, strict=True):
        if one.keys() != said[0].keys():
            raise ValueError(
                f"{file} has the partition columns {list(one)}, and {files[0]} has "
                f"{list(said[0])}: all files must be in folders with the same columns."
            )
    values = {name: _typed([one[name] for one in said]) for name in said[0]}
    return [tuple((name, values[name][k]) for name in values) for k in range(len(files))]


def _typed(texts: list[str]) -> list[Any]:
    """Texts as whole numbers, as numbers, or as they are: the first that all of them can be."""
    given = [None if text == _NO_VALUE else text for text in texts]
    for kind, written in (int, _WHOLE), (float, _NUMBER):
        if all(text is None or written(text) for text in given):
            return [None if text is None else kind(text) for text in given]
    return list(given)
