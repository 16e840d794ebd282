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
from itertools import chain, count
from unittest import SkipTest

from traceless.checks import estimator_checks, feature_map_checks
from traceless.checks.ours import estimators, feature_maps, on_every_map

_SHOWN = 20  # failures that are printed


def _checks_until(end: float, seed: int) -> Iterator[Callable[[], None]]:
    """All checks, with one seed after another until the time is over; at least once."""
    for number in count(seed):
        for check in chain(
            *(estimator_checks(one, seed=number) for one in (*estimators(), *on_every_map())),
            *(feature_map_checks(one, seed=number) for one in feature_maps()),
        ):
            if number > seed and time.monotonic() > end:
                return
            yield check


def main() -> int:
    """Run for some minutes; at least once through everything."""
    parser = argparse.ArgumentParser(description=__doc__, usage=argparse.SUPPRESS)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    asked = parser.parse_args()
    run: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for check in _checks_until(time.monotonic() + 60 * asked.minutes, asked.seed):
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
    for name, n in run.items():
        print(f"{name:45} {n:6} run {failed[name]:6} failed")  # noqa: T201
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
