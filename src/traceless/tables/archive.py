"""npz: NumPy's arrays in one archive, read a run of rows at a time.

A one-dimensional array is a column of its name; a two-dimensional array ``X`` is the columns
``X0``, ``X1`` and so on. Nothing is unpickled.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from traceless.exceptions import TableError

MOST_COLUMNS = 2**20
MOST_BYTES = 2**26  # read at a time, at least one row


class Npz:
    """An open npz archive: the headers of its arrays are read, and found to fit together."""

    typed = True

    def __init__(self, file: BinaryIO) -> None:
        self._zip = zipfile.ZipFile(file)
        shapes: dict[str, tuple[int, ...]] = {}
        for member in self._zip.namelist():
            with self._zip.open(member) as stream:
                shapes[member] = _header(member, stream)[0]
        lengths = {shape[0] for shape in shapes.values()}
        if len(lengths) != 1:
            sizes = ", ".join(f"{_name(m)} {s}" for m, s in shapes.items())
            raise TableError(f"its arrays must have as many rows as each other; it has {sizes}.")
        if sum(math.prod(shape[1:]) for shape in shapes.values()) > MOST_COLUMNS:
            raise TableError(f"it has more than {MOST_COLUMNS} columns.")
        self._rows = lengths.pop()
        self._columns = {member: _columns(member, shape) for member, shape in shapes.items()}
        self.names = [name for names in self._columns.values() for name in names]

    def batches(self, wanted: list[str], rows: int) -> Iterator[tuple[Any, float | None]]:
        """Record batches, and which part of the archive is read then."""
        import pyarrow as pa

        members = [m for m, names in self._columns.items() if set(names) & set(wanted)]
        with ExitStack() as stack:
            streams = {m: stack.enter_context(self._zip.open(m)) for m in members}
            headers = {m: _header(m, stream) for m, stream in streams.items()}
            one_row = sum(_row_bytes(*header) for header in headers.values())
            rows = min(rows, max(1, MOST_BYTES // max(one_row, 1)))
            for start in range(0, self._rows, rows):
                stop = min(start + rows, self._rows)
                columns: dict[str, Any] = {}
                for m in members:
                    values = _read(streams[m], m, headers[m], stop - start)
                    columns |= dict(zip(self._columns[m], values.T, strict=True))
                chosen = [pa.array(np.ascontiguousarray(columns[name])) for name in wanted]
                yield pa.record_batch(chosen, names=wanted), stop / self._rows


Header = tuple[tuple[int, ...], np.dtype[Any]]


def _header(member: str, stream: IO[bytes]) -> Header:
    """Shape and type of an array, from its first bytes."""
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    version = npy.read_magic(stream)
    if version not in read:
        raise TableError(f"the array {_name(member)} is of the unknown version {version}.")
    shape, fortran, dtype = read[version](stream)
    if len(shape) not in (1, 2) or min(shape) < 0:
        raise TableError(f"the array {_name(member)} of shape {shape} is no table.")
    if fortran and len(shape) == 2:
        raise TableError(
            f"the array {_name(member)} is stored column by column; save "
            "numpy.ascontiguousarray(...) of it."
        )
    if dtype.kind not in "biufU":
        raise TableError(
            f"the array {_name(member)} of type {dtype} holds neither numbers nor text."
        )
    if _row_bytes(shape, dtype) > MOST_BYTES:
        raise TableError(f"a row of the array {_name(member)} is longer than {MOST_BYTES} bytes.")
    return shape, dtype


def _columns(member: str, shape: tuple[int, ...]) -> list[str]:
    name = _name(member)
    return [name] if len(shape) == 1 else [f"{name}{j}" for j in range(shape[1])]


def _row_bytes(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    return math.prod(shape[1:]) * dtype.itemsize


def _read(stream: IO[bytes], member: str, header: Header, rows: int) -> NDArray[Any]:
    shape, dtype = header
    width = math.prod(shape[1:])
    size = rows * width * dtype.itemsize
    data = stream.read(size)
    if len(data) < size:
        raise TableError(f"the array {_name(member)} ends before its {shape[0]} rows do.")
    return (
        np.frombuffer(data, dtype).astype(dtype.newbyteorder("="), copy=False).reshape(rows, width)
    )


def _name(member: str) -> str:
    return member.removesuffix(".npy")
