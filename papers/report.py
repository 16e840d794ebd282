"""A paper's report: what it claims, what came out here, and the verdicts, as one HTML page."""

from __future__ import annotations

import csv
import sys
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from threadpoolctl import threadpool_limits

from papers.claims import Case, Criterion, Finding
from papers.page import Block, Facts, Heading, Mark, Picture, Table, Text, Words, html
from papers.rows import Rows
from papers.timing import machine

Plan = SimpleNamespace
QUICK = "This was a quick run on few rows. Run it without --quick to judge the paper."
RULES = (
    "Each claim is cut into criteria with a stated threshold, and each criterion is tried in every "
    "case that heads a column. A figure **does not reproduce** if an essential criterion fails in "
    "every case, **reproduces** if every criterion holds in every case, and otherwise **reproduces "
    "in part**. The program computes this; nobody writes it."
)
BADGES = {
    "reproduces": Mark("✓ reproduces", "badge yes"),
    "reproduces in part": Mark("◐ reproduces in part", "badge part"),
    "does not reproduce": Mark("✗ does not reproduce", "badge no"),
}


class Paper:
    """What a paper claims, how each claim is tried, and by which thresholds: `paper.toml`.

    Parameters
    ----------
    folder : Path
        That holds the file.

    Attributes
    ----------
    texts : dict
        All that the file holds.
    limits : SimpleNamespace
        The thresholds.
    notice : str
        What a reader must know of our copy of the paper.
    """

    def __init__(self, folder: Path) -> None:
        self.texts = tomllib.loads((folder / "paper.toml").read_text(encoding="utf-8"))
        self.limits = SimpleNamespace(**self.texts["limits"])
        self.notice = " ".join(self.texts.get("notice", "").split())

    def plans(self) -> list[Plan]:
        """How much is computed, in each kind of run."""
        table = self.texts["plan"]
        kinds = zip(*table.values(), strict=True)
        return [Plan(**dict(zip(table, numbers, strict=True))) for numbers in kinds]

    def say(self, text: str, /, **numbers: Any) -> str:
        """A paragraph, with thresholds and other numbers in their places."""
        return " ".join(text.split()).format(**vars(self.limits), **numbers)

    def finding(
        self,
        name: str,
        rows: Rows,
        draw: Callable[[Rows], Any],
        cases: Sequence[Mapping[str, Case]],
        tables: Mapping[str, Table] = {},
        words: str = "",
        /,
        **numbers: Any,
    ) -> Finding:
        """A figure in the paper's words, with numbers in their places and cases of each criterion.

        The words are those under its name, or under `words` where figures share them.
        """
        texts = dict(self.texts[words or name])
        criteria = [
            Criterion(self.say(c["text"], **numbers), each, c.get("essential", True))
            for c, each in zip(texts.pop("criteria"), cases, strict=True)
        ]
        said = {key: self.say(text, **numbers) for key, text in texts.items()}
        return Finding(name, **said, criteria=criteria, rows=rows, draw=draw, tables=tables)

    def report(
        self,
        folder: Path,
        notices: Sequence[str],
        find: Callable[[], Sequence[Finding]],
        facts: Mapping[str, str],
    ) -> Path:
        """Measure, judge and write everything; returns the path of the report.

        Parameters
        ----------
        folder : Path
            Made if it is not there.
        notices : sequence of str
            What the reader must know first.
        find : callable
            The findings, in the order of the report.
        facts : mapping
            What was run, on what.
        """
        sys.stdout.write("".join(f"{notice}\n" for notice in notices))
        start = time.monotonic()
        with threadpool_limits(1, user_api="blas"):  # threads that wait for each other spoil times
            findings = find()
        run = f"{time.strftime('%Y-%m-%d %H:%M')}, {time.monotonic() - start:.0f} s"
        facts = {**facts, "Run": run, **dict(zip(("Machine", "Software"), machine(), strict=False))}
        head = {k: self.say(self.texts[k]) for k in ("title", "reference", "introduction")}
        path = write(findings, folder, facts=facts, notice=" ".join(notices), **head)
        sys.stdout.write(f"\n{summary_table(findings)}\n\nReport: {path}\n")
        return path


def write(
    findings: Sequence[Finding],
    folder: Path,
    title: str,
    reference: str,
    introduction: str,
    facts: Mapping[str, str],
    notice: str = "",
) -> Path:
    """Write PNG and CSV of every finding and the HTML file; return the latter's path."""
    folder.mkdir(parents=True, exist_ok=True)
    summary: list[list[Words]] = [
        [f"[{f.name}](#figure_{f.name})", f.gist, BADGES[f.verdict]] for f in findings
    ]
    blocks: list[Block] = [
        Heading(title, 1),
        Text(reference, "grey"),
        *([Text(notice, "notice")] if notice else []),
        Text(introduction),
        Table(["Figure", "Claim", "Verdict"], summary, "words"),
        *(block for finding in findings for block in _section(finding, folder)),
        Heading("What was run"),
        Facts(facts),
        Heading("How verdicts are made", 3),
        Text(RULES),
    ]
    path = folder / "report.html"
    path.write_text(html(blocks, title), encoding="utf-8")
    return path


def _section(finding: Finding, folder: Path) -> list[Block]:
    """One figure, whose PNG and CSV are written on the way."""
    picture, table = (folder / f"figure_{finding.name}.{end}" for end in ("png", "csv"))
    finding.draw(finding.rows).savefig(picture, dpi=170)
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(finding.rows[0]))
        writer.writeheader()
        writer.writerows(finding.rows)
    design: list[Block] = [Heading("What was done", 3), Text(finding.design)]
    blocks: list[Block] = [
        Heading(finding.title, anchor=f"figure_{finding.name}"),
        Text(BADGES[finding.verdict]),
        Heading("The paper's claim", 3),
        Text(finding.claim),
        *(design if finding.design else []),
        Picture(picture, finding.title),
        Heading("What came out here", 3),
        Text(finding.found),
    ]
    for title, printed in {**finding.tables, "Criteria": _criteria(finding.criteria)}.items():
        blocks += [Heading(title, 3), printed._replace(style="words")]
    return blocks


def _criteria(criteria: Sequence[Criterion]) -> Table:
    names = list(dict.fromkeys(name for c in criteria for name in c.cases))
    lines: list[list[Words]] = []
    for c in criteria:
        cells = [c.cases.get(name) for name in names]
        line = [Mark(it.measured, "holds" if it.holds else "fails") if it else "" for it in cells]
        text = c.text if c.essential else Mark("(not essential)", "grey", f"{c.text} ")
        lines.append([text, *line])
    return Table(["Criterion", *names], lines)


def summary_table(findings: Sequence[Finding]) -> str:
    """Figure, claim and verdict as lines of text, for a terminal."""
    width = max(len(f.gist) for f in findings)
    lines = [f"{f.name:<6} {f.gist:<{width}}  {BADGES[f.verdict].text}" for f in findings]
    return "\n".join([f"{'figure':<6} {'claim':<{width}}  verdict", *lines])
