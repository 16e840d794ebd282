"""The report on benchmarks: what it makes of numbers, and that the README has these numbers."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import accuracy, findings, probabilities, quiet, report
from benchmarks.findings import Findings, Record
from papers import page
from papers.claims import Claim

ROOT = Path(__file__).parent.parent.parent
SIZES = [
    Record("grow", way, value * n, f"n = {n}")
    for n in (10, 100, 1000)
    for way, value in (("ours", 1e-3), ("theirs", 4e-3), ("floor", 5e-4))
]
ONE = [Record("once", "ours", 2.0), Record("once", "theirs", 3000.0), Record("once", "floor", 0.1)]
FOUND = Findings(
    [*SIZES, *ONE, Record("memory", "ours", 27e6, unit="B")],
    [Claim("theirs / ours", 4.0, 3.0, at_least=True), Claim("ours / floor", 2.0, 1.5)],
    ["A note with `code`."],
    name="foundation",
    machine=["a machine"],
    day="2026-01-01",
)


def test_findings_come_back_from_json():
    assert Findings.from_json(FOUND.to_json()) == FOUND


def test_others_are_multiples_of_ours():
    assert findings.columns_of(ONE) == (
        ["", "time"],
        [["ours", "2 s"], ["theirs", "1500 ×"], ["floor", "0.05 ×"]],
    )
    head, rows = findings.columns_of(SIZES)
    assert head == ["", "n = 10", "n = 100", "n = 1000"]
    assert rows[1] == ["theirs", "4 ×", "4 ×", "4 ×"]


def test_the_page_is_written_twice_and_html_needs_no_other_file(tmp_path):
    blocks = report.blocks([FOUND], tmp_path)
    text = page.markdown(blocks, tmp_path)
    assert "| theirs / ours | 4 × | ≥ 3 | met |" in text
    assert "| ours / floor | 2 × | ≤ 1.5 | missed |" in text
    assert "(bench-foundation.png)" in text
    assert "short form" not in text
    assert "short form" in page.markdown(
        report.blocks([replace(FOUND, quick=True)], tmp_path), tmp_path
    )
    html = page.html(blocks, "Numbers & <more>")
    assert "<title>Numbers &amp; &lt;more&gt;</title>" in html
    assert "<code>code</code>" in html
    assert 'src="data:image/png;base64,' in html
    assert "http" not in html


def test_the_page_has_the_committed_numbers(tmp_path):
    written = (ROOT / "docs" / "benchmarks.md").read_text()
    for found in report.committed():
        for records in found.jobs().values():
            table = page.Table(*findings.columns_of(records))
            assert page.markdown([table], tmp_path) in written


@pytest.mark.parametrize("path", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.stem)
def test_tables_on_pages_have_the_committed_numbers(path):
    text = path.read_text()
    assert report.with_tables(text, report.committed()) == text
    assert text.count("<!-- benchmark: ") == len(report.EMBEDDED.findall(text))


@pytest.mark.parametrize("page_name", ["how-it-works", "index"])
def test_the_cost_of_exactness_is_the_committed_one(page_name):
    found = next(found for found in report.committed() if found.name == "foundation")
    ours, theirs = (found.value(report.SUMS, way) for way in ("Knowledge.of", report.PLAIN))
    text = (ROOT / "docs" / f"{page_name}.md").read_text()
    assert f"{ours / theirs:.3g} times as long" in text


def test_the_readme_has_the_committed_numbers():
    readme = (ROOT / "README.md").read_text()
    between = readme.partition(report.MARKS[0])[2].partition(report.MARKS[1])[0]
    assert between == report.readme_table(report.committed())


@pytest.fixture(scope="module")
def losses():
    sets = [data.some(120) for data in (*probabilities.bundled(), *probabilities.generated())]
    ways = {name: probabilities.WAYS[name] for name in (probabilities.OURS, probabilities.SIGMOID)}
    chosen = [data for data in sets if data.name in ("wine", "5 % of a class", "counts")]
    return probabilities.compare(chosen, ways, often=1)


def test_probabilities_are_judged_by_four_tables(losses):
    found = Findings(losses, name="probabilities").jobs()
    P = probabilities
    assert list(found) == [P.LOSS, P.BRIER, P.RIGHT, P.CURVE]
    for job in (P.LOSS, P.BRIER, P.RIGHT):
        *sets, last = findings.columns_of(found[job])[1]
        assert [row[0].partition(":")[0] for row in sets] == ["wine", "5 % of a class", "counts"]
        assert last[0] == P.MEAN
    claims = P.claims_of(losses)
    assert [round(claim.goal, 1) for claim in claims] == [1.0, 1.0]
    ours = [r.value for r in losses if (r.job, r.way) == (P.LOSS, P.OURS)]
    assert abs(ours[-1] - sum(ours[:-1]) / 3) < 1e-12


def test_goals_that_were_missed_are_told_first(tmp_path):
    told = page.markdown(report.missed([FOUND]), tmp_path)
    assert "1 of 2 goals were met" in told
    assert "ours / floor" in told
    assert "theirs / ours" not in told
    assert "All" not in page.markdown(report.missed([replace(FOUND, claims=[])]), tmp_path)


def test_what_was_not_measured_here_stays_as_committed(monkeypatch, tmp_path):
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    before = {found.name: found for found in report.kept()}
    assert {"gpu", "updates"} <= set(before)
    again = replace(before["updates"], day="2099-01-01")
    (tmp_path / "updates.json").write_text(json.dumps(again.to_json()))
    after = {found.name: found for found in report.kept()}
    assert after == before | {"updates": again}


def test_a_machine_that_is_not_quiet_is_reported(monkeypatch):
    monkeypatch.setattr(quiet, "spread", lambda: 1.05)
    monkeypatch.setattr(quiet, "busy", lambda: 0.02)
    assert quiet.disturbances() == []
    assert quiet.said([], []) == ""
    monkeypatch.setattr(quiet, "busy", lambda: 0.6)
    assert quiet.disturbances() == ["others kept 60% of the cores busy"]
    monkeypatch.setattr(quiet, "spread", lambda: 40.0)
    found = quiet.disturbances()
    assert "40.0 times as long" in found[0]
    assert "not quiet" in quiet.said(found, [])


def test_how_busy_others_are_is_counted_in_ticks(monkeypatch, tmp_path):
    counts = iter([(1000, 4000), (1150, 4200)])
    monkeypatch.setattr(quiet, "ticks", lambda: next(counts))
    monkeypatch.setattr(quiet, "STATISTICS", tmp_path)
    assert quiet.busy(0.0) == 0.25
    monkeypatch.setattr(quiet, "STATISTICS", tmp_path / "none")
    assert quiet.busy(0.0) == 0.0


def test_errors_of_live_models_are_small():
    """A few changes: errors are those of float64, of the live model and of the retrain."""
    for live, retrained in accuracy.lives(40, ("window", 60, 1.0), 30):
        assert 0.0 <= live < 1e-13
        assert 0.0 < retrained < 1e-13
