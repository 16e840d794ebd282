"""Files of rows: their list, and their kind.

No file is left out silently: every file of a folder that is not hidden must be of the same
kind, and no file may be listed twice, because its rows would be learned twice. Files and folders
whose names start with ``_`` or ``.`` are hidden (`traceless.sources.layouts`).
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from traceless.sources.layouts import File, check_no_table, hidden
from traceless.sources.remote import Remote, is_address, remote_files

F = TypeVar("F", Path, File)


def default_batch_rows(width: int) -> int:
    """Number of rows in about 64 MB, at least 1024 and at most 65 536."""
    return max(1024, min(2**16, 2**23 // max(width, 1)))


def listed(path: Any) -> list[Path]:
    """The files that a path, a pattern or a list of these names, each once."""
    return _each_once(
        [file.absolute() for one in _paths(path) for file in _expanded(os.path.expanduser(one))]
    )


def listed_anywhere(path: Any, filesystem: Any) -> list[File]:
    """The same, also for addresses such as ``s3://bucket/folder``."""
    files: list[File] = []
    for one in _paths(path):
        if filesystem is None and not is_address(one):
            files += [file.absolute() for file in _expanded(os.path.expanduser(one))]
            continue
        with reading(one):
            there, named, pattern = remote_files(os.fspath(one), filesystem)
        there = [file for file in there if not any(map(hidden, file.parts[named:]))]
        if not there:
            raise FileNotFoundError(f"No file with rows was found at {one}.")
        check_no_table(there)
        for file in there:
            below = [part for part in file.parts[named:-1] if "=" not in part]
            if below and not pattern:
                raise _subfolder(one, below[0])
        files += there
    return _each_once(files)


def _paths(path: Any) -> Iterable[Any]:
    """One path, or several, as several."""
    several = [path] if isinstance(path, str | os.PathLike) else path
    if not isinstance(several, Iterable):
        raise TypeError(f"A path, a pattern or a list of these is needed, got {path!r}.")
    return several


def _each_once(files: list[F]) -> list[F]:
    """The same files; raises if one is listed twice or part of a table, or there is none."""
    if not files:
        raise FileNotFoundError("There are no files to scan: the list of paths is empty.")
    names: dict[Any, F] = {}
    for k, file in enumerate(files, 1):
        other = names.setdefault(_content(file), file)
        if len(names) < k:
            also = "" if str(other) == str(file) else f", also as {other}"
            raise ValueError(
                f"{file} is listed twice{also}, and its rows would be learned twice. List it once."
            )
    # A link is another name of its file, in a folder that may say more about it.
    check_no_table([*files, *(file.resolve() for file in files if isinstance(file, Path))])
    return files


def _content(file: File) -> Any:
    """The same for all names of one file, hard links included."""
    if isinstance(file, Remote) and "local" not in file.filesystem.type_name:
        return str(file)
    there = os.stat(str(file))
    return (there.st_dev, there.st_ino) if there.st_ino else os.path.realpath(str(file))


def check_parquet(files: Sequence[File]) -> None:
    """Raise if a file is of another kind."""
    for file in files:
        if file.suffix != ".parquet":
            raise ValueError(
                f"{file} is of no known kind: scan reads .parquet. In a folder of several kinds, "
                "name the files with a pattern such as 'folder/*.parquet'. An array of NumPy need "
                "not fit into memory either: pass numpy.load(file, mmap_mode='r') in place of X."
            )


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


def _expanded(path: str) -> list[Path]:
    """The files of one path or pattern."""
    one = Path(path)
    if one.is_file():
        return [one]
    if one.is_dir():
        files = list(_inside(one))
        if not files:
            raise FileNotFoundError(f"The folder {one} holds no files to scan.")
        return files
    matches = sorted(glob.glob(path, recursive=True)) if glob.has_magic(path) else []
    # A folder that a pattern such as ** passes through is not itself meant, nor one that is hidden.
    named = len(Path(path[: re.search(r"[*?[]|$", path).start()] + "x").parts) - 1  # type: ignore[union-attr]
    files = [
        file
        for file in map(Path, matches)
        if file.is_file() and not any(map(hidden, file.parts[named:]))
    ]
    if not files:
        what = "No file matches the pattern" if glob.has_magic(path) else "There is no file"
        raise FileNotFoundError(f"{what} {path}; scan takes files, folders and patterns.")
    return files


def _inside(folder: Path) -> Iterator[Path]:
    """The files of a folder, and of those below it that are hive partitions."""
    for file in sorted(folder.iterdir()):
        if hidden(file.name):
            continue
        if file.is_file():
            yield file
        elif "=" in file.name:
            yield from _inside(file)
        else:
            raise _subfolder(folder, file.name)


def _subfolder(folder: Any, name: str) -> ValueError:
    return ValueError(
        f"The folder {folder} has the subfolder {name}; say which files are meant with a pattern "
        f"such as '{str(folder).rstrip('/')}/**/*.parquet'."
    )
