"""Integers beyond int64 in an array of words: one large column must not cost a matrix of objects.

    a = Σ_k 2^(64 k) w_k,     0 ≤ w_k < 2^64,     the last w_k signed (two's complement)

All entries of an array have as many words, two at least, and as few as hold them and their
negatives: equal arrays have equal words. Sums go word by word; modulo 2^64 there is a carry where
a + b < b. An array of two words takes about twice the time of int64, and one of Python integers
thirty times.

Bytes of a fixed width are written word by word too. Word k of entry n goes to the bytes from
n · width + 8 k on, the last words first: what one of them writes beyond its entry are lower words
of the next, which are still to come, if entries have eight bytes or more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

_WORD = 2**64 - 1
_TOP_BIT = np.uint64(1 << 63)
_CACHE = 2**15  # words that are worked on together


class Wide:
    """Integers of any size, of which some are beyond int64: never changed.

    Matrices that are taken out of one are again `Wide`; vectors and numbers, which are few, come
    as Python integers. Made by the functions of `traceless.arithmetic.integers`.

    Parameters
    ----------
    words : uint64 array of shape (n_words, *shape)
        The lowest word first. Kept.
    """

    __array_ufunc__ = None  # NumPy's operators would make objects of it in silence
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, words: Words) -> None:
        self.words = words

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of Python integers."""
        return np.dtype(object)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return self.words.shape[1:]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.words.ndim - 1

    @property
    def size(self) -> int:
        """The number of integers."""
        return int(self.words[0].size)

    def __len__(self) -> int:
        return int(self.words.shape[1])

    def __getitem__(self, index: Any) -> Any:
        index = index if isinstance(index, tuple) else (index,)
        part = self.words[(slice(None), *index)]
        return Wide(part) if part.ndim > 2 else _python_integers(part)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __eq__(self, other: object) -> Any:
        """Which numbers are equal, as arrays say it: slow."""
        return np.asarray(self) == np.asarray(other)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Python integers, or float64."""
        return self.astype(object if dtype is None else dtype)

    def __neg__(self) -> Wide:
        return Wide(_negated(self.words))

    def any(self) -> bool:
        """Whether some number is not zero."""
        return bool(self.words.any())

    @property
    def T(self) -> Wide:  # noqa: N802
        """The matrix, transposed."""
        return Wide(self.words.swapaxes(1, 2))

    def diagonal(self) -> Any:
        """The diagonal of a matrix, in Python integers."""
        return _python_integers(self.words.diagonal(axis1=1, axis2=2))

    def copy(self) -> Wide:
        """The same in memory of its own."""
        return Wide(self.words.copy())

    def astype(self, dtype: Any, order: Any = "C") -> NDArray[Any]:
        """Python integers, or each as the nearest float64."""
        if np.dtype(dtype) == object:
            return np.asarray(_python_integers(self.words))
        return np.asarray(_nearest(self.words), order=order)


Sums = NDArray[Any] | Wide  # int64, or words beyond


# --- between arrays and words --------------------------------------------------------------


def words_of(a: NDArray[Any], n_words: int = 2) -> Words:
    """int64, or Python integers of so many words, as words."""
    if a.dtype == np.int64:
        return np.stack([a.view(np.uint64)] + [_sign(a)] * (n_words - 1))
    return np.stack([((a >> 64 * k) & _WORD).astype(np.uint64) for k in range(n_words)])


def of_python(a: NDArray[Any]) -> Sums:
    """Python integers as int64 or, beyond, in words."""
    size = max(int(a.max()).bit_length(), int(a.min()).bit_length()) if a.size else 0
    return least(words_of(a, size // 64 + 1))


def shifted(a: NDArray[np.int64], bits: int, n_words: int) -> Words:
    """int64 times 2^bits, modulo 2^(64 n_words), for bits ≥ 0."""
    out = np.empty((n_words, *a.shape), dtype=np.uint64)
    for k, word in enumerate(out.view(np.int64)):
        places = bits - 64 * k
        if places >= 0:
            np.left_shift(a, places, out=word) if places < 64 else word.fill(0)
        else:
            np.right_shift(a, min(-places, 63), out=word)
    return out


def least(words: Words) -> Sums:
    """int64 where all entries are within ±(2^63 - 1), else as few words as are needed."""
    while len(words) > 1 and _is_spare(words[-1], words[-2]):
        words = words[:-1]
    if (words[-1] == _TOP_BIT).any() and _has_lowest(words):
        words = np.concatenate([words, _sign(words[-1])[None]])
    return words[0].view(np.int64) if len(words) == 1 else Wide(words)


def _is_spare(last: Words, before: Words) -> bool:
    """Whether the last word says nothing but the sign, which the one before says too."""
    for i in range(0, last.size, _CACHE):  # most often the first look says no
        part = slice(i, i + _CACHE)
        if (last.reshape(-1)[part] != _sign(before.reshape(-1)[part])).any():
            return False
    return True


def _has_lowest(words: Words) -> bool:
    """Whether an entry is the lowest that so many words can hold, which has no negative."""
    lowest = words[-1] == _TOP_BIT
    for word in words[:-1]:
        lowest &= word == 0
    return bool(lowest.any())


def _sign(word: NDArray[Any]) -> Words:
    """A word of the sign bit: 0, or 2^64 - 1 for negative numbers."""
    return (word.view(np.int64) >> 63).view(np.uint64)


def _python_integers(words: Words) -> Any:
    total = words[-1].view(np.int64).astype(object)
    for word in words[-2::-1]:
        total = (total << 64) + word.astype(object)
    return total


def with_rows(a: NDArray[np.int64], where: NDArray[np.intp], rows: NDArray[Any]) -> Sums:
    """A symmetric matrix with some rows and columns of Python integers in it."""
    n_words = 1 + max(int(rows.max()).bit_length(), int(rows.min()).bit_length()) // 64
    words, exact = words_of(a, n_words), words_of(rows, n_words)
    words[:, where] = exact
    words[:, :, where] = exact.swapaxes(1, 2)
    return least(words)


# --- arithmetic ----------------------------------------------------------------------------


Part = Callable[[Words, Words, Words], bool]


def combined(a: Words, b: Words, part: Part) -> Sums:
    """The sum or the difference of two arrays of one shape, whatever their words."""
    n = max(len(a), len(b))
    a, b = extended(a, n), extended(b, n)
    out = np.empty(a.shape, dtype=np.uint64)
    flat = [v.reshape(n, -1) for v in (out, a, b)]
    if not all(part(*(v[:, some] for v in flat)) for some in _strips(flat[0])):
        return combined(extended(a, n + 1), extended(b, n + 1), part)
    return least(out)


def add_part(out: Words, a: Words, b: Words) -> bool:
    """Write ``a + b``, which is still in the cache when it is seen whether it fits."""
    _add(out, a, b)
    return bool(((a[-1] ^ out[-1]) & (b[-1] ^ out[-1])).max(initial=0) < _TOP_BIT)


def subtract_part(out: Words, a: Words, b: Words) -> bool:
    """The same for ``a - b``."""
    borrow: Any = None
    for k in range(len(out)):
        below = a[k] < b[k] if k < len(out) - 1 else None
        rest = np.subtract(a[k], b[k], out=out[k, ...])
        if borrow is not None:
            if below is not None:
                below |= rest < borrow
            rest -= borrow
        borrow = below
    return bool(((a[-1] ^ b[-1]) & (a[-1] ^ out[-1])).max(initial=0) < _TOP_BIT)


def add_shifted(held: Words, a: NDArray[np.int64], bits: int) -> None:
    """Add int64 times 2^bits to words, in place, modulo 2^(64 n_words)."""
    for rows in _strips(held):
        _add(held[:, rows], held[:, rows], shifted(a[rows], bits, len(held)))


def _strips(words: Words) -> list[slice]:
    """Rows that stay in the cache while they are worked on."""
    n_words, n, *others = words.shape
    size = max(1, _CACHE // (n_words * max(1, math.prod(others))))
    return [slice(i, i + size) for i in range(0, n, size)]


def _add(out: Words, a: Words, b: Words) -> None:
    """The sum modulo 2^(64 n_words), word by word; `out` may be `a`."""
    carry: Any = None
    for k in range(len(out)):
        total = np.add(a[k], b[k], out=out[k, ...])
        above = total < b[k] if k < len(out) - 1 else None
        if carry is not None:
            total += carry
            if above is not None:
                above |= total < carry  # it was 2^64 - 1, and has become 0
        carry = above


def extended(words: Words, n_words: int) -> Words:
    """The same numbers in more words."""
    missing = n_words - len(words)
    return np.concatenate([words] + [_sign(words[-1])[None]] * missing) if missing else words


def shifted_left(words: Words, bits: int) -> Sums:
    """The numbers times 2^bits."""
    whole, places = divmod(bits, 64)
    words = extended(words, len(words) + 1)
    out = words << np.uint64(places)
    if places:
        out[1:] |= words[:-1] >> np.uint64(64 - places)
    return least(np.concatenate([np.zeros((whole, *words.shape[1:]), dtype=np.uint64), out]))


def shifted_right(words: Words, bits: int) -> Sums:
    """The numbers divided by 2^bits, rounded down."""
    whole, places = divmod(bits, 64)
    words = extended(words, max(len(words), whole + 1) + 1)[whole:]
    out = words >> np.uint64(places)
    if places:
        out[:-1] |= words[1:] << np.uint64(64 - places)
    return least(out[:-1])


def in_digits(words: Words, g: int, n: int) -> NDArray[np.float64]:
    """The numbers as Σ_k digits_k 2^(g k), with n digits between ±2^(g-1), in float64."""
    out = np.empty((n, *words.shape[1:]))
    for rows in _strips(out):
        part = words[:, rows].view(np.int64)
        carry: Any = 0
        for k, digit in enumerate(out[:, rows]):
            word, start = divmod(k * g, 64)
            bits = part[word] >> start if word < len(part) else part[-1] >> 63
            if start + g > 64 and word + 1 < len(part):
                bits = (bits & ((1 << (64 - start)) - 1)) | (part[word + 1] << (64 - start))
            bits = (bits & ((1 << g) - 1)) + carry
            carry = bits >> (g - 1)  # 0 or 1, and 2 where a carry has made it 2^g
            carry -= carry >> 1
            digit[:] = bits - (carry << g)
    return out


def _negated(words: Words) -> Words:
    out = ~words
    carry: Any = np.True_
    for word in out:
        word += carry
        carry = carry & (word == 0)
        if not carry.any():
            break
    return out


def _nearest(words: Words) -> NDArray[np.float64]:
    """Each number as the nearest float64; most of them, as a rule, are int64."""
    out = words[0].view(np.int64).astype(np.float64)
    far = words[-1] != _sign(words[0])
    for word in words[1:-1]:
        far |= word != words[-1]
    out[far] = _nearest_of_large(words[:, far])
    return np.asarray(out)


def _nearest_of_large(words: Words) -> NDArray[np.float64]:
    """The same for numbers that are not int64.

    The leading 64 bits of an absolute value, the last of them set where any bit below is, are
    rounded as the whole would be: rounding looks at 53, the next, and whether more follows.
    """
    negative = words[-1] >= _TOP_BIT
    size = np.where(negative, _negated(words), words)
    out = size[0].astype(np.float64)
    for k in range(1, len(size)):
        some = np.flatnonzero(size[k])
        high, low = size[k, some], size[k - 1, some]
        n = _bit_lengths(high)
        unsaid = (64 - n).astype(np.uint64)
        leading = (high << unsaid) | (low >> n.astype(np.uint64))
        leading |= (low << unsaid != 0) | size[: k - 1, some].any(axis=0)
        out[some] = np.ldexp(leading.astype(np.float64), n + 64 * (k - 1))
    return np.asarray(np.where(negative, -out, out))


def _bit_lengths(word: Words) -> NDArray[np.int64]:
    """How many bits each number has."""
    n = np.frexp(word.astype(np.float64))[1].astype(np.int64)
    rounded_up = (word >> np.maximum(n - 1, 0).astype(np.uint64) == 0) & (n > 0)
    return np.asarray(n - rounded_up)


# --- bytes ---------------------------------------------------------------------------------


def byte_widths(words: Words) -> NDArray[np.int64]:
    """The bytes that the numbers of each row of a matrix take: one more than their bits fill."""
    bits, sign = np.zeros(words.shape[1], dtype=np.int64), _sign(words[-1])
    ones = np.zeros(words.shape[1], dtype=bool)
    for k, word in enumerate(words):
        largest = (word ^ sign).max(axis=1, initial=0)
        n = _bit_lengths(largest)
        bits = np.where(n > 0, n + 64 * k, bits)
        ones = np.where(n > 0, largest & (largest + np.uint64(1)) == 0, ones)
    for i in np.flatnonzero(ones & (bits % 8 == 7)):  # -2^bits has a bit more than 1 - 2^bits
        bits[i] += min(_python_integers(words[:, i]).tolist()) == -1 << int(bits[i])
    return 1 + bits // 8


def to_bytes(words: Words, width: int) -> NDArray[np.uint8]:
    """The numbers of a vector one behind the other, each in so many bytes, the lowest first."""
    unit = min(8, 1 << (width.bit_length() - 1))
    columns = words.astype("<u8", copy=False)
    if unit < 8:  # then the first word is all
        columns = columns[0][:, None].copy().view(f"<u{unit}").T
    n = columns.shape[1]
    out = np.zeros(n * width + unit, dtype=np.uint8)
    for k in reversed(range(-(-width // unit))):
        place = np.ndarray((n,), columns.dtype, out.data, offset=unit * k, strides=(width,))
        place[:] = columns[k]
    return out[: n * width]


def from_bytes(raw: NDArray[np.uint8]) -> Sums:
    """Numbers from their bytes, eight or more of them in the last axis."""
    *shape, width = raw.shape
    raw = np.ascontiguousarray(raw)
    out = np.empty((-(-width // 8), *shape), dtype=np.uint64)
    for k, word in enumerate(out):
        place = min(8 * k, width - 8)  # the last word has fewer bytes, and their sign
        found = np.ndarray(tuple(shape), "<i8", raw.data, offset=place, strides=raw.strides[:-1])
        np.right_shift(found, 8 * (8 * k - place), out=word.view(np.int64))
    return least(out)
