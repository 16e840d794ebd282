"""The page of a receipt says what was done, to people, and obeys nothing that is written on it."""

import json
from dataclasses import replace

import numpy as np
import pytest

from pages import Page
from traceless import LSSVC, LSSVR, Store
from traceless.store.entries import KINDS
from traceless.store.receipt_page import TITLES

pytestmark = pytest.mark.filterwarnings("ignore::traceless.exceptions.RevealingWarning")
X, Y = np.arange(80.0).reshape(40, 2), np.repeat(["no", "yes"], 20)
ABOUT = {"table": {"target": ["ill"]}, "organisation": "Clinic <St. Anna>"}
HOSTILE = '"><img src=x onerror=alert(1)></title></style><script>\u202egnp\x00\x1b[31m&lt;'


@pytest.fixture
def store(tmp_path):
    store = Store.new(tmp_path / "s", LSSVC(), about=ABOUT)
    store.learn(X, Y, key="first")
    return store


def said(receipt):
    page = Page(receipt.to_html())
    page.check()
    return page.text


def test_the_person_concerned_reads_a_sentence(store):
    receipt = store.forget(X[:3], Y[:3], key="letter 7")
    receipt = replace(receipt, time="2026-03-04T05:06:07Z")
    text_ = said(receipt)
    assert (
        "On 2026-03-04 at 05:06:07 UTC, the 3 records, kept under “letter 7”, were removed "
        "from the model of Clinic <St. Anna> that predicts “ill”. The model is now the one that "
        "the 37 records left in it give, as if these 3 had never been learned."
    ) in text_
    assert "would reveal them" in text_


def test_how_to_check_it_is_true(store):
    """Whoever only has the page can follow it: there is no package of this name on an index."""
    text = said(store.receipt())
    assert "get the source of traceless" in text
    assert "run in its folder pip install '.[cli]'" in text
    assert "traceless verify receipt.json remaining.csv" in text
    assert "remaining.csv" not in said(store.forget(X, Y))  # nothing remains


def test_what_was_only_tried_proves_nothing(store):
    assert "This was only tried" in said(store.forget(X[:20], Y[:20], dry_run=True))


def test_every_kind_of_entry_has_a_title_and_a_sentence(store):
    """A kind that comes later must come here too."""
    assert set(TITLES) == set(KINDS)
    for kind in KINDS:
        assert "an entry of the kind" not in said(replace(store.receipt(), kind=kind))
    for bare in ({}, {"about": 3, "model": 3}, {"about": {"table": 3}}):
        assert "the model was made" in said(replace(store.receipt(0), document=json.dumps(bare)))


def test_what_is_exact_up_to_rounding_is_said_to_be(tmp_path):
    model = LSSVR(solver="woodbury", free_intercept=False, standardize=False)
    store = Store.new(tmp_path / "s", model)
    store.learn(X, np.arange(40.0))
    receipt = store.forget(X[:20], np.arange(20.0))
    assert "give (up to rounding), as if these 20" in said(receipt)
    assert "of the model" not in said(receipt).split("What this proves")[0]  # no organisation


def test_names_from_anywhere_are_only_text(tmp_path):
    about = {"table": {"target": [HOSTILE]}, "organisation": HOSTILE}
    store = Store.new(tmp_path / "s", LSSVC(), about=about)
    receipt = store.learn(X, [f"{HOSTILE}{label}" for label in Y], key=HOSTILE)
    html = receipt.to_html()
    Page(html).check()
    assert "<img" not in html
    assert not [c for c in html if not c.isprintable() and c != "\n"]
    assert "<img src=x onerror=alert(1)>" in Page(html).text
