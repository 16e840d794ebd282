"""What the documents show runs as it stands, and what they promise of the repository holds."""

import importlib
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import traceless
from traceless import features

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", *(f"docs/{page.name}" for page in sorted((ROOT / "docs").glob("*.md")))]


def _python(name):
    """The blocks of a page that are shown as Python, in order."""
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("name", [name for name in PAGES if _python(name)])
def test_examples_run_by_copy_and_paste(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # for those that write files
    exec(compile("\n".join(_python(name)), name, "exec"), {})


def _anchors(path):
    """What links to headings of a page may name."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name):
    page = ROOT / name
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", page.read_text()):
        path = page.parent / target if target else page
        assert path.exists(), target
        assert not anchor or anchor in _anchors(path), (target, anchor)


def test_the_reference_has_every_public_name_and_no_other():
    shown, module = {}, ""
    for line in (ROOT / "docs" / "api.md").read_text().splitlines():
        if match := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = importlib.import_module(match[1])
        elif match := re.fullmatch(r" {3}(\w+)", line):
            shown.setdefault(module, set()).add(match[1])
    assert traceless in shown
    for module, names in shown.items():
        assert not [name for name in names if not hasattr(module, name)], module.__name__
        assert set(getattr(module, "__all__", ())) <= set().union(*shown.values()), module.__name__


@pytest.mark.parametrize("page", ["README.md", "CHANGELOG.md", "docs/choosing.md"])
def test_every_feature_map_is_on_the_pages_that_list_them(page):
    text = (ROOT / page).read_text()
    assert [name for name in features.MAPS if f"`{name}" not in text] == []


def test_the_demo_proves_every_step_and_draws_a_picture(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["demo.py", "--out", str(tmp_path)])
    runpy.run_path(str(ROOT / "examples" / "demo.py"), run_name="__main__")
    shown = capsys.readouterr().out
    assert "9 of 9 times" in shown
    assert "DIFFERENT" not in shown
    assert (tmp_path / "demo.png").stat().st_size > 10_000


def test_the_core_works_without_any_extra():
    code = """
import sys
for name in ("pandas", "polars", "pyarrow", "matplotlib", "hypothesis", "sklearnex", "dask",
             "distributed", "pyspark", "numba"):
    sys.modules[name] = None  # as if it were not installed
from traceless import LSSVC
print(LSSVC().fit([[0.0], [1.0]], ["a", "b"]).predict([[1.0]]))
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "['b']"
