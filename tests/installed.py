"""Try what would be released: archives, each installed into an empty environment.

    python tests/installed.py dist/*.whl dist/*.tar.gz      the core's tests, without any extra
    python tests/installed.py --extras dist/*.whl           a use of each extra: alone, in pairs
                                                            that share a library, and together

Tests are run from a copy, so that the package is the installed one. What resolves for all
extras together resolves for every combination of them, since each asks for less.
"""

import argparse
import itertools
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import PathDistribution
from pathlib import Path

from extras import FOR_DEVELOPERS, USES

ROOT = Path(__file__).parent.parent
TOOLS = ("hypothesis", "pandas", "polars", "pytest", "pytest-timeout")
CORE = (
    "arithmetic",
    "features",
    "knowledge/test_feasibility.py",
    "knowledge/test_knowledge.py",
    "knowledge/test_sample_weights.py",
    "solvers/test_solve.py",
    "estimators/test_lssvm.py",
    "test_packaging.py",
)
LOOK = """
import sys
from importlib.metadata import version
from pathlib import Path
import traceless
from traceless.arithmetic.core import COMPILED
folder = Path(traceless.__file__).parent
assert folder.is_relative_to(sys.prefix), f"{folder} is not the installed package"
assert (folder / "py.typed").exists(), "types are not shipped"
traceless.LSSVC().fit([[0.0], [1.0]], ["a", "b"])
print(version("traceless"), COMPILED)
"""


class Environment:
    """An empty environment, and a folder to work in that is not the repository."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder / "venv", with_pip=True)
        scripts = "Scripts" if os.name == "nt" else "bin"
        self.python = folder / "venv" / scripts / "python"
        self.work = folder / "work"
        self.work.mkdir()

    def run(self, *arguments: str | Path) -> str:
        """Standard output of its Python; raises with all output if it fails."""
        command = [str(self.python), *map(str, arguments)]
        done = subprocess.run(command, cwd=self.work, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"FAILED: {command}\n{done.stdout[-8000:]}\n{done.stderr[-8000:]}")
        return done.stdout

    def install(self, *what: str) -> None:
        self.run("-m", "pip", "install", "-q", "--disable-pip-version-check", *what)


@contextmanager
def environment() -> Iterator[Environment]:
    with tempfile.TemporaryDirectory() as folder:
        yield Environment(Path(folder))


def bring_tests(archive: Path, work: Path) -> None:
    """The tests, without the package: those in the archive, or those here."""
    if archive.suffix == ".gz":
        with tarfile.open(archive) as tar:
            tar.extractall(work, filter="data")
        (source,) = work.iterdir()
        assert not (source / ".github").exists(), "workflows are not for the sdist"
    else:
        source = ROOT
    for name in ("pyproject.toml", "ARCHITECTURE.md"):
        shutil.copy(source / name, work)
    for name in ("tests", "papers"):  # the tests look for MNIST as the papers do
        shutil.copytree(source / name, work / name)


def try_core(archive: Path) -> None:
    """Install without extras, and run the tests that need none."""
    with environment() as env:
        env.install(str(archive))
        version, compiled = env.run("-c", LOOK).split()
        assert f"traceless-{version}" in archive.name, (version, archive)
        assert (compiled == "False") == ("-none-any" in archive.name), "the core is not as asked"
        env.install(*TOOLS)
        bring_tests(archive, env.work)
        files = [f"tests/{name}" for name in CORE]
        said = env.run("-m", "pytest", "-q", *files).splitlines()[-1]
        sys.stdout.write(f"{archive.name}, installed as version {version}: {said}\n")


def libraries(wheel: Path) -> dict[str, set[str]]:
    """What each extra for users asks for, from the wheel's metadata."""
    (info,) = (p for p in zipfile.Path(wheel).iterdir() if p.name.endswith(".dist-info"))
    about = PathDistribution(info).metadata
    extras = sorted(set(about.get_all("Provides-Extra")) - FOR_DEVELOPERS)
    lines = about.get_all("Requires-Dist")
    return {
        extra: {re.split(r"[^\w-]", line)[0] for line in lines if f"'{extra}'" in line}
        for extra in extras
    }


def combinations(wheel: Path) -> Iterable[tuple[str, ...]]:
    """Each extra alone, pairs that share a library, and all together."""
    needs = libraries(wheel)
    pairs = [
        (a, b)
        for a, b in itertools.combinations(needs, 2)
        if needs[a] & needs[b] and not (needs[a] <= needs[b] or needs[b] <= needs[a])
    ]
    return [*((name,) for name in needs), *pairs, tuple(needs)]


def try_extras(wheel: Path) -> None:
    """Install each combination into an environment of its own, and use it."""
    for names in combinations(wheel):
        with environment() as env:
            env.install(f"{wheel.resolve()}[{','.join(names)}]")
            for name in names:
                env.run("-c", USES[name].code)
            env.run("-m", "pip", "check")
        sys.stdout.write(f"{' + '.join(names)}: works\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("archives", nargs="+", type=Path)
    parser.add_argument("--extras", action="store_true")
    options = parser.parse_args()
    for archive in options.archives:
        (try_extras if options.extras else try_core)(archive.resolve())


if __name__ == "__main__":
    main()
