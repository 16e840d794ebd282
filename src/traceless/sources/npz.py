"""npz: NumPy's arrays in one archive, read a run of rows at a time.

A one-dimensional array is a column of its name; a two-dimensional array ``X`` is the columns
``X0``, ``X1`` and so on. Nothing is unpickled.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from traceless.exceptions import TableError

MOST_HEADER = 10_000  # bytes, the limit that NumPy has too
MOST_COLUMNS = 2**20
MOST_BYTES = 2**26  # read at a time, at least one row


class Npz:
    """An open npz archive; the headers of its arrays are read, and fit together."""

    typed = True

    def __init__(self, file: BinaryIO, _size: int) -> None:
        self._zip = zipfile.ZipFile(file)
        self._arrays: dict[str, _Array] = {}
        for member in self._zip.infolist():
            with self._zip.open(member) as stream:
                self._arrays[member.filename] = _Array.read(member, stream)
        arrays = self._arrays.values()
        lengths = {array.shape[0] for array in arrays}
        if len(lengths) != 1:
            sizes = ", ".join(f"{array.name} {array.shape}" for array in arrays)
            raise TableError(f"its arrays must have as many rows as each other; it has {sizes}.")
        if sum(array.width for array in arrays) > MOST_COLUMNS:
            raise TableError(f"it has more than {MOST_COLUMNS} columns.")
        for array in arrays:
            array.check_length()
        self._rows = lengths.pop()
        self.names = [name for array in arrays for name in array.columns]

    def batches(self, wanted: list[str], rows: int) -> Iterator[tuple[Any, float | None]]:
        """Record batches, and the fraction of the rows that is read."""
        import pyarrow as pa

        used = {m: a for m, a in self._arrays.items() if not set(wanted).isdisjoint(a.columns)}
        with ExitStack() as stack:
            streams = {m: stack.enter_context(self._zip.open(m)) for m in used}
            for member, stream in streams.items():
                _Array.read(self._zip.getinfo(member), stream)  # skips the header
            one_row = sum(array.row_bytes for array in used.values())
            rows = min(rows, max(1, MOST_BYTES // max(one_row, 1)))
            for start in range(0, self._rows, rows):
                stop = min(start + rows, self._rows)
                columns: dict[str, Any] = {}
                for member, array in used.items():
                    values = array.rows(streams[member], stop - start)
                    columns |= dict(zip(array.columns, values.T, strict=True))
                chosen = [pa.array(np.ascontiguousarray(columns[name])) for name in wanted]
                yield pa.record_batch(chosen, names=wanted), stop / self._rows

    def line_of(self, _file: BinaryIO, _row: int) -> int | None:
        """There are no lines."""
        return None


@dataclass(frozen=True)
class _Array:
    """The header of an array in the archive."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    rest: int  # bytes that follow the header

    @classmethod
    def read(cls, member: zipfile.ZipInfo, stream: IO[bytes]) -> _Array:
        """From the first bytes of the array's file."""
        name = member.filename.removesuffix(".npy")
        readers = {
            (1, 0): (npy.read_array_header_1_0, 2),
            (2, 0): (npy.read_array_header_2_0, 4),
        }
        version = npy.read_magic(stream)
        if version not in readers:
            raise TableError(f"the array {name} is of the unknown version {version}.")
        reader, width = readers[version]
        length = stream.read(width)
        declared = int.from_bytes(length, "little")
        if declared > MOST_HEADER:
            raise TableError(
                f"the header of the array {name} declares {declared} bytes, and at most "
                f"{MOST_HEADER} are allowed: NumPy writes less than 200."
            )
        shape, fortran, dtype = reader(io.BytesIO(length + stream.read(declared)))
        array = cls(name, shape, dtype, max(0, member.file_size - stream.tell()))
        if len(shape) not in (1, 2) or min(shape) < 0:
            raise TableError(f"the array {name} of shape {shape} is no table.")
        if fortran and len(shape) == 2:
            raise TableError(
                f"the array {name} is stored column by column; save "
                "numpy.ascontiguousarray(...) of it."
            )
        if dtype.kind not in "biufU":
            raise TableError(f"the array {name} of type {dtype} holds neither numbers nor text.")
        if array.row_bytes > MOST_BYTES:
            raise TableError(f"a row of the array {name} is longer than {MOST_BYTES} bytes.")
        return array

    def check_length(self) -> None:
        """Raise unless the bytes that follow the header can hold the array."""
        if self.shape[0] * self.row_bytes > self.rest or not self.dtype.itemsize:
            raise TableError(
                f"the array {self.name} of type {self.dtype} and shape {self.shape} cannot be in "
                f"the {self.rest} bytes that follow its header."
            )

    @property
    def width(self) -> int:
        return math.prod(self.shape[1:])

    @property
    def row_bytes(self) -> int:
        return self.width * self.dtype.itemsize

    @cached_property
    def columns(self) -> list[str]:
        one = len(self.shape) == 1
        return [self.name] if one else [f"{self.name}{j}" for j in range(self.width)]

    def rows(self, stream: IO[bytes], n: int) -> NDArray[Any]:
        """The next rows of the stream, as a matrix in the machine's byte order."""
        data = stream.read(n * self.row_bytes)
        if len(data) < n * self.row_bytes:
            raise TableError(f"the array {self.name} ends before its {self.shape[0]} rows do.")
        native = self.dtype.newbyteorder("=")
        return np.frombuffer(data, self.dtype).astype(native, copy=False).reshape(n, self.width)
