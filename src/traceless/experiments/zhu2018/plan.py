"""How much of each experiment is computed, and on which digits."""

from __future__ import annotations

from dataclasses import dataclass, replace

from traceless.datasets import find_mnist
from traceless.experiments.images import Images, mnist_images, small_images

SCALE = 0.3  # W of the random layer is uniform in ±SCALE


@dataclass(frozen=True)
class Plan:
    """How much is computed.

    Parameters
    ----------
    rows, test_rows : int
        Images used at most.
    stages : int
        In which the images arrive, in (a) and (c).
    nodes : tuple of int
        Slices that a stage arrives in, in (a).
    units, timed_units : int
        Of the random layer, in (a) and in (c).
    drift : int
        Stages of the streams of (b), an odd number.
    seeds, digit_seeds : int
        Streams of two classes, and of digits.
    stream_rows, digit_rows : int
        Rows of a stage of either.
    stream_units : int
        Of the random layer in (b).
    ratio : float
        Largest imbalance of the digits.
    rounds : int
        How often each time is measured.
    base : int
        Rows N of (d); 2N and 4N are timed too.
    work_units : int
        Of the random layer in (d).
    widths : tuple of int
        Numbers of features J at which costs are measured; the last one tests the model.
    class_numbers : tuple of int
        Numbers of classes K at which the solve is measured.
    """

    rows: int
    test_rows: int
    stages: int
    nodes: tuple[int, ...]
    units: int
    timed_units: int
    drift: int
    seeds: int
    digit_seeds: int
    stream_rows: int
    digit_rows: int
    stream_units: int
    ratio: float
    rounds: int
    base: int
    work_units: int
    widths: tuple[int, ...]
    class_numbers: tuple[int, ...]


FULL = Plan(
    rows=60_000,
    test_rows=10_000,
    stages=10,
    nodes=(1, 2, 4, 8),
    units=300,
    timed_units=300,
    drift=11,
    seeds=5,
    digit_seeds=3,
    stream_rows=1_000,
    digit_rows=2_000,
    stream_units=150,
    ratio=100.0,
    rounds=3,
    base=50_000,
    work_units=255,
    widths=(128, 256, 512, 1024),
    class_numbers=(2, 10, 50),
)
QUICK = Plan(
    rows=6_000,
    test_rows=1_000,
    stages=5,
    nodes=(1, 2, 4),
    units=60,
    timed_units=100,
    drift=5,
    seeds=2,
    digit_seeds=1,
    stream_rows=500,
    digit_rows=600,
    stream_units=60,
    ratio=30.0,
    rounds=1,
    base=4_000,
    work_units=127,
    widths=(64, 128, 192, 256),
    class_numbers=(2, 10),
)
DIGITS = replace(
    FULL,
    rows=1_347,
    test_rows=450,
    nodes=(1, 2, 4),
    units=60,
    timed_units=100,
    digit_rows=60,
    stream_units=60,
    ratio=10.0,
)
QUICK_DIGITS = replace(QUICK, rows=1_347, test_rows=450, digit_rows=100, ratio=10.0)


def load(quick: bool) -> tuple[Images, Plan]:
    """MNIST if it is on this machine, else the digits of scikit-learn; nothing is downloaded."""
    if find_mnist() is None:
        plan = QUICK_DIGITS if quick else DIGITS
        return small_images(plan.rows, plan.test_rows), plan
    plan = QUICK if quick else FULL
    return mnist_images(plan.rows, plan.test_rows), plan
