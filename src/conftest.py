"""Modules that need torch are collected for their examples only where it is installed."""

from importlib.util import find_spec
from pathlib import Path

collect_ignore = []
if not find_spec("torch"):
    package = Path(__file__).parent / "traceless"
    collect_ignore = [str(package / "knowledge" / "tensor_gathering.py")]
    collect_ignore += [
        str(path) for path in (package / "device").glob("[!_]*.py") if path.stem != "tensors"
    ]
