"""``traceless doctor``: what is installed, and whether it is exact on this machine."""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
import re
import tempfile
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from traceless.cli.answer import Answer, Facts, Grid
from traceless.cli.command import command

# of the problem below, on every machine, for as long as digests mean the same
DIGEST = "38d55632c9e455cb83fe4c7d5de58d59ae079d213cba65fbbe22c19dfcac3360"
COEFFICIENTS = "66b588bd4092ab7652221b2910c612b83ebcd3f9194d28ff63926acbaf81d616"


@command("traceless doctor", "traceless doctor --json")
def doctor() -> Answer:
    """Say what is installed, and test that bits come out here as they must.

    A small fixed problem is learned in several orders, chunks and numbers of threads; its digest
    and its coefficients must be the recorded ones. A store is made in a temporary folder.
    """
    from traceless import __version__

    checks = [_checked(name, test) for name, test in TESTS.items()]
    machine = {
        "traceless": __version__,
        "Python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        **{name: _version(name) for name in ("numpy", "scipy", "scikit-learn")},
    }
    extras, threads = _extras(), _threads()
    shown: list[Facts | Grid] = [
        Facts(machine),
        Grid(["extra", "installed", "missing"], [_words(name, *e) for name, e in extras.items()]),
        Grid(["threads", "library", "version"], threads),
        Grid(["check", "result", "said"], checks),
    ]
    data = {
        "machine": machine,
        "extras": {name: {"installed": e[0], "missing": e[1]} for name, e in extras.items()},
        "threads": [dict(zip(("threads", "library", "version"), t, strict=True)) for t in threads],
        "checks": [dict(zip(("check", "ok", "said"), c, strict=True)) for c in checks],
    }
    return Answer(data, shown, all(ok for _, ok, _ in checks))


def _problem() -> tuple[Any, Any]:
    """200 rows of 5 columns and 3 classes, by whole numbers."""
    import numpy as np

    whole = np.arange(200)[:, None] * (2 * np.arange(5) + 3) % 251
    return (whole - 125) / 125, whole.sum(axis=1) % 3


def _model() -> Any:
    from traceless import LSSVC
    from traceless.features import RandomFourier

    return LSSVC(RandomFourier(40, gamma=0.5, random_state=0), rho=0.125)


def _expect(expected: Any, got: Any) -> str:
    if expected != got:
        raise ValueError(f"expected {expected}, got {got}")
    return str(got)


def _digest() -> str:
    return _expect(DIGEST, _model().fit(*_problem()).digest())


def _coefficients() -> str:
    import numpy as np

    model = _model().fit(*_problem())
    both = np.column_stack([model.feature_coef_, model.intercept_]).astype("<f8")
    _expect(COEFFICIENTS, hashlib.sha256(np.ascontiguousarray(both).tobytes()).hexdigest())
    return "correctly rounded"


def _order() -> str:
    X, y = _problem()
    for size in (1, 7, 64):
        model = _model()
        for start in reversed(range(0, len(X), size)):
            model.partial_fit(X[start : start + size], y[start : start + size])
        _expect(DIGEST, model.digest())
    return "chunks of 1, 7 and 64 rows, last first"


def _one_thread() -> str:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        _digest()
        _coefficients()
    return "as with all of them"


def _forgetting() -> str:
    X, y = _problem()
    model = _model().fit(X, y).partial_fit(X[:50] + 1, y[:50]).forget(X[:50] + 1, y[:50])
    _expect(DIGEST, model.digest())
    return "50 rows came and went"


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
    "digest": _digest,
    "coefficients": _coefficients,
    "order and chunks": _order,
    "one thread": _one_thread,
    "forgetting": _forgetting,
    "store": _store,
}


def _checked(name: str, test: Callable[[], str]) -> tuple[str, bool, str]:
    """What a test says; whatever goes wrong in it is its result."""
    try:
        return name, True, test()
    except Exception as error:
        return name, False, str(error) or type(error).__name__


def _extras() -> dict[str, tuple[list[str], list[str]]]:
    """The libraries of each extra: installed with versions, and missing."""
    found: dict[str, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for line in importlib.metadata.requires("traceless") or ():
        extra = re.search(r"""extra\s*==\s*['"](.+?)['"]""", line)
        name = re.match(r"[A-Za-z0-9._-]+", line)
        if extra is None or name is None or name[0] == "traceless" or extra[1] in ("test", "bench"):
            continue
        version = _version(name[0])
        found[extra[1]][version is None].append(f"{name[0]} {version}" if version else name[0])
    return dict(found)


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _threads() -> list[tuple[int, str, str | None]]:
    """The libraries that compute in threads, as they are loaded now."""
    from threadpoolctl import threadpool_info

    return [
        (pool["num_threads"], f"{pool['internal_api']} ({pool['user_api']})", pool["version"])
        for pool in threadpool_info()
    ]


def _words(name: str, installed: list[str], missing: list[str]) -> tuple[str, str, str]:
    return name, ", ".join(installed) or "-", ", ".join(missing) or "-"
