"""Exact sums, solutions and predictions on a GPU, beside what floats do there.

    PYTHONPATH=src python -m benchmarks.gpu            on a machine with a CUDA device: 3 minutes
    PYTHONPATH=src python -m benchmarks.gpu --quick    smaller sizes

Rows lie on the card, in float32, with labels of K classes. Times are medians of three, after one
run that is not counted. "TF" is 2 n J² operations for sums and 2 n J K for predictions in a
second, in units of 10^12, whatever was done for them. Errors of sums are relative to the largest
of the diagonal, those of coefficients to the largest coefficient. Writes gpu.json to
benchmarks/results.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from traceless import LSSVC, Knowledge

DEVICE = "cuda"
RESULTS = Path(__file__).parent / "results"
SIZES = [(1_310_720, 768, 100), (1_310_720, 2048, 100), (1_310_720, 4096, 1000)]
LARGE = (1_281_167, 16_384, 1000)  # the rows and classes of ImageNet
PENALTY: dict[str, Any] = {
    "free_intercept": False,
    "standardize": False,
}  # ρI, as torch's users have it


def seconds(job: Callable[[], object], repeats: int = 3) -> float:
    """The median time of a job, with all that it left running."""
    taken = []
    for _ in range(repeats + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        job()
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken[1:])


def rows(n: int, J: int, K: int) -> tuple[Any, Any]:
    """Embeddings with K classes, as a frozen network might leave them."""
    torch.manual_seed(0)
    X = torch.empty(n, J, device=DEVICE).normal_()
    y = torch.randint(0, K, (n,), device=DEVICE)
    centres = torch.randn(K, J, device=DEVICE)
    for start in range(0, n, 65_536):
        some = slice(start, start + 65_536)
        X[some] += 0.3 * centres[y[some]]
    return X.mul_(0.4).clamp_(-1.98, 1.98), y


class Report:
    """Numbers by name, printed as they come."""

    def __init__(self) -> None:
        self.found: dict[str, dict[str, float]] = {}

    def add(self, case: str, way: str, took: float, work: float = 0.0, error: float = -1.0) -> None:
        """Keep a time, what it was for, and how wrong the result is."""
        said = {"seconds": took}
        said |= {"TF": work / took / 1e12} if work else {}
        said |= {"error": error} if error >= 0 else {}
        self.found[f"{case}: {way}"] = said
        words = ", ".join(f"{name} {value:.4g}" for name, value in said.items())
        print(f"{case}: {way}: {words}", flush=True)


def sums(report: Report, n: int, J: int, K: int) -> None:
    """The knowledge of rows, a fit, and products of floats."""
    X, y = rows(n, J, K)
    case, work = f"{n} × {J}, {K} classes", 2.0 * n * J * J
    model = LSSVC(**PENALTY)
    known = Knowledge.of(model._map(), X, y)
    job = partial(Knowledge.of, model._map(), X, y)
    report.add(case, "Knowledge.of", seconds(job), work)
    report.add(case, "LSSVC.fit", seconds(partial(model.fit, X, y)), work)
    labels = model.predict(X[:131_072])
    report.add(case, "predict", seconds(partial(model.predict, X[:131_072])), 2.0 * 131_072 * J * K)
    some = X[:32_768]
    job = partial(model.decision_function, some)
    report.add(case, "decision_function", seconds(job), 2.0 * len(some) * J * K)
    exact = torch.from_numpy(known.feature_gram[:J, :J].copy()).to(DEVICE).double() * 2.0**-28
    targets = 2.0 * torch.nn.functional.one_hot(y, K) - 1.0
    ours = torch.from_numpy(model.coef_.T.copy()).to(DEVICE)
    for way, tf32, kind in (
        ("float32", False, torch.float32),
        ("TF32", True, torch.float32),
        ("bfloat16", False, torch.bfloat16),
    ):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        Y, T = X.to(kind), targets.to(kind)
        product = Y.T @ Y
        wrong = float((product.double() - exact).abs().max() / exact.diagonal().max())
        report.add(case, f"{way} XᵀX", seconds(partial(torch.matmul, Y.T, Y)), work, wrong)
        ridge(report, case, way, Y, T, product, ours)
        back = product - (product + Y[:1000].T @ Y[:1000] - Y[:1000].T @ Y[:1000])
        moved = float(back.double().abs().max() / exact.diagonal().max())
        report.found[f"{case}: {way} XᵀX"]["taken back"] = moved
        del Y, T
    torch.backends.cuda.matmul.allow_tf32 = False
    print("agreement of labels:", float((labels == y[:131_072]).double().mean()), flush=True)


def ridge(report: Report, case: str, way: str, Y: Any, T: Any, product: Any, ours: Any) -> None:
    """What the same ridge regression costs in floats, and how far off it is."""
    ones = torch.ones(len(Y), 1, dtype=Y.dtype, device=DEVICE)
    s, n = (Y.T @ ones).float(), float(len(Y))
    A = torch.cat([torch.cat([product.float(), s], 1), torch.cat([s.T, s.new_full((1, 1), n)], 1)])
    A.diagonal().add_(1.0)
    B = torch.cat([(Y.T @ T).float(), T.float().sum(0, keepdim=True)])
    start = time.perf_counter()
    factor, failed = torch.linalg.cholesky_ex(A)
    w = torch.cholesky_solve(B, factor)[:-1].double()
    torch.cuda.synchronize()
    took = time.perf_counter() - start
    wrong = float("nan") if int(failed) else float((w - ours).abs().max() / ours.abs().max())
    report.add(case, f"{way} ridge", took, error=wrong)


def large(report: Report, n: int, J: int, K: int) -> None:
    """Rows of the size of ImageNet."""
    X, y = rows(n, J, K)
    case, work = f"{n} × {J}, {K} classes", 2.0 * n * J * J
    model = LSSVC(rho=1.0)
    job = partial(Knowledge.of, model._map(), X, y)
    report.add(case, "Knowledge.of", seconds(job, 2), work)
    report.add(case, "LSSVC.fit", seconds(partial(model.fit, X, y), 1), work)
    fresh = LSSVC(rho=1.0).merge(model.knowledge_)
    start = time.perf_counter()
    fresh._weights()
    report.add(case, "solve", time.perf_counter() - start)
    some = X[:131_072]
    report.add(case, "predict", seconds(partial(model.predict, some)), 2.0 * len(some) * J * K)
    some = X[:32_768]
    job = partial(model.decision_function, some)
    report.add(case, "decision_function", seconds(job), 2.0 * len(some) * J * K)
    start = time.perf_counter()
    model.digest()
    report.add(case, "digest", time.perf_counter() - start)


def main() -> None:
    """Measure all, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    about = {
        "card": torch.cuda.get_device_name(0),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "date": str(date.today()),
    }
    print(about, flush=True)
    report = Report()
    for n, J, K in SIZES:
        sums(report, n // 10 if quick else n, J, K)
        torch.cuda.empty_cache()
    large(report, LARGE[0] // 10 if quick else LARGE[0], *LARGE[1:])
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps({"about": about, "found": report.found}, indent=1, ensure_ascii=False)
    (RESULTS / "gpu.json").write_text(text + "\n")
    print(f"peak memory {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB")


if __name__ == "__main__":
    main()
