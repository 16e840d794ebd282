"""The multiset hash of the rows held: a sum of long hashes of (row digest, id), one for each row.

    lanes(rows) = Σ_n h(digest_n, id_n)  mod 2^16, in each of 1024 lanes             (LtHash)

    h(digest)     = E_k(digest) ⊕ digest                     for 128 keys k, 16 bytes each
    h(digest, id) = E_l(h_k ⊕ id) ⊕ h_k ⊕ id                 for 128 other keys l

E is AES-128; its 256 keys are SHA-256 of a name and a number, cut to 16 bytes: they are public,
so that nothing but the table of digests is needed to recompute the sum. Each of the 128 parts of
h is E with its input added (Davies-Meyer's feed-forward), which nobody knows how to invert, and
no two parts share a key: one key with a counter would give neighbouring inputs the same blocks in
another order, and sums of 128 neighbours only 8 different lanes. The id enters in a second step,
not by ⊕ with the digest, which could be undone by choosing the other.

What it proves. Whoever may write the table of digests, and may know the secret, the digests and
all keys, but cannot sign the ledger, must find another table with the same lanes. If AES under
fixed keys behaves like 256 random permutations, the 2048 bytes of each row are random for this
purpose, and that is a short vector in a lattice of 1024 dimensions modulo 2^16, the problem of
LtHash (Lewi et al. 2019, "Securing update propagation with homomorphic hashing": more than 200
bits). To change one row for another, which is the only change when every row is held once, needs
two inputs with equal h in all 128 parts. It is a heuristic argument, as it is for LtHash with
BLAKE: nobody has proven that the sums of a cipher's outputs are hard, and AES with known keys is
less studied than AES with secret ones.

What it does not. A row counts modulo 2^16, so of 2^16 copies nothing is left, and a forger who may
repeat a thousand rows tens of thousands of times can solve for a collision: in stores with tens of
millions of rows, tables with such counts prove less. `RowCounts.totals` gives the number of rows,
which the ledger says too. And two rows with one digest are one row here: with the secret known, the
128 bits of a digest are 2^64 steps away from that; the root of the model then tells them apart.
"""

from __future__ import annotations

import hashlib
import threading
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.knowledge.fingerprint import LANES, Lanes, to_bytes
from traceless.store.keys import primitives

_SIZE = 16  # bytes of a digest, of an id and of a block
_PARTS = 2 * LANES // _SIZE
_CHUNK = 2**15  # blocks hashed together: they stay in the cache

Blocks = NDArray[np.uint64]


def no_lanes() -> Lanes:
    """The lanes of no rows."""
    return np.zeros(LANES, dtype=np.uint16)


def lanes_of(
    digests: list[bytes], ids: list[bytes], counts: NDArray[np.uint16] | None = None
) -> Lanes:
    """The lanes of rows.

    Parameters
    ----------
    digests : list of bytes
        16 bytes each.
    ids : list of bytes
        As many: 16 bytes each, or none for a row without an id.
    counts : ndarray of uint16, optional
        How often each row is held, modulo 2^16; by default once.
    """
    table = _table(digests)
    if not any(ids):
        return _sum(table, None, counts)
    named = np.array([len(one) for one in ids]) > 0
    beside = _table([one or bytes(_SIZE) for one in ids])
    with_id, without = (None if counts is None else counts[some] for some in (named, ~named))
    return _sum(table[named], beside[named], with_id) + _sum(table[~named], None, without)


def lanes_text(lanes: Lanes) -> str:
    """SHA-256 of the lanes, in hexadecimal: what the ledger says of the rows held."""
    return hashlib.sha256(to_bytes(lanes)).hexdigest()


def _table(blocks: list[bytes]) -> Blocks:
    return np.frombuffer(b"".join(blocks), dtype=np.uint64).reshape(-1, 2)


def _sum(digests: Blocks, ids: Blocks | None, counts: NDArray[np.uint16] | None) -> Lanes:
    """Σ h over rows that all have an id, or none."""
    total = np.zeros((_PARTS, _SIZE // 2), dtype=np.uint16)
    n = max(1, min(len(digests), _CHUNK))
    abreast = max(1, min(_PARTS, _CHUNK // n))  # parts
    memory = np.empty((2, abreast, n + 1, 2), dtype=np.uint64)  # ciphers ask for one block more
    for start in range(0, len(digests), n):
        some = slice(start, start + n)
        for first in range(0, _PARTS, abreast):
            parts = slice(first, first + abreast)
            ciphers, others = (kind[parts] for kind in _CIPHERS.both)
            blocks = np.broadcast_to(digests[some], (len(ciphers), *digests[some].shape))
            h = _one_way(ciphers, blocks, memory[0])
            if ids is not None:
                h ^= ids[some]
                h = _one_way(others, h, memory[1])
            total[parts] += _sum_of_rows(h, None if counts is None else counts[some])
    return total.reshape(-1)


def _one_way(ciphers: list[Any], blocks: Blocks, memory: Blocks) -> Blocks:
    """E(x) ⊕ x for each block x of each part."""
    parts, n, _ = blocks.shape
    for cipher, given, room in zip(ciphers, blocks, memory, strict=False):
        cipher.update_into(given.data.cast("B"), room[: n + 1].data.cast("B"))
    h = memory[:parts, :n]
    h ^= blocks
    return h


def _sum_of_rows(h: Blocks, counts: NDArray[np.uint16] | None) -> NDArray[np.uint16]:
    """The sum over rows in lanes of 16 bits, halving: each step adds long contiguous rows."""
    lanes: NDArray[np.uint16] = h.view("<u2").astype(np.uint16, copy=False)
    if counts is not None:
        lanes *= counts[:, None]
    left = lanes.shape[1]
    while left > 1:
        half = left // 2
        lanes[:, :half] += lanes[:, left - half : left]
        left -= half
    return lanes[:, 0]


class _Ciphers(threading.local):
    """AES under each of the keys, for digests and for ids; no two threads may share a cipher."""

    @cached_property
    def both(self) -> tuple[list[Any], list[Any]]:
        of = primitives("ciphers")
        keys = (hashlib.sha256(b"traceless lanes 1 %d" % k).digest() for k in range(2 * _PARTS))
        made = [of.Cipher(of.algorithms.AES(k[:_SIZE]), of.modes.ECB()).encryptor() for k in keys]
        return made[:_PARTS], made[_PARTS:]


_CIPHERS = _Ciphers()
