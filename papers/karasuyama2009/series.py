"""(c) A time series learned on line: a month comes, the oldest month goes.

Each row has three variables of seven days, its label is whether the first variable is higher
on the next day than on the last of the seven. The paper's series is the Fisher River near
Dallas, 1988 to 1991 (temperature, precipitation, flow). Where a user does not have it, real
weather of the same shape takes its place: Seattle, 2012 to 2015, from the package vega_datasets,
which carries it along.

A file of the river is a CSV with a header and one line for each day, in order. The columns
`temperature`, `precipitation` and `flow` are read, whatever others there are:

    date,temperature,precipitation,flow
    1988-01-01,-9.5,0.0,2.31
"""

from __future__ import annotations

import copy
import csv
import importlib.util
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from papers.datasets import Floats, Indices
from papers.karasuyama2009.changes import Change, exactness, measured
from papers.karasuyama2009.points import PointProblem
from papers.report import Plan
from papers.rows import Rows
from papers.timing import shown

MONTH = 30  # days added and removed at once, as in the paper
DAYS = 7
INITIAL = 1423  # rows at first, as in the paper
RIVER = ("flow", "temperature", "precipitation")  # the first one is predicted
WEATHER = ("temp_max", "precipitation", "wind")
MISSING = (
    "(c) was left out: the weather data are in the package vega_datasets, which is not "
    "installed. Install it with pip install -e '.[papers]', or give the paper's own "
    "series with --fisher-river."
)


@dataclass(frozen=True)
class Series:
    """Rows of a time series, scaled to [0, 1] by those there are at first."""

    name: str
    X: Floats
    y: Floats
    initial: int

    @property
    def described(self) -> str:
        """Name, size and share of rises in words."""
        return (
            f"{self.name}, {len(self.y):,} rows of {self.X.shape[1]} features, {self.initial:,} "
            f"at first, {(self.y > 0).mean():.0%} up"
        )

    def change(self, gamma: float, C: float) -> Change:
        """The paper's update: the month after the first rows comes, the oldest month goes."""
        return self.window(0, self.initial, gamma, C)

    def window(self, start: int, size: int, gamma: float, C: float) -> Change:
        """A window that moves on by a month."""
        old, new = slice(start, start + size), slice(start + size, start + size + MONTH)
        gone = np.arange(MONTH)
        return Change(self.X[old], self.y[old], self.X[new], self.y[new], gone, gamma, C)


def read_days(path: Path, columns: tuple[str, ...]) -> Floats:
    """Some columns of a CSV file, one line for each day."""
    with path.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    missing = [name for name in columns if not lines or lines[0].get(name) is None]
    if missing:
        raise ValueError(
            f"{path.name} has no column {', '.join(missing)}. Expected: a CSV file with a header "
            f"that names {', '.join(columns)}, and one line for each day."
        )
    try:
        days = np.array([[float(line[name]) for name in columns] for line in lines])
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path.name}: every day needs a number in each column: {error}") from None
    if len(days) < DAYS + 3 * MONTH or not np.isfinite(days).all():
        raise ValueError(f"{path.name}: expected at least {DAYS + 3 * MONTH} days without gaps.")
    return days


def rows_of(days: Floats) -> tuple[Floats, Floats]:
    """Seven days side by side, and 1 where the first variable rises on the next, else -1.

    Examples
    --------
    >>> days = np.array([[3.0], [1], [2], [5], [4], [6], [8], [9], [7]])
    >>> rows_of(days)[1]
    array([ 1., -1.])
    """
    X = np.stack([days[i : i + DAYS].ravel() for i in range(len(days) - DAYS)])
    rises = days[DAYS:, 0] > days[DAYS - 1 : -1, 0]
    return X, np.where(rises, 1.0, -1.0)


def series_of(name: str, days: Floats) -> Series:
    """Rows in [0, 1], scaled by the first ones only."""
    X, y = rows_of(days)
    initial = min(INITIAL, len(X) - MONTH)
    low, high = X[:initial].min(axis=0), X[:initial].max(axis=0)
    return Series(name, (X - low) / np.where(high > low, high - low, 1.0), y, initial)


def load(river: Path | None) -> Series | None:
    """The river if there is a file of it, else the weather; None if there is neither."""
    if river is not None:
        return series_of("Fisher River", read_days(river, RIVER))
    if importlib.util.find_spec("vega_datasets") is None:
        return None
    from vega_datasets import data

    return series_of("Seattle weather", read_days(Path(data.seattle_weather.filepath), WEATHER))


# --- measurements -------------------------------------------------------------------------------


def monthly_update(series: Series, plan: Plan) -> Rows:
    """(c) The paper's update for every C and γ, and the error of cross-validation."""
    rows: Rows = []
    for gamma, C in shown(list(product(plan.gammas, plan.Cs)), "(c) series"):
        change = series.change(gamma, C)
        problem = change.before()
        told = {
            "gamma": gamma,
            "C": C,
            "margin": int(((problem.alpha > 0.0) & (problem.alpha < problem.bounds)).sum()),
            "bounded": int((problem.alpha >= problem.bounds).sum()),
            "cv_error": cross_validated(change, problem, plan.folds),
        }
        rows.append(told | measured(change, series.X, plan.repeats))
    return rows


def cross_validated(change: Change, problem: PointProblem, folds: int) -> float:
    """The share of rows that are wrong where a model is asked that has unlearned their fold."""
    X, y, wrong = change.X, change.y, 0
    for fold in fold_places(len(y), folds):
        without = copy.deepcopy(problem).update(remove=fold)
        wrong += int((y[fold] * without.decision_function(X[fold]) <= 0.0).sum())
    return wrong / len(y)


def fold_places(n: int, folds: int) -> list[Indices]:
    """Random folds of about the same size."""
    return [np.sort(f) for f in np.array_split(np.random.default_rng(0).permutation(n), folds)]


def months(series: Series, plan: Plan) -> Rows:
    """(e) A window that moves on month by month, one model all along."""
    several = min(plan.months, len(series.y) // MONTH - 2)
    size = len(series.y) - several * MONTH
    rows: Rows = []
    for gamma, C in shown([(0.1, 10.0), (0.1, 1000.0)], "(e) months"):
        problem = series.window(0, size, gamma, C).before()
        for month in range(several):
            change = series.window(month * MONTH, size, gamma, C)
            change.mid(problem)
            told = {"gamma": gamma, "C": C, "month": month + 1}
            rows.append(told | exactness(change, problem, series.X))
    return rows
