"""The compiled functions, or their plain twin where nothing is compiled: the same bits.

``TRACELESS_PLAIN=1`` chooses the twin; it is the oracle of the compiled functions' tests.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

__all__ = ["COMPILED", "FOR_SPEED", "core"]

FOR_SPEED = """\
The compiled core is not in use: plain Python computes the same results, slower. For speed install
a C++ compiler, and then traceless again (in a clone: make core).
Debian, Ubuntu: apt install g++ | Fedora: dnf install gcc-c++ | macOS: xcode-select --install"""

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
