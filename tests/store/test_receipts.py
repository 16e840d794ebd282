"""Receipts: whoever has one can check it without the store."""

import hashlib
import json
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from forging import restated, with_description
from sklearn.base import clone

from traceless import LSSVC, LSSVR, PathSVC
from traceless.exceptions import FileError, StoreError
from traceless.features import Polynomial, RandomFourier
from traceless.files import saving
from traceless.store import Receipt, Store, verify_receipt
from traceless.store.entries import Entry
from traceless.store.keys import SigningKey


@pytest.fixture
def receipt(store, rows):
    return store.forget(rows[0][:100], rows[1][:100], key="request 7")


def test_a_receipt_survives_its_journey(receipt):
    again = Receipt.from_json(receipt.to_json())
    assert again == receipt
    assert again.check()
    assert again.store["model"]["kind"] == "LSSVC"


def test_a_third_party_needs_only_the_rows(receipt, rows):
    X, y = rows[0][100:200], rows[1][100:200]
    assert verify_receipt(receipt, X[::-1], y[::-1]).ok
    assert verify_receipt(receipt, iter([(X[:50], y[:50]), (X[50:], y[50:], 1.0)])).ok
    result = verify_receipt(receipt, X[1:], y[1:])
    assert [check.ok for check in result.checks] == [True, False, False]
    assert "held 100 rows" in str(result)


def test_other_rows_with_equal_sums_are_other_rows(tmp_path):
    """{0, 3, 5, 6} and {1, 2, 4, 7} have one count, sum and sum of squares."""
    ours, theirs = ([[float(x)] for x in xs] for xs in ((0, 3, 5, 6), (1, 2, 4, 7)))
    y = ["one"] * 4
    assert LSSVC().fit(ours, y).digest() == LSSVC().fit(theirs, y).digest()
    store = Store.new(tmp_path / "s", LSSVC())
    receipt = store.learn(theirs, y)
    for rows_, ok in ((theirs, True), (ours, False)):
        for result in (verify_receipt(receipt, rows_, y), store.verify(rows_, y)):
            found = {check.name: check.ok for check in result.checks}
            assert result.ok is ok
            assert found["root"] is found.get("model" if "receipt" in found else "refit") is ok


MODELS = {
    "woodbury": LSSVC(RandomFourier(40, gamma=0.3), solver="woodbury"),
    "class-wise": LSSVC(class_weight="balanced"),
    "regression": LSSVR(rho=0.1),
    "path": PathSVC(C=2.0, gamma=0.5),
    "path of any gamma": PathSVC(),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_every_estimator_can_live_in_a_store_and_its_root_is_one_of_the_rows(tmp_path, rows, model):
    X, y = rows[0], (rows[0] @ [[1.0, 0.5], [0.0, 1.0], [2.0, 0.0]])
    y = y if isinstance(model, LSSVR) else rows[1]
    weight = None if isinstance(model, PathSVC) else 1.0 + np.arange(300) % 3
    store = Store.new(tmp_path / "s", model)
    for some in (slice(150), slice(150, 300)):
        Store(store.path).learn(X[some], y[some], None if weight is None else weight[some])
    store.relabel(X[:50], y[:50], y[50:100], None if weight is None else weight[:50])
    store.relabel(X[:50], y[50:100], y[:50], None if weight is None else weight[:50])
    receipt = store.forget(X[:100], y[:100], None if weight is None else weight[:100])
    left = None if weight is None else weight[100:]
    assert np.array_equal(store.model().predict(X), Store(store.path).model().predict(X))
    assert store.verify(X[100:], y[100:], left).ok
    assert receipt.root_after == store.status().root
    assert len(receipt.root_after) == 64
    assert verify_receipt(Receipt.from_json(receipt.to_json()), X[100:], y[100:], left).ok
    for other in (np.r_[100:300, 299], np.r_[101:300]):
        theirs = None if left is None else weight[other]
        result = verify_receipt(receipt, X[other], y[other], theirs)
        assert [check.ok for check in result.checks] == [True, False, False]
    if not isinstance(model, PathSVC):
        fresh = clone(model).set_params(fingerprint=True).fit(X[100:], y[100:], left)
        lanes = fresh.knowledge_.fingerprint
        assert receipt.root_after == hashlib.sha256(lanes.astype("<u2").tobytes()).hexdigest()


def test_nothing_in_a_receipt_can_be_changed(receipt, rows):
    for name, value in receipt.facts().items():
        if isinstance(value, str | None | int) and name != "kind":
            other = (not value) if isinstance(value, bool) else f"{value}0"
            other = value + 1 if type(value) is int else other
            if name.startswith("suppression"):  # there is none: no statement names it
                assert not replace(receipt, **{name: other}).check()
                continue
            forged = restated(receipt, **{name: other})
            assert not Receipt.from_json(forged.to_json()).check(), name
            assert not replace(receipt, **{name: other}).check(), name
    for part in (replace(receipt, document=receipt.document.replace("{", "{ ")), forged):
        assert not Receipt.from_json(part.to_json()).check()
        assert "signature of this receipt is wrong" in part.to_html()
    for old, new in (("index 2", "index 1"), ("\n3\n", "\n4\n"), ("tlog", "xlog"), ("\n\n", "\n")):
        assert old in receipt.proof
        assert not replace(receipt, proof=receipt.proof.replace(old, new)).check()
    assert not verify_receipt(forged, rows[0][100:200], rows[1][100:200]).ok


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "3",
        "{}",
        '{"format": "traceless receipt 2", "envelope": {}, "proof": "", "store": ""}',
        '{"format": 2, "envelope": {}, "proof": "", "store": ""}',
        '{"format": "traceless receipt 1", "envelope": {}, "proof": "", "store": ""}',
        '{"format": "traceless receipt 1", "envelope": [], "proof": "", "store": ""}',
        '{"format": "traceless receipt 1", "envelope": {}, "proof": 3, "store": ""}',
        "[" * 100_000,
    ],
)
def test_what_is_no_receipt_is_refused(text):
    with pytest.raises(StoreError, match=r"[Nn]ot an? "):
        Receipt.from_json(text)


def test_fields_of_other_types_are_refused(receipt):
    for name, value in receipt.statement()["predicate"].items():
        for other in (1.5, ["x"], {"x": []}, -1 if isinstance(value, str | None) else "x"):
            changed = receipt.statement()
            changed["predicate"][name] = other
            if name == "keys" and other == ["x"]:
                continue
            with pytest.raises(StoreError):
                Entry.from_payload(json.dumps(changed).encode())


PARTS = {
    "receipt": lambda said: said,
    "envelope": lambda said: said["envelope"],
    "signature": lambda said: said["envelope"]["signatures"][0],
    "statement": lambda said: said,
    "subject": lambda said: said["subject"][0],
    "digest": lambda said: said["subject"][0]["digest"],
    "predicate": lambda said: said["predicate"],
}


@pytest.mark.parametrize("part", PARTS)
def test_names_that_are_added_or_repeated_are_refused(receipt, part):
    """No signature would cover them, or other readers would take the first of two."""
    inside = part in ("statement", "subject", "digest", "predicate")
    text = receipt.payload.decode() if inside else receipt.to_json()

    def read(text):
        return Entry.from_payload(text.encode()) if inside else Receipt.from_json(text)

    said = json.loads(text)
    PARTS[part](said)["more"] = 1
    with pytest.raises(StoreError, match=r"[Nn]ot an? "):
        read(json.dumps(said))
    for name in list(PARTS[part](json.loads(text))):
        said = json.loads(text)
        PARTS[part](said)["AGAIN"] = value = PARTS[part](said)[name]
        twice = json.dumps(said).replace('"AGAIN"', f'"\\u{ord(name[0]):04x}{name[1:]}"')
        assert json.loads(twice) == json.loads(text), value
        with pytest.raises(StoreError, match=r"[Nn]ot an? "):
            read(twice)


def test_a_receipt_of_a_model_that_there_is_not(receipt, rows):
    for model in (None, {}, {"kind": "os.system", "parameters": {}}):
        forged = with_description(receipt, SigningKey.new(), model=model)
        with pytest.raises((FileError, ValueError)):
            verify_receipt(forged, *rows)


def test_a_model_of_a_stranger_is_not_fitted(receipt, rows, monkeypatch):
    """Whoever only changes a receipt, or has another key, does not say what is computed here."""
    forged = restated(receipt, rows=7)
    stranger = with_description(receipt, SigningKey.new(), about={"x": 1})
    for kept in ({}, {"public_key": receipt.signer}, {"head": "a"}):
        given = stranger if kept.get("public_key") else forged
        with suppress(ValueError):
            names = [check.name for check in verify_receipt(given, *rows, **kept).checks]
            assert not {"model", "root"} & {*names}


@pytest.mark.parametrize(
    ("feature_map", "n"),
    [(RandomFourier(100_000, random_state=0), 100_001), (Polynomial(6), 100_947)],
)
def test_a_receipt_of_a_model_that_takes_all_memory(receipt, rng, feature_map, n):
    """It is measured before the auditor's process makes it: 75 GiB."""
    described = saving.described(LSSVC(feature_map, fingerprint=True))
    forged = with_description(receipt, SigningKey.new(), model=described)
    X, y = rng.normal(size=(2, 17)), ["a", "b"]
    said = rf"{n} features \(\w+\) would take 7\d\.\d GiB .* TRACELESS_MEMORY_LIMIT to 7\d\."
    with pytest.raises(FileError, match=said):
        verify_receipt(forged, X, y)
