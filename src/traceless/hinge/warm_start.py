"""A warm start: α and b of scikit-learn's SVC at its default tolerance.

LIBSVM gets near the solution quickly; the path takes it from there to exactness in a handful
of breakpoints. Few points need no warm start.
"""

from __future__ import annotations

import warnings
from threading import Lock

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from traceless.arithmetic.integers import Floats
from traceless.hinge.kernel_cache import KernelCache, Slots

_FEW = 50  # points up to which a path from nothing is as fast
_LONG = 100  # steps for each point: LIBSVM may never end, its kernel values are float32
# `catch_warnings` changes what the whole process sees: two threads in it would leave the filter of
# one of them behind
_ONE_AT_A_TIME = Lock()
_MOST = 8000  # points whose kernel matrix SVC is given, where it cannot compute the kernel


def warm_start(cache: KernelCache, slots: Slots, bounds: Floats) -> tuple[Floats, float]:
    """α for each slot, and b; all zero for few points, or where LIBSVM has no answer."""
    alpha, y = np.zeros(len(slots)), cache.y[slots]
    if min((y > 0).sum(), (y < 0).sum()) < 2 or len(slots) <= _FEW:
        return alpha, 0.0
    kernel, X, some = cache.kernel, cache.rows[:, slots].T, np.arange(len(slots))
    svc = SVC(C=1.0, cache_size=400, max_iter=_LONG * len(slots))
    if kernel.name in ("rbf", "linear", "poly"):
        svc.set_params(kernel=kernel.name, gamma=kernel.gamma, coef0=kernel.coef0)
        svc.set_params(degree=int(kernel.degree))
        X = kernel.centred(X)
    else:
        if len(slots) > _MOST:  # points spread evenly over both classes
            each = [np.flatnonzero(y == label) for label in (-1.0, 1.0)]
            n = _MOST // 2
            some = np.sort(np.concatenate([_spread(places, n) for places in each]))
        svc.set_params(kernel="precomputed")
        X = kernel.values(X[some], np.ascontiguousarray(X[some].T))
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solver terminated early", ConvergenceWarning)
        try:
            weight = np.ascontiguousarray(bounds[some])
            svc.fit(np.ascontiguousarray(X), y[some], sample_weight=weight)
        except ValueError:  # its numbers are not finite
            return alpha, 0.0
    chosen = some[svc.support_]
    alpha[chosen] = np.clip(y[chosen] * svc.dual_coef_[0], 0.0, bounds[chosen])
    high = alpha >= bounds * (1 - 1e-12)
    alpha[high] = bounds[high]
    return alpha, float(svc.intercept_[0])


def _spread(places: Slots, n: int) -> Slots:
    """At most n of some places, spread evenly."""
    return np.asarray(places[np.linspace(0, len(places) - 1, min(len(places), n)).astype(int)])
