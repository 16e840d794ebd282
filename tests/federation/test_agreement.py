import json

import numpy as np
import pytest
from scipy.stats import hypergeom

from rounds import public_keys
from traceless import Knowledge
from traceless.exceptions import FederationError, MismatchError
from traceless.features import Linear
from traceless.federation import Agreement

NAMES = [f"site{k:04}" for k in range(700)]
X = np.arange(40.0).reshape(20, 2)
PIECE = Knowledge.of(Linear(), X, ["yes", "no"] * 10)


def terms(n=4, **given):
    return Agreement.like(PIECE, public_keys(NAMES[:n]), minimum_rows=1, **given)


@pytest.mark.parametrize("n", [3, 4, 7, 20, 41, 60, 100, 200, 700])
@pytest.mark.parametrize("share", [3, 5, 10])
def test_neighbours_satisfy_both_bounds_however_many_sites_there_are(n, share):
    agreement = terms(n, colluding=n // share)
    c, T = agreement.colluding, agreement.survivors
    for r in {T, (T + n) // 2, n}:
        k, t = agreement.neighbours(r)
        assert t <= k < r
        assert r * hypergeom(r - 1, c, k).sf(t - 1) <= 2**-40 * (1 + 1e-9)
        assert r * hypergeom(r - 1, T - 1, k).cdf(t - 1) <= 2**-20 * (1 + 1e-9)
        if r > 40:
            smaller = [
                r * hypergeom(r - 1, T - 1, k - 1).cdf(u - 1) > 2**-20
                for u in range(1, k)
                if r * hypergeom(r - 1, c, k - 1).sf(u - 1) <= 2**-40
            ]
            assert all(smaller)
        else:
            assert k == r - 1


def test_neighbours_grow_slower_than_sites():
    few, many = (terms(n, colluding=n // 10, dropouts=n // 10).neighbours(n)[0] for n in (100, 700))
    assert (few, many) == (21, 43)


@pytest.mark.parametrize("n", range(3, 60))
def test_two_lists_cannot_both_be_signed(n):
    agreement = terms(n)
    honest = n - agreement.colluding
    assert 2 * agreement.survivors > honest + 2 * agreement.colluding
    assert agreement.survivors - agreement.colluding >= 2


@pytest.mark.parametrize(
    "given",
    [
        {"n": 2},
        {"n": 4, "dropouts": 2},
        {"n": 9, "colluding": 8},
        {"n": 9, "colluding": 3, "dropouts": 3},
    ],
)
def test_terms_that_show_a_site_are_refused(given):
    with pytest.raises(FederationError, match="two lists could be signed"):
        terms(**given)


def test_keys_must_differ():
    same = dict.fromkeys("abc", "0" * 64)
    with pytest.raises(FederationError, match="public key of its own"):
        Agreement.like(PIECE, same)
    with pytest.raises(FederationError, match="64 hexadecimal digits"):
        Agreement.like(PIECE, public_keys(NAMES[:3]) | {"west": "G" * 64})


def test_terms_are_json_and_each_is_in_the_digest():
    first = terms(table={"columns": ["age", "weight"]})
    again = Agreement(**json.loads(first.to_json()))
    assert again == first
    assert again.digest == first.digest
    others = [
        terms(5),
        terms(table={"columns": ["weight", "age"]}),
        terms(minimum_changes=3),
        terms(dropouts=0),
        terms(colluding=0),
        terms(wide=True),
        terms(weight_bits=3),
        terms(responses=["no", "yes", "perhaps"]),
        Agreement.like(PIECE, public_keys(NAMES[:4]), minimum_rows=2),
    ]
    assert len({first.digest, *(other.digest for other in others)}) == len(others) + 1


def test_labels_of_any_kind_come_back():
    piece = Knowledge.of(Linear(), X, [b"a", b"b"] * 10)
    first = Agreement.like(piece, public_keys(NAMES[:3]))
    assert Agreement(**json.loads(first.to_json())).nothing.responses == (b"a", b"b")


def test_sums_of_another_form_are_refused():
    agreement = terms()
    cases = {
        "feature maps differ": Knowledge.of(Linear(), X[:, :1], ["yes", "no"] * 10),
        "cannot be combined": Knowledge.of(Linear(), X, X[:, 0], task="regression"),
        "keeps its classes apart": Knowledge.of(Linear(), X, ["yes", "no"] * 10, classwise=True),
        "fingerprint": Knowledge.of(Linear(), X, ["yes", "no"] * 10, fingerprint=True),
        "not agreed on classes": Knowledge.of(Linear(), X, ["yes", "nay"] * 10),
        "agree on weight_bits=": Knowledge.of(Linear(), X, ["yes", "no"] * 10, np.full(20, 0.25)),
    }
    for said, piece in cases.items():
        with pytest.raises((MismatchError, FederationError), match=said):
            agreement.words(piece)


@pytest.mark.parametrize("classwise", [False, True])
def test_few_rows_of_a_class_are_refused_and_none_are_not(classwise):
    sites = public_keys(NAMES[:3])
    y = np.repeat([0, 1], [19, 1])
    piece = Knowledge.of(Linear(), X, y, classwise=classwise)
    with pytest.raises(FederationError, match=r"\[1\] rows of a class, and 5 or more"):
        Agreement.like(piece, sites, minimum_rows=5).words(piece)
    agreement = Agreement.like(piece, sites, minimum_rows=5)
    rest = Knowledge.of(Linear(), X[:19], y[:19], classwise=classwise)
    assert agreement.knowledge(agreement.words(rest)) == rest
    with pytest.raises(FederationError, match="rows of a class"):
        agreement.words(-rest)


@pytest.mark.parametrize("task", ["regression", "multilabel"])
def test_few_rows_at_all_are_refused(task):
    y = X[:, 0] if task == "regression" else (X > 3).astype(int)
    piece = Knowledge.of(Linear(), X, y, task=task)
    with pytest.raises(FederationError, match="rows of a class"):
        Agreement.like(piece, public_keys(NAMES[:3]), minimum_rows=21).words(piece)


@pytest.mark.parametrize("classwise", [False, True])
@pytest.mark.parametrize(("scale", "wide"), [(1.0, False), (2.0**11, True), (2.0**20, True)])
def test_sums_that_could_wrap_are_refused(scale, wide, classwise):
    piece = Knowledge.of(Linear(), X * scale, ["yes", "no"] * 10, classwise=classwise)
    sites = public_keys(NAMES[:3])
    if wide:
        with pytest.raises(FederationError, match="agree on wide=True"):
            Agreement.like(piece, sites, minimum_rows=1).words(piece)
    agreement = Agreement.like(piece, sites, minimum_rows=1, wide=wide)
    assert agreement.knowledge(agreement.words(piece)) == piece


def test_sums_beyond_2_to_the_127_are_refused():
    piece = Knowledge.of(Linear(), X * 2.0**30, ["yes", "no"] * 10, np.full(20, 3 * 2.0**23))
    with pytest.raises(FederationError, match="coarser resolution"):
        Agreement.like(piece, public_keys(NAMES[:3]), minimum_rows=1, wide=True).words(piece)
