"""Probabilities from the sums, against calibration, logistic regression and LDA.

    make bench-probabilities                        some thirty sets, ten minutes on idle cores
    python -m benchmarks.probabilities --quick      at most 300 rows of each, once

All ways see the same features of a set, scaled where they ask for it, with default parameters. A
model learns 60 % of the rows and is judged by the others, several times with fixed seeds. Log-loss
and Brier score (the sum over the classes) are means over the rows: smaller is better. Calibration
curves are of the class that a model thinks most likely, over the rows of all sets. Writes
probabilities.json to benchmarks/results.
"""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.findings import Findings, Record, main, records_of
from papers.claims import Claim
from papers.datasets import Floats, mnist_or_random
from papers.timing import interleave
from traceless import LSSVC, LSSVR
from traceless.exceptions import UninformativeWarning
from traceless.features import RandomFourier

LOSS, BRIER, RIGHT, CURVE, COST = (
    "Log-loss of rows held out",
    "Brier score of rows held out",
    "Accuracy on rows held out",
    "Calibration: share that was right, of rows whose likeliest class has p percent",
    "MNIST 60000 × 784, ten classes",
)
BESIDE = "Beside predict"
MEAN = "mean of all sets"
OURS, SIGMOID = "LSSVC", "sigmoid calibration"
WAYS: dict[str, Callable[[], Any]] = {
    OURS: LSSVC,
    "decision=posterior": lambda: LSSVC(decision="posterior"),
    "and classwise": lambda: LSSVC(decision="posterior", classwise=True),
    SIGMOID: lambda: CalibratedClassifierCV(LSSVC(), method="sigmoid"),
    "isotonic calibration": lambda: CalibratedClassifierCV(LSSVC(), method="isotonic"),
    "LogisticRegression": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)),
    "LDA": LinearDiscriminantAnalysis,
}
TIMES = {1000: 10, 2500: 5}  # repetitions up to so many rows; of larger sets three
BINS = 10


class DataSet(NamedTuple):
    """Rows by name, and whether they are asked about with random features."""

    name: str
    X: NDArray[Any]
    y: NDArray[Any]

    @property
    def case(self) -> str:
        """Name and size."""
        n, p = self.X.shape
        return f"{self.name}: {n} × {p}, {len(np.unique(self.y))} classes"

    def with_random_features(self, n_components: int = 150) -> DataSet:
        """The same rows by random Fourier features of their standardised columns."""
        X = StandardScaler().fit_transform(self.X)
        phi = RandomFourier(n_components, gamma=0.5 / X.shape[1], random_state=0)
        return DataSet(f"{self.name}, Fourier", phi.transform(X), self.y)

    def some(self, n: int) -> DataSet:
        """At most so many of the rows, of every class at least eight if there are as many."""
        if len(self.y) <= n:
            return self
        order = np.random.default_rng(0).permutation(len(self.y))
        _, numbers = np.unique(self.y, return_inverse=True)
        first = [order[numbers[order] == c][:8] for c in range(numbers.max() + 1)]
        kept = np.concatenate(first)
        rest = order[~np.isin(order, kept)][: max(0, n - len(kept))]
        rows = np.sort(np.concatenate([kept, rest]))
        return DataSet(self.name, self.X[rows], self.y[rows])


# --- data sets --------------------------------------------------------------------------------


def bundled() -> Iterator[DataSet]:
    """Those that come with scikit-learn, and with vega_datasets where it is installed."""
    for name in ("iris", "wine", "breast_cancer", "digits"):
        yield DataSet(name, *getattr(datasets, f"load_{name}")(return_X_y=True))
    if importlib.util.find_spec("vega_datasets") is not None:
        from vega_datasets import local_data

        pd: Any = importlib.import_module("pandas")
        cars = pd.read_json(local_data.cars.filepath).dropna()
        numbers = cars.select_dtypes("number").to_numpy(np.float64)
        yield DataSet("cars by origin", numbers, cars["Origin"].to_numpy(str))
        days = pd.read_csv(local_data.seattle_weather.filepath).dropna()
        numbers = days.select_dtypes("number").to_numpy(np.float64)
        yield DataSet("Seattle weather", numbers, days["weather"].to_numpy(str))


def generated() -> Iterator[DataSet]:
    """Families of which the difficulty is known."""

    def family(name: str, n: int, p: int, **more: Any) -> DataSet:
        more = {"n_informative": 6, "n_redundant": 2, "random_state": 1} | more
        return DataSet(name, *datasets.make_classification(n, p, **more))

    rng = np.random.default_rng(0)
    yield family("two classes", 2000, 20)
    yield family("two classes, well separated", 2000, 20, class_sep=3.0)
    yield family("two classes, 20 % wrong labels", 2000, 20, flip_y=0.4)
    yield family("5 % of a class", 3000, 20, weights=[0.95])
    yield family("1 % of a class", 5000, 20, weights=[0.99], flip_y=0.0)
    yield family("fewer rows than columns", 150, 200)
    yield family("five classes", 2000, 20, n_classes=5)
    yield family("twenty classes", 4000, 40, n_informative=15, n_classes=20, n_clusters_per_class=1)
    yield DataSet("hastie 10.2", *datasets.make_hastie_10_2(2000, random_state=0))
    yield DataSet(
        "quantiles",
        *datasets.make_gaussian_quantiles(
            n_samples=1500, n_features=8, n_classes=3, random_state=0
        ),
    )
    yield DataSet(
        "blobs", *datasets.make_blobs(1500, 5, centers=6, cluster_std=4.0, random_state=0)
    )
    yield DataSet("moons", *datasets.make_moons(1000, noise=0.3, random_state=0))
    t = rng.standard_t(2, size=(2000, 10))
    noise = rng.standard_t(2, size=2000)
    yield DataSet("heavy tails", t, (t[:, 0] + t[:, 1] + noise > 0) + 0)
    yield DataSet("heavy tails, three classes", t, (t[:, 0] + noise > 0) + 1 * (t[:, 2] > 1))
    y = rng.integers(3, size=1500)
    yield DataSet("spreads differ", rng.normal(size=(1500, 6)) * (1.0 + y[:, None]) + y[:, None], y)
    yield DataSet("counts", rng.poisson(1.0 + y[:, None], size=(1500, 12)) + 0.0, y)
    yield DataSet("noise", rng.normal(size=(600, 20)), rng.integers(3, size=600))


FOURIER = ("wine", "breast_cancer", "digits", "two classes", "five classes", "hastie 10.2", "moons")


def data_sets(quick: bool) -> Iterator[DataSet]:
    """All of them, some also with random features."""
    X, y = mnist_or_random()
    for data in (*bundled(), *generated(), DataSet("MNIST", X, y).some(4000)):
        some = data.some(300) if quick else data
        yield some
        if data.name in (*FOURIER, "MNIST"):
            yield some.with_random_features(50 if quick else 150)


# --- measurements ------------------------------------------------------------------------------


class Judged(NamedTuple):
    """What one way said of rows held out: three losses, and how likely it was of what."""

    loss: float
    brier: float
    right: float
    sure: Floats
    hits: NDArray[np.bool_]


def judged(make: Callable[[], Any], data: DataSet, seed: int) -> Judged:
    """One model, fitted to 60 % of the rows, on the others."""
    X, T, y, truth = train_test_split(
        data.X, data.y, test_size=0.4, random_state=seed, stratify=data.y
    )
    with warnings.catch_warnings():
        for kind in (ConvergenceWarning, UninformativeWarning, UserWarning):
            warnings.simplefilter("ignore", kind)
        model = make().fit(X, y)
        p = model.predict_proba(T)
    hits = model.classes_[p.argmax(axis=1)] == truth
    indicators = truth[:, None] == model.classes_
    return Judged(
        float(log_loss(truth, p, labels=model.classes_)),
        float(((p - indicators) ** 2).sum(axis=1).mean()),
        float(np.mean(model.predict(T) == truth)),
        p.max(axis=1),
        hits,
    )


def compare(
    sets: Iterator[DataSet] | Sequence[DataSet],
    ways: Mapping[str, Callable[[], Any]] = WAYS,
    often: int | None = None,
) -> list[Record]:
    """Losses of all ways on all sets, their means, and the calibration of each way."""
    records: list[Record] = []
    seen: dict[str, list[Judged]] = {way: [] for way in ways}
    for data in sets:
        rounds = often or next((r for n, r in TIMES.items() if len(data.y) <= n), 3)
        for way, make in ways.items():
            found = [judged(make, data, seed) for seed in range(rounds)]
            seen[way] += found
            loss, brier, right = (
                float(np.mean(part)) for part in list(zip(*found, strict=True))[:3]
            )
            records += [
                Record(LOSS, way, loss, data.case, "number"),
                Record(BRIER, way, brier, data.case, "number"),
                Record(RIGHT, way, right, data.case, "share"),
            ]
    records = [r for job in (LOSS, BRIER, RIGHT) for r in records if r.job == job]
    return [*with_means(records), *calibration(seen)]


def with_means(records: list[Record]) -> list[Record]:
    """The same with a last line for each table."""
    out = []
    for job in dict.fromkeys(r.job for r in records):
        of = [r for r in records if r.job == job]
        out += of
        for way in dict.fromkeys(r.way for r in of):
            values = [r.value for r in of if r.way == way]
            out.append(Record(job, way, float(np.mean(values)), MEAN, of[0].unit))
    return out


def calibration(seen: Mapping[str, Sequence[Judged]]) -> list[Record]:
    """How often the likeliest class was right, by how likely it was said to be."""
    out = []
    for way, found in seen.items():
        sure = np.concatenate([one.sure for one in found])
        hits = np.concatenate([one.hits for one in found])
        weight = np.concatenate([np.full(len(one.sure), 1.0 / len(one.sure)) for one in found])
        at = np.minimum((sure * BINS).astype(int), BINS - 1)
        for b in range(1, BINS):
            inside = at == b
            if inside.sum() >= 20:
                share = float(np.average(hits[inside], weights=weight[inside]))
                case = f"p = {100 * b // BINS + 50 // BINS}"
                out.append(Record(CURVE, way, share, case, "share"))
    return out


def cost(rounds: int) -> tuple[list[Record], Claim]:
    """What the first probabilities after a fit take: moments, inverse and covariances."""
    X, y = mnist_or_random()
    clf, apart = LSSVC().fit(X, y), LSSVC(classwise=True).fit(X, y)
    rows = X[:10_000]

    def first(model: LSSVC) -> Callable[[], object]:
        def ask() -> object:
            model._state._answers = {}
            return model._discriminant()

        return ask

    seconds = interleave(
        {
            "LSSVC.fit": lambda: LSSVC().fit(X, y),
            "first probabilities, beside the scores": first(clf),
            "the same, classwise": first(apart),
            "decision_function of 10000 rows": lambda: clf.decision_function(rows),
            "predict_proba of 10000 rows": lambda: clf.predict_proba(rows),
            "predict_proba of 10000 rows, classwise": lambda: apart.predict_proba(rows),
        },
        rounds,
    )
    ratio = seconds["first probabilities, beside the scores"] / seconds["LSSVC.fit"]
    records = [Record(COST, way, value) for way, value in seconds.items()]
    return records, Claim("first probabilities / a fit, MNIST 60000 × 784", ratio, 0.05)


def beside_predict(rounds: int, n: int) -> tuple[list[Record], list[Claim]]:
    """Probabilities of twenty balanced classes, and intervals, beside predictions of the rows."""
    rng = np.random.default_rng(0)
    y, X, wide = (
        rng.integers(20, size=2 * n),
        rng.normal(size=(2 * n, 64)),
        rng.normal(size=(n, 300)),
    )
    X += rng.normal(size=(20, 64))[y]
    clf, reg = LSSVC(class_weight="balanced").fit(X, y), LSSVR().fit(wide, wide[:, 0])
    records, claims = [], []
    for case, rows, model, way, goal in (
        (f"{2 * n} × 64, 20 balanced classes", X, clf, "predict_proba", 6.0),
        (f"{n} × 300", wide, reg, "predict_interval", 4.0),
    ):
        jobs = {name: partial(getattr(model, name), rows) for name in ("predict", way)}
        seconds = interleave(jobs, rounds)
        records += records_of(BESIDE, seconds, case)
        claims.append(Claim(f"{way} / predict, {case}", seconds[way] / seconds["predict"], goal))
    return records, claims


def claims_of(records: Sequence[Record]) -> list[Claim]:
    """On par with sigmoid calibration, on average."""
    found = {(r.job, r.way): r.value for r in records if r.case == MEAN}
    return [
        Claim(f"{job}, {OURS} / {SIGMOID}, mean", found[job, OURS] / found[job, SIGMOID], 1.0)
        for job in (LOSS, BRIER)
    ]


def measure(quick: bool) -> Findings:
    records = compare(data_sets(quick), often=1 if quick else None)
    seconds, claim = cost(1 if quick else 5)
    times, ratios = beside_predict(*((3, 500) if quick else (21, 5000)))
    notes = [
        "`decision=posterior` leaves the probabilities as they are, and predicts by them; else the "
        "class of the largest score has the largest. `classwise` gives each of more than two "
        "classes a covariance of its own."
    ]
    claims = [*claims_of(records), claim, *ratios]
    return Findings([*records, *seconds, *times], claims, notes)


if __name__ == "__main__":
    main(measure, __doc__)
