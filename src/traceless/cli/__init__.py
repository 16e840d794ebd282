"""The command line: ``traceless COMMAND``.

Each command is a function that returns a `Result`. `command` prints the result as text or JSON, and
turns errors into one line and an exit code. Nothing heavy is imported before a command runs.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

INTERRUPTED = 130


def main() -> None:
    """Run the command line and exit."""
    try:
        from traceless.cli.group import run
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.stderr.write("The command line needs click: pip install 'traceless[cli]'\n")
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    sys.exit(run(sys.argv[1:]))


def process() -> None:
    """`main` in a process of its own, which does not wait for threads that it has no use for.

    After an error or an interrupt Arrow's threads may still read ahead: Python's exit would abort,
    or wait for standard input.
    """
    try:
        main()
    except SystemExit as end:
        if not end.code or "pyarrow" not in sys.modules:
            raise
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):  # which the code says already
                stream.flush()
        os._exit(int(end.code))
