"""Random Fourier features, whose angles Wx are exact."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, ClassVar

import numpy as np

from traceless.arithmetic import elementary
from traceless.arithmetic.integers import Floats
from traceless.features.grid import InputGrid, blocks
from traceless.features.projection import Projected, on_grid, projections
from traceless.parameters import COUNT, POSITIVE


class RandomFourier(Projected):
    """Random Fourier features of the RBF kernel exp(-γ ‖x - z‖²).

    φ(x) = √(2/D) [cos(2π Wx), sin(2π Wx)] with D/2 random frequencies W, so that
    φ(x)·φ(z) approximates the kernel [1]_; paired sines and cosines have a lower
    variance than cosines with random phases, and halve the product Wx.

    Parameters
    ----------
    n_components : int, default=100
        Number D of features, without the bias.
    gamma : float, default=0.1
        A number: "scale" would be a trace of the training data.
    random_state : int, default=0
        Seed, part of the specification.
    bias : bool, default=True
    resolution : float or sequence of float, default=2**-20
        Step of the features, which are at most √(2/D) in size; one for all, or one for each
        of the D features.
    input_resolution : float or sequence of float, default=2**-14
        Step of the grid that the rows are rounded to; one for all columns, or one each. No
        value may exceed 2^53 of the finest step.
    table : Table, optional
        What the columns of a frame mean; its features, without the constant one, are the columns
        of this map.

    References
    ----------
    .. [1] A. Rahimi and B. Recht, "Random features for large-scale kernel machines",
       NIPS 2007.

    Examples
    --------
    >>> phi = RandomFourier(2000, gamma=0.5, random_state=0, bias=False)
    >>> F = phi.transform([[0.0, 0.0], [1.0, 0.0]])
    >>> (F @ F.T).round(1)  # exp(-0.5) = 0.61
    array([[1. , 0.6],
           [0.6, 1. ]])
    """

    size = "n_components"
    constraints: ClassVar = {"n_components": COUNT, "gamma": POSITIVE} | Projected.constraints

    def __init__(
        self,
        n_components: int = 100,
        gamma: float = 0.1,
        random_state: int = 0,
        bias: bool = True,
        resolution: Any = 2**-20,
        input_resolution: Any = 2**-14,
        table: Any = None,
    ) -> None:
        self.n_components = n_components
        self.gamma = gamma
        self.random_state = random_state
        self.bias = bias
        self.resolution = resolution
        self.input_resolution = input_resolution
        self.table = table

    def encoder(  # noqa: D102
        self, shape: tuple[int, int], grid: InputGrid, scale: Floats | float
    ) -> partial[None]:
        n_features, D = shape
        pairs, entropy = (D + 1) // 2, int(self.random_state)
        # x·W in turns: frequencies are N(0, 2γ) radians per unit
        spread = math.sqrt(2.0 * float(self.gamma)) / (2.0 * math.pi)
        draws = elementary.normal(entropy, "frequencies", n_features * pairs)
        W, step = on_grid(spread * draws.reshape(n_features, pairs), spread)
        return partial(
            _encode_fourier,
            W=W,
            turn=1.0 / (step * grid.step),
            grid=grid,
            scale=math.sqrt(2.0 / D) * scale,
        )


def _encode_fourier(
    X: Floats, out: Floats, *, W: Floats, turn: float, grid: InputGrid, scale: Floats | float
) -> None:
    pairs, D = W.shape[1], out.shape[1]
    even, odd = (scale[:pairs], scale[pairs:]) if isinstance(scale, np.ndarray) else (scale, scale)
    for rows, products in projections(X, W, grid):
        turns = np.zeros((rows.stop - rows.start, pairs))
        for shift, product in products:  # whole turns drop out, exactly
            product *= 2.0**shift / turn
            product -= np.rint(product)
            turns += product
        for block in blocks(*turns.shape):
            target = out[rows][block]
            np.rint(elementary.cosine(turns[block], even), out=target[:, :pairs])
            sine = elementary.cosine(turns[block][:, : D - pairs] - 0.25, odd)
            np.rint(sine, out=target[:, pairs:])
