"""Receipts for a person: what was done with the rows of one id, and with nobody else's."""

import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from traceless import LSSVC, Store
from traceless.exceptions import StoreError
from traceless.store import PersonalReceipt, verify_receipt

pytestmark = pytest.mark.filterwarnings("ignore::traceless.RevealingWarning")
SCHEMA = Path(__file__).parents[2] / "docs" / "person.schema.json"


@pytest.fixture
def clinic(tmp_path, rows):
    store = Store.new(tmp_path / "clinic", LSSVC())
    store.learn(*rows, ids=np.arange(300) // 3)
    return store, *rows, np.arange(300) // 3


def test_it_says_what_was_done_with_these_rows_alone(clinic):
    store, X, y, ids = clinic
    some = np.r_[0:3, 6:8, 9:10]
    receipt = store.forget(X[some], y[some], ids=ids[some], personal=True)
    said = {one.facts["id"]: one for one in receipt.people}
    numbers = {i: (one.facts["rows"], one.facts["held"]) for i, one in said.items()}
    assert numbers == {"0": (3, 0), "2": (2, 1), "3": (1, 2)}
    assert said["0"].facts["suppressed"] == store.find(0).suppressed
    assert said["2"].facts["suppressed"] is None
    schema = json.loads(SCHEMA.read_text())
    for one in said.values():
        jsonschema.validate(json.loads(one.payload), schema)
        again = PersonalReceipt.from_json(one.to_json())
        assert (again, again.check()) == (one, True)
        assert again.facts["leaf"] == receipt.hash
        text = again.to_json() + again.payload.decode()
        assert not [word for word in ("classes", "added", "totals", "digest_after") if word in text]
        assert verify_receipt(again, public_key=store.public_key, head=store.head()).ok
    store.learn(X[:3], y[:3])
    proof = store.consistency(str(said["0"].head()))
    assert verify_receipt(said["0"], head=store.head(), consistency=proof).ok
    assert not verify_receipt(said["0"], head=store.head()).ok


def test_one_for_a_request_that_waits_and_none_unasked(clinic):
    store, X, y, ids = clinic
    queued = store.forget(X[:2], y[:2], ids=ids[:2], batch=True, personal=True)
    (one,) = queued.receipt.people
    assert [one.facts[n] for n in ("kind", "rows", "held", "waiting")] == ["queue", 2, 3, 2]
    assert one.check()
    assert store.forget(X[3:5], y[3:5], ids=ids[3:5]).people == ()
    done = store.forget(X[20:200], y[20:200], ids=ids[20:200], batch=True, personal=True)
    assert done.kind == "forget"  # enough wait: all go
    assert len(done.people) == len({*ids[20:200]})
    assert {one.facts["kind"] for one in done.people} == {"forget"}


def test_nothing_in_it_can_be_changed(clinic):
    store, X, y, ids = clinic
    (one,) = store.forget(X[:3], y[:3], ids=ids[:3], personal=True).people
    statement = json.loads(one.payload)
    for name, value in statement["predicate"].items():
        other = value + 1 if type(value) is int else "x"
        changed = {**statement, "predicate": {**statement["predicate"], name: other}}
        forged = PersonalReceipt(json.dumps(changed).encode(), one.signature, one.proof)
        assert not forged.check(), name
        less = {n: v for n, v in statement["predicate"].items() if n != name}
        for predicate in (less, {**statement["predicate"], "more": 1}):
            text = json.dumps({**statement, "predicate": predicate}).encode()
            assert not PersonalReceipt(text, one.signature, one.proof).check()
    other_proof = store.receipt(1).proof
    assert not PersonalReceipt(one.payload, one.signature, other_proof).check()
    for text in ("", "[]", "{}", store.receipt().to_json(), one.to_json().replace("keyid", "x")):
        with pytest.raises(StoreError, match=r"[Nn]ot an? "):
            PersonalReceipt.from_json(text)
