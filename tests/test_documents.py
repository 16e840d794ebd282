"""What the documents show runs as it stands, and what they promise of the repository holds."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))


@pytest.mark.parametrize(
    "name", ["README.md", "docs/guide.md", "docs/cluster.md", "docs/path-svc.md"]
)
def test_examples_run_by_copy_and_paste(name, capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), flags=re.DOTALL)
    assert blocks
    exec(compile("\n".join(blocks), name, "exec"), {})
    refused = "More rows would be forgotten than were learned" in capsys.readouterr().out
    assert refused == (name == "docs/guide.md")


@pytest.mark.parametrize("name", ["README.md", *(f"docs/{p.name}" for p in PAGES)])
def test_links_lead_somewhere(name):
    text = (ROOT / name).read_text()
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        assert ((ROOT / name).parent / target).exists(), target


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
             "distributed", "zarr", "pyspark", "numba"):
    sys.modules[name] = None  # as if it were not installed
from traceless import LSSVC
print(LSSVC().fit([[0.0], [1.0]], ["a", "b"]).predict([[1.0]]))
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "['b']"
