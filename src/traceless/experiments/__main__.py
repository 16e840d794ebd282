"""Command line: python -m traceless.experiments NAME [--quick] [--out FOLDER]."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

from traceless.experiments import lee2019, zhu2018

EXPERIMENTS = {"lee2019": lee2019.run, "zhu2018": zhu2018.run}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one experiment; returns the exit code."""
    options = _parser().parse_args(arguments)
    if options.name not in EXPERIMENTS:
        return _refuse(f"There is no experiment {options.name!r}; try {', '.join(EXPERIMENTS)}.")
    if importlib.util.find_spec("matplotlib") is None:
        return _refuse("The figures need matplotlib: pip install 'traceless[plots]'")
    folder = options.out or Path("results") / options.name
    try:
        folder.mkdir(parents=True, exist_ok=True)  # before minutes of work, not after
    except OSError as error:
        return _refuse(f"The folder cannot be made: {error}. Name another one with --out.")
    EXPERIMENTS[options.name](folder, options.quick)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m traceless.experiments",
        description="Run the experiments of a paper again and write a report.",
    )
    parser.add_argument("name", help=f"which paper: {', '.join(EXPERIMENTS)}")
    parser.add_argument("--quick", action="store_true", help="fewer rows: under half a minute")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="default: results/NAME")
    return parser


def _refuse(why: str) -> int:
    sys.stderr.write(f"{why}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
