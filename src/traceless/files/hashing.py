"""Keyed hashes: BLAKE3, from the package of that name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def hashes(items: Iterable[bytes], key: bytes, size: int) -> list[bytes]:
    """The BLAKE3 hash of each item under a key of 32 bytes."""
    hasher, found = blake3(key), list[bytes]()
    update, digest, reset, append = hasher.update, hasher.digest, hasher.reset, found.append
    for item in items:
        update(item)
        append(digest(size))
        reset()  # cheaper than a new one for each
    return found


def blake3(key: bytes) -> Any:
    """A hasher with this key of 32 bytes."""
    try:
        from blake3 import blake3 as keyed
    except ImportError as error:
        raise ImportError(
            "Stores and fingerprints need the package blake3: pip install 'traceless[store]'"
        ) from error
    return keyed(key=key)
