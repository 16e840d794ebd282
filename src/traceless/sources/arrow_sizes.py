"""What an Arrow file or stream declares of its batches, read before any of them is.

A compressed buffer begins with the length that it will have (eight bytes). Where the buffers are,
a flatbuffer says: a table is found at an offset, and before it the places of its fields. See the
Arrow columnar format, "Serialization and Interprocess Communication".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from traceless.exceptions import TableError
from traceless.files.limits import refusal

MAGIC = b"ARROW1"  # the first and the last bytes of a file; a stream has others
_DICTIONARY, _BATCH = 2, 3  # kinds of messages that have buffers
_CONTINUED = 0xFFFFFFFF


def check_declared_sizes(file: BinaryIO) -> None:
    """Raise `TableError` if a batch, or all dictionaries, would take too much memory."""
    size = file.seek(0, 2)
    file.seek(0)
    is_file = file.read(len(MAGIC)) == MAGIC
    dictionaries = 0
    for place in _blocks(file, size) if is_file else _messages(file, size):
        is_dictionary, declared = _declared(file, place, size)
        dictionaries += declared if is_dictionary else 0
        what = "What is compressed in the dictionaries" if is_dictionary else "A compressed batch"
        said = refusal(what, dictionaries if is_dictionary else declared + dictionaries)
        if said:
            raise TableError(said)
    file.seek(0)


class _Table(NamedTuple):
    """A table of a flatbuffer."""

    data: bytes
    at: int

    @classmethod
    def root(cls, data: bytes) -> _Table:
        return cls(data, *struct.unpack_from("<I", data))

    def _place(self, field: int) -> int | None:
        """Where a field is; None if it has its default value."""
        vtable = self.at - struct.unpack_from("<i", self.data, self.at)[0]
        if vtable < 0 or 4 + 2 * field >= struct.unpack_from("<H", self.data, vtable)[0]:
            return None
        (offset,) = struct.unpack_from("<H", self.data, vtable + 4 + 2 * field)
        return self.at + offset if offset else None

    def number(self, field: int, form: str) -> int:
        place = self._place(field)
        return 0 if place is None else int(struct.unpack_from(form, self.data, place)[0])

    def table(self, field: int) -> _Table | None:
        place = self._place(field)
        return None if place is None else _Table(self.data, self._far(place))

    def structs(self, field: int, form: str) -> list[tuple[Any, ...]]:
        """A vector of structs."""
        place = self._place(field)
        if place is None:
            return []
        start = self._far(place)
        (n,) = struct.unpack_from("<I", self.data, start)
        part = self.data[start + 4 : start + 4 + n * struct.calcsize(form)]
        return list(struct.iter_unpack(form, part))

    def _far(self, place: int) -> int:
        return place + int(struct.unpack_from("<I", self.data, place)[0])


def _blocks(file: BinaryIO, size: int) -> Iterator[int]:
    """Where the messages of a file begin, from its footer."""
    (length,) = struct.unpack("<i", _read(file, size - 10, 4))
    footer = _Table.root(_read(file, size - 10 - length, length))
    for field in (2, 3):  # dictionaries, batches
        yield from (place for place, _, _ in footer.structs(field, "<qi4xq"))


def _messages(file: BinaryIO, size: int) -> Iterator[int]:
    """Where the messages of a stream begin."""
    place = 0
    while place + 4 <= size:
        start, message = _message(file, place)
        if message is None:
            return
        yield place
        place = start + max(message.number(3, "<q"), 0)


def _message(file: BinaryIO, place: int) -> tuple[int, _Table | None]:
    """Where the body of a message begins, and what comes before it; None at the end."""
    (length,) = struct.unpack("<I", _read(file, place, 4))
    place += 4
    if length == _CONTINUED:  # as all writers do since 2019
        (length,) = struct.unpack("<I", _read(file, place, 4))
        place += 4
    return place + length, _Table.root(_read(file, place, length)) if length else None


def _declared(file: BinaryIO, place: int, size: int) -> tuple[bool, int]:
    """Whether a message is a dictionary, and how long its compressed buffers will be."""
    start, message = _message(file, place)
    kind = 0 if message is None else message.number(1, "<B")
    batch = None if message is None or kind not in (_DICTIONARY, _BATCH) else message.table(2)
    if batch is not None and kind == _DICTIONARY:
        batch = batch.table(1)
    if batch is None or batch.table(3) is None:  # not compressed: no longer than the file
        return kind == _DICTIONARY, 0
    total = 0
    for offset, length in batch.structs(2, "<qq"):
        if length >= 8 and 0 <= start + offset <= size - 8:
            total += max(struct.unpack("<q", _read(file, start + offset, 8))[0], 0)
    return kind == _DICTIONARY, total


def _read(file: BinaryIO, place: int, length: int) -> bytes:
    file.seek(place)
    return file.read(length)
