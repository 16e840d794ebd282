"""Integers in words against Python's own, around every power of two where something changes."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import whole
from traceless.arithmetic import integers as exact
from traceless.arithmetic import words
from traceless.arithmetic.words import Wide

edges = st.sampled_from([8, 53, 54, 62, 63, 64, 65, 71, 118, 127, 128, 129, 192])
near_an_edge = st.tuples(edges, st.integers(-2, 2)).map(lambda a: (1 << a[0]) + a[1])
numbers = st.integers(-3, 3) | near_an_edge | st.integers(0, 2**200)
signed = st.tuples(numbers, st.sampled_from([1, -1])).map(lambda a: a[0] * a[1])
shapes = st.tuples(st.integers(1, 3), st.integers(1, 3))
matrices = shapes.flatmap(lambda shape: matrix(*shape))


def matrix(n, m):
    rows = st.lists(st.lists(signed, min_size=m, max_size=m), min_size=n, max_size=n)
    return rows.map(lambda rows: np.array(rows, dtype=object))


def held(A):
    """Sums, which are int64 or as few words as hold them and their negatives."""
    a = exact.as_sums(A)
    check(a, A)
    return a


def check(found, expected):
    largest = max(map(abs, expected.flat))
    assert whole(found).tolist() == expected.tolist()
    assert isinstance(found, Wide) == (largest >= 2**63)
    if isinstance(found, Wide):
        assert len(found.words) == 1 + largest.bit_length() // 64


@given(shapes.flatmap(lambda shape: st.tuples(matrix(*shape), matrix(*shape))))
def test_sums_and_differences_never_wrap(pair):
    (A, B), (a, b) = pair, map(held, pair)
    check(exact.add(a, b), A + B)
    check(exact.subtract(a, b), A - B)
    check(-a, -A)
    assert exact.equal(exact.subtract(exact.add(a, b), b), a)
    assert exact.equal(a, b) == (A == B).all()


@given(matrices, st.sampled_from([0, 1, 7, 63, 64, 65, 130]))
def test_shifts(A, bits):
    a = held(A)
    check(exact.shift_left(a, bits), A << bits)
    check(exact.shift_right(a, bits), A >> bits)
    assert exact.trailing_zeros(exact.shift_left(a, bits), 300) == (
        min(zeros(v) for v in A.flat if v) + bits if A.any() else 300
    )


def zeros(v):
    return (v & -v).bit_length() - 1


@given(matrices)
def test_floats_are_the_nearest(A):
    expected = A.astype(np.float64)
    assert held(A).astype(np.float64).tobytes() == expected.tobytes()
    assert Wide(words.words_of(A, 5)).astype(np.float64).tobytes() == expected.tobytes()


@given(matrices)
def test_parts_add_up_and_are_int64(A):
    parts = exact.parts(held(A))
    assert {part.dtype for _, part in parts} == {np.dtype(np.int64)}
    assert (sum(whole(part) << shift for shift, part in parts) == A).all()


@given(st.integers(1, 4).flatmap(lambda n: matrix(n, n)))
def test_bytes_are_those_of_python(A):
    """As in files and digests of before, when sums were arrays of Python integers."""
    A = np.tril(A) + np.tril(A, -1).T
    a = held(A)
    rows = [row[: i + 1].tolist() for i, row in enumerate(A)]
    triangle = [v for row in rows for v in row]
    raw = exact.to_tensor(exact.packed(a))
    if isinstance(a, Wide):
        assert b"".join(exact.triangle_bytes(a)) == b"".join(map(python_bytes, rows))
        width = 1 + max(v.bit_length() for v in triangle) // 8
        assert raw.shape == (len(triangle), width)
        assert python_bytes(triangle).endswith(raw.tobytes())
    assert exact.equal(exact.unpacked(exact.from_tensor(raw), len(A)), a)


def python_bytes(row):
    width = 1 + max(v.bit_length() for v in row) // 8
    return b"wide%d:" % width + b"".join(v.to_bytes(width, "little", signed=True) for v in row)


def test_bytes_of_several_strips_are_those_of_python(rng, monkeypatch):
    monkeypatch.setattr(exact, "_CACHE", 40)
    A = whole(rng.integers(-(2**40), 2**40, size=(23, 23)))
    A[5] <<= 60
    A = np.tril(A) + np.tril(A, -1).T
    expected = b"".join(python_bytes(row[: i + 1].tolist()) for i, row in enumerate(A))
    found = b"".join(exact.triangle_bytes(exact.as_sums(A)))
    assert hashlib.sha256(found).digest() == hashlib.sha256(expected).digest()


def test_parts_of_words(rng):
    """Matrices stay in words; vectors and numbers are Python integers."""
    A = whole(rng.integers(-9, 9, size=(2, 5, 5))) << 70
    a = exact.as_sums(A)
    some = np.array([3, 0])
    for index in (1, (slice(None), 4), (0, slice(1, 3), slice(2)), (..., some[:, None], some)):
        assert isinstance(a[index], Wide)
        assert (a[index] == A[index]).all()
    assert a[1, 2].tolist() == A[1, 2].tolist()
    assert a[1, 2, 3] == A[1, 2, 3]
    assert a[1].diagonal().tolist() == A[1].diagonal().tolist()
    assert [(part == whole_part).all() for part, whole_part in zip(a, A, strict=True)] == [True] * 2


def test_arithmetic_of_numpy_does_not_make_objects_of_words():
    a = exact.as_sums(np.full((2, 2), 2**70, dtype=object))
    with pytest.raises(TypeError):
        a + np.ones((2, 2))
    with pytest.raises(TypeError):
        np.ones((2, 2)) - a


@given(matrices, st.sampled_from([5, 20, 21]))
def test_digits_add_up_and_are_small(A, g):
    n = max(v.bit_length() for v in A.flat) // g + 2
    digits = words.in_digits(words.words_of(A, 4), g, n)
    assert np.abs(digits).max() <= 2 ** (g - 1)
    assert (sum(whole(digit) << g * k for k, digit in enumerate(digits)) == A).all()
