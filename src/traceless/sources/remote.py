"""Files in an object store or another remote place, by their address: ``s3://bucket/folder``.

pyarrow opens them itself (``s3://``, ``gs://``, ``abfss://``, ``hdfs://``), or with a filesystem
that it is given, one of fsspec too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any

_SCHEME = r"[a-zA-Z][a-zA-Z0-9+.-]+://"
_WILD = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


@dataclass(frozen=True)
class Remote:
    """A file in a filesystem of pyarrow: what a path of this machine is elsewhere."""

    path: PurePosixPath
    filesystem: Any

    @property
    def suffix(self) -> str:
        """As that of a path."""
        return self.path.suffix

    @property
    def parts(self) -> tuple[str, ...]:
        """The folders that it is in, and its name."""
        return self.path.parts

    @property
    def parent(self) -> Remote:
        """The folder that it is in."""
        return replace(self, path=self.path.parent)

    def __truediv__(self, name: str) -> Remote:
        return replace(self, path=self.path / name)

    def is_dir(self) -> bool:
        """Whether there is such a folder, as far as we may look."""
        from pyarrow import fs

        try:
            return bool(self.filesystem.get_file_info(str(self)).type == fs.FileType.Directory)
        except OSError:  # a user may be allowed to read some folders of a bucket only
            return False

    def glob(self, pattern: str) -> Iterator[Remote]:
        """The files in this folder whose names match a pattern, as far as we may look."""
        from pyarrow import fs

        try:
            found = self.filesystem.get_file_info(fs.FileSelector(str(self), allow_not_found=True))
        except OSError:
            return
        for one in found:
            if one.is_file and fnmatchcase(one.base_name, pattern):
                yield self / one.base_name

    def __str__(self) -> str:
        return str(self.path)


def is_address(path: Any) -> bool:
    """Whether a path is one of another place, such as ``s3://bucket/folder``."""
    return isinstance(path, str) and re.match(_SCHEME, path) is not None


def remote_files(path: str, filesystem: Any = None) -> tuple[list[Remote], int, bool]:
    """All files that an address names: one, those of a folder and below it, or of a pattern.

    Also the number of parts of their paths that the address names itself, and whether it is a
    pattern.

    Parameters
    ----------
    path : str
        In a pattern ``*`` and ``?`` stay in one folder, ``**`` goes through several.
    filesystem : pyarrow.fs.FileSystem or fsspec filesystem, optional
    """
    from pyarrow import ArrowInvalid, fs

    if filesystem is None:
        try:
            filesystem, base = fs.FileSystem.from_uri(path)
        except ArrowInvalid as error:
            raise ValueError(
                f"{path} is in a place that pyarrow does not know ({error}). Pass one of fsspec: "
                "scan(path, target, filesystem=fsspec.filesystem(...))."
            ) from error
    else:
        base = re.sub(_SCHEME, "", path)
        if not isinstance(filesystem, fs.FileSystem):
            filesystem = fs.PyFileSystem(fs.FSSpecHandler(filesystem))
    wild = re.search(r"[*?]", base)
    if wild is None and filesystem.get_file_info(base).is_file:
        one = Remote(PurePosixPath(base), filesystem)
        return [one], len(one.parts), False
    folder = base[: max(base.rfind("/", 0, wild.start()), 0)] if wild else base
    inside = fs.FileSelector(folder, recursive=True, allow_not_found=True)
    names = sorted(found.path for found in filesystem.get_file_info(inside) if found.is_file)
    if wild:
        pieces = re.split(r"(\*\*/?|\*|\?)", base.lstrip("/"))
        meant = re.compile("".join([_WILD.get(one) or re.escape(one) for one in pieces])).fullmatch
        names = [name for name in names if meant(name.lstrip("/"))]
    files = [Remote(PurePosixPath(name), filesystem) for name in names]
    rooted = any(name.startswith("/") for name in names)  # in memory all are, however asked for
    return files, len(PurePosixPath(folder.strip("/")).parts) + rooted, wild is not None
