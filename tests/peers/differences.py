"""The differences on the scikit-learn page, as the run of scikit-learn's tests reads it."""

import re
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parent.parent.parent / "docs" / "scikit-learn.md"


@dataclass(frozen=True)
class Difference:
    """A reason, and a test whose outcome it explains.

    `test` is the name of a function, for all of its cases, or with the name of a case in brackets,
    in which * stands for anything.
    """

    file: str
    reason: str
    test: str

    def explains(self, file: str, name: str) -> bool:
        pattern = re.escape(self.test).replace(r"\*", ".*")
        if "[" not in self.test:
            pattern += r"(\[.*\])?"
        return file == self.file and re.fullmatch(pattern, name) is not None


def read(page: Path = PAGE) -> list[Difference]:
    """The rows of the page's tables; each section names its file of tests in its first line."""
    found, file = [], ""
    for line in page.read_text(encoding="utf-8").splitlines():
        if match := re.search(r"`(sklearn/\S+\.py)`", line):
            file = match[1]
        elif file and (match := re.fullmatch(r"\| (.+?) \| (`.+`) \|", line)):
            tests = re.findall(r"`([^`]+)`", match[2])
            found += [Difference(file, match[1], test) for test in tests]
    return found


def version(page: Path = PAGE) -> str:
    """The version of scikit-learn that the page is about."""
    match = re.search(r"scikit-learn (\d+\.\d+)", page.read_text(encoding="utf-8"))
    assert match, f"{page} does not say which scikit-learn it is about"
    return match[1]
