"""The plain twin of `traceless._core`: each function in Python's integers, obviously right.

It is the oracle of the compiled functions, and what runs where nothing is compiled. A wide number
is two's complement in 64-bit limbs, the lowest first; arrays of them have the limbs in the first
axis.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Limbs = NDArray[np.uint64]
Floats = NDArray[np.float64]


def integers(limbs: Limbs) -> NDArray[Any]:
    """The numbers, as Python integers."""
    total = limbs[-1].view(np.int64).astype(object)
    for limb in limbs[-2::-1]:
        total = (total << 64) + limb.astype(object)
    return np.asarray(total)


def put(out: Limbs, numbers: NDArray[Any]) -> None:
    """Write Python integers into limbs, modulo 2^(64 limbs)."""
    for k, limb in enumerate(out):
        limb[...] = ((numbers >> (64 * k)) & (2**64 - 1)).astype(np.uint64)


# --- sums ----------------------------------------------------------------------------------


def _fits(out: Limbs, numbers: NDArray[Any]) -> bool:
    """Write numbers; whether they and their negatives fit."""
    put(out, numbers)
    return not numbers.size or max(numbers.max(), -numbers.min()) < 1 << (64 * len(out) - 1)


def combined(a: Limbs, b: Limbs, minus: bool, out: Limbs) -> bool:
    """Write a + b, or a - b."""
    return _fits(out, integers(a) - integers(b) if minus else integers(a) + integers(b))


def shifted(a: Limbs, bits: int, out: Limbs) -> bool:
    """Write a · 2^bits, rounded down."""
    return _fits(out, integers(a) << bits if bits > 0 else integers(a) >> -bits)


def nearest(a: Limbs, out: Floats) -> None:
    """Write the nearest float64 of each number."""
    out[:] = integers(a).astype(np.float64)


def row_bytes(a: Limbs, row: int, n: int) -> tuple[int, bytes]:
    """The first n numbers of a row, each in so many bytes."""
    numbers = integers(a[:, row, :n]).tolist()
    width = 1 + max((abs(v).bit_length() for v in numbers), default=0) // 8
    return width, b"".join(v.to_bytes(width, "little", signed=True) for v in numbers)


def centred(S: Limbs, m: NDArray[np.int64], out: Limbs) -> bool:
    """Write the sums of φ - m, where the last feature is 1."""
    A, M = integers(S), m.astype(object)
    s, n = A[-1], A[-1, -1]
    return _fits(out, A - np.outer(M, s) - np.outer(s, M) + n * np.outer(M, M))


def _whole(Z: Any, w: Any) -> NDArray[Any]:
    """W z in Python integers."""
    to_int = np.frompyfunc(int, 1, 1)
    return np.asarray(to_int(Z) if w is None else to_int(Z) * to_int(w)[:, None], dtype=object)


def survey(Z: Any, J: int, w: Any, found: NDArray[np.int64], energy: Floats) -> None:
    """Of each column v = w z: zeros at its end, bits of its largest, Σv², and Σvz."""
    V = _whole(Z[:, :J], w)
    energy[0], energy[1] = (V * V).sum(axis=0), (V * _whole(Z[:, :J], None)).sum(axis=0)
    energy[:, np.abs(V).max(axis=0, initial=0) >= 2**126] = np.inf
    for j, v in enumerate(np.bitwise_or.reduce(np.abs(V), axis=0).tolist() if len(V) else [0] * J):
        found[:, j] = (v & -v).bit_length() - 1 if v else 127, v.bit_length()


def cut(
    Z: Any,
    w: Any,
    columns: Any,
    shifts: Any,
    last: Any,
    b: int,
    _: int,
    parts: Floats,
) -> None:
    """Write parts of columns w z, which add up to them with 2^shift."""
    V, parts[:, len(columns) :] = _whole(Z, w), 0.0
    for k, (j, s) in enumerate(zip(columns.tolist(), shifts.tolist(), strict=True)):
        part = (V[:, j] + (1 << s >> 1)) >> s
        if not last[k]:
            part = part - (((V[:, j] + (1 << (s + b) >> 1)) >> (s + b)) << b)
        parts[:, k] = part.astype(np.float64)


def place(
    product: Any, rows: Any, up: Any, columns: Any, across: Any, half: bool, sums: Limbs
) -> None:
    """Add products of parts to sums; those of a lower triangle may stand above the diagonal."""
    total, product = integers(sums), product[: len(rows), : len(columns)]
    whole = product.astype(np.int64).astype(object) << np.add.outer(up, across).astype(object)
    if half:
        same = np.equal.outer(rows, columns) & ~np.eye(len(rows), dtype=bool)
        whole = np.tril(whole) << same.astype(object)
    else:
        whole[np.less.outer(rows, columns)] = 0
    np.add.at(total, np.ix_(rows, columns), whole)
    put(sums, total)


def settle(product: Floats, J: int) -> None:
    """The lower triangle of the first J rows as int64, in the same memory."""
    whole = np.tril(product[:J, :J]).astype(np.int64)
    product.reshape(-1).view(np.int64)[: J * J] = whole.reshape(-1)


def symmetric(sums: Limbs) -> None:
    """Add what is above the diagonal to what is below, and the other way round."""
    total = integers(sums)
    put(sums, total + total.T - np.diag(total.diagonal()))


def sparse_gram(starts: Any, columns: Any, codes: Any, w: Any, sums: Limbs) -> None:
    """Add w z_i z_j of sparse rows to sums, i ≥ j."""
    total, Z = integers(sums), _whole(codes, None)
    for n, (first, last) in enumerate(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)):
        c, z = columns[first:last], Z[first:last]
        total[np.ix_(c, c)] += np.outer(z if w is None else z * int(w[n]), z)
    put(sums, np.tril(total) + np.triu(integers(sums), 1))


def group_gram(Z: Any, w: Any, group: Any, sums: NDArray[np.int64]) -> None:
    """Add w z_i z_j of rows to the sums of their groups, modulo 2^64."""
    codes = np.where(np.abs(Z) <= 2.0**53, Z, 0.0).astype(np.int64)
    w = np.ones(len(Z)) if w is None else np.where(w < 2.0**62, w, 0.0)
    for n, g in enumerate(group.tolist()):
        sums[g] += np.outer(codes[n], codes[n]) * w[n].astype(np.uint64).view(np.int64)


_PRIME = 1048573


def _vector(n: int) -> NDArray[np.int64]:
    return np.random.default_rng(1).integers(0, _PRIME, n)


def fold(A: Any, B: Any, w: Any, seen: Floats) -> None:
    """Add A' diag(w) (B r) modulo a prime."""
    u = (B.astype(np.int64) % _PRIME) @ _vector(B.shape[1]) % _PRIME
    u = u if w is None else u * (w % _PRIME).astype(np.int64) % _PRIME
    seen += u @ (A.astype(np.int64) % _PRIME) % _PRIME


def agrees(product: Any, symmetric: bool, seen: Floats) -> bool:
    """Whether A'B r is what was seen; the product is transposed, or a lower triangle."""
    whole = product.astype(np.int64) % _PRIME
    whole = np.tril(whole) + np.tril(whole, -1).T if symmetric else whole
    return bool((_vector(len(whole)) @ whole % _PRIME == seen.astype(np.int64) % _PRIME).all())


# --- solve ---------------------------------------------------------------------------------


# --- scores --------------------------------------------------------------------------------
