"""`traceless follow`: what it says, and what status and verify say of it."""

import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from traceless import Store

deltalake = pytest.importorskip("deltalake")
MODEL = """
[table.columns]
age = { kind = "number" }
[target]
column = "bought"
[id]
column = "customer"
"""


def people(first, last):
    ages = [18 + k % 60 for k in range(first, last)]
    bought = ["yes" if age > 40 else "no" for age in ages]
    return pa.table({"customer": range(first, last), "age": ages, "bought": bought})


@pytest.fixture
def shop(call, tmp_path):
    (tmp_path / "model.toml").write_text(MODEL)
    call("new shop model.toml")
    deltalake.write_deltalake("customers", people(0, 200))
    return call


def test_once(shop):
    (first,) = shop("follow shop customers --once --json").json["receipts"]
    assert (first["added"], first["kind"]) == (200, "follow")
    assert "nothing new" in shop("follow shop customers --once").out
    deltalake.DeltaTable("customers").delete("customer < 120")
    deltalake.write_deltalake("customers", people(200, 210), mode="append")
    status = shop("status shop --json").json
    assert (status["followed"]["version"], status["followed"]["lag"]) == (0, 2)
    assert "nothing was changed" in shop("follow shop customers --once --dry-run").out
    said = shop("follow shop customers --once")
    assert [line.split()[1:5] for line in said.out.splitlines()[1:]] == [
        ["1", "0", "120", "80"],
        ["2", "10", "0", "90"],
    ]
    assert "versions since:" in shop("status shop").out
    assert shop("status shop --json").json["followed"]["lag"] == 0
    shop("receipt shop --html page.html")
    assert "moved to what its table holds: 10 records were learned" in Path("page.html").read_text()


def test_verify_recomputes_a_version(shop):
    shop("follow shop customers --once")
    deltalake.DeltaTable("customers").delete("customer < 120")
    shop("follow shop customers --once")
    for version in (0, 1):
        assert shop(f"verify shop customers --at {version} --json").json["ok"]
    assert "not moved to version 7" in shop("verify shop customers --at 7", code=2).err
    assert "one Delta table" in shop("verify shop --at 1", code=2).err


def test_somebody_who_comes_back(shop):
    shop("follow shop customers --once")
    deltalake.DeltaTable("customers").delete("customer < 120")
    shop("follow shop customers --once")
    deltalake.DeltaTable("customers").restore(0)
    refused = shop("follow shop customers --once", code=2).err
    assert "120 rows are of 120 ids" in refused
    assert "--drop-suppressed" in refused
    left = shop("follow shop customers --once --drop-suppressed")
    assert "120 rows are of 120 ids" in left.err
    assert shop("status shop --json").json["rows"] == 80
    both = shop("follow shop customers --once --again --drop-suppressed", code=2)
    assert "give one" in both.err


def test_it_goes_on_until_it_is_stopped(shop, tmp_path):
    command = [sys.executable, "-m", "traceless", "follow", "shop", "customers", "--every", "0.1"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline().startswith("change")
        deltalake.write_deltalake("customers", people(200, 230), mode="append")
        store = Store("shop")
        for _ in range(200):
            if store.status().rows == 230:
                break
            time.sleep(0.1)
        assert store.status().rows == 230
    finally:
        process.kill()
        process.communicate()


def test_an_export(shop):
    import pyarrow.csv

    pyarrow.csv.write_csv(people(0, 100), "export.csv")
    shop("follow shop export.csv --once")
    pyarrow.csv.write_csv(people(30, 100), "export.csv")
    shop("follow shop export.csv --once")
    assert shop("verify shop export.csv --json").json["ok"]
    assert shop("status shop --json").json["followed"] is None
