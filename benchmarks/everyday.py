"""Raw everyday data with default parameters: LSSVC and LSSVR beside scikit-learn's ridge.

    python -m benchmarks.everyday                   about sixty sets, some minutes
    python -m benchmarks.everyday --quick           at most 300 rows of each

A model sees the columns in their own units (`everyday_sets`). The yardstick is scikit-learn's
pipeline of a scaler and a ridge that chooses its penalty by cross-validation. Every row is
predicted once in each repetition by a model that has not seen it (five folds, fixed seeds), and
one accuracy or R² is computed over all of them, so that sets of twenty rows have a score too;
scores of repetitions are averaged. An R² below -1 is shown, and counts as -1 in means. The goals
are tried on all sets, and again without those for which our default warns that its grid is too
coarse. Writes everyday.json to benchmarks/results.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.linear_model import Ridge, RidgeClassifier, RidgeClassifierCV, RidgeCV
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.everyday_sets import (
    CLASSIFICATION,
    REGRESSION,
    ROWS,
    DataSet,
    Task,
    data_sets,
    missing_packages,
)
from benchmarks.findings import Findings, Record, main
from papers.claims import Claim
from papers.timing import shown
from traceless import LSSVC, LSSVR
from traceless.exceptions import ResolutionWarning

Ways = Mapping[str, Callable[[], Any]]
JOBS: dict[Task, str] = {
    CLASSIFICATION: "Accuracy on rows held out, raw data",
    REGRESSION: "R² on rows held out, raw data",
}
MEAN = "mean of all sets"
FOLDS = 5
REPETITIONS = {200: 20, 2000: 5}  # up to so many rows; larger sets are cut into folds once


def ways(task: Task) -> dict[str, Callable[[], Any]]:
    """The models by name: ours with default parameters, the yardstick, and others."""
    ours: Any = LSSVC if task == CLASSIFICATION else LSSVR
    search, plain = (
        (RidgeClassifierCV, RidgeClassifier) if task == CLASSIFICATION else (RidgeCV, Ridge)
    )
    return {
        f"{ours.__name__}()": ours,
        f"StandardScaler + {search.__name__}": lambda: make_pipeline(StandardScaler(), search()),
        f"{plain.__name__}()": plain,
        "standardize=False": partial(ours, standardize=False),
        'rho="evidence"': partial(ours, rho="evidence"),
    }


def folds(data: DataSet, seed: int) -> list[tuple[Any, Any]]:
    """Rows to learn from and rows to predict; each row is predicted once."""
    kind = StratifiedKFold if data.task == CLASSIFICATION else KFold
    return list(kind(FOLDS, shuffle=True, random_state=seed).split(data.X, data.y))


def score(make: Callable[[], Any], data: DataSet, seed: int) -> float:
    """Accuracy or R² of predictions for rows that the model has not seen."""
    predicted = np.empty_like(data.y)
    for train, test in folds(data, seed):
        predicted[test] = make().fit(data.X[train], data.y[train]).predict(data.X[test])
    right = accuracy_score if data.task == CLASSIFICATION else r2_score
    return float(right(data.y, predicted))


def scores(models: Ways, data: DataSet, often: int) -> tuple[dict[str, float], list[str]]:
    """Mean score of each model on one set, and those that warned of too coarse a grid."""
    found, warned = {}, []
    for way, make in models.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found[way] = float(np.mean([score(make, data, seed) for seed in range(often)]))
        if any(issubclass(w.category, ResolutionWarning) for w in caught):
            warned.append(way)
    return found, warned


def repetitions(rows: int) -> int:
    """More for small sets, whose scores depend on how they are cut."""
    return next((often for most, often in REPETITIONS.items() if rows <= most), 1)


def compare(
    sets: Iterable[DataSet], models: Callable[[Task], Ways] = ways, quick: bool = False
) -> tuple[list[Record], list[str]]:
    """Records of all sets, and the cases for which our default found its grid too coarse."""
    records, coarse = [], []
    for data in sets:
        of = models(data.task)
        found, warned = scores(of, data, 1 if quick else repetitions(len(data.X)))
        records += [Record(JOBS[data.task], w, v, data.case, "share") for w, v in found.items()]
        if next(iter(of)) in warned:
            coarse.append(data.case)
    return records, coarse


def table(records: Sequence[Record], job: str) -> dict[str, np.ndarray[Any, Any]]:
    """The scores of each way over the sets, none below -1."""
    out: dict[str, list[float]] = {}
    for r in records:
        if r.job == job:
            out.setdefault(r.way, []).append(max(r.value, -1.0))
    return {way: np.array(values) for way, values in out.items()}


def means(records: Sequence[Record]) -> list[Record]:
    """A last line for each table: the mean over all sets."""
    return [
        Record(job, way, float(values.mean()), MEAN, "share")
        for job in JOBS.values()
        for way, values in table(records, job).items()
    ]


def claims_of(records: Sequence[Record], coarse: Sequence[str] = ()) -> list[Claim]:
    """The goals: 1 % behind the yardstick on average, 5 % on no set.

    Of all sets; and, where our default warned on some, also of the sets without a warning.
    """
    silent = [r for r in records if r.case not in coarse]
    groups = {"": records} | ({", no warning": silent} if coarse else {})
    return [claim for which, some in groups.items() for claim in _goals(some, which)]


def _goals(records: Sequence[Record], which: str) -> Iterator[Claim]:
    """Differences of scores, because ratios of an R² near 0 mean nothing: 1 + ours - theirs."""
    for job in JOBS.values():
        found = table(records, job)
        if found:
            ours, theirs = list(found)[:2]
            behind = 1 + found[ours] - found[theirs]
            what = f"{job.partition(' ')[0]}, 1 + {ours} - ({theirs}){which}"
            yield Claim(f"{what}, mean", float(behind.mean()), 0.99, at_least=True)
            yield Claim(f"{what}, worst set", float(behind.min()), 0.95, at_least=True)


def notes_of(records: Sequence[Record], coarse: Sequence[str]) -> list[str]:
    """How many sets there were, which are missing, and where the grid was too coarse."""
    sets = {(r.job, r.case) for r in records}
    counts = [sum(job == one for one, _ in sets) for job in JOBS.values()]
    out = [f"{counts[0]} sets of classification, {counts[1]} of regression."]
    if coarse:
        named = "; ".join(coarse)
        out.append(f"Our default warned that its grid is too coarse for: {named}.")
    if missing_packages():
        out.append(f"Left out, not installed: the sets of {', '.join(missing_packages())}.")
    return out


def measure(quick: bool) -> Findings:
    sets = list(data_sets(300 if quick else ROWS))
    found, coarse = compare(shown(sets, f"{len(sets)} sets"), quick=quick)
    return Findings([*found, *means(found)], claims_of(found, coarse), notes_of(found, coarse))


if __name__ == "__main__":
    main(measure, __doc__)
