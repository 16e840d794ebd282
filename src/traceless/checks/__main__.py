"""The long form of the checks: all of them, with one seed after another.

    python -m traceless.checks --minutes 5

prints how often each check was run and how often it failed, and what to repeat it with; it ends
with status 1 if any of them failed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from unittest import SkipTest

from traceless.checks import estimator_checks, feature_map_checks
from traceless.checks.ours import estimators, feature_maps, on_every_map

_SHOWN = 20  # failures that are printed


def _all_checks(seed: int) -> Iterator[Callable[[], None]]:
    for estimator in (*estimators(), *on_every_map()):
        yield from estimator_checks(estimator, seed=seed)
    for feature_map in feature_maps():
        yield from feature_map_checks(feature_map, seed=seed)


def main() -> int:
    """Run for some minutes; at least once through everything."""
    parser = argparse.ArgumentParser(description=__doc__, usage=argparse.SUPPRESS)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    asked = parser.parse_args()
    end = time.monotonic() + 60 * asked.minutes
    run: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    seed = asked.seed
    while seed == asked.seed or time.monotonic() < end:
        for check in _all_checks(seed):
            name = check.__name__
            try:
                check()
            except SkipTest:
                continue
            except Exception as error:
                failed[name] += 1
                if failed.total() <= _SHOWN:
                    notes = " ".join(getattr(error, "__notes__", []))
                    print(f"{type(error).__name__}: {error} ({notes})")  # noqa: T201
            run[name] += 1
            if seed > asked.seed and time.monotonic() > end:
                break
        seed += 1
    for name, n in run.items():
        print(f"{name:45} {n:6} run {failed[name]:6} failed")  # noqa: T201
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
