import datetime as dt
import gzip
import io
import json
import sys
import tracemalloc
from contextlib import suppress
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from traceless.exceptions import TableError
from traceless.features import Boolean, Category, Date, Number, Table
from traceless.sources import Files, Schema, TextFormat, column_names, delimited

SCHEMA = Schema(Table([Number("a", required=True), Number("b")]), ["y"])
ROWS = {"a": [1.5, -2.0, 3.0], "b": [1, 2, 3], "y": ["u", "v", "u"], "other": [None, "x", "y"]}


def saved(columns, path):
    """Columns as a file of the kind that its name says."""
    table = pa.table(columns)
    if path.suffix == ".parquet":
        pq.write_table(table, path)
        return str(path)
    if path.suffixes[0] in (".jsonl", ".ndjson"):
        text = "".join(json.dumps(row, default=str) + "\n" for row in table.to_pylist())
    else:
        text = table.to_pandas().to_csv(index=False, sep="\t" if ".tsv" in path.name else ",")
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return str(path)


def write(folder, kind):
    return saved(ROWS, folder / f"t.{kind}")


KINDS = ["csv", "tsv", "csv.gz", "jsonl", "jsonl.gz", "parquet"]


@pytest.fixture
def small_blocks(monkeypatch):
    """CSV is parsed 16 kB at a time, so that a small file has many blocks."""
    monkeypatch.setattr(delimited.Delimited.__init__, "__defaults__", (",", (), 2**14))


@pytest.mark.parametrize("kind", KINDS)
def test_standard_input_is_read_like_a_file(tmp_path, kind, monkeypatch):
    path = write(tmp_path, kind)
    with open(path, "rb") as file:
        data = file.read()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    X, y, _ = Files(["-"], SCHEMA, kind.removesuffix(".gz")).arrays()
    assert X[:, 0].tolist() == ROWS["a"]
    assert y.tolist() == ROWS["y"]


def test_columns_are_found_by_name_not_by_place(tmp_path):
    (tmp_path / "1.csv").write_text("b,y,a\n2,u,1\n")
    (tmp_path / "2.csv").write_text("y,extra,a,b\nv,?,3,4\n")
    X, y, _ = Files([str(tmp_path)], SCHEMA).arrays()
    assert X.tolist() == [[1, 2], [3, 4]]
    assert y.tolist() == ["u", "v"]


def test_folders_patterns_and_kinds_may_be_mixed(tmp_path):
    for kind in KINDS:
        write(tmp_path, kind)
    whole = Files([str(tmp_path)], SCHEMA).arrays()
    parts = Files([str(tmp_path / "t.[at]*"), str(tmp_path / "t.[!at]*")], SCHEMA).arrays()
    assert len(whole[0]) == len(parts[0]) == 3 * len(KINDS)
    address = Files([f"file://{tmp_path}/t*"], SCHEMA).arrays()
    assert address[0].tolist() == whole[0].tolist()


decimals = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-1e12, max_value=1e12).map(str),
    st.from_regex(r"[+-]?[0-9]{1,30}\.[0-9]{1,30}", fullmatch=True),
).filter(lambda text: text.isascii())


@given(st.lists(decimals, min_size=1, max_size=20), st.integers(64, 300))
@example(["9007199254740993", "0.1", "2.2250738585072011e-308"], 64)
def test_text_is_taken_to_the_nearest_float_in_blocks_of_any_size(tmp_path_factory, texts, block):
    data = "".join(f"{t},x\n" for t in texts).encode()
    for size in (block, delimited.BLOCK):
        table = delimited.Delimited(io.BytesIO(b"a,y\n" + data), block=size)
        got = [v for batch in table.batches(["a"], 10) for v in batch.column(0).to_pylist()]
        assert got == texts
    path = tmp_path_factory.mktemp("t") / "t.csv"
    path.write_bytes(b"a,y\n" + data)
    X, _, _ = Files([str(path)], Schema(Table([Number("a")]), ["y"])).arrays()
    assert X[:, 0].tolist() == [float(text) for text in texts]  # correctly rounded


@given(
    st.lists(
        st.text(
            st.characters(exclude_categories=["Cs"], exclude_characters="\r\0"),
            min_size=1,
            max_size=8,
        ),
        min_size=1,
        max_size=20,
    ),
    st.integers(100, 200),
)
def test_quoted_values_survive_in_blocks_of_any_size(words, block):
    quoted = ['"' + word.replace('"', '""') + '"' for word in words]
    data = ("a,y\n" + "".join(f"1,{word}\n" for word in quoted)).encode()
    for size in (block, delimited.BLOCK):
        table = delimited.Delimited(io.BytesIO(data), block=size)
        assert [v for b in table.batches(["y"], 10) for v in b.column(0).to_pylist()] == words


BAD = {
    "missing column": ("a,y\n1,u\n", "t.csv has no column 'b'; it has 'a', 'y'"),
    "column twice": ("a,b,a,y\n1,2,3,u\n", "has the column 'a' more than once"),
    "text for a number": (
        "a,b,y\n1,2,u\n3,many,v\n",
        "line 3, column 'b': a number is needed, got 'many'",
    ),
    "missing number": (
        "a,b,y\n1,2,u\n,2,v\n",
        "t.csv, line 3, column 'a': a number is needed, there is none. Fill it in, or declare "
        "Number('a') as not required.",
    ),
    "not a number": ("a,b,y\nnan,2,u\n", "line 2, column 'a': a number is needed, got 'nan'"),
    "too large": (
        "a,b,y\n1,1e999,u\n",
        "line 2, column 'b': a finite number is needed, got '1e999'",
    ),
    "missing label": ("a,b,y\n1,2,\n", "line 2, column 'y': the label is missing, there is none"),
    "semicolons": (
        "a;b;y\n1;2;u\n",
        "Its columns seem to stand between ';': declare delimiter = ';'",
    ),
    "short row": (
        "a,b,y\n1,2,u\n1,2\n",
        "t.csv, line 3: it has 2 values, and the header 3 columns",
    ),
    "long row": ("a,b,y\n1,2,u,9\n", "line 2: it has 4 values"),
    "open quote": ('a,b,y\n1,2,"u\n3,4,v\n', "a quoted value does not end"),
    "empty": ("", "t.csv: it is empty"),
    "blank": ("\n\n\n", "t.csv: it is empty"),
    "header only": ("a,b,y\n", "There are no rows in"),
    "header and blanks": ("a,b,y\n\n\n", "There are no rows in"),
    "not UTF-8": (b"a,b,y\n1,2,\xff\n", "t.csv, line 2: it is not UTF-8 text"),
    "long line": (b"a,b,y\n1,2," + b"x" * 2**22, "a row is longer than 2097152 bytes"),
    "header not UTF-8": (b"a,b,\xff\n1,2,3\n", "its first line is not a header of UTF-8 text"),
    "header does not end": ('"a,b,y\n1,2,3\n', "its first line is not a header"),
}


@pytest.mark.parametrize(("text", "said"), BAD.values(), ids=BAD)
def test_bad_text_is_refused_in_a_sentence(tmp_path, monkeypatch, text, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(TableError) as caught:
        Files(["t.csv"], SCHEMA).arrays()
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("start", [b"", b'"'])
def test_a_header_of_many_lines_takes_no_long_time(start):
    with pytest.raises(TableError):
        delimited.Delimited(io.BytesIO(start + b"\n" * 2**20))


def test_a_blank_line_in_a_single_column_is_a_missing_value():
    table = delimited.Delimited(io.BytesIO(b"a\n1\n\n3\n"))
    assert [b.column(0).to_pylist() for b in table.batches(["a"], 10)] == [["1", "", "3"]]


@pytest.mark.parametrize("kind", ["csv.gz", "parquet"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.98])
def test_truncated_files_are_refused(tmp_path, kind, share):
    path = write(tmp_path, kind)
    with open(path, "rb") as file:
        data = file.read()
    with open(path, "wb") as file:
        file.write(data[: int(len(data) * share)])
    with pytest.raises(TableError) as caught:
        Files([path], SCHEMA).arrays()
    assert f"t.{kind}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_checksums_of_parquet_are_checked_where_there_are_any(tmp_path):
    path = tmp_path / "t.parquet"
    table = pa.table({"a": [1.5, 2.5], "b": [1.0, 2.0], "y": ["u", "v"]})
    plain = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    pq.write_table(table, path, write_page_checksum=True, **plain)
    data = path.read_bytes()
    place = data.index(np.float64(2.5).tobytes())
    path.write_bytes(data[:place] + np.float64(3.5).tobytes() + data[place + 8 :])
    with pytest.raises(TableError, match="CRC checksum"):
        Files([str(path)], SCHEMA).arrays()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A file of each kind, and its content."""
    paths = {kind: Path(write(tmp_path_factory.mktemp("whole"), kind)) for kind in KINDS}
    return {kind: (path, path.read_bytes()) for kind, path in paths.items()}


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "jsonl", "parquet"])
@given(
    place=st.floats(0.0, 1.0),
    more=st.binary(max_size=8) | st.just(b"\xff" * 8),
    gone=st.sampled_from([0, 1, 8, 10_000]),
)
def test_changed_files_are_refused_or_still_tables(whole, kind, place, more, gone):
    path, data = whole[kind]
    begin = int(place * len(data))
    path.write_bytes(data[:begin] + more + data[begin + gone :])
    with suppress(TableError):
        Files([str(path)], SCHEMA).arrays()


def test_unknown_kinds_and_missing_files(tmp_path):
    (tmp_path / "t.xlsx").write_text("x")
    with pytest.raises(TableError, match=r"t.xlsx is of no known kind.*--format"):
        Files([str(tmp_path / "t.xlsx")], SCHEMA).arrays()
    with pytest.raises(FileNotFoundError, match="There is no file"):
        Files([str(tmp_path / "none.csv")], SCHEMA)
    with pytest.raises(TableError, match="only once"):
        Files(["-", "-"], SCHEMA)


def test_a_format_can_be_given(tmp_path):
    path = tmp_path / "t.data"
    path.write_text("a\tb\ty\n1\t2\tu\n")
    assert Files([str(path)], SCHEMA, "tsv").arrays()[0].tolist() == [[1, 2]]


def test_memory_is_bounded_by_blocks(tmp_path, small_blocks):
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n" + "0.123456789,0.987654321,u\n" * 400_000)
    tracemalloc.start()
    try:
        before = pa.total_allocated_bytes()
        most = 0
        for X, _ in Files([str(path)], SCHEMA).rows():
            assert X.shape[1] == 2
            most = max(most, pa.total_allocated_bytes() - before)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert path.stat().st_size > 10e6
    assert peak + most < 4e6


# --- real tables ---------------------------------------------------------------------------------

CLINIC = Schema(
    Table([Number("age"), Boolean("smoker"), Date("visited"), Category("ward", ["a"])]),
    ["ill"],
    weight="w",
    id="patient",
)
PATIENTS = {
    "patient": [17, 23, 17],
    "age": [31.5, None, 70.0],
    "smoker": [True, False, True],
    "visited": [dt.date(2000, 1, 2), dt.date(2024, 2, 29), dt.date(1999, 12, 31)],
    "ward": ["a", None, "a"],
    "ill": ["yes", "no", "no"],
    "w": [1.0, 0.5, 2.0],
}
ENCODED = [[31.5, 1, 1, 0], [np.nan, 0, 8825, np.nan], [70, 1, -1, 0]]


def patients(folder, kind):
    """The same rows as a file, or a frame, of a kind."""
    table = pa.table(PATIENTS)
    if kind == "pandas":
        frame = table.to_pandas().astype({"ward": "category", "visited": "datetime64[ns]"})
        return frame.astype({"patient": "float64"})  # as pandas does where an id is missing
    if kind == "polars":
        return pl.DataFrame(table).with_columns(pl.col("age").fill_null(float("nan")))
    return table if kind == "arrow" else saved(PATIENTS, folder / f"patients.{kind}")


@pytest.mark.parametrize("kind", [*KINDS, "ndjson", "pandas", "polars", "arrow"])
def test_missing_values_booleans_dates_and_ids_are_the_same_in_every_format(tmp_path, kind):
    rows = patients(tmp_path, kind)
    if isinstance(rows, str):
        assert column_names(rows) == list(PATIENTS)
    table = Files([rows], CLINIC)
    ((X, y, weight, ids),) = table.rows()
    assert np.array_equal(X, ENCODED, equal_nan=True)
    assert y.tolist() == PATIENTS["ill"]
    assert weight.tolist() == PATIENTS["w"]
    assert ids == ["17", "23", "17"]
    assert [len(batch) for batch in table.rows(ids="never")] == [3]
    assert np.array_equal(table.arrays()[0], ENCODED, equal_nan=True)


def test_a_frame_is_named_in_messages(tmp_path):
    frame = patients(tmp_path, "polars").with_columns(pl.lit("?").alias("smoker"))
    with pytest.raises(TableError, match=r"^The data frame, row 1, column 'smoker': one of"):
        Files([frame], CLINIC).arrays()


def test_semicolons_decimal_commas_and_words_for_missing_values(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes('\ufeffa;"b";y\r\n1,5;2;u\r\n"-,25";NA;"v\r\nw"\r\n'.encode())
    text = TextFormat(";", ",", null=("NA", "?"))
    schema = Schema(Table([Number("a"), Number("b")]), ["y"], text=text)
    X, y, _ = Files([str(path)], schema).arrays()
    assert np.array_equal(X, [[1.5, 2], [-0.25, np.nan]], equal_nan=True)
    assert y.tolist() == ["u", "v\r\nw"]
    assert column_names(str(path), text=text) == ["a", "b", "y"]
    assert Schema.from_facts(schema.facts()).facts() == schema.facts()


@given(
    st.lists(st.sampled_from(["u", '"u"', '"u\nu"', '"u\r\nu"', '"a"""', "BLANK"]), max_size=30),
    st.sampled_from(["\n", "\r\n"]),
    st.integers(0, 3),
    st.booleans(),
)
def test_lines_are_those_that_an_editor_shows(tmp_path_factory, rows, end, blanks, compress):
    path = tmp_path_factory.mktemp("t") / "t.csv"
    lines = ["" if row == "BLANK" else f"1,2,{row}" for row in rows]
    before = end * blanks + "a,b,y" + end + "".join(line + end for line in lines)
    data = (before + f"1,oops,u{end}1,2,u{end}").encode()
    path.write_bytes(gzip.compress(data) if compress else data)
    table = Files([str(path)], SCHEMA)
    with pytest.raises(TableError, match=f"line {before.count(chr(10)) + 1}, column 'b'"):
        table.arrays()
    assert table.place_of(0).startswith(str(path))


def test_rows_are_placed_in_their_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("1.csv").write_text("a,b,y\n\n1,2,u\n1,2,u\n")
    Path("2.csv").write_text("a,b,y\n1,2,u\n")
    pq.write_table(pa.table(ROWS), "3.parquet")
    table = Files(["1.csv", "2.csv", "3.parquet"], SCHEMA)
    table.arrays()
    places = [table.place_of(k) for k in range(6)]
    assert places == [
        *("1.csv, line 3", "1.csv, line 4", "2.csv, line 2"),
        *("3.parquet, row 1", "3.parquet, row 2", "3.parquet, row 3"),
    ]
    with pytest.raises(LookupError):
        table.place_of(6)


def test_standard_input_has_no_lines_to_look_at_again(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a,b,y\n1,x,u\n")))
    with pytest.raises(TableError, match="standard input, row 1 after the header, column 'b'"):
        Files(["-"], SCHEMA).arrays()


def test_ids_are_needed_or_taken_where_they_are(tmp_path):
    schema = Schema(Table([Number("a")]), ["y"], id="p")
    for name, text in {"1": "a,y,p\n1,u,7\n", "2": "a,y\n2,v\n"}.items():
        (tmp_path / f"{name}.csv").write_text(text)
    table = Files([str(tmp_path)], schema)
    with pytest.raises(TableError, match=r"2.csv has no column 'p'"):
        list(table.rows())
    with_id, without = table.rows(ids="if there")
    assert with_id[2:] == (None, ["7"])
    assert len(without) == 2
    assert table.arrays()[1].tolist() == ["u", "v"]
