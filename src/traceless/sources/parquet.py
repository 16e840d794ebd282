"""Parquet files: opened, and read in batches, of which a few bytes may declare many.

A text that rows repeat is in the file once, in a dictionary, and the values of numbers may be
compressed to almost nothing. So columns that declare too much are refused, and rows are read in
steps so small that even the longest text a dictionary could have, repeated in each of them, fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO

from traceless.exceptions import TableError
from traceless.files.limits import allowed, refusal
from traceless.sources.arrow import written_out

_RATIO = 200  # of compression, which values hardly reach: their repetitions are encoded before it
_DICTIONARY_PAGE = b"\x15\x04\x15"  # the first bytes of its header; its size in memory follows


def parquet_file(file: Path | BinaryIO) -> Any:
    """An open Parquet file; pages that have a checksum are checked when they are read.

    It is read a buffer at a time: a whole row group at once can take gigabytes.
    """
    from pyarrow.parquet import ParquetFile

    options = {"pre_buffer": False, "buffer_size": 2**20}
    return ParquetFile(file, page_checksum_verification=True, **options)


def bounded_batches(
    source: Callable[[], AbstractContextManager[Any]],
    file: Any,
    rows: int,
    names: list[str],
    groups: Sequence[int] | None = None,
) -> Iterator[Any]:
    """Record batches of some columns.

    Parameters
    ----------
    source : callable
        Opens the same file, to read bytes from it.
    file : ParquetFile
    rows : int
        In a batch.
    names : list of str
    groups : sequence of int, optional
        Row groups; by default all.

    Raises
    ------
    TableError
        If they would take more memory than allowed.
    """
    metadata, texts = file.metadata, []
    for group in range(metadata.num_row_groups) if groups is None else groups:
        chunks = map(metadata.row_group(group).column, range(metadata.num_columns))
        columns = [chunk for chunk in chunks if chunk.path_in_schema.split(".")[0] in names]
        _check_compression(columns)
        texts += [column for column in columns if column.physical_type.endswith("BYTE_ARRAY")]
    step = rows
    if texts:
        with source() as opened:
            longest = max(_longest_text(opened, column) for column in texts)
        step = max(1, min(rows, allowed() // (4 * max(longest, 1))))
    yield from _gathered(file.iter_batches(step, groups, names, use_threads=False), rows)


def _check_compression(columns: list[Any]) -> None:
    """Raise if columns were compressed so much that few bytes would become many at once."""
    sizes = [(c.total_uncompressed_size, c.total_compressed_size) for c in columns]
    said = refusal("What is compressed", sum(big for big, small in sizes if big > _RATIO * small))
    if said:
        raise TableError(said)


def _longest_text(file: Any, column: Any) -> int:
    """No text that rows share can have more bytes than this."""
    if "DELTA_BYTE_ARRAY" in column.encodings:  # a text begins as the one before
        return int(column.total_uncompressed_size)
    start = column.data_page_offset
    if column.has_dictionary_page:
        start = min(start, column.dictionary_page_offset)
    file.seek(start)
    head, size = file.read(16), 0
    if not head.startswith(_DICTIONARY_PAGE):
        return 0 if not column.has_dictionary_page else int(column.total_uncompressed_size)
    for place, byte in enumerate(head[len(_DICTIONARY_PAGE) :]):  # seven bits in each
        size |= (byte & 127) << 7 * place
        if byte < 128:
            break
    return size >> 1  # the lowest bit is the sign


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
