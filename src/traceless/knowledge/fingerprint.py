"""A fingerprint of rows: the sum of a long hash of each of them (LtHash).

    fingerprint(rows) = Σ_n h(row_n)  mod 2^16, in each of 1024 lanes

    h(row) = 2048 bytes of BLAKE3, keyed by what the features are, of
             (label | codes of the targets), weight, codes of the features

Sums of products cannot tell rows apart: {0, 3, 5, 6} and {1, 2, 4, 7} have the same count, sum
and sum of squares. Hashes can. The sum commutes, and what is added can be subtracted, so it goes
with knowledge through ``+`` and ``-``.

To find two sets of rows with one fingerprint is as hard as finding a short vector in a lattice
of 1024 dimensions; Lewi et al. 2019 ("Securing update propagation with homomorphic hashing")
give more than 200 bits. That holds for rows that repeat less than 2^15 times or so: of 2^16
copies of one row every lane is 0, and a forger who may repeat a thousand rows tens of thousands of
times can solve for a collision. The hash has no secret: whoever guesses all rows can check them.

Two rows are equal if their codes, label (with its type) or target codes, and rounded weights
are. Two equal rows are not one row of weight 2, and a row of weight 0 is no row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats
from traceless.features.grid import dense_rows
from traceless.files.hashing import blake3, hashes

LANES = 1024
_ROWS = 256  # hashed before they are added up: half a megabyte

Lanes = NDArray[np.uint16]
Bytes = NDArray[np.uint8]


class Fingerprint:
    """The running sum of the hashes of rows.

    Parameters
    ----------
    about : bytes
        What all rows have in common: their features and their task.
    """

    def __init__(self, about: bytes) -> None:
        self._key = hashlib.sha256(about).digest()
        blake3(self._key)  # raises, with the name of the extra, if its library is not there
        self.lanes: Lanes = np.zeros(LANES, dtype=np.uint16)

    def add(self, beside: Bytes, weights: Floats | None, codes: Any) -> None:
        """Add rows: bytes of their labels or targets, weights (None: all 1), codes (or in CSR)."""
        for first in range(0, codes.shape[0], _ROWS):
            some = slice(first, first + _ROWS)
            heavy = None if weights is None else weights[some]
            rows = encoded_rows(beside[some], heavy, dense_rows(codes, some))
            self.lanes += hashed(rows, self._key)


def hashed(items: Sequence[bytes], key: bytes, counts: Sequence[int] | None = None) -> Lanes:
    """The sum of the hashes of items under a key of 32 bytes, each as often as it counts."""
    total = np.zeros(LANES, dtype=np.uint16)
    for first in range(0, len(items), _ROWS):
        some = b"".join(hashes(items[first : first + _ROWS], key, 2 * LANES))
        lanes = np.frombuffer(some, dtype="<u2").reshape(-1, LANES)
        if counts is not None:
            often = np.array(counts[first : first + _ROWS], dtype=np.int64)
            lanes = lanes * often.astype(np.uint16)[:, None]
        total += lanes.sum(axis=0, dtype=np.uint16)
    return total


def encoded_rows(beside: Bytes, weights: Floats | None, codes: Floats) -> list[bytes]:
    """The bytes of each row of positive weight: equal for equal rows, and for no others.

    Parameters
    ----------
    beside : array of bytes, one row for each
        Labels or targets.
    weights : ndarray, or None where all are 1
    codes : ndarray of shape (n_rows, n_outputs)
    """
    if weights is None:
        weights = np.ones(len(codes))
    elif not weights.all():
        alive = weights > 0
        beside, weights, codes = beside[alive], weights[alive], codes[alive]
    weight = np.ascontiguousarray(weights[:, None], dtype="<f8").view(np.uint8)
    table = np.concatenate([beside, weight, code_bytes(codes)], axis=1)
    rows: list[bytes] = table.view(f"V{table.shape[1]}")[:, 0].tolist()
    return rows


def code_bytes(codes: Floats) -> Bytes:
    """Codes as bytes, eight for each, one row each."""
    return np.ascontiguousarray(codes, dtype="<i8").view(np.uint8)


def to_bytes(lanes: Lanes) -> bytes:
    """The lanes, each in two bytes, little-endian."""
    return lanes.astype("<u2").tobytes()


def from_bytes(raw: bytes) -> Lanes:
    """Inverse of `to_bytes`: lanes in memory of their own."""
    return np.frombuffer(raw, dtype="<u2").astype(np.uint16)
