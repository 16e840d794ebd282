"""Files of rows: their list, here or at an address such as ``s3://bucket/folder``.

pyarrow lists and opens them, with a filesystem that it knows or is given, one of fsspec too. No
file is left out silently: every file of a folder that is not hidden must be of the same kind, and
no file may be listed twice, because its rows would be learned twice. Files and folders whose names
start with ``_`` or ``.`` are hidden, below the folder that is named.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from traceless.sources.layouts import check_no_table, hidden

_SCHEME = r"[a-zA-Z][a-zA-Z0-9+.-]+://"
_WILD = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


@dataclass(frozen=True)
class File:
    """A file, or a folder, in a filesystem of pyarrow."""

    path: PurePosixPath
    filesystem: Any

    @classmethod
    def here(cls, path: Any) -> File:
        """A file of this machine."""
        from pyarrow import fs

        return cls(PurePosixPath(Path(path).expanduser().absolute()), fs.LocalFileSystem())

    @property
    def is_here(self) -> bool:
        """Whether it is on this machine."""
        return str(self.filesystem.type_name) == "local"

    @property
    def parent(self) -> File:
        """The folder that it is in."""
        return self.at(self.path.parent)

    def at(self, path: Any) -> File:
        """Another file of the same filesystem."""
        return replace(self, path=PurePosixPath(path))

    @property
    def info(self) -> Any:
        """What the filesystem says of it: type, size, and time of its last change."""
        return self.filesystem.get_file_info(str(self))

    def inside(self, recursive: bool = False) -> list[Any]:
        """What the filesystem says of all that is in this folder."""
        from pyarrow import fs

        selector = fs.FileSelector(str(self), recursive=recursive, allow_not_found=True)
        found: list[Any] = self.filesystem.get_file_info(selector)
        return found

    def has_folder(self, name: str) -> bool:
        """Whether there is such a folder in this one, as far as we may look."""
        from pyarrow import fs

        try:
            return bool(self.at(self.path / name).info.type == fs.FileType.Directory)
        except OSError:  # a user may be allowed to read some folders of a bucket only
            return False

    def has_files(self, folder: str, pattern: str) -> bool:
        """Whether a folder in this one has files of such a name, as far as we may look."""
        try:
            there = self.at(self.path / folder).inside()
        except OSError:
            return False
        return any(one.is_file and fnmatchcase(one.base_name, pattern) for one in there)

    def neither(self, there: list[Any]) -> Iterator[str]:
        """What is in this folder of this machine and no file: pipes, links to nothing."""
        from pyarrow import fs

        folders = [one.path for one in there if one.type == fs.FileType.Directory]
        for folder in [str(self), *folders] if self.is_here and self.has_folder("") else ():
            with os.scandir(folder) as entries:
                yield from [one.path for one in entries if not (one.is_file() or one.is_dir())]

    def open(self) -> Any:
        """Open it to read its bytes, at any place."""
        return self.filesystem.open_input_file(str(self))

    @cached_property
    def content(self) -> Any:
        """The same for all names of one file, hard links included."""
        if not self.is_here:
            return str(self)
        there = os.stat(self.path)
        return (there.st_dev, there.st_ino) if there.st_ino else os.path.realpath(self.path)

    def __str__(self) -> str:
        return str(self.path) if self.path.parts else ""


def default_batch_rows(width: int) -> int:
    """Number of rows in about 64 MB, at least 1024 and at most 65 536."""
    return max(1024, min(2**16, 2**23 // max(width, 1)))


def listed(path: Any, filesystem: Any = None) -> list[File]:
    """The files that a path, a pattern, an address or a list of these names, each once.

    Parameters
    ----------
    path : path, or list of paths
        In a pattern ``*`` and ``?`` stay in one folder, ``**`` goes through several.
    filesystem : pyarrow.fs.FileSystem or fsspec filesystem, optional
        By default the address says it.
    """
    several = [path] if isinstance(path, str | os.PathLike) else path
    if not isinstance(several, Iterable):
        raise TypeError(f"A path, a pattern or a list of these is needed, got {path!r}.")
    names: dict[Any, File] = {}
    for one in several:
        with reading(one):
            there = _expanded(_place(one, filesystem), one)
        for file in there:
            other = names.setdefault(file.content, file)
            if other is not file:
                also = "" if str(other) == str(file) else f", also as {other}"
                raise ValueError(
                    f"{file} is listed twice{also}, and its rows would be learned twice. List it "
                    "once."
                )
    if not names:
        raise FileNotFoundError("There are no files to scan: the list of paths is empty.")
    files = [*names.values()]
    # A link is another name of its file, in a folder that may say more about it.
    check_no_table(
        [*files, *(file.at(os.path.realpath(file.path)) for file in files if file.is_here)]
    )
    return files


@contextmanager
def reading(file: Any, *failures: type[Exception]) -> Iterator[None]:
    """Turn a library's failure to read a file into an error that names the file."""
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f"Reading {file} needs a library: pip install 'traceless[files]' ({error})."
        ) from error
    except MemoryError:  # Arrow's is an ArrowException too, and not the file's fault
        raise
    except failures as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk's or the network's fault, not the file's
        raise unreadable(file, error) from error


def unreadable(file: Any, error: Exception) -> ValueError:
    """The error for a file that is not of the kind that its suffix says."""
    said = (str(error) or type(error).__name__).splitlines()[0]
    return ValueError(
        f"{file} cannot be read: {said.rstrip('.')}. It is truncated, damaged, still being "
        "written, or not of the kind that its suffix says."
    )


def _place(path: Any, filesystem: Any) -> File:
    """A path or a pattern, and the filesystem that it is in."""
    from pyarrow import ArrowInvalid, fs

    if filesystem is not None:
        if not isinstance(filesystem, fs.FileSystem):
            filesystem = fs.PyFileSystem(fs.FSSpecHandler(filesystem))
        return File(PurePosixPath(re.sub(_SCHEME, "", os.fspath(path))), filesystem)
    if not re.match(_SCHEME, os.fspath(path)):
        return File.here(path)
    try:
        filesystem, base = fs.FileSystem.from_uri(path)
    except ArrowInvalid as error:
        raise ValueError(
            f"{path} is in a place that pyarrow does not know ({error}). Pass one of fsspec: "
            "scan(path, target, filesystem=fsspec.filesystem(...))."
        ) from error
    return File(PurePosixPath(base), filesystem)


def _expanded(place: File, said: Any) -> list[File]:
    """The files that one path or pattern means: one, those of a folder and below, those that match.

    A folder that a pattern such as ** passes through is not itself meant, nor one that is hidden.
    """
    base = str(place)
    if place.info.is_file:
        check_no_table([place])
        return [place]
    is_folder = place.has_folder("")
    wild = None if is_folder else re.search(r"[*?[]", base)
    folder, matches = place, re.compile(".*").fullmatch
    if wild:
        folder = place.at(base[: base.rfind("/", 0, wild.start()) + 1])
        pieces = re.split(r"(\*\*/?|\*|\?|\[[^]]+\])", base.lstrip("/"))
        matches = re.compile("".join(map(_translated, pieces))).fullmatch
    deep = wild is None or "/" in base[wild.start() :] or "**" in base
    there = folder.inside(deep)
    names = sorted(one.path for one in there if one.is_file)
    rooted = any(name.startswith("/") for name in names)  # in memory all are, however asked for
    named = len(PurePosixPath(str(folder).strip("/")).parts) + rooted

    def is_meant(name: str) -> bool:
        below = PurePosixPath(name).parts[named:]
        return bool(matches(name.lstrip("/"))) and not any(map(hidden, below))

    if lost := next(filter(is_meant, folder.neither(there)), None):
        raise ValueError(f"{lost} is no file: it is a link to nothing, a pipe or a device.")
    files = [place.at(name) for name in filter(is_meant, names)]
    if not files:
        what = "No file matches the pattern" if wild else "There is no file"
        what = "There are no files to scan in the folder" if is_folder else what
        raise FileNotFoundError(f"{what} {said}; files, folders and patterns are taken.")
    check_no_table(files)
    for file in files if wild is None else ():
        if below := [part for part in file.path.parts[named:-1] if "=" not in part]:
            raise ValueError(
                f"The folder {place} has the subfolder {below[0]}; say which files are meant with "
                f"a pattern such as '{base.rstrip('/')}/**/*.parquet'."
            )
    return files


def _translated(piece: str) -> str:
    """A piece of a pattern as a regular expression."""
    if piece.startswith("[") and piece.endswith("]"):
        return "[" + re.sub(r"^!", "^", piece[1:-1]) + "]"
    return _WILD.get(piece) or re.escape(piece)
