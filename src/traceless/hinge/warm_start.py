"""A warm start: α and b of scikit-learn's SVC, SVR or OneClassSVM at their default tolerance.

LIBSVM gets near the solution quickly; the path takes it from there to exactness in a handful
of breakpoints. Few points need no warm start.
"""

from __future__ import annotations

import warnings
from threading import Lock
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, SVR, OneClassSVM

from traceless.arithmetic.integers import Floats
from traceless.hinge.kernel_cache import KernelCache, Slots

_FEW = 50  # points up to which a path from nothing is as fast
_LONG = 100  # steps for each point: LIBSVM may never end, its kernel values are float32
# `catch_warnings` changes what the whole process sees: two threads in it would leave the filter of
# one of them behind
_ONE_AT_A_TIME = Lock()
_MOST = 8000  # points whose kernel matrix LIBSVM is given, where it cannot compute the kernel


def warm_start(
    cache: KernelCache, slots: Slots, bounds: Floats, level: Floats, total: float
) -> tuple[Floats, float]:
    """α for each slot, and b; all zero for few points, or where LIBSVM has no answer."""
    alpha, y = np.zeros(len(slots)), cache.y[slots]
    nothing = alpha, 0.0
    if len(slots) <= _FEW:
        return nothing
    kernel, some = cache.kernel, np.arange(len(slots))
    machine: Any
    if total:
        machine, t = OneClassSVM(nu=min(1.0, total / float(bounds.sum()))), None
    elif np.array_equal(y, level):
        if min((y > 0).sum(), (y < 0).sum()) < 2:
            return nothing
        machine, t = SVC(C=1.0), y
    else:  # the two sides of a tube, one row after the other
        some = np.flatnonzero(y > 0)
        twins = some - 1  # of the same rows, on the upper side
        t = 0.5 * (level[some] + level[twins])
        machine = SVR(C=1.0, epsilon=0.5 * float(level[twins[0]] - level[some[0]]))
    X = cache.rows[:, slots[some]].T
    machine.set_params(cache_size=400, max_iter=_LONG * len(slots))
    part = np.arange(len(some))
    if kernel.name in ("rbf", "linear", "poly"):
        machine.set_params(kernel=kernel.name, gamma=kernel.gamma, coef0=kernel.coef0)
        machine.set_params(degree=int(kernel.degree))
        X = kernel.centred(X)
    else:
        if len(some) > _MOST:
            part = _spread(y[some], _MOST // 2)
        machine.set_params(kernel="precomputed")
        X = kernel.values(X[part], np.ascontiguousarray(X[part].T))
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solver terminated early", ConvergenceWarning)
        try:
            w = np.ascontiguousarray(bounds[some[part]])
            machine.fit(np.ascontiguousarray(X), None if t is None else t[part], sample_weight=w)
        except ValueError:  # its numbers are not finite
            return nothing
    chosen, c = some[part[machine.support_]], machine.dual_coef_[0]
    chosen = np.where(c * y[chosen] < 0.0, chosen - 1, chosen)  # the twin has the other sign
    alpha[chosen] = np.clip(np.abs(c), 0.0, bounds[chosen])
    high = alpha >= bounds * (1 - 1e-12)
    alpha[high] = bounds[high]
    return alpha, float(machine.intercept_[0]) if np.isfinite(machine.intercept_[0]) else 0.0


def _spread(y: Floats, n: int) -> Slots:
    """At most n places of each sign, spread evenly."""
    each = [np.flatnonzero(y == sign) for sign in (-1.0, 1.0)]
    few = (at[np.linspace(0, len(at) - 1, min(len(at), n)).astype(int)] for at in each)
    return np.sort(np.concatenate([*few]))
