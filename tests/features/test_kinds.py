import decimal
import hashlib

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceless.features import Boolean, Category, Date, Hashed, Number, Table
from traceless.features.cells import Cells


def cells(values, decimal="."):
    array = values if isinstance(values, pa.Array | np.ndarray) else pa.array(values)
    return Cells(array, "c", "t", decimal=decimal)


def read(column, values):
    return column.numbers(values if isinstance(values, Cells) else cells(values)).tolist()


def written(column, values):
    x = np.array(read(column, values))
    out = np.zeros((len(x), column.width))
    column.write(x, out)
    return out.tolist()


ABSENT = {
    "text": ["1.5", ""],
    "blank text": [" 1.5", "  "],
    "null text": ["1.5", None],
    "text NaN": ["1.5", "NaN"],
    "null": [1.5, None],
    "NaN": [1.5, float("nan")],
    "decimals": [decimal.Decimal("1.5"), None],
    "dictionary": pa.array(["1.5", None]).dictionary_encode(),
    "objects": np.array([1.5, None], dtype=object),
    "text objects": np.array(["1.5", np.nan], dtype=object),
    "NA": np.array(["1.5", pd.NA], dtype=object),
    "NumPy text": np.array(["1.5", ""]),
    "decimal comma": cells(["1,5", ""], decimal=","),
}


@pytest.mark.parametrize("values", ABSENT.values(), ids=ABSENT)
def test_an_absent_number_is_the_same_everywhere(values):
    assert written(Number("c", shift=0.5, scale=2), values) == [[0.5, 0.0], [0.0, 1.0]]
    with pytest.raises(ValueError, match=r"t, row 1, column 'c': a number is .*as not required"):
        read(Number("c", required=True), values)


def test_columns_of_nothing_but_nulls():
    for column in (Number("c"), Boolean("c"), Category("c", ["a"]), Hashed("c", 2), Date("c")):
        assert np.isnan(read(column, pa.nulls(2))).all()
        assert np.isnan(read(column, np.array([None, np.nan], dtype=object))).all()


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_decimal_commas_lose_no_bit(x):
    for array in (pa.array([repr(x).replace(".", ",")]), np.array([repr(x).replace(".", ",")])):
        assert cells(array, ",").numbers().tolist() == [x]


@pytest.mark.parametrize("kind", [pa.array, np.array])
@pytest.mark.parametrize(
    ("decimal", "text", "said"),
    [
        (",", "1.234,5", "Write numbers without signs or blanks between the thousands"),
        (",", "1.5", "If '.' stands before the fraction, declare it: decimal = '.'"),
        (".", "1,234,567", "Write numbers without"),
        (".", "1 234", "Write numbers without"),
        (".", "1'234.5", "Write numbers without"),
        (".", "1,5", "If ',' stands before the fraction, declare it: decimal = ','"),
        (".", "0x10", "got '0x10'."),
        (".", "nan(7)", "got 'nan(7)'."),
        (",", "1,2,3", "got '1,2,3'."),
    ],
)
def test_other_ways_to_write_numbers_are_refused(kind, decimal, text, said):
    with pytest.raises(ValueError, match="row 1, column 'c': a number is needed") as caught:
        cells(kind(["1", text]), decimal).numbers()
    assert said in str(caught.value)


def test_a_number_that_its_scale_makes_infinite_is_named():
    with pytest.raises(ValueError, match=r"row 1, column 'c'.*stays finite.*got 1e\+300"):
        read(Number("c", scale=1e-10), [1.0, 1e300])
    with pytest.raises(ValueError, match="row 0, column 'c': a finite number is needed, got inf"):
        read(Number("c"), [float("inf")])


TRUTH = {
    "text": [" Yes", "no"],
    "digits": ["1", "0"],
    "truth": [True, False],
    "numbers": [1, 0],
    "floats": [1.0, 0.0],
    "words": ["TRUE", "False"],
    "categories": pa.array(["yes", "no"]).dictionary_encode(),
    "objects": np.array([True, 0], dtype=object),
}


@pytest.mark.parametrize("values", TRUTH.values(), ids=TRUTH)
def test_booleans_are_the_same_everywhere(values):
    assert read(Boolean("c"), values) == [1.0, 0.0]


def test_words_for_true_and_false_are_declared():
    column = Boolean("c", ("Ja",), ("nein",))
    assert written(column, ["ja", "NEIN", None]) == [[1, 0], [0, 0], [0, 1]]
    with pytest.raises(ValueError, match=r"row 0, .*one of the words ja, nein is needed"):
        read(column, ["yes"])
    with pytest.raises(ValueError, match=r"got 0\.5"):
        read(Boolean("c"), [0.5])


def test_categories_are_features_in_the_declared_order():
    assert written(Category("c", ["b", "a"]), ["a", "b", None]) == [[0, 1], [1, 0], [0, 0]]
    assert written(Category("c", ["a", ""]), ["a", None, ""]) == [[1, 0], [0, 1], [0, 1]]
    words = Category("c", ["1", "2"])
    for values in ([2, 1], [2.0, 1.0], np.array([2, 1]), np.array([2, "1"], dtype=object)):
        assert read(words, values) == read(words, ["2", "1"]) == [1.0, 0.0]
    assert Category("c", [1, np.int64(2)]) == words
    assert read(Category("c", ["Z\u00fcrich"]), ["Zu\u0308rich"]) == [0.0]


def test_an_unknown_category_is_named_or_counts_as_absent():
    with pytest.raises(
        ValueError, match=r"t, row 1, column 'c'.*'a', 'b'.*got 'x'.*unknown='zero'"
    ):
        read(Category("c", ["a", "b"]), ["a", "x"])
    column = Category("c", ["a", "b"], unknown="zero")
    assert written(column, ["a", "x", None]) == [[1, 0], [0, 0], [0, 0]]
    with pytest.raises(ValueError, match="a category is needed, there is none"):
        read(Category("c", ["a"], required=True), ["a", None])


def test_a_bucket_is_blake2b_of_the_text():
    value = int.from_bytes(hashlib.blake2b(b"Z\xc3\xbcrich", digest_size=8).digest(), "little")
    a, b, _, absent = read(Hashed("city", 64), ["Zürich", "Zu\u0308rich", "Bern", None])
    assert a == b == value % 64
    assert np.isnan(absent)


@pytest.mark.parametrize("values", [[[1.0], None], [b"a", None], [{"a": 1}, None]])
def test_words_and_numbers_must_be_such(values):
    for column in (Category("c", ["a"]), Hashed("c", 4), Number("c")):
        with pytest.raises(ValueError, match=r"column 'c' must hold .*, but is of type"):
            read(column, values)


@pytest.mark.parametrize("values", [[1.5, None], np.array([b"a", None], dtype=object)])
def test_what_is_no_word_is_refused(values):
    with pytest.raises(ValueError, match="row 0, column 'c': a text or a whole number is needed"):
        read(Hashed("c", 4), values)


def test_dates_must_be_declared():
    with pytest.raises(ValueError, match=r"of type timestamp\[us\]. Declare it as Date\('c'\)"):
        read(Number("c"), pa.array([0], pa.timestamp("us")))


def test_decimals_are_rounded_once():
    texts = ["0.1", "123456789.123456789012345678", "1.005"]
    values = [decimal.Decimal(t) for t in texts]
    for array in (pa.array(values, pa.decimal128(38, 18)), np.array(values, dtype=object)):
        assert read(Number("a"), array) == [float(t) for t in texts]


def test_arrays_of_categories_have_their_numbers():
    table = Table([Category("c", ["a", "b"]), Hashed("d", 3)])
    assert table.transform(np.array([[1.0, 2.0], [np.nan, 0.0]])).tolist() == [
        [0, 1, 0, 0, 1],
        [0, 0, 1, 0, 0],
    ]
    for wrong in (2.0, -1.0, 0.5):
        with pytest.raises(
            ValueError, match=r"Column 'c' has .*, where arrays have the numbers 0 t"
        ):
            table.transform(np.array([[wrong, 0.0]]))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Number(""),
        lambda: Number(3),
        lambda: Number("c", shift=float("nan")),
        lambda: Number("c", scale=0),
        lambda: Number("c", scale=True),
        lambda: Number("c", required=1),
        lambda: Boolean("c", ("a",), ("A",)),
        lambda: Boolean("c", (), ("a",)),
        lambda: Boolean("c", ("a", ""), ("b",)),
        lambda: Category("c", []),
        lambda: Category("c", "ab"),
        lambda: Category("c", ["x", "x"]),
        lambda: Category("c", [1.5]),
        lambda: Category("c", ["x"], unknown="drop"),
        lambda: Hashed("c", 10**12),
        lambda: Hashed("c", 2.0),
    ],
)
def test_bad_declarations_are_refused(make):
    with pytest.raises(ValueError, match=r"olumn"):
        make()
