"""What a store costs: learning and forgetting against the bare library, size, time to verify.

    make bench-store                            10^5 and 10^6 rows of 20 columns
    python -m benchmarks.store --quick          10^4 rows

The store hashes every row, writes its digest, writes the model and brings all of it to the disk;
the bare library learns the same rows in memory. Jobs take turns, and ratios of medians count.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.findings import Findings, Record, main, records_of
from papers.datasets import Floats, Indices
from papers.timing import interleave
from traceless import LSSVC
from traceless.store import Store

COLUMNS, ROUNDS = 20, 3
JOBS = {
    "Learn all rows": {"store": "store learn", "bare library": "bare learn"},
    "Forget a tenth": {"store": "store forget", "bare library": "bare forget"},
    "100 rows out and in": {
        "store": "store, 100 rows out and in",
        "bare library": "bare, 100 rows out and in",
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

    bare = LSSVC().fit(X, y)
    return {
        "bare learn": lambda: LSSVC().partial_fit(X, y),
        "store learn": store_learns,
        "bare forget": lambda: bare.forget(X[:tenth], y[:tenth]).partial_fit(X[:tenth], y[:tenth]),
        "store forget": lambda: now["store"].forget(X[:tenth], y[:tenth]),
        "store verify": lambda: now["store"].verify(),
        "bare refit": lambda: LSSVC().partial_fit(X[tenth:], y[tenth:]).digest(),
        "store verify with rows": lambda: now["store"].verify(X[tenth:], y[tenth:]),
    }


def one_change(X: Floats, y: Indices, folder: Path) -> dict[str, Job]:
    """Small changes: 100 rows at a time, in a store that is open."""
    store, bare = Store.new(folder / "small", LSSVC()), LSSVC().fit(X, y)
    store.learn(X, y)

    def store_changes() -> None:
        store.forget(X[:100], y[:100])
        store.learn(X[:100], y[:100])

    return {
        "bare, 100 rows out and in": lambda: bare.forget(X[:100], y[:100]).partial_fit(
            X[:100], y[:100]
        ),
        "store, 100 rows out and in": store_changes,
    }


def cost(n: int) -> list[Record]:
    """What n rows cost, ways that belong together in one job."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, COLUMNS))
    y = (X[:, 0] > 0).astype(np.int64)
    with tempfile.TemporaryDirectory() as aside:
        seconds = interleave(jobs(X, y, Path(aside)), ROUNDS)
        seconds |= interleave(one_change(X, y, Path(aside)), ROUNDS)
        size = Store(Path(aside) / "small").status().size
    seconds["bare forget"] /= 2  # it learned the rows again
    case, out = f"n = {n}", []
    for job, ways in JOBS.items():
        t = {way: seconds[name] for way, name in ways.items()}
        out += records_of(job, t, case)
    return [
        *out,
        Record("Size of the folder, for a million rows", "store", size / n * 1e6, case, "B"),
    ]


def measure(quick: bool) -> Findings:
    sizes = [10**4] if quick else [10**5, 10**6]
    notes = [f"Rows of {COLUMNS} columns. The bare library learns the same rows in memory."]
    return Findings([record for n in sizes for record in cost(n)], notes=notes)


if __name__ == "__main__":
    main(measure, __doc__)
