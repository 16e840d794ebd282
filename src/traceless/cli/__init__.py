"""The command line: ``traceless COMMAND``.

Each command is a function that gives an `Answer`; the frame around it shows the answer, turns
errors into one line and an exit code, and imports nothing heavy before a command runs.
"""

from __future__ import annotations

import sys

INTERRUPTED = 130


def main() -> None:
    """Run the command line and exit."""
    try:
        from traceless.cli.frame import run
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.stderr.write("The command line needs click: pip install 'traceless[cli]'\n")
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    sys.exit(run(sys.argv[1:]))
