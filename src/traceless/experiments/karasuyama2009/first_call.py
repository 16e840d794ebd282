"""What the first call costs: numba compiles the engine once, later processes load it.

Measured in processes of their own, the first with an empty cache as on a new machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

import numpy as np

from traceless.experiments.karasuyama2009.artificial import plane
from traceless.hinge.kernels import Kernel
from traceless.hinge.problem import HingeProblem

_SCRIPT = """
import time
import numpy as np
from sklearn.svm import SVC
start = time.perf_counter()
from traceless.hinge.kernels import Kernel
from traceless.hinge.problem import HingeProblem
rng = np.random.default_rng(0)
X, y = rng.normal(size=(100, 2)), np.where(np.arange(100) % 2, 1.0, -1.0)
problem = HingeProblem(Kernel("rbf"), 2).fit(X[:90], y[:90], 1.0)
problem.update(add=(X[90:], y[90:], 1.0), remove=range(10)).decision_function(X)
print(time.perf_counter() - start)
"""


def warm_up() -> None:
    """Compile, or load, all that is timed later; also the windows that many points need."""
    for n in (100, 1200):
        X, y = plane(n, 0)
        problem = HingeProblem(Kernel("rbf"), 2).fit(X[:-10], y[:-10], 1.0)
        problem.update(add=(X[-10:], y[-10:], 1.0), remove=np.arange(10))
        problem.set_bounds(2.0).decision_function(X)


def first_calls() -> tuple[float, float]:
    """Seconds of import, first fit and first update: on a new machine, and afterwards."""
    with tempfile.TemporaryDirectory(prefix="traceless-") as folder:
        environment = os.environ | {"NUMBA_CACHE_DIR": folder}
        new, later = (_seconds(environment) for _ in range(2))
    return new, later


def _seconds(environment: dict[str, str]) -> float:
    command = [sys.executable, "-c", _SCRIPT]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)
