"""All benchmarks beside their peers, as one page.

    make bench-report                               everything, about two hours
    python -m benchmarks.report --quick             the short form of each; gpu and federation
                                                    are run by make bench-gpu, bench-federation
    python -m benchmarks.report --only updates      run these, keep others
    python -m benchmarks.report --only              run none, write the page again

Each benchmark runs in a process of its own and keeps its numbers in benchmarks/results. From
them is written benchmarks/results/report.html (one file, to send) and, where none is of the
short form, docs/benchmarks.json (the numbers), docs/benchmarks.md and its pictures, the table
and picture in README.md, and the tables of other pages that stand between marks.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from benchmarks.figures import picture
from benchmarks.findings import RESULTS, Findings, columns_of, times
from benchmarks.quiet import KEPT
from papers.claims import Claim
from papers.page import Block, Heading, Picture, Table, Text, html, markdown

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
NUMBERS = DOCS / "benchmarks.json"
TITLES = {
    "expect": "What to expect on your data",
    "foundation": "Learning in one go",
    "everyday": "Raw everyday data, default parameters",
    "frames": "Raw frames",
    "starting": "Small fits and first fits",
    "updates": "Small changes",
    "accuracy": "Accuracy after very many changes",
    "scores": "Scores",
    "solves": "Solves",
    "penalties": "What a free intercept and scales cost",
    "cross_validation": "Cross-validation by unlearning",
    "paths": "PathSVC",
    "refitting": "When refitting is faster",
    "probabilities": "Probabilities",
    "store": "What a store costs",
    "federation": "Sites that share a model and nothing else",
    "out_of_core": "Rows that do not fit into memory",
    "engines": "Dask and Spark",
    "gpu": "On a GPU",
}
INTRODUCTION = (
    "Jobs take turns, and medians are compared, so that a shared machine slows all of them "
    "alike. The first way in each table is ours, with its time; the other ways are **multiples of "
    "our time** (3 × takes three times as long, 0.5 × half). The **floor** is what a job cannot "
    "avoid on this machine: its flops at the rate of a matrix product, or its bytes at the rate "
    "of memory, whichever takes longer. The project set the goals before it measured; the page "
    "also shows those that it missed. `make bench-report` runs it all on your machine."
)
MARKS = "<!-- benchmarks: written by make bench-report -->\n", "<!-- end of benchmarks -->"
EMBEDDED = re.compile(r"<!-- benchmark: (.*) -->\n\n(?:.*\n)*?\n<!-- end of benchmark -->")


def run(names: Iterable[str], quick: bool) -> list[str]:
    """Run benchmarks one after another; returns those that failed."""
    failed = []
    for name in names:
        print(f"\n=== {name}", flush=True)
        command = [sys.executable, "-m", f"benchmarks.{name}", *(["--quick"] if quick else [])]
        if subprocess.run(command, cwd=ROOT).returncode:
            failed.append(name)
    return failed


def kept() -> list[Findings]:
    """What was measured last, in the order of the page: on this machine, else as committed."""
    found = {one.name: one for one in committed()}
    for path in (RESULTS / f"{name}.json" for name in TITLES):
        if path.exists():
            found[path.stem] = Findings.from_json(json.loads(path.read_text()))
    return [found[name] for name in TITLES if name in found]


def committed() -> list[Findings]:
    """The numbers of the page in the repository."""
    return [Findings.from_json(found) for found in json.loads(NUMBERS.read_text())]


def blocks(all_found: Sequence[Findings], pictures: Path) -> list[Block]:
    """The page."""
    out: list[Block] = [Heading("Benchmarks", 1), Text(INTRODUCTION)]
    if any(found.quick for found in all_found):
        out.append(
            Text(
                "**Some of what follows is the short form** (`--quick`): few rounds and small "
                "sizes, to see that the commands work. Do not quote it."
            )
        )
    parts = (", ".join(found.machine).split(", ") for found in all_found)
    machines = [list(dict.fromkeys(some)) for some in parts]
    here = [m for m, found in zip(machines, all_found, strict=True) if found.name != "gpu"]
    common = [it for it in machines[0] if not any(_contradicts(it, other) for other in here)]
    common = [it for it in common if it != KEPT or all(it in machine for machine in here)]
    out.append(Text(f"Measured on: {', '.join(common)}."))
    out += missed(all_found)
    for found, machine in zip(all_found, machines, strict=True):
        path = pictures / f"bench-{found.name.replace('_', '-')}.png"
        out += section(found, path, [it for it in machine if it not in common])
    return out


def missed(all_found: Sequence[Findings]) -> list[Block]:
    """How many goals were met, and those that were not; every section has all of its own."""
    every = [(TITLES[found.name], claim) for found in all_found for claim in found.claims]
    below = [(title, claim) for title, claim in every if not claim.case.holds]
    rows = [[title, c.what, times(c.ratio, 3), c.hope] for title, c in below]
    told = f"{len(every) - len(below)} of {len(every)} goals were met."
    if not rows:
        return [Heading("Goals"), Text(told)]
    head = ["", "ratio", "measured", "goal"]
    return [Heading("Goals"), Text(f"{told} These were missed:"), Table(head, rows)]


def _contradicts(item: str, machine: Sequence[str]) -> bool:
    """Whether a machine has another version or number of the same thing ("numpy 2.4.6")."""
    name = re.sub(r"\b\d\S*", "", item)
    return item not in machine and any(name == re.sub(r"\b\d\S*", "", it) for it in machine)


def section(found: Findings, path: Path, machine: Sequence[str] = ()) -> list[Block]:
    """One benchmark: its picture, tables and goals, and what its machine alone had."""
    title = TITLES[found.name]
    form = f"`make bench-{found.name}`" + (", in its short form" if found.quick else "")
    alone = f", with {', '.join(machine)}" if machine else ""
    out: list[Block] = [
        Heading(title),
        Text(f"{found.about} {form}: {found.seconds:.0f} s on {found.day}{alone}."),
        *map(Text, found.notes),
    ]
    if picture(found, path):
        out.append(Picture(path, f"{title}: the tables below, drawn"))
    for job, records in found.jobs().items():
        out += [Heading(job, 3), Table(*columns_of(records))]
    if found.claims:
        out += [Heading(f"{title}: goals", 3), goals(found.claims)]
    return out


def draw_growth(all_found: Sequence[Findings], path: Path) -> None:
    """The README's picture, of a full run only."""
    for found in all_found:
        if found.name == "foundation" and not found.quick:
            sizes = [r for r in found.records if r.unit == "s" and r.size is not None]
            picture(replace(found, records=sizes), path)


def goals(claims: Sequence[Claim]) -> Table:
    """Ratios beside what was hoped for."""
    rows = [[c.what, times(c.ratio, 3), c.hope, c.verdict.lower()] for c in claims]
    return Table(["ratio", "measured", "goal", ""], rows)


# --- the README's table ----------------------------------------------------------------------


class Comparison(NamedTuple):
    """A line of the README: our way of a job against theirs."""

    says: str
    benchmark: str
    job: str
    ours: str
    theirs: str
    case: str = ""

    def among(self, found: Mapping[str, Findings]) -> str:
        """How the times compare, in words; raises KeyError if one was not measured."""
        it = found[self.benchmark]
        ours, theirs = (it.value(self.job, way, self.case) for way in (self.ours, self.theirs))
        if theirs > 1.1 * ours:
            return f"{times(theirs / ours)} faster"
        return f"{times(ours / theirs, 3)} the time"


FIT = "A fit, MNIST 60000 × 784, ten classes"
SUMS, PLAIN = "Sums of products, MNIST 60000 × 784", "NumPy F.T @ F in floats"
COMPARISONS = [
    Comparison(
        "exact knowledge, against NumPy's float product `F.T @ F`",
        "foundation",
        SUMS,
        "Knowledge.of",
        PLAIN,
    ),
    Comparison(
        '`LSSVC.fit`, against scikit-learn\'s `RidgeClassifier(solver="cholesky")`',
        "foundation",
        FIT,
        "LSSVC.fit",
        "RidgeClassifier(cholesky)",
    ),
    Comparison(
        "`LSSVC.fit`, against scikit-learn-intelex's `Ridge`",
        "foundation",
        FIT,
        "LSSVC.fit",
        "sklearnex Ridge",
    ),
    Comparison(
        "`RandomFourier.transform`, against `RBFSampler.transform`",
        "foundation",
        "1000 random Fourier features of 10000 rows",
        "RandomFourier.transform",
        "RBFSampler.transform",
    ),
    Comparison(
        '`solver="woodbury"`, one row learned or forgotten among 55 000, against `Ridge` fitted '
        "anew",
        "updates",
        "A change of L rows, J = 784 features",
        "traceless",
        "scikit-learn Ridge",
        "L = 1",
    ),
    Comparison(
        "the same with the default solver, correctly rounded after each change (one core)",
        "refitting",
        "One row of 55 000 MNIST rows, J = 784",
        "updated, default solver",
        "scikit-learn Ridge",
    ),
    Comparison(
        "`cross_val_score`, 10 folds, against scikit-learn's with `Ridge`",
        "cross_validation",
        "Cross-validation, 10 folds",
        "traceless",
        "Ridge(cholesky)",
    ),
    Comparison(
        "`PathSVC`, one row in, one out and a prediction (n = 5000, C = 100), against `SVC` fitted "
        "anew",
        "paths",
        "plane, C=100: one row in and out",
        "PathSVC",
        "SVC 0.001",
        "n = 5000",
    ),
]


def readme_table(all_found: Sequence[Findings]) -> str:
    """The README's table, of those numbers that were measured."""
    found = {f.name: f for f in all_found}
    rows = []
    for line in COMPARISONS:
        with suppress(KeyError):
            rows.append([line.says, line.among(found)])
    peaks = [
        f"{r} ({r.size} rows)"
        for f in all_found
        for r in f.records
        if (r.job, r.way) == ("Peak memory of a fit over the input", "LSSVC.fit")
    ]
    rows.append(["peak memory of a fit over the input", ", ".join(peaks)])
    return markdown([Table(["", "ratio"], rows)], ROOT)


def put_into_readme(table: str) -> None:
    """Replace what is between the marks, if the README has them."""
    path = ROOT / "README.md"
    before, mark, rest = path.read_text().partition(MARKS[0])
    if mark:
        _, end, after = rest.partition(MARKS[1])
        path.write_text(before + mark + table + end + after)


def with_tables(text: str, all_found: Sequence[Findings]) -> str:
    """A page whose tables between marks, each named by its job, have the numbers of `all_found`."""
    jobs = {job: records for found in all_found for job, records in found.jobs().items()}

    def table(mark: re.Match[str]) -> str:
        written = markdown([Table(*columns_of(jobs[mark[1]]))], DOCS)
        return f"<!-- benchmark: {mark[1]} -->\n\n{written.strip()}\n\n<!-- end of benchmark -->"

    return EMBEDDED.sub(table, text)


def publish(found: Sequence[Findings]) -> None:
    """Write what is part of the repository: numbers, pages, pictures."""
    page = blocks(found, DOCS / "images")
    (DOCS / "benchmarks.md").write_text(markdown(page, DOCS))
    numbers = [f.to_json() for f in found]
    NUMBERS.write_text(json.dumps(numbers, ensure_ascii=False, indent=1) + "\n")
    put_into_readme(readme_table(found))
    draw_growth(found, DOCS / "images" / "growth.png")
    for path in DOCS.glob("*.md"):
        path.write_text(with_tables(path.read_text(), found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="the short form of each")
    parser.add_argument("--only", nargs="*", choices=list(TITLES), help="run these, keep others")
    options = parser.parse_args()
    apart = {"gpu", "federation"}  # few machines have one; an environment with Flower
    here = [name for name in TITLES if name not in apart]
    failed = run(here if options.only is None else options.only, options.quick)
    found = kept()
    path = RESULTS / "report.html"
    path.write_text(html(blocks(found, RESULTS), "traceless: benchmarks"))
    print(f"\nWritten: {path}")
    if any(f.quick for f in found):
        print("Some numbers are of the short form, so the repository's pages are as they were.")
    else:
        publish(found)
        print(f"Written: {DOCS / 'benchmarks.md'}, with its numbers and pictures, and other pages")
    if failed:
        sys.exit(f"Failed, so as last kept or left out: {', '.join(failed)}")


if __name__ == "__main__":
    main()
