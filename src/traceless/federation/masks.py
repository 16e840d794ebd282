r"""Numbers modulo 2^64 or 2^128, the masks that hide them, and shares of the masks' seeds.

    y_i = x_i + PRG(b_i) + Σ_{j > i} PRG(s_ij) - Σ_{j < i} PRG(s_ij)     modulo 2^64, or 2^128

Masks of pairs cancel in a sum, to the bit. The seed s_ij is HKDF of X25519 between the keys of two
sites, and PRG is ChaCha20 with the seed as its key. Seeds are shared as Shamir does, with a
polynomial modulo the prime 2^521 - 1:

    f(x) = seed + a_1 x + … + a_{t-1} x^{t-1},     seed = Σ_i f(x_i) Π_{j≠i} x_j / (x_j - x_i)

Keys and shares, and the seeds that are shared, are hexadecimal text, as in messages.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from math import prod

import numpy as np
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

Words = NDArray[np.uint64]  # of shape (limbs, numbers), the lowest limb first

_PRIME = 2**521 - 1
SHARE, SEED = 132, 64  # hexadecimal digits
_BLOCK = 2**14  # numbers masked at once, which a cache holds


def add(total: Words, other: Words) -> None:
    """``total += other`` in place, each number modulo 2^64 or 2^128."""
    total += other
    if len(total) == 2:
        total[1] += total[0] < other[0]


def masked(words: Words, plus: Iterable[bytes], minus: Iterable[bytes]) -> Words:
    """Numbers plus the masks of some seeds, less those of others: x - m = ~(~x + m)."""
    return ~_masked(~_masked(words, plus), minus)


def _masked(words: Words, seeds: Iterable[bytes]) -> Words:
    out, (n_limbs, n) = words.copy(), words.shape
    zeros, drawn = bytes(8 * n_limbs * _BLOCK), bytearray(8 * n_limbs * _BLOCK)
    numbers = np.frombuffer(drawn, dtype="<u8").reshape(_BLOCK, n_limbs).T
    for seed in seeds:
        stream = Cipher(algorithms.ChaCha20(seed, bytes(16)), None).encryptor()
        for start in range(0, n, _BLOCK):
            stream.update_into(zeros, drawn)
            part = out[:, start : start + _BLOCK]
            add(part, numbers[:, : part.shape[1]])
    return out


def pair_seed(ours: str, theirs: str, use: str) -> bytes:
    """The seed that two sites have in common, for one use; ValueError if a key is not proper."""
    private = X25519PrivateKey.from_private_bytes(bytes.fromhex(ours))
    shared = private.exchange(X25519PublicKey.from_public_bytes(bytes.fromhex(theirs)))
    about = b"traceless federation 1 " + use.encode()
    return HKDF(hashes.SHA256(), SEED // 2, None, about).derive(shared)


def public(private: str) -> str:
    """The public half of an X25519 key, both in hexadecimal."""
    key = X25519PrivateKey.from_private_bytes(bytes.fromhex(private))
    return key.public_key().public_bytes_raw().hex()


def shares(seed: str, keys: Mapping[str, str], enough: int) -> dict[str, str]:
    """A share for each site by name, of which `enough` give the seed; x is its public key."""
    coefficients, out = [secrets.randbelow(_PRIME) for _ in range(enough - 1)], {}
    for name, key in keys.items():
        value = 0
        for coefficient in (*coefficients, int(seed, 16)):
            value = (value * _x(key) + coefficient) % _PRIME
        out[name] = f"{value:0{SHARE}x}"
    return out


def restored(shares: Mapping[str, str]) -> str:
    """The seed, from enough shares by public key; other shares give another."""
    seed: int = 0
    for key, share in shares.items():
        x, others = _x(key), [_x(other) for other in shares if other != key]
        weight = prod(others) * pow(prod(other - x for other in others), -1, _PRIME)
        seed = (seed + int(share, 16) * weight) % _PRIME
    return f"{seed % 16**SEED:0{SEED}x}"


def _x(key: str) -> int:
    return int(key, 16) + 1  # never 0, where the seed is
