"""Changes by files; what all interfaces have in common is in tests/store/test_changes.py."""

import os

import pytest
from people import declared, people, table

from traceless import LSSVC, Store
from traceless.features import Number, Table


def test_few_rows_wait_for_others(call, shop, tmp_path):
    table(tmp_path / "one.csv", shop[:1])
    call("forget shop one.csv --batch")
    assert "1 rows wait" in call("queue flush shop").out
    assert call("queue flush shop --force --json").json["waiting_rows"] == 0
    assert "Nothing waits" in call("queue flush shop").out


def test_new_labels_are_checked(call, tmp_path):
    call("new", "s", declared("a", 'column = "y"\nclasses = ["u", "v"]'))
    table(tmp_path / "t.csv", ["1,u", "2,v"], "a,y")
    call("learn s t.csv")
    assert "one of the classes 'u', 'v'" in call("correct s --from t.csv --label w", code=2).err
    assert "no column 'left'" in call("correct s --from t.csv --label-column left", code=2).err
    assert "--label LABEL" in call("correct s --from t.csv", code=2).err
    assert "--label LABEL" in call("correct s --from t.csv --to t.csv --label w", code=2).err
    call("new", "r", declared("a", 'column = ["p", "q"]\nkind = "number"'))
    assert "several targets" in call("correct r --from t.csv --label 1", code=2).err
    assert "FILES of rows, or --slice" in call("forget s", code=2).err


def test_a_weight_column(call, tmp_path):
    call("new", "s", declared("a", 'column = "y"\nweight = "w"'))
    table(tmp_path / "t.csv", ["1,u,2", "2,v,3"], "a,y,w")
    call("learn s t.csv")
    for change, labels in (
        ("status s", ["u", "v"]),
        ("correct s --from t.csv --label v", ["v", "v"]),
    ):
        call(change)
        model = LSSVC(Table([Number("a")]), fingerprint=True)
        expected = model.fit([[1.0], [2.0]], labels, [2.0, 3.0]).digest()
        assert call("status s --json").json["digest"] == expected


def test_a_shared_secret_lets_rows_be_forgotten_one_by_one(call, shop, tmp_path):
    call("new branch model.toml --secret shop/secret")  # as that of the shop
    people(tmp_path / "branch.csv", seed=3)
    call("learn branch branch.csv")
    call("merge shop branch")
    assert call("forget shop branch.csv --json").json["receipt"]["held"] == 120


def test_what_was_destroyed_is_missed(call, shop):
    call("destroy shop secret", stdin="y\n")
    assert "secret is destroyed" in call("status shop").out
    call("destroy shop model --yes")
    assert "model is destroyed" in call("status shop").out
    assert call("predict shop people.csv", code=2).err.startswith("error: ")


def test_a_second_writer_is_told(call, shop):
    from traceless.store.lock import write_lock

    with write_lock(Store("shop")._folder.lock, 0.0):
        said = call("forget", "shop", "people.csv", code=3)
        assert str(os.getpid()) in said.err
        assert call("status", "shop").code == 0  # readers do not wait
        assert (
            call("forget", "shop", "people.csv", "--json", code=3).json["kind"] == "StoreBusyError"
        )


@pytest.mark.parametrize("name", ["learn", "forget", "predict", "verify"])
def test_stores_without_a_table_and_what_is_no_store_are_refused(call, tmp_path, name):
    Store.new(tmp_path / "bare", LSSVC()).learn([[1.0], [2.0]], ["u", "v"])
    table(tmp_path / "t.csv", ["1,u"], "a,y")
    (tmp_path / "folder").mkdir()
    assert "No table is declared" in call(name, "bare", "t.csv", code=2).err
    for path in ("none", "folder", "t.csv"):
        assert "rror: " in call(name, path, "t.csv", code=2).err
