"""Command line: python -m papers NAME [--quick] [--out FOLDER]."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

PAPERS = ("lee2019", "zhu2018", "karasuyama2009")
INSTALL = "pip install -e '.[papers]'"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the experiments of one paper; returns the exit code."""
    options = _parser().parse_args(arguments)
    if options.name not in PAPERS:
        return _refuse(f"There is no experiment {options.name!r}; try {', '.join(PAPERS)}.")
    if importlib.util.find_spec("matplotlib") is None:
        return _refuse(f"The figures need matplotlib: {INSTALL}")
    if options.fisher_river is not None and options.name != "karasuyama2009":
        return _refuse("--fisher-river is for karasuyama2009 only.")
    folder = options.out or Path("results") / options.name
    try:
        folder.mkdir(parents=True, exist_ok=True)  # before minutes of work, not after
    except OSError as error:
        return _refuse(f"The folder cannot be made: {error}. Name another one with --out.")
    paper = importlib.import_module(f"papers.{options.name}")
    if options.fisher_river is None:
        paper.run(folder, options.quick)
        return 0
    try:
        paper.series.load(options.fisher_river)
    except (OSError, ValueError) as error:
        return _refuse(f"The file of the river cannot be used: {error}")
    paper.run(folder, options.quick, options.fisher_river)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m papers",
        description="Run the experiments of a paper again and write a report.",
    )
    parser.add_argument("name", help=f"which paper: {', '.join(PAPERS)}")
    parser.add_argument("--quick", action="store_true", help="fewer rows: under half a minute")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="default: results/NAME")
    parser.add_argument(
        "--fisher-river",
        type=Path,
        metavar="PATH",
        help="the river of karasuyama2009: CSV with columns temperature, precipitation and flow, "
        "one line for each day",
    )
    return parser


def _refuse(why: str) -> int:
    sys.stderr.write(f"{why}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
