"""One self-contained HTML report of some findings, with their figures as PNG and CSV.

Knows nothing of any paper. Images are embedded and nothing is loaded from elsewhere, so
the file can be sent by mail, archived, and read on a phone.
"""

from __future__ import annotations

import base64
import csv
import html
import io
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn

from traceless import __version__
from traceless.experiments.verdict import Criterion, Finding, Rows, Table, Verdict

_MARK: dict[Verdict, tuple[str, str]] = {
    "reproduces": ("✓", "yes"),
    "reproduces in part": ("◐", "part"),
    "does not reproduce": ("✗", "no"),
}
_STYLE = """
:root { --blue: #1b6ca8; --orange: #d95f0e; --ink: #222; --grey: #6b6b6b; --line: #e3e3e3; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.2rem 1rem 4rem; max-width: 46rem; color: var(--ink);
  background: #fff; font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
  -webkit-text-size-adjust: 100%; overflow-wrap: break-word; }
h1 { font-size: 1.65rem; line-height: 1.25; margin: .6rem 0 .4rem; }
h2 { font-size: 1.25rem; line-height: 1.3; margin: 0 0 .6rem; }
h3 { font-size: .8rem; letter-spacing: .05em; text-transform: uppercase; color: var(--grey);
  margin: 1.1rem 0 .2rem; }
p { margin: .3rem 0 .7rem; }
a { color: var(--blue); text-decoration: none; }
section { border-top: 1px solid var(--line); margin-top: 2.2rem; padding-top: 1.6rem; }
img { display: block; width: 100%; height: auto; margin: .8rem 0; }
.grey { color: var(--grey); }
.notice { border-left: 4px solid var(--orange); background: #fdf3ec; padding: .6rem .9rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; line-height: 1.4; }
th, td { text-align: left; vertical-align: top; padding: .45rem .7rem .45rem 0;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; color: var(--grey); font-size: .82rem; }
td:last-child, th:last-child { padding-right: 0; }
.badge { display: inline-block; white-space: nowrap; border-radius: 1rem; padding: .05rem .65rem;
  font-size: .85rem; font-weight: 600; }
.yes { color: #14507d; background: #e3eff7; }
.part { color: #7a5b00; background: #fbf1d0; }
.no { color: #9c3f05; background: #fce5d8; }
.holds::before { content: "✓ "; color: var(--blue); font-weight: 700; }
.fails::before { content: "✗ "; color: var(--orange); font-weight: 700; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; font-size: .9rem; }
dt { color: var(--grey); }
dd { margin: 0; }
@media (max-width: 34rem) {
  dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: .5rem; }
  .badge { font-size: .78rem; padding: .05rem .5rem; }
}
"""


@dataclass(frozen=True)
class Report:
    """What the report says beside its findings.

    Parameters
    ----------
    title, reference, introduction : str
        Plain text.
    facts : mapping
        What was run, on what: shown as a list.
    notice : str
        Something the reader must know first; empty if there is nothing.
    """

    title: str
    reference: str
    introduction: str
    facts: Mapping[str, str]
    notice: str = ""

    def write(self, findings: Sequence[Finding], folder: Path) -> Path:
        """Write PNG and CSV of every finding and the HTML file; return the latter's path."""
        folder.mkdir(parents=True, exist_ok=True)
        sections = []
        for finding in findings:
            image = _png(finding)
            (folder / f"figure_{finding.name}.png").write_bytes(image)
            _write_csv(folder / f"figure_{finding.name}.csv", finding.rows)
            sections.append(_section(finding, image))
        path = folder / "report.html"
        path.write_text(self._html(findings, sections), encoding="utf-8")
        return path

    def _html(self, findings: Sequence[Finding], sections: Sequence[str]) -> str:
        notice = f'<p class="notice">{_text(self.notice)}</p>' if self.notice else ""
        facts = "".join(f"<dt>{_text(k)}</dt><dd>{_text(v)}</dd>" for k, v in self.facts.items())
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{_text(self.title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
            f'<h1>{_text(self.title)}</h1>\n<p class="grey">{_text(self.reference)}</p>\n'
            f"{notice}\n<p>{_text(self.introduction)}</p>\n{_summary(findings)}\n"
            f"{''.join(sections)}\n"
            f"<section>\n<h2>What was run</h2>\n<dl>{facts}</dl>\n{_RULES}\n</section>\n"
            "</body>\n</html>\n"
        )


_RULES = (
    "<h3>How verdicts are made</h3>\n<p>Each claim is cut into criteria with a stated threshold, "
    "and each criterion is tried in every case that heads a column. A figure <b>does not "
    "reproduce</b> if an essential criterion fails in every case, <b>reproduces</b> if every "
    "criterion holds in every case, and otherwise <b>reproduces in part</b>. The program computes "
    "this; nobody writes it.</p>"
)


def summary_table(findings: Sequence[Finding]) -> str:
    """Figure, claim and verdict as lines of text, for a terminal."""
    width = max(len(f.gist) for f in findings)
    lines = [f"{f.name:<6} {f.gist:<{width}}  {_MARK[f.verdict][0]} {f.verdict}" for f in findings]
    return "\n".join([f"{'figure':<6} {'claim':<{width}}  verdict", *lines])


def machine() -> dict[str, str]:
    """Processor and versions, which times depend on."""
    return {
        "Machine": f"{_processor()}, {os.cpu_count()} cores, {platform.system()}",
        "Software": f"traceless {__version__}, Python {platform.python_version()}, NumPy "
        f"{np.__version__}, SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}",
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _png(finding: Finding) -> bytes:
    buffer = io.BytesIO()
    finding.draw(finding.rows).savefig(buffer, format="png", dpi=170)
    return buffer.getvalue()


def _write_csv(path: Path, rows: Rows) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _text(value: Any) -> str:
    return html.escape(str(value))


def _badge(verdict: Verdict) -> str:
    mark, style = _MARK[verdict]
    return f'<span class="badge {style}">{mark} {verdict}</span>'


def _summary(findings: Sequence[Finding]) -> str:
    lines = "".join(
        f'<tr><td><a href="#figure_{f.name}">{f.name}</a></td><td>{_text(f.gist)}</td>'
        f"<td>{_badge(f.verdict)}</td></tr>\n"
        for f in findings
    )
    head = "<tr><th>Figure</th><th>Claim</th><th>Verdict</th></tr>"
    return f'<div class="scroll"><table>\n{head}\n{lines}</table></div>'


def _section(finding: Finding, image: bytes) -> str:
    data = base64.b64encode(image).decode()
    design = f"<h3>What was done</h3>\n<p>{_text(finding.design)}</p>\n" if finding.design else ""
    return (
        f'<section id="figure_{finding.name}">\n<h2>{_text(finding.title)}</h2>\n'
        f"{_badge(finding.verdict)}\n"
        f"<h3>The paper's claim</h3>\n<p>{_text(finding.claim)}</p>\n{design}"
        f'<img src="data:image/png;base64,{data}" alt="{_text(finding.title)}">\n'
        f"<h3>What came out here</h3>\n<p>{_text(finding.found)}</p>\n"
        f"{''.join(map(_table, finding.tables))}{_criteria_table(finding.criteria)}\n</section>\n"
    )


def _table(table: Table) -> str:
    head = "".join(f"<th>{_text(name)}</th>" for name in table.head)
    cells = ("".join(f"<td>{_text(v)}</td>" for v in line) for line in table.lines)
    lines = "".join(f"<tr>{line}</tr>\n" for line in cells)
    return (
        f'<h3>{_text(table.title)}</h3>\n<div class="scroll"><table>\n<tr>{head}</tr>\n'
        f"{lines}</table></div>\n"
    )


def _criteria_table(criteria: Sequence[Criterion]) -> str:
    cases = list(dict.fromkeys(case for c in criteria for case in c.cases))
    head = "".join(f"<th>{_text(case)}</th>" for case in cases)
    lines = "".join(
        f"<tr><td>{_text(c.text)}{'' if c.essential else _NOT_ESSENTIAL}</td>"
        f"{''.join(_case(c, case) for case in cases)}</tr>\n"
        for c in criteria
    )
    return (
        '<h3>Criteria</h3>\n<div class="scroll"><table>\n'
        f"<tr><th>Criterion</th>{head}</tr>\n{lines}</table></div>"
    )


_NOT_ESSENTIAL = ' <span class="grey">(not essential)</span>'


def _case(criterion: Criterion, name: str) -> str:
    case = criterion.cases.get(name)
    if case is None:
        return "<td></td>"
    return f'<td class="{"holds" if case.holds else "fails"}">{_text(case.measured)}</td>'
