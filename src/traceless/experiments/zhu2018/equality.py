"""(a) Parallel incremental learning against batch learning, stage by stage.

Each stage's rows arrive in slices that are learned apart and merged into one model. The
model is compared with a fit from scratch on all rows so far: exactly, and beside it the same
sums in plain float64,

    (ρI + Σ_c ω_c M_c) w_k = Σ_c ω_c y_ck v_c,    M_c = Σφφᵀ, v_c = Σφ over class c

with NumPy's matrix product and solver (Zhu et al. 2018; see `traceless.solvers.class_weights`). The
features of the latter are those of float64; with features on the grid of 2^-14 its sums would
be exact too, as long as they stay below 2^53 steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless import LSSVC, wESVM
from traceless.experiments.conduct import shown
from traceless.experiments.images import Floats, Images
from traceless.experiments.verdict import Row, Rows
from traceless.experiments.zhu2018.plan import SCALE, Plan
from traceless.features import RandomLayer

RHO = 1.0
CLASSES = 10
RELABELLED = 0.01  # of the rows, at the end
Labels = NDArray[Any]
Indices = NDArray[np.intp]


def machine(units: int) -> LSSVC:
    """A wESVM that has learned nothing yet."""
    return wESVM(units, C=1.0 / RHO, scale=SCALE)


def coefficients(model: LSSVC) -> Floats:
    """All coefficients, the constant's last, one row per class."""
    return np.column_stack([model.feature_coef_, model.intercept_])


@dataclass(frozen=True)
class FloatSums:
    """The class-wise sums in float64, as one would write them down."""

    M: Floats
    v: Floats
    n: Floats

    @classmethod
    def of(cls, Phi: Floats, y: Labels) -> FloatSums:
        """The sums of some rows."""
        members = [Phi[y == k] for k in range(CLASSES)]
        return cls(
            np.stack([F.T @ F for F in members]),
            np.stack([F.sum(axis=0) for F in members]),
            np.array([float(len(F)) for F in members]),
        )

    def __add__(self, other: FloatSums) -> FloatSums:
        return FloatSums(self.M + other.M, self.v + other.v, self.n + other.n)

    def __sub__(self, other: FloatSums) -> FloatSums:
        return FloatSums(self.M - other.M, self.v - other.v, self.n - other.n)

    def solve(self) -> Floats:
        """Coefficients with balanced weights, one row per class."""
        omega = self.n.sum() / (CLASSES * self.n)
        A = RHO * np.eye(self.M.shape[1]) + np.tensordot(omega, self.M, axes=1)
        signs = 2.0 * np.eye(CLASSES) - 1.0
        return np.asarray(np.linalg.solve(A, ((signs * omega) @ self.v).T).T)


@dataclass(frozen=True)
class Batch:
    """A fit from scratch on some rows, exact and in float64."""

    digest: str
    w: Floats
    float_w: Floats


@dataclass(frozen=True)
class Setting:
    """The rows, their features in float64, and what learns them."""

    images: Images
    units: int
    Phi: Floats

    @classmethod
    def of(cls, images: Images, units: int, resolution: float = 2**-50) -> Setting:
        """With the features of all rows, by default as fine as float64 has them."""
        layer = RandomLayer(units, scale=SCALE, resolution=resolution)
        return cls(images, units, layer.transform(images.X))

    def batch(self, rows: Indices, y: Labels) -> Batch:
        """Learn these rows from scratch."""
        model = machine(self.units).fit(self.images.X[rows], y[rows])
        float_w = FloatSums.of(self.Phi[rows], y[rows]).solve()
        return Batch(model.digest(), coefficients(model), float_w)

    def learned_apart(self, rows: Indices) -> tuple[LSSVC, FloatSums]:
        """What one node makes of its slice."""
        X, y = self.images.X[rows], self.images.digits[rows]
        return machine(self.units).partial_fit(X, y), FloatSums.of(self.Phi[rows], y)


def differences_from_batch(images: Images, plan: Plan) -> Rows:
    """(a) Differences from batch learning after each stage, for several numbers of nodes."""
    setting = Setting.of(images, plan.units)
    order = np.random.default_rng(0).permutation(len(images.X))
    stages = np.array_split(order, plan.stages)
    batches = [
        setting.batch(np.sort(np.concatenate(stages[: k + 1])), images.digits)
        for k in shown(range(plan.stages), "(a) batch, every stage")
    ]
    rows: Rows = []
    for nodes in shown(plan.nodes, "(a) slices, every stage"):
        rows += _history(setting, stages, batches, nodes)
    return rows


def _history(
    setting: Setting, stages: Sequence[Indices], batches: Sequence[Batch], nodes: int
) -> Rows:
    """All stages with one number of nodes; then a slice leaves, and rows are relabelled."""
    rng = np.random.default_rng(nodes)
    model, sums = machine(setting.units), FloatSums(*(np.zeros(1) for _ in range(3)))
    rows: Rows = []
    slices: list[Indices] = []
    for stage, arrived in enumerate(stages, 1):
        slices = cut(arrived, nodes, rng)
        for k, slice_ in enumerate(slices):
            node, part = setting.learned_apart(slice_)
            model.merge(node, name=f"stage {stage}, node {k + 1}")
            sums = sums + part
        told = {"nodes": nodes, "stage": stage, "event": "learned"}
        rows.append(told | _compared(setting, model, sums, batches[stage - 1]))
    held = np.setdiff1d(np.concatenate(stages), slices[-1])
    told = {"nodes": nodes, "stage": len(stages)}
    node, part = setting.learned_apart(slices[-1])
    model.merge(-node.knowledge_, name=f"stage {len(stages)}, node {nodes}")
    sums = sums - part
    batch = setting.batch(held, setting.images.digits)
    rows.append(told | {"event": "slice taken out"} | _compared(setting, model, sums, batch))
    sums = _relabel(setting, model, sums, changed := held[: int(RELABELLED * len(held)) + 1])
    batch = setting.batch(held, _with_new_labels(setting.images.digits, changed))
    rows.append(told | {"event": "rows relabelled"} | _compared(setting, model, sums, batch))
    return rows


def cut(rows: Indices, parts: int, rng: np.random.Generator) -> list[Indices]:
    """Slices of different sizes, none empty, in no particular order.

    Examples
    --------
    >>> [len(part) for part in cut(np.arange(10), 3, np.random.default_rng(0))]
    [4, 3, 3]
    """
    shares = rng.dirichlet(np.full(parts, 3.0))
    sizes = 1 + rng.multinomial(len(rows) - parts, shares)
    return np.split(rows, np.cumsum(sizes)[:-1])


def _with_new_labels(y: Labels, changed: Indices) -> Labels:
    new = y.copy()
    new[changed] = (y[changed] + 1) % CLASSES
    return new


def _relabel(setting: Setting, model: LSSVC, sums: FloatSums, changed: Indices) -> FloatSums:
    """Forget rows with their old labels and learn them with new ones, at once."""
    X, Phi, old = setting.images.X[changed], setting.Phi[changed], setting.images.digits
    new = _with_new_labels(old, changed)[changed]
    model.update(add=(X, new), forget=(X, old[changed]))
    return sums - FloatSums.of(Phi, old[changed]) + FloatSums.of(Phi, new)


def _compared(setting: Setting, model: LSSVC, sums: FloatSums, batch: Batch) -> Row:
    images = setting.images
    return {
        "rows": model.n_samples_,
        "accuracy": model.score(images.X_test, images.digits_test),
        "digest_equal": model.digest() == batch.digest,
        "difference": _largest(coefficients(model) - batch.w),
        "float64_difference": _largest(sums.solve() - batch.float_w),
        "largest_coefficient": _largest(batch.w),
    }


def _largest(values: Floats) -> float:
    return float(np.abs(values).max())
