import secrets
from itertools import combinations

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from traceless.federation import masks

RNG = np.random.default_rng(0)
PRIME = 2**521 - 1


def whole(words):
    """Python integers, limb by limb."""
    return [sum(int(limb) << 64 * k for k, limb in enumerate(column)) for column in words.T]


def words_of(values, n_limbs):
    return np.array([[v >> 64 * k & 2**64 - 1 for v in values] for k in range(n_limbs)], np.uint64)


def stream(seed, n, n_limbs):
    raw = (
        Cipher(algorithms.ChaCha20(seed, bytes(16)), None)
        .encryptor()
        .update(bytes(8 * n_limbs * n))
    )
    return [
        int.from_bytes(raw[8 * n_limbs * k : 8 * n_limbs * (k + 1)], "little") for k in range(n)
    ]


@pytest.mark.parametrize("n_limbs", [1, 2])
@pytest.mark.parametrize("n", [1, 5, 2**14, 2**14 + 3])
def test_masks_are_those_of_chacha20_modulo_a_power_of_two(n, n_limbs):
    words = RNG.integers(0, 2**64, (n_limbs, n), dtype=np.uint64)
    plus, minus = [RNG.bytes(32) for _ in range(3)], [RNG.bytes(32) for _ in range(2)]
    found, before = masks.masked(words, plus, minus), words.copy()
    expected = np.array(whole(words), dtype=object)
    for seeds, sign in ((plus, 1), (minus, -1)):
        for seed in seeds:
            expected = (expected + sign * np.array(stream(seed, n, n_limbs), object)) % 2 ** (
                64 * n_limbs
            )
    assert whole(found) == expected.tolist()
    assert np.array_equal(words, before)


edges = st.sampled_from([0, 1, 2**63, 2**64 - 1, 2**64, 2**127, 2**128 - 1])


@given(st.lists(st.tuples(edges, edges), min_size=1, max_size=9), st.integers(1, 2))
def test_addition_carries(pairs, n_limbs):
    modulus = 2 ** (64 * n_limbs)
    a, b = ([pair[k] % modulus for pair in pairs] for k in (0, 1))
    total = words_of(a, n_limbs)
    masks.add(total, words_of(b, n_limbs))
    assert whole(total) == [(x + y) % modulus for x, y in zip(a, b, strict=True)]


@given(st.data(), st.integers(1, 2))
def test_for_two_inputs_of_one_total_there_are_masks_that_give_the_same_view(data, n_limbs):
    """What three sites send shows their total and nothing else, if their masks are uniform."""
    modulus = 2 ** (64 * n_limbs)
    numbers = st.one_of(edges, st.integers(0, 2**128 - 1)).map(lambda v: v % modulus)
    draw = st.lists(numbers, min_size=3, max_size=3)
    x, (a, b, c) = data.draw(draw), data.draw(draw)
    other = data.draw(draw)
    other[2] = (sum(x) - other[0] - other[1]) % modulus

    def sent(values, masks):
        ab, ac, bc = masks
        signed = [ab + ac, bc - ab, -ac - bc]
        return [(v + m) % modulus for v, m in zip(values, signed, strict=True)]

    # the only masks that differ are those of the pairs (a, c) and (b, c)
    twin = a, b + x[0] - other[0], c + x[1] - other[1]
    assert sent(x, (a, b, c)) == sent(other, twin)
    assert sum(sent(x, (a, b, c))) % modulus == sum(x) % modulus


def keys(n):
    return {f"site{k}": secrets.token_hex(32) for k in range(n)}


@pytest.mark.parametrize("t", [1, 2, 3, 5])
def test_any_t_shares_give_the_seed(t):
    seed, places = secrets.token_hex(32), keys(5)
    found = masks.shares(seed, places, t)
    assert {len(share) for share in found.values()} == {masks.SHARE}
    for some in combinations(found, t):
        assert masks.restored({places[name]: found[name] for name in some}) == seed


@pytest.mark.parametrize("t", [2, 3, 4])
def test_t_minus_one_shares_fit_every_seed(t):
    """For any other seed there is one polynomial, of the degree that is drawn, through them."""
    places = keys(t - 1)
    found = masks.shares(secrets.token_hex(32), places, t)
    points = [(int(places[name], 16) + 1, int(found[name], 16)) for name in found]
    for _ in range(5):
        points.append((0, secrets.randbelow(2**256)))  # the other seed
        for x, y in points:
            assert interpolated(points, x) == y
        far = interpolated(points, 12345)  # a value of that polynomial: a share of the other seed
        assert 0 <= far < PRIME
        points.pop()


def interpolated(points, x):
    total = 0
    for a, y in points:
        up, down = 1, 1
        for b, _ in points:
            if b != a:
                up, down = up * (x - b) % PRIME, down * (a - b) % PRIME
        total += y * up * pow(down, -1, PRIME)
    return total % PRIME


def test_shares_of_a_fixed_seed_are_uniform():
    """Of one coefficient a share takes each value once: its first hexadecimal digits are even."""
    places = keys(1) | {"other": "0" * 63 + "7"}
    firsts = [int(masks.shares("00" * 32, places, 2)["other"], 16) % 16 for _ in range(4000)]
    assert chisquare(np.bincount(firsts, minlength=16)).pvalue > 1e-4


def test_two_sites_have_a_seed_in_common_for_each_use():
    ours, theirs = secrets.token_hex(32), secrets.token_hex(32)
    both = masks.pair_seed(ours, masks.public(theirs), "round mask")
    assert both == masks.pair_seed(theirs, masks.public(ours), "round mask")
    assert both != masks.pair_seed(theirs, masks.public(ours), "another mask")


@pytest.mark.parametrize("key", ["00" * 32, "01" + "00" * 31, "zz", "00", "é" * 64, ""])
def test_improper_keys_are_refused(key):
    with pytest.raises(ValueError, match=r"."):
        masks.pair_seed(secrets.token_hex(32), key, "mask")
