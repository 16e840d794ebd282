"""A selection is the table without the rows of others."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceless.exceptions import TableError
from traceless.sources import Number, Schema, Selection, Table

SCHEMA = Schema([Number("a")], ["y"], id="who")
IDS = st.lists(st.sampled_from(["1", "2", "3", "017", "Zoë"]), min_size=1, max_size=30)


def frame(ids):
    rows = {"who": ids, "a": list(range(len(ids))), "y": ["u"] * len(ids)}
    return pa.table(rows)


@given(IDS, IDS, st.integers(1, 7))
def test_the_rows_of_ids_in_their_order(first, second, batch_rows):
    wanted = ["2", "Zoë"]
    selection = Selection([frame(first), frame(second)], SCHEMA, None, wanted)
    selection._batch_rows = batch_rows
    kept = [k for ids in (first, second) for k, one in enumerate(ids) if one in wanted]
    named = [one for one in first + second if one in wanted]
    found, error = [], None
    try:
        found = list(selection.rows())
    except TableError as refused:
        error = str(refused)
    lost = [one for one in wanted if one not in named]
    assert (error is not None) == bool(lost)
    assert all(one in (error or "") for one in lost)
    assert selection.found == {one: named.count(one) for one in set(named)}
    if not lost:
        assert [a for X, *_ in found for a in X[:, 0]] == kept
        assert [one for *_, ids in found for one in ids] == named


def test_rows_are_named_as_in_the_whole_file(tmp_path):
    lines = ["who,a,y", "1,1,u", "2,2,u", "1,x,u", "2,3,", "2,4,u"]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines) + "\n")
    chosen = [Selection([str(path)], SCHEMA, None, [one]) for one in ("1", "2")]
    with pytest.raises(TableError, match="line 4, column 'a': a number is needed, got 'x'"):
        list(chosen[0].rows())
    with pytest.raises(TableError, match="line 5, column 'y': the label is missing"):
        list(chosen[1].rows())
    path.write_text("\n".join([*lines[:3], lines[5]]) + "\n")
    list(chosen[1].rows())
    assert chosen[1].place_of(1) == f"{path}, line 4"


def test_every_format_has_the_same_ids(tmp_path):
    pq.write_table(
        pa.table({"who": [1.0, 2.0], "a": [5, 6], "y": ["u", "v"]}), tmp_path / "t.parquet"
    )
    (tmp_path / "t.csv").write_text("who,a,y\n1,5,u\n 2.0,6,v\n")
    for kind in ("parquet", "csv"):
        ((X, y, _, ids),) = Selection([str(tmp_path / f"t.{kind}")], SCHEMA, None, ["2"]).rows()
        assert (X.tolist(), y.tolist(), ids) == ([[6.0]], ["v"], ["2"])


def test_a_table_without_the_column_is_refused():
    bare = frame(["1"]).drop_columns("who")
    assert len(list(Table([bare], SCHEMA).rows("if there"))) == 1
    with pytest.raises(TableError, match="no column 'who'"):
        list(Selection([bare], SCHEMA, None, ["1"]).rows("if there"))
