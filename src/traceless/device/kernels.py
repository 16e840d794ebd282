"""Kernels of a device, in Triton: each does in one pass what plain torch would do in many.

Every function of this module gives the bits of its plain form, which stands where it is called.
Products here are by powers of two, which are exact, so a fused multiply-add rounds as the two
operations would. Triton reads annotations as its own, so kernels have none but `constexpr`.
"""

from __future__ import annotations

import torch

from traceless.device.tensors import Tensor, kind_of

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

_ROUNDS = tl.constexpr(1.5 * 2.0**52) if triton else None  # adding and subtracting it rounds
_HELD = tl.constexpr(2.0**30) if triton else None
_ROUNDED = tl.constexpr(2.0**50) if triton else None


def serves(tensor: Tensor) -> bool:
    """Whether the kernels can work on a tensor: on CUDA, where Triton is installed."""
    return triton is not None and tensor.is_cuda


def cut(
    values: Tensor,
    scale: Tensor,
    shift: Tensor,
    planes: Tensor,
    start: int,
    peak: Tensor,
    rows: Tensor | None,
) -> None:
    """See `traceless.device.cutting.cut`."""
    n, J = values.shape[0] if rows is None else len(rows), values.shape[1]
    values = values.view(torch.uint8) if kind_of(values) == "bool" else values
    columns_first = planes.stride(2) == 1
    with torch.cuda.device(values.device):
        rows_of_tile, columns_of_tile, warps = (128, 32, 8) if columns_first else (16, 256, 4)
        _cut[(triton.cdiv(n, rows_of_tile), triton.cdiv(J, columns_of_tile))](
            values,
            values.stride(0),
            values.stride(1),
            peak if rows is None else rows,
            scale,
            shift,
            planes,
            *planes.stride(),
            start,
            n,
            J,
            peak,
            rows is not None,
            len(planes),
            columns_first,
            rows_of_tile,
            columns_of_tile,
            num_warps=warps,
        )


def rounded(
    P: Tensor, rest: Tensor, power: Tensor, constant: Tensor, out: Tensor, unsure: Tensor
) -> None:
    """See `traceless.device.products._rounded`."""
    A, n, D, K = P.shape
    with torch.cuda.device(P.device):
        _rounded[(triton.cdiv(n, 8), triton.cdiv(K, 64))](
            P, P.stride(0), rest, power, constant, out, unsure, n, K, A, D, 8, 64
        )


def class_sums(planes: Tensor, J: int, classes: Tensor, sums: Tensor) -> None:
    """See `traceless.device.gram._class_sums`."""
    n = len(classes)
    with torch.cuda.device(planes.device):
        _class_sums[(triton.cdiv(n, 256), triton.cdiv(J, 64))](
            planes,
            planes.stride(0),
            planes.stride(1),
            classes,
            sums,
            sums.stride(0),
            n,
            J,
            len(planes),
            64,
            256,
        )


def multiply(A: Tensor, B: Tensor, out: Tensor, lower: bool) -> None:
    """See `traceless.device.gram.multiply`.

    Where there are fewer tiles than multiprocessors, several add up one: in any order, exactly.
    """
    (M, n), N = A.shape, len(B)
    rows, columns = triton.cdiv(M, 128), triton.cdiv(N, 256)
    tiles = sum(max(0, rows - 2 * c) for c in range(columns)) if lower else rows * columns
    cores = torch.cuda.get_device_properties(A.device).multi_processor_count
    most = min(16, max(1, n // 4096)) if tiles < 3 * cores else 1
    busy = {s: tiles * s / triton.cdiv(tiles * s, cores) - s for s in range(1, most + 1)}
    splits = max(busy, key=busy.__getitem__)
    if splits > 1:
        out.zero_()
    with torch.cuda.device(A.device):
        _multiply[(rows * columns, splits)](
            A,
            B,
            out,
            M,
            N,
            n,
            A.stride(0),
            B.stride(0),
            out.stride(0),
            triton.cdiv(triton.cdiv(n, 128), splits),
            splits > 1,
            lower,
            128,
            256,
            128,
            8,
            num_warps=8,
            num_stages=4,
        )


def winners(
    P: Tensor, power: Tensor, constant: Tensor, bound: Tensor, best: Tensor, unsure: Tensor
) -> None:
    """See `traceless.device.products._winners`."""
    A, n, D, K = P.shape
    with torch.cuda.device(P.device):
        columns = min(1024, triton.next_power_of_2(K))
        rows = 1024 // columns
        _winners[(triton.cdiv(n, rows),)](
            P, P.stride(0), power, constant, bound, best, unsure, n, K, A, D, rows, columns
        )


if triton is not None:

    @triton.jit  # type: ignore[untyped-decorator,unused-ignore]
    def _cut(  # type: ignore[no-untyped-def]
        values,
        row_stride,
        column_stride,
        rows,
        scale,
        shift,
        planes,
        plane_stride,
        place_of_column,
        place_of_row,
        start,
        n,
        J,
        peak,
        by_number: tl.constexpr,
        digits: tl.constexpr,
        columns_first: tl.constexpr,
        block_rows: tl.constexpr,
        block_columns: tl.constexpr,
    ):
        r = tl.program_id(0) * block_rows + tl.arange(0, block_rows)
        c = tl.program_id(1) * block_columns + tl.arange(0, block_columns)
        inside = (r[:, None] < n) & (c[None, :] < J)
        number = r.to(tl.int64)
        if by_number:
            number = tl.load(rows + r, mask=r < n, other=0)
        place = number[:, None] * row_stride + c[None, :].to(tl.int64) * column_stride
        x = tl.load(values + place, mask=inside, other=0).to(tl.float64)
        y = x * tl.load(scale + c, mask=c < J, other=0.0)[None, :]
        code = ((y + _ROUNDS) - _ROUNDS) - tl.load(shift + c, mask=c < J, other=0.0)[None, :]
        held = (tl.abs(y) <= _ROUNDED) & (tl.abs(code) <= _HELD)
        k = tl.where(held, code, 0.0).to(tl.int32)
        tops = tl.where(inside, tl.where(held, tl.abs(k), 2147483647), 0)
        top = tl.max(tl.max(tops, axis=1), axis=0)
        tl.atomic_max(peak, top, mask=top > tl.load(peak), sem="relaxed")
        if columns_first:
            k = tl.trans(k)
            row, column = (r[None, :] + start).to(tl.int64), c[:, None].to(tl.int64)
            there = (c[:, None] < J) & (r[None, :] < n)
        else:
            row, column = (r[:, None] + start).to(tl.int64), c[None, :].to(tl.int64)
            there = inside
        target = column * place_of_column + row * place_of_row
        stride = tl.cast(plane_stride, tl.int64)
        for d in tl.static_range(digits):
            low = ((k + 128) & 255) - 128
            tl.store(planes + (target + d * stride), low.to(tl.int8), mask=there)
            k = (k - low) >> 8

    @triton.jit  # type: ignore[untyped-decorator,unused-ignore]
    def _added(value, s, t, size):  # type: ignore[no-untyped-def]
        total = value + s
        u = total - value
        low = (value - (total - u)) + (s - u)  # value + s = total + low (Knuth)
        return total, t + low, size + tl.abs(low)

    @triton.jit  # type: ignore[untyped-decorator,unused-ignore]
    def _rounded(  # type: ignore[no-untyped-def]
        P,
        stride,
        rest,
        power,
        constant,
        out,
        unsure,
        n,
        K,
        A: tl.constexpr,
        D: tl.constexpr,
        block_rows: tl.constexpr,
        block_columns: tl.constexpr,
    ):
        r = tl.program_id(0) * block_rows + tl.arange(0, block_rows)
        c = tl.program_id(1) * block_columns + tl.arange(0, block_columns)
        inside = (r[:, None] < n) & (c[None, :] < K)
        place = r[:, None].to(tl.int64) * (D * K) + c[None, :]
        s = tl.zeros((block_rows, block_columns), dtype=tl.float64)
        t = tl.zeros((block_rows, block_columns), dtype=tl.float64)
        size = tl.zeros((block_rows, block_columns), dtype=tl.float64)
        for g in tl.static_range((A + D - 2) // 3 + 1):
            whole = tl.zeros((block_rows, block_columns), dtype=tl.int64)
            for a in tl.static_range(A):
                for m in tl.static_range(D):
                    if (a + m) // 3 == g:
                        here = P + (place + a * stride + m * K)
                        part = tl.load(here, mask=inside, other=0).to(tl.int64)
                        whole += part << (8 * ((a + m) % 3))
            s, t, size = _added(whole.to(tl.float64) * (2.0 ** (24 * g)), s, t, size)
        scale = tl.load(power + c, mask=c < K, other=1.0)[None, :]
        value = tl.load(constant + c, mask=c < K, other=0.0)[None, :] / scale
        s, t, size = _added(value, s, t, size)
        left = tl.load(rest + c, mask=c < K, other=0.0)[None, :]
        size = size * (((A + D - 2) // 3 + 6) * 2.0**-52) + left
        high = s + (t + size)
        certain = high == s + (t - size)
        high = high * scale + 0.0
        tl.store(out + r[:, None].to(tl.int64) * K + c[None, :], high, mask=inside)
        bad = tl.max(tl.where(inside & (certain == 0), 1, 0), axis=1)
        tl.atomic_max(unsure + r, bad, mask=(r < n) & (bad > 0))

    @triton.jit  # type: ignore[untyped-decorator,unused-ignore]
    def _winners(  # type: ignore[no-untyped-def]
        P,
        stride,
        power,
        constant,
        bound,
        best,
        unsure,
        n,
        K,
        A: tl.constexpr,
        D: tl.constexpr,
        block_rows: tl.constexpr,
        block_columns: tl.constexpr,
    ):
        r = tl.program_id(0) * block_rows + tl.arange(0, block_rows)
        lowest = float("-inf")
        sure = tl.full((block_rows,), lowest, dtype=tl.float64)  # the largest lower end, and whose
        who = tl.zeros((block_rows,), dtype=tl.int32)
        first = tl.full((block_rows,), lowest, dtype=tl.float64)  # the two largest upper ends
        second = tl.full((block_rows,), lowest, dtype=tl.float64)
        owner = tl.zeros((block_rows,), dtype=tl.int32)
        for start in range(0, K, block_columns):
            c = start + tl.arange(0, block_columns)
            inside = (r[:, None] < n) & (c[None, :] < K)
            place = r[:, None].to(tl.int64) * (D * K) + c[None, :]
            whole = tl.zeros((block_rows, block_columns), dtype=tl.int64)
            for a in tl.static_range(A):
                for m in tl.static_range(D):
                    here = P + (place + a * stride + m * K)
                    part = tl.load(here, mask=inside, other=0).to(tl.int64)
                    whole += part << (8 * (a + m))
            own = tl.load(constant + c, mask=c < K, other=0.0)[None, :]
            value = whole.to(tl.float64) * tl.load(power + c, mask=c < K, other=0.0)[None, :]
            room = tl.load(bound + c, mask=c < K, other=0.0)[None, :]
            room += (tl.abs(value) + tl.abs(own)) * 2.0**-50
            value += own
            low = tl.where(inside, value - room, lowest)
            high = tl.where(inside, value + room, lowest)
            top, at = tl.max(low, axis=1), tl.argmax(low, axis=1).to(tl.int32)
            who = tl.where(top > sure, at + start, who)
            sure = tl.maximum(sure, top)
            top, at = tl.max(high, axis=1), tl.argmax(high, axis=1).to(tl.int32)
            others = tl.where(tl.arange(0, block_columns)[None, :] == at[:, None], lowest, high)
            next_top = tl.max(others, axis=1)
            second = tl.where(top > first, tl.maximum(first, next_top), tl.maximum(second, top))
            owner = tl.where(top > first, at + start, owner)
            first = tl.maximum(first, top)
        rival = tl.where(who == owner, second, first)
        tl.store(best + r, who.to(tl.int64), mask=r < n)
        tl.store(unsure + r, tl.where(sure > rival, 0, 1), mask=r < n)

    @triton.jit  # type: ignore[untyped-decorator,unused-ignore]
    def _class_sums(  # type: ignore[no-untyped-def]
        planes,
        plane_stride,
        column_stride,
        classes,
        sums,
        sums_stride,
        n,
        J,
        digits: tl.constexpr,
        block_columns: tl.constexpr,
        block_rows: tl.constexpr,
    ):
        start = tl.program_id(0) * block_rows
        r = start + tl.arange(0, block_rows)
        c = tl.program_id(1) * block_columns + tl.arange(0, block_columns)
        own = tl.load(classes + r, mask=r < n, other=-1)
        last = tl.load(classes + min(start + block_rows, n) - 1)
        place = c[:, None].to(tl.int64) * column_stride + r[None, :]
        inside = (c[:, None] < J) & (r[None, :] < n)
        stride = tl.cast(plane_stride, tl.int64)
        for first in range(tl.load(classes + start), last + 1, 16):  # rows are in order
            k = first + tl.arange(0, 16)
            has = (k[:, None] == own[None, :]).to(tl.int8)
            total = tl.zeros((block_columns, 16), dtype=tl.int64)
            for d in tl.static_range(digits):
                x = tl.load(planes + (place + d * stride), mask=inside, other=0)
                total += tl.dot(x, tl.trans(has), out_dtype=tl.int32).to(tl.int64) << (8 * d)
            target = sums + k[None, :].to(tl.int64) * sums_stride + c[:, None]
            there = (k[None, :] <= last) & (c[:, None] < J)
            tl.atomic_add(target, total, mask=there, sem="relaxed")

    @triton.jit  # type: ignore[untyped-decorator,unused-ignore]
    def _multiply(  # type: ignore[no-untyped-def]
        A,
        B,
        out,
        M,
        N,
        n,
        stride_a,
        stride_b,
        stride_out,
        steps,
        adds: tl.constexpr,
        lower: tl.constexpr,
        block_m: tl.constexpr,
        block_n: tl.constexpr,
        block_k: tl.constexpr,
        group: tl.constexpr,
    ):
        tiles_m, tiles_n = tl.cdiv(M, block_m), tl.cdiv(N, block_n)
        tile, width = tl.program_id(0), group * tiles_n  # tiles that share rows run together
        first = tile // width * group
        size = min(tiles_m - first, group)
        row = (first + (tile % width) % size) * block_m
        column = (tile % width) // size * block_n
        if lower:  # noqa: SIM102
            if row + block_m <= column:
                return
        r, c = row + tl.arange(0, block_m), column + tl.arange(0, block_n)
        start = tl.program_id(1) * steps
        k = tl.arange(0, block_k)
        a = A + (r % M)[:, None].to(tl.int64) * stride_a + (start * block_k + k)[None, :]
        b = B + (c % N)[:, None].to(tl.int64) * stride_b + (start * block_k + k)[None, :]
        total = tl.zeros((block_m, block_n), dtype=tl.int32)
        for i in range(start, min(start + steps, tl.cdiv(n, block_k))):
            there = k[None, :] < n - i * block_k
            x = tl.load(a, mask=there, other=0)
            y = tl.load(b, mask=there, other=0)
            total = tl.dot(x, tl.trans(y), total, out_dtype=tl.int32)
            a += block_k
            b += block_k
        target = out + r[:, None].to(tl.int64) * stride_out + c[None, :]
        inside = (r[:, None] < M) & (c[None, :] < N)
        if adds:
            tl.atomic_add(target, total, mask=inside, sem="relaxed")
        else:
            tl.store(target, total, mask=inside)
