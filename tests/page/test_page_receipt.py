"""The page of a receipt says what was done, to people, and obeys nothing that is written on it."""

import json
import re
from dataclasses import replace
from gettext import GNUTranslations

import numpy as np
import pytest
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

from pages import Page
from traceless import LSSVC, LSSVR, Store
from traceless.pages import HERE
from traceless.store.entries import KINDS

pytestmark = pytest.mark.filterwarnings("ignore::traceless.exceptions.RevealingWarning")
X, Y = np.arange(80.0).reshape(40, 2), np.repeat(["no", "yes"], 20)
ABOUT = {"table": {"target": {"column": "ill"}}, "organisation": "Clinic <St. Anna>"}
HOSTILE = '"><img src=x onerror=alert(1)></title></style><script>\u202egnp\x00\x1b[31m&lt;'


@pytest.fixture
def store(tmp_path):
    store = Store.new(tmp_path / "s", LSSVC(), about=ABOUT)
    store.learn(X, Y, key="first")
    return store


def said(receipt, language="en"):
    page = Page(receipt.to_html(language))
    page.check()
    return " ".join(page.text.split())


def test_the_person_concerned_reads_what_was_done(store):
    receipt = store.forget(X[:3], Y[:3], key="letter 7")
    receipt = replace(receipt, time="2026-03-04T05:06:07Z")
    text = said(receipt)
    assert (
        "3 records were removed from the model. The model is now exactly the one that the 37 "
        "records left give, as if the others had never been learned."
    ) in text
    for fact in ("Clinic <St. Anna>", "“letter 7”", "predicts“ill”", "2026-03-04, 05:06:07 UTC"):
        assert fact in text
    assert "would reveal them" in text
    assert re.findall("[0-9a-f]{64}", text) == [receipt.hash]  # one fingerprint


def test_the_same_in_german(store):
    text = said(store.forget(X[:3], Y[:3]), "de")
    assert "3 Datensätze wurden aus dem Modell entfernt." in text
    assert "1 Datensatz wurde" in said(store.forget(X[3:4], Y[3:4]), "de")
    with pytest.raises(ValueError, match="language must be one of en, de"):
        store.receipt().to_html("xx")


def test_every_message_is_translated_and_compiled(tmp_path):
    """What `make messages` brings up to date."""
    folder = HERE / "locale/de/LC_MESSAGES"
    with open(folder / "traceless.po", "rb") as file:
        catalogue = read_po(file, "de")
    options = {"extensions": "jinja2.ext.i18n", "trim_blocks": "true", "lstrip_blocks": "true"}
    found = extract_from_dir(HERE, [("**.html", "jinja2")], {"**.html": options})
    wanted = {message[2] for message in found}
    told = {m.id: m.string for m in catalogue if m.id}
    assert {one if isinstance(one, str) else tuple(one) for one in wanted} == set(told)
    assert all(all(text) if isinstance(text, tuple) else text for text in told.values())
    with open(tmp_path / "compiled", "wb") as file:
        write_mo(file, catalogue)
    with open(folder / "traceless.mo", "rb") as old, open(tmp_path / "compiled", "rb") as new:
        assert GNUTranslations(old)._catalog == GNUTranslations(new)._catalog


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
    for kind in KINDS:
        for language in ("en", "de"):
            text = said(replace(store.receipt(), kind=kind), language)
            assert "n entry of the kind" not in text
            assert f": {kind}" not in text
    for bare in ({}, {"about": 3, "model": 3}, {"about": {"table": 3}}):
        assert "The model was made" in said(replace(store.receipt(0), document=json.dumps(bare)))


def test_what_is_exact_up_to_rounding_is_said_to_be(tmp_path):
    model = LSSVR(solver="woodbury", free_intercept=False, standardize=False)
    store = Store.new(tmp_path / "s", model)
    store.learn(X, np.arange(40.0))
    receipt = store.forget(X[:20], np.arange(20.0))
    assert "is now, up to rounding, the one that the 20 records left give" in said(receipt)


def test_names_from_anywhere_are_only_text(tmp_path):
    about = {"table": {"target": {"column": [HOSTILE]}}, "organisation": HOSTILE}
    store = Store.new(tmp_path / "s", LSSVC(), about=about)
    receipt = store.learn(X, [f"{HOSTILE}{label}" for label in Y], key=HOSTILE)
    html = receipt.to_html()
    Page(html).check()
    assert "<img" not in html
    assert not [c for c in html if not c.isprintable() and c != "\n"]
    assert "<img src=x onerror=alert(1)>" in Page(html).text
