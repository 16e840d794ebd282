"""What sites, a coordinator and whoever carries letters may do: all of it is refused by name."""

from copy import deepcopy

import numpy as np
import pytest

from rounds import key_of, play, resigned, retold, team
from traceless import Knowledge
from traceless.exceptions import FederationError
from traceless.features import Linear
from traceless.federation import Coordinator, masks, messages
from traceless.federation.messages import FACTS, SENT, TOLD
from traceless.files import container

RNG = np.random.default_rng(0)
SENT, TOLD = SENT[:-1], TOLD[:-1]
PIECES = {
    f"site{k}": Knowledge.of(Linear(), RNG.integers(-9, 9, (8, 2)) / 4, [0, 1] * 4)
    for k in range(4)
}
ANYTHING = [
    None, True, 1, 1.5, -(2**70), "", "zz", "\ud800", "site0", "00" * 32, "0" * 10**5, [], [1],
    [[]], ["site0", "site0"], ["site1", "site0"], [None, "site0"], ["site0"] * 10**4, {},
    {"site0": 1},
    {"site0": "zz"}, {"site0": "0"}, {"site0": None}, {"site0": {}}, {"site1": "00"}, {"": ""},
    {"nobody": "00" * 64}, {f"site{k}": "00" for k in range(4)}, {"site0": "00" * 10**5},
]  # fmt: skip


@pytest.fixture(scope="module")
def moments():
    """Coordinator, sites and what they are told before each step, to be copied."""
    found = {}
    for step in SENT:
        agreement, sites = team(PIECES)
        found[step] = (*play(agreement, sites, until=step), sites)
    return found


def moment(moments, step):
    coordinator, told, sites = moments[step]
    sites = dict(sites)  # which change by assignment only
    return deepcopy(coordinator), told, {name: copied(site) for name, site in sites.items()}


def copied(site):
    return type(site).from_bytes(site.to_bytes(), site._key)


def letter(site, data):
    return site.start() if data is None else site.answer(data)


def refused_by(coordinator, data, match=None):
    before = deepcopy(vars(coordinator))
    with pytest.raises(FederationError, match=match or rf"'{coordinator.step}' of .* is refused: "):
        coordinator.take(data)
    assert repr(vars(coordinator)) == repr(before)


def refuses(site, data, match=None):
    before, step = site.to_bytes(), site._facts["expects"]
    with pytest.raises(
        FederationError, match=match or rf"'{site.name}' refuses a message '{step}'"
    ):
        site.answer(data)
    assert site.to_bytes() == before


# --- letters that were damaged, forged, or came at the wrong time -------------------------------


@pytest.mark.parametrize("step", SENT)
def test_letters_that_were_changed_on_the_way(moments, step):
    coordinator, told, sites = moment(moments, step)
    good = letter(sites["site0"], told["site0"])
    for length in range(len(good)) if step == "keys" else range(0, len(good), 97):
        refused_by(coordinator, good[:length])
    for place in range(0, len(good), 1 if step == "keys" else 61):
        refused_by(coordinator, good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
    refused_by(coordinator, good + b"\0")
    refused_by(coordinator, bytes(64) + good[64:], "'site0' has not signed this")
    assert coordinator.take(good) == "site0"


@pytest.mark.parametrize("step", TOLD)
def test_what_is_told_and_was_changed_on_the_way(moments, step):
    _, told, sites = moment(moments, SENT[TOLD.index(step) + 1])
    good, site = told["site0"], sites["site0"]
    for length in range(len(good)) if step == "signatures" else range(0, len(good), 97):
        refuses(site, good[:length])
    for place in range(0, len(good), 31):
        refuses(site, good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
    assert site.answer(good)


@pytest.mark.parametrize("step", SENT)
def test_letters_that_come_twice_late_or_in_the_name_of_another(moments, step):
    coordinator, told, sites = moment(moments, step)
    good = letter(sites["site0"], told["site0"])
    refused_by(coordinator, resigned(good, "site1"), "'site0' has not signed this")
    refused_by(coordinator, resigned(good, "site1", site="stranger"), "none of the sites agreed on")
    coordinator.take(good)
    refused_by(coordinator, good, "it came twice, or too late")
    for other in {*SENT} - {step}:
        later, _, _ = moment(moments, other)
        refused_by(later, good, "came twice, too early or too late")
    _, another_told, another = moment(moments, step)
    if step != "keys":
        agreement, sites = team(PIECES)  # another round of the same terms
        fresh, told = play(agreement, sites, until=step)
        refused_by(fresh, letter(another["site0"], another_told["site0"]), "of another round")
    agreement, sites = team(PIECES, minimum_rows=2)
    other_terms, told = play(agreement, sites, until=step)
    refused_by(other_terms, good, "of other terms")


@pytest.mark.parametrize("step", TOLD)
def test_what_is_told_twice_or_of_another_round(moments, step):
    _, told, sites = moment(moments, SENT[TOLD.index(step) + 1])
    site = sites["site0"]
    for other in {*TOLD} - {step}:
        _, elsewhere, _ = moment(moments, SENT[TOLD.index(other) + 1])
        refuses(site, elsewhere["site0"], "came twice, too early or too late")
    agreement, others = team(PIECES)
    _, another = play(agreement, others, until=SENT[TOLD.index(step) + 1])
    said = "does not have the keys of this site" if step == "roster" else "of another round"
    refuses(site, another["site0"], said)
    site.answer(told["site0"])
    with pytest.raises(FederationError, match=r"came twice|round is over"):
        site.answer(told["site0"])


def test_who_has_dropped_out_stays_out():
    agreement, sites = team(PIECES)
    _, told = play(agreement, dict(sites), until="shares")
    coordinator, _ = play(*team(PIECES), lost={"shares": ["site0"]}, until="sums")
    assert coordinator.survivors == ["site1", "site2", "site3"]
    refused_by(coordinator, sites["site0"].answer(told["site0"]))


# --- sites that lie ------------------------------------------------------------------------------


@pytest.mark.parametrize("step", SENT)
def test_a_site_may_send_anything(moments, step):
    """Whatever a site sends ends in a total, or in an error that is ours."""
    coordinator, told, sites = moment(moments, step)
    good = letter(sites["site0"], told["site0"])
    for fact in FACTS[step]:
        for value in ANYTHING:
            bad = resigned(good, "site0", **{fact: value})
            try:
                deepcopy(coordinator).take(bad)
            except FederationError as error:
                assert f"'{step}' of " in str(error)  # noqa: PT017
            else:
                assert type(value) is FACTS[step][fact]
    refused_by(coordinator, resigned(good, "site0", more=1))
    for data in (b"", b"{}", bytes(10**6), container.encoded("federation keys", {}, {})):
        refused_by(coordinator, data)


@pytest.mark.parametrize("fact", ["share_key", "mask_key"])
@pytest.mark.parametrize("key", ["00" * 32, "01" + "00" * 31, "5f" * 3, "no"])
def test_improper_keys_are_refused_by_the_coordinator_and_by_sites(moments, fact, key):
    coordinator, _, sites = moment(moments, "keys")
    bad = resigned(sites["site1"].start(), "site1", **{fact: key})
    refused_by(coordinator, bad, "'keys' of 'site1' is refused")
    letters = {name: site.start().hex() for name, site in sites.items()} | {"site1": bad.hex()}
    told = messages.body("roster", coordinator._round, {"keys": letters})
    if fact == "mask_key":  # not used before the next step
        sites["site0"].answer(told)
        facts = {"present": [*PIECES], "boxes": {}}
        told = messages.body("delivery", sites["site0"]._facts["round"], facts)
    refuses(sites["site0"], told)


@pytest.mark.parametrize(
    "sums",
    [np.zeros((1, 3), np.int64), np.zeros((2, 17), np.int64), np.zeros(17, np.int64),
     np.zeros((1, 17)), np.zeros((1, 136), np.uint8)],
)  # fmt: skip
def test_sums_of_another_size_are_refused(moments, sums):
    coordinator, told, sites = moment(moments, "sums")
    found = container.parsed(sites["site0"].answer(told["site0"])[64:], "it")
    body = container.encoded(found.kind, found.facts, {"sums": sums})
    refused_by(
        coordinator,
        messages.signature(key_of("site0"), body) + body,
        "expected a tensor 'sums'",
    )
    body = container.encoded(found.kind, found.facts, {})
    refused_by(coordinator, messages.signature(key_of("site0"), body) + body)


def test_sums_that_no_rows_have_are_refused(moments):
    coordinator, told, sites = moment(moments, "sums")
    for name, data in told.items():
        good = sites[name].answer(data)
        if name == "site0":
            found = container.parsed(good[64:], "it")
            sums = found.tensors["sums"].copy()
            sums[0, 0] -= 2**40
            body = container.encoded(found.kind, found.facts, {"sums": sums})
            good = messages.signature(key_of(name), body) + body
        coordinator.take(good)
    told = coordinator.next()
    for _ in range(2):
        for name, data in told.items():
            coordinator.take(sites[name].answer(data))
        if coordinator.step == "signature":
            told = coordinator.next()
    with pytest.raises(FederationError, match="what are no sums of rows"):
        coordinator.next()
    assert not hasattr(coordinator, "knowledge")


@pytest.mark.parametrize("liars", [1, 5])
@pytest.mark.parametrize("lost", [None, "sums"])
@pytest.mark.parametrize("share", ["00", "ff" * 66, "missing"])
def test_wrong_shares_change_nothing_and_many_are_named(lost, share, liars):
    """Of six neighbours three restore a seed: one liar does not matter, too many stop the round."""
    pieces = {f"site{k}": PIECES["site0"] for k in range(7)}
    agreement, sites = team(pieces)
    assert agreement.neighbours(7) == (6, 3)
    coordinator, told = play(agreement, sites, {lost: ["site6"]}, until="opened")
    for k, (name, data) in enumerate(told.items()):
        good = sites[name].answer(data)
        if k < liars:
            shares = dict.fromkeys(container.parsed(good[64:], "it").facts["shares"], share)
            good = resigned(good, name, shares={} if share == "missing" else shares)
        coordinator.take(good)
    if liars == 1:
        coordinator.next()
        assert coordinator.knowledge == sum([PIECES["site0"]] * len(coordinator.survivors))
        return
    with pytest.raises(FederationError, match=r"or wrong ones, by .*site") as caught:
        coordinator.next()
    assert "Begin another round" in str(caught.value)
    assert coordinator.step == "opened"


def test_a_site_with_boxes_for_others_than_it_should_have(moments):
    coordinator, told, sites = moment(moments, "shares")
    good = sites["site0"].answer(told["site0"])
    boxes = container.parsed(good[64:], "it").facts["boxes"]
    wrong = boxes | {"site0": "00", "nobody": "00", "site1": "00" * 148}
    coordinator.take(resigned(good, "site0", boxes=wrong))
    for name in ("site1", "site2", "site3"):
        coordinator.take(sites[name].answer(told[name]))
    told = coordinator.next()
    refuses(sites["site1"], told["site1"], "shares of 'site0' were changed")
    assert sites["site2"].answer(told["site2"])


# --- coordinators that lie -----------------------------------------------------------------------


@pytest.mark.parametrize("step", TOLD)
def test_a_coordinator_may_tell_anything(moments, step):
    _, told, sites = moment(moments, SENT[TOLD.index(step) + 1])
    site, good = sites["site0"], told["site0"]
    for fact in FACTS[step]:
        for value in ANYTHING:
            if (step, fact) == ("delivery", "boxes") and value == {}:
                continue  # as if nobody had picked this site
            refuses(site, retold(good, **{fact: value}))
    refuses(site, retold(good, more=1))
    assert site.answer(good)


def test_too_few_sites_are_refused_at_each_step(moments):
    _, told, sites = moment(moments, "shares")
    keys = container.parsed(told["site0"], "it").facts["keys"]
    refuses(sites["site0"], retold(told["site0"], keys={n: keys[n] for n in ("site0", "site1")}))
    swapped = keys | {"site1": keys["site2"]}
    refuses(sites["site0"], retold(told["site0"], keys=swapped), "twice, or under another name")
    _, told, sites = moment(moments, "sums")
    few = {"present": ["site0", "site1"], "boxes": {}}
    refuses(sites["site0"], retold(told["site0"], **few), "too few sites are left")
    _, told, sites = moment(moments, "signature")
    refuses(sites["site0"], retold(told["site0"], survivors=["site0", "site1"]), "too few sites")
    others = retold(told["site0"], survivors=["site1", "site2", "site3"])
    refuses(sites["site0"], others, "without this one")
    _, told, sites = moment(moments, "opened")
    signed = container.parsed(told["site0"], "it").facts["signatures"]
    few = {name: signed[name] for name in ("site0", "site1")}
    refuses(sites["site0"], retold(told["site0"], signatures=few), "too few sites have signed")


def test_fewer_than_the_threshold_learn_nothing():
    coordinator = Coordinator(team(PIECES)[0])
    with pytest.raises(FederationError, match=r"0 sent 'keys', and 3 are needed"):
        coordinator.next()
    assert (coordinator.step, coordinator.survivors) == ("keys", [*PIECES])


def test_two_coordinators_get_one_answer_between_them():
    agreement, sites = team(PIECES)
    letters = [site.start() for site in sites.values()]
    both = [Coordinator(agreement) for _ in range(2)]
    for coordinator, some in zip(both, (letters, letters[:3]), strict=True):
        for data in some:
            coordinator.take(data)
    first, second = (coordinator.next() for coordinator in both)
    both[0].take(sites["site0"].answer(first["site0"]))
    refuses(sites["site0"], second["site0"], "came twice, too early or too late")
    answer = sites["site1"].answer(second["site1"])
    refused_by(both[0], answer, "of another round")


def test_unequal_lists_of_survivors_are_refused():
    """Two lists, each with enough sites: some have signed one of them, so neither is signed."""
    pieces = {f"site{k}": PIECES["site0"] for k in range(7)}
    agreement, sites = team(pieces)
    coordinator, told = play(agreement, sites, until="signature")
    names = [*pieces]
    lists = names[:6], names[1:]  # five would do
    signed = [{}, {}]
    for k, name in enumerate(names):
        data = retold(told[name], survivors=lists[k > 3])
        found = container.parsed(sites[name].answer(data)[64:], "it")
        signed[k > 3][name] = found.facts["signature"]
    everything = signed[0] | signed[1]
    for own, name in ((signed[0], "site0"), (signed[1], "site6")):
        told = messages.body("signatures", coordinator._round, {"signatures": own})
        refuses(sites[name], told, "too few sites have signed")
        told = messages.body("signatures", coordinator._round, {"signatures": everything})
        refuses(sites[name], told, "has not signed this, or another list")


def test_a_coordinator_that_hides_neighbours_from_a_site(monkeypatch):
    """It tells the target of few neighbours, and has these drop out.

    All masks of the target would be known, and its b be opened by the neighbours that it was not
    told of. They refuse, since they see what it has signed.
    """
    pieces = {f"site{k:02}": PIECES[f"site{k % 4}"] for k in range(50)}
    agreement, sites = team(pieces)
    target, colluding = "site30", [*pieces][: agreement.colluding]
    coordinator, told = play(agreement, sites, until="sums")
    (_, t), chosen = agreement.neighbours(50), sites[target]._facts["chosen"]
    honest = [name for name in chosen if name not in colluding]
    hidden = honest[: min(len(chosen) - t, agreement.dropouts)]
    dropped = [name for name in honest if name not in hidden]
    assert len(dropped) <= agreement.dropouts
    shown = {"present": [name for name in pieces if name not in hidden], "boxes": {}}
    told[target] = retold(told[target], **shown)

    uploads = {n: container.parsed(sites[n].answer(told[n])[64:], "it") for n in pieces}
    names = [name for name in pieces if name not in dropped]
    signatures = {name: uploads[name].facts["signature"] for name in names}
    facts = {"survivors": names, "signatures": signatures}
    survivors = messages.body("survivors", coordinator._round, facts)
    witnesses = [n for n in names if n != target]
    for name in witnesses:
        refuses(sites[name], survivors, f"'{target}' has not signed this")

    # without that check the target would be read
    monkeypatch.setattr(messages, "check_signatures", lambda *_: None)
    letters = {n: container.parsed(sites[n].answer(survivors)[64:], "it") for n in witnesses}
    signed = {name: found.facts["signature"] for name, found in letters.items()}
    signed = messages.body("signatures", coordinator._round, {"signatures": signed})
    private = {name: sites[name]._facts["mask_key"] for name in colluding}
    opened = {
        n: container.parsed(sites[n].answer(signed)[64:], "it").facts["shares"] for n in witnesses
    }

    def restored(name):
        have = {agreement.sites[n]: s[name] for n, s in opened.items() if name in s}
        return masks.restored(dict([*have.items()][:t]))

    private |= {name: restored(name) for name in dropped}
    theirs, use = coordinator._roster[target]["mask_key"], f"{coordinator._round} mask"
    seeds = {n: masks.pair_seed(private[n], theirs, use) for n in chosen if n not in hidden}
    minus = [bytes.fromhex(restored(target)), *(seeds[n] for n in seeds if target < n)]
    words = uploads[target].tensors["sums"].view(np.uint64)
    found = masks.masked(words, [seeds[n] for n in seeds if n < target], minus)
    assert np.array_equal(found, agreement.words(pieces[target]))


def test_a_site_stays_only_with_enough_neighbours_among_the_survivors():
    """A coordinator that chooses who drops out cannot leave a site with masks of dropped sites."""
    pieces = {f"site{k:02}": PIECES["site0"] for k in range(50)}
    agreement, sites = team(pieces, colluding=5, dropouts=22)
    _, told = play(agreement, sites, until="signature")
    (_, t), chosen = agreement.neighbours(50), sites["site30"]._facts["chosen"]
    gone = chosen[: len(chosen) - t + 1]
    assert len(gone) <= agreement.dropouts
    names = [name for name in pieces if name not in gone]
    refuses(sites["site30"], retold(told["site30"], survivors=names), "too few neighbours")
