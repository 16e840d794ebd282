"""A first guess of α and b: scikit-learn's SVC at its default tolerance.

LIBSVM gets near the solution quickly; the path takes it from there to exactness in a handful
of breakpoints. Few points need no guess.
"""

from __future__ import annotations

import warnings
from threading import Lock

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from traceless.arithmetic.integers import Floats
from traceless.path.store import Store

_FEW = 50  # points up to which a path from nothing is as fast
_LONG = 100  # steps for each point: LIBSVM may never end, its kernel values are float32
# `catch_warnings` changes what the whole process sees: two threads in it would leave the filter of
# one of them behind
_ONE_AT_A_TIME = Lock()
_MOST = 8000  # points whose kernel matrix SVC is given, where it cannot compute the kernel


def seed(store: Store, slots: NDArray[np.intp], bounds: Floats) -> tuple[Floats, float]:
    """α for each slot, and b; all zero where there is no need of a guess, or none to be had."""
    alpha = np.zeros(len(slots))
    y = store.y[slots]
    few = min((y > 0).sum(), (y < 0).sum()) < 2 or len(slots) <= _FEW
    if few:
        return alpha, 0.0
    kernel = store.kernel
    X = store.rows[:, slots].T
    limits = {"C": 1.0, "cache_size": 400, "max_iter": _LONG * len(slots)}
    some = np.arange(len(slots))
    if kernel.name in ("rbf", "linear", "poly"):
        svc = SVC(
            kernel=kernel.name,
            gamma=kernel.gamma,
            coef0=kernel.coef0,
            degree=int(kernel.degree),
            **limits,
        )
        found = _fit(svc, kernel.centred(X), y, bounds)
    else:
        some = some if len(slots) <= _MOST else _some(y)
        svc = SVC(kernel="precomputed", **limits)
        G = kernel.values(X[some], np.ascontiguousarray(X[some].T))
        found = _fit(svc, G, y[some], bounds[some])
    if not found:
        return alpha, 0.0
    chosen = some[svc.support_]
    alpha[chosen] = np.clip(y[chosen] * svc.dual_coef_[0], 0.0, bounds[chosen])
    high = alpha >= bounds * (1 - 1e-12)
    alpha[high] = bounds[high]
    return alpha, float(svc.intercept_[0])


def _fit(svc: SVC, X: Floats, y: Floats, bounds: Floats) -> bool:
    """Fit, and say whether there is a guess: LIBSVM has none where its numbers are not finite."""
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solver terminated early", ConvergenceWarning)
        try:
            svc.fit(np.ascontiguousarray(X), y, sample_weight=np.ascontiguousarray(bounds))
        except ValueError:
            return False
    return True


def _some(y: Floats) -> NDArray[np.intp]:
    """Points spread evenly over both classes."""
    each = [np.flatnonzero(y == label) for label in (-1.0, 1.0)]
    parts = [c[np.linspace(0, len(c) - 1, min(len(c), _MOST // 2)).astype(int)] for c in each]
    return np.sort(np.concatenate(parts))
