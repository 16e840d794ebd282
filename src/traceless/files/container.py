"""The file format: safetensors, JSON and one SHA-256 over every byte.

A file is a valid safetensors file: the length of a header (eight bytes), the header (JSON) and
the data of the tensors. ``__metadata__`` comes first in the header, and `sha256` first in it,
so that the 64 digits of the hash are always the bytes 35 to 98:

    data = open(path, "rb").read()
    zeroed = data[:35] + b"0" * 64 + data[99:]
    assert hashlib.sha256(zeroed).hexdigest() == data[35:99].decode()

A model has one file only: the reader writes header and facts as canonical JSON again, and refuses
a file that is not in this form.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import secrets
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from traceless.exceptions import FileError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Tensors = Mapping[str, NDArray[Any]]

FORMAT, VERSION = "traceless", 1
SUFFIX = ".part"  # of a file that is being written, or was never finished
_DTYPES = {"F64": "<f8", "I64": "<i8", "U8": "|u1"}  # as NumPy spells them
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_PREFIX = b'{"__metadata__":{"sha256":"'
_HASH = slice(8 + len(_PREFIX), 8 + len(_PREFIX) + 64)
_LARGEST_HEADER = 100_000_000  # bytes, the limit that safetensors has too
_LONGEST_INTEGER = 1000  # digits: the largest number in a file, a seed, has 301
_LONG = re.compile(rf"(?<![0-9])[0-9]{{{_LONGEST_INTEGER + 1}}}")
_DAMAGED = "Take a copy from elsewhere, or save the model again."


@dataclass(frozen=True)
class Contents:
    """The contents of a file.

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
    """

    kind: str
    facts: dict[str, Any]
    tensors: dict[str, NDArray[Any]]
    sha256: str


def canonical_json(value: Any) -> str:
    """A value as canonical JSON: sorted keys, no spaces, ASCII; NaN and infinity are refused."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def parsed_json(text: str) -> Any:
    """A value from JSON, in linear time: repeated names, and very long integers, are refused."""
    # json calls a given parse_int for each number, so it is given only where a long one may be
    return (_LONG_DECODER if _LONG.search(text) else _DECODER).decode(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has a name twice")
    return found


def _integer(digits: str) -> int:
    """An integer; converting a very long one would take quadratic time."""
    if len(digits) > _LONGEST_INTEGER:
        raise ValueError(f"there is a number of {len(digits)} digits")
    return int(digits)


_DECODER = json.JSONDecoder(object_pairs_hook=_object)
_LONG_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer)


# --- writing -------------------------------------------------------------------------------


def write(
    path: Any,
    kind: str,
    facts: Mapping[str, Any],
    tensors: Tensors,
    like: Permissions | None = None,
) -> str:
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
    like : Permissions, optional
        By default those of any new file.
    """
    sha256, pieces = _pieces(kind, facts, tensors)
    replace(path, pieces, like)
    return sha256


def encoded(kind: str, facts: Mapping[str, Any], tensors: Tensors) -> bytes:
    """The bytes of a file; see `write`."""
    return b"".join(_pieces(kind, facts, tensors)[1])


def _pieces(kind: str, facts: Mapping[str, Any], tensors: Tensors) -> tuple[str, list[Any]]:
    """The SHA-256 of a file, and its bytes in pieces."""
    plain = {}
    for name, tensor in tensors.items():
        dtype = tensor.dtype.newbyteorder("<").str
        if dtype not in _NAMES:
            raise TypeError(f"A file holds float64, int64 and uint8, not {tensor.dtype}.")
        plain[name] = tensor.astype(dtype, order="C", copy=False)
        _check_shape(plain[name].shape)
    plain = _in_order(plain)
    start = _header("0" * 64, kind, canonical_json(facts), plain)
    if len(start) > _LARGEST_HEADER:
        raise ValueError(
            f"What is not an array takes {len(start)} bytes, more than the {_LARGEST_HEADER} that "
            "readers accept: parameters and labels as long as these cannot be saved."
        )
    digest, blocks = hashlib.sha256(start), []
    for tensor in plain.values():
        digest.update(tensor.data)
        blocks.append(tensor.data)
    sha256 = digest.hexdigest()
    return sha256, [start[: _HASH.start], sha256.encode(), start[_HASH.stop :], *blocks]


def _in_order(tensors: Tensors) -> dict[str, NDArray[Any]]:
    """The tensors by name, bytes last, so that all numbers are aligned."""
    names = sorted(sorted(tensors), key=lambda name: tensors[name].dtype.itemsize == 1)
    return {name: tensors[name] for name in names}


def _header(sha256: str, kind: str, facts: str, tensors: Tensors) -> bytes:
    """Length and header, padded so that the data is aligned."""
    metadata = {"sha256": sha256, "facts": facts, "format": FORMAT, "kind": str(kind)}
    said: dict[str, Any] = {"__metadata__": metadata | {"version": str(VERSION)}}
    end = 0
    for name, tensor in tensors.items():
        begin, end = end, end + tensor.nbytes
        place = {"shape": list(tensor.shape), "data_offsets": [begin, end]}
        said[name] = {"dtype": _NAMES[tensor.dtype.str], **place}
    text = json.dumps(said, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _check_shape(shape: Any) -> None:
    """Raise unless all axes but the first are non-empty, so that every size is backed by data.

    With an empty axis the other sizes could be anything, and a loop over them could take for ever.
    """
    if (
        len(shape) > 8
        or not {*map(type, shape)} <= {int}
        or not 0 <= min(shape, default=0) <= max(shape, default=0) < 2**48
    ):
        raise ValueError(f"a tensor has the shape {str(shape)[:60]}")
    if 0 in shape[1:]:
        raise ValueError(f"a tensor has the shape {shape}, and only the first axis may be empty")


def replace(path: Any, pieces: Iterable[Any], like: Permissions | None = None) -> None:
    """Put these bytes in the place of a file, all or nothing; see `write`."""
    path = Path(path)
    aside = path.with_name(f".{path.name[:32]}.{secrets.token_hex(8)}{SUFFIX}")

    def opener(name: str, flags: int) -> int:
        handle = os.open(name, flags, 0o666 if like is None else 0o600)
        if like is not None:
            like.apply(handle)
        return handle

    try:
        with open(aside, "xb", opener=opener) as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            bring_to_disk(file.fileno())
        os.replace(aside, path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


class Permissions(NamedTuple):
    """Who may read and write a file."""

    mode: int
    user: int
    group: int

    def apply(self, handle: int) -> None:
        """Give them to an open file, whatever the umask; root gives the file to its owner too."""
        if os.name == "posix":
            if os.geteuid() == 0:
                os.fchown(handle, self.user, self.group)
            os.fchmod(handle, self.mode)


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
    """Read a file, and check all of it.

    Takes as much memory as the file is long, and some times its header.

    Raises
    ------
    FileError
        If the file is not one of traceless, was written by a newer version, or is not to the
        last byte what was written.
    """
    return parsed(Path(path).read_bytes(), path)


def parsed(data: bytes, path: Any) -> Contents:
    """The contents of a file that has been read; see `read`."""
    stop = 8 + int.from_bytes(data[:8], "little")
    ours, header, version = False, {}, 0
    if len(_PREFIX) + 72 <= stop <= min(len(data), 8 + _LARGEST_HEADER):
        try:  # leniently: a newer format may look different
            header = parsed_json(data[8:stop].decode())
            ours = header["__metadata__"]["format"] == FORMAT
            version = _integer(str(header["__metadata__"]["version"]))
        except (ValueError, TypeError, KeyError, RecursionError):
            ours = ours or data.startswith(_PREFIX, 8)  # the hash will tell
    if not ours:
        raise FileError(
            f"{path} is not a file of traceless, or its beginning is damaged. {_DAMAGED}"
        )
    if version > VERSION:
        raise FileError(
            f"{path} was written by a newer version: its format is {version}, and this traceless "
            f"reads up to {VERSION}. Install a newer traceless."
        )
    sha256, view = data[_HASH].decode("latin-1"), memoryview(data)
    digest = hashlib.sha256(view[: _HASH.start])
    digest.update(b"0" * 64)
    digest.update(view[_HASH.stop :])
    if data[8 : _HASH.start] != _PREFIX or digest.hexdigest() != sha256:
        raise FileError(
            f"{path} is damaged: its bytes do not have the SHA-256 that was written into it. "
            f"{_DAMAGED}"
        )
    try:
        return _contents(data, stop, header, sha256)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise FileError(f"{path} is no proper file of traceless: {error}.") from None


def _contents(data: bytes, stop: int, header: Any, sha256: str) -> Contents:
    """The contents that a header describes; tensors are read-only views of the data."""
    metadata = header.pop("__metadata__")
    tensors, begin, view = {}, stop, memoryview(data)
    for name, spec in header.items():
        dtype, shape = _DTYPES[spec["dtype"]], spec["shape"]
        _check_shape(shape)
        end = begin + int(dtype[2:]) * math.prod(shape)
        if end > len(data):
            raise ValueError(f"the tensor {name!r} does not fit into it")
        tensors[name] = _array(view[begin:end], dtype, shape)
        begin = end
    if begin != len(data):
        raise ValueError(f"it has {len(data) - begin} bytes that belong to no tensor")
    kind, text = metadata["kind"], metadata["facts"]
    if _header(sha256, kind, text, _in_order(tensors)) != data[:stop]:
        raise ValueError("its header is not in canonical form")
    facts = parsed_json(text)
    if not isinstance(facts, dict) or canonical_json(facts) != text:
        raise ValueError("its facts are not in canonical form")
    return Contents(kind, facts, tensors, sha256)


def _array(data: memoryview, dtype: str, shape: list[int]) -> NDArray[Any]:
    import numpy as np  # here: a file without tensors, and JSON, need none of it

    return np.frombuffer(data, dtype).reshape(shape)
