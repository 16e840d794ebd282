import hashlib
import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceless.sources import Boolean, Category, Date, Hashed, Number, Schema, TextFormat
from traceless.sources.cells import Cells

names = st.text(min_size=1, max_size=5)
numbers = st.builds(
    Number,
    names,
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(min_value=1e-6, max_value=1e6),
    st.none() | st.integers(-9, 9),
)
categories = st.builds(Category, names, st.lists(st.text(), min_size=1, unique=True).map(tuple))
hashes = st.builds(Hashed, names, st.integers(1, 1000))
booleans = st.builds(
    Boolean, names, st.just(("ja", "j")), st.just(("nein",)), st.sampled_from([None, "ja", "nein"])
)
dates = st.builds(
    Date,
    names,
    st.sampled_from(["2000-01-01", "1970-01-01T12:00Z"]),
    st.sampled_from(["days", "365.25 days"]),
    st.sampled_from([None, "%d.%m.%y"]),
    st.sampled_from([None, "2020-02-02"]),
)


def cells(values, name="c", **kwargs):
    return Cells(pa.array(values), name, "t.parquet", 0, typed=True, **kwargs)


def encoded(column, values):
    out = np.zeros((len(values), column.width))
    column.encode(cells(values, column.name), out)
    return out


@given(
    st.lists(
        numbers | categories | hashes | booleans | dates, min_size=1, unique_by=lambda c: c.name
    ),
    st.sampled_from(["text", "int", "number"]),
    st.booleans(),
    st.sampled_from([{}, {"id": "i" * 9}, {"text": TextFormat(";", ",", ["NA"])}]),
)
def test_a_schema_is_what_its_facts_say(columns, labels, weighted, more):
    taken = {c.name for c in columns}
    target, weight = "t" * 9, "w" * 9 if weighted else None
    assert not {target, weight} & taken
    schema = Schema(columns, [target], labels, weight, **more)
    assert Schema.from_facts(json.loads(json.dumps(schema.facts()))) == schema
    assert len(schema.feature_names) == schema.width


@pytest.mark.parametrize(
    "change",
    [
        {"columns": []},
        {"columns": [{"kind": "number"}]},
        {"columns": [{"kind": "eval", "name": "a"}]},
        {"columns": [{"kind": "number", "name": "a", "shift": float("nan"), "scale": 1.0}]},
        {"columns": [{"kind": "number", "name": "a", "shift": 0.0, "scale": 0.0}]},
        {"columns": [{"kind": "number", "name": "a", "shift": 0.0, "scale": True}]},
        {"columns": [{"kind": "number", "name": 3, "shift": 0.0, "scale": 1.0}]},
        {"columns": [{"kind": "hashed", "name": "a", "buckets": 10**12}]},
        {"columns": [{"kind": "hashed", "name": "a", "buckets": 2.0}]},
        {"columns": [{"kind": "category", "name": "a", "values": []}]},
        {"columns": [{"kind": "category", "name": "a", "values": ["x", "x"]}]},
        {"columns": [{"kind": "category", "name": "a", "values": [1]}]},
        {"columns": "number"},
        {"target": []},
        {"target": ["y", "z"]},
        {"target": ["a"]},
        {"target": [["y"]]},
        {"labels": "float"},
        {"labels": "number", "classes": ["a"]},
        {"classes": ["a", "a"]},
        {"columns": [{"kind": "number", "name": "a", "shift": 0.0, "scale": 1.0, "missing": "b"}]},
        {"columns": [{"kind": "number", "name": "a", "shift": 0.0, "scale": 1.0, "missing": None}]},
        {"columns": [{"kind": "boolean", "name": "a", "true": ["J"], "false": ["n"]}]},
        {"columns": [{"kind": "date", "name": "a", "origin": "x", "unit": "days"}]},
        {
            "columns": [
                {"kind": "number", "name": "a", "shift": 0.0, "scale": 1.0, "missing": 1.0},
                {"kind": "number", "name": "a missing", "shift": 0.0, "scale": 1.0},
            ]
        },
        {"id": "a"},
        {"id": None},
        {"text": {"delimiter": ",", "decimal": ".", "nulls": []}},
        {"text": {"delimiter": ";;", "decimal": ".", "nulls": []}},
        {"text": {"delimiter": ";", "decimal": "'", "nulls": []}},
        {"text": {"delimiter": ";", "decimal": ".", "nulls": ["NA", "NA"]}},
        {"text": None},
        {"more": 1},
    ],
)
def test_forged_facts_are_refused(change):
    facts = Schema([Number("a")], ["y"]).facts() | change
    with pytest.raises(ValueError, match="not the schema of a table"):
        Schema.from_facts(facts)


@pytest.mark.parametrize("facts", [None, [], 3, "x", {}, {"columns": None}])
def test_no_facts_at_all_are_refused(facts):
    with pytest.raises(ValueError, match="not the schema of a table"):
        Schema.from_facts(facts)


def test_categories_are_one_column_each_in_the_declared_order():
    assert encoded(Category("c", ("b", "a")), ["a", "b", "a"]).tolist() == [[0, 1], [1, 0], [0, 1]]


def test_a_number_and_its_text_are_the_same_category():
    column = Category("c", ("1", "2"))
    assert encoded(column, [2, 1]).tolist() == encoded(column, ["2", "1"]).tolist()


def test_an_unknown_category_is_named():
    with pytest.raises(ValueError, match=r"t.parquet, row 2, column 'c'.*'a', 'b'.*got 'x'"):
        encoded(Category("c", ("a", "b")), ["a", "x"])


def test_a_missing_category_is_refused_unless_declared():
    with pytest.raises(ValueError, match=r"row 2, column 'c'.*there is none"):
        encoded(Category("c", ("a", "b")), ["a", None])
    assert encoded(Category("c", ("a", "")), ["a", None, ""]).tolist() == [[1, 0], [0, 1], [0, 1]]


def test_a_bucket_is_blake2b_of_the_text():
    value = int.from_bytes(hashlib.blake2b(b"Z\xc3\xbcrich", digest_size=8).digest(), "little")
    out = encoded(Hashed("city", 64), ["Zürich", "Zürich", "Bern"])
    assert out[0].argmax() == out[1].argmax() == value % 64
    assert out.sum(axis=1).tolist() == [1, 1, 1]


@pytest.mark.parametrize("array", [pa.array(["1"]), pa.array([[1.0]]), pa.array([0], pa.date32())])
def test_numbers_must_have_the_type_of_numbers(array):
    with pytest.raises(ValueError, match="column 'a' must hold numbers, but is of type"):
        Cells(array, "a", "t", 0, typed=True).numbers()


@pytest.mark.parametrize("values", [[[1.0], None], [1.5, None], [b"a", None], [{"a": 1}, None]])
def test_words_must_have_the_type_of_words(values):
    for column in (Category("c", ("a", "")), Hashed("c", 4)):
        with pytest.raises(ValueError, match="column 'c' must hold text, whole numbers or truth"):
            encoded(column, values)


def test_decimals_are_rounded_once():
    import decimal

    texts = ["0.1", "123456789.123456789012345678", "1.005"]
    array = pa.array([decimal.Decimal(t) for t in texts], pa.decimal128(38, 18))
    assert Cells(array, "a", "t", 0, typed=True).numbers().tolist() == [float(t) for t in texts]


def test_labels_are_words_or_whole_numbers_as_declared():
    text, whole = Schema([Number("a")], ["y"]), Schema([Number("a")], ["y"], "int")
    assert text.target_of(cells([3, 4])).tolist() == ["3", "4"]
    assert text.target_of(cells([True])).tolist() == ["true"]
    assert whole.target_of(cells([3.0, 4.0])).tolist() == [3, 4]
    with pytest.raises(ValueError, match=r"row 2, column 'c': a whole number is needed, got 3\.5"):
        whole.target_of(cells([1.0, 3.5]))
    with pytest.raises(ValueError, match="must hold text"):
        text.target_of(cells([3.5]))
    with pytest.raises(ValueError, match=r"row 2.*label is missing"):
        text.target_of(cells(["a", ""]))


def test_declared_classes_are_the_only_labels():
    schema = Schema([Number("a")], ["y"], classes=("yes", "no"))
    assert schema.target_of(cells(["no", "yes"])).tolist() == ["no", "yes"]
    with pytest.raises(ValueError, match=r"row 2, .*'yes', 'no' is needed, got 'maybe'"):
        schema.target_of(cells(["no", "maybe"]))
