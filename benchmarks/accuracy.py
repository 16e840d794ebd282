"""Live models after very many changes, against a float64 retrain and the exact solution.

    make bench-accuracy                             100 000 cycles each, about fifteen minutes
    python -m benchmarks.accuracy --quick           2000 cycles each, J = 40 only

A row comes and goes again, or one comes and the oldest goes. Now and then the coefficients of the
live model (``solver="woodbury"``) and those of a Cholesky solve of the same sums in float64 are
compared with the correctly rounded ones. Writes accuracy.json to benchmarks/results.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from benchmarks.findings import PAPERS, Findings, Record, main
from papers.claims import Claim
from papers.datasets import Floats
from traceless import LSSVR
from traceless.features import Linear

POOL, LOOKS, STEP = 100, 50, 2.0**-14
JOB = "Relative error of coefficients, J = {} (root of the mean square)"
LIVE, RETRAINED = "live model", "float64 retrain"
Life = tuple[str, int, float]  # how rows come and go, how many are held, ρ
CASES: dict[int, dict[str, Life]] = {
    40: {
        "in and out, ρ = 1": ("in and out", 200, 1.0),
        "in and out, ρ = 1e-6": ("in and out", 200, 1e-6),
        "in and out, fewer rows than features": ("in and out", 20, 1e-2),
        "sliding window, ρ = 1": ("window", 200, 1.0),
        "sliding window, ρ = 1e-6": ("window", 200, 1e-6),
    },
    784: {  # a minute each
        "in and out, ρ = 1": ("in and out", 3920, 1.0),
        "sliding window, ρ = 1": ("window", 3920, 1.0),
        "sliding window, ρ = 1e-6": ("window", 3920, 1e-6),
    },
}


def errors_of(model: LSSVR) -> tuple[float, float]:
    """Errors of the live coefficients and of a retrain in float64, relative to the exact ones."""
    known = model.knowledge_
    exact = LSSVR(model.feature_map, model.rho, **PAPERS).merge(known).coef_
    S, V = (part.astype(np.float64) for part in (known.feature_gram, known.response_sums))
    A = S * STEP**2 + float(model.rho) * np.eye(len(S))
    retrained = cho_solve(cho_factor(A), V * STEP)[:, 0] * model.target_resolution
    size = np.linalg.norm(exact)
    live = float(np.linalg.norm(model.coef_ - exact) / size)
    return live, float(np.linalg.norm(retrained - exact) / size)


def lives(J: int, life: Life, cycles: int) -> Iterator[tuple[float, float]]:
    """Errors at some moments of a long life."""
    how, held, rho = life
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(held + POOL, J)), rng.normal(size=held + POOL)
    phi = Linear(bias=False, resolution=STEP)
    model = LSSVR(phi, rho, solver="woodbury", **PAPERS).fit(X[:held], y[:held])
    _ = model.coef_
    when = {*rng.integers(cycles, size=LOOKS).tolist(), cycles - 1}

    def row(i: int) -> tuple[Floats, Floats]:
        return X[i : i + 1], y[i : i + 1]

    for i in range(cycles):
        if how == "in and out":
            model.partial_fit(*row(held + i % POOL))
            model.forget(*row(held + i % POOL))
        else:
            model.update(add=row((held + i) % len(X)), forget=row(i % len(X)))
        if i in when:
            yield errors_of(model)


def measure(quick: bool) -> Findings:
    cycles = 2000 if quick else 100_000
    records, claims = [], []
    several = [(J, *case) for J, cases in CASES.items() for case in cases.items()]
    for J, case, life in several[: len(CASES[40])] if quick else several:
        lived = lives(J, life, cycles if life[1] > J else cycles // 10)
        found = np.array(list(lived))
        live, retrained = np.sqrt((found**2).mean(axis=0)).tolist()
        records += [
            Record(JOB.format(J), LIVE, live, case, "number"),
            Record(JOB.format(J), RETRAINED, retrained, case, "number"),
        ]
        claims.append(Claim(f"J = {J}, {case}: {LIVE} / {RETRAINED}", live / retrained, 1.0))
    notes = [
        f"{cycles} cycles each, looked at {LOOKS} times at moments chosen at random. With fewer "
        f"rows than features each removal is checked in twofold precision: {cycles // 10} cycles."
    ]
    return Findings(records, claims, notes)


if __name__ == "__main__":
    main(measure, __doc__)
