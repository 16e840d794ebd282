"""The page of differences is the list that `make peers` reads: nothing of it is overlooked."""

import ast

import pytest
import sklearn

from peers.differences import PAGE, Difference, read, version
from peers.run import FILES, FOLDER


def test_every_row_of_the_page_is_read():
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if "`test_" in line]
    assert len(rows) == len({(d.file, d.reason) for d in read()}) > 0
    assert sum(row.count("`test_") for row in rows) == len(read())


def test_each_test_is_explained_once():
    names = [(d.file, d.test) for d in read()]
    assert len(names) == len(set(names))
    assert {d.file for d in read()} == set(FILES)


@pytest.mark.parametrize("file", FILES)
def test_listed_tests_exist(file):
    if not sklearn.__version__.startswith(version() + "."):
        pytest.skip(f"the page is about scikit-learn {version()}, this is {sklearn.__version__}")
    tree = ast.parse((FOLDER / file).read_text(encoding="utf-8"))
    there = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert {d.test.split("[")[0] for d in read() if d.file == file} <= there


def test_which_tests_a_row_explains():
    whole, case = Difference("a.py", "why", "test_it"), Difference("a.py", "why", "test_it[*-SVC]")
    assert whole.explains("a.py", "test_it")
    assert whole.explains("a.py", "test_it[1-2]")
    assert not whole.explains("a.py", "test_item")
    assert not whole.explains("b.py", "test_it")
    assert case.explains("a.py", "test_it[42-SVC]")
    assert not case.explains("a.py", "test_it[42-NuSVC]")
    assert not case.explains("a.py", "test_it")
