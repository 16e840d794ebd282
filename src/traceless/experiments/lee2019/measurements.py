"""The numbers behind Fig. 1 (a) to (f) of Lee et al. 2019; the claims are judged elsewhere.

The LS-SVM w = (ρI + ΦΦᵀ)⁻¹Φy tells even from odd digits. Each function returns the table
of one figure, with a column ``map`` for the feature map φ. Two solvers are used:

- where bits matter (a, b) the default one, whose coefficients are correctly rounded;
- where the paper's update of w and C is the subject (c to f) ``solver="woodbury"``.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from traceless import LSSVC, NotLearnedError
from traceless.datasets import find_mnist
from traceless.experiments.conduct import shown
from traceless.experiments.images import Floats, Images, mnist_images, small_images
from traceless.experiments.verdict import Rows
from traceless.features import FeatureMap, Linear, RandomFourier
from traceless.timing import Job, interleaved_medians

RHO = 1.0
STEPS = 10  # in which wrong labels are forgotten
ERRORS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # of an estimated row, relative to its length
NOISES = ("on the ink", "everywhere")  # pixels in proportion to their values, or all alike


@dataclass(frozen=True)
class Data(Images):
    """Training and test rows between 0 and 1, and the maps that suit them."""

    maps: dict[str, FeatureMap]

    @property
    def y(self) -> NDArray[Any]:
        """1 for odd digits, 0 for even ones."""
        return self.digits % 2

    @property
    def y_test(self) -> NDArray[Any]:
        """1 for odd digits, 0 for even ones."""
        return self.digits_test % 2


@dataclass(frozen=True)
class Plan:
    """How much is computed.

    Parameters
    ----------
    rows, test_rows : int
        Rows used at most; the largest batch comes from the end of the training rows.
    components : int
        Random Fourier features.
    sizes : tuple of int
        Original training sizes in (c) and (e); the largest is also that of (d) and (f).
    batches : tuple of int
        Batch sizes in (c).
    all_batches : tuple of int
        Batch sizes in (d).
    rounds : int
        How often each time is measured.
    forgotten : int
        How many different rows are forgotten in (f), one at a time.
    """

    rows: int
    test_rows: int
    components: int
    sizes: tuple[int, ...]
    batches: tuple[int, ...]
    all_batches: tuple[int, ...]
    rounds: int
    forgotten: int


FULL = Plan(
    rows=60_000,
    test_rows=10_000,
    components=1000,
    sizes=(1_000, 5_000, 10_000, 20_000, 30_000, 40_000, 55_000),
    batches=(10, 100, 1_000),
    all_batches=(1, 3, 10, 30, 100, 300, 1_000, 2_000, 5_000),
    rounds=5,
    forgotten=20,
)
QUICK = Plan(
    rows=8_000,
    test_rows=2_000,
    components=300,
    sizes=(500, 2_000, 6_000),
    batches=(10, 100, 1_000),
    all_batches=(1, 10, 100, 1_000, 2_000),
    rounds=3,
    forgotten=3,
)
DIGITS = Plan(
    rows=1_347,
    test_rows=450,
    components=300,
    sizes=(250, 500, 1_000),
    batches=(10, 100),
    all_batches=(1, 3, 10, 30, 100, 300),
    rounds=5,
    forgotten=20,
)


def load(quick: bool) -> tuple[Data, Plan]:
    """MNIST if it is on this machine, else the digits of scikit-learn; nothing is downloaded."""
    if find_mnist() is None:
        return load_small(DIGITS), DIGITS
    plan = QUICK if quick else FULL
    return _data(mnist_images(plan.rows, plan.test_rows), plan, gamma=0.02), plan


def load_small(plan: Plan) -> Data:
    """The 1797 digits of scikit-learn, 8 × 8 pixels, which come with it."""
    return _data(small_images(plan.rows, plan.test_rows), plan, gamma=0.1)


def _data(images: Images, plan: Plan, gamma: float) -> Data:
    return Data(**vars(images), maps=_maps(plan.components, gamma))


def _maps(components: int, gamma: float) -> dict[str, FeatureMap]:
    fourier = RandomFourier(components, gamma=gamma, random_state=0)
    return {"Linear": Linear(), "RandomFourier": fourier}


def exact_model(phi: FeatureMap) -> LSSVC:
    """A model whose coefficients are correctly rounded when asked for."""
    return LSSVC(phi, rho=RHO)


def updating_model(phi: FeatureMap) -> LSSVC:
    """A model that updates w and P = (ρI + S)⁻¹ with each change, as the paper does w and C."""
    return LSSVC(phi, rho=RHO, solver="woodbury")


# --- (a) and (b): accuracy -------------------------------------------------------------------


def groups_learned(data: Data) -> Rows:
    """(a) Accuracy on all test digits as pairs of digits are learned one after the other."""
    rows: Rows = []
    points = [(name, first) for name in data.maps for first in range(0, 10, 2)]
    for name, first in shown(points, "(a) groups of digits"):
        if first == 0:
            model = exact_model(data.maps[name])
        new, held = data.digits // 2 == first // 2, data.digits <= first + 1
        model.partial_fit(data.X[new], data.y[new])
        scratch = exact_model(data.maps[name]).fit(data.X[held], data.y[held])
        rows.append(
            {
                "map": name,
                "group": f"{first}&{first + 1}",
                "rows": model.n_samples_,
                "accuracy": model.score(data.X_test, data.y_test),
                "digest": model.digest(),
                "digest_from_scratch": scratch.digest(),
            }
        )
    return rows


def wrong_labels_forgotten(data: Data) -> Rows:
    """(b) Accuracy as wrongly labelled rows, at first half of all, are forgotten step by step."""
    rng = np.random.default_rng(0)
    wrong = rng.permutation(len(data.X))[: len(data.X) // 2]
    labels = {"flipped": data.y.copy(), "drawn at random": data.y.copy()}
    labels["flipped"][wrong] = 1 - data.y[wrong]
    labels["drawn at random"][wrong] = rng.integers(0, 2, len(wrong))
    points = [(name, reading) for name in data.maps for reading in labels]
    rows: Rows = []
    for name, reading in shown(points, "(b) wrong labels"):
        rows += _forget_in_steps(data, name, reading, labels[reading], wrong)
    return rows


def _forget_in_steps(
    data: Data, name: str, reading: str, y: NDArray[Any], wrong: NDArray[Any]
) -> Rows:
    right = np.setdiff1d(np.arange(len(y)), wrong)
    clean = exact_model(data.maps[name]).fit(data.X[right], data.y[right]).digest()
    model = exact_model(data.maps[name]).fit(data.X, y)
    rows: Rows = []
    parts = np.array_split(wrong, STEPS)
    for step in range(STEPS + 1):
        if step:
            model.forget(data.X[parts[step - 1]], y[parts[step - 1]])
        rows.append(
            {
                "map": name,
                "wrong_labels": reading,
                "removed": step / STEPS,
                "rows": model.n_samples_,
                "accuracy": model.score(data.X_test, data.y_test),
                "equals_never_learned": model.digest() == clean,
            }
        )
    return rows


# --- (c), (d) and (e): time and storage --------------------------------------------------------


def update_times(data: Data, plan: Plan) -> Rows:
    """(c) Seconds to update with a batch, and to retrain with 10 new rows, by original size."""
    rows: Rows = []
    for name, phi in data.maps.items():
        jobs: dict[tuple[int, str, int], Callable[[], Job]] = {}
        start = len(data.X) - max(plan.batches)
        for size in plan.sizes:
            model = updating_model(phi).fit(data.X[:size], data.y[:size])
            for batch in plan.batches:
                jobs[size, "update", batch] = partial(_update, model, data, start, batch)
            jobs[size, "retrain", 10] = partial(_retrain, phi, data, size, start)
        turns = shown(range(plan.rounds + 1), f"(c) updates, {name}")
        for (size, how, batch), seconds in interleaved_medians(jobs, turns).items():
            rows.append({"map": name, "size": size, "how": how, "batch": batch, "seconds": seconds})
    return rows


def _update(model: LSSVC, data: Data, start: int, batch: int) -> Job:
    """Learn a batch with a copy of the model, up to new coefficients."""
    fresh, rows = copy.deepcopy(model), slice(start, start + batch)
    X, y = data.X[rows], data.y[rows]
    return lambda: fresh.partial_fit(X, y).feature_coef_


def _retrain(phi: FeatureMap, data: Data, size: int, start: int) -> Job:
    """Learn the original rows and 10 new ones from scratch."""
    known = np.r_[0:size, start : start + 10]
    X, y = data.X[known], data.y[known]
    return lambda: updating_model(phi).fit(X, y).feature_coef_


def times_per_row(data: Data, plan: Plan) -> Rows:
    """(d) Seconds per row of an update by batch size: ours, and equations 5 and 6 as printed."""
    rows: Rows = []
    start = len(data.X) - max(plan.all_batches)
    size = min(plan.sizes[-1], start)
    for name, phi in data.maps.items():
        model = updating_model(phi).fit(data.X[:size], data.y[:size])
        jobs: dict[tuple[int, str], Callable[[], Job]] = {}
        for batch in plan.all_batches:
            jobs[batch, "traceless"] = partial(_update, model, data, start, batch)
            jobs[batch, "one block"] = partial(_one_block, model, phi, data, start, batch)
        turns = shown(range(plan.rounds + 1), f"(d) batch sizes, {name}")
        for (batch, how), seconds in interleaved_medians(jobs, turns).items():
            row = {"map": name, "how": how, "batch": batch, "seconds": seconds}
            rows.append(row | {"seconds_per_row": seconds / batch})
    return rows


def _one_block(model: LSSVC, phi: FeatureMap, data: Data, start: int, batch: int) -> Job:
    """The same update by the paper's equations, the whole batch at once."""
    bound = phi.bind(data.X.shape[1])
    w, C = coefficients(model), model.auxiliary_
    X, y = data.X[start : start + batch], 2.0 * data.y[start : start + batch] - 1.0
    return lambda: theorem_1(w, C, (bound.codes(X) * bound.steps).T, y)


def theorem_1(w: Floats, C: Floats, Phi: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return w and C after learning further rows: Lee et al. 2019, eq. 5 and 6, with Φ of J × L."""
    G = C @ Phi - Phi
    inner = RHO * np.eye(len(y)) - Phi.T @ G
    change = scipy.linalg.solve(inner, np.column_stack([Phi.T @ w - y, G.T]), assume_a="pos")
    return w + G @ change[:, 0], C + G @ change[:, 1:]


def coefficients(model: LSSVC) -> Floats:
    """The vector w of a model for two classes, with the coefficient of the constant last."""
    return np.append(model.feature_coef_[0], model.intercept_)


def storage(data: Data, plan: Plan) -> Rows:
    """(e) Bytes of the training rows, of w and C, and of the whole model, by number of rows."""
    points = [(name, size) for name in data.maps for size in plan.sizes]
    rows: Rows = []
    for name, size in shown(points, "(e) storage"):
        model = updating_model(data.maps[name]).fit(data.X[:size], data.y[:size])
        rows.append(
            {
                "map": name,
                "size": size,
                "rows_float64": data.X[:size].nbytes,
                "rows_bytes": data.X[:size].size,
                "w_and_C": coefficients(model).nbytes + model.auxiliary_.nbytes,
                "whole_model": len(pickle.dumps(model)),
            }
        )
    return rows


# --- (f): estimates of rows ----------------------------------------------------------------------


def estimates_forgotten(data: Data, plan: Plan) -> Rows:
    """(f) Relative error of w when the row that is forgotten is only an estimate."""
    sizes, each = (plan.sizes[0], plan.sizes[-1]), range(plan.forgotten)
    points = [(name, size, k) for name in data.maps for size in sizes for k in each]
    rng = np.random.default_rng(0)
    rows: Rows = []
    for name, size, k in shown(points, "(f) estimates of rows"):
        if k == 0:
            model = updating_model(data.maps[name]).fit(data.X[:size], data.y[:size])
        x, y = data.X[k : k + 1], data.y[k : k + 1]
        w = coefficients(copy.deepcopy(model).forget(x, y))
        kept = _relative(coefficients(model), w)
        for noise, error in product(NOISES, ERRORS):
            guess = _estimate(x, noise, error, rng)
            rows.append(
                {
                    "map": name,
                    "size": size,
                    "row": k,
                    "noise": noise,
                    "row_error": error,
                    "w_error": _relative(_without(model, guess, y), w),
                    "w_error_not_forgotten": kept,
                }
            )
    return rows


def _estimate(x: Floats, noise: str, error: float, rng: np.random.Generator) -> Floats:
    """The row plus noise whose length is `error` relative to the row's."""
    change = rng.normal(size=x.shape) * (x if noise == "on the ink" else 1.0)
    return x + error * np.linalg.norm(x) / np.linalg.norm(change) * change


def _without(model: LSSVC, x: Floats, y: NDArray[Any]) -> Floats:
    """Return w after forgetting an estimate; infinite where that is refused.

    It is where no data with such a row could have the model's sums.
    """
    guess = copy.deepcopy(model)
    try:
        guess.forget_estimate(x, y)
    except NotLearnedError:
        return np.full(model.feature_coef_.size + 1, np.inf)
    return coefficients(guess)


def _relative(w: Floats, truth: Floats) -> float:
    return float(np.linalg.norm(w - truth) / np.linalg.norm(truth))
