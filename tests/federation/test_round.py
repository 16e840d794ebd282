import json
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from rounds import key_of, play, team
from traceless import Knowledge
from traceless.exceptions import FederationError
from traceless.features import Linear, RandomFourier
from traceless.federation import Coordinator, Site

RNG = np.random.default_rng(0)
STEPS = ["keys", "shares", "sums", "signature", "opened"]


def rows(n=12, J=3):
    return RNG.integers(-50, 50, (n, J)) / 8


def of(X, y, *weights, phi=None, **form):
    return Knowledge.of(phi or Linear(), X, y, *weights, **form)


def four(make):
    return {f"site{k}": make(k) for k in range(4)}


CASES = {
    "classes": (lambda k: of(rows(), [*("abcd"[k] + "e") * 6]), {}),
    "no rows": (lambda k: of(rows(12 * (k > 0)), ["a", "b"] * (6 * (k > 0))), {}),
    "numbered classes": (lambda k: of(rows(), [k, 7] * 6), {}),
    "regression": (lambda k: of(rows(), rows(J=2), task="regression"), {}),
    "multilabel": (lambda k: of(rows(), (rows() > 0).astype(int), task="multilabel"), {}),
    "classwise": (lambda k: of(rows(), [*("abcd"[k] + "e") * 6], classwise=True), {}),
    "fingerprints": (lambda k: of(rows(), [k, 7] * 6, fingerprint=True), {}),
    "weights": (lambda k: of(rows(), [k, 7] * 6, rows()[:, 0] ** 2 + 2.0**-k), {"weight_bits": 10}),
    "wide": (lambda k: of(rows() * 2.0**20, [k, 7] * 6, fingerprint=True), {"wide": True}),
    "wide and classwise": (
        lambda k: of(rows() * 2.0**20, [k, 7] * 6, classwise=True),
        {"wide": True},
    ),
    "small and wide": (lambda k: of(rows(), [k, 7] * 6), {"wide": True}),
    "Fourier": (lambda k: of(rows(), [k, 7] * 6, phi=RandomFourier(20)), {}),
}


def labels_of(pieces):
    return sorted({label for piece in pieces for label in piece.responses})


@pytest.mark.parametrize("lost", [None, *STEPS])
@pytest.mark.parametrize("case", CASES)
def test_the_total_is_the_plain_merge(case, lost):
    make, terms = CASES[case]
    pieces = four(make)
    agreement, sites = team(pieces, **terms)
    coordinator, _ = play(agreement, sites, {lost: ["site2"]})
    names = [n for n in pieces if n != "site2" or lost in (None, "signature", "opened")]
    assert coordinator.survivors == names
    assert coordinator.knowledge.digest() == sum(pieces[name] for name in names).digest()


@settings(max_examples=25, deadline=None)
@given(st.integers(3, 9), st.data())
def test_the_total_of_survivors_or_nothing(n, data):
    """Whoever falls silent, and whenever: those that remain are added up, if there are enough."""
    pieces = {f"site{k}": of(rows(6), [0, 1] * 3) for k in range(n)}
    agreement, sites = team(pieces)
    silent = data.draw(st.dictionaries(st.sampled_from([*pieces]), st.sampled_from(STEPS)))
    lost = {
        step: [m for m in silent if STEPS.index(silent[m]) <= i] for i, step in enumerate(STEPS)
    }
    if len(silent) > agreement.dropouts:
        with pytest.raises(FederationError, match="are needed"):
            play(agreement, sites, lost)
        return
    coordinator, _ = play(agreement, sites, lost)
    names = [m for m in pieces if silent.get(m) not in STEPS[:3]]
    assert coordinator.survivors == names
    assert coordinator.knowledge.digest() == sum(pieces[m] for m in names).digest()


def test_a_hundred_sites_of_which_thirty_drop_out():
    """More than share with all others: each has a random part of them as neighbours."""
    piece = of(rows(2), [0, 1])
    agreement, sites = team({f"site{k:02}": piece for k in range(60)}, colluding=6, dropouts=20)
    assert agreement.neighbours(60)[0] < 45
    coordinator, _ = play(agreement, sites, {"shares": [*sites][:5], "sums": [*sites][:20]})
    assert coordinator.knowledge.digest() == sum([piece] * 40).digest()


def test_sites_go_on_in_other_processes_and_the_coordinator_from_its_letters():
    pieces = four(lambda k: of(rows(), [k, 7] * 6, fingerprint=True))
    agreement, sites = team(pieces)
    coordinator, _ = play(
        agreement, sites, keep=lambda site, key: Site.from_bytes(site.to_bytes(), key)
    )
    assert coordinator.knowledge == sum(pieces.values())

    agreement, sites = team(pieces)
    letters, told = [], dict.fromkeys(sites)
    while True:
        coordinator = Coordinator(agreement)
        for several in letters:  # all of them again
            for letter in several:
                coordinator.take(letter)
            told = coordinator.next()
        if not coordinator.step:
            break
        letters.append(
            [sites[n].start() if d is None else sites[n].answer(d) for n, d in told.items()]
        )
    assert coordinator.knowledge == sum(pieces.values())


def test_a_site_keeps_no_secrets_after_the_round():
    agreement, sites = team(four(lambda k: of(rows(), [k, 7] * 6)))
    secrets = {name: dict(site._facts) for name, site in sites.items()}
    play(agreement, sites)
    for name, site in sites.items():
        kept = site.to_bytes().decode("latin-1")
        assert not any(secrets[name][s] in kept for s in ("b", "mask_key", "share_key"))
        with pytest.raises(FederationError, match="round is over"):
            site.answer(b"")
        with pytest.raises(FederationError, match="started before"):
            site.start()
        assert json.dumps(site.summed())


def test_what_is_no_site_is_refused():
    agreement, sites = team(four(lambda k: of(rows(), [k, 7] * 6)))
    with pytest.raises(FederationError, match="not of a site"):
        Site.from_bytes(sites["site0"].start()[64:], key_of("site0"))
    with pytest.raises(FederationError, match="does not have this key"):
        Site(agreement, "site0", key_of("site1"), of(rows(), [0, 7] * 6))
    with pytest.raises(FederationError, match="has not signed"):
        sites["site0"].summed()


# --- what two totals show ----------------------------------------------------------------------


def after(pieces, **terms):
    agreement, sites = team(pieces, **terms)
    play(agreement, sites)
    return {name: site.summed() for name, site in sites.items()}


@pytest.mark.parametrize("changes", range(5))
def test_totals_that_differ_by_few_sites_are_refused(changes):
    pieces = four(lambda k: of(rows(), [0, 7] * 6))
    earlier = after(pieces)
    for name in [*pieces][:changes]:
        pieces[name] = pieces[name] + of(rows(), [0, 7] * 6)
    agreement, sites = team(pieces, [earlier])
    assert agreement.minimum_changes == 3
    if changes in (1, 2):
        with pytest.raises(FederationError, match=r"site0.* would show their sums: wait until 3"):
            play(agreement, sites)
    else:
        assert play(agreement, sites)[0].knowledge == sum(pieces.values())


def test_a_site_does_not_leave_alone():
    pieces = {f"site{k}": of(rows(), [0, 7] * 6) for k in range(6)}
    earlier = after(pieces)
    agreement, sites = team(pieces, [earlier])
    with pytest.raises(FederationError, match=r"refuses.*without site5 would show"):
        play(agreement, sites, {"keys": ["site5"]})


def test_each_earlier_total_counts():
    first = four(lambda k: of(rows(), [0, 7] * 6))
    second = four(lambda k: of(rows(), [0, 7] * 6))
    totals = [after(first), after(second)]
    third = first | {"site3": second["site3"]}
    agreement, sites = team(third, totals)
    with pytest.raises(FederationError, match="without site3 would"):
        play(agreement, sites)


# --- what is uploaded --------------------------------------------------------------------------


def test_uploads_look_alike_whatever_the_sums():
    """Bytes of uploads for very different rows are uniform, each and compared."""
    zeros, large = (
        of(np.zeros((200, 40)), [0, 1] * 100),
        of(np.full((200, 40), 900.0), [0, 1] * 100),
    )
    counts = []
    for piece in (zeros, large):
        agreement, sites = team(four(lambda k, piece=piece: piece))
        coordinator, _ = play(agreement, sites, until="signature")
        uploads = [facts["sums"] for facts in coordinator._taken["sums"].values()]
        assert not any(np.array_equal(*pair) for pair in product(uploads[:2], uploads[2:]))
        raw = np.concatenate([upload.view(np.uint8).ravel() for upload in uploads])
        counts.append(np.bincount(raw, minlength=256))
        assert chisquare(counts[-1]).pvalue > 1e-4
    expected = sum(counts) / 2
    assert chisquare(counts[0], expected * counts[0].sum() / expected.sum()).pvalue > 1e-4


def test_the_same_site_never_uploads_the_same():
    pieces = four(lambda k: of(rows(), [0, 7] * 6))
    found = []
    for _ in range(2):
        coordinator, _ = play(*team(pieces), until="signature")
        found.append(coordinator._taken["sums"]["site0"]["sums"])
    assert not (found[0] == found[1]).any()


def test_an_upload_is_hardly_larger_than_the_sums():
    piece = of(rows(4, 100), [0, 1] * 2)
    agreement, sites = team(four(lambda k: piece))
    _, told = play(agreement, sites, until="sums")
    assert len(sites["site0"].answer(told["site0"])) < 1.1 * agreement.words(piece).nbytes
