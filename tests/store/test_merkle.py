"""The tree of RFC 9162 against published vectors, those of certificate-transparency-go."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceless.store.merkle import Tree, is_consistent, is_included, leaf_hash, node_hash

LEAVES = [
    bytes.fromhex(leaf) for leaf in ("", "00", "10", "2021", "3031", "40414243", "5051525354555657")
] + [bytes(range(0x60, 0x70))]
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
H96, H5F, H6B = (
    "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
    "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
    "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
)
HBC, HCA, H0E = (
    "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
    "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
    "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
)
INCLUSION = {(0, 8): [H96, H5F, H6B], (5, 8): [HBC, HCA, ROOTS[4]]}
CONSISTENCY = {
    (1, 1): [],
    (1, 8): [H96, H5F, H6B],
    (6, 8): [H0E, HCA, ROOTS[4]],
    (2, 5): [H5F, HBC],
}


def tree_of(leaves):
    tree = Tree({})
    for i, leaf in enumerate(leaves):
        tree.append(i, leaf)
    return tree


def naive(leaves):
    """The definition, word for word."""
    if not leaves:
        return hashlib.sha256().digest()
    if len(leaves) == 1:
        return leaf_hash(leaves[0])
    k = max(2**i for i in range(20) if 2**i < len(leaves))
    return node_hash(naive(leaves[:k]), naive(leaves[k:]))


def test_roots_and_proofs_are_the_published_ones():
    tree = tree_of(LEAVES)
    assert [tree.root(n).hex() for n in range(9)] == ROOTS
    for (index, size), proof in INCLUSION.items():
        assert [h.hex() for h in tree.inclusion(index, size)] == proof
    for (old, size), proof in CONSISTENCY.items():
        assert [h.hex() for h in tree.consistency(old, size)] == proof


@given(st.integers(1, 70), st.data())
def test_every_proof_is_accepted_and_no_other(size, data):
    leaves = [bytes([i]) for i in range(size)]
    tree = tree_of(leaves)
    index, old = data.draw(st.integers(0, size - 1)), data.draw(st.integers(1, size))
    root, leaf = tree.root(size), leaf_hash(leaves[index])
    assert root == naive(leaves)
    proof, shown = tree.inclusion(index, size), tree.consistency(old, size)
    before = tree.root(old)
    assert is_included(leaf, index, size, proof, root)
    assert is_consistent(old, size, shown, before, root)
    for other in (-1, index + 1, size, size + index):
        if other != index:
            assert not is_included(leaf, other, size, proof, root)
    assert not is_included(leaf_hash(b"other"), index, size, proof, root)
    for wrong in ([*proof, root], proof[1:], proof[:-1], [root, *proof[1:]]):
        if wrong != proof:
            assert not is_included(leaf, index, size, wrong, root)
    for wrong in ([*shown, root], shown[1:], shown[:-1], [leaf_hash(b"other"), *shown[1:]]):
        if wrong != shown:
            assert not is_consistent(old, size, wrong, before, root)
    assert not is_consistent(old, size, shown, leaf_hash(b"other"), root)
    assert not is_consistent(old, size, shown, before, leaf_hash(b"other"))


@pytest.mark.parametrize(("old", "size"), [(0, 3), (4, 3), (-1, 3), (0, 0)])
def test_no_proof_is_of_a_tree_that_there_is_not(old, size):
    root = tree_of(LEAVES).root(3)
    assert not is_consistent(old, size, [], root, root)
    assert not is_included(leaf_hash(b""), old, 0, [], root)
