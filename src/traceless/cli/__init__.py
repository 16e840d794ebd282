"""The command line: ``traceless COMMAND``.

Each command is a function that returns a `Result`. `command` prints the result as text or JSON, and
turns errors into one line and an exit code. Nothing heavy is imported before a command runs.
"""

from __future__ import annotations

import os
import sys

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
    code = run(sys.argv[1:])
    if code == INTERRUPTED:  # Arrow's thread may wait for standard input: Python's exit would abort
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
