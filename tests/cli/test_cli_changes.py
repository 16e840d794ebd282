import os

import pytest
from people import people, table

from traceless import LSSVC, Store
from traceless.features import Linear
from traceless.sources import Schema, Table


def refit(path):
    """The digest of a fit from scratch on a file."""
    schema = Schema.from_facts(Store("shop").about["table"])
    X, y, _ = Table([str(path)], schema).arrays()
    return LSSVC(Linear(), fingerprint=True).fit(X, y).digest()


def test_learn_forget_and_the_digest_of_a_refit(call, shop, tmp_path):
    assert call("status", "shop", "--json").json["digest"] == refit("people.csv")
    table(tmp_path / "gone.csv", shop[:60])
    told = call("forget", "shop", "gone.csv", "--json").json["receipt"]
    table(tmp_path / "rest.csv", shop[60:])
    assert told["digest_after"] == refit("rest.csv")
    assert (told["kind"], told["rows"], told["held"]) == ("forget", 60, 60)


def test_the_same_rows_in_any_format_are_the_same_model(call, shop, tmp_path):
    import pyarrow.csv
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.csv.read_csv("people.csv"), "p.parquet")
    call("forget", "shop", "p.parquet")
    assert call("status", "shop", "--json").json["rows"] == 0


def test_standard_input(call, shop, tmp_path):
    with open("people.csv") as file:
        text = file.read()
    assert call("forget", "shop", "-", stdin=text, code=0).out.startswith("change:     2 (forget)")


def test_a_retry_is_refused_and_a_key_is_recognised(call, shop, tmp_path):
    assert "--again" in call("learn", "shop", "people.csv", code=2).err
    assert call("learn", "shop", "people.csv", "--again", "--json").json["receipt"]["held"] == 240
    people(tmp_path / "more.csv", seed=1)
    first = call("learn", "shop", "more.csv", "--key", "k", "--json").json["receipt"]
    again = call("learn", "shop", "more.csv", "--key", "k", "--json").json["receipt"]
    assert not first["replayed"]
    assert again["replayed"]
    assert again["hash"] == first["hash"]
    assert "answered before" in call("learn", "shop", "more.csv", "--key", "k").out
    assert call("learn", "shop", "people.csv", "--key", "k", code=2).err.startswith("error: ")


def test_rows_that_are_not_held_are_refused(call, shop, tmp_path):
    before = call("status", "shop", "--json").out
    people(tmp_path / "others.csv", seed=5)
    said = call("forget", "shop", "others.csv", code=2).err
    assert "Nothing was changed" in said
    assert call("status", "shop", "--json").out == before


def test_few_rows_are_warned_of_or_wait(call, shop, tmp_path):
    table(tmp_path / "one.csv", shop[:1])
    queued = call("forget", "shop", "one.csv", "--batch", "--json").json
    assert queued["queued"]["rows"] == 1
    assert "1 rows wait" in call("flush", "shop").out
    told = call("flush", "shop", "--force", "--json").json
    assert [r["rows"] for r in told["receipts"]] == [1]
    assert told["waiting_rows"] == 0
    assert "Nothing waits" in call("flush", "shop").out
    table(tmp_path / "two.csv", shop[1:2])
    assert call("forget", "shop", "two.csv").err.startswith("warning: Fewer than 20")


def test_relabel_by_a_word_or_a_column(call, shop, tmp_path):
    yes = [line for line in shop if line.endswith("yes")]
    table(tmp_path / "wrong.csv", yes)
    call("relabel", "shop", "wrong.csv", "--to", "no")
    table(tmp_path / "now.csv", [line.replace(",yes", ",no") for line in shop])
    assert call("status", "shop", "--json").json["digest"] == refit("now.csv")
    back = [line.replace(",yes", ",no,yes") for line in yes]
    table(tmp_path / "back.csv", back, "id,age,income,color,bought,right")
    call("relabel", "shop", "back.csv", "--new-column", "right")
    assert call("status", "shop", "--json").json["digest"] == refit("people.csv")
    assert "--to LABEL" in call("relabel", "shop", "back.csv", code=2).err
    assert (
        "no column 'left'"
        in call("relabel", "shop", "back.csv", "--new-column", "left", code=2).err
    )


def test_relabel_wants_declared_classes_and_one_target(call, tmp_path):
    call("new", "s", "--target", "y", "--columns", "a", "--classes", "u,v")
    table(tmp_path / "t.csv", ["1,u", "2,v"], "a,y")
    call("learn", "s", "t.csv")
    assert "one of the classes 'u', 'v'" in call("relabel", "s", "t.csv", "--to", "w", code=2).err
    call("new", "r", "--target", "p,q", "--columns", "a", "--regression")
    assert "several targets" in call("relabel", "r", "t.csv", "--to", "1", code=2).err


def test_relabel_keeps_weights(call, tmp_path):
    call("new", "s", "--target", "y", "--columns", "a", "--weight", "w")
    table(tmp_path / "t.csv", ["1,u,2", "2,v,3"], "a,y,w")
    call("learn", "s", "t.csv")
    call("relabel", "s", "t.csv", "--to", "v")
    expected = LSSVC(fingerprint=True).fit([[1.0], [2.0]], ["v", "v"], [2.0, 3.0]).digest()
    assert call("status", "s", "--json").json["digest"] == expected


def test_merge_and_forget_a_slice(call, shop, tmp_path):
    before = call("status", "shop", "--json").json["digest"]
    declared = ("--target", "bought", "--columns", "age,income,color")
    scaled = ("--scale", "age=50:20", "--scale", "income=40:12", "--category", "color=red,green")
    call("new", "branch", *declared, *scaled)
    people(tmp_path / "branch.csv", seed=3)
    call("learn", "branch", "branch.csv")
    assert call("merge", "shop", "branch", "--name", "b", "--json").json["receipt"]["held"] == 240
    assert "merged before" in call("merge", "shop", "branch", "--name", "b", code=2).err
    assert call("merge", "shop", "branch", "--name", "b", "--again", "--json").json["ok"]
    for _ in range(2):
        call("forget", "shop", "--slice", "branch", "--name", "b")
    assert call("status", "shop", "--json").json["digest"] == before
    assert "FILES of rows, or --slice" in call("forget", "shop", code=2).err
    assert call("merge", "shop", "people.csv", code=2).err.startswith("error: ")


def test_a_shared_secret_lets_rows_be_forgotten_one_by_one(call, shop, tmp_path):
    call(
        *("new", "branch", "--target", "bought", "--columns", "age,income,color"),
        *("--scale", "age=50:20", "--scale", "income=40:12", "--category", "color=red,green"),
        *("--secret", "shop/secret"),
    )
    people(tmp_path / "branch.csv", seed=3)
    call("learn", "branch", "branch.csv")
    call("merge", "shop", "branch")
    assert call("forget", "shop", "branch.csv", "--json").json["receipt"]["held"] == 120


def test_destroy(call, shop):
    assert "Nothing was changed" in call("destroy", "shop", "secret", stdin="n\n", code=1).err
    assert call("status", "shop", "--json").json["has_secret"]
    call("destroy", "shop", "secret", stdin="y\n")
    assert "secret is destroyed" in call("status", "shop").out
    assert call("forget", "shop", "people.csv", code=2).err.startswith("error: ")
    call("destroy", "shop", "model", "--yes")
    assert "model is destroyed" in call("status", "shop").out
    assert call("predict", "shop", "people.csv", code=2).err.startswith("error: ")


def test_a_second_writer_is_told(call, shop):
    from traceless.store.lock import write_lock

    with write_lock(Store("shop")._folder.lock, 0.0):
        said = call("forget", "shop", "people.csv", code=3)
        assert str(os.getpid()) in said.err
        assert call("status", "shop").code == 0  # readers do not wait
        assert (
            call("forget", "shop", "people.csv", "--json", code=3).json["kind"] == "StoreBusyError"
        )


@pytest.mark.parametrize("name", ["learn", "forget", "predict", "score", "verify"])
def test_stores_without_a_table_say_so(call, tmp_path, name):
    Store.new(tmp_path / "bare", LSSVC())
    table(tmp_path / "t.csv", ["1,u"], "a,y")
    assert "No table is declared" in call(name, "bare", "t.csv", code=2).err


@pytest.mark.parametrize("name", ["learn", "forget", "predict", "score"])
def test_what_is_no_store(call, tmp_path, name):
    table(tmp_path / "t.csv", ["1,u"], "a,y")
    (tmp_path / "folder").mkdir()
    for path in ("none", "folder", "t.csv"):
        assert call(name, path, "t.csv", code=2).err.startswith("error: ")


def test_a_weight_column(call, tmp_path):
    call("new", "s", "--target", "y", "--columns", "a", "--weight", "w")
    table(tmp_path / "t.csv", ["1,u,2", "2,v,1"], "a,y,w")
    call("learn", "s", "t.csv")
    expected = LSSVC(fingerprint=True).fit([[1.0], [2.0]], ["u", "v"], [2.0, 1.0]).digest()
    assert call("status", "s", "--json").json["digest"] == expected
