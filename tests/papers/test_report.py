"""Verdicts follow from criteria, and a report shows them, whatever the paper."""

import pytest

from papers import report
from papers.claims import Case, Criterion, Finding, judge


def case(*holds):
    return {f"map {k}": Case("", value) for k, value in enumerate(holds)}


@pytest.mark.parametrize(
    ("criteria", "verdict"),
    [
        ([Criterion("", case(True, True))], "reproduces"),
        ([Criterion("", case(True, False))], "reproduces in part"),
        ([Criterion("", case(False, False))], "does not reproduce"),
        ([Criterion("", case(True)), Criterion("", case(False), False)], "reproduces in part"),
        ([Criterion("", case(False)), Criterion("", case(True), False)], "does not reproduce"),
    ],
)
def test_judge(criteria, verdict):
    assert judge(criteria) == verdict


def test_text_is_escaped_and_failures_are_shown(tmp_path):
    from matplotlib.figure import Figure

    finding = Finding(
        name="x",
        title="a < b",
        claim="<b>bold</b>",
        gist="a & b",
        found="nothing",
        criteria=[Criterion("c", {"one": Case("1 < 2", False)}), Criterion("d", {})],
        rows=[{"n": 1}],
        draw=lambda _: Figure(),
    )
    folder = tmp_path / "new" / "folder"
    path = report.write([finding], folder, "T", "R", "I", {"key": "value"}, notice="mind <this>")
    text = path.read_text(encoding="utf-8")
    assert "a &lt; b" in text
    assert "<b>bold</b>" not in text
    assert 'class="fails">1 &lt; 2' in text
    assert '<p class="notice">mind &lt;this&gt;</p>' in text
    assert (folder / "figure_x.csv").read_text().split() == ["n", "1"]
    assert report.summary_table([finding]).endswith("does not reproduce")
