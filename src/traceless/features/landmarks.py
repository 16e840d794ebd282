"""Similarity to given points, from exact squared distances."""

from __future__ import annotations

import math
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy.linalg.blas import dgemm

from traceless.arithmetic import elementary
from traceless.arithmetic.integers import LARGEST, Floats
from traceless.exceptions import RangeError
from traceless.features.bound_map import BoundMap, Later
from traceless.features.feature_map import FeatureMap
from traceless.features.grid import InputGrid, blocks, grid_steps, per_unit
from traceless.parameters import ARRAY, COUNT, FLAG, POSITIVE, SEED, STEPS, check_parameters


class Landmarks(FeatureMap):
    """RBF similarity to given points: φ_j(x) = exp(-γ ‖x - p_j‖²).

    Parameters
    ----------
    points : int or array-like of shape (n_points, n_features), default=100
        The points: declared, or taken from public data, never training rows, which
        would stay in the model after they are forgotten. A number asks for that many
        standard normal points.
    gamma : float, default=0.1
    random_state : int, default=0
        Seed of the points if `points` is a number.
    bias : bool, default=True
    resolution : float or sequence of float, default=2**-14
        Step of the features; one for all, or one for each point.
    input_resolution : float or sequence of float, default=2**-14
        Step of the grid that rows and points are rounded to; one for all columns, or one
        each. How far out they may be is counted in the finest step.

    Examples
    --------
    >>> Landmarks([[0.0], [1.0]], gamma=1.0).transform([[0.0]]).round(3)
    array([[1.   , 0.368, 1.   ]])
    """

    has_units = False
    constraints: ClassVar = {
        "points": COUNT | ARRAY,
        "gamma": POSITIVE,
        "random_state": SEED,
        "bias": FLAG,
        "resolution": STEPS,
        "input_resolution": STEPS,
    }

    def __init__(
        self,
        points: Any = 100,
        gamma: float = 0.1,
        random_state: int = 0,
        bias: bool = True,
        resolution: Any = 2**-14,
        input_resolution: Any = 2**-14,
    ) -> None:
        self.points = points
        self.gamma = gamma
        self.random_state = random_state
        self.bias = bias
        self.resolution = resolution
        self.input_resolution = input_resolution

    def n_outputs(self, n_features: int) -> int:  # noqa: ARG002, D102
        check_parameters(self)
        drawn = isinstance(self.points, Integral)
        return (int(self.points) if drawn else len(self.points)) + bool(self.bias)

    def bind(self, n_features: int) -> BoundMap:  # noqa: D102
        check_parameters(self)
        gamma = float(self.gamma)
        grid = InputGrid.of(self.input_resolution, n_features)
        points = self._points(n_features)
        steps = grid_steps(self.resolution, self.n_outputs(n_features) - bool(self.bias))
        scale = per_unit(self.resolution, steps)
        make = partial(_encoder, points, n_features, grid, gamma, scale)
        return self._bound(n_features, steps, Later(make))

    def _points(self, n_features: int) -> tuple[int, int] | Floats:
        """Their number and the seed they are drawn with, or themselves."""
        if isinstance(self.points, Integral):
            return int(self.points), int(self.random_state)
        points = np.asarray(self.points, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != n_features or not np.isfinite(points).all():
            raise ValueError(
                f"Landmarks: the rows have {n_features} columns, so points must be finite "
                f"numbers of shape (n_points, {n_features}); got shape {points.shape}."
            )
        return points.copy()


def _encoder(
    points: tuple[int, int] | Floats,
    n_features: int,
    grid: InputGrid,
    gamma: float,
    scale: Floats | float,
) -> partial[None]:
    if isinstance(points, tuple):
        n, entropy = points
        points = elementary.normal(entropy, "points", n * n_features).reshape(n, n_features)
    return partial(
        _encode_landmarks,
        P=np.ascontiguousarray((np.rint(points * grid.scale) * grid.stretch).T),
        grid=grid,
        rate=-gamma * grid.step * grid.step,
        scale=scale,
    )


def _encode_landmarks(
    X: Floats, out: Floats, *, P: Floats, grid: InputGrid, rate: float, scale: Floats | float
) -> None:
    squares = (P * P).sum(axis=0)
    for rows in blocks(len(X), P.shape[1]):
        codes = np.empty((rows.stop - rows.start, X.shape[1]))
        grid.encode(X[rows], codes)
        norms = (codes * codes).sum(axis=1)
        check_reach(max(norms.max(), squares.max()), grid)
        distance = norms[:, None] + squares
        distance -= 2.0 * dgemm(1.0, P.T, codes.T).T
        np.rint(elementary.exponential(distance * rate) * scale, out=out[rows])


def check_reach(farthest: float, grid: InputGrid) -> None:
    """Raise if the largest squared norm of rows and points is one beyond which sums are rounded."""
    reach = math.sqrt(LARGEST) / 2.0  # (‖x‖ + ‖p‖)² ≤ 2^53 keeps every sum exact
    if not farthest <= reach * reach:
        raise RangeError(
            f"Landmarks: a row or a point is {math.sqrt(farthest) * grid.step:.6g} from the "
            f"origin, more than {reach * grid.step:.6g}, beyond which distances on a grid of "
            f"{grid.step:g} are not exact. Scale the columns, or give a coarser "
            "input_resolution."
        )
