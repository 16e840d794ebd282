"""A selection is the table without the rows of others."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceless.exceptions import TableError
from traceless.features import Number, Table
from traceless.sources import Files, Schema, Selection

SCHEMA = Schema(Table([Number("a")]), ["y"], id="who")
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


def test_a_table_without_the_column_is_refused():
    bare = frame(["1"]).drop_columns("who")
    assert len(list(Files([bare], SCHEMA).rows("if there"))) == 1
    with pytest.raises(TableError, match="no column 'who'"):
        list(Selection([bare], SCHEMA, None, ["1"]).rows("if there"))
