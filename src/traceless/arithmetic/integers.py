"""Integer arithmetic on arrays that never rounds and never wraps.

Two facts carry the library.

1. *A float64 product of integers is an integer product while it fits.* If every
   partial sum of ``Σ_n a_n b_n`` stays at or below 2^53, BLAS may block, reorder and
   thread it as it likes: the result is exact, so it is the same on every machine.
   Larger integers are cut into limbs of 21 bits, ``a = Σ_l a_l 2^(21 l)`` with
   ``|a_l| ≤ 2^20``, whose products do fit.
2. *Sums of such products live in int64 while they fit, in several words beyond*
   (`traceless.arithmetic.words`). Which of the two is a function of the value alone, so
   equal sums are equal arrays. Vectors, which are short, are Python integers beyond int64.

All matrix products go through SciPy's BLAS. NumPy brings a second OpenBLAS with its
own threads, and two pools that spin against each other cost 3 to 8 times on two cores.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import ddot, dgemm

from traceless.arithmetic import words as in_words
from traceless.arithmetic.words import Sums, Wide

Floats = NDArray[np.float64]
Integers = NDArray[Any]  # int64, or object holding Python integers: see `narrow`

LARGEST = 2.0**53  # integers up to here are exact in float64
LIMB_BITS = 21
_INT64_MAX = 2**63 - 1
_CACHE = 2**15  # integers that are added at a time


# --- sums: int64 while they fit, words or Python integers beyond ---------------------


def narrow(a: Integers) -> Integers:
    """The canonical form of `a`: int64 if every entry is within ±(2^63 - 1)."""
    if a.dtype == np.int64:
        return a
    if a.size and (a.max() > _INT64_MAX or a.min() < -_INT64_MAX):
        return a
    return a.astype(np.int64)


def wide(a: Sums) -> Integers:
    """`a`, or whole numbers in float64, as Python integers, which cannot overflow."""
    return (a.astype(np.int64) if a.dtype == np.float64 else a).astype(object)


def whole_over_powers(a: Floats) -> tuple[Integers, int]:
    """Python integers n and E ≥ 0 with a = n 2^-E."""
    mantissas, exponents = np.frexp(a)
    places = np.where(a != 0, exponents - 53, 0)
    finest = min(int(places.min(initial=0)), 0)
    return wide(np.ldexp(mantissas, 53).astype(np.int64)) << wide(places - finest), -finest


def as_sums(a: Sums) -> Sums:
    """Integers of any kind in the one form of sums."""
    return in_words.of_python(a) if isinstance(a, np.ndarray) and a.dtype == object else a


def as_array(a: Sums) -> Integers:
    """A few sums as an array of NumPy: int64, or Python integers where some are beyond it."""
    a = least(a)
    return wide(a) if isinstance(a, Wide) else a


def equal(a: Sums, b: Sums) -> bool:
    """Whether two sums are the same."""
    if isinstance(a, Wide) and isinstance(b, Wide):
        return np.array_equal(a.words, b.words)
    return not isinstance(a, Wide) and not isinstance(b, Wide) and np.array_equal(a, b)


def least(a: Sums) -> Sums:
    """Part of a sum, in the one form of sums."""
    return in_words.least(a.words) if isinstance(a, Wide) else a


def spread(a: Sums, shape: tuple[int, ...], places: Sequence[tuple[Any, Any]]) -> Sums:
    """Parts of `a` at places of zeros: pairs of where they come from, and where they go."""
    if isinstance(a, Wide):
        return Wide(np.stack([_spread(word, shape, places) for word in a.words]))
    return _spread(a, shape, places)


def _spread(a: Integers, shape: tuple[int, ...], places: Sequence[tuple[Any, Any]]) -> Integers:
    out = np.zeros(shape, dtype=a.dtype)
    for source, target in places:
        out[target] = a[source]
    return out


def stack(several: Sequence[Sums]) -> Sums:
    """Sums of one shape, one behind the other."""
    words = [_words(a) for a in several]
    longest = max(map(len, words))
    if longest == 1:
        return np.stack([word[0].view(np.int64) for word in words])
    return Wide(np.stack([in_words.extended(word, longest) for word in words], axis=1))


def bordered(features: Sums, classes: Sums) -> Sums:
    """Sums of J features, and beside them those of K classes: per class J + 1, the last its own."""
    (K, J), several = (len(classes), len(features)), (_words(features), _words(classes))
    inner, rows = (in_words.extended(words, max(map(len, several))) for words in several)
    out = np.zeros((len(inner), J + K, J + K), dtype=np.uint64)
    out[:, :J, :J] = inner
    out[:, J:, :J] = rows[..., :J]
    out[:, :J, J:] = rows[..., :J].swapaxes(1, 2)
    out[:, range(J, J + K), range(J, J + K)] = rows[..., J]
    return in_words.least(out) if len(out) > 1 else out[0].view(np.int64)


def _words(a: Sums) -> in_words.Words:
    return a.words if isinstance(a, Wide) else in_words.words_of(a, 1)


def add(a: Sums, b: Sums) -> Sums:
    """``a + b`` of two arrays of one shape, exact whatever the size."""
    return _combined(a, b, in_words.add_part)


def subtract(a: Sums, b: Sums) -> Sums:
    """``a - b`` of two arrays of one shape, exact whatever the size."""
    return _combined(a, b, in_words.subtract_part)


def _combined(a: Sums, b: Sums, part: in_words.Part) -> Sums:
    a, b = as_sums(a), as_sums(b)
    if not isinstance(a, Wide) and not isinstance(b, Wide):
        c = np.empty(a.shape, dtype=np.int64)
        flat = [v.reshape(1, -1).view(np.uint64) for v in (c, a, b)]
        if all(
            part(*(v[:, i : i + _CACHE] for v in flat))
            and int(c.reshape(-1)[i : i + _CACHE].min(initial=0)) >= -_INT64_MAX
            for i in range(0, c.size, _CACHE)
        ):
            return c
    return in_words.combined(_words(a), _words(b), part)


def shift_left(a: Sums, bits: int) -> Sums:
    """``a · 2^bits``, exact whatever the size."""
    if not bits:
        return a
    if not isinstance(a, Wide) and _magnitude(a).bit_length() + bits <= 63:
        return a << bits
    return in_words.shifted_left(_words(a), bits)


def shift_right(a: Sums, bits: int) -> Sums:
    """``a · 2^-bits``, rounded down."""
    return in_words.shifted_right(a.words, bits) if isinstance(a, Wide) else a >> bits


def parts(a: Sums) -> list[tuple[int, Integers]]:
    """int64 arrays and shifts: `a` is the sum of ``part · 2^shift``, none larger than it need be.

    Parts are rounded, not cut, so that in float64 they add up without cancellation.
    """
    found, shift = [], 0
    while isinstance(a, Wide):
        low = (a.words[0].view(np.int64) << 4) >> 4  # between ±2^59
        found.append((shift, low))
        a, shift = shift_right(subtract(a, low), 60), shift + 60
    return [*found, (shift, a)]


def trailing_zeros(a: Sums, most: int) -> int:
    """The largest number of bits, up to `most`, by which all of `a` can be shifted right."""
    seen = 0
    for k, word in enumerate(_words(a)):
        for row in word.reshape(-1, a.shape[-1]) if a.size else ():
            seen |= int(np.bitwise_or.reduce(row)) << 64 * k
            if seen & 1:
                return 0
    return min(most, (seen & -seen).bit_length() - 1) if seen else most


def _magnitude(a: Integers) -> int:
    """The largest absolute value (0 if empty)."""
    return max(int(a.max()), -int(a.min())) if a.size else 0


def triangle_bytes(a: Sums) -> Iterator[bytes]:
    """The lower triangle of a matrix, row by row, as bytes that are a function of its values.

    A row of int64 has eight bytes for each number. Where there are words, it has as many as the
    largest number of the row needs, sign and all.
    """
    if not isinstance(a, Wide):
        for i, row in enumerate(a):
            yield b"int64" + row[: i + 1].astype("<i8").tobytes()
        return
    strip = max(1, 2 * _CACHE // len(a))
    for first in range(0, len(a), strip):
        rows = a.words[:, first : first + strip, : first + strip].copy()
        rows[..., first:] = np.tril(rows[..., first:])
        widths, n = in_words.byte_widths(rows), rows.shape[2]
        pieces: list[Any] = [b""] * (2 * len(widths))
        for width in {*widths.tolist()}:
            alike = np.flatnonzero(widths == width)
            raw = in_words.to_bytes(rows[:, alike].reshape(len(rows), -1), width).data
            for k, i in enumerate(alike.tolist()):
                own = slice(k * n * width, (k * n + first + i + 1) * width)
                pieces[2 * i : 2 * i + 2] = b"wide%d:" % width, raw[own]
        yield b"".join(pieces)


@overload
def packed(symmetric: Integers) -> Integers: ...
@overload
def packed(symmetric: Wide) -> Wide: ...
def packed(symmetric: Sums) -> Sums:
    """The lower triangle of each matrix, row by row, as one vector: half the size."""
    if isinstance(symmetric, Wide):
        return Wide(packed(symmetric.words))
    *several, n, _ = symmetric.shape
    rows = symmetric.reshape(-1, n, n)
    triangle = n * (n + 1) // 2
    out = np.empty((len(rows), triangle), dtype=symmetric.dtype)
    for i in range(n if out.size else 0):
        out[:, i * (i + 1) // 2 : (i + 1) * (i + 2) // 2] = rows[:, i, : i + 1]
    return out.reshape(*several, triangle)


@overload
def unpacked(triangles: Integers, n: int) -> Integers: ...
@overload
def unpacked(triangles: Wide, n: int) -> Wide: ...
def unpacked(triangles: Sums, n: int) -> Sums:
    """The n × n symmetric matrices that `packed` was given."""
    if isinstance(triangles, Wide):
        return Wide(unpacked(triangles.words, n))
    out = np.zeros((*triangles.shape[:-1], n, n), dtype=triangles.dtype)
    for i in range(n if out.size else 0):
        out[..., i, : i + 1] = triangles[..., i * (i + 1) // 2 : (i + 1) * (i + 2) // 2]
    for matrix in out.reshape(-1, n, n):
        mirror(matrix)
    return out


def to_tensor(a: Sums) -> Integers:
    """For files: int64 as it is, words as bytes (two's complement) in a last axis."""
    if not isinstance(a, Wide):
        return a
    flat = a.words.reshape(len(a.words), 1, -1)
    width = int(in_words.byte_widths(flat)[0])
    return in_words.to_bytes(flat[:, 0], width).reshape(*a.shape, width)


def from_tensor(tensor: Integers) -> Sums:
    """Inverse of `to_tensor`."""
    return tensor if tensor.dtype == np.int64 else in_words.from_bytes(tensor)


def nearest(a: Integers, b: Integers) -> Floats:
    """The float64 nearest to each ``a / b``, b > 0: subnormal, infinite, and zero always +0.0."""
    try:
        quotients: Any = a / b  # of Python integers, which is correctly rounded
    except OverflowError:
        quotients = np.frompyfunc(_quotient, 2, 1)(a, b)
    return np.asarray(quotients, dtype=np.float64) + 0.0


def _quotient(a: int, b: int) -> float:
    try:
        return a / b
    except OverflowError:
        return math.inf if a > 0 else -math.inf


def powers(bits: NDArray[np.int64]) -> Integers:
    """2^bits, as Python integers."""
    return np.array([1 << int(b) for b in bits], dtype=object)


# --- products ----------------------------------------------------------------------


def peak(A: Floats) -> float:
    """The largest absolute value of `A` (0 if empty)."""
    return max(float(A.max()), -float(A.min())) if A.size else 0.0


def energy(A: Floats) -> float:
    """The sum of squares of a contiguous array, in one pass; NaN and infinities show.

    It bounds every entry of ``A' A`` and every partial sum on the way (Cauchy-Schwarz).
    """
    flat = A.reshape(-1)
    return float(ddot(flat, flat)) * (1 + 1e-6) if flat.size else 0.0


def limbs(A: Floats) -> Iterator[tuple[NDArray[np.intp], int, Floats]]:
    """Cut integers into parts of at most 2^20: yields (columns, shift, part).

    The sum of ``part · 2^shift`` over its columns is `A`. Only columns that need
    another limb get one, and an entry's limbs depend on that entry alone.
    """
    columns, shift = np.arange(A.shape[1]), 0
    while True:
        if peak(A) <= 2.0 ** (LIMB_BITS - 1):
            yield columns, shift, A
            return
        high = np.rint(np.ldexp(A, -LIMB_BITS))
        yield columns, shift, A - np.ldexp(high, LIMB_BITS)
        needed = high.any(axis=0)
        columns, shift, A = columns[needed], shift + LIMB_BITS, high[:, needed]


class ShiftedSum:
    """Σ part · 2^shift of integers up to 2^53, at some rows and columns each, joined once."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._shape = shape
        self._parts: dict[tuple[int, Any], tuple[Any, Integers]] = {}  # where they are, int64 sums
        self._added: Counter[tuple[int, Any]] = Counter()
        self._before: Sums | None = None  # what these had no room for

    def add(self, where: Any, shift: int, part: Integers, key: Any = None) -> None:
        """Add part · 2^shift to some rows and columns, known by a key; the part may be kept."""
        place = shift, key
        if self._added[place] == 2**9:  # so many parts stay below 2^62
            self._before, self._parts, self._added = self.total(), {}, Counter()
        self._added[place] += 1
        if place in self._parts:
            self._parts[place][1][...] += part
        else:
            self._parts[place] = where, part

    def total(self) -> Sums:
        """All of it, in canonical form."""
        parts = [(where, shift, part) for (shift, _), (where, part) in self._parts.items()]
        total = _joined(self._shape, parts)
        return total if self._before is None else add(self._before, total)


def _joined(shape: tuple[int, ...], parts: Sequence[tuple[Any, int, Integers]]) -> Sums:
    """Σ part · 2^shift in canonical form."""
    if len(parts) == 1 and parts[0][1] == 0 and parts[0][2].shape == shape:
        return parts[0][2]
    size = sum(_magnitude(part) << shift for _, shift, part in parts)
    words = np.zeros((size.bit_length() // 64 + 1, *shape), dtype=np.uint64)
    for where, shift, part in parts:
        where = (slice(None), *(where if isinstance(where, tuple) else (where,)))
        held = words[where]
        in_words.add_shifted(held, part, shift)
        if not np.may_share_memory(held, words):
            words[where] = held
    return in_words.least(words)


def mirror(lower: NDArray[Any]) -> NDArray[Any]:
    """Copy the lower triangle onto the upper one, in place, in cache-sized tiles."""
    n, tile = len(lower), 128
    for i in range(0, n, tile):
        block = lower[i : i + tile, i : i + tile]
        block[:] = np.tril(block) + np.tril(block, -1).T
        lower[i : i + tile, i + tile :] = lower[i + tile :, i : i + tile].T
    return lower


def matrix_times(S: Sums, D: Floats, bits: int) -> Integers:
    """``S D`` exactly as Python integers, for integers ``|D| ≤ 2^bits``.

    S is cut, a panel of rows at a time, into limbs small enough for its width.
    """
    if isinstance(S, Wide):
        several = [matrix_times(part, D, bits) << shift for shift, part in parts(S)]
        return np.asarray(sum(several))
    size = 53 - bits - len(S).bit_length()
    mask = (1 << size) - 1
    out = np.zeros((len(S), D.shape[1]), dtype=object)
    for start in range(0, len(S), 256):
        rest, shift = S[start : start + 256], 0
        while True:
            last = _magnitude(rest) <= mask
            limb = rest if last else rest & mask
            part = dgemm(1.0, D.T, limb.astype(np.float64).T).T
            out[start : start + 256] += wide(part.astype(np.int64)) << shift
            if last:
                break
            rest, shift = rest >> size, shift + size
    return out
