import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceless.exceptions import TableError
from traceless.features import Category, Number, Table
from traceless.sources import Files, Schema

SCHEMA = Schema(Table([Number("a"), Category("c", ("1", "x", ""))]), ["y"])


def read(tmp_path, text, schema=SCHEMA):
    path = tmp_path / "t.jsonl"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return Files([str(path)], schema).arrays()


def test_values_mean_what_they_mean_in_csv(tmp_path):
    X, y, _ = read(
        tmp_path,
        '\ufeff{"a": 1.5, "c": 1, "y": "u"}\n\n'
        '{"y": 3, "c": "x", "more": [{}], "a": "2"}\r\n'
        '{"a": null, "y": true}\n{"c": "", "y": "u", "a": NaN}',
    )
    nan = np.nan
    assert np.array_equal(X, [[1.5, 0], [2, 1], [nan, 2], [nan, 2]], equal_nan=True)
    assert y.tolist() == ["u", "3", "true", "u"]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_no_digit_is_lost(tmp_path_factory, values):
    text = "".join(json.dumps({"a": x, "y": "u"}) + "\n" for x in values)
    X, _, _ = read(tmp_path_factory.mktemp("t"), text, Schema(Table([Number("a")]), ["y"]))
    assert X[:, 0].tolist() == values


BAD = {
    "no JSON": ('{"a": 1, "y": 1}\n\n{"a": 1\n', "t.jsonl, line 3: it is not JSON"),
    "no object": ('{"a": 1, "y": 1}\n[1, 2]\n', "line 2: it is not a JSON object"),
    "nested": ('{"c": "x", "a": [1], "y": 1}\n', "line 1: 'a' holds a list or an object"),
    "twice": ('{"a": 1, "a": 2, "y": 1}\n', "line 1: it is not JSON in UTF-8 (a key is there twic"),
    "not UTF-8": (b'{"a": 1, "y": "\xff"}\n', "line 1: it is not JSON in UTF-8"),
    "empty": ("", "t.jsonl: it is empty"),
    "no such column": ('{"b": 1, "y": 1}\n', "t.jsonl has no column 'a'; it has 'b', 'y'"),
    "long": ('{"a": "' + "1" * 2**21 + '"}', "line 1: it is longer than 2097152 bytes"),
    "deep": ('{"a": ' * 20_000, "line 1: it is not JSON"),
    "unfit": ('{"a": 1, "c": "x", "y": 1}\n\n{"a": "b", "c": "x", "y": 1}\n', "line 3, column 'a'"),
}


@pytest.mark.parametrize(("text", "said"), BAD.values(), ids=BAD)
def test_bad_lines_are_refused_in_a_sentence(tmp_path, monkeypatch, text, said):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TableError) as caught:
        read(tmp_path, text, Schema(Table([Number("a"), Category("c", ("x",))]), ["y"]))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
