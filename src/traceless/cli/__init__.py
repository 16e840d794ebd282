"""The command line: ``traceless COMMAND``.

Each command is a function that returns a `Result`. `command` prints the result as text or JSON, and
turns errors into one line and an exit code. Nothing heavy is imported before a command runs.
"""

from __future__ import annotations

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
    sys.exit(run(sys.argv[1:]))
