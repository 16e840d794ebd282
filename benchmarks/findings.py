"""What a benchmark found: records of single medians, and claims about their ratios.

A benchmark is a module with a function `measure(quick) -> Findings`. `main(measure, __doc__)`
makes a command of it, `python -m benchmarks.NAME [--quick]`, which prints tables and keeps the
numbers as JSON in benchmarks/results, where `report` finds them. Where the machine was not quiet
(`quiet`), it says so.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from benchmarks.quiet import disturbances, keep_memory, said
from papers.claims import Claim
from papers.timing import machine

RESULTS = Path(__file__).parent / "results"
FLOOR = "floor"
PAPERS: dict[str, Any] = {"free_intercept": False, "standardize": False}  # ρ‖w‖²
Unit = Literal["s", "B", "share", "number"]
SCALES: dict[Unit, list[tuple[str, float]]] = {
    "s": [("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)],
    "B": [("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0)],
    "share": [("%", 1e-2)],
    "number": [("", 1.0)],
}
HEADS = {"s": "time", "B": "size", "share": "share", "number": "value"}


@dataclass(frozen=True)
class Record:
    """One number: what one way took for one case of a job.

    The first way of a job is ours, and others are told as multiples of it. A job whose cases are
    sizes ("n = 500") is drawn as lines.
    """

    job: str
    way: str
    value: float
    case: str = ""
    unit: Unit = "s"

    @property
    def size(self) -> int | None:
        """The number of a case like "n = 500", or None."""
        number = self.case.rpartition(" = ")[2]
        return int(number) if number.isdecimal() else None

    def __str__(self) -> str:
        return spoken(self.value, self.unit)


def spoken(value: float, unit: Unit) -> str:
    """A number with its unit, if it has any, to three figures: 1.23 ms, 27 MB, 91 %, 0.5."""
    name, one = next((s for s in SCALES[unit] if value >= s[1]), SCALES[unit][-1])
    said = f"{value / one:.3g} {name}" if value < 1000 * one else f"{value / one:.0f} {name}"
    return said.rstrip()


def times(ratio: float, figures: int = 2) -> str:
    """A ratio without an exponent: 0.031 ×, 1.2 ×, 4000 ×."""
    return f"{float(f'{ratio:.{figures}g}'):g} ×"


def records_of(job: str, seconds: dict[str, float], case: str = "") -> list[Record]:
    """Records of one case from the medians that `interleave` returns."""
    return [Record(job, way, value, case) for way, value in seconds.items()]


@dataclass(frozen=True)
class Findings:
    """All that one benchmark found; `main` adds what it is called, and where and when it ran."""

    records: Sequence[Record]
    claims: Sequence[Claim] = ()
    notes: Sequence[str] = ()
    name: str = ""
    about: str = ""
    quick: bool = False
    machine: Sequence[str] = ()
    day: str = ""
    seconds: float = 0.0

    def jobs(self) -> dict[str, list[Record]]:
        """Records by job, in the order they were measured."""
        out: dict[str, list[Record]] = {}
        for record in self.records:
            out.setdefault(record.job, []).append(record)
        return out

    def value(self, job: str, way: str, case: str = "") -> float:
        """One number; raises KeyError if it was not measured."""
        for r in self.records:
            if (r.job, r.way, r.case) == (job, way, case):
                return r.value
        raise KeyError(f"{self.name}: {job!r}, {way!r}, {case!r} was not measured")

    def to_json(self) -> dict[str, Any]:
        """Plain data; numbers to four figures, more than a shared machine gives."""
        out = asdict(self)
        for record in out["records"]:
            record["value"] = float(f"{record['value']:.4g}")
        for claim in out["claims"]:
            claim["ratio"] = float(f"{claim['ratio']:.4g}")
        return out

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Findings:
        """What `to_json` gave."""
        records = [Record(**r) for r in data["records"]]
        claims = [Claim(**c) for c in data["claims"]]
        return cls(**data | {"records": records, "claims": claims})


def columns_of(records: Iterable[Record]) -> tuple[list[str], list[list[str]]]:
    """Head and rows of a job's table: our own numbers, and others as multiples of them.

    Ways are rows; where there are more cases than ways, cases are.
    """
    by = {(r.way, r.case): r for r in records}
    ways, cases = (list(dict.fromkeys(part)) for part in zip(*by, strict=True))

    def cell(way: str, case: str) -> str:
        ours, it = by.get((ways[0], case)), by.get((way, case))
        if it is None or ours is None or it.unit != "s" or it is ours:
            return "–" if it is None else str(it)
        return times(it.value / ours.value)

    if cases == [""]:
        return ["", HEADS[next(iter(by.values())).unit]], [[way, cell(way, "")] for way in ways]
    if len(cases) > len(ways):
        return ["", *ways], [[case, *(cell(way, case) for way in ways)] for case in cases]
    return ["", *cases], [[way, *(cell(way, case) for case in cases)] for way in ways]


def show(findings: Findings) -> None:
    """Print the tables and claims."""
    for job, records in findings.jobs().items():
        head, rows = columns_of(records)
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        print(f"\n{job}")
        for row in [head, *rows]:
            first, *rest = (f"{text:>{w}}" for text, w in zip(row, widths, strict=True))
            print(f"  {first.strip():<{widths[0]}}  {'  '.join(rest)}".rstrip())
    for note in findings.notes:
        print(f"\n{note}")
    if findings.claims:
        print("\nRatios of interleaved medians")
    for claim in findings.claims:
        print(f"  {claim}")


def main(measure: Callable[[bool], Findings], doc: str | None) -> None:
    """The command line that all benchmarks share: measure, show, keep."""
    about = (doc or "").partition("\n")[0]
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, smaller sizes")
    quick = parser.parse_args().quick
    print("\n".join(machine()))
    kept = keep_memory()
    before, start = disturbances(), time.perf_counter()
    print("\n".join(f"The machine is not quiet: {it}." for it in before))
    found = measure(quick)
    note = said(before, disturbances())
    found = replace(
        found,
        notes=[*found.notes, *([note] if note else [])],
        name=Path(sys.argv[0]).stem,
        about=about,
        quick=quick,
        machine=[*machine(), *kept],  # at the end: what the run really had
        day=time.strftime("%Y-%m-%d"),
        seconds=round(time.perf_counter() - start),
    )
    show(found)
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{found.name}.json"
    path.write_text(json.dumps(found.to_json(), ensure_ascii=False, indent=1) + "\n")
    print(f"\n{found.seconds:.0f} s in all; kept in {path}")
