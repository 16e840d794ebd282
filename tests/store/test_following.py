"""A store that follows a table holds what the table holds, whatever becomes of either."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import warnings
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from traceless import LSSVC, LSSVR, PathSVC
from traceless.exceptions import (
    AlreadyLearnedError,
    RevealingWarning,
    StoreError,
    StoreWarning,
    TableError,
)
from traceless.features import Number, Table
from traceless.sources import Files, Schema
from traceless.store import Store
from traceless.store.following import Multiset

pa = pytest.importorskip("pyarrow")
deltalake = pytest.importorskip("deltalake")
pytestmark = pytest.mark.filterwarnings("ignore::traceless.exceptions.RevealingWarning")

SCHEMA = Schema(Table([Number("age"), Number("pay")]), ["bought"], id="customer")
FEED = {"delta.enableChangeDataFeed": "true"}


def rows(first, last, seed=0):
    """Rows of customers, each a function of its number and the seed."""
    numbers = [np.random.default_rng([seed, k]).integers(0, 100, 3) for k in range(first, last)]
    age, pay, chance = np.array(numbers).reshape(-1, 3).T
    columns = {"customer": range(first, last), "age": age + 0.5, "pay": pay / 4}
    columns["bought"] = np.where(chance + age > 100, "yes", "no")
    return pa.table(columns | {"note": ["a"] * (last - first)})


def write(path, table, mode="append", **options):
    deltalake.write_deltalake(path, table, mode=mode, **options)


def delta(path):
    return deltalake.DeltaTable(path)


def vacuum(path):
    delta(path).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)


@pytest.fixture(params=["feed", "files"])
def table(request, tmp_path):
    """A Delta table of 100 customers, with a change data feed and without."""
    path = str(tmp_path / "customers")
    write(path, rows(0, 100), configuration=FEED if request.param == "feed" else None)
    return path


@pytest.fixture
def store(tmp_path):
    return new_store(tmp_path / "store")


def new_store(path, schema=SCHEMA, model=None):
    model = LSSVC(schema.table) if model is None else model
    return Store.new(path, model, about={"table": schema.facts()})


def holds(store, frame, schema=SCHEMA):
    """Whether the store is the model of these rows, and every check of it passes."""
    wanted, rows = None, None
    if len(frame):
        batches = list(Files([frame], schema).rows())
        X, y, _, ids = [None if p is None else np.concatenate([*p]) for p in _columns(batches)]
        wanted = LSSVC(schema.table, fingerprint=True).fit(X, y).digest()
        rows = [(X, y, None, list(ids))] if ids is not None else [(X, y)]
    found = store.verify(rows)
    return store.status().digest == wanted and found.ok


def _columns(batches):
    for parts in zip(*((*batch, None, None)[:4] for batch in batches), strict=True):
        yield None if parts[0] is None else parts


def now(path):
    return delta(path).to_pyarrow_table()


def moves(receipts):
    return [(r.added, r.removed) for r in receipts]


class TestVersions:
    def test_each_is_one_change_and_its_receipt_names_it(self, store, table):
        assert moves(store.follow(table)) == [(100, 0)]
        delta(table).delete("customer < 30")
        delta(table).update(predicate="customer = 50", updates={"age": "7.0"})
        write(table, rows(100, 120))
        receipts = store.follow(table)
        assert moves(receipts) == [(0, 30), (1, 1), (20, 0)]
        assert [r.followed.version for r in receipts] == [1, 2, 3]
        assert {(r.kind, r.followed.id) for r in receipts} == {
            ("follow", delta(table).metadata().id)
        }
        assert store.status().followed == receipts[-1].followed
        assert holds(store, now(table))
        for r in receipts:
            old = deltalake.DeltaTable(table, version=r.followed.version).to_pyarrow_table()
            model = LSSVC(SCHEMA.table, fingerprint=True).fit(*Files([old], SCHEMA).arrays()[:2])
            assert r.digest_after == model.digest()

    def test_all_of_them_in_one_change(self, store, table):
        store.follow(table)
        delta(table).delete("customer < 30")
        write(table, rows(10, 40, seed=1))
        (receipt,) = store.follow(table, batch=True, again=True)
        assert (receipt.followed.version, receipt.added, receipt.removed) == (2, 30, 30)
        assert holds(store, now(table))

    def test_a_replay_changes_nothing(self, store, table):
        store.follow(table)
        write(table, rows(100, 110))
        assert len(store.follow(table)) == 1
        before = store.history()
        assert store.follow(table) == []
        assert store.follow(table, snapshot=True) == []
        assert store.history() == before

    def test_a_trial_changes_nothing_and_says_what_would_be(self, store, table):
        (tried,) = store.follow(table, dry_run=True)
        assert (tried.dry_run, tried.added, store.status().rows) == (True, 100, 0)
        store.follow(table)
        write(table, rows(100, 110))
        delta(table).delete("customer < 30")
        (tried,) = store.follow(table, dry_run=True)
        assert (tried.added, tried.removed, store.status().rows) == (10, 30, 100)

    def test_what_is_not_declared_may_change(self, store, table):
        store.follow(table)
        delta(table).update(predicate="customer < 20", updates={"note": "'b'"})
        assert moves(store.follow(table)) == [(0, 0)]
        assert store.status().followed.version == 1

    def test_a_row_that_is_there_twice(self, store, table):
        write(table, rows(0, 3))
        write(table, rows(0, 3))
        store.follow(table)
        assert holds(store, now(table))
        write(table, pa.concat_tables([rows(0, 1), rows(3, 100)]), "overwrite")
        store.follow(table)
        assert holds(store, now(table))

    @pytest.mark.parametrize("model", [LSSVR(), PathSVC()])
    def test_other_models(self, tmp_path, table, model):
        number = isinstance(model, LSSVR)
        schema = Schema(
            Table([Number("age")]), ["pay" if number else "bought"], "number" if number else "text"
        )
        store = new_store(tmp_path / "store", schema, model)
        store.follow(table)
        delta(table).delete("customer < 30")
        store.follow(table)
        left = now(table).combine_chunks()
        fitted = type(model)(**({"fingerprint": True} if number else {}))
        fitted.fit(*Files([left], schema).arrays()[:2])
        assert store.status().digest == fitted.digest()

    def test_partitions_and_weights(self, tmp_path, store):
        path, schema = (
            str(tmp_path / "parts"),
            Schema(Table([Number("age"), Number("pay")]), ["bought"], weight="weight"),
        )
        frame = rows(0, 60).append_column("weight", pa.array([0.0, 1.0, 0.5] * 20))
        write(path, frame, partition_by=["bought"])
        store = new_store(tmp_path / "weighted", schema)
        assert moves(store.follow(path)) == [(40, 0)]
        delta(path).delete("customer < 30")
        assert moves(store.follow(path)) == [(0, 20)]
        X, y, w = Files([now(path)], schema).arrays()
        fitted = LSSVC(schema.table, fingerprint=True).fit(X, y, sample_weight=w)
        assert store.status().digest == fitted.digest()

    @pytest.mark.parametrize("pays", [[1, 2, 2, 3], [1, 1, 2, 2], [1, 2, 9]])
    def test_an_update_whose_rows_equal_others(self, tmp_path, pays):
        schema = Schema(Table([Number("pay")]), ["bought"])  # deltalake's feed leaves them out
        path, store = str(tmp_path / "pays"), new_store(tmp_path / "pays-store", schema)
        frame = pa.table(
            {"pay": [float(one) for one in pays] * 9, "bought": ["no", "yes", "no"] * 3 * len(pays)}
        )
        write(path, frame, configuration=FEED)
        store.follow(path)
        delta(path).update(predicate="pay < 5", updates={"pay": "pay + 1"})
        store.follow(path)
        assert holds(store, now(path), schema)

    def test_files_of_one_name_in_several_partitions(self, tmp_path):
        path, schema = tmp_path / "parts", Schema(Table([Number("age")]), ["bought"])
        for city, n in ("a b", 30), ("c", 40):
            (path / f"city={city}").mkdir(parents=True)
            frame = pa.table({"age": np.arange(float(n)), "bought": ["no", "yes"] * (n // 2)})
            pa.parquet.write_table(frame, path / f"city={city}" / "part-0.parquet")
        kinds = deltalake.schema
        city = kinds.Schema([kinds.Field("city", kinds.PrimitiveType("string"))])
        deltalake.convert_to_deltalake(path, partition_by=city, partition_strategy="hive")
        store = new_store(tmp_path / "parted", schema)
        store.follow(path)
        delta(path).delete("city = 'c'")
        assert moves(store.follow(path)) == [(0, 40)]
        assert holds(store, now(path), schema)

    def test_a_version_is_read_alone(self, store, table):
        write(table, rows(100, 110))
        store.follow(table)
        write(table, rows(110, 120))
        for name in os.listdir(table):  # what other versions have written is not there
            if name.endswith(".parquet") and os.path.join(table, name) not in _new_files(table, 2):
                os.remove(os.path.join(table, name))
        assert moves(store.follow(table)) == [(10, 0)]


def _new_files(table, version):
    log = os.path.join(table, "_delta_log", f"{version:020}.json")
    with open(log) as file:
        actions = [json.loads(line) for line in file]
    return [os.path.join(table, one["add"]["path"]) for one in actions if "add" in one]


class TestWhatBecomesOfATable:
    def test_compaction_changes_nothing(self, store, table):
        write(table, rows(100, 110))
        store.follow(table)
        digest = store.status().digest
        delta(table).optimize.compact()
        assert moves(store.follow(table)) == [(0, 0)]
        assert store.status().digest == digest
        assert store.status().followed.version == delta(table).version()

    def test_vacuum(self, store, table):
        store.follow(table)
        delta(table).delete("customer < 30")
        delta(table).delete("customer < 60")
        vacuum(table)
        if not delta(table).metadata().configuration:
            with pytest.warns(StoreWarning, match="All of the table is read"):
                store.follow(table)
        store.follow(table)
        assert holds(store, now(table))

    def test_a_feed_whose_files_are_gone(self, store, tmp_path):
        path = str(tmp_path / "fed")
        write(path, rows(0, 100), configuration=FEED)
        store.follow(path)
        write(path, rows(20, 130), "overwrite")
        write(path, rows(30, 140), "overwrite")
        delta(path).update(predicate="customer < 50", updates={"pay": "pay + 1"})
        shutil.rmtree(os.path.join(path, "_change_data"))
        vacuum(path)
        with pytest.warns(StoreWarning, match="All of the table is read"):
            store.follow(path, again=True)
        assert holds(store, now(path))

    @pytest.mark.parametrize("batch", [False, True])
    def test_a_feed_that_is_turned_off_and_on(self, store, table, batch):
        store.follow(table)
        for k, there in enumerate(("false", "true", "false", "true")):
            delta(table).alter.set_table_properties({"delta.enableChangeDataFeed": there})
            delta(table).update(predicate=f"customer < {9 - k}", updates={"pay": "pay + 1"})
        store.follow(table, batch=batch)
        assert holds(store, now(table))

    def test_a_log_that_was_cleaned(self, store, table):
        store.follow(table)
        for k in range(3):
            write(table, rows(100 + k, 101 + k))
        delta(table).create_checkpoint()
        for k in range(3):
            os.remove(os.path.join(table, "_delta_log", f"{k:020}.json"))
        with pytest.warns(StoreWarning, match="All of the table is read"):
            store.follow(table)
        assert holds(store, now(table))

    def test_all_rows_are_deleted(self, store, table):
        store.follow(table)
        delta(table).delete()
        assert moves(store.follow(table)) == [(0, 100)]
        assert store.status().rows == 0
        write(table, rows(200, 230))
        store.follow(table)
        assert holds(store, now(table))

    def test_restore_brings_nobody_back_in_silence(self, store, table):
        store.follow(table)
        delta(table).delete("customer < 30")
        store.follow(table)
        delta(table).restore(0)
        before = store.history()
        with pytest.raises(AlreadyLearnedError, match=r"30 rows are of 30 ids.*--again"):
            store.follow(table)
        assert store.history() == before
        with pytest.warns(StoreWarning, match="30 rows are of 30 ids.*left out"):
            store.follow(table, drop_suppressed=True)
        assert holds(store, rows(30, 100))
        delta(table).delete("customer < 40")  # rows that are not held are not forgotten
        assert moves(store.follow(table)) == [(0, 10)]
        delta(table).restore(0)
        store.follow(table, again=True)
        assert holds(store, now(table))

    def test_a_column_that_went_is_named(self, store, table):
        store.follow(table)
        write(table, now(table).drop_columns(["pay"]), "overwrite", schema_mode="overwrite")
        before = store.history()
        with pytest.raises(TableError, match="'pay'"):
            store.follow(table)
        assert store.history() == before

    def test_a_column_of_another_type_is_named(self, store, table):
        store.follow(table)
        text = now(table).set_column(1, "age", pa.array(["old"] * 100))
        write(table, text, "overwrite", schema_mode="overwrite")
        with pytest.raises(TableError, match="'age'"):
            store.follow(table)

    @pytest.mark.parametrize("feature", ["deletionVectors", "columnMapping"])
    def test_a_table_that_the_reader_does_not_know(self, store, table, feature):
        store.follow(table)
        needed = {"minReaderVersion": 3, "minWriterVersion": 7, "writerFeatures": [feature]}
        needed["readerFeatures"] = [feature]
        log = os.path.join(table, "_delta_log", f"{1:020}.json")
        with open(log, "w") as file:
            file.write(json.dumps({"protocol": needed}))
        before = store.history()
        with pytest.raises(ValueError, match=feature):
            store.follow(table)
        assert store.history() == before

    def test_a_column_more_is_none_of_ours(self, store, table):
        store.follow(table)
        more = rows(100, 110).append_column("more", pa.array([1.0] * 10))
        write(table, more, schema_mode="merge")
        store.follow(table)
        assert holds(store, now(table))

    def test_another_table_in_its_place(self, store, table):
        store.follow(table)
        shutil.rmtree(table)
        write(table, rows(0, 90))
        for snapshot in (False, True):
            with pytest.raises(StoreError, match="store of its own"):
                store.follow(table, snapshot=snapshot)

    def test_a_table_that_was_set_back(self, store, table, tmp_path):
        shutil.copytree(table, tmp_path / "backup")
        write(table, rows(100, 110))
        store.follow(table)
        shutil.rmtree(table)
        shutil.copytree(tmp_path / "backup", table)
        with pytest.raises(StoreError, match=r"at version 0.*followed version 1.*set back"):
            store.follow(table)
        assert moves(store.follow(table, snapshot=True)) == [(0, 10)]
        assert holds(store, now(table))

    def test_a_history_that_was_rewritten(self, store, table, tmp_path):
        shutil.copytree(table, tmp_path / "backup")
        write(table, rows(100, 110))
        store.follow(table)
        shutil.rmtree(table)
        shutil.copytree(tmp_path / "backup", table)
        write(table, rows(110, 125))
        write(table, rows(125, 130))
        with pytest.raises(StoreError, match="history was rewritten"):
            store.follow(table)
        store.follow(table, snapshot=True)
        assert holds(store, now(table))

    def test_time_travel_back_and_forth(self, store, table):
        store.follow(table)
        for version in (0, 1, 0):
            write(table, rows(100, 110, seed=version))
            delta(table).restore(version)
            store.follow(table, again=True)
            assert holds(store, now(table))


class TestWhatElseIsDoneToTheStore:
    def test_a_model_that_was_changed_by_hand(self, store, table):
        store.follow(table)
        X, y = np.ones((30, 2)), ["yes"] * 30
        store.learn(X, y)
        write(table, rows(100, 110))
        with pytest.raises(StoreError, match="changed since entry 1"):
            store.follow(table)
        store.undo(X, y)
        store.follow(table)
        assert holds(store, now(table))
        store.learn(X, y)
        assert moves(store.follow(table, snapshot=True)) == [(0, 30)]
        assert holds(store, now(table))

    def test_somebody_who_was_forgotten_by_hand_first(self, store, table):
        store.follow(table)
        (batch,) = Files([rows(0, 30)], SCHEMA).rows()
        store.forget(*batch[:3], ids=batch[3])
        with pytest.raises(AlreadyLearnedError):
            store.follow(table, snapshot=True)
        with pytest.warns(StoreWarning, match="30 rows"):
            store.follow(table, snapshot=True, drop_suppressed=True)
        delta(table).delete("customer < 30")
        store.follow(table, snapshot=True)
        assert holds(store, now(table))

    def test_rows_that_wait_are_flushed_first(self, store, table):
        store.follow(table)
        (batch,) = Files([rows(0, 1)], SCHEMA).rows()
        store.forget(*batch[:3], ids=batch[3], batch=True)
        with pytest.raises(StoreError, match="queue"):
            store.follow(table)

    @pytest.mark.parametrize("what", ["secret", "model"])
    def test_what_was_destroyed(self, store, table, what):
        store.follow(table)
        store.destroy(what)
        with pytest.raises(StoreError, match="destroyed"):
            store.follow(table)

    def test_rows_that_were_merged_go(self, store, table):
        store.merge(LSSVC(SCHEMA.table, fingerprint=True).fit(np.eye(2), ["no", "yes"]))
        (receipt,) = store.follow(table)
        assert (receipt.added, receipt.removed, receipt.unknown) == (100, 2, 0)
        assert holds(store, now(table))

    def test_few_rows_reveal(self, store, table):
        store.follow(table)
        delta(table).delete("customer = 7")
        with pytest.warns(RevealingWarning):
            (receipt,) = store.follow(table)
        assert receipt.revealing

    @pytest.mark.parametrize(("n", "revealing"), [(19, True), (25, False)])
    def test_few_rows_of_a_snapshot_reveal(self, tmp_path, n, revealing):
        schema = Schema(Table([Number("age")]), ["bought"])
        frame = pa.table({"age": np.arange(80.0), "bought": ["no", "yes"] * 40})
        twice = pa.table({"age": [0.0] * 10, "bought": ["no"] * 10})
        store, path = new_store(tmp_path / "store", schema), str(tmp_path / "now.parquet")
        pa.parquet.write_table(pa.concat_tables([frame, twice]), path)
        store.follow(path)
        pa.parquet.write_table(frame.slice(2 * n), path)
        (receipt,) = store.follow(path)
        assert receipt.classes == {"no": -n - 10, "yes": -n}
        assert receipt.revealing is (revealing or n < 30)  # the equal rows could be of either
        assert holds(store, frame.slice(2 * n), schema)

    def test_no_table_is_declared(self, tmp_path, table):
        store = Store.new(tmp_path / "bare", LSSVC(SCHEMA.table))
        with pytest.raises(ValueError, match="schema="):
            store.follow(table)
        assert moves(store.follow(table, schema=SCHEMA)) == [(100, 0)]


class TestSnapshots:
    def test_an_export_each_night(self, store, tmp_path):
        import pyarrow.csv

        held = pa.concat_tables([rows(0, 60), rows(0, 2)])
        nights = held, held.slice(30), pa.concat_tables([held.slice(35), rows(70, 95)])
        for night, frame in enumerate(nights):
            path = str(tmp_path / f"export-{night}.csv")
            pyarrow.csv.write_csv(frame, path)
            store.follow(path)
            assert holds(store, frame)
        assert store.follow(path) == []
        assert store.receipt().subject == f"snapshot of {path}"

    @pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
    def test_a_query(self, store, tmp_path, kind):
        path = str(tmp_path / "shop.db")
        frame = rows(0, 60)
        if kind == "duckdb":
            duckdb = pytest.importorskip("duckdb")
            with duckdb.connect(path) as connection:
                connection.register("frame", frame)
                connection.execute("CREATE TABLE customers AS SELECT * FROM frame")
        else:
            connection = sqlite3.connect(path)
            connection.execute("CREATE TABLE customers (customer, age, pay, bought, note)")
            every = [tuple(row.values()) for row in frame.to_pylist()]
            connection.executemany("INSERT INTO customers VALUES (?, ?, ?, ?, ?)", every)
            connection.commit()
            connection.close()
        query = "SELECT * FROM customers WHERE customer "
        assert moves(store.follow(path, query=f"{query} < 50")) == [(50, 0)]
        assert moves(store.follow(path, query=f"{query} >= 25")) == [(10, 25)]
        assert holds(store, rows(25, 60))

    @pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
    @pytest.mark.parametrize("query", ["SELECT * FROM nobody", "DELETE FROM customers", " "])
    def test_a_query_without_an_answer(self, store, tmp_path, kind, query):
        library = sqlite3 if kind == "sqlite" else pytest.importorskip("duckdb")
        path = str(tmp_path / "shop.db")
        connection = library.connect(path)
        connection.execute("CREATE TABLE customers (customer INT, age INT, pay INT, bought TEXT)")
        connection.execute("INSERT INTO customers VALUES (1, 2, 3, 'no'), (2, 3, 4, 'yes')")
        connection.commit()
        connection.close()
        store.follow(path, query="SELECT * FROM customers")
        before = store.history()
        with pytest.raises(TableError, match="the query"):
            store.follow(path, query=query)
        assert store.history() == before

    def test_cells_of_two_kinds_in_a_column_of_sqlite(self, store, tmp_path):
        with sqlite3.connect(tmp_path / "shop.db") as connection:
            connection.execute("CREATE TABLE customers (customer, age, pay, bought)")
            connection.execute("INSERT INTO customers VALUES (1, 2, 3, 'no'), (2, 'old', 4, 'yes')")
        with pytest.raises(TableError, match="'old'"):
            store.follow(tmp_path / "shop.db", query="SELECT * FROM customers")

    def test_a_delta_table(self, store, table):
        store.follow(table)
        delta(table).delete("customer < 30")
        write(table, rows(100, 110))
        assert moves(store.follow(table, snapshot=True)) == [(10, 30)]
        write(table, rows(110, 120))
        assert moves(store.follow(table)) == [(10, 0)]
        assert holds(store, now(table))

    def test_an_empty_file_is_refused(self, store, tmp_path):
        path = tmp_path / "empty.csv"
        path.write_text("customer,age,pay,bought\n")
        with pytest.raises(TableError, match="no rows"):
            store.follow(str(path))


FOLLOWERS = """
import os, sys, warnings
warnings.simplefilter("ignore")
import deltalake, pyarrow.dataset, traceless.store.writer
from traceless.store import Store
for line in sys.stdin:  # deltalake, once used, cannot fork
    pids = []
    while len(pids) < int(line) and 0 not in pids:  # a child has no children
        pids.append(os.fork())
    if 0 in pids:
        for _ in range(3):
            Store(sys.argv[1], wait=60).follow(sys.argv[2])
        os._exit(0)
    print(*pids, flush=True)
    print(*[os.waitpid(pid, 0)[1] for pid in pids], flush=True)
"""


@pytest.fixture
def followers(store, table):
    """Start so many processes that follow; the function gives their pids, and how they ended."""
    command = [sys.executable, "-c", FOLLOWERS, str(store.path), table]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, bufsize=1, **pipes) as process:

        def numbers():
            return [int(word) for word in process.stdout.readline().split()]

        def start(n):
            process.stdin.write(f"{n}\n")
            return numbers(), numbers

        yield start
        process.stdin.close()


class TestTwoFollowersAndSuddenEnds:
    def test_two_followers(self, store, table, followers):
        store.follow(table)
        followers(1)[1]()  # the imports are done
        _, ends = followers(2)
        for k in range(8):
            write(table, rows(100 + k, 105 + k))
        assert ends() == [0, 0]
        store.follow(table)
        assert holds(store, now(table))
        versions = [e.followed.version for e in store.history() if e.kind == "follow"]
        assert versions == [*range(9)]

    def test_kill_9_anywhere(self, store, table, followers):
        rng, made = np.random.default_rng(0), 0
        store.follow(table)
        followers(1)[1]()  # the imports are done
        for k in range(1, 9):
            for first in (10 * k, 10 * k + 5):
                delta(table).delete(f"customer >= {first} AND customer < {first + 4}")
                write(table, rows(20 * first, 20 * first + 20))
            (pid,), ends = followers(1)
            time.sleep(rng.uniform(0, 0.2))
            with suppress(ProcessLookupError):  # it has done all
                os.kill(pid, signal.SIGKILL)
            ends()
            version = store.status().followed.version
            made += version == delta(table).version()
            store.flush()  # removes what the killed process left
            assert holds(store, deltalake.DeltaTable(table, version=version).to_pyarrow_table())
        assert made < 8
        store.follow(table)
        assert holds(store, now(table))


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), feed=st.booleans(), parts=st.booleans())
def test_rows_that_equal_others(tmp_path_factory, data, feed, parts):
    folder, schema = tmp_path_factory.mktemp("equal"), Schema(Table([Number("pay")]), ["bought"])
    path, store = str(folder / "table"), new_store(folder / "store", schema)
    some = st.lists(st.integers(0, 3), min_size=1, max_size=9)

    def frame():
        pays = data.draw(some)
        return pa.table(
            {"pay": [p / 1 for p in pays], "bought": [["no", "yes"][p % 2] for p in pays]}
        )

    options = {
        "configuration": FEED if feed else None,
        "partition_by": ["bought"] if parts else None,
    }
    write(path, frame(), **options)
    for _ in range(data.draw(st.integers(1, 6))):
        step, at = (
            data.draw(st.sampled_from(["append", "delete", "update", "swap", "overwrite"])),
            data.draw(st.integers(0, 3)),
        )
        if step in ("append", "overwrite"):
            write(path, frame(), step)
        elif step == "delete":
            delta(path).delete(f"pay = {at}")
        elif step == "update":
            delta(path).update(predicate=f"pay <= {at}", updates={"pay": "pay + 1"})
        else:
            delta(path).update(
                predicate=f"pay >= {at}", updates={"bought": "'no'", "pay": "3 - pay"}
            )
        if data.draw(st.booleans()):
            store.follow(path, batch=data.draw(st.booleans()))
            assert holds(store, now(path), schema)
    store.follow(path)
    assert holds(store, now(path), schema)


STEPS = st.sampled_from(["append", "delete", "update", "merge", "optimize", "vacuum", "restore"])


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), feed=st.booleans())
def test_the_digest_is_that_of_a_fit_after_any_history(tmp_path_factory, data, feed):
    folder = tmp_path_factory.mktemp("history")
    path, store = str(folder / "table"), new_store(folder / "store")
    write(path, rows(0, 20), configuration=FEED if feed else None)
    fresh = 20
    for _ in range(data.draw(st.integers(1, 6))):
        step, at = data.draw(STEPS), data.draw(st.integers(0, 25))
        there = delta(path)
        if step == "append":
            write(path, rows(fresh, fresh + at))
            fresh += at
        elif step == "delete":
            there.delete(f"customer >= {at} AND customer < {at + 5}")
        elif step == "update":
            there.update(predicate=f"customer % 3 = {at % 3}", updates={"pay": f"pay + {at % 2}"})
        elif step == "merge":
            (
                there.merge(rows(at, at + 10, seed=at), "t.customer = s.customer", "s", "t")
                .when_matched_update_all()
                .when_not_matched_insert_all()
                .execute()
            )
        elif step == "optimize":
            there.optimize.compact()
        elif step == "vacuum":
            vacuum(path)
        else:
            try:
                there.restore(data.draw(st.integers(0, there.version())))
            except Exception:  # its files are gone
                continue
        if data.draw(st.booleans()):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", StoreWarning)
                store.follow(path, batch=data.draw(st.booleans()), again=True)
            assert holds(store, now(path))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoreWarning)
        store.follow(path, again=True)
    assert holds(store, now(path))


@given(st.lists(st.integers(0, 6)), st.lists(st.lists(st.integers(0, 6))))
def test_what_is_taken_from_a_multiset(there, batches):
    def keys(numbers):
        return np.array([b"%032d" % n for n in numbers], "S32")

    found, left = Multiset([keys(there)]), list(there)
    for batch in batches:
        taken = found.take(keys(batch))
        for n, was in zip(batch, taken, strict=True):
            assert was == (n in left)
            if was:
                left.remove(n)
    digests, names = found.left()
    assert [*map(bytes.__add__, digests, names)] == [b"%032d" % n for n in sorted(left)]
