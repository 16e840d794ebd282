"""Files of rows: their list, and their kind.

No file is left out silently: every file of a folder that is not hidden must be of the same
kind, and no file may be listed twice, because its rows would be learned twice.
"""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

KINDS = (".parquet", ".npy", ".zarr")


def default_batch_rows(width: int) -> int:
    """Number of rows in about 64 MB, at least 1024 and at most 65 536."""
    return max(1024, min(2**16, 2**23 // max(width, 1)))


def listed(path: Any) -> list[Path]:
    """The files that a path, a pattern or a list of these names, each once."""
    several = [path] if isinstance(path, str | os.PathLike) else path
    if not isinstance(several, Iterable):
        raise TypeError(f"A path, a pattern or a list of these is needed, got {path!r}.")
    files = [file.resolve() for one in several for file in _expanded(os.path.expanduser(one))]
    if not files:
        raise FileNotFoundError("There are no files to scan: the list of paths is empty.")
    file, times = Counter(files).most_common(1)[0]
    if times > 1:
        raise ValueError(
            f"{file} is listed twice, and its rows would be learned twice. List it once."
        )
    return files


def one_kind(files: list[Path]) -> str:
    """The suffix that all files share."""
    for file in files:
        if file.suffix not in KINDS:
            raise ValueError(
                f"{file} is of no known kind: scan reads {', '.join(KINDS)}. In a folder of "
                "several kinds, say which with a pattern such as 'folder/*.parquet'."
            )
        if file.suffix != files[0].suffix:
            raise ValueError(
                f"The files are of different kinds: {files[0]} and {file}. Scan one kind at a "
                "time; a model can learn from several sources with partial_fit."
            )
    return files[0].suffix


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
    if one.is_file() or (one.is_dir() and one.suffix == ".zarr"):
        return [one]
    if one.is_dir():
        files = sorted(f for f in one.iterdir() if not f.name.startswith((".", "_")))
        if not files:
            raise FileNotFoundError(f"The folder {one} holds no files to scan.")
        for file in files:
            if file.is_dir() and file.suffix != ".zarr":
                raise ValueError(
                    f"The folder {one} has the subfolder {file.name}; say which files are meant "
                    f"with a pattern such as '{one}/**/*.parquet'."
                )
        return files
    matches = sorted(glob.glob(path, recursive=True)) if glob.has_magic(path) else []
    if not matches:
        what = "No file matches the pattern" if glob.has_magic(path) else "There is no file"
        raise FileNotFoundError(f"{what} {path}; scan takes files, folders and patterns.")
    # A folder that a pattern such as ** passes through is not itself meant.
    return [file for file in map(Path, matches) if file.is_file() or file.suffix == ".zarr"]
