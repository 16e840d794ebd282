"""The ledger: only a commit changes it, and errors of SQLite have the types of the store."""

import sqlite3

import pytest

from traceless.exceptions import StoreBusyError, StoreError
from traceless.store.opening import open_ledger


@pytest.fixture
def path(store):
    return store.path / "ledger.sqlite"


def test_a_second_transaction_that_writes_is_refused(path):
    with (
        open_ledger(path, "BEGIN IMMEDIATE"),
        pytest.raises(StoreBusyError, match="holds the ledger"),
        open_ledger(path, "BEGIN IMMEDIATE", 0.1),
    ):
        pass


def test_errors_of_sqlite_are_those_of_the_store(path, tmp_path):
    with pytest.raises(FileNotFoundError), open_ledger(tmp_path / "none.sqlite"):
        pass
    with pytest.raises(StoreError, match="is damaged"), open_ledger(path) as ledger:
        ledger.sql.execute("SELECT * FROM no_such_table")
    with sqlite3.connect(tmp_path / "other.sqlite") as other:
        other.execute("CREATE TABLE t (x)")
    other.close()
    with pytest.raises(StoreError, match="is not a ledger"), open_ledger(tmp_path / "other.sqlite"):
        pass
