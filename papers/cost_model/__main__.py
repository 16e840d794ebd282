"""Command line: python -m papers.cost_model [--quick]."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from threadpoolctl import threadpool_limits

from papers.cost_model import tables
from papers.cost_model.costs import measure
from papers.cost_model.model import Model, grid
from papers.page import Block, Heading, Text, markdown


def main() -> None:
    """Measure the costs of this machine and print what many machines would do with them."""
    parser = argparse.ArgumentParser(prog="python -m papers.cost_model", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and narrower features")
    quick = parser.parse_args().quick
    widths = (64, 128, 192, 256) if quick else (128, 256, 512, 1024)
    with threadpool_limits(1, user_api="blas"):
        costs = measure(widths, (2, 10) if quick else (2, 10, 50), 1 if quick else 3).costs
    printed = tables.of_costs(costs) | tables.of_predictions(Model(costs), grid(Model(costs)))
    blocks: list[Block] = [Text(tables.ASSUMED)]
    for title, table in printed.items():
        blocks += [Heading(title), table._replace(style="words")]
    sys.stdout.write(markdown(blocks, Path()))


if __name__ == "__main__":
    main()
