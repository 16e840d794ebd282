"""Raw frames with words, dates and missing values: a declared table beside the usual pipeline.

    make bench-frames                               two minutes
    python -m benchmarks.frames --quick             few rows

The pipeline is OneHotEncoder, SimpleImputer, StandardScaler and RidgeClassifier: parts that are
fitted to rows. Accuracy is that of ten folds on three made-up frames (passengers, patients,
diamonds); learning is timed on six columns of numbers, four of words, one of truth values and one
of dates; files are read as CSV of ten columns. Writes frames.json to benchmarks/results.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks.findings import Findings, Record, main, records_of
from papers.claims import Claim
from papers.timing import interleave
from traceless import LSSVC
from traceless.features import Table
from traceless.sources import Files, Schema

TABLE, PIPELINE = "LSSVC(table)", "encoder, imputer, scaler, RidgeClassifier"
Frame = Any  # pandas.DataFrame, without types


def pipeline() -> Any:
    """The usual parts, each fitted to the rows; dates are days already."""
    number, word = (
        make_column_selector(dtype_include="number"),
        make_column_selector(dtype_exclude="number"),
    )
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), number),
        (OneHotEncoder(handle_unknown="ignore"), word),
    )
    return make_pipeline(columns, RidgeClassifier())


def as_numbers(frame: Frame) -> Frame:
    """Dates as days and truth values as numbers, which the pipeline does not make of them."""
    days = {c: frame[c].astype("int64") / 86.4e12 for c in frame.select_dtypes("datetime64[ns]")}
    return frame.assign(**days).astype(dict.fromkeys(frame.select_dtypes("bool"), float))


def frames(rows: int) -> dict[str, Frame]:
    """Frames with a column y of labels."""
    rng = np.random.default_rng(0)
    passengers = pd.DataFrame(
        {
            "class": rng.choice(["first", "second", "third"], rows),
            "sex": rng.choice(["female", "male"], rows),
            "age": rng.normal(30, 14, rows).clip(1, 80).round(),
            "fare": rng.lognormal(3, 1, rows).round(2),
        }
    )
    patients = pd.DataFrame(
        {
            "ward": rng.choice(list("abcdef"), rows),
            "smoker": rng.random(rows) < 0.3,
            "pressure": rng.normal(130, 20, rows).round(),
            "seen": pd.Timestamp("2024-01-01").as_unit("ns")
            + pd.to_timedelta(rng.integers(0, 700, rows), "D"),
        }
    )
    diamonds = pd.DataFrame(
        {
            "cut": rng.choice(["fair", "good", "ideal", "premium"], rows),
            "color": rng.choice(list("DEFGHIJ"), rows),
            "carat": rng.lognormal(-0.4, 0.6, rows).round(2),
            "depth": rng.normal(61.7, 1.4, rows).round(1),
        }
    )
    noise = rng.logistic(0, 0.7, (3, rows))
    odds = [
        2.0 * (passengers.sex == "female") - passengers.age / 40,
        (patients.pressure - 130) / 20 + patients.smoker + (patients.ward == "a"),
        3 * diamonds.carat + (diamonds.cut == "ideal") - 3.0,
    ]
    found = {"passengers": passengers, "patients": patients, "diamonds": diamonds}
    for (name, frame), score, more in zip(found.items(), odds, noise, strict=True):
        label = np.where(score + more > 0.4, "yes", "no")
        column = frame.columns[2]
        frame.loc[rng.random(rows) < 0.15, column] = np.nan
        found[name] = frame.assign(y=label)
    return found


def accuracies(rows: int) -> list[Record]:
    """Accuracy on rows held out, of both."""
    out = []
    for name, frame in frames(rows).items():
        X, y = frame.drop(columns="y"), frame.y
        ways = {TABLE: (LSSVC(Table.suggest(X)), X), PIPELINE: (pipeline(), as_numbers(X))}
        for way, (model, rows_) in ways.items():
            score = float(cross_val_score(model, rows_, y, cv=10).mean())
            out.append(Record("Accuracy on rows held out", way, score, name, "share"))
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
        PIPELINE: lambda: pipeline().fit(as_numbers(X), y),
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
    return Findings(records, claims, ["The frames are made up; no data are downloaded."])


if __name__ == "__main__":
    main(measure, __doc__)
