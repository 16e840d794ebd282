"""The table of docs/store.md, "who, holding what, can do what": a test for each of its rows.

Its name is what they could do; it shows by what that is found out, and when it is not.
"""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from forging import edit, key_of, relogged, restated, with_description

from traceless import LSSVC, Store
from traceless.exceptions import StoreError
from traceless.store import Receipt, verify_receipt
from traceless.store.keys import SigningKey
from traceless.store.opening import open_ledger
from traceless.store.row_digests import RowHasher

pytestmark = pytest.mark.filterwarnings("ignore::traceless.RevealingWarning")
PAGE = Path(__file__).parents[2] / "docs" / "store.md"


def bad(found):
    return {check.name for check in found.checks if not check.ok}


def test_change_any_of_its_fields(store):
    """By somebody with a receipt."""
    receipt = store.receipt()
    for name in ("rows", "held", "since"):
        assert not restated(receipt, **{name: getattr(receipt, name) + 1}).check()
    assert not Receipt.from_json(receipt.to_json().replace("index 1", "index 0")).check()


def test_sign_it_with_a_key_of_his_own(store, tmp_path, rows):
    """By somebody without the key; not found out if nobody knows the right one."""
    mine = SigningKey.new()
    made_up = with_description(store.receipt(), mine, about={"organisation": "the clinic"})
    assert verify_receipt(made_up).ok
    assert bad(verify_receipt(made_up, public_key=store.public_key)) == {"signer"}
    other = Store.new(tmp_path / "other", LSSVC())
    other.learn(*rows)
    assert other.verify().ok
    assert bad(other.verify(public_key=store.public_key)) == {"kept public key"}


def test_change_entries_counts_times_digests_ids_requests_the_queue_the_model_the_tables(store):
    """By whoever can write the folder; all the ways are in test_verification.py."""
    (first, last), log = store.history(), store.head().split("\n")[0]
    for facts in ({"rows": 7}, {"time": "2020-01-01T00:00:00Z"}, {"held": 7}):
        relogged(store, [first, restated(last, **facts)], log=log)
        assert "chain" in bad(store.verify())
        with pytest.raises(StoreError, match="Nothing was changed"):
            store.model()


def test_sign_all_of_it_anew_with_a_key_of_his_own(store):
    """The description of the store too; not found out by itself."""
    key, receipt, head = store.public_key, store.receipt(), store.head()
    mine = SigningKey.new()
    entries, log = store.history(), head.split("\n")[0]
    forged = with_description(receipt, mine, **{**receipt.store, "key": mine.public})
    edit(store, ("UPDATE origin SET document = ?", forged.document))
    facts = {"origin": forged.origin, "signer": mine.public}
    relogged(store, [restated(entry, mine, **facts) for entry in entries], mine, log)
    assert store.verify().ok
    found = store.verify(public_key=key, receipt=receipt, head=head)
    assert bad(found) == {"kept public key", "kept receipt", "kept head"}


def test_put_an_older_copy_of_the_folder_in_its_place(store, rows, tmp_path):
    """Not found out if nothing was kept."""
    old = Store(shutil.copytree(store.path, tmp_path / "old"))
    receipt = store.forget(rows[0][:90], rows[1][:90])
    assert old.verify().ok
    found = old.verify(receipt=receipt, head=store.head())
    assert bad(found) == {"kept receipt", "kept head"}


def test_destroy_it(store):
    shutil.rmtree(store.path)
    with pytest.raises(StoreError, match="is not a store"):
        Store(store.path)


def test_rewrite_the_history_from_any_point_on_dates_included_and_sign_it(store, rows):
    """By the owner; not found out if nobody has kept a receipt or a head of what was rewritten."""
    early, receipt = store.receipt(0), store.receipt()
    head = store.head()
    first, last = store.history()
    relogged(
        store, [first, restated(last, key_of(store), time="2020-01-01T00:00:00Z")], key_of(store)
    )
    assert store.verify(rows[0][:200], rows[1][:200], receipt=early).ok
    assert bad(store.verify(receipt=receipt, head=head)) == {"kept receipt", "kept head"}


def test_claim_that_the_model_holds_other_rows_than_it_does(store, rows):
    """Whoever has the rows finds out, also from the receipt alone."""
    first, last = store.history()
    forged = restated(last, key_of(store), digest_after="0" * 64, root_after="0" * 64)
    relogged(store, [first, forged], key_of(store))
    assert "model" in bad(store.verify())
    receipt = store.receipt()
    assert receipt.check()
    assert bad(verify_receipt(receipt, rows[0][:200], rows[1][:200])) == {"model", "root"}


def test_keep_a_copy_of_forgotten_rows_or_of_an_old_model(store, rows, tmp_path):
    """Nobody finds out."""
    shutil.copytree(store.path / "generations", tmp_path / "kept")
    store.forget(rows[0][:90], rows[1][:90])
    assert store.verify(rows[0][90:200], rows[1][90:200]).ok


def test_set_the_clock_wrong(store, rows, monkeypatch):
    """`verify` says where it ran backwards; times between two dated heads prove nothing."""
    monkeypatch.setattr("traceless.store.entries.now", lambda: "2031-01-01T00:00:00Z")
    store.learn(rows[0][200:], rows[1][200:])
    assert "clock" not in str(store.verify())
    monkeypatch.undo()
    with pytest.warns(match="clock"):
        store.forget(rows[0][:90], rows[1][:90])
    assert "the clock ran backwards before entry 3" in str(store.verify())


def test_read_the_model_counts_times_names_of_requests_rows_that_wait_test_whether_a_row_or_an_id_that_he_guesses_is_held(store, rows):  # fmt: skip  # noqa: E501
    """By whoever can read the folder, secret included: always."""
    store.learn(rows[0][200:], rows[1][200:], ids=range(100), key="delivery")
    with open_ledger(store.path / "ledger.sqlite") as ledger:
        hasher = RowHasher.of((store.path / "secret").read_bytes(), ledger.origin)
        names = hasher.names([17, 170])
        assert ledger.rows.ids(names).keys() == {names[0]}
        guess = hasher((rows[0][:1], rows[1][:1], None)).digests[0]
        assert (guess in {row[0] for row in ledger.rows.named()}) is True
    assert (store.path.stat().st_mode & 0o777) == 0o700


def test_test_whether_an_id_that_he_guesses_was_forgotten(tmp_path, rows):
    """Only while it is on the suppression list."""
    for period in ("24 months", None):
        store = Store.new(tmp_path / str(period), LSSVC(), suppress=period)
        store.learn(*rows, ids=np.arange(300))
        store.forget(rows[0][:60], rows[1][:60])
        assert [store.find(i).suppressed is not None for i in (5, 170)] == [
            period is not None,
            False,
        ]


def test_sign_like_the_owner(store, rows, tmp_path):
    """By whoever has copied the key: two histories cannot both continue a head."""
    thief = Store(shutil.copytree(store.path, tmp_path / "thief"))
    before = store.head()
    theirs, ours = (
        thief.forget(rows[0][:90], rows[1][:90]),
        store.learn(rows[0][200:], rows[1][200:]),
    )
    for one, other in ((store, theirs), (thief, ours)):
        assert one.verify(head=before).ok
        assert bad(one.verify(receipt=other)) == {"kept receipt"}


def test_sign_receipts_after_the_owner_has_another_key(store, rows, tmp_path):
    """The log has no proof of them; not found out while nobody compares."""
    thief = Store(shutil.copytree(store.path, tmp_path / "thief"))
    key = store.public_key
    store.new_key()
    forged = thief.forget(rows[0][:90], rows[1][:90])
    assert verify_receipt(forged, public_key=key).ok
    assert bad(verify_receipt(forged, public_key=key, head=store.head())) == {"kept head"}
    assert bad(store.verify(receipt=forged)) == {"kept receipt"}


def test_each_row_of_the_table_has_its_test():
    rows = re.findall(r"^\| [^|]*\| ([^|]+) \|[^|]*\|[^|]*\|$", PAGE.read_text(), re.MULTILINE)
    rows = [row for row in rows if row not in ("could do", "---")]
    names = ["test_" + re.sub(r"\W+", "_", row.strip()).strip("_") for row in rows]
    assert len(names) == 14
    assert [name for name in names if name not in globals()] == []
