"""The Merkle tree of RFC 9162 (SHA-256): roots, and proofs of inclusion and of consistency.

    leaf = SHA-256(0x00 | payload)      node = SHA-256(0x01 | left | right)

A tree of n leaves splits at the largest power of two below n. The hashes of full subtrees never
change once they are there: the tree keeps these, 2 n at most, and makes all others of them.
"""

from __future__ import annotations

import hashlib
from typing import Protocol


class Nodes(Protocol):
    """Full subtrees, by level and place: a dict, or a table."""

    def __getitem__(self, where: tuple[int, int], /) -> bytes: ...

    def __setitem__(self, where: tuple[int, int], node: bytes, /) -> None: ...


def leaf_hash(payload: bytes) -> bytes:
    """The hash of a leaf."""
    return hashlib.sha256(b"\0" + payload).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of a node."""
    return hashlib.sha256(b"\1" + left + right).digest()


class Tree:
    """A tree that grows.

    Parameters
    ----------
    nodes : mapping
        The full subtrees: the one of level k and place i has the leaves i 2^k to (i + 1) 2^k - 1.
    """

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes

    def append(self, size: int, payload: bytes) -> None:
        """Append a leaf to a tree of this size."""
        level, place, node = 0, size, leaf_hash(payload)
        self._nodes[0, place] = node
        while place & 1:
            node = node_hash(self._nodes[level, place - 1], node)
            level, place = level + 1, place >> 1
            self._nodes[level, place] = node

    def root(self, size: int) -> bytes:
        """The root of the tree of the first leaves."""
        return self._range(0, size) if size else hashlib.sha256().digest()

    def inclusion(self, index: int, size: int) -> list[bytes]:
        """The proof that a leaf is in the tree of the first leaves."""
        return self._path(index, 0, size)

    def consistency(self, old: int, size: int) -> list[bytes]:
        """The proof that the tree of the first `size` leaves begins with that of `old` leaves."""
        return self._subproof(old, 0, size, True)

    def _range(self, low: int, high: int) -> bytes:
        n = high - low
        if not n & (n - 1):
            return self._nodes[n.bit_length() - 1, low // n]
        middle = low + _split(n)
        return node_hash(self._range(low, middle), self._range(middle, high))

    def _path(self, index: int, low: int, high: int) -> list[bytes]:
        if high - low == 1:
            return []
        middle = low + _split(high - low)
        if index < middle:
            return [*self._path(index, low, middle), self._range(middle, high)]
        return [*self._path(index, middle, high), self._range(low, middle)]

    def _subproof(self, old: int, low: int, high: int, whole: bool) -> list[bytes]:
        if old == high - low:
            return [] if whole else [self._range(low, high)]
        k = _split(high - low)
        if old <= k:
            return [*self._subproof(old, low, low + k, whole), self._range(low + k, high)]
        return [*self._subproof(old - k, low + k, high, False), self._range(low, low + k)]


def is_included(leaf: bytes, index: int, size: int, proof: list[bytes], root: bytes) -> bool:
    """Whether a proof shows that this is the leaf with this number in the tree with this root."""
    try:
        return 0 <= index < size and _root_of(leaf, index, size, proof) == root
    except IndexError:  # the proof is too short
        return False


def is_consistent(old: int, size: int, proof: list[bytes], before: bytes, after: bytes) -> bool:
    """Whether a proof shows that the larger tree begins with the smaller one."""
    try:
        return 0 < old <= size and _roots_of(old, size, proof, before) == (before, after)
    except IndexError:
        return False


def _root_of(leaf: bytes, index: int, size: int, proof: list[bytes]) -> bytes:
    if size == 1:
        return b"" if proof else leaf
    k, (*rest, other) = _split(size), proof or _too_short()
    if index < k:
        return node_hash(_root_of(leaf, index, k, rest), other)
    return node_hash(other, _root_of(leaf, index - k, size - k, rest))


def _roots_of(old: int, size: int, proof: list[bytes], whole: bytes | None) -> tuple[bytes, bytes]:
    """The roots of the smaller and the larger tree; `whole` is the first, where it is known."""
    if old == size:
        rest = proof if whole is None else [whole, *proof]
        return (b"", b"") if len(rest) != 1 else (rest[0], rest[0])
    k, (*rest, other) = _split(size), proof or _too_short()
    if old <= k:
        before, after = _roots_of(old, k, rest, whole)
        return before, node_hash(after, other)
    before, after = _roots_of(old - k, size - k, rest, None)
    return node_hash(other, before), node_hash(other, after)


def _too_short() -> list[bytes]:
    raise IndexError("the proof is too short")


def _split(n: int) -> int:
    """The largest power of two below n."""
    return int(1 << ((n - 1).bit_length() - 1))
