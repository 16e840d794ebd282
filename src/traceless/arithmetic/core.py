"""The compiled functions, or their plain twin where nothing is compiled: the same bits.

``TRACELESS_PLAIN=1`` chooses the twin; it is the oracle of the compiled functions' tests.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

__all__ = ["COMPILED", "core"]

if TYPE_CHECKING:
    from traceless.arithmetic import plain as core

    COMPILED: bool
else:
    try:
        if os.environ.get("TRACELESS_PLAIN") == "1":
            raise ImportError
        from traceless import _core as core

        COMPILED = True
    except ImportError:
        from traceless.arithmetic import plain as core

        COMPILED = False
