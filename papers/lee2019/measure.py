"""The numbers behind Fig. 1 (a) to (f) of Lee et al. 2019; `judge` judges them.

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
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg
from sklearn.base import clone

from papers.datasets import Floats, Images, Labels, find_mnist, mnist_images, small_images
from papers.report import Paper, Plan
from papers.rows import Row, Rows
from papers.timing import interleave, shown
from traceless import LSSVC, NotLearnedError
from traceless.features import FeatureMap, Linear, RandomFourier

RHO = 1.0
PENALTY: dict[str, Any] = {"free_intercept": False, "standardize": False}  # ρ‖w‖² of eq. 1, b in w
STEPS = 10  # in which wrong labels are forgotten
ERRORS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # of an estimated row, relative to its length
NOISES = ("on the ink", "everywhere")  # pixels in proportion to their values, or all alike
PAPER = Paper(Path(__file__).parent)
FULL, QUICK, DIGITS = PAPER.plans()
Jobs = dict[tuple[Any, ...], Callable[[], Callable[[], object]]]


@dataclass(frozen=True)
class Data(Images):
    """Training and test rows between 0 and 1, and the maps that suit them."""

    maps: dict[str, FeatureMap]

    @property
    def y(self) -> Labels:
        """1 for odd digits, 0 for even ones."""
        return self.digits % 2

    @property
    def y_test(self) -> Labels:
        """1 for odd digits, 0 for even ones."""
        return self.digits_test % 2


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
    fourier = RandomFourier(plan.components, gamma=gamma, random_state=0)
    return Data(**vars(images), maps={"Linear": Linear(), "RandomFourier": fourier})


def exact_model(phi: FeatureMap) -> LSSVC:
    """A model whose coefficients are correctly rounded when asked for."""
    return LSSVC(phi, rho=RHO, **PENALTY)


def updating_model(phi: FeatureMap) -> LSSVC:
    """A model that updates w and P = (ρI + S)⁻¹ with each change, as the paper does w and C."""
    return LSSVC(phi, rho=RHO, solver="woodbury", **PENALTY)


# --- (a) and (b): accuracy -------------------------------------------------------------------


def groups_learned(data: Data) -> Rows:
    """(a) Accuracy on all test digits as pairs of digits are learned one after the other."""
    rows: Rows = []
    for name, first in shown(list(product(data.maps, range(0, 10, 2))), "(a) groups of digits"):
        if first == 0:
            model = exact_model(data.maps[name])
        new, held = data.digits // 2 == first // 2, data.digits <= first + 1
        model.partial_fit(data.X[new], data.y[new])
        scratch = exact_model(data.maps[name]).fit(data.X[held], data.y[held])
        told = {"map": name, "group": f"{first}&{first + 1}"} | _scored(model, data)
        digests = {"digest": model.digest(), "digest_from_scratch": scratch.digest()}
        rows.append(told | digests)
    return rows


def _scored(model: LSSVC, data: Data) -> Row:
    return {"rows": model.n_samples_, "accuracy": model.score(data.X_test, data.y_test)}


def wrong_labels_forgotten(data: Data) -> Rows:
    """(b) Accuracy as wrongly labelled rows, at first half of all, are forgotten step by step."""
    rng = np.random.default_rng(0)
    wrong = rng.permutation(len(data.X))[: len(data.X) // 2]
    right = np.setdiff1d(np.arange(len(data.X)), wrong)
    labels = {"flipped": data.y.copy(), "drawn at random": data.y.copy()}
    labels["flipped"][wrong] = 1 - data.y[wrong]
    labels["drawn at random"][wrong] = rng.integers(0, 2, len(wrong))
    rows: Rows = []
    for name, (reading, y) in shown(list(product(data.maps, labels.items())), "(b) wrong labels"):
        clean = exact_model(data.maps[name]).fit(data.X[right], data.y[right]).digest()
        model = exact_model(data.maps[name]).fit(data.X, y)
        for step, part in enumerate([wrong[:0], *np.array_split(wrong, STEPS)]):
            if step:
                model.forget(data.X[part], y[part])
            told = {"map": name, "wrong_labels": reading, "removed": step / STEPS}
            equal = {"equals_never_learned": model.digest() == clean}
            rows.append(told | _scored(model, data) | equal)
    return rows


# --- (c), (d) and (e): time and storage --------------------------------------------------------


def update_times(data: Data, plan: Plan) -> Rows:
    """(c) Seconds to update with a batch, and to retrain with 10 new rows, by original size."""
    rows: Rows = []
    start = len(data.X) - max(plan.batches)
    for name, phi in data.maps.items():
        jobs: Jobs = {}
        for size in plan.sizes:
            model = updating_model(phi).fit(data.X[:size], data.y[:size])
            for batch in plan.batches:
                jobs[size, "update", batch] = partial(_update, model, data, start, batch)
            jobs[size, "retrain", 10] = partial(_retrain, phi, data, size, start)
        times = interleave(jobs, plan.rounds, f"(c) updates, {name}", prepared=True)
        rows += [
            {"map": name, "size": size, "how": how, "batch": batch, "seconds": seconds}
            for (size, how, batch), seconds in times.items()
        ]
    return rows


def _update(model: LSSVC, data: Data, start: int, batch: int) -> Callable[[], object]:
    """Learn a batch with a copy of the model, up to new coefficients."""
    fresh, rows = copy.deepcopy(model), slice(start, start + batch)
    X, y = data.X[rows], data.y[rows]
    return lambda: fresh.partial_fit(X, y).feature_coef_


def _retrain(phi: FeatureMap, data: Data, size: int, start: int) -> Callable[[], object]:
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
        jobs: Jobs = {}
        for batch in plan.all_batches:
            jobs[batch, "traceless"] = partial(_update, model, data, start, batch)
            jobs[batch, "one block"] = partial(_one_block, model, phi, data, start, batch)
        times = interleave(jobs, plan.rounds, f"(d) batch sizes, {name}", prepared=True)
        for (batch, how), seconds in times.items():
            row = {"map": name, "how": how, "batch": batch, "seconds": seconds}
            rows.append(row | {"seconds_per_row": seconds / batch})
    return rows


def _one_block(
    model: LSSVC, phi: FeatureMap, data: Data, start: int, batch: int
) -> Callable[[], object]:
    """The same update by the paper's equations, the whole batch at once."""
    bound = phi.bind(data.X.shape[1])
    w, C = coefficients(model), auxiliary(model)
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


def auxiliary(model: LSSVC) -> Floats:
    """The paper's auxiliary matrix C = I - ρP (eq. 4)."""
    state, size = model.export_state(), len(coefficients(model))
    P = np.zeros((size, size))
    P[np.triu_indices(size)] = state["P"]
    return np.eye(size) - RHO * (P + np.triu(P, 1).T)


def storage(data: Data, plan: Plan) -> Rows:
    """(e) Bytes of the training rows, of w and C, and of the whole model, by number of rows."""
    rows: Rows = []
    for name, size in shown(list(product(data.maps, plan.sizes)), "(e) storage"):
        model = updating_model(data.maps[name]).fit(data.X[:size], data.y[:size])
        rows.append(
            {
                "map": name,
                "size": size,
                "rows_float64": data.X[:size].nbytes,
                "rows_bytes": data.X[:size].size,
                "w_and_C": coefficients(model).nbytes + auxiliary(model).nbytes,
                "whole_model": len(pickle.dumps(model)),
            }
        )
    return rows


# --- (f): estimates of rows ----------------------------------------------------------------------


def estimates_forgotten(data: Data, plan: Plan) -> Rows:
    """(f) Relative error of w when the row that is forgotten is only an estimate."""
    points = product(data.maps, (plan.sizes[0], plan.sizes[-1]), range(plan.forgotten))
    rng = np.random.default_rng(0)
    rows: Rows = []
    for name, size, k in shown(list(points), "(f) estimates of rows"):
        if k == 0:
            model = updating_model(data.maps[name]).fit(data.X[:size], data.y[:size])
        x, y = data.X[k : k + 1], data.y[k : k + 1]
        w = coefficients(copy.deepcopy(model).forget(x, y))
        kept = _relative(coefficients(model), w)
        for noise, error in product(NOISES, ERRORS):
            guess = without(model, estimate(x, noise, error, rng), y)
            told = {"map": name, "size": size, "row": k, "noise": noise, "row_error": error}
            rows.append(told | {"w_error": _relative(guess, w), "w_error_not_forgotten": kept})
    return rows


def estimate(x: Floats, noise: str, error: float, rng: np.random.Generator) -> Floats:
    """The row plus noise whose length is `error` relative to the row's."""
    change = rng.normal(size=x.shape) * (x if noise == "on the ink" else 1.0)
    return x + error * np.linalg.norm(x) / np.linalg.norm(change) * change


def without(model: LSSVC, x: Floats, y: Labels) -> Floats:
    """Return w after forgetting an estimate; infinite where the estimate is refused.

    It is refused if no data with such a row could have the model's sums. The exact sums never held
    an estimate, so it is forgotten by a model that has w and P alone.
    """
    guess = clone(model).import_state(model.export_state())
    try:
        guess.forget(x, y)
    except NotLearnedError:
        return np.full(model.feature_coef_.size + 1, np.inf)
    return coefficients(guess)


def _relative(w: Floats, truth: Floats) -> float:
    return float(np.linalg.norm(w - truth) / np.linalg.norm(truth))
