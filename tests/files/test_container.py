"""The file format: one way to write it, every byte counts, and nothing is left half done."""

import errno
import hashlib
import json
import os
import resource
import sys
from pathlib import Path

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from forge import Forged
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from traceless.exceptions import FileError
from traceless.files import container

FACTS = {"b": [1, 2.5, None, "ä\ud800"], "a": {"deep": [True, {}]}}
TENSORS = {
    "small": np.arange(3, dtype=np.uint8),
    "x": np.array([[0.5, -0.0], [1e-300, 2.0]]),
    "n": np.array([-(2**63), 2**63 - 1]),
    "empty": np.zeros((0, 7)),
}


@pytest.fixture
def path(tmp_path):
    out = tmp_path / "a.traceless"
    container.write(out, "Thing", FACTS, TENSORS)
    return out


def same(contents, kind, facts, tensors):
    assert contents.kind == kind
    assert contents.facts == facts
    assert contents.tensors.keys() == tensors.keys()
    for name, tensor in tensors.items():
        found = contents.tensors[name]
        assert (found.dtype, found.shape) == (tensor.dtype, tensor.shape)
        assert found.tobytes() == tensor.tobytes()
        assert not found.flags.writeable


def test_what_is_written_is_read(path):
    same(container.read(path), "Thing", FACTS, TENSORS)
    assert container.read(str(path)).sha256 == container.write(path, "Thing", FACTS, TENSORS)


def test_the_hash_is_checked_by_hand_in_three_lines(path):
    data = path.read_bytes()
    zeroed = data[:35] + b"0" * 64 + data[99:]
    assert hashlib.sha256(zeroed).hexdigest() == data[35:99].decode() == container.read(path).sha256


def test_safetensors_opens_it(path):
    found = safetensors.numpy.load_file(path)
    assert {name: t.tobytes() for name, t in found.items()} == {
        name: t.tobytes() for name, t in TENSORS.items()
    }
    with safetensors.safe_open(path, "numpy") as file:
        metadata = file.metadata()
    assert (metadata["format"], metadata["version"], metadata["kind"]) == (
        "traceless",
        "1",
        "Thing",
    )
    assert json.loads(metadata["facts"]) == FACTS


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
arrays = st.sampled_from([np.float64, np.int64, np.uint8]).flatmap(
    lambda dtype: hnp.arrays(
        dtype,
        hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4).filter(
            lambda shape: 0 not in shape[1:]  # only the first axis may be empty
        ),
    )
)


@given(
    st.text(),
    st.dictionaries(st.text(), json_values, max_size=3),
    st.dictionaries(st.text().filter(lambda name: name != "__metadata__"), arrays, max_size=4),
)
def test_anything_makes_the_round_trip(tmp_path_factory, kind, facts, tensors):
    path = tmp_path_factory.mktemp("files") / "x"
    container.write(path, kind, facts, tensors)
    same(container.read(path), kind, facts, tensors)


def test_order_and_layout_in_memory_do_not_matter(tmp_path, path):
    tensors = dict(reversed(TENSORS.items())) | {"x": np.asfortranarray(TENSORS["x"])}
    container.write(tmp_path / "b", "Thing", dict(reversed(FACTS.items())), tensors)
    assert (tmp_path / "b").read_bytes() == path.read_bytes()


# --- what is refused ---------------------------------------------------------------------------


def test_every_byte_counts(path):
    data = path.read_bytes()
    for place in range(len(data)):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(FileError):
            container.read(path)
    with pytest.raises(FileError, match=r"is damaged: .* SHA-256"):
        container.read(path)


def test_every_length_counts(path):
    data = path.read_bytes()
    for cut in [*range(len(data)), data + b" ", data + data]:
        path.write_bytes(data[:cut] if isinstance(cut, int) else cut)
        with pytest.raises(FileError):
            container.read(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK\3\4" + b"x" * 200,
        b"\xff" * 500,
        b"{}" * 100,
        safetensors.numpy.save({"a": np.zeros(100)}),
    ],
    ids=["empty", "zip", "bytes", "text", "safetensors"],
)
def test_files_of_others(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(FileError, match="not a file of traceless"):
        container.read(tmp_path / "x")


def test_a_newer_version_says_so_whatever_it_looks_like(path):
    forged = Forged(path)
    forged.metadata["version"] = "2"
    forged.write(path)
    with pytest.raises(FileError, match=r"newer version: its format is 2.* reads up to 1"):
        container.read(path)
    text = b'{"__metadata__":{"format":"traceless","version":"7","other":"' + b"x" * 99 + b'"}}'
    path.write_bytes(len(text).to_bytes(8, "little") + text)
    with pytest.raises(FileError, match="newer version"):
        container.read(path)


FORGERIES = {
    "overlap": lambda f: f.tensors["x"].update(data_offsets=[0, 32]),
    "a negative shape": lambda f: f.tensors["x"].update(shape=[-2, -2]),
    "a shape of truths": lambda f: f.tensors["n"].update(shape=[True, 2]),
    "a huge shape": lambda f: f.tensors["x"].update(shape=[2**40, 2**40]),
    "an endless shape without data": lambda f: f.reshape("empty", [2**47, 0]),
    "two empty axes": lambda f: f.reshape("empty", [0, 0]),
    "an empty axis in the middle": lambda f: f.reshape("empty", [5, 0, 2**40]),
    "many axes": lambda f: f.tensors["x"].update(shape=[2, 2, *[1] * 40]),
    "no list of a shape": lambda f: f.tensors["x"].update(shape=4),
    "an unknown dtype": lambda f: f.tensors["x"].update(dtype="O"),
    "something less": lambda f: f.tensors["x"].pop("shape"),
    "no tensor": lambda f: f.tensors.update(x=7),
    "another order": lambda f: f.tensors.update(n=f.tensors.pop("n")),
    "metadata left out": lambda f: f.metadata.pop("facts"),
    "more metadata": lambda f: f.metadata.update(path="../../etc"),
    "metadata of another type": lambda f: f.metadata.update(kind=3),
    "facts that are no JSON": lambda f: f.metadata.update(facts="{"),
    "facts twice": lambda f: f.metadata.update(facts='{"a":1,"a":1}'),
    "facts with spaces": lambda f: f.metadata.update(facts='{"a": 1}'),
    "facts with NaN": lambda f: f.metadata.update(facts='{"a":NaN}'),
    "facts beyond float64": lambda f: f.metadata.update(facts='{"a":1e999}'),
    "numbers of a million digits": lambda f: f.metadata.update(facts=f'{{"a":{"9" * 10**6}}}'),
    "a version of a million digits": lambda f: f.metadata.update(version="9" * 10**6),
    "deep facts": lambda f: f.metadata.update(facts="[" * 100_000 + "]" * 100_000),
    "facts that are no mapping": lambda f: f.metadata.update(facts="[]"),
    "an old version": lambda f: f.metadata.update(version="0"),
    "more data": lambda f: f.data.extend(b"12345678"),
    "less data": lambda f: f.data.pop(),
}


@pytest.mark.parametrize("how", FORGERIES)
def test_a_right_hash_does_not_help(path, how):
    forged = Forged(path)
    FORGERIES[how](forged)
    forged.write(path)
    with pytest.raises(FileError):
        container.read(path)


@pytest.mark.parametrize("digits", [1001, 4301, 10**6])
def test_long_numbers_are_refused_whatever_the_limit_of_the_interpreter(path, digits):
    """Python has a limit of its own, which can be lifted; its conversion takes quadratic time."""
    text = f'{{"__metadata__":{{"format":"traceless","version":{"9" * digits}}}}}'.encode()
    limit = sys.get_int_max_str_digits()
    try:
        sys.set_int_max_str_digits(0)
        for content in (text, b'{"__metadata__":{"sha256":"' + text):
            path.write_bytes(len(content).to_bytes(8, "little") + content)
            with pytest.raises(FileError):
                container.read(path)
        with pytest.raises(ValueError, match=f"of {digits} digits"):
            container.parsed_json("9" * digits)
    finally:
        sys.set_int_max_str_digits(limit)


def test_an_honest_copy_is_read(path):
    before = path.read_bytes()
    Forged(path).write(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("length", [0, 7, 99, 2**31, 2**63, 2**64 - 1])
def test_the_length_of_the_header_is_checked_first(path, length):
    data = path.read_bytes()
    path.write_bytes(length.to_bytes(8, "little") + data[8:])
    with pytest.raises(FileError):
        container.read(path)


def test_other_dtypes_and_numbers_are_not_written(tmp_path):
    with pytest.raises(TypeError, match="float32"):
        container.write(tmp_path / "x", "Thing", {}, {"a": np.zeros(3, np.float32)})
    with pytest.raises(ValueError, match="JSON"):
        container.write(tmp_path / "x", "Thing", {"a": float("nan")}, {})
    with pytest.raises(ValueError, match="more than the 100000000"):
        container.write(tmp_path / "x", "Thing", {"a": "x" * 100_000_000}, {})
    with pytest.raises(ValueError, match=r"shape \(3, 0\)"):
        container.write(tmp_path / "x", "Thing", {}, {"a": np.zeros((3, 0))})
    assert not list(tmp_path.iterdir())


# --- all or nothing ----------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["replace", "fsync"])
def test_an_error_leaves_the_old_file_and_nothing_else(path, monkeypatch, where):
    before = path.read_bytes()

    def fail(*_):
        raise OSError(errno.EIO, "the disk is gone")

    monkeypatch.setattr(os, where, fail)
    with pytest.raises(OSError, match="the disk is gone"):
        container.write(path, "Thing", {}, {})
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_full_disk_leaves_the_old_file_and_nothing_else(path):
    before, (soft, hard) = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(OSError, match="too large") as error:
            container.write(path, "Thing", {}, {"a": np.zeros(1_000_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert error.value.errno == errno.EFBIG
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("name", ["x", "x" * 255])
def test_a_name_may_be_relative_and_long(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    container.write(name, "Thing", {}, {})
    assert container.read(Path(name)).kind == "Thing"
