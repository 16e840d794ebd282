"""Rows that do not fit into memory: time and peak memory of learning from Parquet.

    make bench-out-of-core                          5 000 000 × 200 (4 GB of float32)
    python benchmarks/out_of_core.py --quick        250 000 × 200

The same rows as a float64 array would take 8 GB. Each fit runs in a process of its own,
whose peak resident memory is read from the system, with those of its workers.
Writes out_of_core.csv to benchmarks/results.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil

from interleave import machine
from parquet_rows import make_rows
from traceless import LSSVC, scan

RESULTS = Path(__file__).parent / "results"
N_FEATURES = 200


def fit(folder: str, n_jobs: int) -> None:
    """In a process of its own: prints seconds and digest."""
    start = time.perf_counter()
    model = LSSVC(n_jobs=n_jobs, verbose=True).fit(scan(folder, "y"))
    print(time.perf_counter() - start, model.digest())


def measured(folder: Path, n_jobs: int) -> tuple[float, str, int]:
    """Seconds, digest, and the largest memory of the process and its workers together."""
    command = [sys.executable, __file__, "--fit", str(folder), str(n_jobs)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    peaks = [0]
    watch = threading.Thread(target=_watch, args=(process, peaks))
    watch.start()
    out, _ = process.communicate()
    watch.join()
    if process.returncode:
        raise RuntimeError(f"the fit failed with exit code {process.returncode}")
    seconds, digest = out.split()
    return float(seconds), digest, max(peaks)


def _watch(process: subprocess.Popen[str], peaks: list[int]) -> None:
    """Sum the memory that is not shared, of all processes, ten times a second."""
    while process.poll() is None:
        try:
            root = psutil.Process(process.pid)
            family = [root, *root.children(recursive=True)]
            peaks.append(sum(p.memory_full_info().uss for p in family))
        except psutil.Error:  # one has just ended
            pass
        time.sleep(0.1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--fit", nargs=2, metavar=("FOLDER", "N_JOBS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fit:
        fit(arguments.fit[0], int(arguments.fit[1]))
        return
    n = 250_000 if arguments.quick else 5_000_000
    folder = make_rows(RESULTS / "rows", n, N_FEATURES, 20)
    on_disk = sum(f.stat().st_size for f in folder.iterdir())
    print(machine())
    print(f"\n{n} × {N_FEATURES} from Parquet, {on_disk / 1e9:.2f} GB of files")
    rows, digests = [], set()
    for n_jobs in (1, 2):
        seconds, digest, peak = measured(folder, n_jobs)
        digests.add(digest)
        rows.append([n, N_FEATURES, n_jobs, seconds, peak])
        print(
            f"  n_jobs={n_jobs}: {seconds:6.1f} s, {on_disk / seconds / 1e6:5.0f} MB/s of files, "
            f"peak memory {peak / 1e6:.0f} MB, digest {digest[:16]}…"
        )
    assert len(digests) == 1, "the digests differ"
    with (RESULTS / "out_of_core.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["rows", "features", "n_jobs", "seconds", "peak bytes"])
        writer.writerows(rows)


if __name__ == "__main__":
    main()
