"""Parquet files: row groups as partitions, read in batches, of which a few bytes may declare many.

A text that rows repeat is in the file once, in a dictionary, and the values of numbers may be
compressed to almost nothing. So columns that declare too much are refused, and rows are read in
steps so small that even the longest text a dictionary could have, repeated in each of them, fits.
That is why ParquetFile reads them: pyarrow.dataset makes a whole row group at once, and took 3 GB
of memory for a file of 260 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, groupby
from typing import Any
from unicodedata import normalize

from traceless.exceptions import TableError
from traceless.features.cells import index_names
from traceless.files.limits import allowed, refusal
from traceless.sources.arrow import (
    Columns,
    check_kinds,
    check_once,
    check_present,
    layout_of,
    rows_of,
    written_out,
)
from traceless.sources.batches import Rows
from traceless.sources.files import File, default_batch_rows, reading
from traceless.sources.layouts import Constants
from traceless.sources.stamps import Stamp

_RATIO = 200  # of compression, which values hardly reach: their repetitions are encoded before it
_DICTIONARY_PAGE = b"\x15\x04\x15"  # the first bytes of its header; its size in memory follows


class Parquet:
    """An open Parquet file.

    Pages that have a checksum are checked when they are read. They are read a buffer at a time.

    Parameters
    ----------
    file : NativeFile, or binary file
        Of which bytes can be read at any place.
    """

    def __init__(self, file: Any) -> None:
        import pyarrow as pa
        from pyarrow.parquet import ParquetFile

        options = {"pre_buffer": False, "buffer_size": 2**20, "page_checksum_verification": True}
        self._bytes = file if isinstance(file, pa.NativeFile) else pa.PythonFile(file, "r")
        self._file = ParquetFile(self._bytes, **options)
        self.metadata, stored = self._file.metadata, self._file.schema_arrow
        fields = [field.with_name(normalize("NFC", field.name)) for field in stored]
        self.schema = pa.schema(fields, stored.metadata)
        self.names, self._stored = self.schema.names, stored.names

    def batches(
        self, wanted: Sequence[str], rows: int, groups: Sequence[int] | None = None
    ) -> Iterator[Any]:
        """Record batches of some columns.

        Parameters
        ----------
        wanted : sequence of str
            Of `names`.
        rows : int
            In a batch.
        groups : sequence of int, optional
            Row groups; by default all.

        Raises
        ------
        TableError
            If they would take more memory than allowed.
        """
        stored, texts = [self._stored[self.names.index(name)] for name in wanted], []
        for group in range(self.metadata.num_row_groups) if groups is None else groups:
            chunks = map(self.metadata.row_group(group).column, range(self.metadata.num_columns))
            columns = [chunk for chunk in chunks if chunk.path_in_schema.split(".")[0] in stored]
            _check_compression(columns)
            texts += [column for column in columns if column.physical_type.endswith("BYTE_ARRAY")]
        longest = max(map(self._longest_text, texts), default=0)
        step = max(1, min(rows, allowed() // (4 * max(longest, 1))))
        found = self._file.iter_batches(step, groups, stored, use_threads=False)
        for batch in _gathered(found, rows):
            yield batch.rename_columns([normalize("NFC", name) for name in batch.schema.names])

    def _longest_text(self, column: Any) -> int:
        """No text of a column chunk that rows share can have more bytes than this."""
        if "DELTA_BYTE_ARRAY" in column.encodings:  # a text begins as the one before
            return int(column.total_uncompressed_size)
        start = column.data_page_offset
        if column.has_dictionary_page:
            start = min(start, column.dictionary_page_offset)
        head, size = self._bytes.read_at(16, start), 0
        if not head.startswith(_DICTIONARY_PAGE):
            return 0 if not column.has_dictionary_page else int(column.total_uncompressed_size)
        for place, byte in enumerate(head[len(_DICTIONARY_PAGE) :]):  # seven bits in each
            size |= (byte & 127) << 7 * place
            if byte < 128:
                break
        return size >> 1  # the lowest bit is the sign


def _check_compression(columns: list[Any]) -> None:
    """Raise if columns were compressed so much that few bytes would become many at once."""
    sizes = [(c.total_uncompressed_size, c.total_compressed_size) for c in columns]
    said = refusal("What is compressed", sum(big for big, small in sizes if big > _RATIO * small))
    if said:
        raise TableError(said)


def _gathered(batches: Iterator[Any], rows: int) -> Iterator[Any]:
    """Batches put together until they have so many rows."""
    held: list[Any] = []
    n = size = 0
    for batch in batches:
        held.append(batch)
        n, size = n + batch.num_rows, size + written_out(batch)
        del batch  # or it stays until the next is read
        if said := refusal(f"A batch of {n} rows", size):
            raise TableError(said)
        if n >= rows:
            yield from _as_one(held)
            held, n, size = [], 0, 0
    yield from _as_one(held)


def _as_one(batches: list[Any]) -> list[Any]:
    """Several batches as one; what there is, if they are fewer."""
    import pyarrow as pa

    if len(batches) < 2:
        return batches
    found: list[Any] = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return found


# --- partitions --------------------------------------------------------------------------------


@dataclass(frozen=True)
class RowGroups:
    """Some row groups of a file, with `n_rows` rows after the `first` ones.

    `constants` are columns that have one value in all of them.
    """

    stamp: Stamp
    groups: tuple[int, ...]
    first: int
    n_rows: int
    columns: Columns
    batch_rows: int
    constants: Constants = ()

    def batches(self) -> Iterator[Rows]:
        """The rows, `batch_rows` at a time; one empty batch if there are none."""
        import pyarrow as pa

        name, n = str(self.stamp.file), 0
        with self.stamp.unchanged(), opened(self.stamp.file) as file:
            there = [name for name in self.columns.names if name in file.names]
            for batch in file.batches(there, self.batch_rows, self.groups):
                row_name = partial(_row_number, self.first + n)
                n += batch.num_rows
                yield rows_of(_with(batch, self.constants), self.columns, name, row_name)
            self.stamp.check_rows(n, self.n_rows)
            if not n:
                batch = pa.RecordBatch.from_pylist([], file.schema)
                yield rows_of(_with(batch, self.constants), self.columns, name)


def scan_parquet(
    files: Sequence[File],
    constants: Sequence[Constants],
    target: Any,
    weight: Any,
    columns: Any,
    batch_rows: int | None,
) -> tuple[list[RowGroups], Columns]:
    """See `traceless.scan`."""
    stamps = [Stamp.of(file) for file in files]
    partitions: list[RowGroups] = []
    layout = None
    for stamp, same in zip(stamps, constants, strict=True):
        with opened(stamp.file) as file:
            schema = _with(file.schema.empty_table(), same).schema
            where = str(stamp.file)
            if layout is None:
                length = partial(_length_of_lists, files)
                layout = layout_of(schema, columns, target, weight, where, length)
                rows = batch_rows or default_batch_rows(layout.width)
            _check_schema(schema, layout, where, every=columns is None)
            runs = _runs(file.metadata, rows)
        partitions += [RowGroups(stamp, *run, layout, rows, same) for run in runs]
    assert layout is not None  # there is a file
    return partitions, layout


@contextmanager
def opened(file: File) -> Iterator[Parquet]:
    """An open Parquet file."""
    with reading(file):
        import pyarrow as pa
    with reading(file, pa.ArrowException, OSError), file.open() as there:
        yield Parquet(there)


def _with(rows: Any, constants: Constants) -> Any:
    """Arrow rows with further columns; one that the file has itself stays as it is there."""
    import pyarrow as pa

    for name, value in constants:
        if name not in rows.schema.names:
            rows = rows.append_column(name, pa.repeat(value, rows.num_rows))
    return rows


def _length_of_lists(files: Sequence[File], name: str) -> int:
    """How long the lists of a column are: that of the first row."""
    for path in files:
        with opened(path) as file:
            check_present(file.names, [name], str(path))
            for batch in file.batches([name], 1):
                return len(batch.column(name)[0].as_py() or ())
    raise ValueError(f"No file has a row, so it is unknown how long the lists in {name!r} are.")


def _check_schema(schema: Any, layout: Columns, where: str, every: bool) -> None:
    check_once(schema.names, where)
    check_present(schema.names, layout.names, where)
    check_kinds(schema, layout, where)
    left = {*layout.names, *index_names(schema)}
    extra = [name for name in schema.names if name not in left] if every else []
    if extra:
        raise ValueError(
            f"{where} has a column {extra[0]!r} that the first file has not; name the features "
            "with columns=[...], or leave that file out."
        )


def _row_number(first: int, row: int) -> str:
    return f"row {first + row + 1}"


def _runs(metadata: Any, rows: int) -> list[tuple[tuple[int, ...], int, int]]:
    """Row groups, in runs of about `rows` rows, with the rows before them and in them.

    An empty run if there is none.
    """
    groups = range(metadata.num_row_groups)
    ends = list(accumulate((metadata.row_group(g).num_rows for g in groups), initial=0))
    runs = [tuple(run) for _, run in groupby(groups, key=lambda g: ends[g] // rows)]
    return [(run, ends[run[0]], ends[run[-1] + 1] - ends[run[0]]) for run in runs] or [((), 0, 0)]
