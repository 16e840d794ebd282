"""Messages name columns and lines, where the library knows numbers."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from people import declared


@pytest.fixture
def store(call, tmp_path):
    columns = dict.fromkeys(("age", "height"), 'kind = "number"')
    columns["c"] = 'kind = "category", values = ["x", "z"]'
    call("new", "s", declared(columns, "y", '[id]\ncolumn = "p"'))
    (tmp_path / "t.csv").write_text('p,age,c,height,y\n\n1,30,x,1.5,u\n2,40,z,,"v"\n3,35,x,2,u\n')
    call("learn", "s", "t.csv")


@pytest.mark.parametrize(("row", "name"), [("9,1e30,x,1,u", "'age'"), ("9,1,x,1e30,u", "'height'")])
def test_a_value_beyond_the_grid_is_named(call, tmp_path, store, row, name):
    (tmp_path / "more.csv").write_text(f"p,age,c,height,y\n{row}\n")
    said = call("learn", "s", "more.csv", code=2).err
    assert f"Feature {name} takes the value 1e+30" in said


def test_features_of_a_polynomial_are_named(call, tmp_path):
    call("new", "p", declared("a,b", more='[model]\nmap = "polynomial"\ndegree = 2'))
    (tmp_path / "t.csv").write_text("a,b,y\n1,1e10,u\n2,3,v\n")
    said = call("learn", "p", "t.csv", code=2).err
    assert "b" in said.split("takes the value")[0]
    assert "Feature '" in said


def test_a_column_finer_than_the_grid_is_named(call, tmp_path):
    call("new", "f", declared("a,tiny"))
    rows = np.random.default_rng(0).normal(size=20) * 1e-6
    lines = [f"{k},{x!r},{'uv'[k % 2]}" for k, x in enumerate(rows.tolist())]
    (tmp_path / "t.csv").write_text("a,tiny,y\n" + "\n".join(lines))
    assert "Column 1 ('tiny') varies by less than" in call("learn", "f", "t.csv").err


def test_rows_that_are_not_held_are_named_by_their_lines(call, tmp_path, store):
    (tmp_path / "gone.csv").write_text("age,c,height,y\n30,x,1.5,u\n\n31,x,1,u\n32,x,1,u\n")
    said = call("forget", "s", "gone.csv", code=2).err
    assert "2 of 3 rows are not held here" in said
    assert "gone.csv, line 4; gone.csv, line 5" in said
    pq.write_table(pa.table({"age": [1], "c": ["x"], "height": [1.0], "y": ["u"]}), "gone.parquet")
    assert "gone.parquet, row 1" in call("forget", "s", "gone.parquet", code=2).err


def test_an_id_is_needed_to_learn_and_not_to_forget(call, tmp_path, store):
    (tmp_path / "no.csv").write_text("age,c,height,y\n30,x,1.5,u\n")
    assert "no.csv has no column 'p'" in call("learn", "s", "no.csv", code=2).err
    assert call("forget", "s", "no.csv", "--json").json["receipt"]["held"] == 2
    assert len(call("predict", "s", "no.csv").out.splitlines()) == 2
    assert call("predict", "--compare", "s", "t.csv", "--json").json["rows"] == 3
    (tmp_path / "other.csv").write_text("p,age,c,height,y\n7,40,z,,v\n")  # the row of another
    assert "not held here" in call("forget", "s", "other.csv", code=2).err
    (tmp_path / "own.csv").write_text("p,age,c,height,y\n 2.0,40,z,,v\n")
    call("forget", "s", "own.csv")


def test_values_that_read_like_columns_stay_as_they_are(call, tmp_path, store):
    (tmp_path / "t.csv").write_text("p,age,c,height,y\n1,Column 0,x,1,u\n")
    assert "got 'Column 0'." in call("learn", "s", "t.csv", code=2).err
