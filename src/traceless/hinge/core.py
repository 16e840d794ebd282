"""The compiled core: what the path family takes from it has no plain twin."""

from __future__ import annotations

from typing import Any

try:
    from traceless import _core  # type: ignore[attr-defined]
except ImportError as error:  # pragma: no cover
    from traceless.arithmetic.core import FOR_SPEED

    raise ImportError(
        "PathSVC, PathSVR and PathOneClass need the compiled core, which is not installed. Install "
        + FOR_SPEED[FOR_SPEED.index("a C++ compiler") :]
    ) from error

core: Any = _core
