"""Parquet files, opened by `scan` and by tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO


def parquet_file(file: Path | BinaryIO) -> Any:
    """An open Parquet file; pages that have a checksum are checked when they are read."""
    from pyarrow.parquet import ParquetFile

    return ParquetFile(file, page_checksum_verification=True)
