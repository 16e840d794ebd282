"""A process that is killed leaves a store as it was acknowledged, or one change further."""

import os
import subprocess
import sys
from pathlib import Path


def test_a_store_survives_kill_9():
    command = [sys.executable, str(Path(__file__).parent / "kill.py"), "--kills", "6"]
    one_thread = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    shown = subprocess.run(command, capture_output=True, text=True, env=one_thread, check=False)
    assert shown.returncode == 0, shown.stderr
    assert "6 kills" in shown.stdout
    assert "no state was wrong" in shown.stdout
