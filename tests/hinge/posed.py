"""Binary problems as a fitted model publishes them, judged in long double.

    min ½ αᵀQα - Σ y t α,    0 ≤ α ≤ u,    Σ yα = τ,    g = y (h + b - t),    h = K (yα)

From ``dual_coef_``, ``support_``, ``intercept_`` and the rows that were given. The duality gap
Σ (u max(0, -g) + α g) bounds by how much any solver could do better; where rounding makes that
bound loose, `gain` tries, by pairs. Nothing of the engine is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless import PathOneClass, PathSVR

Array = NDArray[Any]
EPS = float(np.finfo(float).eps)


def kernel_values(options: Mapping[str, Any], A: Array, B: Array) -> Array:
    """k(a, b) in long double, by the parameters of an estimator."""
    name, gamma = options["kernel"], np.longdouble(options.get("gamma", 1.0))
    if callable(name):
        return name(A, B).astype(np.longdouble)
    A, B = A.astype(np.longdouble), B.astype(np.longdouble)
    if name == "rbf":
        return np.exp(-gamma * ((A[:, None] - B[None]) ** 2).sum(axis=-1))
    products = A @ B.T
    if name == "linear":
        return products
    inner = gamma * products + np.longdouble(options.get("coef0", 0.0))
    return inner ** options["degree"] if name == "poly" else np.tanh(inner)


@dataclass(frozen=True)
class Posed:
    """One problem: points of some rows, and what is published of it. Levels are in `unit`."""

    K: Array  # of all rows
    row: Array  # of each point
    y: Array
    t: Array
    u: Array
    total: Any
    alpha: Array
    b: Any
    unit: float

    def values(self, alpha: Array, b: Any) -> Array:
        """The h + b of all rows."""
        c = np.zeros(len(self.K), dtype=np.longdouble)
        np.add.at(c, self.row, self.y * alpha)
        return self.K @ c + b

    def slopes(self, alpha: Array, b: Any) -> Array:
        """The g of each point."""
        return self.y * (self.values(alpha, b)[self.row] - self.t)

    def size(self) -> Any:
        """How large the α are together, or would be for an f of a unit."""
        largest = np.abs(self.K).max()
        return max(self.alpha.sum(), self.unit / largest if largest else 1.0)

    def noise(self) -> float:
        """How much of g rounding to float64 may explain."""
        size = float(self.alpha.sum() * np.abs(self.K).max(initial=0.0) + np.abs(self.t).max())
        return 40 * EPS * (size + abs(float(self.b)))

    def violation(self) -> float:
        """The largest violation of a condition in units; infinite where α is out of bounds."""
        alpha, u = self.alpha, self.u
        if (alpha < 0.0).any() or (alpha > u * (1 + 1e-12)).any():
            return np.inf
        g = self.slopes(alpha, self.b)
        wrong = np.where(alpha <= 0.0, -g, np.where(alpha >= u * (1 - 1e-14), g, np.abs(g)))
        apart = abs((self.y * alpha).sum() - self.total)
        balance = float(apart / max(abs(self.total), self.size()))
        return max(float(wrong.max()) / self.unit, balance)

    def objective(self) -> float:
        """What the dual maximises."""
        c_h = (self.alpha * (self.slopes(self.alpha, 0.0) + self.y * self.t)).sum()
        return float((self.y * self.t * self.alpha).sum() - c_h / 2)

    def gap(self) -> float:
        """By how much no α could be better: the primal at the best b less the dual."""
        g = self.slopes(self.alpha, 0.0)  # without b
        b = np.append(-self.y * g, self.b)  # the primal bends where a g is 0
        loss = (self.u * np.maximum(0.0, -(g + np.multiply.outer(b, self.y)))).sum(axis=1)
        return float((loss + self.total * b).min() + (self.alpha * g).sum())

    def gain(self, steps: int = 2000) -> float:
        """By how much pairs of α can be made better, one after the other (Fan, Chen & Lin 2005)."""
        y, u, K = self.y, self.u, self.K[np.ix_(self.row, self.row)]
        alpha, first = np.clip(self.alpha, 0.0, u), self.objective()
        v, d = -y * self.slopes(alpha, 0.0), K.diagonal()  # b, were the point on the margin
        for _ in range(steps):
            up = ((y > 0) & (alpha < u)) | ((y < 0) & (alpha > 0.0))
            down = ((y > 0) & (alpha > 0.0)) | ((y < 0) & (alpha < u))
            i = int(np.where(up, v, -np.inf).argmax())
            curve = np.maximum(d[i] + d - 2 * K[i], 1e-15 * d.max())
            apart = np.where(down, v[i] - v, -np.inf)
            j = int(np.where(apart > 0.0, apart**2 / curve, -np.inf).argmax())
            if not apart[j] > 0.0:
                break
            room = (
                (u[i] - alpha[i] if y[i] > 0 else alpha[i]),
                (alpha[j] if y[j] > 0 else u[j] - alpha[j]),
            )
            step = min(apart[j] / curve[j], *room)
            alpha[i] += y[i] * step
            alpha[j] -= y[j] * step
            v -= step * (K[i] - K[j])
        better = Posed(self.K, self.row, y, self.t, u, self.total, alpha, self.b, self.unit)
        return better.objective() - first


def posed(model: Any, rows: tuple[Array, Array, Array], K: Array) -> Iterator[Posed]:
    """The problems of a model of these rows, in the order of its ids."""
    _, y, weight = rows
    n, long = len(y), np.longdouble
    dual, support = model.dual_coef_, model.support_
    if isinstance(model, PathSVR):
        c = np.zeros(n, dtype=long)
        c[support] = dual[0]
        two = np.repeat(np.arange(n), 2)
        sign = np.tile([-1.0, 1.0], n).astype(long)
        t = y[two] - sign * model.epsilon
        alpha, u = np.maximum(sign * c[two], 0.0), model.C * weight[two].astype(long)
        width, far = float(np.ptp(y)), float(np.abs(y).max())
        unit = (min(far, 9 * width) if width else far) or 1.0
        yield Posed(K, two, sign, t, u, long(0), alpha, long(model.intercept_[0]), unit)
    elif isinstance(model, PathOneClass):
        alpha, ones = np.zeros(n, dtype=long), np.ones(n, dtype=long)
        alpha[support] = dual[0]
        total = model.nu * weight.astype(long).sum()
        unit = float(min(total, weight.max()) * np.abs(K.diagonal()).max()) or 1.0
        b = long(model.intercept_[0])
        yield Posed(K, np.arange(n), ones, 0 * ones, weight.astype(long), total, alpha, b, unit)
    else:
        yield from _pairs(model, y, weight.astype(long), K)


def _pairs(model: Any, labels: Array, weight: Array, K: Array) -> Iterator[Posed]:
    """The pairs of classes, in scikit-learn's layout of dual coefficients."""
    classes, dual, support = model.classes_, model.dual_coef_, model.support_
    share = np.ones(len(classes), dtype=np.longdouble)
    if model.class_weight == "balanced":
        totals = np.array([weight[labels == k].sum() for k in classes])
        share = totals.sum() / (len(classes) * totals)
    for number, (i, j) in enumerate(combinations(range(len(classes)), 2)):
        at = np.flatnonzero((labels == classes[i]) | (labels == classes[j]))
        first = labels[at] == classes[i]
        c = np.zeros(len(labels), dtype=np.longdouble)
        if len(classes) == 2:
            c[support] = dual[0]
            y = np.where(first, -1.0, 1.0)  # positive for the second
        else:
            for k, other in ((i, j), (j, i)):
                ours = labels[support] == classes[k]
                c[support[ours]] = dual[other - (other > k), ours]
            y = np.where(first, 1.0, -1.0)
        y = y.astype(np.longdouble)
        u = model.C * np.where(first, share[i], share[j]) * weight[at]
        b = np.longdouble(model.intercept_[number])
        yield Posed(K, at, y, y, u, np.longdouble(0), y * c[at], b, 1.0)
