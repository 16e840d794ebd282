"""Parquet files, opened by `scan` and by tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO


def parquet_file(file: Path | BinaryIO) -> Any:
    """An open Parquet file; pages that have a checksum are checked when they are read.

    It is read a buffer at a time: a whole row group at once can take gigabytes.
    """
    from pyarrow.parquet import ParquetFile

    options = {"pre_buffer": False, "buffer_size": 2**20}
    return ParquetFile(file, page_checksum_verification=True, **options)
