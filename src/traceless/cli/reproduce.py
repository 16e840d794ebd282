"""``traceless reproduce``: the experiments of the papers, run again."""

from __future__ import annotations

from pathlib import Path

import click

from traceless.cli.answer import Answer
from traceless.cli.command import command

NAMES = ("lee2019", "zhu2018", "karasuyama2009")


@command("traceless reproduce lee2019", "traceless reproduce zhu2018 --quick --out results/zhu")
@click.argument("name", type=click.Choice(NAMES))
@click.option("--quick", is_flag=True, help="Fewer rows: under half a minute.")
@click.option("--out", type=click.Path(), metavar="FOLDER", help="[default: results/NAME]")
def reproduce(name: str, quick: bool, out: str | None) -> Answer:
    """Run the experiments of a paper again and write a report, each claim beside what came out."""
    import importlib.util

    for library, extra in (("matplotlib", "plots"), ("numba", "path")):
        if importlib.util.find_spec(library) is None:
            raise ImportError(f"This needs {library}: pip install 'traceless[{extra}]'")
    from traceless.experiments.__main__ import EXPERIMENTS

    folder = Path(out or Path("results") / name)
    folder.mkdir(parents=True, exist_ok=True)
    report = EXPERIMENTS[name](folder, quick)
    return Answer({"report": str(report)}, [f"The report is {report}."])
