"""The plain twin of `traceless._core`: each function in Python's integers, obviously right.

It is the oracle of the compiled functions, and what runs where nothing is compiled. A wide number
is two's complement in 64-bit limbs, the lowest first; arrays of them have the limbs in the first
axis.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

Limbs = NDArray[np.uint64]
Integers = NDArray[Any]
Floats = NDArray[np.float64]


def integers(numbers: Limbs) -> NDArray[Any]:
    """The numbers, as Python integers."""
    total = numbers[-1].view(np.int64).astype(object)
    for limb in numbers[-2::-1]:
        total = (total << 64) + limb.astype(object)
    return np.asarray(total)


def put(out: Limbs, numbers: NDArray[Any]) -> None:
    """Write Python integers into limbs, modulo 2^(64 limbs)."""
    for k in range(len(out)):
        out[k] = np.asarray((numbers >> (64 * k)) & (2**64 - 1), dtype=object).astype(np.uint64)


def limbs(numbers: Any) -> Limbs:
    """Python integers in as many limbs as the largest needs with its sign."""
    a = np.asarray(numbers, dtype=object)
    size = max(int(a.max(initial=0)), -int(a.min(initial=0))).bit_length()
    out = np.empty((size // 64 + 1, *a.shape), dtype=np.uint64)
    put(out, a)
    return out


# --- sums ----------------------------------------------------------------------------------


def fits(out: Limbs, numbers: NDArray[Any]) -> bool:
    """Write numbers; whether they and their negatives fit."""
    put(out, numbers)
    return not numbers.size or max(numbers.max(), -numbers.min()) < 1 << (64 * len(out) - 1)


def combined(a: Limbs, b: Limbs, minus: bool, out: Limbs) -> bool:
    """Write a + b, or a - b."""
    return fits(out, integers(a) - integers(b) if minus else integers(a) + integers(b))


def shifted(a: Limbs, bits: int, out: Limbs) -> bool:
    """Write a · 2^bits, rounded down."""
    return fits(out, integers(a) << bits if bits > 0 else integers(a) >> -bits)


def nearest(a: Limbs, out: Floats) -> None:
    """Write the nearest float64 of each number."""
    out[:] = integers(a).astype(np.float64)


def centred(S: Limbs, m: NDArray[np.int64], out: Limbs) -> bool:
    """Write the sums of φ - m, where the last feature is 1."""
    A, M = integers(S), m.astype(object)
    s, n = A[-1], A[-1, -1]
    return fits(out, A - np.outer(M, s) - np.outer(s, M) + n * np.outer(M, M))


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


def cut(Z: Any, w: Any, columns: Any, shifts: Any, last: Any, b: int, *rest: Any) -> None:
    """Write parts of columns w z, which add up to them with 2^shift."""
    parts = rest[-1]
    V, parts[:, len(columns) :] = _whole(Z, w), 0.0
    for k, (j, s) in enumerate(zip(columns.tolist(), shifts.tolist(), strict=True)):
        part = (V[:, j] + (1 << s >> 1)) >> s
        if not last[k]:
            part = part - (((V[:, j] + (1 << (s + b) >> 1)) >> (s + b)) << b)
        parts[:, k] = part.astype(np.float64)


def place(P: Any, rows: Any, up: Any, columns: Any, across: Any, half: bool, sums: Limbs) -> None:
    """Add products of parts to the lower triangle of sums."""
    total, product = integers(sums), P[: len(rows), : len(columns)]
    whole = product.astype(np.int64).astype(object) << np.add.outer(up, across).astype(object)
    if half:
        same = np.equal.outer(rows, columns) & ~np.eye(len(rows), dtype=bool)
        whole = np.tril(whole) << same.astype(object)
    else:
        whole[np.less.outer(rows, columns)] = 0
    np.add.at(total, (np.maximum.outer(rows, columns), np.minimum.outer(rows, columns)), whole)
    put(sums, total)


def sparse_gram(starts: Any, columns: Any, codes: Any, w: Any, sums: Limbs) -> None:
    """Add w z_i z_j of sparse rows to sums, i ≥ j."""
    Z = csr_matrix((codes, columns, starts), shape=(len(starts) - 1, sums.shape[1])).toarray()
    put(sums, integers(sums) + np.tril(_whole(Z, w).T @ _whole(Z, None)))


def add_rows(Z: Any, w: Any, group: Any, sums: NDArray[np.int64]) -> bool:
    """Add w z_i z_j of rows to the sums of their groups, modulo 2^64; if all were below 2^62."""
    codes, fits = np.where(np.abs(Z) <= 2.0**53, Z, 0.0).astype(np.int64), True
    w = np.ones(len(Z)) if w is None else np.where(np.abs(w) < 2.0**62, w, 0.0)
    for n, g in enumerate(group.tolist()):
        fits &= bool(((sums[g] >= -(2**62)) & (sums[g] < 2**62)).all())
        sums[g] += np.outer(codes[n], codes[n]) * w[n].astype(np.int64)
    return fits


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


def advance(X: Limbs, up: Integers, D: Limbs, r: Limbs) -> None:
    """X ← 2^up X + r D."""
    put(X, (integers(X) << up.astype(object)) + int(integers(r)) * integers(D))


def digits(y: Any, e: Any, m: Any, x: Any, most: int, tops: Any, s: Any, d: Any, last: Any) -> bool:
    """The first digits d of y 2^(x - e), times 2^s, and d_b - Σ m_j d_j of the last."""
    if not np.isfinite(y).all():
        return False
    places = np.where(y == 0, -(2**40), np.frexp(y)[1].astype(np.int64))
    tops[0], tops[1] = (places - e[:, None]).max(axis=0) + x, places.max(axis=0) + x
    tops[:] = np.maximum(tops, -(2**31))  # of no numbers
    s[:] = np.where(tops[0] == -(2**31), most, np.maximum(most - tops[0], 0))
    if tops[0].max() > 58:
        return False
    d[:] = np.rint(np.ldexp(y, np.maximum(x + s - e[:, None], -2000)))
    put(last, d[-1].astype(object) - m.astype(object) @ d.astype(object))
    return True


def residual(
    R: Limbs, up: Any, S: Limbs, D: Limbs, last: Limbs, w: Limbs, r: Limbs, _threads: int
) -> None:
    """R ← 2^up R - w S D - r D, S times `last` in place of the last row of D if there is one."""
    d = integers(D)
    other = np.vstack([d[:-1], integers(last)[None]]) if len(last) else d
    product = int(integers(w)) * (integers(S) @ other)
    put(R, (integers(R) << up.astype(object)) - product - integers(r)[:, None] * d)


def leading(R: Limbs, m: Integers, e: Integers, V: Floats, x: Integers) -> None:
    """R'_j = R_j - m_j R_b in two floats V, as V 2^(x + e)."""
    whole = integers(R)
    V[:], places = _two(whole - m.astype(object)[:, None] * whole[-1])
    places = np.where(V[0] == 0, -(2**40), places - e[:, None])
    x[:] = np.where(V[0].any(axis=0), places.max(axis=0), 0)
    V[:] = np.ldexp(V, np.maximum(places - x, -4000))


def decide(X: Limbs, bound: Floats, places: Integers, E: Integers, Z: Floats) -> None:
    """Z = the float64 nearest to all that is within `bound` 2^places of X, times 2^-E, or NaN."""
    whole = integers(X)
    for j, k in np.ndindex(*Z.shape):
        off = math.ceil(Fraction(float(bound[j, k])) * Fraction(2) ** int(places[j, k]))
        up, down = 1 << max(-int(E[k]), 0), 1 << max(int(E[k]), 0)
        ends = {quotient((whole[j, k] + side) * up, down) for side in (-off, off)}
        decided = len(ends) == 1 and off.bit_length() <= 64 * len(X) - 2
        Z[j, k] = ends.pop() if decided else np.nan


def quotient(a: Any, b: int) -> float:
    """The float64 nearest to a / b, b > 0, infinite where it is too large; zero is +0.0."""
    try:
        return float(a / b) + 0.0  # of Python integers, which is rounded once
    except OverflowError:
        return math.inf if a > 0 else -math.inf


def matrix(S: Limbs, m: Any, s: Any, t: Any, near: Any, unit: int, A: Any, *out: Any) -> None:
    """A = S' 2^-unit + diag(near), scaled to 2^-e A 2^-e, S'_ij = S_ij - m_i t_j - s_i m_j."""
    m, (e, there) = m.astype(object), out
    both, places = _two(integers(S) - m[:, None] * integers(t) - integers(s)[:, None] * m)
    own = np.ldexp(both[0].diagonal(), places.diagonal() - unit)
    e[:], there[:] = np.frexp(own + near)[1] >> 1, own != 0
    both = np.ldexp(both, places - unit - e - e[:, None])
    at = np.diag_indices(len(m))
    both[0][at], low = two_sum(both[0][at], np.ldexp(near, -2 * e))
    both[1][at] += low
    if len(m) == A.shape[2]:
        A[:] = both[: len(A)]
        return
    (i, j), width = np.tril_indices(len(m)), A.shape[2]
    places = np.where(j < width, (i + 1 - len(m) % 2, j), (j - width, i - len(m) // 2))
    A[0][*places] = both[0][i, j]


def _two(numbers: NDArray[Any]) -> tuple[Floats, NDArray[np.int64]]:
    """The first 106 bits of numbers in two floats, the first the nearest, and their lengths."""
    size = np.abs(numbers)
    lengths = np.frompyfunc(int.bit_length, 1, 1)(size)
    first = (size << 106) >> lengths
    high, low = (first >> 53).astype(float), (first & (2**53 - 1)).astype(float) * 2.0**-53
    total = high + low
    both = np.array([total, low - (total - high)]) * np.sign(numbers).astype(float) * 2.0**-53
    return both, lengths.astype(np.int64)


def distances(z: Floats, A: Floats, M: Floats, out: Floats, _: int) -> None:
    """‖A_c (z - M_c)‖² of each class and column, or ‖A z - M_c‖² where there is one A."""
    for c, m in enumerate(M[:, :, None]):
        x, own = (z, A[0]) if len(A) == 1 else (z - m, A[c])
        t = x[0] * own[:, :1]
        for j in range(1, len(x)):
            t[j:] += x[j] * own[j:, j, None]
        squares = (t - m if len(A) == 1 else t) ** 2
        out[c] = sum(squares[1:], squares[0])


def symmetric_times(A: Floats, X: Floats, Y: Floats, _: int) -> None:
    """Y = A X of a symmetric A, of which the lower triangle is read; in float64."""
    below = np.tril(A, -1)
    Y[:] = (below + below.T) @ X + A.diagonal()[:, None] * X


# twofold numbers, high + low: about 106 bits (Dekker 1971, Knuth)


def twofold_factor(A: Floats, n: int, threads: int) -> int:  # noqa: ARG001
    """The first n steps of A = L D Lᵀ, in place; the first pivot that is not positive, or n."""
    for p in range(n):
        if not A[0, p, p] > 0:
            return p
        rows, column = np.s_[p + 1 :], A[:, p + 1 :, p].copy()
        A[:, rows, p] = ratio = _divide(column, A[:, p, p, None])
        A[:, rows, rows] = less_product(A[:, rows, rows], ratio[:, :, None], column[:, None])
    return n


def twofold_solve(A: Floats, B: Floats) -> None:
    """B ← A⁻¹B for A = L D Lᵀ."""
    n = A.shape[1]
    for k in range(n):
        B[:, k + 1 :] = less_product(B[:, k + 1 :], A[:, k + 1 :, k, None], B[:, k, None])
    B[:] = _divide(B, A.diagonal(axis1=1, axis2=2)[:, :, None])
    for k in range(n - 1, 0, -1):
        B[:, :k] = less_product(B[:, :k], A[:, k, :k, None], B[:, k, None])


def two_sum(a: Any, b: Any) -> Any:
    """A sum and its rounding error."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def _tidy(a: Floats, b: Floats) -> Floats:
    s = a + b
    return np.array([s, b - (s - a)])


def less_product(x: Floats, a: Floats, b: Floats) -> Floats:
    """A sum of x and -a b."""
    p, (ah, al), (bh, bl) = a[0] * b[0], _halves(a[0]), _halves(b[0])
    error = ((ah * bh - p) + ah * bl + al * bh) + al * bl
    return _less(x, _tidy(p, error + (a[0] * b[1] + a[1] * b[0])))


def _less(x: Floats, y: Floats) -> Floats:
    s, t = two_sum(x[0], -y[0]), two_sum(x[1], -y[1])
    high, low = _tidy(s[0], s[1] + t[0])
    return _tidy(high, low + t[1])


def _halves(a: Floats) -> tuple[Floats, Floats]:
    c = 134217729.0 * a  # 2^27 + 1
    high = c - (c - a)
    return high, a - high


def _divide(a: Floats, b: Floats) -> Floats:
    zero = np.zeros_like(a[0])
    first = a[0] / b[0]
    rest = less_product(a, b, np.array([first, zero]))
    second = rest[0] / b[0]
    rest = less_product(rest, b, np.array([second, zero]))
    high, low = _tidy(first, second)
    return _less(np.array([high, low]), np.array([-rest[0] / b[0], -zero]))


# --- scores --------------------------------------------------------------------------------


def scores(X: Any, scale: Any, shift: Any, starts: Any, columns: Any, Z: Any, *rest: Any) -> int:
    """Write Σ_j (round(x_j scale_j) - shift_j) z_j, rounded once; -1 if a code is beyond 2^53.

    Of sparse rows, X is all numbers. The rows of Z beyond the columns have the code 1.
    """
    out = rest[0]
    n, J = len(out), len(scale)
    if len(starts):
        X = csr_matrix((X[0], columns, starts), shape=(n, J)).toarray()
    with np.errstate(all="ignore"):
        codes = np.rint(X * scale)
    if not (np.abs(codes) <= 2.0**53).all():
        return -1
    whole = np.ones((n, len(Z)), dtype=object)
    whole[:, :J] = codes.astype(np.int64).astype(object) - shift.astype(np.int64).astype(object)
    digits, places = np.frexp(Z[:, : out.shape[1]])
    least = int(places.min(initial=-53))
    numbers = np.ldexp(digits, 53).astype(np.int64).astype(object)
    numbers <<= (places - least).astype(object)
    for index, number in np.ndenumerate(whole @ numbers):
        out[index] = quotient(number, 1 << 53 - least)
    return int(out.size)
