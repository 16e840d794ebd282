"""A power cut leaves a store as it was, or one change further; crashes.py looks at many more."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not here")
def test_a_store_survives_a_power_cut():
    crashes = Path(__file__).parent / "crashes.py"
    command = [sys.executable, str(crashes), "--states", "30", "--only=forget", "--only=new key"]
    one_thread = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    shown = subprocess.run(command, capture_output=True, text=True, env=one_thread, check=False)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert "30 disks after a power cut" in shown.stdout
    assert "no state was wrong" in shown.stdout
