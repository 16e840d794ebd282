"""Similarity to given points, from exact squared distances."""

from __future__ import annotations

import math
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from scipy.linalg.blas import dgemm

from traceless import elementary
from traceless.exact import LARGEST, Floats
from traceless.exceptions import RangeError
from traceless.features.feature_map import BoundMap, FeatureMap, Later
from traceless.features.grid import blocks, check_range, encode_linear, grid_steps
from traceless.features.parameters import count, positive, seed


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
    resolution, input_resolution : float, default=2**-14

    Examples
    --------
    >>> Landmarks([[0.0], [1.0]], gamma=1.0).transform([[0.0]]).round(3)
    array([[1.   , 0.368, 1.   ]])
    """

    def __init__(
        self,
        points: Any = 100,
        gamma: float = 0.1,
        random_state: int = 0,
        bias: bool = True,
        resolution: float = 2**-14,
        input_resolution: float = 2**-14,
    ) -> None:
        self.points = points
        self.gamma = gamma
        self.random_state = random_state
        self.bias = bias
        self.resolution = resolution
        self.input_resolution = input_resolution

    def n_outputs(self, n_features: int) -> int:  # noqa: ARG002, D102
        given = isinstance(self.points, Integral)
        return (count("points", self.points) if given else len(self.points)) + bool(self.bias)

    def bind(self, n_features: int) -> BoundMap:  # noqa: D102
        gamma = positive("gamma", self.gamma)
        input_step = float(grid_steps(self.input_resolution, 1, "input_resolution")[0])
        points = self._points(n_features)
        steps = grid_steps(self.resolution, self.n_outputs(n_features) - bool(self.bias))
        make = partial(_encoder, points, n_features, input_step, gamma, float(1.0 / steps[0]))
        return self._bound(n_features, steps, Later(make))

    def _points(self, n_features: int) -> tuple[int, int] | Floats:
        """Their number and the seed they are drawn with, or themselves."""
        if isinstance(self.points, Integral):
            return count("points", self.points), seed(self.random_state)
        points = np.asarray(self.points, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != n_features or not np.isfinite(points).all():
            raise ValueError(
                f"Landmarks: the rows have {n_features} columns, so points must be finite "
                f"numbers of shape (n_points, {n_features}); got shape {points.shape}."
            )
        return points.copy()


def _encoder(
    points: tuple[int, int] | Floats, n_features: int, input_step: float, gamma: float, scale: float
) -> partial[None]:
    if isinstance(points, tuple):
        n, entropy = points
        points = elementary.normal(entropy, "points", n * n_features).reshape(n, n_features)
    return partial(
        _encode_landmarks,
        P=np.ascontiguousarray(np.rint(points / input_step).T),
        input_scale=1.0 / input_step,
        rate=-gamma * input_step * input_step,
        scale=scale,
    )


def _encode_landmarks(
    X: Floats, out: Floats, *, P: Floats, input_scale: float, rate: float, scale: float
) -> None:
    squares = (P * P).sum(axis=0)
    reach = math.sqrt(LARGEST) / 2.0  # (‖x‖ + ‖p‖)² ≤ 2^53 keeps every sum exact
    for rows in blocks(len(X), P.shape[1]):
        codes = np.empty((rows.stop - rows.start, X.shape[1]))
        encode_linear(input_scale, X[rows], codes)
        check_range(codes, 1.0 / input_scale, X[rows])
        norms = (codes * codes).sum(axis=1)
        if not max(norms.max(), squares.max()) <= reach * reach:
            far = math.sqrt(max(norms.max(), squares.max())) / input_scale
            raise RangeError(
                f"Landmarks: a row or a point is {far:.6g} from the origin, more than "
                f"{reach / input_scale:.6g}, beyond which distances on a grid of "
                f"{1 / input_scale:g} are not exact. Scale the columns, or give a coarser "
                "input_resolution."
            )
        distance = norms[:, None] + squares
        distance -= 2.0 * dgemm(1.0, P.T, codes.T).T
        np.rint(elementary.exponential(distance * rate) * scale, out=out[rows])
