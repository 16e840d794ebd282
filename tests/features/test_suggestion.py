import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest

from traceless.features import Boolean, Category, Date, Hashed, Number, Table

DAYS = [dt.date(2024, 1, 1) + dt.timedelta(days=k) for k in range(30)]
COLUMNS = {  # values of 30 rows: what is proposed, and a part of the reason
    "whole": (range(30), Number("whole"), "whole numbers from 0 to 29"),
    "codes": ([1, 2, 3] * 10, Number("codes"), "if they are codes, declare a category"),
    "numbers": ([k / 8 for k in range(30)], Number("numbers"), "numbers from 0 to 3.625"),
    "tiny": ([k / 2**14 for k in range(30)], Number("tiny", 0.001, 0.0005), "so little spread"),
    "gaps": ([None, *range(20, 49)], Number("gaps"), "1 missing"),
    "odd": ([*map(str, range(28)), "1.078,4", "?"], Number("odd"), "'1.078,4', '?' is no number"),
    "truth": ([True, False] * 15, Boolean("truth"), "true or false"),
    "answers": (["yes", "no", None] * 10, Boolean("answers"), "10 missing"),
    "days": (DAYS, Date("days"), "dates"),
    "iso": ([day.isoformat() for day in DAYS], Date("iso"), "dates"),
    "german": (
        [day.strftime("%d.%m.%Y") for day in DAYS],
        Date("german", format="%d.%m.%Y"),
        "dates as %d.%m.%Y",
    ),
    "slashes": (
        ["01/02/2024", "02/01/2024"] * 15,
        Date("slashes", format="%d/%m/%Y"),
        "may also be",
    ),
    "words": (["a", "b,c", "d"] * 10, Category("words", ["a", "b,c", "d"]), "3 different words"),
    "some": (["a", None, "b"] * 10, Category("some", ["a", "b"]), "10 missing"),
    "rare": (
        ["a"] * 14 + ["b"] * 14 + ["Mr. X", "Mrs. Y"],
        Category("rare", ["a", "b"], unknown="zero"),
        "others (2) are not listed",
    ),
    "many": ([f"w{k % 25}" for k in range(30)], Hashed("many", 32), "25 different words"),
    "texts": ([f"text {k}" for k in range(30)], None, "left out: nearly every row"),
    "same": (["x"] * 30, None, "left out: always 'x'"),
    "none": ([None] * 30, None, "left out: always 'missing'"),
    "person id": ([k // 2 for k in range(30)], None, "those of ids"),
    "Patient-Nr.": (range(30), None, "those of ids"),
    "Kunden-ID": (range(30), None, "those of ids"),
    "row": ([f"{k:04d}" for k in range(30)], None, "those of ids"),
    "zip": ([f"0{k % 2}123" for k in range(30)], Category("zip", ["00123", "01123"]), "2 differ"),
    "Unnamed: 0": (range(30), None, "those of ids"),
    "Kundennr": ([f"00{k % 9}1" for k in range(30)], None, "those of ids"),
    "customerId": ([k // 4 for k in range(30)], None, "those of ids"),
    "raucht": (["ja", "Nein", None] * 10, Boolean("raucht", ["ja"], ["nein"]), "10 missing"),
    "comma": (["1.234,5", "2,5", "7,25"] * 10, None, "not written as 1234.5"),
}
FRAMES = {
    "pandas": lambda columns: pd.DataFrame(columns),
    "polars": lambda columns: pl.DataFrame(columns, strict=False),
    "arrow": lambda columns: pl.DataFrame(columns, strict=False).to_arrow(),
    "dict": lambda columns: columns,
    "rows": lambda columns: [
        dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
    ],
}


@pytest.mark.parametrize("kind", FRAMES)
def test_each_column_is_seen_for_what_it_is(kind):
    columns = {name: list(values) for name, (values, _, _) in COLUMNS.items()}
    frame = FRAMES[kind](columns | {"y": ["u", "v"] * 15})
    table = Table.suggest(frame, target="y")
    wanted = [column for _, column, _ in COLUMNS.values() if column is not None]
    assert list(table.columns) == wanted
    assert list(table.reasons) == list(COLUMNS)
    for name, (_, _, reason) in COLUMNS.items():
        assert reason in table.reasons[name]
        assert reason in str(table)
    declared = [c for c in wanted if c.name != "odd"]
    assert Table(declared).rows(frame).shape == (30, len(declared))
    with pytest.raises(ValueError, match=r"column 'odd': a number is needed, got '1.078,4'"):
        table.rows(frame)


def test_no_rare_word_is_written_down(tmp_path):
    table = Table.suggest({"c": ["a"] * 9 + ["secret"] + ["b"] * 5, "d": ["x", "y", "z"] * 5})
    table.save(tmp_path / "t.toml")
    assert "secret" not in (tmp_path / "t.toml").read_text()


def test_blank_rows_are_no_absent_values():
    table = Table.suggest({"a": ["1", "2", "", "3", ""], "b": ["x", "y", "", "x", ""]})
    assert "missing" not in str(table)


def test_a_pandas_index_is_no_column():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}).set_index("b")
    assert [column.name for column in Table.suggest(frame).columns] == ["a"]
    import pyarrow as pa

    stored = pa.Table.from_pandas(frame)
    assert [column.name for column in Table.suggest(stored).columns] == ["a"]
    with pytest.raises(ValueError, match="no column 'b'; it has 'a'"):
        Table([Number("b")]).rows(stored)


def test_scales_are_proposed_if_they_are_asked_for():
    (column,) = Table.suggest({"a": [1000.0 + k for k in range(10)]}, scales=True).columns
    assert column == Number("a", 1005, 3)


def test_columns_that_cannot_be_declared_are_left_out():
    frame = pl.DataFrame({"list": [[1], [2]], "time": [dt.time(1), dt.time(2)], "a": [1, 2]})
    table = Table.suggest(frame)
    assert [column.name for column in table.columns] == ["a"]
    assert "cannot be declared" in table.reasons["list"]
    with pytest.raises(ValueError, match="No column is left to learn from"):
        Table.suggest(frame, target="a")


def test_what_cannot_be_proposed_for():
    with pytest.raises(TypeError, match="needs a frame with named columns, got ndarray"):
        Table.suggest(np.eye(3))
    with pytest.raises(ValueError, match="has no column 'z'; it has 'a'"):
        Table.suggest({"a": [1, 2]}, target="z")
