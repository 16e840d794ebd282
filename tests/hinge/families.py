"""Families of data that break textbook path followers, for tests and the stress command.

Each family is a kernel, as parameters of an estimator, a bound, and a way to draw n labelled rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from traceless.arithmetic.integers import Floats
from traceless.hinge.kernels import Kernel

Draw = Callable[[Generator, int], tuple[Floats, Floats]]


@dataclass(frozen=True)
class Family:
    """Labelled rows of one kind, and the problem they are used in."""

    draw: Draw
    options: dict[str, Any]
    bound: float = 1.0
    weighted: bool = False  # bounds differ between points
    definite: bool = True  # whether the kernel is positive semidefinite

    @property
    def kernel(self) -> Kernel:
        """As the engine has it."""
        return Kernel(
            self.options["kernel"], **{k: v for k, v in self.options.items() if k != "kernel"}
        )


def _labels(rng: Generator, f: Floats, noise: float) -> Floats:
    return np.where(f + noise * rng.normal(size=len(f)) > 0.0, 1.0, -1.0)


def _normal(width: int = 3, noise: float = 0.5) -> Draw:
    def draw(rng: Generator, n: int) -> tuple[Floats, Floats]:
        X = rng.normal(size=(n, width))
        return X, _labels(rng, X[:, 0] + 0.3 * X[:, -1] ** 2 - 0.3, noise)

    return draw


def _pool(size: int, opposite: bool) -> Draw:
    """Rows from a small pool: many are equal, with equal or with random labels."""

    def draw(rng: Generator, n: int) -> tuple[Floats, Floats]:
        pool = np.random.default_rng(size).normal(size=(size, 2))
        X = pool[rng.integers(size, size=n)]
        return X, _labels(rng, X[:, 0], 2.0 if opposite else 0.0)

    return draw


def _lattice(levels: int, width: int, noise: float) -> Draw:
    def draw(rng: Generator, n: int) -> tuple[Floats, Floats]:
        X = rng.integers(levels, size=(n, width)).astype(np.float64)
        return X, _labels(rng, X.sum(axis=1) - 0.5 * width * (levels - 1) + 0.1, noise)

    return draw


def _near(width: int = 2, size: int = 12, nearest: int = 10) -> Draw:
    """Rows so near to those of a small pool that some differ by little more than rounding."""

    def draw(rng: Generator, n: int) -> tuple[Floats, Floats]:
        pool = np.random.default_rng(7).normal(size=(size, width))
        step = 10.0 ** -float(rng.integers(nearest - 5, nearest + 1))
        X = pool[rng.integers(size, size=n)] + step * rng.normal(size=(n, width))
        return X, _labels(rng, X[:, 0], 0.5)

    return draw


def _apart(rng: Generator, n: int) -> tuple[Floats, Floats]:
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    return rng.normal(size=(n, 2)) + 4.0 * y[:, None], y


def _identical(rng: Generator, n: int) -> tuple[Floats, Floats]:
    return np.ones((n, 2)), np.where(rng.random(n) < 0.5, 1.0, -1.0)


def _rare(rng: Generator, n: int) -> tuple[Floats, Floats]:
    y = np.where(rng.random(n) < 0.06, 1.0, -1.0)
    return rng.normal(size=(n, 2)) + 0.5 * y[:, None], y


def _alone(rng: Generator, n: int) -> tuple[Floats, Floats]:
    X = rng.normal(size=(n, 2))
    return X, np.where((np.arange(n) == 0) & (rng.random() < 0.3), 1.0, -1.0)


def _low_rank(rng: Generator, n: int) -> tuple[Floats, Floats]:
    X = rng.normal(size=(n, 2))
    return X @ np.random.default_rng(3).normal(size=(2, 12)), _labels(rng, X[:, 0], 0.5)


def _unscaled(rng: Generator, n: int) -> tuple[Floats, Floats]:
    X, y = _normal(4)(rng, n)
    return X * np.array([1e4, 1.0, 1e-4, 1.0]) + np.array([0.0, 1e5, 0.0, 0.0]), y


def cubes(A: Floats, B: Floats) -> Floats:
    """A kernel function."""
    return np.asarray((1.0 + A @ B.T) ** 3)


def _rbf(gamma: float) -> dict[str, Any]:
    return {"kernel": "rbf", "gamma": gamma}


LINEAR: dict[str, Any] = {"kernel": "linear"}
POLY = {"kernel": "poly", "gamma": 0.5, "coef0": 1.0, "degree": 3}
sample = _normal()  # rows and labels of nothing special
FAMILIES: dict[str, Family] = {
    "generic": Family(sample, _rbf(0.5), 10.0),
    "weighted": Family(_normal(), _rbf(0.5), 3.0, weighted=True),
    "duplicates": Family(_pool(15, opposite=False), _rbf(1.0), 1.0),
    "opposite duplicates": Family(_pool(15, opposite=True), _rbf(1.0), 2.0),
    "linear": Family(_normal(), LINEAR, 1.0),
    "linear, duplicates": Family(_pool(15, opposite=True), LINEAR, 1.0),
    "lattice": Family(_lattice(4, 2, 1.0), _rbf(0.5), 1.0),
    "lattice, linear": Family(_lattice(3, 3, 1.0), LINEAR, 1.0),
    "binary, linear": Family(_lattice(2, 5, 1.0), LINEAR, 1.0),
    "polynomial": Family(_normal(2), POLY, 1.0),
    "near duplicates": Family(_near(), _rbf(1.0), 10.0),
    "near, huge bound": Family(_near(nearest=8), _rbf(1.0), 1e6),
    "near, linear": Family(_near(3), LINEAR, 10.0),
    "near, few": Family(_near(1, size=4, nearest=7), _rbf(1.0), 100.0),
    "tiny bound": Family(_normal(), _rbf(0.5), 1e-4),
    "huge bound": Family(_normal(), _rbf(0.5), 1e6),
    "tiny gamma": Family(_normal(), _rbf(1e-5), 10.0),
    "huge gamma": Family(_normal(), _rbf(1e4), 10.0),
    "separable": Family(_apart, LINEAR, 1e3),
    "identical": Family(_identical, _rbf(1.0), 1.0),
    "rare class": Family(_rare, _rbf(1.0), 1.0),
}

# further ones for what is judged from outside
MORE: dict[str, Family] = {
    "one against all": Family(_alone, _rbf(1.0), 10.0),
    "one against all, linear": Family(_alone, LINEAR, 1e3),
    "low rank": Family(_low_rank, LINEAR, 10.0),
    "low rank, polynomial": Family(_low_rank, {**POLY, "gamma": 0.01}, 1.0),
    "lattice, tiny bound": Family(_lattice(3, 2, 1.0), _rbf(0.5), 1e-6),
    "lattice, huge bound": Family(_lattice(3, 2, 1.0), _rbf(0.5), 1e7),
    "linear, huge bound": Family(_normal(), LINEAR, 1e5),
    "unscaled": Family(_unscaled, _rbf(1e-3), 10.0),
    "function": Family(_normal(2), {"kernel": cubes}, 1.0),
    "sigmoid": Family(
        _normal(2), {"kernel": "sigmoid", "gamma": 0.05, "coef0": 0.5}, 1.0, definite=False
    ),
}


def draw_points(family: Family, rng: Generator, n: int) -> tuple[Floats, Floats, Floats]:
    """Rows, labels and bounds."""
    X, y = family.draw(rng, n)
    weight = rng.choice([0.5, 1.0, 2.0], size=n) if family.weighted else np.ones(n)
    return X, y, family.bound * weight


# --- regressors ------------- --------------------------------------------------------------------

TARGETS = {
    "smooth": lambda X, y: np.sin(X[:, 0]) + 0.3 * y,
    "few values": lambda X, y: np.rint(2 * X[:, 0]) / 2 + 0.0,
    "classes": lambda X, y: y,
    "constant": lambda X, y: np.full(len(y), 2.5),
    "large": lambda X, y: 1e3 * X[:, 0] + 1e6,
}


def draw_rows(family: str, style: str, rng: Generator, n: int) -> tuple[Floats, ...]:
    """Rows, targets and weights."""
    X, y, u = draw_points(FAMILIES[family], rng, n)
    return X, TARGETS[style](X, y), u / FAMILIES[family].bound
