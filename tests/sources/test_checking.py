import datetime as dt

import pyarrow as pa
import pytest

from traceless.features import Category, Number, Table
from traceless.sources import Files, Schema
from traceless.sources.checking import check_table

SCHEMA = Schema(Table([Number("a"), Category("c", ("x",))]), ["y"], weight="w", id="p")


def test_all_problems_of_all_columns_are_found():
    table = pa.table(
        {
            "a": ["1", "?", "3", "?"],
            "c": ["x", "x", "z", "x"],
            "y": ["u", "", "u", "v"],
            "w": [dt.date(2024, 1, 1)] * 4,
            "p": [1, 2, None, 4],
        }
    )
    found = check_table(Files([table.slice(0, 2), table.slice(2)], SCHEMA))
    assert found.rows == 4
    assert [problem.split(":")[0].split(", ", 1)[1:] for problem in found.problems] == [
        ["row 2, column 'a'"],
        ["row 2, column 'y'"],
        [],  # the weights are no numbers: said once
        ["row 2, column 'a'"],  # of the second table
        ["row 1, column 'c'"],
        ["row 1, column 'p'"],
    ]
    assert found.labels == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,c,y,w\n1,x,u,1\n", "has no column 'p'"),
        ("a,c,y,w,p\n1,x,u,1,1\n1,x\n", "line 3: it has 2 values"),
        ("a,c,y,w,p\n", "There are no rows"),
    ],
)
def test_a_file_that_cannot_be_read_is_a_problem(tmp_path, text, said):
    (tmp_path / "t.csv").write_text(text)
    (problem,) = check_table(Files([str(tmp_path / "t.csv")], SCHEMA)).problems
    assert said in problem
