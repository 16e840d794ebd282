"""What a store costs: learning and forgetting against the bare library, size, time to verify.

    make bench-store                            10^5 and 10^6 rows of 20 columns
    python benchmarks/store.py --rows 100000

The store hashes every row, writes its digest, writes the model and brings all of it to the disk;
the bare library learns the same rows in memory. Jobs take turns, and ratios of medians count.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from interleave import interleave, machine
from traceless import LSSVC
from traceless.exact import Floats, Integers
from traceless.store import Store

COLUMNS, ROUNDS = 20, 3
Job = Callable[[], object]


def jobs(X: Floats, y: Integers, folder: Path) -> dict[str, Job]:
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


def one_change(X: Floats, y: Integers, folder: Path) -> dict[str, Job]:
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


def report(n: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, COLUMNS))
    y = (X[:, 0] > 0).astype(np.int64)
    with tempfile.TemporaryDirectory() as aside:
        seconds = interleave(jobs(X, y, Path(aside)), ROUNDS)
        seconds |= interleave(one_change(X, y, Path(aside)), ROUNDS)
        size = Store(Path(aside) / "small").status().size
    print(f"\n{n} rows of {COLUMNS} columns, {size / n * 1e6 / 2**20:.1f} MB for a million rows")
    for name, took in seconds.items():
        print(f"  {name:<28} {took * 1e3:9.1f} ms")
    learn = seconds["store learn"] / seconds["bare learn"]
    forget = seconds["store forget"] / (seconds["bare forget"] / 2)
    print(f"  learning {learn:.1f} ×, forgetting {forget:.1f} × the time of the bare library")
    print(f"  {n / seconds['store learn'] / 1e3:.0f} thousand rows learned in a second, ", end="")
    print(f"{n / 10 / seconds['store forget'] / 1e3:.0f} thousand forgotten")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10**5, 10**6])
    options = parser.parse_args()
    print(machine())
    for n in options.rows:
        report(n)


if __name__ == "__main__":
    main()
