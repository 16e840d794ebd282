import datetime as dt

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from traceless.sources.suggestion import suggest

DAYS = [dt.date(2024, 1, 1) + dt.timedelta(days=k) for k in range(30)]
COLUMNS = {  # values of 30 rows: what is proposed, and a part of the reason
    "whole": (range(30), ("--columns", "whole"), "whole numbers from 0 to 29"),
    "codes": ([1, 2, 3] * 10, ("--columns", "codes"), "if they are codes, declare --category"),
    "numbers": ([k / 8 for k in range(30)], ("--columns", "numbers"), "numbers from 0 to 3.625"),
    "tiny": (
        [k / 2**14 for k in range(30)],
        ("--columns", "tiny", "--scale", "tiny=0.001:0.0005"),
        "so little spread",
    ),
    "gaps": ([None, *range(20, 49)], ("--columns", "gaps", "--missing", "gaps=30"), "1 missing"),
    "truth": ([True, False] * 15, ("--boolean", "truth"), "true or false"),
    "answers": (
        ["yes", "no", None] * 10,
        ("--boolean", "answers", "--missing", "answers=no"),
        "10",
    ),
    "days": (DAYS, ("--date", "days"), "dates"),
    "german": (
        [day.strftime("%d.%m.%Y") for day in DAYS],
        ("--date", "german=%d.%m.%Y"),
        "dates as %d.%m.%Y",
    ),
    "slashes": (["01/02/2024", "02/01/2024"] * 15, ("--date", "slashes=%d/%m/%Y"), "may also be"),
    "words": (["a", "b,c", "d"] * 10, ("--category", 'words=a,"b,c",d'), "3 different words"),
    "some": (["a", None, "b"] * 10, ("--category", "some=a,b,"), "10 missing"),
    "many": ([f"w{k % 25}" for k in range(30)], ("--hash", "many=32"), "25 different words"),
    "texts": ([f"text {k}" for k in range(30)], (), "left out: nearly every row"),
    "same": (["x"] * 30, (), "left out: always 'x'"),
    "none": ([None] * 30, (), "left out: always 'missing'"),
    "person id": ([k // 2 for k in range(30)], ("--id", "person id"), "15 different ids"),
    "order_id": (range(30), (), "left out: its name is that of an id"),
    "__index_level_0__": (range(30), (), "left out: an index of pandas"),
    "y": (["u", "v"] * 15, (), "the target: 2 labels"),
}


@pytest.mark.parametrize("kind", ["csv", "parquet", "semicolons"])
def test_each_column_is_seen_for_what_it_is(tmp_path, kind):
    table = pa.table({name: list(values) for name, (values, _, _) in COLUMNS.items()})
    path = str(tmp_path / ("t.parquet" if kind == "parquet" else "t.csv"))
    if kind == "parquet":
        pq.write_table(table, path)
    else:
        signs = {"sep": ";", "decimal": ",", "na_rep": "NA"} if kind == "semicolons" else {}
        table.to_pandas().astype({"gaps": "Int64"}).to_csv(path, index=False, **signs)
    found = suggest(path, ["y"])
    assert found.rows == 30
    assert [one.column for one in found.proposals] == list(COLUMNS)
    for one in found.proposals:
        _, options, reason = COLUMNS[one.column]
        assert one.options == options
        assert reason in one.reason
    if kind == "semicolons":
        assert (found.text.delimiter, found.text.decimal, found.text.nulls) == (";", ",", ("NA",))


@pytest.mark.parametrize("values", [[0.5, 1, 2] * 5, list(range(30))])
def test_targets_that_are_numbers_are_a_regression(tmp_path, values):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "".join(f"{k},{y}\n" for k, y in enumerate(values)))
    assert suggest(str(path), ["y"]).proposals[1].options == ("--regression", "")


def test_scales_are_proposed_if_they_are_asked_for(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "".join(f"{1000 + k},u\n" for k in range(10)))
    (a, _) = suggest(str(path), ["y"], scales=True).proposals
    assert a.options == ("--columns", "a", "--scale", "a=1005:3")


def test_only_so_many_rows_are_looked_at(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "1,u\n2,v\n" * 10 + "word,u\n")
    found = suggest(str(path), ["y"], rows=20)
    assert found.rows == 20
    assert found.proposals[0].options == ("--columns", "a")


def test_columns_that_cannot_be_declared_are_left_out(tmp_path):
    pq.write_table(
        pa.table(
            {
                "list": [[1], [2]],
                "time": [dt.time(1), dt.time(2)],
                "digits": ["1", "2"],  # a Parquet column of text, which is no column of numbers
                "y": [1, 2],
            }
        ),
        tmp_path / "t.parquet",
    )
    found = suggest(str(tmp_path / "t.parquet"), ["y"])
    assert [one.options for one in found.proposals] == [(), (), ("--category", "digits=1,2"), ()]
    assert "a column of type list" in found.proposals[0].reason


def test_a_target_that_is_not_there_is_refused(tmp_path):
    (tmp_path / "t.csv").write_text("a;y\n1;u\n")
    with pytest.raises(ValueError, match="has no column 'z'; it has 'a', 'y'"):
        suggest(str(tmp_path / "t.csv"), ["z"])
