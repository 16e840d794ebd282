"""What the documents show runs as it stands, and what they promise of the repository holds."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", *(f"docs/{page.name}" for page in sorted((ROOT / "docs").glob("*.md")))]


def _python(name):
    """The blocks of a page that are shown as Python, in order."""
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("name", [name for name in PAGES if _python(name)])
def test_examples_run_by_copy_and_paste(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # for those that write files
    exec(compile("\n".join(_python(name)), name, "exec"), {})


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name):
    text = (ROOT / name).read_text()
    for target in re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", text):
        assert ((ROOT / name).parent / target).exists(), target


@pytest.mark.parametrize(
    "module",
    [
        "traceless",
        "traceless.checks",
        "traceless.displays",
        "traceless.features",
        "traceless.model_selection",
        "traceless.estimators.onnx",
        "traceless.sources",
        "traceless.store",
    ],
)
def test_every_public_name_is_in_the_reference(module):
    shown = re.findall(r"^ +([\w.]+)$", (ROOT / "docs" / "api.md").read_text(), flags=re.MULTILINE)
    names = importlib.import_module(module).__all__
    assert set(names) <= {name.split(".")[-1] for name in shown}


def test_the_demo_proves_every_step_and_draws_a_picture(tmp_path):
    command = [sys.executable, str(ROOT / "examples" / "demo.py"), "--out", str(tmp_path)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
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
