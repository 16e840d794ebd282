"""Pictures of digits: MNIST if it is on this machine, else the digits of scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from traceless.datasets import load_mnist

Floats = NDArray[np.float64]
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
    digits: NDArray[Any]
    X_test: Floats
    digits_test: NDArray[Any]

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
