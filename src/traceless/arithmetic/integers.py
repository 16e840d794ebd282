"""Integer arithmetic on arrays that never rounds and never wraps.

Two facts carry the library.

1. *A float64 product of integers is an integer product while it fits.* If every
   partial sum of ``Σ_n a_n b_n`` stays at or below 2^53, BLAS may block, reorder and
   thread it as it likes: the result is exact, so it is the same on every machine.
2. *Sums of such products are int64 where they and their negatives fit, else two 64-bit limbs*
   (`Wide`), and an error beyond 2^127. Which of the two is a function of the values alone, so
   equal sums are equal arrays. What is done to them is done by the compiled core.

All matrix products go through SciPy's BLAS. NumPy brings a second OpenBLAS with its
own threads, and two pools that spin against each other cost 3 to 8 times on two cores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import ddot

from traceless.arithmetic.core import core
from traceless.arithmetic.plain import Limbs, fits, integers, quotient
from traceless.exceptions import RangeError

Floats = NDArray[np.float64]
Integers = NDArray[Any]  # int64, or object holding Python integers

LARGEST = 2.0**53  # integers up to here are exact in float64
PART_BITS = 21
_ROWS = 64  # whose bytes are made at a time
_ABOVE = np.triu(np.ones((128, 128), dtype=bool), 1)  # the diagonal of a tile


class Wide:
    """Integers below 2^127, of which some are beyond int64: never changed.

    Matrices that are taken out of one are again `Wide`; vectors and numbers, which are few, come
    as Python integers.

    Parameters
    ----------
    limbs : uint64 array of shape (2, *shape)
        Two's complement, the lower limb first. Kept.
    """

    __array_ufunc__ = None  # NumPy's operators would make objects of it in silence
    __hash__ = None  # type: ignore[assignment]
    dtype = np.dtype(object)  # that of Python integers

    def __init__(self, limbs: Limbs) -> None:
        self.limbs, self.shape, self.ndim = limbs, limbs.shape[1:], limbs.ndim - 1
        self.size = limbs[0].size

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, index: Any) -> Any:
        part = self.limbs[(slice(None), *(index if isinstance(index, tuple) else (index,)))]
        return Wide(part) if part.ndim > 2 else integers(part)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __eq__(self, other: object) -> Any:
        """Which numbers are equal, as arrays say it: slow."""
        return np.asarray(self) == np.asarray(other)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Python integers, or float64."""
        return self.astype(object if dtype is None else dtype)

    def __neg__(self) -> Sums:
        return subtract(np.zeros(self.shape, dtype=np.int64), self)

    def any(self) -> bool:
        """Whether some number is not zero."""
        return bool(self.limbs.any())

    def diagonal(self) -> Any:
        """The diagonal of a matrix, in Python integers."""
        return integers(self.limbs.diagonal(axis1=1, axis2=2))

    def copy(self) -> Wide:
        """The same in memory of its own."""
        return Wide(self.limbs.copy())

    def astype(self, dtype: Any) -> NDArray[Any]:
        """Python integers, or each as the nearest float64."""
        if np.dtype(dtype) == object:
            return integers(self.limbs)
        out = np.empty(self.size)
        core.nearest(_flat(self), out)
        return out.reshape(self.shape)


Sums = Integers | Wide  # int64, or two limbs beyond


# --- sums: int64 while they fit, two limbs beyond --------------------------------------


def as_limbs(a: Sums) -> Limbs:
    """Sums as limbs in a first axis, one or two: no copy."""
    return a.limbs if isinstance(a, Wide) else a.view(np.uint64)[None]


def of_limbs(limbs: Limbs) -> Sums:
    """Sums from their limbs, which are as few as hold them."""
    return Wide(limbs) if len(limbs) > 1 else limbs[0].view(np.int64)


def made(shape: tuple[int, ...], write: Callable[[Limbs], bool]) -> Sums:
    """Sums that are written to one limb each, or to two if they do not fit."""
    for n_limbs in (1, 2):
        out = np.empty((n_limbs, *shape), dtype=np.uint64)
        if write(out):
            return of_limbs(out)
    raise too_large()


def too_large() -> RangeError:
    """The error for sums that two limbs do not hold."""
    return RangeError(
        "A sum is beyond 2^127, as far as sums are exact. Give columns or targets that large a "
        "coarser resolution, or weights fewer powers of two. Nothing was changed."
    )


def _flat(a: Sums) -> Limbs:
    limbs = as_limbs(a)
    return np.ascontiguousarray(limbs).reshape(len(limbs), -1)


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
    if not isinstance(a, np.ndarray) or a.dtype != object:
        return a
    return made(a.shape, lambda out: fits(out, a))


def as_array(a: Sums) -> Integers:
    """A few sums as an array of NumPy: int64, or Python integers where some are beyond it."""
    return np.asarray(least(a))


def least(a: Sums) -> Sums:
    """Part of a sum, in the one form of sums."""
    return _shifted(a, 0) if isinstance(a, Wide) else a


def with_classes(a: Sums, J: int, old: NDArray[np.intp], new: NDArray[np.intp], K: int) -> Sums:
    """Sums of K classes beside J features: those of the old numbers at the new ones, else zeros."""
    limbs, old, new = as_limbs(a), old + J, new + J
    out = np.zeros((*limbs.shape[:-2], J + K, J + K), dtype=np.uint64)
    out[..., :J, :J] = limbs[..., :J, :J]
    out[..., new, :J] = limbs[..., old, :J]
    out[..., :J, new] = limbs[..., :J, old]
    out[..., new[:, None], new] = limbs[..., old[:, None], old]
    return least(of_limbs(out))


def with_rows(a: Sums, old: NDArray[np.intp], new: NDArray[np.intp], n: int) -> Sums:
    """Along the first axis n sums: those of the old numbers at the new ones, else zeros."""
    limbs = as_limbs(a)
    out = np.zeros((len(limbs), n, *a.shape[1:]), dtype=np.uint64)
    out[:, new] = limbs[:, old]
    return least(of_limbs(out))


def stack(several: Sequence[Sums]) -> Sums:
    """Sums of one shape, one behind the other."""
    return of_limbs(np.stack(_alike(*several), axis=1))


def bordered(features: Sums, classes: Sums) -> Sums:
    """Sums of J features, and beside them those of K classes: per class J + 1, the last its own."""
    K, J = len(classes), len(features)
    inner, rows = _alike(features, classes)
    out = np.zeros((len(inner), J + K, J + K), dtype=np.uint64)
    out[:, :J, :J] = inner
    out[:, J:, :J] = rows[..., :J]
    out[:, :J, J:] = rows[..., :J].swapaxes(1, 2)
    out[:, range(J, J + K), range(J, J + K)] = rows[..., J]
    return least(of_limbs(out))


def _alike(*several: Sums) -> list[Limbs]:
    """The limbs of sums, two of each where one needs two."""
    limbs = [as_limbs(a) for a in several]
    return [extended(a, max(map(len, limbs))) for a in limbs]


def extended(limbs: Limbs, n_limbs: int) -> Limbs:
    """The same numbers in so many limbs."""
    if len(limbs) >= n_limbs:
        return limbs
    return np.concatenate([limbs, (limbs.view(np.int64) >> 63).view(np.uint64)])


def add(a: Sums, b: Sums) -> Sums:
    """``a + b`` of two arrays of one shape."""
    return _combined(a, b, False)


def subtract(a: Sums, b: Sums) -> Sums:
    """``a - b`` of two arrays of one shape."""
    return _combined(a, b, True)


def _combined(a: Sums, b: Sums, minus: bool) -> Sums:
    a, b = as_sums(a), as_sums(b)
    left, right = _flat(a), _flat(b)
    return made(a.shape, lambda out: core.combined(left, right, minus, out.reshape(len(out), -1)))


def shifted(a: Sums, bits: int) -> Sums:
    """``a · 2^bits``, rounded down."""
    return _shifted(a, bits) if bits else a


def _shifted(a: Sums, bits: int) -> Sums:
    flat = _flat(a)
    return made(a.shape, lambda out: core.shifted(flat, bits, out.reshape(len(out), -1)))


def alike(a: Sums, a_bits: int, b: Sums, b_bits: int) -> tuple[Sums, Sums, int]:
    """Two sums in units of 2^-bits, each of its own, in the finer of both units."""
    bits = max(a_bits, b_bits)
    return shifted(a, bits - a_bits), shifted(b, bits - b_bits), bits


def trailing_zeros(a: Sums, most: int) -> int:
    """The largest number of bits, up to `most`, by which all of `a` can be shifted right."""
    seen = 0
    for k, limb in enumerate(as_limbs(a)):
        for row in limb.reshape(-1, a.shape[-1]) if a.size else ():
            seen |= int(np.bitwise_or.reduce(row)) << 64 * k
            if seen & 1:
                return 0
    return min(most, (seen & -seen).bit_length() - 1) if seen else most


def triangle_bytes(a: Sums) -> Iterator[bytes]:
    """The lower triangle of a matrix, row by row, as bytes that are a function of its values.

    A row of int64 has eight bytes for each number. Of a `Wide` it has as many as the largest
    number of the row needs, sign and all.
    """
    if not isinstance(a, Wide):
        for i in range(len(a)):
            yield b"int64" + a[i : i + 1, : i + 1].astype("<u8").tobytes()
        return
    for start in range(0, len(a), _ROWS):
        rows = a[start : start + _ROWS, : start + _ROWS]
        raw, sizes = _bytes(rows)
        ends = [np.bitwise_or.reduce(np.tril(limb, start), axis=1).tolist() for limb in sizes]
        for i, (low, high) in enumerate(zip(*ends, strict=True)):
            width = _width(low, high)
            yield b"wide%d:" % width + raw[i, : start + i + 1, :width].tobytes()


def _bytes(a: Wide) -> tuple[NDArray[np.uint8], tuple[Integers, Integers]]:
    """The sixteen bytes of each number, and the limbs of its size."""
    low, high = a.limbs
    negative = high >> 63 == 1
    sizes = np.where(negative, -low, low), np.where(negative, ~high + (low == 0), high)
    raw = np.ascontiguousarray(np.moveaxis(a.limbs, 0, -1), dtype="<u8").view(np.uint8)
    return raw, sizes


def _width(low: int, high: int) -> int:
    """The bytes of a number whose size has these limbs: one more than its bits fill."""
    return 1 + (low + (high << 64)).bit_length() // 8


def packed(symmetric: Any) -> Any:
    """The lower triangle of each matrix, row by row, as one vector: half the size."""
    if isinstance(symmetric, Wide):
        return Wide(packed(symmetric.limbs))
    rows = [symmetric[..., i, : i + 1] for i in range(symmetric.shape[-1])]
    return np.concatenate(rows, axis=-1)


def unpacked(triangles: Any, n: int) -> Any:
    """The n × n symmetric matrices that `packed` was given."""
    if isinstance(triangles, Wide):
        return Wide(unpacked(triangles.limbs, n))
    out = np.zeros((*triangles.shape[:-1], n, n), dtype=triangles.dtype)
    for i in range(n if out.size else 0):
        out[..., i, : i + 1] = triangles[..., i * (i + 1) // 2 : (i + 1) * (i + 2) // 2]
    for matrix in out.reshape(-1, n, n):
        mirror(matrix)
    return out


def to_tensor(a: Sums) -> Integers:
    """For files: int64 as it is, two limbs as bytes (two's complement) in a last axis."""
    if not isinstance(a, Wide):
        return a
    raw, sizes = _bytes(a)
    return raw[..., : _width(*(int(np.bitwise_or.reduce(limb, axis=None)) for limb in sizes))]


def from_tensor(tensor: Integers) -> Sums:
    """Inverse of `to_tensor`; of bytes there are 16 at most."""
    if tensor.dtype == np.int64:
        return tensor
    whole = np.empty((*tensor.shape[:-1], 16), dtype=np.uint8)
    whole[..., : tensor.shape[-1]] = tensor
    whole[..., tensor.shape[-1] :] = (tensor[..., -1:].view(np.int8) >> 7).view(np.uint8)
    return least(Wide(np.moveaxis(whole.view("<u8"), -1, 0)))


def nearest(a: Integers, b: Integers) -> Floats:
    """The float64 nearest to each ``a / b``, b > 0: subnormal, infinite, and zero always +0.0."""
    try:
        quotients: Any = a / b  # of Python integers, which is correctly rounded
    except OverflowError:
        quotients = np.frompyfunc(quotient, 2, 1)(a, b)
    return np.asarray(quotients, dtype=np.float64) + 0.0


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


def parts(A: Floats) -> Iterator[tuple[NDArray[np.intp], int, Floats]]:
    """Cut integers into parts of at most 2^20: yields (columns, shift, part).

    The sum of ``part · 2^shift`` over its columns is `A`. Only columns that need
    another part get one, and an entry's parts depend on that entry alone.
    """
    columns, shift = np.arange(A.shape[1]), 0
    while True:
        if peak(A) <= 2.0 ** (PART_BITS - 1):
            yield columns, shift, A
            return
        high = np.rint(np.ldexp(A, -PART_BITS))
        yield columns, shift, A - np.ldexp(high, PART_BITS)
        needed = high.any(axis=0)
        columns, shift, A = columns[needed], shift + PART_BITS, high[:, needed]


def mirror(lower: NDArray[Any]) -> NDArray[Any]:
    """Copy the lower triangle onto the upper one, in place, in cache-sized tiles."""
    n, tile = len(lower), len(_ABOVE)
    for i in range(0, n, tile):
        block = lower[i : i + tile, i : i + tile]
        np.copyto(block, block.T.copy(), where=_ABOVE[: len(block), : len(block)])
        lower[i : i + tile, i + tile :] = lower[i + tile :, i : i + tile].T
    return lower
