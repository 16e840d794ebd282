import csv
import json
import tomllib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from traceless.features.suggestion import REMARK

COLUMNS = {
    "numbers": st.none() | st.floats(-1e6, 1e6).map(repr),
    "commas": st.none() | st.integers(0, 999).map(lambda k: f"{k},5"),
    "words": st.none() | st.sampled_from(["a", 'b"', "c,d", "é", "x;y", "-"]),
    "truth": st.none() | st.sampled_from(["yes", "no", "TRUE", "0"]),
    "days": st.none() | st.dates().map(str),
    "german": st.none() | st.dates().map(lambda day: f"{day:%d.%m.}{day.year:04d}"),
    "many": st.integers(0, 60).map(lambda k: f"w{k}"),
    "patient": st.integers(1, 9).map(str),
    "null": st.sampled_from(["1", "2.5", "NA", "3", ""]),
}


@given(
    st.lists(
        st.fixed_dictionaries(COLUMNS | {"y": st.sampled_from("uv")}), min_size=3, max_size=60
    ),
    st.sampled_from([",", ";", "\t", "jsonl", "parquet"]),
)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_the_rows_fit_what_is_proposed_for_them(call, tmp_path, rows, sign):
    names = [*COLUMNS, "k", "y"]
    rows = [row | {"k": str(k + 0.5)} for k, row in enumerate(rows)]
    path = tmp_path / (f"t.{sign}" if len(sign) > 1 else "t.csv")
    if sign == "parquet":
        pq.write_table(
            pa.Table.from_pylist(rows, pa.schema([(n, pa.string()) for n in names])), path
        )
    elif sign == "jsonl":
        path.write_text("\n".join(json.dumps({n: row[n] for n in names}) for row in rows))
    else:
        with path.open("w", newline="") as file:
            table = csv.DictWriter(file, names, delimiter=sign, quoting=csv.QUOTE_ALL)
            table.writeheader()
            table.writerows(rows)
    found = call("suggest", path.name, "--target", "y", "--json").json
    assert list(found["reasons"]) == names[:-1]
    assert all(found["reasons"].values())
    assert found["remark"] == REMARK
    text = call("suggest", path.name, "--target", "y").out
    assert {*tomllib.loads(text)} >= {"table", "target"}
    (tmp_path / "m.toml").write_text(text)
    answer = call("new", "s", "m.toml", "--check", path.name, "--json", code=None).json
    assert "problems" in answer, (answer, text)
    odd = [name for name, why in found["reasons"].items() if "will be refused" in why]
    assert all(any(f"column {name!r}" in said for name in odd) for said in answer["problems"])
    assert answer["rows"] == len(rows)


def test_what_is_proposed_can_be_used(call, tmp_path):
    """As Excel writes it: cp1252, semicolons, its own first line, decimal commas, blank rows."""
    rows = [
        f"{k:04d};{k % 7},5;{'männlich' if k % 2 else 'weiblich'};{'uv'[k % 3 > 0]}"
        for k in range(40)
    ]
    lines = ["sep=;", "Kunden-ID;Größe;Geschlecht;y", *rows, ";;;", ";;;"]
    (tmp_path / "my file.csv").write_bytes("\r\n".join(lines).encode("cp1252"))
    said = call("suggest", "my file.csv", "--target", "y").out
    facts = tomllib.loads(said)
    assert facts["id"] == {"column": "Kunden-ID"}
    assert facts["table"]["columns"] == {
        "Größe": {"kind": "number"},
        "Geschlecht": {"kind": "category", "values": ["männlich", "weiblich"]},
    }
    assert facts["read"] == {"delimiter": ";", "decimal": ",", "encoding": "cp1252"}
    (tmp_path / "m.toml").write_text(said)
    call("new", "s", "m.toml")
    assert call("learn", "s", "my file.csv", "--json").json["receipt"]["held"] == 40
    (tmp_path / "utf8.csv").write_bytes("\r\n".join(lines).encode("utf-8-sig"))
    again = call("predict", "--compare", "s", "utf8.csv", "--read", "encoding=utf-8", "--json").json
    assert again["rows"] == 40
    assert call("verify", "s", "utf8.csv", "--read", "encoding=utf-8", "--json").json["ok"]
    said = call("verify", "s", "my file.csv", "--read", "encoding=utf-8", code=2).err
    assert 'save it as "CSV UTF-8", or say how it is written: encoding = "cp1252"' in said


def test_excels_unicode_text_and_files_that_no_delimiter_fits(call, tmp_path):
    rows = [f"{k}\t{k % 7},5\t{'uv'[k % 2]}" for k in range(30)]
    (tmp_path / "t.csv").write_bytes("\r\n".join(["ID\tGröße\ty", *rows]).encode("utf-16"))
    said = call("suggest", "t.csv", "--target", "y").out
    facts = tomllib.loads(said)
    assert facts["read"] == {"delimiter": "\t", "decimal": ",", "encoding": "utf-16"}
    (tmp_path / "m.toml").write_text(said)
    call("new", "s", "m.toml")
    assert call("learn", "s", "t.csv", "--json").json["receipt"]["held"] == 30
    wrong = call("learn", "s", "t.csv", "--read", "encoding=utf-8", code=2).err
    assert 'encoding = "utf-16"' in wrong
    for lines, message in {
        "a,b,y\n1,5,2,u\n": "line 2: it has 4 values, and the header 3 columns",
        "a;b;a\n1;2;3\n": "has the column 'a' more than once",
    }.items():
        (tmp_path / "bad.csv").write_text(lines)
        assert message in call("suggest", "bad.csv", "--target", "y", code=2).err


def test_umlauts_in_two_forms_are_one_name(call, tmp_path):
    (tmp_path / "t.csv").write_text("Gro\u0308ße,y\n1,u\n2,v\n")
    (tmp_path / "m.toml").write_text(
        '[table.columns]\n"Größe" = { kind = "number" }\n[target]\ncolumn = "y"'
    )
    call("new", "s", "m.toml")
    assert call("learn", "s", "t.csv", "--json").json["receipt"]["held"] == 2
    for name, make in (("t.jsonl", None), ("t.parquet", pq.write_table)):
        rows = {"Gro\u0308ße": [1, 2], "y": ["u", "v"]}
        if make:
            make(pa.table(rows), name)
        else:
            (tmp_path / name).write_text(
                "".join(
                    json.dumps({"Gro\u0308ße": k, "y": y}) + "\n" for k, y in ((1, "u"), (2, "v"))
                )
            )
        assert call("verify", "s", name, "--json").json["ok"]


@pytest.mark.parametrize("values", [[0.5, 1, 2] * 5, list(range(30))])
def test_targets_that_are_numbers_are_a_regression(call, tmp_path, values):
    (tmp_path / "t.csv").write_text("a,y\n" + "".join(f"{k},{y}\n" for k, y in enumerate(values)))
    found = call("suggest t.csv --target y --json").json
    assert found["target"] == {"column": "y", "kind": "number"}


def test_a_target_that_is_not_there_is_refused(call, tmp_path):
    (tmp_path / "t.csv").write_text("a;y\n1;u\n")
    assert "has no column 'z'; it has 'a', 'y'" in call("suggest t.csv --target z", code=2).err
