"""A first guess of α and b: scikit-learn's SVC at its default tolerance.

LIBSVM gets near the solution quickly; the path takes it from there to exactness in a handful
of breakpoints. Few points need no guess.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC

from traceless.exact import Floats
from traceless.path.store import Store

_FEW = 50  # points up to which a path from nothing is as fast
_MOST = 8000  # points whose kernel matrix SVC is given, where it cannot compute the kernel


def seed(store: Store, slots: NDArray[np.intp], bounds: Floats) -> tuple[Floats, float]:
    """α for each slot, and b; all zero where there is no need of a guess."""
    alpha = np.zeros(len(slots))
    y = store.y[slots]
    few = min((y > 0).sum(), (y < 0).sum()) < 2 or len(slots) <= _FEW
    if few:
        return alpha, 0.0
    kernel = store.kernel
    X = store.rows[:, slots].T
    if kernel.name in ("rbf", "linear", "poly"):
        svc = SVC(
            C=1.0,
            kernel=kernel.name,
            gamma=kernel.gamma,
            coef0=kernel.coef0,
            degree=int(kernel.degree),
            cache_size=400,
        )
        svc.fit(np.ascontiguousarray(X), y, sample_weight=np.ascontiguousarray(bounds))
        chosen = svc.support_
    else:
        some = np.arange(len(slots)) if len(slots) <= _MOST else _some(y)
        svc = SVC(C=1.0, kernel="precomputed")
        G = kernel.values(X[some], np.ascontiguousarray(X[some].T))
        svc.fit(G, y[some], sample_weight=np.ascontiguousarray(bounds[some]))
        chosen = some[svc.support_]
    alpha[chosen] = np.clip(y[chosen] * svc.dual_coef_[0], 0.0, bounds[chosen])
    high = alpha >= bounds * (1 - 1e-12)
    alpha[high] = bounds[high]
    return alpha, float(svc.intercept_[0])


def _some(y: Floats) -> NDArray[np.intp]:
    """Points spread evenly over both classes."""
    each = [np.flatnonzero(y == label) for label in (-1.0, 1.0)]
    parts = [c[np.linspace(0, len(c) - 1, min(len(c), _MOST // 2)).astype(int)] for c in each]
    return np.sort(np.concatenate(parts))
