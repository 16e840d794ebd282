"""What an engine costs over one process, and what its users would run instead.

    make bench-engines                              2 000 000 × 256, about 8 minutes
    python -m benchmarks.engines --quick            100 000 × 256

All read the same Parquet files (made once, 2 GB, in benchmarks/results/rows) and take turns;
MLlib, which is slow here, takes turns with ours on a quarter of them. One process has all cores
for its matrix products; joblib, Dask and Spark have one worker per core with one BLAS thread each.
Peaks of memory are those of processes of their own. Writes engines.json to benchmarks/results.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import dataset, parquet
from sklearn.linear_model import Ridge, SGDClassifier

from benchmarks.findings import FLOOR, RESULTS, Findings, Record, main, records_of
from benchmarks.floor import Rates, gram_flops
from benchmarks.out_of_core import watched
from benchmarks.parquet_rows import make_rows
from papers.claims import Claim
from papers.datasets import Floats
from papers.timing import cores, interleave
from traceless import LSSVC, LSSVR, fit_by, from_spark, scan

N_FEATURES = 256
NAMES = [f"x{j}" for j in range(N_FEATURES)]
CORES = cores()
ONE = "one process"
DATAFRAME, FILES = "Spark, DataFrame", "Spark, files in tasks"
MLLIB = "Spark MLlib LinearRegression(normal)"
SGD = "SGDClassifier, one pass"
DASK = """
from traceless.features import RandomFourier
with ExitStack() as stack:
    client = dask_client(stack)
    LSSVC(RandomFourier(2000)).fit(scan(path, "y").on(client))
"""
SPARK = """
from traceless.features import RandomFourier
with ExitStack() as stack:
    spark = spark_session(stack)
    LSSVC(RandomFourier(2000)).fit(scan(path, "y").on(spark))
"""


class Ours:
    """Fits of the same rows, whose digests must all be equal."""

    def __init__(self) -> None:
        self.digests: dict[str, str] = {}
        self.model = LSSVC()

    def job(self, name: str, fit: Callable[[LSSVC], LSSVC]) -> Callable[[], None]:
        """One to be timed, which remembers its model."""

        def run() -> None:
            self.model = fit(LSSVC())
            self.digests[name] = self.model.digest()

        return run

    def check(self) -> str:
        """Say that all digests are one; raise if they are not."""
        (digest,) = set(self.digests.values())
        return f"{len(self.digests)} engines, one digest: {digest[:16]}…"


def dask_client(stack: ExitStack) -> Any:
    from distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=CORES, threads_per_worker=1, dashboard_address=None)
    return stack.enter_context(Client(stack.enter_context(cluster)))


def spark_session(stack: ExitStack) -> Any:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.driver.memory": "6g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master(f"local[{CORES}]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    stack.callback(spark.stop)
    return spark


def mllib(df: Any) -> Any:
    """Spark's own least squares on the normal equations, as its documentation has it."""
    from pyspark.ml.feature import VectorAssembler
    from pyspark.ml.regression import LinearRegression

    vectors = VectorAssembler(inputCols=NAMES, outputCol="features").transform(df)
    regression = LinearRegression(
        labelCol="y", solver="normal", regParam=1e-6, elasticNetParam=0.0, standardization=False
    )
    return regression.fit(vectors)


def dask_normal_equations(rows: Any) -> Floats:
    """What one writes with Dask arrays: products of tall matrices, in floats."""
    import dask
    import dask.array as da

    table = rows[[*NAMES, "y"]].to_dask_array(lengths=True).astype(np.float64)
    ones = da.ones((table.shape[0], 1), chunks=(table.chunks[0], 1))
    F = da.concatenate([table[:, :-1], ones], axis=1).rechunk({1: -1})
    S, q = dask.compute(F.T @ F, F.T @ (2.0 * table[:, -1] - 1.0))
    return np.asarray(np.linalg.solve(S + np.eye(len(S)), q))


def sgd(folder: Path) -> SGDClassifier:
    """One pass of stochastic gradient descent over the files, in batches."""
    model = SGDClassifier(random_state=0)
    for batch in dataset.dataset(folder).to_batches(batch_size=2**16):
        X = np.column_stack([batch.column(name).to_numpy() for name in NAMES])
        model.partial_fit(X, batch.column("y").to_numpy(), classes=[0, 1])
    return model


def race(folder: Path, rounds: int) -> tuple[dict[str, float], dict[str, float], str]:
    """Median seconds of each job, accuracies of the models, and what the digests say."""
    ours, models = Ours(), {}
    with ExitStack() as stack:
        import dask.dataframe as dd

        spark, client = spark_session(stack), dask_client(stack)
        frame, df = dd.read_parquet(folder), spark.read.parquet(str(folder))

        def run_sgd() -> None:
            models[SGD] = sgd(folder)

        jobs = {
            ONE: ours.job(ONE, lambda m: m.fit(scan(folder, "y"))),
            "joblib": ours.job(
                "joblib", lambda m: m.set_params(n_jobs=CORES).fit(scan(folder, "y"))
            ),
            "Dask": ours.job("Dask", lambda m: m.fit(frame[NAMES], frame["y"])),
            DATAFRAME: ours.job(DATAFRAME, lambda m: m.fit(from_spark(df, "y"))),
            FILES: ours.job(FILES, lambda m: m.fit(scan(folder, "y").on(spark))),
            "Dask arrays, F.T @ F in floats": lambda: dask_normal_equations(frame),
            SGD: run_sgd,
        }
        t = interleave(jobs, rounds)
        assert client.status == "running"
    rows = dataset.dataset(folder).head(2**16).to_pandas()
    accuracy = {
        "LSSVC": float(ours.model.score(rows[NAMES], rows["y"])),
        SGD: float(models[SGD].score(rows[NAMES].to_numpy(), rows["y"])),
    }
    return t, accuracy, ours.check()


def beside_mllib(folder: Path, rounds: int) -> dict[str, float]:
    """Median seconds of our fits in Spark and of MLlib's, of a quarter of the files."""
    files = sorted(folder.iterdir())
    few = files[: len(files) // 4]
    with ExitStack() as stack:
        spark = spark_session(stack)
        df = spark.read.parquet(*map(str, few))
        jobs: dict[str, Callable[[], Any]] = {
            DATAFRAME: lambda: LSSVC().fit(from_spark(df, "y")),
            FILES: lambda: LSSVC().fit(scan(few, "y").on(spark)),
            MLLIB: lambda: mllib(df),
        }
        return interleave(jobs, rounds)


def overhead(quick: bool) -> list[Record]:
    """Tiny partitions, 8 rows each: what a task costs, and what a plain aggregate of it costs."""
    import dask.array as da

    records: list[Record] = []
    with ExitStack() as stack:
        spark = spark_session(stack)
        dask_client(stack)
        for n in (1, 64) if quick else (1, 64, 500, 8000):
            X, y = da.random.random((8 * n, 4), chunks=(8, 4)), da.arange(8 * n, chunks=8) % 2
            df = spark.range(8 * n).selectExpr("id % 7 / 8 a", "id % 2 y").repartition(n)
            jobs: dict[str, Callable[[], Any]] = {
                "Dask": partial(LSSVC().fit, X, y),
                "Dask, map_blocks(sum).sum()": partial(_plain_dask, X),
            }
            if n <= 500:
                jobs |= {
                    "Spark": partial(_fit_spark, df),
                    "Spark, groupBy().avg()": partial(_plain_spark, df),
                }
            rounds = 3 if n < 8000 else 1
            records += records_of(f"A fit of {n} partitions of 8 rows", interleave(jobs, rounds))
    return records


def memory(quick: bool) -> list[Record]:
    """Peaks of memory: of one process that reads, and of the process that asks an engine."""
    n = 2**17 if quick else 2**20
    whole = _one_row_group(RESULTS / "rows" / f"one group of {n}.parquet", n, 128, 2)
    classes = _one_row_group(RESULTS / "rows" / f"classes of {n}.parquet", n // 8, 256, 64)
    peaks = {
        "nothing learned": _peak("pass", whole),
        f"one row group of {whole.stat().st_size / 1e6:.0f} MB": _peak(
            "LSSVC().fit(scan(path, 'y'))", whole
        ),
        "64 classes apart, 256 features, 34 MB of sums": _peak(
            "LSSVC(class_weight='balanced').fit(scan(path, 'y'))", classes
        ),
        "the process that asks Dask, 2000 features, 32 MB of sums": _peak(DASK, classes, False),
        "the process that asks Spark, likewise": _peak(SPARK, classes, False),
    }
    return [Record("Peak memory", way, peak, unit="B") for way, peak in peaks.items()]


def _one_row_group(path: Path, n: int, width: int, n_classes: int) -> Path:
    """A file whose rows are all in one row group."""
    if not path.exists():
        rng = np.random.default_rng(0)
        columns = {f"x{j}": rng.standard_normal(n, dtype=np.float32) for j in range(width)}
        table = pa.table(columns | {"y": rng.integers(0, n_classes, n)})
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(table, path, row_group_size=n, compression=None, use_dictionary=False)
    return path


def _peak(code: str, path: Path, workers: bool = True) -> int:
    """The largest memory of a process that runs some lines, with or without its workers."""
    lines = f"import sys\nfrom benchmarks.engines import *\npath = sys.argv[1]\n{code}"
    command = [sys.executable, "-c", lines, str(path)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, text=True) as process:
        peak = watched(process, workers=workers)
    if process.returncode:
        raise RuntimeError(f"{code!r} failed with exit code {process.returncode}")
    return peak


def by_group(quick: bool) -> list[Record]:
    """A model for each of many groups: in one pass, and one after the other."""
    groups = 500 if quick else 5000
    rng = np.random.default_rng(0)
    names = [f"x{j}" for j in range(8)]
    rows = pd.DataFrame(rng.normal(size=(40 * groups, 8)), columns=names)
    rows = rows.assign(key=rng.integers(0, groups, len(rows)), y=rng.normal(size=len(rows)))

    def each(make: Callable[[], Any]) -> None:
        for _, part in rows.groupby("key"):
            make().fit(part[names].to_numpy(), part["y"].to_numpy())

    jobs: dict[str, Callable[[], Any]] = {
        "fit_by, solved": lambda: fit_by(LSSVR(), rows, "key", "y").coef_,
        "one LSSVR after the other": partial(each, LSSVR),
        "one Ridge after the other": partial(each, Ridge),
    }
    return records_of(f"{groups} models of 40 × 8 rows", interleave(jobs, 3))


def _plain_dask(X: Any) -> Any:
    return X.map_blocks(np.sum, axis=0, keepdims=True, chunks=(1, 4)).sum(axis=0).compute()


def _plain_spark(df: Any) -> Any:
    return df.groupBy("y").avg("a").collect()


def _fit_spark(df: Any) -> LSSVC:
    return LSSVC().fit(from_spark(df, "y"))


def measure(quick: bool) -> Findings:
    n = 100_000 if quick else 2_000_000
    folder = make_rows(RESULTS / "rows", n, N_FEATURES, 4 * CORES)
    rates = Rates.measured()
    t, accuracy, digests = race(folder, 3)
    floor = rates.floor(gram_flops(n, N_FEATURES + 1), 4.0 * n * N_FEATURES)
    records = records_of(f"A fit of {n} × {N_FEATURES} rows from Parquet", t | {FLOOR: floor})
    records += [
        Record("Accuracy on the same rows", k, v, unit="share") for k, v in accuracy.items()
    ]
    beside = beside_mllib(folder, 3)
    records += records_of(f"A fit of {n // 4} × {N_FEATURES} rows in Spark", beside)
    records += overhead(quick) + by_group(quick) + memory(quick)
    claims = [
        Claim(
            f"MLlib LinearRegression / LSSVC, {way}",
            beside[MLLIB] / beside[way],
            2.0,
            at_least=True,
        )
        for way in (DATAFRAME, FILES)
    ]
    goals = {DATAFRAME: 1.5, FILES: 1.1, "Dask": 0.6}
    claims += [Claim(f"{way} / {ONE}", t[way] / t[ONE], most) for way, most in goals.items()]
    return Findings(records, claims, [f"{CORES} workers; {digests}.", str(rates)])


if __name__ == "__main__":
    main(measure, __doc__)
