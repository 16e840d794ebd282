"""The file format: safetensors, JSON and one SHA-256 over every byte.

A file is a valid safetensors file: the length of a header (eight bytes), the header (JSON) and
the data of the tensors. ``__metadata__`` comes first in the header, and `sha256` first in it,
so that the 64 digits of the hash are always the bytes 35 to 98:

    data = open(path, "rb").read()
    zeroed = data[:35] + b"0" * 64 + data[99:]
    assert hashlib.sha256(zeroed).hexdigest() == data[35:99].decode()

There is one way to write what a file says: the reader puts header and facts into canonical
JSON again, and refuses what is not the same text.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.exceptions import FileError

Tensors = Mapping[str, NDArray[Any]]

FORMAT, VERSION = "traceless", 2
SUFFIX = ".part"  # of what is being written: a file of such a name was never finished
_DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "I64": np.dtype("<i8"),
    "U8": np.dtype("u1"),
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_PREFIX = b'{"__metadata__":{"sha256":"'
_HASH = slice(8 + len(_PREFIX), 8 + len(_PREFIX) + 64)
_LARGEST_HEADER = 100_000_000  # bytes, the limit that safetensors has too
_LONGEST_INTEGER = 1000  # digits: the largest number in a file, a seed, has 301
_DAMAGED = "Take a copy from elsewhere, or save the model again."


@dataclass(frozen=True)
class Contents:
    """What a file holds.

    Attributes
    ----------
    kind : str
        What it is a file of.
    facts : dict
        All that is not an array, in JSON's types.
    tensors : dict of ndarray
        Read-only.
    sha256 : str
        Of the file, in hexadecimal.
    version : int
        Of the format: older files mean what their version says.
    """

    kind: str
    facts: dict[str, Any]
    tensors: dict[str, NDArray[Any]]
    sha256: str
    version: int = VERSION


def canonical_json(value: Any) -> str:
    """The one text of a value: sorted keys, no spaces, ASCII; NaN and infinity are refused."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def parsed_json(text: str | bytes) -> Any:
    """A value from its text, in time that is linear in its length: no number is too long."""
    return json.loads(text, parse_int=_whole)


def _whole(digits: str) -> int:
    """An integer of a length that Python converts at once; beyond, it takes quadratic time."""
    if len(digits) > _LONGEST_INTEGER:
        raise ValueError(f"there is a number of {len(digits)} digits")
    return int(digits)


# --- writing -------------------------------------------------------------------------------


def write(path: Any, kind: str, facts: Mapping[str, Any], tensors: Tensors) -> str:
    """Write a file, all or nothing, and return its SHA-256.

    It is written aside in the same folder, brought to the disk, and renamed: at any moment the
    path leads to the old file or to the new one.

    Parameters
    ----------
    path : str or path
    kind : str
    facts : mapping
        Of JSON's types.
    tensors : mapping of float64, int64 and uint8 arrays
    """
    pieces = {name: _plain(tensors[name]) for name in _in_order(tensors)}
    shapes = {
        name: (_NAMES[piece.dtype], _checked_shape(piece.shape)) for name, piece in pieces.items()
    }
    start = _header("0" * 64, kind, canonical_json(facts), shapes)
    if len(start) > _LARGEST_HEADER:
        raise ValueError(
            f"What is not an array takes {len(start)} bytes, more than the {_LARGEST_HEADER} that "
            "readers accept: a feature map with so many given points cannot be saved."
        )
    digest = hashlib.sha256(start)
    for piece in pieces.values():
        digest.update(piece.data)
    sha256 = digest.hexdigest()
    start = start[: _HASH.start] + sha256.encode() + start[_HASH.stop :]
    replace(path, [start, *(piece.data for piece in pieces.values())])
    return sha256


def _plain(tensor: NDArray[Any]) -> NDArray[Any]:
    if tensor.dtype.newbyteorder("<") not in _NAMES:
        raise TypeError(f"A file holds float64, int64 and uint8, not {tensor.dtype}.")
    return np.ascontiguousarray(tensor, dtype=tensor.dtype.newbyteorder("<"))


def _in_order(tensors: Tensors) -> list[str]:
    """Bytes last, so that all numbers are aligned."""
    return sorted(tensors, key=lambda name: (tensors[name].dtype.itemsize == 1, name))


def _header(
    sha256: str,
    kind: str,
    facts: str,
    shapes: Mapping[str, tuple[str, Any]],
    version: int = VERSION,
) -> bytes:
    """Length and header, padded so that the data is aligned."""
    metadata = {"sha256": sha256, "facts": facts, "format": FORMAT, "kind": str(kind)}
    said: dict[str, Any] = {"__metadata__": metadata | {"version": str(version)}}
    end = 0
    for name, (dtype, shape) in shapes.items():
        begin, end = end, end + _DTYPES[dtype].itemsize * math.prod(shape)
        said[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}
    text = json.dumps(said, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def replace(path: Any, pieces: Iterable[Any]) -> None:
    """Put these bytes in the place of a file, all or nothing."""
    path = Path(path)
    aside = path.with_name(f".{path.name[:32]}.{secrets.token_hex(8)}{SUFFIX}")
    try:
        with aside.open("xb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            bring_to_disk(file.fileno())
        os.replace(aside, path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Bring a new name to the disk; only POSIX has a way to ask for it."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            bring_to_disk(handle)
        finally:
            os.close(handle)


def bring_to_disk(handle: int) -> None:
    """Wait until the disk has what was written; the `fsync` of macOS does not wait for that."""
    if sys.platform == "darwin":
        import fcntl

        with suppress(OSError):  # a file system that cannot: fsync is all there is
            fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
            return
    os.fsync(handle)


# --- reading -------------------------------------------------------------------------------


def read(path: Any) -> Contents:
    """Read a file, after all there is to check in it has been checked.

    Takes as much memory as the file is long, and some times its header.

    Raises
    ------
    FileError
        If the file is not one of traceless, was written by a newer version, or is not to the
        last byte what was written.
    """
    data = Path(path).read_bytes()
    stop = 8 + int.from_bytes(data[:8], "little")
    if not len(_PREFIX) + 72 <= stop <= min(len(data), 8 + _LARGEST_HEADER):
        raise FileError(_not_ours(path))
    _check_version(path, data[8:stop])
    found = data[_HASH].decode("latin-1")
    view = memoryview(data)
    digest = hashlib.sha256(view[: _HASH.start])
    digest.update(b"0" * 64)
    digest.update(view[_HASH.stop :])
    if data[8 : _HASH.start] != _PREFIX or digest.hexdigest() != found:
        raise FileError(
            f"{path} is damaged: its bytes do not have the SHA-256 that was written into it. "
            f"{_DAMAGED}"
        )
    try:
        return _parsed(data, stop, found)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise FileError(f"{path} is no proper file of traceless: {error}.") from None


def _check_version(path: Any, header: bytes) -> None:
    """Say whose file it is, and be lenient: a newer format may look different."""
    try:
        metadata = parsed_json(header)["__metadata__"]
        ours, version = metadata["format"] == FORMAT, _whole(str(metadata["version"]))
    except (ValueError, TypeError, KeyError, RecursionError):
        ours, version = header.startswith(_PREFIX), 0  # the hash will tell
    if not ours:
        raise FileError(_not_ours(path))
    if version > VERSION:
        raise FileError(
            f"{path} was written by a newer version: its format is {version}, and this traceless "
            f"reads up to {VERSION}. Install a newer traceless."
        )


def _not_ours(path: Any) -> str:
    return f"{path} is not a file of traceless, or its beginning is damaged. {_DAMAGED}"


def _parsed(data: bytes, stop: int, sha256: str) -> Contents:
    said = parsed_json(data[8:stop])
    metadata = said.pop("__metadata__")
    kind, text, version = metadata["kind"], metadata["facts"], _whole(metadata["version"])
    shapes = {name: (spec["dtype"], _checked_shape(spec["shape"])) for name, spec in said.items()}
    if version < 1 or _header(sha256, kind, text, shapes, version) != data[:stop]:
        raise ValueError("its header is not as it would be written")
    facts = parsed_json(text)
    if not isinstance(facts, dict) or canonical_json(facts) != text:
        raise ValueError("its facts are not as they would be written")
    tensors = dict(_tensors(data, stop, shapes))
    if list(tensors) != _in_order(tensors):
        raise ValueError("its tensors are not in order")
    return Contents(kind, facts, tensors, sha256, version)


def _checked_shape(shape: Any) -> tuple[int, ...]:
    """A shape whose first axis is as long as there is data for: only that one may be empty.

    Behind an empty axis the others can say anything; a loop over the first one then costs nothing.
    """
    if len(shape) > 8 or not all(type(n) is int and 0 <= n < 2**48 for n in shape):
        raise ValueError(f"a tensor has the shape {str(shape)[:60]}")
    if 0 in shape[1:]:
        raise ValueError(f"a tensor has the shape {shape}, and only the first axis may be empty")
    return tuple(shape)


def _tensors(
    data: bytes, stop: int, shapes: Mapping[str, tuple[str, tuple[int, ...]]]
) -> Iterator[tuple[str, NDArray[Any]]]:
    """Read-only views of the data, one behind the other up to its end."""
    begin, view = stop, memoryview(data)
    for name, (dtype, shape) in shapes.items():
        end = begin + _DTYPES[dtype].itemsize * math.prod(shape)
        if end > len(data):
            raise ValueError(f"the tensor {name!r} does not fit into it")
        yield name, np.frombuffer(view[begin:end], _DTYPES[dtype]).reshape(shape)
        begin = end
    if begin != len(data):
        raise ValueError(f"it has {len(data) - begin} bytes that belong to no tensor")
