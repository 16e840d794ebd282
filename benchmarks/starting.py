"""Small fits, and the first fit of a process, against scikit-learn's.

    make bench-starting                             a minute
    python -m benchmarks.starting --quick           fewer rounds

A fit of 2000 × 64 is short enough for checks and bookkeeping to matter; the first fit in a new
process is mostly imports. Writes starting.json to benchmarks/results.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial

import numpy as np
from sklearn.linear_model import Ridge, RidgeClassifier

from benchmarks.findings import FLOOR, Findings, Record, main, times
from benchmarks.floor import Rates, cholesky_flops, gram_flops
from benchmarks.updates import repeat
from papers.claims import Claim
from papers.timing import interleave
from traceless import LSSVC, LSSVR

N, J, REPEATED = 2000, 64, 20
REGRESSION, CLASSES = f"A fit of {N} × {J}, one target", f"A fit of {N} × {J}, two classes"
IMPORT = "import, in a new process"
FIRST = f"import and a first fit of {N} × {J}, in a new process"
ROWS = f"import numpy; X = numpy.random.default_rng(0).normal(size=({N}, {J}))"
PROGRAMS = {
    (IMPORT, "import traceless"): "import traceless",
    (IMPORT, "from traceless import LSSVR"): "from traceless import LSSVR",
    (IMPORT, "from sklearn.linear_model import Ridge"): "from sklearn.linear_model import Ridge",
    (FIRST, "LSSVR"): f"{ROWS}\nfrom traceless import LSSVR\nLSSVR().fit(X, X[:, 0])",
    (FIRST, "Ridge"): f"{ROWS}\nfrom sklearn.linear_model import Ridge\nRidge().fit(X, X[:, 0])",
}


def program(text: str, **environment: str) -> str:
    """What a program says that runs in a process of its own, with the packages of this one."""
    path = os.pathsep.join(filter(None, sys.path))
    environment = os.environ | {"PYTHONPATH": path} | environment
    command = [sys.executable, "-c", text]
    return subprocess.run(
        command, check=True, env=environment, stdout=subprocess.PIPE
    ).stdout.decode()


def measure(quick: bool) -> Findings:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, J))
    y = X[:, 0] + rng.normal(size=N)
    fits: dict[tuple[str, str], Callable[[], object]] = {
        (REGRESSION, "LSSVR"): lambda: LSSVR().fit(X, y),
        (REGRESSION, "Ridge"): lambda: Ridge().fit(X, y),
        (CLASSES, "LSSVC"): lambda: LSSVC().fit(X, y > 0),
        (CLASSES, "RidgeClassifier"): lambda: RidgeClassifier().fit(X, y > 0),
    }
    jobs = {key: partial(repeat, job, REPEATED) for key, job in fits.items()}
    rounds = 5 if quick else 25
    seconds = {key: s / REPEATED for key, s in interleave(jobs, rounds).items()}
    seconds |= interleave(
        {key: partial(program, text) for key, text in PROGRAMS.items()}, 2 if quick else 7
    )
    records = [Record(job, way, value) for (job, way), value in seconds.items()]
    rates = Rates.measured(512)  # of rows that stay in the caches
    least = rates.floor(gram_flops(N, J + 1) + cholesky_flops(J + 1), X.nbytes)
    records += [Record(job, FLOOR, least) for job in (REGRESSION, CLASSES)]
    t = Findings(records)
    ratios = [
        (f"{REGRESSION}: LSSVR / Ridge", REGRESSION, "LSSVR", "Ridge", 1.2),
        (f"{CLASSES}: LSSVC / RidgeClassifier", CLASSES, "LSSVC", "RidgeClassifier", 1.2),
        (f"{FIRST}: LSSVR / Ridge", FIRST, "LSSVR", "Ridge", 1.2),
    ]
    claims = [
        Claim(what, t.value(job, ours) / t.value(job, theirs), goal)
        for what, job, ours, theirs, goal in ratios
    ]
    notes = [
        f"{claim.what}: {times(claim.ratio)}, with the goal {claim.hope}. The floor is "
        f"{least / t.value(job, ours):.0%} of the time of {ours}, and "
        f"{least / t.value(job, theirs):.0%} of that of {theirs}: checks and bookkeeping are the "
        "rest of both, and exact digits of ours."
        for claim, (_, job, ours, theirs, _) in zip(claims, ratios, strict=True)
        if job != FIRST and not claim.case.holds
    ]
    return Findings(records, claims, [str(rates), *notes])


if __name__ == "__main__":
    main(measure, __doc__)
