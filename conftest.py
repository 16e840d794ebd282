"""Modules that need torch are collected only where it is; and whether the core is compiled."""

from importlib.util import find_spec
from pathlib import Path

package = Path(__file__).parent / "src" / "traceless"
collect_ignore = []
if not find_spec("torch"):
    collect_ignore += [str(package / "knowledge" / "tensor_gathering.py")]
    collect_ignore += [
        str(path) for path in (package / "device").glob("[!_]*.py") if path.stem != "tensors"
    ]


def pytest_report_header() -> str:
    """Whether the compiled core is in use."""
    from traceless.arithmetic.core import COMPILED, FOR_SPEED

    return "with the compiled core" if COMPILED else FOR_SPEED
