"""The maps of `traceless.features` on a device, with the same bits.

Products Wx are those of integers, exact in float64 in any order. Everything else is one IEEE 754
operation after another, in the order of `traceless.arithmetic.elementary`: each call of torch is
one kernel, so no multiplication is fused with an addition. torch divides by a Python number by
multiplying with its reciprocal, which rounds twice; divisors here are tensors.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from traceless.arithmetic import elementary
from traceless.arithmetic.integers import LARGEST, PART_BITS, Floats
from traceless.device.tensors import Tensor, to_array
from traceless.features.bound_map import BoundMap, Later
from traceless.features.grid import InputGrid, fewest_steps, refuse
from traceless.features.linear import Linear
from traceless.features.polynomial import Polynomial
from traceless.features.random_fourier import RandomFourier
from traceless.features.random_layer import RandomLayer

Codes = Callable[[Tensor], Tensor]
_BYTES = 2**28  # that a block of codes may take


class Encoder:
    """A bound map for rows on a device: codes without the constant feature.

    Attributes
    ----------
    scale : float64 tensor of shape (J,), or None
        Of a linear map: its codes are round(X · scale), and need no `codes`.
    width : int
        Number J of features, without the constant one.
    """

    def __init__(self, phi: BoundMap, device: Any) -> None:
        self._phi, self._device = phi, device
        self.width = len(phi.steps) - phi.has_bias
        steps = torch.from_numpy(phi.steps[: self.width].copy()).to(device)
        self.scale = 1.0 / steps if phi.kind is Linear else None  # powers of two
        self.codes: Codes = partial(_KINDS[phi.kind], self)
        self.per_unit = 1.0 / steps
        whole: Any = phi.encode
        inner = whole.args[0] if phi.has_bias else whole
        self.tables: dict[str, Any] = dict(inner.keywords) if isinstance(inner, Later) else {}
        if phi.kind is Polynomial:
            self.tables = {"monomials": _by_degree(inner.args[0].__self__, phi.n_features)}
        for name in self.tables.keys() & {"W", "offset", "monomials"}:
            self.tables[name] = _moved(self.tables[name], device)

    @staticmethod
    def takes(phi: BoundMap) -> bool:
        """Whether a map can be had on a device; others are coded by the host."""
        return phi.kind in _KINDS and "table" not in phi.specification

    @property
    def rows(self) -> int:
        """So many rows should be coded at a time."""
        return max(1024, _BYTES // (8 * max(self.width, self._phi.n_features)))

    def checked(self, X: Tensor) -> tuple[Tensor, float]:
        """Codes of some rows, and the largest; raises for NaN, infinities and codes beyond 2^53."""
        codes = self.codes(X)
        peak = float(codes.abs().max()) if codes.numel() else 0.0
        if not peak <= LARGEST:
            refuse(to_array(codes), self._phi.steps[: self.width], to_array(X.double()), "Feature")
        return codes, peak

    # --- the maps --------------------------------------------------------------------------

    def _linear(self, X: Tensor) -> Tensor:
        return (X.double() * self.scale).round_()

    def _polynomial(self, X: Tensor) -> Tensor:
        X, several = X.double(), []
        for columns, scale in self.tables["monomials"]:
            product = X[:, columns[0]]
            for factor in columns[1:]:
                product = product * X[:, factor]
            several.append(scale * product)
        return (torch.cat(several, 1) * self.per_unit).round_()

    def _fourier(self, X: Tensor) -> Tensor:
        W, turn, scale = (self.tables[name] for name in ("W", "turn", "scale"))
        pairs, D = W.shape[1], self.width
        even, odd = scale, scale
        if isinstance(scale, np.ndarray):
            even, odd = scale[:pairs], scale[pairs:]
        turns = torch.zeros((len(X), pairs), dtype=torch.float64, device=X.device)
        for shift, product in self._projections(X):
            product *= 2.0**shift / turn
            product -= product.round()
            turns += product
        sine = turns[:, : D - pairs] - 0.25
        return torch.cat([cosine(turns, even).round_(), cosine(sine, odd).round_()], 1)

    def _layer(self, X: Tensor) -> Tensor:
        z = torch.zeros((len(X), self.width), dtype=torch.float64, device=X.device)
        for shift, product in self._projections(X):
            z += product * 2.0**shift
        z *= self.tables["unit"]
        z += self.tables["offset"]
        values = _ACTIVATIONS[self.tables["activation"].__name__](z)
        values *= _moved(self.tables["scale"], X.device)
        return values.round_()

    # --- what they are made of -------------------------------------------------------------

    def _on_grid(self, X: Tensor, grid: InputGrid) -> Tensor:
        """Codes of input columns, in steps of the finest grid."""
        codes = (X.double() * _moved(grid.scale, X.device)).round_()
        if np.ndim(grid.stretch):
            codes *= _moved(grid.stretch, X.device)
        if len(X) and not float(codes.abs().max()) <= LARGEST:
            refuse(to_array(codes), grid.step, to_array(X.double()))
        return codes

    def _projections(self, X: Tensor) -> Iterator[tuple[int, Tensor]]:
        """Shifts and products that add up to codes(X) @ W, exactly: limbs of at most 2^20."""
        W, grid = self.tables["W"], self.tables["grid"]
        rest, shift = self._on_grid(X, grid), 0
        while len(X) and float(rest.abs().max()) > 2.0 ** (PART_BITS - 1):
            high = (rest * 2.0**-PART_BITS).round_()
            yield shift, (rest - high * 2.0**PART_BITS) @ W
            rest, shift = high, shift + PART_BITS
        yield shift, rest @ W


def narrow_columns(X: Tensor, steps: Floats) -> tuple[Floats, NDArray[np.intp]]:
    """Columns that may vary by too few steps of their grid, in the host's memory: see `grid`."""
    values = X.double()
    spread = to_array(values.amax(0) - values.amin(0))
    columns = np.flatnonzero((spread > 0) & (spread < fewest_steps(len(X)) * steps))
    return to_array(values[:, torch.from_numpy(columns).to(X.device)]), columns


_KINDS: dict[Any, Callable[[Encoder, Tensor], Tensor]] = {
    Linear: Encoder._linear,
    Polynomial: Encoder._polynomial,
    RandomFourier: Encoder._fourier,
    RandomLayer: Encoder._layer,
}


def _moved(table: Any, device: Any) -> Any:
    """Arrays, and pairs of them, as tensors on a device; a number as it is."""
    if isinstance(table, list | tuple):
        return [_moved(part, device) for part in table]
    return torch.from_numpy(np.array(table)).to(device) if np.ndim(table) else table


def _by_degree(phi: Polynomial, n_features: int) -> list[tuple[Any, Any]]:
    """The monomials of each degree in turn: an array of factors for each place, and scales."""
    groups = itertools.groupby(phi.monomials(n_features), key=lambda one: len(one[0]))
    each = [list(group) for _, group in groups]
    return [
        (np.array([columns for columns, _ in some]).T.copy(), np.array([s for _, s in some]))
        for some in each
    ]


# --- elementary functions -------------------------------------------------------------------


def _horner(coefficients: Sequence[Any], x: Tensor) -> Tensor:
    out = torch.zeros_like(x)
    out += _moved(coefficients[-1], x.device)
    for c in coefficients[-2::-1]:
        out *= x
        out += _moved(c, x.device)
    return out


def cosine(turns: Tensor, scale: Any = 1.0) -> Tensor:
    """``scale · cos(2π turns)``, the bits of `elementary.cosine`."""
    u = turns - turns.round()
    u = 0.25 - u.abs_()
    out = _horner([scale * c for c in elementary.SINE], u * u)
    out *= u
    return out


def exponential(x: Tensor) -> Tensor:
    """``e^x``, the bits of `elementary.exponential`."""
    x = x.clamp(-700.0, 700.0)
    k = (x * elementary.LOG2_E).round_()
    r = x - k * elementary.LN2_HIGH
    r -= k * elementary.LN2_LOW
    power = ((k.to(torch.int64) + 1023) << 52).view(torch.float64)  # 2^k, a normal number
    return torch.where(x <= -700.0, 0.0, _horner(elementary.EXP, r) * power)


def _ratio(numerator: float, denominator: Tensor) -> Tensor:
    return torch.div(torch.full_like(denominator, numerator), denominator)


def _sigmoid(z: Tensor) -> Tensor:
    return _ratio(1.0, 1.0 + exponential(-z))


def _tanh(z: Tensor) -> Tensor:
    return 1.0 - _ratio(2.0, 1.0 + exponential(2.0 * z))


def _relu(z: Tensor) -> Tensor:
    return z.clamp_min(0.0)


def _sine(z: Tensor) -> Tensor:
    return cosine(torch.div(z, torch.full_like(z, 2.0 * math.pi)) - 0.25)


_ACTIVATIONS = {"_sigmoid": _sigmoid, "_tanh": _tanh, "_relu": _relu, "_sine": _sine}
