"""Codes cut into digits of eight bits, for products of small integers.

    k = Σ_d 256^d k_d,     -128 ≤ k_d ≤ 127

Digits lie column by column (a plane for each d, a row of it for each column), which is what tensor
cores multiply fastest. Rounding to the grid and cutting are one kernel where Triton is installed,
so that rows are read once; the same in plain torch is the other way, and gives the same digits.

A power of two times a float64 is exact, and adding and subtracting 1.5 · 2^52 rounds it to a whole
number, ties to even, as `numpy.rint` does.
"""

from __future__ import annotations

import math

import torch

from traceless.device.tensors import Tensor, kind_of

try:
    import triton
    import triton.language as tl
except ImportError:  # then in plain torch
    triton = None

MOST = 4  # digits of a code
BEYOND = 2**31 - 1  # the peak of codes that no digits hold: too large, infinite or NaN
_ROUNDS = tl.constexpr(1.5 * 2.0**52) if triton else None
_HELD = tl.constexpr(2.0**30) if triton else None


def digits_for(peak: int) -> int:
    """The number of digits that codes up to a largest one have; more than `MOST` if too large."""
    if peak > 2**30:
        return MOST + 1
    return next(d for d in range(1, MOST + 1) if peak <= 127 * (256**d - 1) // 255)


def padded(n: int, to: int) -> int:
    """The next multiple."""
    return -(-n // to) * to


def cut(values: Tensor, scale: Tensor, planes: Tensor, start: int, peak: Tensor) -> None:
    """Write the digits of round(values · scale) into planes, from row `start` on.

    Parameters
    ----------
    values : tensor of shape (n, J)
    scale : float64 tensor of shape (J,)
        Powers of two.
    planes : int8 tensor of shape (digits, at least J, at least start + n)
    peak : int32 tensor of shape (1,)
        Raised to the largest |code|, or to `BEYOND`.
    """
    if not values.numel():
        return
    if triton is not None and values.is_cuda:
        _launch(values, scale, planes, start, peak)
        return
    n, J = values.shape
    y = values.double() * scale
    held = y.abs() <= 2.0**30
    k = torch.where(held, y.round(), 0.0).to(torch.int32).T
    top = k.abs().max() if bool(held.all()) else torch.full_like(peak[0], BEYOND)
    torch.maximum(peak, top, out=peak)
    for plane in planes:
        low = ((k + 128) & 255) - 128
        plane[:J, start : start + n] = low
        k = (k - low) >> 8


def _launch(values: Tensor, scale: Tensor, planes: Tensor, start: int, peak: Tensor) -> None:
    n, J = values.shape
    values = values.view(torch.uint8) if kind_of(values) == "bool" else values
    rows, columns = 64, 64
    with torch.cuda.device(values.device):
        _cut_kernel[(math.ceil(n / rows), math.ceil(J / columns))](
            values,
            values.stride(0),
            values.stride(1),
            scale,
            planes,
            planes.stride(0),
            planes.stride(1),
            start,
            n,
            J,
            peak,
            len(planes),
            rows,
            columns,
        )


if triton is not None:

    @triton.jit  # type: ignore[untyped-decorator,unused-ignore]
    def _cut_kernel(  # type: ignore[no-untyped-def,unused-ignore]  # triton reads annotations
        values,
        row_stride,
        column_stride,
        scale,
        planes,
        plane_stride,
        width,
        start,
        n,
        J,
        peak,
        digits: tl.constexpr,
        block_rows: tl.constexpr,
        block_columns: tl.constexpr,
    ):
        r = tl.program_id(0) * block_rows + tl.arange(0, block_rows)
        c = tl.program_id(1) * block_columns + tl.arange(0, block_columns)
        inside = (r[:, None] < n) & (c[None, :] < J)
        place = r[:, None].to(tl.int64) * row_stride + c[None, :].to(tl.int64) * column_stride
        x = tl.load(values + place, mask=inside, other=0).to(tl.float64)
        y = x * tl.load(scale + c, mask=c < J, other=0.0)[None, :]
        held = tl.abs(y) <= _HELD
        k = tl.where(held, (y + _ROUNDS) - _ROUNDS, 0.0).to(tl.int32)
        tops = tl.where(inside & (held == 0), 2147483647, tl.abs(k))
        tl.atomic_max(peak, tl.max(tl.max(tops, axis=1), axis=0))
        k = tl.trans(k)
        target = c[:, None].to(tl.int64) * width + (r[None, :] + start)
        there = (c[:, None] < J) & (r[None, :] < n)
        for d in tl.static_range(digits):
            low = ((k + 128) & 255) - 128
            tl.store(planes + d * plane_stride + target, low.to(tl.int8), mask=there)
            k = (k - low) >> 8
