"""The costs that the model needs, measured on this machine, on one thread.

Features are a random layer over 64 columns. Sums are scaled up to about 2^60, as if of
10^10 rows, so that the solve has as many digits to work on as it would have there; for
two limbs to beyond 2^63.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor

from papers.cost_model.model import GATHER, SOLVE, Costs, Handling, Terms, evaluated, fitted
from papers.datasets import Floats, Labels
from papers.rows import Row, Rows
from papers.timing import interleave
from traceless import Knowledge, wESVM
from traceless.arithmetic import integers
from traceless.features import RandomLayer
from traceless.sources.partitions import ArrayPartition
from traceless.sources.scanning import Partitioned

SCALE = 0.3  # W of the random layer is uniform in ±SCALE
COLUMNS = 64
PIECES = 8  # slices of the rows, whatever the number of processes
ROWS = (1_024, 6_144)  # gathered, to tell costs of a row from those of a piece
LARGEST = 9e7  # bytes of the matrices that are solved
GATHERED_CLASSES = (2, 10)
BITS = {"int64": 60, "two limbs": 70}  # of the largest sum
Job = Callable[[], object]
Jobs = dict[tuple[float, float, float], Job]  # by n, J and K


class Measured(NamedTuple):
    """The costs, and the times they come from, with those kept back for a test."""

    costs: Costs
    rows: Rows


def measure(widths: Sequence[int], class_numbers: Sequence[int], rounds: int) -> Measured:
    """All costs.

    Parameters
    ----------
    widths : sequence of int
        Numbers of features J; the last one is kept back and tests the model.
    class_numbers : sequence of int
        Numbers of classes K at which the solve is measured.
    rounds : int
        How often each time is measured.
    """
    time = partial(_fit, rounds=rounds, kept_back=widths[-1])
    jobs: Jobs = {
        (n, J, K): partial(Knowledge.of, layer(J).bind(COLUMNS), *synthetic(n, K), classwise=True)
        for J, K, n in product(widths, GATHERED_CLASSES, ROWS)
    }
    gather, rows = time("gather", GATHER, jobs)
    cubic, solves = _factor_seconds(2 * widths[-1]), {}
    for how, terms in SOLVE.items():
        jobs = _solves(how, widths, class_numbers)
        known = {next(iter(terms)): cubic}  # too small a part of the times to be fitted
        solves[how], more = time(f"solve, {how}", terms, jobs, known, prepared=True)
        rows += more
    J = widths[-2]
    narrow, wide = (_handling(scaled(gathered(2 * J, J, 10), b)) for b in BITS.values())
    costs = Costs(
        gather=gather,
        solve=solves,
        narrow=narrow,
        wide=wide,
        wide_solve=_wide_solve(widths[0]),
        file=_file_seconds(),
        dispatch=_dispatch_seconds(),
        mean_square=mean_square(),
    )
    return Measured(costs, rows)


# --- synthetic rows and what is known of them ----------------------------------------------------


def synthetic(n: int, n_classes: int) -> tuple[Floats, Labels]:
    """Standard normal columns, classes by the largest of K projections; only the work matters.

    The first rows are the same whatever n.
    """
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(COLUMNS, n_classes))
    X = rng.normal(size=(n, COLUMNS))
    return X, np.argmax(X @ directions, axis=1)


def written(folder: Path, n: int, n_classes: int) -> Partitioned:
    """Synthetic rows and labels in files, to be read in `PIECES` slices."""
    paths = [folder / f"{what}-{n}-{n_classes}.npy" for what in ("rows", "labels")]
    for path, array in zip(paths, synthetic(n, n_classes), strict=True):
        np.save(path, array)
    X, y = (np.load(path, mmap_mode="r") for path in paths)
    ends = [n * k // PIECES for k in range(PIECES + 1)]
    cut = [ArrayPartition(X, y[a:b], None, a, b) for a, b in pairwise(ends)]
    return Partitioned(cut, COLUMNS)


def layer(J: int) -> RandomLayer:
    """A map with J features, the constant one among them."""
    return RandomLayer(J - 1, scale=SCALE)


def gathered(n: int, J: int, K: int, classwise: bool = True) -> Knowledge:
    """The knowledge of synthetic rows."""
    return Knowledge.of(layer(J), *synthetic(n, K), classwise=classwise)


def scaled(known: Knowledge, bits: int) -> Knowledge:
    """The same with sums over all classes as large as those of many more rows."""
    more = bits - int(known.pooled().sums.max()).bit_length()
    total = integers.shifted(known.total, more)
    return replace(known, total=total, counts=tuple(n << more for n in known.counts))


def mean_square() -> float:
    """The largest mean of φ² over the features of a layer."""
    Phi = layer(256).transform(synthetic(2_000, 2)[0])[:, :-1]
    return float((Phi * Phi).mean(axis=0).max())


# --- gathering and solving: fitted, with the widest kept back ------------------------------------


def _fit(
    what: str,
    terms: Terms,
    jobs: Jobs,
    known: Mapping[str, float] | None = None,
    *,
    rounds: int,
    kept_back: int,
    prepared: bool = False,
) -> tuple[dict[str, float], Rows]:
    """Coefficients of the terms from timed jobs, and every time beside the one they predict."""
    times = interleave(jobs, rounds, f"(e) {what}", prepared=prepared)
    used = {point: s for point, s in times.items() if point[1] != kept_back}
    coefficients = fitted(terms, list(used), list(used.values()), known)
    rows = []
    for point, seconds in times.items():
        predicted = evaluated(terms, coefficients, *point)
        kind = "fitted" if point in used else "kept back"
        rows.append(compared(what, 1, *point, seconds, predicted, kind))
    return coefficients, rows


def compared(*values: Any) -> Row:
    """A measured time beside a predicted one, as a row of a table."""
    names = ("what", "workers", "rows", "features", "classes", "measured", "predicted", "used")
    return dict(zip(names, values, strict=True))


def _factor_seconds(J: int) -> float:
    """Seconds of a Cholesky factorisation, divided by J³."""
    A = np.eye(J) + 1.0 / J
    return _median(partial(cho_factor, A, check_finite=False), 3) / J**3


def _solves(how: str, widths: Sequence[int], class_numbers: Sequence[int]) -> Jobs:
    jobs: Jobs = {}
    for J, K in product(widths, class_numbers):
        matrices = 1 if how == "pooled" else K
        alike = how == "one_vs_rest" and K == 2  # two classes have one problem only
        if 8 * matrices * J * J <= LARGEST and not alike:
            sums = scaled(gathered(4 * J, J, K, how != "pooled"), BITS["int64"])
            jobs[0, J, K] = partial(_solve, sums, how)
    return jobs


def _solve(known: Knowledge, how: str) -> Job:
    """Compute the coefficients, with a ridge in proportion to the number of rows."""
    rule, scope = (None, "shared") if how == "pooled" else ("balanced", how)
    C = 1e4 / known.n_samples
    model = wESVM(known.n_outputs - 1, C, class_weight=rule, weighting=scope, scale=SCALE)
    model.merge(known)
    return lambda: model.feature_coef_


def _wide_solve(J: int) -> float:
    """Further seconds for each entry of a matrix, where entries have two limbs."""
    known = gathered(4 * J, J, 2)
    jobs = {kind: partial(_solve, scaled(known, bits), "shared") for kind, bits in BITS.items()}
    narrow, wide = interleave(jobs, 5, "(e) two limbs", prepared=True).values()
    return max(0.0, wide - narrow) / (2 * J * J)


# --- pieces and where they travel ----------------------------------------------------------------


def _handling(known: Knowledge) -> Handling:
    """Seconds for each packed integer of a piece."""
    dump = partial(pickle.dumps, known, protocol=pickle.HIGHEST_PROTOCOL)
    packed = dump()
    K, J = len(known.responses), known.n_outputs + 1
    entries = K * J * (J + 1) / 2
    return Handling(
        add=_median(lambda: known + known) / entries,
        dump=_median(dump) / entries,
        load=_median(partial(pickle.loads, packed)) / entries,
        size=len(packed) / entries,
    )


def _file_seconds(size: int = 2**24) -> float:
    """Seconds to write a byte to a temporary file and read it again."""
    with tempfile.TemporaryDirectory(prefix="traceless-") as folder:
        file, data = Path(folder) / "piece", bytes(size)
        return _median(lambda: (file.write_bytes(data), file.read_bytes())) / size


def _dispatch_seconds() -> float:
    """Seconds of a round of tasks in two processes that have next to nothing to do."""
    with tempfile.TemporaryDirectory(prefix="traceless-") as folder:
        source = written(Path(folder), 16 * PIECES, 2)
        model = wESVM(8, n_jobs=2)
        return _median(lambda: model.partial_fit(source))


def _median(job: Job, rounds: int = 5) -> float:
    return interleave({"": job}, rounds, "(e) small costs")[""]
