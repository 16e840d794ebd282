import csv
import json
import shlex

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from traceless.sources.suggestion import REMARK

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
    names = [*COLUMNS, "y"]
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
    assert [column["name"] for column in found["columns"]] == names
    assert all(column["reason"] for column in found["columns"])
    assert (found["rows"], found["remark"]) == (len(rows), REMARK)
    words = found["command"]
    assert words[:2] == ["traceless", "new"]
    if any(word in ("--columns", "--category", "--hash", "--boolean", "--date") for word in words):
        answer = call(*words[1:], "--check", path.name, "--json").json
        assert answer["problems"] == []
        assert answer["rows"] == len(rows)


def test_the_command_can_be_copied(call, tmp_path):
    (tmp_path / "my file.csv").write_text("a b;c;y\n1,5;x'y;u\n2,5;z;v\n")
    said = call("suggest", "my file.csv", "--target", "y", "--store", "my store").out
    assert REMARK in said
    assert "Try it first with --check 'my file.csv'" in said
    text = said.partition("\n\n")[0]
    words = shlex.split(text.replace("\\\n", ""))  # as a shell does
    call(*words[1:])
    call("learn", "my store", "my file.csv")
