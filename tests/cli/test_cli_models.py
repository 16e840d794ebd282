import csv
import datetime
import io
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from people import declared, people, table

from traceless import LSSVC, Store
from traceless.sources import Files, Schema


def rows_of(path):
    schema = Schema.from_facts(Store("shop").about["table"])
    return Files([str(path)], schema).arrays()


def test_predictions_are_those_of_the_model(call, shop, tmp_path):
    X, y, _ = rows_of("people.csv")
    model = LSSVC(Schema.from_facts(Store("shop").about["table"]).table).fit(X, y)
    said = call("predict shop people.csv --keep id,color --scores --probabilities").out
    header, *lines = csv.reader(io.StringIO(said))
    assert header == [
        *("id", "color", "prediction", "score_yes"),
        *("probability_no", "probability_yes"),
    ]
    columns = list(zip(*lines, strict=True))
    assert list(columns[0]) == [str(k) for k in range(len(X))]
    assert list(columns[2]) == model.predict(X).tolist()
    assert list(map(float, columns[3])) == model.decision_function(X).tolist()
    assert [list(map(float, c)) for c in columns[4:]] == model.predict_proba(X).T.tolist()


def test_predictions_come_as_csv_json_or_a_file_and_keep_dates(call, shop, tmp_path):
    day = datetime.date(2026, 1, 2)
    rows = {"day": [day], "age": [50], "income": [40.0], "color": ["red"]}  # and no target
    pq.write_table(pa.table(rows), "t.parquet")
    told = call("predict shop t.parquet --keep day --json").json["predictions"]
    assert told[0]["day"] == "2026-01-02"
    assert call("predict shop t.parquet --keep day --out answers.csv --json").json["rows"] == 1
    with open("answers.csv") as file:
        assert list(csv.DictReader(file)) == told
    call("predict shop t.parquet --out /dev/null")
    assert not Path("/dev/null").is_file()
    assert call("predict shop -", stdin="color,income,age\nred,41,50\n").out.count("\n") == 2


def test_a_bad_row_leaves_no_half_file(call, shop, tmp_path):
    table(tmp_path / "bad.csv", ["red,41,50", "blue,20,10"], "color,income,age")
    (tmp_path / "answers.csv").write_text("old")
    before = sorted(os.listdir())
    call("predict", "shop", "bad.csv", "--out", "answers.csv", code=2)
    assert call("predict", "shop", "bad.csv", code=2).out == ""
    assert (tmp_path / "answers.csv").read_text() == "old"
    assert sorted(os.listdir()) == before


def test_more_than_two_classes_have_a_score_each(call, tmp_path):
    call("new", "s", declared("a", 'column = "y"\nkind = "int"'))
    table(tmp_path / "t.csv", ["1,7", "2,8", "3,9"], "a,y")
    call("learn", "s", "t.csv")
    head = call("predict", "s", "t.csv", "--scores").out.splitlines()[0]
    assert head == "prediction,score_7,score_8,score_9"
    told = call("predict", "s", "t.csv", "--json").json["predictions"]
    assert {type(answer["prediction"]) for answer in told} == {int}


def test_scores_of_classes(call, shop, tmp_path):
    people(tmp_path / "test.csv", seed=9)
    X, y, _ = rows_of("test.csv")
    told = call("predict", "--compare", "shop", "test.csv", "--json").json
    assert told["accuracy"] == Store("shop").model().score(X, y)
    assert [(c["class"], c["rows"]) for c in told["classes"]] == [
        (label, int((y == label).sum())) for label in ("no", "yes")
    ]
    assert "recall" in call("predict", "--compare", "shop", "test.csv").out


def test_a_label_never_learned_is_a_wrong_answer(call, shop, tmp_path):
    table(tmp_path / "t.csv", ["1,30,40,red,maybe", "2,30,40,red,no"])
    told = call("predict", "--compare", "shop", "t.csv", "--json").json
    assert [c["class"] for c in told["classes"]] == ["maybe", "no"]
    assert told["classes"][0]["recall"] == 0.0


@pytest.mark.parametrize("weighted", [True, False])
def test_scores_of_a_regression(call, tmp_path, weighted):
    target = 'column = "y"\nkind = "number"' + weighted * '\nweight = "w"'
    call("new", "s", declared("a", target))
    table(tmp_path / "t.csv", [f"{a},{3 * a + a % 2},{1 + a % 3}" for a in range(20)], "a,y,w")
    call("learn", "s", "t.csv")
    told = call("predict", "--compare", "s", "t.csv", "--json").json
    a = np.arange(20.0)
    sample_weight = 1 + a % 3 if weighted else None
    expected = Store("s").model().score(a[:, None], 3 * a + a % 2, sample_weight)
    assert told["r2"] == pytest.approx(expected, rel=1e-12)
    assert {"rmse", "mae"} < set(told)
    assert "--scores is for classes" in call("predict", "s", "t.csv", "--scores", code=2).err


def test_an_empty_store_has_no_answers(call, tmp_path):
    call("new", "s", declared("a"))
    table(tmp_path / "t.csv", ["1,u"], "a,y")
    for command in ("predict s t.csv", "predict --compare s t.csv", "export s m.onnx"):
        assert "holds no rows yet: traceless learn s" in call(command, code=2).err


def test_export_to_files(call, shop):
    import onnxruntime

    import traceless

    digest = call("status", "shop", "--json").json["digest"]
    assert call("export", "shop", "m.traceless", "--json").json["digest"] == digest
    assert traceless.load("m.traceless").digest() == digest
    assert digest in call("export", "shop", "m.onnx").out
    X, _, _ = rows_of("people.csv")
    session = onnxruntime.InferenceSession("m.onnx")
    labels = session.run(["label"], {"X": X})[0]
    assert labels.tolist() == Store("shop").model().predict(X).tolist()
    assert "must end in .traceless or .onnx" in call("export", "shop", "m.pkl", code=2).err
    assert call("export", "shop", "no/m.traceless", code=2).err.startswith("error: no/")


def test_intervals_are_those_of_the_model(call, prices):
    assert prices.rho == "evidence"
    said = call("predict", "prices", "sold.csv", "--interval", "0.9", "--json").json["predictions"]
    X = np.loadtxt("sold.csv", delimiter=",", skiprows=1)[:, :2]
    low, high = prices.predict_interval(X, 0.9)
    assert [row["low"] for row in said] == low.tolist()
    assert [row["high"] for row in said] == high.tolist()


@pytest.mark.parametrize(
    ("store", "option", "said"),
    [
        ("shop", ["--interval", "0.9"], "for numbers"),
        ("prices", ["--scores"], "for classes"),
        ("prices", ["--probabilities"], "for classes"),
        ("prices", ["--interval", "2"], "between 0 and 1"),
    ],
)
def test_answers_that_a_model_has_not_are_refused(call, shop, prices, store, option, said):
    file = {"shop": "people.csv", "prices": "sold.csv"}[store]
    assert said in call("predict", store, file, *option, code=2).err
