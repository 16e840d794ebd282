import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceless.sources import Boolean, Number
from traceless.sources.cells import Cells, canonical_id


def cells(array, typed=True, decimal="."):
    return Cells(pa.array(array), "c", "t", 0, typed, decimal)


def encoded(column, given):
    out = np.zeros((len(given.array), column.width))
    column.encode(given, out)
    return out.tolist()


MISSING = {
    "text": cells(["1.5", ""], typed=False),
    "blank text": cells([" 1.5", "  "], typed=False),
    "JSON null": cells(["1.5", None], typed=False),
    "text NaN": cells(["1.5", "NaN"], typed=False),
    "null": cells([1.5, None]),
    "NaN": cells([1.5, float("nan")]),
    "decimal comma": cells(["1,5", ""], typed=False, decimal=","),
}


@pytest.mark.parametrize("given", MISSING.values(), ids=MISSING)
def test_a_missing_number_is_the_same_in_every_format(given):
    with pytest.raises(ValueError, match=r"t, row 2, column 'c': a number .*--missing c=VALUE"):
        encoded(Number("c"), given)
    column = Number("c", shift=0.5, scale=2, missing=40)
    assert encoded(column, given) == [[0.5, 0.0], [19.75, 1.0]]


def test_columns_of_nothing_but_nulls():
    assert encoded(Number("c", missing=0), Cells(pa.nulls(2), "c", "t", 0, True)) == [[0, 1]] * 2


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_decimal_commas_lose_no_bit(x):
    assert cells([repr(x).replace(".", ",")], typed=False, decimal=",").numbers().tolist() == [x]


@pytest.mark.parametrize(
    ("decimal", "text", "said"),
    [
        (",", "1.234,5", "Write numbers without signs or blanks between the thousands"),
        (",", "1.5", "If '.' stands before the fraction, declare --decimal '.'"),
        (".", "1,234,567", "Write numbers without"),
        (".", "1 234", "Write numbers without"),
        (".", "1'234.5", "Write numbers without"),
        (".", "1,5", "If ',' stands before the fraction, declare --decimal ','"),
        (".", "0x10", "got '0x10'."),
        (".", "nan(7)", "got 'nan(7)'."),
        (",", "1,2,3", "got '1,2,3'."),
    ],
)
def test_other_ways_to_write_numbers_are_refused(decimal, text, said):
    with pytest.raises(ValueError, match="a number is needed") as caught:
        cells(["1", text], typed=False, decimal=decimal).numbers()
    assert said in str(caught.value)


def test_a_number_that_its_scale_makes_infinite_is_named():
    with pytest.raises(ValueError, match=r"row 2, column 'c'.*stays finite.*got 1e\+300"):
        encoded(Number("c", scale=1e-10), cells([1.0, 1e300]))


BOOLEANS = {
    "text": cells([" Yes", "no"], typed=False),
    "digits": cells(["1", "0"], typed=False),
    "truth": cells([True, False]),
    "numbers": cells([1, 0]),
    "floats": cells([1.0, 0.0]),
    "words": cells(["TRUE", "False"]),
    "categories": Cells(pa.array(["yes", "no"]).dictionary_encode(), "c", "t", 0, True),
}


@pytest.mark.parametrize("given", BOOLEANS.values(), ids=BOOLEANS)
def test_booleans_are_the_same_in_every_format(given):
    assert encoded(Boolean("c"), given) == [[1.0], [0.0]]


def test_words_for_true_and_false_are_declared():
    column = Boolean("c", ("Ja",), ("nein",), missing="nein")
    assert encoded(column, cells(["ja", "NEIN", None])) == [[1, 0], [0, 0], [0, 1]]
    with pytest.raises(
        ValueError, match=r"row 1, .*one of the words ja, nein is needed, got 'yes'"
    ):
        encoded(column, cells(["yes"]))
    with pytest.raises(ValueError, match="a word is needed, there is none"):
        encoded(Boolean("c"), cells([True, None]))
    with pytest.raises(ValueError, match=r"got 0\.5"):
        encoded(Boolean("c"), cells([0.5]))


@pytest.mark.parametrize(
    "declared", [(("a",), ("A",)), ((), ("a",)), (("a", ""), ("b",)), (("a",), ("b",), "c")]
)
def test_bad_words_for_booleans_are_refused(declared):
    with pytest.raises(ValueError, match=r"olumn 'c'"):
        Boolean("c", *declared)


IDS = {
    "whole": cells([17, 23]),
    "floats": cells([17.0, 23.0]),
    "CSV": cells(["17", " 23 "], typed=False),
    "CSV of floats": cells(["17.0", "23.00"], typed=False),
    "text": cells(["17", "23"]),
    "decimals": Cells(pa.array([17, 23]).cast(pa.decimal128(25, 2)), "c", "t", 0, True),
    "unsigned": Cells(pa.array([17, 23], pa.uint64()), "c", "t", 0, True),
    "categories": Cells(pa.array(["17", "23"]).dictionary_encode(), "c", "t", 0, True),
}


@pytest.mark.parametrize("given", IDS.values(), ids=IDS)
def test_an_id_is_the_same_in_every_format(given):
    assert given.ids() == ["17", "23"]


def test_texts_are_ids_as_they_stand():
    texts = ["017", "1e3", "a.0", "-5", "x y", "17.5"]
    assert cells(texts, typed=False).ids() == texts
    assert [canonical_id(text) for text in texts] == texts
    assert canonical_id("Zu\u0308rich") == canonical_id("Zürich")  # typed in two ways
    assert canonical_id(" 17.0") == "17"


@pytest.mark.parametrize("bad", [["a", ""], ["a", None], [1.0, float("nan")], [1.0, 2.5]])
def test_every_row_has_an_id(bad):
    with pytest.raises(ValueError, match=r"row 2, column 'c': a.* is needed"):
        cells(bad).ids()


def test_one_long_id_does_not_take_the_memory_of_many():
    assert len(cells(["u"] * 65_535 + ["u" * 2**20]).ids()[-1]) == 2**20
