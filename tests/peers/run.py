"""scikit-learn's own tests, with our estimators in place of theirs: `make peers`.

What is listed in docs/scikit-learn.md must differ, everything else must not: an unlisted failure,
a listed test that passes and a listed test that does not exist all fail the run.
"""

import sys
from collections import Counter
from pathlib import Path

import pytest
import sklearn

sys.path.insert(0, str(Path(__file__).parent))

import adapters
import differences

FOLDER = Path(sklearn.__file__).parent.parent
FILES = (
    "sklearn/svm/tests/test_svm.py",
    "sklearn/linear_model/tests/test_ridge.py",
    "sklearn/model_selection/tests/test_validation.py",
)


class Peers:
    """The plugin that expects the listed differences, and counts."""

    def __init__(self, listed):
        self.listed, self.unseen = listed, set(listed)
        self.used, self.outcomes = set(), Counter()

    def pytest_collection_modifyitems(self, items):
        for item in items:
            file = item.path.relative_to(FOLDER).as_posix()
            for difference in self.listed:
                if difference.explains(file, item.name):
                    self.unseen.discard(difference)
                    item.add_marker(pytest.mark.xfail(reason=difference.reason, strict=True))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        before = adapters.Used.count
        try:
            return (yield)
        finally:
            if adapters.Used.count > before:
                self.used.add(item.nodeid)

    def pytest_runtest_logreport(self, report):
        if report.when == "call" and report.nodeid in self.used:
            expected = hasattr(report, "wasxfail")
            self.outcomes["differ, as listed" if expected else report.outcome] += 1

    def pytest_sessionfinish(self, session):
        if self.unseen:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter):
        say = terminalreporter.write_line
        counts = ", ".join(f"{n} {outcome}" for outcome, n in sorted(self.outcomes.items()))
        say(f"{len(self.used)} tests use our estimators or functions: {counts}")
        for difference in sorted(self.unseen, key=str):
            say(f"listed, but there is no such test: {difference.file} {difference.test}")
        if not sklearn.__version__.startswith(differences.version() + "."):
            ours = differences.version()
            say(f"the list is that of scikit-learn {ours}, and this is {sklearn.__version__}")


def main():
    missing = [file for file in FILES if not (FOLDER / file).exists()]
    if missing:
        sys.stdout.write(f"Skipped: this scikit-learn comes without its tests ({missing[0]}).\n")
        return 0
    for file in FILES:
        adapters.imported(file.removesuffix(".py").replace("/", "."))
    settings = Path(__file__).with_name("pytest.ini")
    options = ["-c", str(settings), "-q", "--tb=short", "-p", "no:cacheprovider"]
    files = [str(FOLDER / file) for file in FILES]
    return pytest.main([*files, *options, *sys.argv[1:]], plugins=[Peers(differences.read())])


if __name__ == "__main__":
    sys.exit(main())
