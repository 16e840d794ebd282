"""What a store costs: learning and forgetting against the bare library, size, time to verify.

    make bench-store                            10^5 and 10^6 rows of 20 columns
    python -m benchmarks.store --quick          10^4 rows

The store hashes every row, writes its digest, writes the model, signs and brings all of it to the
disk; the bare library learns the same rows in memory. The floor is what no store like this can
avoid: the hashes of each row, in a loop, and its digest in a table of SQLite. Jobs take turns,
and ratios of medians count. Goals are for a machine of its own; on one that others use, processor
time says what it would do.
"""

from __future__ import annotations

import itertools
import sqlite3
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from blake3 import blake3
from deltalake import DeltaTable, write_deltalake

from benchmarks.findings import FLOOR, Findings, Record, main, records_of
from papers.claims import Claim
from papers.datasets import Floats, Indices
from papers.timing import interleave
from traceless import LSSVC, LSSVR
from traceless.exceptions import RevealingWarning
from traceless.features import Number, Table
from traceless.sources import Schema
from traceless.store import Entry, Store
from traceless.store.keys import SigningKey
from traceless.store.opening import open_ledger

COLUMNS, ROUNDS = 20, 3
ROWS_OF_AN_ID = 3
ROWS_A_SECOND, SMALL_CHANGE, VERIFY, OPEN = 300_000, 0.008, 1.5, 0.2  # goals
SMALL = 10  # changes of one row in a row
SOME = 100  # rows of a version of a table
CPU = "store, processor time"
JOBS = {
    "Learn all rows": {
        "store": "store learn",
        CPU: "store learn, cpu",
        "store, with ids": "store learn with ids",
        "store, with ids, processor time": "store learn with ids, cpu",
        "bare library": "bare learn",
        FLOOR: "floor",
    },
    "Forget a tenth": {"store": "store forget", "bare library": "bare forget"},
    "One row out, or in": {
        "store": "store, one row out and in",
        CPU: "store, one row out and in, cpu",
        "bare library": "bare, one row out and in",
    },
    "100 rows out and in": {
        "store": "store, 100 rows out and in",
        "bare library": "bare, 100 rows out and in",
    },
    "A version of a table: 100 rows out, and one with them in": {
        "follow, with its feed": "follow, feed",
        "follow, from its files": "follow, files",
        "store, by hand": "store, by hand",
        "store, by hand, rows found in its files": "store, by hand from files",
    },
    "Verify": {
        "chain, files and digests": "store verify",
        "and the model from its rows": "store verify with rows",
        "bare library: fit and digest": "bare refit",
    },
}
Job = Callable[[], object]


def jobs(X: Floats, y: Indices, folder: Path) -> dict[str, Job]:
    """Learn all rows, forget a tenth, verify; each from the state that the one before left."""
    tenth = len(X) // 10
    numbers = itertools.count()
    now: dict[str, Store] = {}

    def store_learns() -> None:
        now["store"] = Store.new(folder / f"store{next(numbers)}", LSSVC())
        now["store"].learn(X, y)

    def store_learns_with_ids() -> None:
        Store.new(folder / f"store{next(numbers)}", LSSVC()).learn(X, y, ids=ids)

    ids = [f"customer {i // ROWS_OF_AN_ID}" for i in range(len(X))]
    bare = LSSVC().fit(X, y)
    return {
        "bare learn": lambda: LSSVC().partial_fit(X, y),
        "floor": lambda: floor(X, folder / f"floor{next(numbers)}"),
        "store learn with ids": store_learns_with_ids,
        "store learn": store_learns,
        "bare forget": lambda: bare.forget(X[:tenth], y[:tenth]).partial_fit(X[:tenth], y[:tenth]),
        "store forget": lambda: now["store"].forget(X[:tenth], y[:tenth]),
        "store verify": lambda: now["store"].verify(),
        "bare refit": lambda: LSSVC().partial_fit(X[tenth:], y[tenth:]).digest(),
        "store verify with rows": lambda: now["store"].verify(X[tenth:], y[tenth:]),
    }


def floor(X: Floats, path: Path) -> None:
    """The hashes of rows, and their digests in a table."""
    hasher, digests = blake3(key=bytes(32)), []
    for row in X.view(f"V{8 * X.shape[1]}")[:, 0].tolist():
        hasher.update(row).digest(2048)
        hasher.reset()
        digests.append(hasher.update(row).digest(16))
        hasher.reset()
        hasher.update(digests[-1]).digest(2048)
        hasher.reset()
    digests.sort()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE alive (digest BLOB PRIMARY KEY) WITHOUT ROWID")
        rows = 500  # in a statement: so each costs least
        for i in range(0, len(digests), rows):
            some = digests[i : i + rows]
            places = ", ".join(["(?)"] * len(some))
            connection.execute(f"INSERT INTO alive VALUES {places}", some)


def small_changes(X: Floats, y: Indices, folder: Path) -> dict[str, Job]:
    """One row and 100 rows at a time, in a store that is open."""
    store, bare = Store.new(folder / "small", LSSVC()), LSSVC().fit(X, y)
    store.learn(X, y)

    def store_changes(n: int) -> None:
        store.forget(X[:n], y[:n])
        store.learn(X[:n], y[:n])

    def bare_changes(n: int) -> None:
        bare.forget(X[:n], y[:n]).partial_fit(X[:n], y[:n])

    def often(change: Callable[[int], None]) -> None:
        for _ in range(SMALL):
            change(1)

    return {
        "bare, one row out and in": lambda: often(bare_changes),
        "store, one row out and in": lambda: often(store_changes),
        "bare, 100 rows out and in": lambda: bare_changes(100),
        "store, 100 rows out and in": lambda: store_changes(100),
    }


def table_versions(X: Floats, y: Indices, folder: Path) -> dict[str, Job]:
    """Follow a Delta table of one file, of which each second version deletes rows, or do as much.

    By hand the rows are there as arrays, or they are found by what the files of two versions have.
    """
    names = [f"x{k}" for k in range(COLUMNS)]
    schema = Schema(Table([Number(name) for name in names]), ("y",), "number")
    frame = pa.table([*X.T, y, np.arange(len(X))], [*names, "y", "row"])
    x = np.column_stack([frame[name] for name in names])

    def by_hand(X: Floats, y: Indices) -> None:
        store.forget(X, y)
        store.learn(X, y)

    def found_by_hand() -> None:
        old, new = (pa.parquet.read_table(path).to_pandas() for path in files)
        gone = old[~old["row"].isin(new["row"])]
        by_hand(gone[names].to_numpy(), gone["y"].to_numpy(float))

    def following(kind: str, feed: bool) -> Job:
        path, aside = folder / kind, folder / f"{kind}-versions"
        aside.mkdir()
        feeds = {"delta.enableChangeDataFeed": str(feed).lower()}
        write_deltalake(path, frame, configuration=feeds)
        follower = Store.new(folder / f"{kind}-store", LSSVR(schema.table))
        follower.follow(path, schema=schema)
        for _ in range(ROUNDS + 2):
            DeltaTable(path).delete(f"row >= {len(X) - SOME}")
            write_deltalake(path, frame.slice(len(X) - SOME), mode="append")
        logs = sorted((path / "_delta_log").glob("*.json"))[1:]
        hidden = iter([log.rename(aside / log.name) for log in logs])

        def follow() -> None:
            for log in itertools.islice(hidden, 2):
                log.rename(path / "_delta_log" / log.name)
                (receipt,) = follower.follow(path, schema=schema)
                assert receipt.added + receipt.removed == SOME

        return follow

    store = Store.new(folder / "by-hand", LSSVR(schema.table))
    store.learn(x, y)
    files = [folder / "old.parquet", folder / "new.parquet"]
    for path, n in zip(files, (len(X), len(X) - SOME), strict=True):
        pa.parquet.write_table(frame.slice(0, n), path)
    return {
        "follow, feed": following("fed", True),
        "store, by hand": lambda: by_hand(x[-SOME:], y[-SOME:]),
        "follow, files": following("unfed", False),
        "store, by hand from files": found_by_hand,
    }


def watched(jobs: dict[str, Job], spent: dict[str, float]) -> dict[str, Job]:
    """The same jobs, of which the least processor time is kept."""

    def watching(name: str, job: Job) -> Job:
        def run() -> None:
            start = time.process_time()
            job()
            name_here, now = f"{name}, cpu", time.process_time() - start
            spent[name_here] = min(now, spent.get(name_here, now))

        return run

    return {name: watching(name, job) for name, job in jobs.items()}


def cost(n: int) -> list[Record]:
    """What n rows cost, ways that belong together in one job."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, COLUMNS))
    y = (X[:, 0] > 0).astype(np.int64)
    spent: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as aside:
        seconds = interleave(watched(jobs(X, y, Path(aside)), spent), ROUNDS)
        with warnings.catch_warnings(action="ignore", category=RevealingWarning):
            seconds |= interleave(watched(small_changes(X, y, Path(aside)), spent), ROUNDS)
            seconds |= interleave(watched(table_versions(X, y, Path(aside)), spent), ROUNDS)
        size = Store(Path(aside) / "small").status().size
    seconds["bare forget"] /= 2  # it learned the rows again
    seconds |= spent
    for name in seconds:
        if "one row" in name:
            seconds[name] /= 2 * SMALL
    case, out = f"n = {n}", []
    for job, ways in JOBS.items():
        t = {way: seconds[name] for way, name in ways.items()}
        out += records_of(job, t, case)
    return [
        *out,
        Record("Size of the folder, for a million rows", "store", size / n * 1e6, case, "B"),
    ]


def long_ledgers(entries: dict[str, int]) -> dict[str, float]:
    """Seconds to open a ledger of so many entries, and processor time to verify it."""
    found = dict[str, float]()
    for job, n in entries.items():
        with tempfile.TemporaryDirectory() as aside:
            store = Store.new(Path(aside) / "store", LSSVC())
            key = SigningKey.read(store.path / "key")
            with open_ledger(store.path / "ledger.sqlite", "BEGIN IMMEDIATE") as ledger:
                for _ in range(n - 1):
                    last = ledger.last()
                    ledger.append(Entry.after(last, last.state, key, kind="learn"))
                ledger.seal([key])
                ledger.commit()
            if job == "verify":
                start = time.process_time()
                assert store.verify().ok
                found[job] = time.process_time() - start
            else:
                start = time.perf_counter()
                Store(store.path).status()
                found[job] = time.perf_counter() - start
    return found


def measure(quick: bool) -> Findings:
    lengths = {"verify": 500, "open": 1000} if quick else {"verify": 5000, "open": 100_000}
    long = long_ledgers(lengths)
    named = {"verify": f"verify {lengths['verify']} entries", "open": f"open {lengths['open']}"}
    limits = {"verify": VERIFY, "open": OPEN}
    about_time = [Claim(f"{named[j]} / {limits[j]} s", long[j] / limits[j], 1.0) for j in long]
    sizes = [10**4] if quick else [10**5, 10**6]
    notes = [f"Rows of {COLUMNS} columns. The bare library learns the same rows in memory."]
    found = Findings([record for n in sizes for record in cost(n)], notes=notes)
    each = [claim for n in sizes for claim in claims(found, n)]
    return replace(found, claims=[*each, *about_time])


def claims(found: Findings, n: int) -> list[Claim]:
    """The goals of the store."""
    case, learn, change = f"n = {n}", "Learn all rows", "One row out, or in"
    out = []
    for way in ("store", CPU):
        rate = n / found.value(learn, way, case) / ROWS_A_SECOND
        small = found.value(change, way, case) / SMALL_CHANGE
        said = way.replace("store", case)
        out.append(Claim(f"{said}: learned a second / 300 000 rows", rate, 1.0, at_least=True))
        out.append(Claim(f"{said}: a change of one row / 8 ms", small, 1.0))
    share = found.value(learn, "store", case) / found.value(learn, FLOOR, case)
    version = "A version of a table: 100 rows out, and one with them in"
    for way, hand in (
        ("follow, with its feed", "store, by hand"),
        ("follow, from its files", "store, by hand, rows found in its files"),
    ):
        ratio = found.value(version, way, case) / found.value(version, hand, case)
        out.append(Claim(f"{case}: {way} / {hand}", ratio, 1.2))
    return [*out, Claim(f"{case}: learn / floor", share, 2.0)]


if __name__ == "__main__":
    main(measure, __doc__)
