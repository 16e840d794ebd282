"""Rows that do not fit into memory: time and peak memory of learning from Parquet.

    make bench-out_of_core                          5 000 000 × 200 (4 GB of float32)
    python -m benchmarks.out_of_core --quick        250 000 × 200

The same rows as a float64 array would take 8 GB. Each fit runs in a process of its own,
whose peak resident memory is read from the system, with those of its workers.
Writes out_of_core.json to benchmarks/results.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import psutil

from benchmarks.findings import FLOOR, RESULTS, Findings, Record, main
from benchmarks.floor import Rates, gram_flops
from benchmarks.parquet_rows import make_rows

N_FEATURES = 200
FIT = """
import sys, time
from traceless import LSSVC, scan
start = time.perf_counter()
model = LSSVC(n_jobs=int(sys.argv[2])).fit(scan(sys.argv[1], "y"))
print(time.perf_counter() - start, model.digest())
"""


def measured(folder: Path, n_jobs: int) -> tuple[float, str, int]:
    """Seconds, digest, and the largest memory of the process and its workers together."""
    command = [sys.executable, "-c", FIT, str(folder), str(n_jobs)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        peak = watched(process)
        out, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"the fit failed with exit code {process.returncode}")
    seconds, digest = out.split()
    return float(seconds), digest, peak


def watched(process: subprocess.Popen[str], *, workers: bool = True) -> int:
    """The largest sum of memory that is not shared, of all processes, seen ten times a second."""
    peak = 0
    while process.poll() is None:
        try:
            root = psutil.Process(process.pid)
            family = [root, *(root.children(recursive=True) if workers else ())]
            peak = max(peak, sum(p.memory_full_info().uss for p in family))
        except psutil.Error:  # one has just ended
            pass
        time.sleep(0.1)
    return peak


def measure(quick: bool) -> Findings:
    n = 250_000 if quick else 5_000_000
    folder = make_rows(RESULTS / "rows", n, N_FEATURES, 20)
    on_disk = sum(f.stat().st_size for f in folder.iterdir())
    rates = Rates.measured()
    job, memory = f"A fit of {n} × {N_FEATURES} rows from Parquet", "Its peak memory"
    records, digests = [], set()
    for n_jobs in (1, 2):
        seconds, digest, peak = measured(folder, n_jobs)
        digests.add(digest)
        records += [
            Record(job, f"n_jobs={n_jobs}", seconds),
            Record(memory, f"n_jobs={n_jobs}", peak, unit="B"),
        ]
    assert len(digests) == 1, "the digests differ"
    records += [
        Record(job, FLOOR, rates.floor(gram_flops(n, N_FEATURES + 1), on_disk)),
        Record(memory, "the files", on_disk, unit="B"),
        Record(memory, "the rows as float64", 8 * n * (N_FEATURES + 1), unit="B"),
    ]
    return Findings(records, notes=[f"One run each; {len(digests)} digest.", str(rates)])


if __name__ == "__main__":
    main(measure, __doc__)
