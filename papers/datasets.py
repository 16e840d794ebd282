"""Images of digits: MNIST, which is never part of this repository, or those of scikit-learn.

MNIST is looked for in the folder that ``TRACELESS_DATA`` names (or its sub-folder ``mnist``),
then in the user's cache; else `load_mnist` downloads it from OpenML into the cache.
"""

from __future__ import annotations

import gzip
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import fetch_openml, load_digits
from sklearn.model_selection import train_test_split

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float64]
Labels = NDArray[Any]
Indices = NDArray[np.intp]
Split = Literal["train", "test"]
_PREFIX = {"train": "train", "test": "t10k"}
NOT_FOUND = (
    "MNIST was not found on this machine, so scikit-learn's digits were used instead: 1,797 "
    "images of 8 × 8 pixels. Times, sizes and errors below are those of a much smaller problem. "
    "Set TRACELESS_DATA to a folder that holds MNIST's idx files."
)


@dataclass(frozen=True)
class Images:
    """Training and test rows between 0 and 1."""

    name: str
    X: Floats
    digits: Labels
    X_test: Floats
    digits_test: Labels

    @property
    def described(self) -> str:
        """Name and size in words."""
        return (
            f"{self.name}: {len(self.X):,} training rows of {self.X.shape[1]} pixels between 0 "
            f"and 1, {len(self.X_test):,} test rows"
        )


def mnist_images(rows: int, test_rows: int) -> Images:
    """The first images of MNIST."""
    images, digits = (part[:rows] for part in load_mnist("train"))
    test_images, test_digits = (part[:test_rows] for part in load_mnist("test"))
    return Images("MNIST", images / 255.0, digits, test_images / 255.0, test_digits)


def small_images(rows: int, test_rows: int) -> Images:
    """The 1797 digits of scikit-learn, 8 × 8 pixels, which come with it."""
    X, digits = load_digits(return_X_y=True)
    X, X_test, digits, digits_test = train_test_split(
        X / 16.0, digits, train_size=rows, test_size=test_rows, random_state=0
    )
    return Images("scikit-learn's digits", X, digits, X_test, digits_test)


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


def mnist_or_random() -> tuple[Floats, Labels]:
    """MNIST between 0 and 1; random rows of the same shape if it cannot be had."""
    try:
        X, y = load_mnist()
    except FileNotFoundError as error:
        sys.stdout.write(f"{error}\nUsing random rows of MNIST's shape instead.\n")
        rng = np.random.default_rng(0)
        return rng.random((60_000, 784)) * (rng.random((60_000, 784)) < 0.2), np.arange(60_000) % 10
    return X / 255.0, y


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
