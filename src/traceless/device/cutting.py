"""Codes cut into digits of eight bits, for products of small integers.

    k = Σ_d 256^d k_d,     -128 ≤ k_d ≤ 127

Rounding to the grid and cutting are one kernel where Triton is installed, so that rows are read
once. A power of two times a float64 is exact, so digits are those of the codes of `features.grid`.
"""

from __future__ import annotations

import torch

from traceless.device import kernels
from traceless.device.tensors import Tensor

MOST = 4  # digits of a code
BEYOND = 2**31 - 1  # the peak of codes that no digits hold: too large, infinite or NaN
_HELD, _ROUNDED = 2.0**30, 2.0**50  # codes that fit, and numbers that kernels round


def digits_for(peak: int) -> int:
    """The number of digits that codes up to a largest one have; more than `MOST` if too large."""
    if peak > _HELD:
        return MOST + 1
    return next(d for d in range(1, MOST + 1) if peak <= 127 * (256**d - 1) // 255)


def padded(n: int, to: int) -> int:
    """The next multiple."""
    return -(-n // to) * to


def cut(
    values: Tensor,
    scale: Tensor,
    planes: Tensor,
    start: int,
    peak: Tensor,
    shift: Tensor | None = None,
    rows: Tensor | None = None,
) -> None:
    """Write the digits of round(values · scale) - shift into planes, from row `start` on.

    Parameters
    ----------
    values : tensor of shape (n, J)
    scale : float64 tensor of shape (J,)
        Powers of two.
    planes : int8 tensor of shape (digits, at least J, at least start + n)
        With any strides.
    start : int
    peak : int32 tensor of shape (1,)
        Raised to the largest |code|, or to `BEYOND`.
    shift : float64 tensor of shape (J,), optional
        Whole numbers.
    rows : int64 tensor of shape (n,), optional
        Take these rows of the values, in this order.
    """
    if not values.numel():
        return
    shift = torch.zeros_like(scale) if shift is None else shift
    if kernels.serves(values):
        kernels.cut(values, scale, shift, planes, start, peak, rows)
        return
    values = values if rows is None else values[rows]
    n, J = values.shape
    y = values.double() * scale
    code = y.round() - shift
    held = (y.abs() <= _ROUNDED) & (code.abs() <= _HELD)
    k = torch.where(held, code, 0.0).to(torch.int32).T
    top = k.abs().max() if bool(held.all()) else torch.full_like(peak[0], BEYOND)
    torch.maximum(peak, top, out=peak)
    for plane in planes:
        low = ((k + 128) & 255) - 128
        plane[:J, start : start + n] = low
        k = (k - low) >> 8
