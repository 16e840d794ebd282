"""Maps of products Wx that are exact: W and x are integers on grids, cut into parts if large."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.linalg.blas import dgemm

from traceless.arithmetic.integers import Floats, parts
from traceless.features.bound_map import BoundMap, Later
from traceless.features.feature_map import TABLE, FeatureMap
from traceless.features.grid import InputGrid, grid_steps, per_unit
from traceless.parameters import FLAG, SEED, STEPS, check_parameters


class Projected(FeatureMap):
    """Base of the maps of Wx for a random W, which is drawn when the first row comes."""

    has_units = False
    constraints: ClassVar = {
        "random_state": SEED,
        "bias": FLAG,
        "resolution": STEPS,
        "input_resolution": STEPS,
        "table": TABLE,
    }
    input_resolution: Any
    size: ClassVar[str]  # the parameter that says how many features there are

    def n_outputs(self, n_features: int) -> int:  # noqa: ARG002, D102
        check_parameters(self)
        return int(getattr(self, self.size)) + bool(self.bias)

    def bind(self, n_features: int) -> BoundMap:  # noqa: D102
        check_parameters(self)
        D, width = int(getattr(self, self.size)), self.n_inputs(n_features)
        steps = grid_steps(self.resolution, D)
        grid = InputGrid.of(self.input_resolution, width)
        scale = per_unit(self.resolution)
        make = partial(copy.copy(self).encoder, (width, D), grid, scale)
        return self._bound(n_features, steps, self.after_table(Later(make)))

    def encoder(
        self, shape: tuple[int, int], grid: InputGrid, scale: Floats | float
    ) -> partial[None]:
        """What codes rows of so many columns as so many features, `scale` steps per unit."""
        raise NotImplementedError


def on_grid(W: Floats, spread: float) -> tuple[Floats, float]:
    """Round W to integers with about 2^16 steps per `spread`; returns (codes, step).

    Columns so long that a part (2^20) times their sum passes 2^53 get a coarser grid.
    """
    bits = 16
    while True:
        step = 2.0 ** (math.frexp(spread)[1] - bits)
        codes = np.rint(W / step)
        if np.abs(codes).sum(axis=0).max(initial=0.0) <= 2.0**32:
            return codes, step
        bits -= 1


def projections(
    X: Floats, W: Floats, grid: InputGrid
) -> Iterator[tuple[slice, list[tuple[int, Floats]]]]:
    """Yield (rows, [(shift, product)]) with Σ product · 2^shift = codes(X) @ W, exactly.

    A part (2^20) times a column of W adds up to at most 2^53 by the choice in `on_grid`.
    """
    codes = np.empty((min(len(X), 512), X.shape[1]))
    for start in range(0, len(X), 512):
        rows = slice(start, min(start + 512, len(X)))
        block = codes[: rows.stop - start]
        grid.encode(X[rows], block)
        yield rows, [(s, dgemm(1.0, W[c].T, part.T).T) for c, s, part in parts(block)]
