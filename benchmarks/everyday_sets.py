"""Everyday data sets, raw: files that Python packages bring along, and some generated ones.

Nothing is scaled, no column is chosen, nothing is downloaded. Text becomes one column for each
value (`pandas.get_dummies`), a date the number of days since 1970, and rows with a missing value
are dropped. Packages that are not installed are left out, and named by `missing_packages`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn import datasets

from papers.datasets import Floats, find_mnist, load_mnist

Task = Literal["classification", "regression"]
Frame = Any  # pandas.DataFrame, without types
CLASSIFICATION: Task = "classification"
REGRESSION: Task = "regression"
ROWS = 6000  # of larger sets so many rows are drawn
VEGA, STATSMODELS, RIVER, PLOTNINE = "vega_datasets", "statsmodels", "river", "plotnine"


@dataclass(frozen=True)
class DataSet:
    """Rows as they come, and what is to be predicted."""

    name: str
    task: Task
    X: Floats
    y: Any

    @property
    def case(self) -> str:
        """Name and size: "wine (178 × 13)"."""
        return f"{self.name} ({len(self.X)} × {self.X.shape[1]})"


def data_sets(most_rows: int = ROWS) -> Iterator[DataSet]:
    """All sets that can be had here, of at most so many rows each."""
    for found in (*bundled_with_sklearn(), *mnist(), *from_packages(), *generated()):
        yield at_most(found, most_rows)


def at_most(found: DataSet, rows: int) -> DataSet:
    """The same set, of rows drawn at random where there are more than wanted."""
    if len(found.X) <= rows:
        return found
    some = np.random.default_rng(0).choice(len(found.X), rows, replace=False)
    return DataSet(found.name, found.task, found.X[some], found.y[some])


# --- scikit-learn and MNIST --------------------------------------------------------------------


def bundled_with_sklearn() -> Iterator[DataSet]:
    """What scikit-learn has inside its package; the columns of diabetes in their own units."""
    for name in ("iris", "wine", "breast_cancer", "digits"):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        yield DataSet(name.replace("_", " "), CLASSIFICATION, X, y)
    yield DataSet("diabetes", REGRESSION, *datasets.load_diabetes(return_X_y=True, scaled=False))
    yield DataSet("diabetes, scaled", REGRESSION, *datasets.load_diabetes(return_X_y=True))
    yield DataSet("linnerud", REGRESSION, *datasets.load_linnerud(return_X_y=True))


def mnist() -> Iterator[DataSet]:
    """Images with pixels from 0 to 255, where MNIST lies on this machine."""
    if find_mnist() is not None:
        images, digits = load_mnist("train")
        yield DataSet("MNIST", CLASSIFICATION, images.astype(np.float64), digits)


# --- files inside packages ---------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """A file inside a package: which column is the target, and which columns only name rows."""

    name: str
    package: str
    path: str
    target: str
    task: Task
    drop: Sequence[str] = ()
    dates: Sequence[str] = ()
    separator: str = ","
    prepare: Callable[[Frame], Frame] = lambda frame: frame

    def read(self) -> DataSet | None:
        """The set; None where the package is not installed."""
        spec = find_spec(self.package)
        folders = spec.submodule_search_locations if spec else None
        if not folders:
            return None
        path = Path(folders[0]) / self.path
        if path.suffix == ".json":
            frame = pd.DataFrame(json.loads(path.read_text(encoding="utf-8")))
        else:
            frame = pd.read_csv(path, sep=self.separator, quotechar=_quote(path))
        for column in self.dates:
            frame[column] = (pd.to_datetime(frame[column]) - pd.Timestamp(0)).dt.days
        return self._of(self.prepare(frame).drop(columns=list(self.drop)).dropna())

    def _of(self, frame: Frame) -> DataSet:
        y = frame[self.target].to_numpy()
        X = pd.get_dummies(frame.drop(columns=self.target), dtype=float).to_numpy(np.float64)
        labels = y.astype(str) if y.dtype.kind not in "biuf" else y
        numeric = self.task == REGRESSION
        return DataSet(self.name, self.task, X, y.astype(np.float64) if numeric else labels)


def _quote(path: Path) -> str:
    """Some of statsmodels' files have single quotes around their names."""
    if path.suffix != ".csv":
        return '"'
    with path.open(encoding="utf-8") as file:
        return "'" if file.read(1) == "'" else '"'


def _bundled(name: str) -> str:
    return f"datasets/{name}/{name}.csv"


def _most_common(column: str, values: int) -> Callable[[Frame], Frame]:
    """Keep the rows with the most common values of a column."""
    return lambda f: f[f[column].isin(f[column].value_counts().index[:values])]


def _any(column: str) -> Callable[[Frame], Frame]:
    """Whether there is any, in place of how many."""
    return lambda f: f.assign(**{column: (f[column] > 0).astype(int)})


def _hours(frame: Frame) -> Frame:
    """A time of the year as month, day and hour."""
    when = pd.to_datetime(frame["date"])
    parts = {"month": when.dt.month, "day": when.dt.day_of_year, "hour": when.dt.hour}
    return frame.drop(columns="date").assign(**parts)


TABLES = [
    Table("cars: origin", VEGA, "_data/cars.json", "Origin", CLASSIFICATION, ["Name"], ["Year"]),
    Table(
        "Seattle: weather",
        VEGA,
        "_data/seattle-weather.csv",
        "weather",
        CLASSIFICATION,
        dates=["date"],
    ),
    Table(
        "airports: state",
        VEGA,
        "_data/airports.csv",
        "state",
        CLASSIFICATION,
        ["iata", "name", "city", "country"],
        prepare=_most_common("state", 10),
    ),
    Table(
        "burtin: Gram staining",
        VEGA,
        "_data/burtin.json",
        "Gram_Staining",
        CLASSIFICATION,
        ["Bacteria", "Genus"],
    ),
    Table(
        "cars: mileage", VEGA, "_data/cars.json", "Miles_per_Gallon", REGRESSION, ["Name"], ["Year"]
    ),
    Table("barley: yield", VEGA, "_data/barley.json", "yield", REGRESSION),
    Table(
        "Seattle: temperature", VEGA, "_data/seattle-temps.csv", "temp", REGRESSION, prepare=_hours
    ),
    Table("stocks: price", VEGA, "_data/stocks.csv", "price", REGRESSION, dates=["date"]),
    Table(
        "wheat: wages",
        VEGA,
        "_data/wheat.json",
        "wages",
        REGRESSION,
        prepare=lambda frame: frame.astype(float),  # its years are strings
    ),
    Table(
        "Iowa: electricity",
        VEGA,
        "_data/iowa-electricity.csv",
        "net_generation",
        REGRESSION,
        dates=["year"],
    ),
    Table(
        "US employment: change",
        VEGA,
        "_data/us-employment.csv",
        "nonfarm_change",
        REGRESSION,
        dates=["month"],
    ),
    Table("anes96: vote", STATSMODELS, _bundled("anes96"), "vote", CLASSIFICATION, separator="\t"),
    Table(
        "fair: affairs",
        STATSMODELS,
        _bundled("fair"),
        "affairs",
        CLASSIFICATION,
        prepare=_any("affairs"),
    ),
    Table(
        "modechoice",
        STATSMODELS,
        _bundled("modechoice"),
        "choice",
        CLASSIFICATION,
        ["individual"],
        separator=";",
    ),
    Table(
        "spector: grade",
        STATSMODELS,
        _bundled("spector"),
        "GRADE",
        CLASSIFICATION,
        ["OBS"],
        separator=" ",
    ),
    Table("heart: censored", STATSMODELS, _bundled("heart"), "censors", CLASSIFICATION),
    Table(
        "randhie: any visit",
        STATSMODELS,
        _bundled("randhie"),
        "mdvis",
        CLASSIFICATION,
        prepare=_any("mdvis"),
    ),
    Table("longley", STATSMODELS, _bundled("longley"), "TOTEMP", REGRESSION, ["Obs"]),
    Table("star98", STATSMODELS, _bundled("star98"), "PR50M", REGRESSION),
    Table("stackloss", STATSMODELS, _bundled("stackloss"), "STACKLOSS", REGRESSION),
    Table("ccard", STATSMODELS, _bundled("ccard"), "AVGEXP", REGRESSION),
    Table("copper", STATSMODELS, _bundled("copper"), "WORLDCONSUMPTION", REGRESSION),
    Table("engel", STATSMODELS, _bundled("engel"), "foodexp", REGRESSION),
    Table("grunfeld", STATSMODELS, _bundled("grunfeld"), "invest", REGRESSION),
    Table("macrodata: inflation", STATSMODELS, _bundled("macrodata"), "infl", REGRESSION),
    Table("statecrime", STATSMODELS, _bundled("statecrime"), "murder", REGRESSION, ["state"]),
    Table("randhie: visits", STATSMODELS, _bundled("randhie"), "mdvis", REGRESSION),
    Table("penguins", PLOTNINE, "data/penguins.csv", "species", CLASSIFICATION),
    Table("mpg: drive", PLOTNINE, "data/mpg.csv", "drv", CLASSIFICATION, ["model"]),
    Table(
        "midwest: metropolitan",
        PLOTNINE,
        "data/midwest.csv",
        "inmetro",
        CLASSIFICATION,
        ["PID", "county", "category"],
    ),
    Table("diamonds: cut", PLOTNINE, "data/diamonds.csv", "cut", CLASSIFICATION),
    Table("diamonds: price", PLOTNINE, "data/diamonds.csv", "price", REGRESSION),
    Table("mtcars", PLOTNINE, "data/mtcars.csv", "mpg", REGRESSION, ["name"]),
    Table("Texas: houses sold", PLOTNINE, "data/txhousing.csv", "sales", REGRESSION, ["city"]),
    Table("phishing", RIVER, "datasets/phishing.csv.gz", "is_phishing", CLASSIFICATION),
    Table("segment", RIVER, "datasets/segment.csv.zip", "category", CLASSIFICATION),
    Table("shuttle: anomaly", RIVER, "datasets/shuttle.csv.gz", "anomaly", CLASSIFICATION),
    Table("approval", RIVER, "datasets/trump_approval.csv.gz", "five_thirty_eight", REGRESSION),
]


def from_packages() -> Iterator[DataSet]:
    """The tables whose packages are installed."""
    for table in TABLES:
        found = table.read()
        if found is not None:
            yield found


def missing_packages() -> list[str]:
    """The packages whose tables are left out."""
    return [name for name in dict.fromkeys(t.package for t in TABLES) if find_spec(name) is None]


# --- generated ones ------------------------------------------------------------------------------

N, P = 1000, 8  # rows and columns of each


def generated() -> Iterator[DataSet]:
    """One problem in awkward units: a column's value is `centre + unit · z`, with z normal.

    The signal is the same in all of them, so that they differ by their units alone.
    """
    mixture = 10.0 ** np.linspace(-4, 6, P)
    units: dict[str, tuple[Any, Any]] = {
        "means of a million": (1e6, 1.0),
        "fractions of a thousandth": (0.0, 2e-4),
        "millionths": (3e-6, 1e-6),
        "a mixture of scales": (5 * mixture, mixture),
        "seconds since 1970": (1.7e9, 86400.0 * np.arange(1, P + 1)),
    }
    for name, (centre, unit) in units.items():
        yield from both(name, partial(in_units, centre, unit))
    yield from both("constant columns", lambda z: np.hstack([z, np.full((N, 3), [0.0, 1.0, 1e6])]))
    yield from both("rare ones", rare_ones)
    yield small_target()


def in_units(centre: Any, unit: Any, Z: Floats) -> Floats:
    """Normal columns, moved and stretched."""
    return np.asarray(centre + unit * Z)


def both(name: str, columns: Callable[[Floats], Floats]) -> Iterator[DataSet]:
    """A classification and a regression with the same columns."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(N, P))
    score = Z @ rng.normal(size=P) + rng.normal(size=N)
    yield DataSet(f"{name}: sign", CLASSIFICATION, columns(Z), (score > 0).astype(int))
    yield DataSet(f"{name}: value", REGRESSION, columns(Z), 1e4 + score)


def rare_ones(Z: Floats) -> Floats:
    """Indicators that are one in 3 % of the rows, beside the columns themselves."""
    return np.hstack([Z, (Z > 1.9).astype(np.float64)])


def small_target() -> DataSet:
    """Targets of a few millionths, as concentrations are."""
    value = next(found for found in both("", lambda z: z) if found.task == REGRESSION)
    return DataSet("targets of millionths", REGRESSION, value.X, (value.y - 1e4) * 1e-6)
