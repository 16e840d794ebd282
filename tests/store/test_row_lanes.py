"""The multiset hash, against AES one block at a time and sums of Python's integers."""

import hashlib
import threading

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from traceless.store import row_lanes
from traceless.store.row_lanes import lanes_of, lanes_text, no_lanes

blocks = st.binary(min_size=16, max_size=16)
ids = st.one_of(st.just(b""), blocks)


def xor(a, b):
    return bytes(x ^ y for x, y in zip(a, b, strict=True))


def one_way(number, block):
    key = hashlib.sha256(b"traceless lanes 1 " + str(number).encode()).digest()[:16]
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    return xor(encryptor.update(block) + encryptor.finalize(), block)


def by_hand(digest, one):
    """The 1024 lanes of one row."""
    h = [one_way(part, digest) for part in range(128)]
    if one:
        h = [one_way(128 + part, xor(block, one)) for part, block in enumerate(h)]
    return [int.from_bytes(block[i : i + 2], "little") for block in h for i in range(0, 16, 2)]


@given(st.lists(st.tuples(blocks, ids, st.integers(1, 70_000)), max_size=4))
def test_lanes_are_sums_of_hashes(rows):
    expected = [0] * 1024
    for digest, one, n in rows:
        expected = [
            (a + n * b) % 2**16 for a, b in zip(expected, by_hand(digest, one), strict=True)
        ]
    counts = np.array([n for *_, n in rows], dtype=np.int64).astype(np.uint16)
    found = lanes_of([d for d, *_ in rows], [one for _, one, _ in rows], counts)
    assert found.tolist() == expected
    raw = b"".join(lane.to_bytes(2, "little") for lane in expected)
    assert lanes_text(found) == hashlib.sha256(raw).hexdigest()


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 64, 301])
def test_lanes_do_not_depend_on_order_or_chunks(n, monkeypatch, rng):
    digests = [rng.bytes(16) for _ in range(n)]
    names = [rng.bytes(16) if rng.integers(2) else b"" for _ in range(n)]
    whole = lanes_of(digests, names)
    order = rng.permutation(n).tolist()
    monkeypatch.setattr(row_lanes, "_CHUNK", 7)
    again = lanes_of([digests[i] for i in order], [names[i] for i in order])
    assert np.array_equal(whole, again)
    cut = n // 3
    parts = lanes_of(digests[:cut], names[:cut]) + lanes_of(digests[cut:], names[cut:])
    assert np.array_equal(whole, parts)
    assert np.array_equal(whole - again, no_lanes())


def test_neighbours_have_nothing_in_common():
    """128 digests in a row: with one key and a counter, their sums would repeat 8 lanes."""
    digests = [bytes([k]) + bytes(15) for k in range(128)]
    assert len(set(lanes_of(digests, [b""] * 128).tolist())) > 990  # of 1024 random ones, 1016
    each = np.array([lanes_of([digest], [b""]) for digest in digests])
    bits = np.unpackbits(each.view(np.uint8), axis=1).mean(axis=0)
    assert np.abs(bits - 0.5).max() < 0.25  # five standard deviations and more
    parts = {part.tobytes() for row in each for part in row.reshape(128, 8)}
    assert len(parts) == 128 * 128


def test_threads_do_not_share_ciphers(rng):
    digests = [rng.bytes(16) for _ in range(3000)]
    names = [rng.bytes(16) for _ in range(3000)]
    expected, found = lanes_of(digests, names), []
    threads = [
        threading.Thread(target=lambda: found.append(lanes_of(digests, names))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(np.array_equal(lanes, expected) for lanes in found)
