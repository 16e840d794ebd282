"""Finding MNIST, which is never part of this repository.

Looked for in the folder that ``TRACELESS_DATA`` names (or its sub-folder ``mnist``), then
in the user's cache; else downloaded from OpenML into the cache.
"""

from __future__ import annotations

import gzip
import os
import sys
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import fetch_openml

Bytes = NDArray[np.uint8]
Split = Literal["train", "test"]
_PREFIX = {"train": "train", "test": "t10k"}


def cache_folder() -> Path:
    """The user's cache folder for traceless."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "traceless"


def find_mnist() -> Path | None:
    """The folder that holds MNIST's idx files, or None."""
    named = os.environ.get("TRACELESS_DATA")
    folders = [Path(named), Path(named) / "mnist"] if named else []
    for folder in [*folders, cache_folder() / "mnist"]:
        if (folder / "train-images-idx3-ubyte.gz").is_file():
            return folder
    return None


def load_mnist(split: Split = "train") -> tuple[Bytes, Bytes]:
    """Images of shape (n, 784) with values 0 to 255, and their digits.

    Parameters
    ----------
    split : {"train", "test"}
        60 000 or 10 000 images.
    """
    folder = find_mnist()
    if folder is None:
        return _download(split)
    images = _read_idx(folder / f"{_PREFIX[split]}-images-idx3-ubyte.gz")
    labels = _read_idx(folder / f"{_PREFIX[split]}-labels-idx1-ubyte.gz")
    return images.reshape(len(images), -1), labels


def _read_idx(path: Path) -> Bytes:
    data = gzip.decompress(path.read_bytes())
    if data[:3] != b"\x00\x00\x08":
        raise ValueError(f"{path} is not an idx file of bytes (it starts with {data[:4]!r}).")
    shape = np.frombuffer(data, ">i4", count=data[3], offset=4)
    values = np.frombuffer(data, np.uint8, offset=4 + 4 * data[3])
    if values.size != np.prod(shape):
        raise ValueError(f"{path} is cut short: {values.size} bytes, expected {np.prod(shape)}.")
    return values.reshape(shape)


def _download(split: Split) -> tuple[Bytes, Bytes]:
    sys.stderr.write(
        "MNIST was not found in the folder named by TRACELESS_DATA nor in "
        f"{cache_folder() / 'mnist'}; downloading it from OpenML (about 15 MB) ...\n"
    )
    try:
        X, y = fetch_openml(
            "mnist_784", version=1, as_frame=False, return_X_y=True, data_home=cache_folder()
        )
    except OSError as error:
        raise FileNotFoundError(
            f"MNIST could not be downloaded ({error}). Set TRACELESS_DATA to a folder that holds "
            "its four idx files (train-images-idx3-ubyte.gz and so on)."
        ) from error
    rows = slice(0, 60_000) if split == "train" else slice(60_000, None)
    return X[rows].astype(np.uint8), y[rows].astype(np.uint8)
