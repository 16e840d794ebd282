from click.testing import CliRunner
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from people import contents

from traceless import Store
from traceless.cli.group import root
from traceless.sources.formats import FORMATS


def state(folder):
    """What the store says of itself, and its files."""
    return contents(folder), Store(folder).history(), Store(folder).pending()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.binary(max_size=300),
    kind=st.sampled_from(FORMATS),
    name=st.sampled_from(["learn", "forget", "predict"]),
    start=st.sampled_from(
        [b"", b"id,age,income,color,bought\n", b"PAR1", b"ARROW1\0\0", b"PK\x03\x04"]
    ),
)
@example(data=b"\xff" * 60 + b"PAR1", kind="parquet", name="learn", start=b"PAR1")
@example(data=b"1,2,3,red", kind="csv", name="learn", start=b"id,age,income,color,bought\n")
@example(data=b'1,2,3,red,"yes', kind="csv", name="learn", start=b"id,age,income,color,bought\n")
def test_garbage_is_refused_and_changes_nothing(shop, tmp_path, data, kind, name, start):
    path = tmp_path / f"garbage.{kind}"
    path.write_bytes(start + data)
    before = state(tmp_path / "shop")
    result = CliRunner().invoke(root, [name, "shop", str(path)])
    assert result.exit_code == 2, (result.output, result.exception)
    assert "Traceback" not in result.output
    assert len(result.stderr.splitlines()) == 1
    assert state(tmp_path / "shop") == before


@given(data=st.binary(max_size=300))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(data=b"{}")
@example(data=b'{"format": "traceless receipt 1", "store": {}, "entry": {}, "hash": 3}')
def test_garbage_is_no_receipt_and_no_model(shop, tmp_path, data):
    path = tmp_path / "garbage.traceless"
    path.write_bytes(data)
    before = state(tmp_path / "shop")
    for arguments in (["verify", path, "people.csv"], ["merge", "shop", path]):
        result = CliRunner().invoke(root, list(map(str, arguments)))
        assert result.exit_code == 2, (result.output, result.exception)
        assert len(result.stderr.splitlines()) == 1
    assert state(tmp_path / "shop") == before
