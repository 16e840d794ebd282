"""Command line: python -m traceless.experiments NAME [--quick] [--out FOLDER]."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from traceless.experiments import lee2019, zhu2018


def _karasuyama2009(folder: Path, quick: bool, river: Path | None = None) -> Path:
    """Its engine is compiled by numba, which the others do without."""
    from traceless.experiments import karasuyama2009

    return karasuyama2009.run(folder, quick, river)


EXPERIMENTS: dict[str, Callable[[Path, bool], Path]] = {
    "lee2019": lee2019.run,
    "zhu2018": zhu2018.run,
    "karasuyama2009": _karasuyama2009,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one experiment; returns the exit code."""
    options = _parser().parse_args(arguments)
    if options.name not in EXPERIMENTS:
        return _refuse(f"There is no experiment {options.name!r}; try {', '.join(EXPERIMENTS)}.")
    if importlib.util.find_spec("matplotlib") is None:
        return _refuse("The figures need matplotlib: pip install 'traceless[plots]'")
    if options.name == "karasuyama2009" and importlib.util.find_spec("numba") is None:
        return _refuse("The path engine needs numba: pip install 'traceless[path]'")
    if options.fisher_river is not None and options.name != "karasuyama2009":
        return _refuse("--fisher-river is for karasuyama2009 only.")
    folder = options.out or Path("results") / options.name
    try:
        folder.mkdir(parents=True, exist_ok=True)  # before minutes of work, not after
    except OSError as error:
        return _refuse(f"The folder cannot be made: {error}. Name another one with --out.")
    if options.fisher_river is None:
        EXPERIMENTS[options.name](folder, options.quick)
        return 0
    from traceless.experiments.karasuyama2009 import series

    try:
        series.load(options.fisher_river)
    except (OSError, ValueError) as error:
        return _refuse(f"The file of the river cannot be used: {error}")
    _karasuyama2009(folder, options.quick, options.fisher_river)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m traceless.experiments",
        description="Run the experiments of a paper again and write a report.",
    )
    parser.add_argument("name", help=f"which paper: {', '.join(EXPERIMENTS)}")
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
