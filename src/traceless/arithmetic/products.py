"""Predictions: sums Σ_j c_j z_j of integer codes c and float64 coefficients z, correctly rounded.

Coefficients, scaled such that |z| ≤ 1, are cut into slices of b bits and a rest,

    z_j = Σ_m p_jm + r_j,     p_jm a multiple of 2^(1-b(m+1)),     |p_jm| ≤ 2^(-bm),

so that Σ_j c_j z_j = Σ_m P_m + Σ_j c_j r_j with P_m = Σ_j c_j p_jm. Where J · max|c| ≤ 2^(54-b)
every P_m is exact, whatever the order in which BLAS adds: one matrix product gives all of them.
Larger codes leave less room, and take more slices. Where they would take more than eight, codes
are cut too, into limbs, each of which counts as a feature of its own with the coefficient
z_j 2^(21 l).

The P_m are added in twofold precision, s + t with an error of at most δ, which includes
max|c| Σ_j |r_j|. If s + (t - δ) and s + (t + δ) round to the same float64, so does the exact sum
(rounding is monotone). All others (next to none, unless terms cancel) are added in Python
integers, with as many slices as it takes until no rest is left. So each result is the float64
nearest to the exact sum, ties to even, and hence the same in any batch and on any machine.

Where few and small codes leave room for long slices, one slice p, as fine as Σ_j |c_j p_j| ≤ 2^53
units allows, and a product of the rests in plain float64, Q = Σ_j c_j r_j, nearly always tell.
Whatever the order in which BLAS adds, the error of Q is at most δ = (J + 8) u max|c| Σ_j |r_j|,
u = 2^-53, the roundings of Q ± δ included: the sum is known where P + (Q - δ) and P + (Q + δ)
round alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dgemm, idamax
from scipy.sparse import issparse

from traceless.arithmetic.integers import LIMB_BITS, Floats, limbs, nearest, wide
from traceless.arithmetic.plain import two_sum
from traceless.exceptions import RangeError

__all__ = ["Coefficients"]

_BITS = 72  # of the slices together: 53 for the result, the others to decide its rounding
_LIMITS = 2.0**17, 2.0**22, 2.0**27, 2.0**32  # of codes, for which slices are made once
_FEWEST_BITS = 9  # of a slice, so that eight of them do
_COLUMNS = 64  # of Z at a time, so that the parts of their products stay small
_SAFE = 900  # exponents up to which scaling by a power of two neither rounds nor overflows
_QUICK = 2.0**17  # the largest codes for which one slice may do,
_DOUBTS = 2.0**-4  # if it leaves no more than about so many of the rows undecided


class Coefficients:
    """The coefficients of a model, made ready once to be multiplied by the codes of rows.

    Parameters
    ----------
    Z : float64 array of shape (J, K), finite
        Kept, and not to be changed.
    shift : float64 array of shape (J,), optional
        Whole numbers that are subtracted from codes first.
    """

    def __init__(self, Z: Floats, shift: Floats | None = None) -> None:
        self.Z, self.shift = Z, shift

    @cached_property
    def _farthest(self) -> float:
        return 0.0 if self.shift is None else float(np.abs(self.shift).max(initial=0.0))

    @cached_property
    def _made(self) -> dict[float, list[_Block]]:
        return {}

    def _blocks(self, limit: float) -> list[_Block]:
        """All coefficients, cut into slices for codes up to a limit: made when first asked for."""
        if limit not in self._made:
            self._made[limit] = [
                _Block(np.ascontiguousarray(self.Z[:, start : start + _COLUMNS].T), limit)
                for start in range(0, self.Z.shape[1], _COLUMNS)
            ]
        return self._made[limit]

    def __getstate__(self) -> dict[str, Floats | None]:
        """For pickle: what can be made again need not travel."""
        return {"Z": self.Z, "shift": self.shift}

    def quick(self, codes: Floats, constant: bool) -> tuple[Floats, NDArray[np.bool_]] | None:
        """The same as `times`, and for which rows that is certain; None if it would be for few.

        Parameters
        ----------
        codes : integers, as float64 array of shape (n, J), or (n, J - 1) without the constant
            Rows with NaN among them are not certain.
        constant : bool
            Whether the last code of all rows is 1.
        """
        largest = max(_largest(codes), 1.0) + self._farthest
        if not largest <= _QUICK:
            return None
        key = 2.0 ** math.ceil(math.log2(largest)), constant
        if key not in self._pairs:
            self._pairs[key] = _Pair.of(self.Z, self.shift, *key)
        pair = self._pairs[key]
        return None if pair is None else pair.products(codes)

    @cached_property
    def _pairs(self) -> dict[tuple[float, bool], _Pair | None]:
        return {}

    def times(self, codes: Any) -> Floats:
        """``(codes - shift) Z``, each entry the float64 nearest to the exact sum; zero is +0.0.

        Parameters
        ----------
        codes : integers up to 2^53, as float64 array or CSR matrix of shape (n, J)
            Given away: a shift may be subtracted in place.
        """
        out = np.empty((codes.shape[0], self.Z.shape[1]))
        sparse = issparse(codes)
        largest, shift = _largest(codes.data if sparse else codes), self.shift
        if shift is not None and (sparse or largest + self._farthest <= _LIMITS[0]):
            largest += self._farthest  # so that products may be shifted in place of the codes
        elif shift is not None:
            codes -= shift
            largest, shift = _largest(codes), None
        limit = next((limit for limit in _LIMITS if largest <= limit), np.inf)
        several: Iterable[_Block]
        if limit == _LIMITS[0] or _slice_bits(limit, len(self.Z)) >= _FEWEST_BITS:
            several = self._blocks(limit)
        elif sparse:
            return self.times(codes.toarray())
        else:
            columns, shifts, parts = zip(*limbs(codes), strict=True)
            codes, features = np.hstack(parts), np.concatenate(columns)
            places = np.repeat(shifts, [len(part) for part in columns])
            several = (block.spread(features, places) for block in self._blocks(_LIMITS[0]))
            largest = 2.0 ** (LIMB_BITS - 1)
        for i, block in enumerate(several):
            out[:, i * _COLUMNS : (i + 1) * _COLUMNS] = block.products(codes, largest, shift)
        return out


class _Pair:
    """Coefficients as one slice, whose products with codes up to a limit are exact, and the rest.

    Parameters
    ----------
    both : float64 array of shape (2 K, J)
        Slices, and below them the rests.
    shift : float64 array of shape (J,), optional
    slack : float64 array of shape (K,)
        How far the products of the rests may be off.
    """

    def __init__(self, both: Floats, shift: Floats | None, slack: Floats) -> None:
        self.both, self.slack = both, slack
        self.offset = np.zeros(len(both))
        if shift is not None:
            self.offset -= dgemm(1.0, shift[None], both.T)[0]

    @classmethod
    def of(cls, Z: Floats, shift: Floats | None, limit: float, constant: bool) -> _Pair | None:
        """For codes up to a limit, or 1 if constant; None if too many sums would be undecided."""
        W, J = np.ascontiguousarray(Z.T), len(Z)
        reach = np.full(J, limit)
        if constant:
            reach[-1] = 1.0
        with np.errstate(over="ignore"):
            sizes = (np.abs(W) * reach).sum(axis=1) * (1 + 2.0**-12)  # and what rounding adds
        exponents = np.frexp(sizes)[1]
        if not np.isfinite(sizes).all() or np.abs(exponents).max(initial=0) > _SAFE:
            return None
        units = np.ldexp(1.0, exponents - 53)[:, None]
        first = np.rint(W / units) * units
        rest = W - first
        slack = (np.abs(rest) * reach).sum(axis=1) * ((J + 8) * 2.0**-53 * (1 + 1e-6))
        # sums of noise, and of a constant: what is a rounding of these?
        usual = 2.0**-57 / math.sqrt(J) * sizes + 2.0**-54 * np.abs(W[:, -1])
        if (slack > _DOUBTS / len(W) * usual).any():
            return None
        return cls(np.concatenate([first, rest]), shift, slack + 2.0**-1000)  # for underflow

    def products(self, codes: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """``(codes - shift) @ W.T``, and the rows in which all of them are correctly rounded."""
        K, J = len(self.both) // 2, codes.shape[1]
        P = dgemm(1.0, codes.T, self.both.T[:J], trans_a=True)
        offset = self.offset + self.both[:, J:].sum(axis=1)  # of the constant, if it is left out
        if offset.any():
            P += offset
        first, rest = P[:, :K], P[:, K:]
        out = rest + self.slack
        out += first
        rest -= self.slack
        rest += first
        certain = out == rest
        return out, certain[:, 0] if K == 1 else certain.all(axis=1)


class _Block:
    """Some columns of coefficients as the rows of W, cut into slices for codes up to a limit.

    Feature j counts 2^places[j] times.
    """

    def __init__(self, W: Floats, limit: float, places: NDArray[np.intp] | None = None) -> None:
        self.W, self.places = W, places
        self.offset: Floats | None = None  # what a shift takes off the products
        self.bits = _slice_bits(limit, W.shape[1])
        self.exponents = _exponents(W)
        if places is not None:
            powers = np.ldexp(1.0, places)
            self.exponents += _exponents(_times_power(W, -self.exponents[:, None]) * powers)
        rest = _times_power(W, -self.exponents[:, None])
        if places is not None:
            rest *= powers
        self.pieces = np.empty((-(-_BITS // self.bits), *W.shape))
        unit = 2.0
        for piece in self.pieces:
            unit *= 2.0**-self.bits
            shift = 1.5 * 2.0**52 * unit  # numbers of its size are multiples of the unit
            np.add(rest, shift, out=piece)
            piece -= shift
            rest -= piece
        self.rest = np.abs(rest).sum(axis=1) * (1 + 1e-6)
        self.rest[self.exponents > 0] += W.shape[1] * 2.0**-1000  # what underflow may have cost

    def spread(self, features: NDArray[np.intp], places: NDArray[np.intp]) -> _Block:
        """The same for codes that are cut into limbs, at certain places of some features."""
        return _Block(self.W[:, features], 2.0 ** (LIMB_BITS - 1), places)

    def products(self, codes: Any, largest: float, shift: Floats | None = None) -> Floats:
        """``(codes - shift) @ W.T``, correctly rounded, for |codes| + |shift| up to `largest`."""
        n_slices, K, J = self.pieces.shape
        slices = self.pieces.reshape(-1, J).T
        P = codes @ slices if issparse(codes) else dgemm(1.0, codes.T, slices, trans_a=True)
        if shift is not None:
            if self.offset is None:  # exact, as all products are
                self.offset = dgemm(1.0, shift[None], self.pieces.reshape(-1, J), trans_b=True)
            P -= self.offset
        s, t, size = P[:, -K:], np.zeros(1), np.zeros(1)
        for m in range(n_slices - 2, -1, -1):
            total = two_sum(P[:, m * K : (m + 1) * K], s)
            s, t, size = total[0], t + total[1], size + np.abs(total[1])
        # δ: the rest, n_slices roundings of t, and those of t ± δ
        size = size * ((n_slices + 4) * 2.0**-52) + largest * self.rest
        out = s + (t + size)
        certain = out == s + (t - size)
        if np.abs(self.exponents).max() > _SAFE:
            zero = out == 0
            out = _times_power(out, self.exponents)
            certain &= zero | (np.abs(out) > 2.0**-1021)  # below, this has rounded again
        else:
            out *= np.ldexp(1.0, self.exponents)
        out += 0.0
        if not certain.all():
            for k in np.flatnonzero(~certain.all(axis=0)).tolist():
                rows = ~certain[:, k]
                some = codes[rows].toarray() if issparse(codes) else codes[rows]
                some = some if shift is None else some - shift
                out[rows, k] = self._exactly(some, k)
        return np.asarray(out)

    def _exactly(self, codes: Floats, k: int) -> Floats:
        """``codes @ W[k]`` from all slices of W, in Python integers, rounded once."""
        pieces, exponents = zip(*self._all_slices(k), strict=True)
        P = dgemm(1.0, codes.T, np.array(pieces).T, trans_a=True).astype(np.int64)
        total, last = wide(P[:, 0]), exponents[0]
        for m in range(1, len(pieces)):
            total = (total << (last - exponents[m])) + wide(P[:, m])
            last = exponents[m]
        return nearest(total << max(last, 0), np.array(1 << max(-last, 0), dtype=object))

    def _all_slices(self, k: int) -> Iterator[tuple[Floats, int]]:
        """Integers p and exponents e: Σ p · 2^e = W[k] · 2^places, exactly."""
        rest, places = np.frexp(self.W[k])
        if self.places is not None:
            places = places + self.places
        while True:
            exponent = int(places[rest != 0].max(initial=-5000)) - (self.bits - 1)
            piece = np.rint(np.ldexp(rest, places - exponent))
            yield piece, exponent
            rest = rest - np.ldexp(piece, exponent - places)
            if not rest.any():
                return
            rest, more = np.frexp(rest)
            places = places + more


def _largest(codes: Floats) -> float:
    """The largest absolute value of finite numbers."""
    flat = codes.reshape(-1)
    return abs(float(flat[idamax(flat)])) if flat.size else 0.0


def _slice_bits(limit: float, J: int) -> int:
    """The bits of a slice for J codes up to a limit; 0 for infinite ones."""
    return min(54 - int(limit * J - 1).bit_length(), 50) if limit < np.inf else 0


def _exponents(W: Floats) -> NDArray[np.intp]:
    """The least e with |w| ≤ 2^e for each row of W."""
    largest = np.abs(W).max(axis=1)
    if not np.isfinite(largest).all():
        raise RangeError("Coefficients must be finite numbers, and some are not.")
    return np.asarray(np.frexp(largest)[1], dtype=np.intp)


def _times_power(a: Floats, exponents: NDArray[np.intp]) -> Floats:
    """``a · 2^exponents``, for exponents that may be too large for one power of two."""
    half = exponents // 2
    with np.errstate(over="ignore"):
        return np.asarray(a * np.ldexp(1.0, half) * np.ldexp(1.0, exponents - half))
