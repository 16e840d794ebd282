"""(a) Parallel incremental learning against batch learning, stage by stage.

Each stage's rows arrive in slices that are learned apart and merged into one model. The
model is compared with a fit from scratch on all rows so far: exactly, and beside it the same
sums in plain float64,

    (ρI + Σ_c ω_c M_c) w_k = Σ_c ω_c y_ck v_c,    M_c = Σφφᵀ, v_c = Σφ over class c

with NumPy's matrix product and solver (Zhu et al. 2018). The last feature is the constant 1, so
v_c is the last column of M_c. The features of the float64 sums are those of float64; with
features on the grid of 2^-14 the sums would be exact too, as long as they stay below 2^53 steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from papers.cost_model.costs import SCALE
from papers.datasets import Floats, Images, Indices, Labels
from papers.report import Plan
from papers.rows import Row, Rows
from papers.timing import shown
from traceless import LSSVC, wESVM
from traceless.features import RandomLayer

RHO = 1.0
CLASSES = 10
RELABELLED = 0.01  # of the rows, at the end


def machine(units: int) -> LSSVC:
    """A wESVM that has learned nothing yet."""
    return wESVM(units, C=1.0 / RHO, scale=SCALE)


def coefficients(model: LSSVC) -> Floats:
    """All coefficients, the constant's last, one row per class."""
    return np.column_stack([model.feature_coef_, model.intercept_])


def float_sums(Phi: Floats, y: Labels) -> Floats:
    """The matrices M_c in float64, as one would write them down."""
    return np.stack([Phi[y == k].T @ Phi[y == k] for k in range(CLASSES)])


def float_solve(M: Floats) -> Floats:
    """Coefficients with balanced weights, one row per class."""
    n = M[:, -1, -1]
    omega = n.sum() / (CLASSES * n)
    A = RHO * np.eye(M.shape[1]) + np.tensordot(omega, M, axes=1)
    signs = 2.0 * np.eye(CLASSES) - 1.0
    return np.asarray(np.linalg.solve(A, ((signs * omega) @ M[:, -1]).T).T)


class Batch(NamedTuple):
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
        float_w = float_solve(float_sums(self.Phi[rows], y[rows]))
        return Batch(model.digest(), coefficients(model), float_w)

    def learned_apart(self, rows: Indices) -> tuple[LSSVC, Floats]:
        """What one node makes of its slice."""
        X, y = self.images.X[rows], self.images.digits[rows]
        return machine(self.units).partial_fit(X, y), float_sums(self.Phi[rows], y)


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
    rng, digits = np.random.default_rng(nodes), setting.images.digits
    model, sums = machine(setting.units), np.zeros(1)
    rows: Rows = []

    def compare(stage: int, event: str, batch: Batch) -> None:
        told = {"nodes": nodes, "stage": stage, "event": event}
        rows.append(told | _compared(setting.images, model, float_solve(sums), batch))

    for stage, arrived in enumerate(stages, 1):
        for k, slice_ in enumerate(cut(arrived, nodes, rng), 1):
            node, part = setting.learned_apart(slice_)
            model.merge(node, name=f"stage {stage}, node {k}")
            sums = sums + part
        compare(stage, "learned", batches[stage - 1])
    held = np.setdiff1d(np.concatenate(stages), slice_)
    model.merge(-node.knowledge_, name=f"stage {stage}, node {nodes}")
    sums = sums - part
    compare(stage, "slice taken out", setting.batch(held, digits))
    changed = held[: int(RELABELLED * len(held)) + 1]
    X, Phi, old = setting.images.X[changed], setting.Phi[changed], digits[changed]
    new = (old + 1) % CLASSES
    model.update(add=(X, new), forget=(X, old))
    sums = sums - float_sums(Phi, old) + float_sums(Phi, new)
    relabelled = digits.copy()
    relabelled[changed] = new
    compare(stage, "rows relabelled", setting.batch(held, relabelled))
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


def _compared(images: Images, model: LSSVC, float_w: Floats, batch: Batch) -> Row:
    return {
        "rows": model.n_samples_,
        "accuracy": model.score(images.X_test, images.digits_test),
        "digest_equal": model.digest() == batch.digest,
        "difference": float(np.abs(coefficients(model) - batch.w).max()),
        "float64_difference": float(np.abs(float_w - batch.float_w).max()),
        "largest_coefficient": float(np.abs(batch.w).max()),
    }
