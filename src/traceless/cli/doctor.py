"""``traceless --version``: what is installed, and whether results are exact on this machine."""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
import tempfile
from collections.abc import Callable
from typing import Any

from traceless.cli.command import command
from traceless.cli.output import Grid, Result, fields

# of the problem below: the same on every machine, and in every version
DIGEST = "38d55632c9e455cb83fe4c7d5de58d59ae079d213cba65fbbe22c19dfcac3360"
COEFFICIENTS = {  # by free_intercept and standardize
    (False, False): "66b588bd4092ab7652221b2910c612b83ebcd3f9194d28ff63926acbaf81d616",
    (True, True): "4ced81fc8ab3680a4c1048e83db8a46e8c60f88da5e52d401745d3572cf4f863",
}


@command("traceless --version", "traceless --version --json")
def doctor() -> Result:
    """Show what is installed, and test that results are exact here.

    A small fixed problem is learned in several orders, chunks and numbers of threads; its digest
    and its coefficients must be the recorded ones. A store is made in a temporary folder.
    """
    from threadpoolctl import threadpool_info

    from traceless import __version__
    from traceless.arithmetic.core import COMPILED, FOR_SPEED

    machine = {
        "traceless": __version__,
        "compiled core": "yes" if COMPILED else "no",
        "Python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        **{name: importlib.metadata.version(name) for name in ("numpy", "scipy", "scikit-learn")},
    }
    checks = [_check(name, test) for name, test in TESTS.items()]
    names = ("num_threads", "internal_api", "user_api", "version")
    threads = [{name: pool[name] for name in names} for pool in threadpool_info()]
    shown = [
        fields(machine),
        *(() if COMPILED else (FOR_SPEED,)),
        Grid([list(t.values()) for t in threads], ["threads", "library", "for", "version"]),
        Grid([list(c.values()) for c in checks], ["check", "result", "said"]),
    ]
    data = {"machine": machine, "threads": threads, "checks": checks}
    return Result(data, shown, all(c["ok"] for c in checks))


def _problem() -> tuple[Any, Any]:
    """200 rows of 5 columns and 3 classes, by whole numbers."""
    import numpy as np

    whole = np.arange(200)[:, None] * (2 * np.arange(5) + 3) % 251
    return (whole - 125) / 125, whole.sum(axis=1) % 3


def _model() -> Any:
    from traceless import LSSVC
    from traceless.features import RandomFourier

    return LSSVC(RandomFourier(40, gamma=0.5, random_state=0), rho=0.125)


def _expect(expected: Any, got: Any) -> None:
    if expected != got:
        raise ValueError(f"expected {expected}, got {got}")


def _bits() -> str:
    import numpy as np

    model = _model().fit(*_problem())
    _expect(DIGEST, model.digest())
    for (free, scaled), expected in COEFFICIENTS.items():
        model.set_params(free_intercept=free, standardize=scaled)
        both = np.column_stack([model.feature_coef_, model.intercept_]).astype("<f8")
        _expect(expected, hashlib.sha256(np.ascontiguousarray(both).tobytes()).hexdigest())
    return f"digest {DIGEST[:16]}, correctly rounded coefficients"


def _one_thread() -> str:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        _bits()
    return "as with all of them"


def _histories() -> str:
    X, y = _problem()
    for size in (1, 7, 64):
        model = _model()
        for start in reversed(range(0, len(X), size)):
            model.partial_fit(X[start : start + size], y[start : start + size])
        model.partial_fit(X[:50] + 1, y[:50]).forget(X[:50] + 1, y[:50])
        _expect(DIGEST, model.digest())
    return "chunks of 1, 7 and 64 rows, last first; 50 more rows came and went"


def _store() -> str:
    from traceless.store import Store

    X, y = _problem()
    with tempfile.TemporaryDirectory() as folder:
        store = Store.new(f"{folder}/store", _model())
        store.learn(X, y)
        store.learn(X[:90] + 1, y[:90])
        store.forget(X[:90] + 1, y[:90])
        _expect(DIGEST, store.model().knowledge_.without_fingerprint().digest())
        _expect([], [check.said for check in store.verify(X, y).checks if not check.ok])
    return "made, changed and verified in a temporary folder"


TESTS: dict[str, Callable[[], str]] = {
    "bits": _bits,
    "one thread": _one_thread,
    "histories": _histories,
    "store": _store,
}


def _check(name: str, test: Callable[[], str]) -> dict[str, Any]:
    """Run a test; an exception counts as a failure, with its message."""
    try:
        return {"check": name, "ok": True, "said": test()}
    except Exception as error:
        return {"check": name, "ok": False, "said": str(error) or type(error).__name__}
