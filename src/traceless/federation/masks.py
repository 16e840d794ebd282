r"""Numbers modulo 2^64 or 2^128, the masks that hide them, and shares of the masks' seeds.

    y_i = x_i + PRG(b_i) + Σ_{j > i} PRG(s_ij) - Σ_{j < i} PRG(s_ij)     modulo 2^64, or 2^128

Pairwise masks cancel in a sum, to the bit; PRG is ChaCha20 with the seed as key, number
by number. Seeds are shared
as Shamir does, with a polynomial modulo the prime 2^521 - 1:

    f(x) = seed + a_1 x + … + a_{t-1} x^{t-1},     seed = Σ_i f(x_i) Π_{j≠i} x_j / (x_j - x_i)
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from math import prod

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from numpy.typing import NDArray

Words = NDArray[np.uint64]  # of shape (limbs, numbers), the lowest limb first

_PRIME = 2**521 - 1
SHARE = 66  # bytes
SEED = 32
_BLOCK = 2**14  # numbers masked at once, which a cache holds


def add(total: Words, other: Words, minus: bool = False) -> None:
    """``total += other``, or ``-=``, in place, each number modulo 2^64 or 2^128."""
    before = total[0].copy() if len(total) == 2 else total[0]
    if minus:
        total -= other
    else:
        total += other
    if len(total) == 2 and minus:
        total[1] -= before < other[0]
    elif len(total) == 2:
        total[1] += total[0] < before


def masked(words: Words, plus: Iterable[bytes], minus: Iterable[bytes]) -> Words:
    """Numbers plus the masks of some seeds, less those of others."""
    out, (n_limbs, n) = words.copy(), words.shape
    zeros, drawn = bytes(8 * n_limbs * _BLOCK), bytearray(8 * n_limbs * _BLOCK)
    numbers = np.frombuffer(drawn, dtype="<u8").reshape(_BLOCK, n_limbs).T
    for seed, sign in [*((seed, False) for seed in plus), *((seed, True) for seed in minus)]:
        stream = Cipher(algorithms.ChaCha20(seed, bytes(16)), None).encryptor()
        for start in range(0, n, _BLOCK):
            stream.update_into(zeros, drawn)
            part = out[:, start : start + _BLOCK]
            add(part, numbers[:, : part.shape[1]], sign)
    return out


def shares(seed: bytes, places: Iterable[int], enough: int) -> dict[int, bytes]:
    """A share for each place (from 0 on), any `enough` of which give the seed."""
    coefficients = [secrets.randbelow(_PRIME) for _ in range(enough - 1)]
    out = {}
    for place in places:
        value = 0
        for coefficient in (*coefficients, int.from_bytes(seed)):
            value = (value * (place + 1) + coefficient) % _PRIME
        out[place] = value.to_bytes(SHARE)
    return out


def restored(shares: Mapping[int, bytes]) -> bytes:
    """The seed, from enough shares by place; other shares give other bytes."""
    xs = [place + 1 for place in shares]
    seed: int = 0
    for x, share in zip(xs, shares.values(), strict=True):
        others = [other for other in xs if other != x]
        weight = prod(others) * pow(prod(other - x for other in others), -1, _PRIME)
        seed = (seed + int.from_bytes(share) * weight) % _PRIME
    return int.to_bytes(seed % 2 ** (8 * SEED), SEED)
