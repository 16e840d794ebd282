import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceless.features import Boolean, Category, Date, Hashed, Number, Table
from traceless.features.cells import Cells
from traceless.sources import Schema, TextFormat
from traceless.sources.schema import ids_of, weights_of

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)
finite = st.floats(allow_nan=False, allow_infinity=False)
words = st.lists(st.text(st.characters(codec="ascii")), min_size=1, unique=True)
numbers = st.builds(Number, names, finite, st.floats(1e-6, 1e6), required=st.booleans())
categories = st.builds(Category, names, words, unknown=st.sampled_from(["refuse", "zero"]))
hashes = st.builds(Hashed, names, st.integers(1, 1000))
booleans = st.builds(Boolean, names, st.just(("ja", "j")), st.just(("nein",)))
dates = st.builds(
    Date,
    names,
    st.sampled_from(["2000-01-01", "1970-01-01T12:00Z"]),
    st.sampled_from(["days", "365.25 days"]),
    st.sampled_from([None, "%d.%m.%y"]),
)
tables = st.lists(
    numbers | categories | hashes | booleans | dates, min_size=1, unique_by=lambda c: c.name
)


def cells(values):
    return Cells(pa.array(values), "c", "t.parquet")


@given(
    tables,
    st.sampled_from(["text", "int", "number"]),
    st.booleans(),
    st.sampled_from([{}, {"id": "i" * 9}, {"text": TextFormat(";", ",", "cp1252", ["NA"])}]),
)
def test_a_schema_is_what_its_facts_and_its_text_say(columns, labels, weighted, more):
    import tomllib

    try:
        table = Table(columns)
        table.digest()
        assert table.names
    except ValueError:  # features of the same name
        return
    schema = Schema(table, ["t" * 9], labels, "w" * 9 if weighted else None, **more)
    stored = json.loads(json.dumps(schema.facts(), sort_keys=True))  # as a ledger has them
    for facts in (stored, tomllib.loads(str(schema))):
        again = Schema.from_facts(facts)
        assert again.facts() == schema.facts()
        assert again.table.digest() == table.digest()
        assert again.table.names == table.names  # in their order


@pytest.mark.parametrize(
    "change",
    [
        {"table": {"columns": {}}},
        {"table": {"columns": {"a": {}}}},
        {"table": {"columns": {"a": {"kind": "eval"}}}},
        {"table": {"columns": {"a": {"kind": "number", "scale": 0.0}}}},
        {"table": {"columns": {"a": {"kind": "number", "missing": 3}}}},
        {"table": {"columns": {"a": {"kind": "hashed"}}}},
        {"table": {"columns": {"a": {"kind": "category", "values": []}}}},
        {"table": {"columns": {"a": 3}}},
        {"table": {"columns": "number"}},
        {"table": {"columns": {"a": {"kind": "number"}}, "resolution": 0.3}},
        {"table": {"columns": {"a": {"kind": "number"}}, "bais": False}},
        {"table": None},
        {"target": {"column": [], "kind": "int"}},
        {"target": {"column": ["y", "z"]}},
        {"target": {"column": "a"}},
        {"target": {"column": [["y"]]}},
        {"target": {"column": "y", "kind": "float"}},
        {"target": {"column": "y", "kind": "number", "classes": ["a"]}},
        {"target": {"name": "y"}},
        {"target": "y"},
        {"id": {"column": "a"}},
        {"read": {"delimiter": ";;"}},
        {"read": {"decimal": "'"}},
        {"read": {"encoding": "latin-99"}},
        {"read": {"null": [3]}},
        {"read": {"sep": ";"}},
    ],
)
def test_what_is_no_schema_is_refused(change):
    facts = Schema(Table([Number("a")]), ["y"]).facts() | change
    with pytest.raises((ValueError, TypeError)):
        Schema.from_facts(facts)


@pytest.mark.parametrize("facts", [None, [], 3, "x", {}])
def test_no_facts_at_all_are_refused(facts):
    with pytest.raises(ValueError, match=r"section|Sections"):
        Schema.from_facts(facts)


def test_labels_are_words_or_whole_numbers_as_declared():
    table = Table([Number("a")])
    text, whole = Schema(table, ["y"]), Schema(table, ["y"], "int")
    assert text.target_of(cells([3, 4])).tolist() == ["3", "4"]
    assert text.target_of(cells([True])).tolist() == ["true"]
    for values in ([3.0, 4.0], ["3", " 4"], [3, 4]):
        assert whole.target_of(cells(values)).tolist() == [3, 4]
    with pytest.raises(ValueError, match=r"row 1, column 'c': a text or a whole number is needed"):
        whole.target_of(cells([1.0, 3.5]))
    with pytest.raises(ValueError, match=r"row 0, .*a whole number is needed, got 'x'"):
        whole.target_of(cells(["x"]))
    with pytest.raises(ValueError, match=r"row 1.*label is missing"):
        text.target_of(cells(["a", ""]))


def test_declared_classes_are_the_only_labels():
    schema = Schema(Table([Number("a")]), ["y"], classes=("yes", "no"))
    assert schema.target_of(cells(["no", "yes"])).tolist() == ["no", "yes"]
    with pytest.raises(ValueError, match=r"row 1, .*'yes', 'no' is needed, got 'maybe'"):
        schema.target_of(cells(["no", "maybe"]))


def test_weights_and_targets_are_never_absent():
    schema = Schema(Table([Number("a")]), ["y"], "number")
    for read in (schema.target_of, weights_of):
        with pytest.raises(ValueError, match="row 1, column 'c': a number is needed"):
            read(cells([1.0, None]))


IDS = {
    "whole": [17, 23],
    "floats": [17.0, 23.0],
    "CSV": ["17", " 23 "],
    "CSV of floats": ["17.0", "23.00"],
    "decimals": pa.array([17, 23]).cast(pa.decimal128(25, 2)),
    "unsigned": pa.array([17, 23], pa.uint64()),
    "categories": pa.array(["17", "23"]).dictionary_encode(),
}


@pytest.mark.parametrize("values", IDS.values(), ids=IDS)
def test_an_id_is_the_same_in_every_format(values):
    assert ids_of(cells(values)) == ["17", "23"]


def test_texts_are_ids_as_they_stand():
    texts = ["017", "1e3", "a.0", "-5", "x y", "17.5"]
    assert ids_of(cells(texts)) == texts


@pytest.mark.parametrize("bad", [["a", ""], ["a", None], [1.0, float("nan")], [1.0, 2.5]])
def test_every_row_has_an_id(bad):
    with pytest.raises(ValueError, match=r"row 1, column 'c': a.* is needed"):
        ids_of(cells(bad))


def test_one_long_id_does_not_take_the_memory_of_many():
    assert len(ids_of(cells(["u"] * 65_535 + ["u" * 2**20]))[-1]) == 2**20


def test_classes_and_columns_as_arrays_of_numpy():
    assert np.array_equal(Schema(Table([Number("a")]), ["y"]).target_of(cells(["a"])), ["a"])
