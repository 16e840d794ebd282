"""Exact sums, solutions and predictions on a GPU, beside what floats do there.

    PYTHONPATH=src python -m benchmarks.gpu            on a machine with a CUDA device
    PYTHONPATH=src python -m benchmarks.gpu --quick    smaller sizes

Rows lie on the card, float32, on the grid of 2^-14. Times are medians of three, after one run that
is not counted. "TF" counts 2 n J² operations for sums and 2 n J K for predictions, whatever was
done for them. Writes gpu.json to benchmarks/results.
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
from traceless.device import gram
from traceless.device.cutting import cut
from traceless.device.encoders import Encoder
from traceless.features import BoundMap, Linear
from traceless.knowledge.gathering import chunks
from traceless.knowledge.responses import responses_of
from traceless.knowledge.tensor_gathering import Blocks, TensorGathering

DEVICE = "cuda"
RESULTS = Path(__file__).parent / "results"


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
    X = torch.empty(n, J, device=DEVICE).normal_().mul_(0.4).clamp_(-1.98, 1.98)
    y = torch.randint(0, K, (n,), device=DEVICE)
    for k in range(min(K, 64)):
        X[y == k, k % J] += 0.5
    return X, y


def report(found: dict[str, Any], name: str, took: float, work: float) -> None:
    found[name] = {"seconds": took, "TF": work / took / 1e12}
    print(f"  {name}: {took * 1e3:.1f} ms, {work / took / 1e12:.0f} TF", flush=True)


def sums(n: int, J: int, K: int) -> dict[str, Any]:
    """The knowledge of rows, by its parts, and floats beside it."""
    X, y = rows(n, J, K)
    work = 2.0 * n * J * J
    found: dict[str, Any] = {}
    print(f"n={n} J={J} K={K}", flush=True)
    report(found, "Knowledge.of", seconds(lambda: Knowledge.of(Linear(), X, y)), work)
    phi = Linear().bind(J)
    report(found, "Knowledge.of, bound", seconds(lambda: Knowledge.of(phi, X, y)), work)
    for panel in (1024, 2048, 4096, 8192):
        if panel <= max(J, 1024):
            gram._PANEL = panel
            took = seconds(lambda: on_device(phi, X, y))
            report(found, f"sums on the device, panels of {panel}", took, work)
    gram._PANEL = 4096
    for name, tf32, kind in (
        ("float32", False, torch.float32),
        ("TF32", True, torch.float32),
        ("bfloat16", False, torch.bfloat16),
    ):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        Y = X.to(kind)
        report(found, name, seconds(partial(torch.matmul, Y.T, Y)), work)
    torch.backends.cuda.matmul.allow_tf32 = False
    return found


def on_device(phi: BoundMap, X: Any, y: Any) -> object:
    """The sums without their way to the host."""
    responses = responses_of(y, None, "classification", 1.0)
    gathering = TensorGathering(phi, X, responses, None)
    blocks = Blocks(gathering, Encoder(phi, X.device), 0, len(responses.names), responses)
    for some in chunks(slice(0, len(X)), gram.ROWS):
        blocks.add(some)
    return blocks


def parts(n: int, J: int) -> None:
    """What the parts of one block cost."""
    X = torch.randn(n, J, device=DEVICE)
    planes = torch.empty((2, J, n), dtype=torch.int8, device=DEVICE)
    peak = torch.zeros(1, dtype=torch.int32, device=DEVICE)
    scale = torch.full((J,), 16384.0, dtype=torch.float64, device=DEVICE)
    took = seconds(lambda: cut(X, scale, planes, 0, peak))
    print(f"  cut {n}x{J}: {took * 1e3:.2f} ms, {n * J * 6 / took / 1e9:.0f} GB/s", flush=True)
    for p in (1024, 2048, 4096):
        if p <= J:
            A, B = planes[0, :p], planes[1, :p]
            took = seconds(lambda: torch._int_mm(A, B.T))  # noqa: B023
            print(f"  int8 {p}x{n}x{p}: {2 * n * p * p / took / 1e12:.0f} TOPS", flush=True)
    W = torch.randint(-(2**40), 2**40, (J, J), device=DEVICE)
    host = np.empty((J, J), dtype=np.int64)
    took = seconds(lambda: torch.from_numpy(host).copy_(W))
    print(f"  to the host, pages touched: {8 * J * J / took / 1e9:.1f} GB/s", flush=True)
    took = seconds(lambda: torch.from_numpy(np.empty((J, J), dtype=np.int64)).copy_(W))
    print(f"  to the host, new pages: {8 * J * J / took / 1e9:.1f} GB/s", flush=True)
    took = seconds(lambda: torch.empty((J, J), dtype=torch.int64, pin_memory=True).copy_(W))
    print(f"  to the host, pinned: {8 * J * J / took / 1e9:.1f} GB/s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    card = torch.cuda.get_device_name(0)
    print(card, torch.__version__, date.today(), flush=True)
    found: dict[str, Any] = {"card": card, "torch": torch.__version__, "date": str(date.today())}
    parts(130_048, 2048)
    sizes = [(262_144, 768, 100), (262_144, 2048, 100)]
    if not quick:
        parts(130_048, 16_384)
        sizes = [(1_310_720, 768, 100), (1_310_720, 2048, 1000), (1_310_720, 4096, 1000)]
        sizes += [(524_288, 16_384, 1000)]
    for size in sizes:
        found[str(size)] = sums(*size)
        torch.cuda.empty_cache()
    X, y = rows(262_144, 1024, 100)
    took = seconds(lambda: LSSVC().fit(X, y), 1)
    print(f"fit 262144 x 1024: {took:.3f} s")
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "gpu.json").write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
