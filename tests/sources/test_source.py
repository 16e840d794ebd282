import ast
import subprocess
import sys
import weakref
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from traceless import MismatchError
from traceless.features import Linear
from traceless.knowledge.sums import Recipe
from traceless.sources import as_source, from_batches
from traceless.sources.batches import joined, sum_batches

LINEAR = Recipe(Linear().bind(2), task="classification", target_resolution=1.0)
COUNTS = st.lists(st.integers(0, 30), max_size=8)


def cut(counts, weights):
    n = sum(counts)
    X, y = np.arange(2.0 * n).reshape(n, 2), np.arange(n) % 3
    parts = [slice(b - n, b) for n, b in zip(counts, np.cumsum(counts), strict=True)]
    return X, y, [(X[part], y[part], y[part] + 1.0 if weights else None) for part in parts]


@given(COUNTS, st.booleans(), st.randoms())
def test_any_batches_in_any_order_give_the_same_knowledge(counts, weights, random):
    X, y, batches = cut(counts, weights)
    random.shuffle(batches)
    if counts:
        rows = X, y, y + 1.0 if weights else None
        assert sum_batches(LINEAR, batches) == LINEAR.knowledge(rows)
    else:
        assert sum_batches(LINEAR, batches) is None


def test_what_is_joined_is_bounded_in_rows_and_bytes():
    narrow = [(np.zeros((5000, 2)), np.zeros(5000), None)] * 100
    sizes = [len(y) for _, y, _ in joined(narrow, 3)]
    assert sum(sizes) == 500_000
    assert max(sizes) < 2**16 + 5000
    wide = np.lib.stride_tricks.as_strided(np.zeros(1), (1000, 20_000), (0, 0))
    sizes = [len(y) for _, y, _ in joined([(wide, np.zeros(1000), None)] * 10, 3)]
    assert max(sizes) == 2000


def test_a_large_batch_is_not_copied():
    X = np.zeros((70_000, 2))
    ((same, _, _),) = joined([(X, np.zeros(70_000), None)], 3)
    assert same is X


def test_sparse_batches():
    X = sparse.random_array((50, 2), density=0.5, format="csr", rng=0)
    y = np.arange(50) % 3
    parts = [(X[:20], y[:20], None), (X[20:], y[20:], None)]
    assert sum_batches(LINEAR, parts) == LINEAR.knowledge((X, y, None))


def test_labels_of_two_types_are_not_made_one_by_joining():
    X = np.zeros((1, 2))
    with pytest.raises(MismatchError, match="one type"):
        sum_batches(LINEAR, [(X, np.array([1]), None), (X, np.array(["1"]), None)])


def test_whole_floats_and_integers_are_the_same_labels():
    X = np.zeros((1, 2))
    known = sum_batches(LINEAR, [(X, np.array([1]), None), (X, np.array([1.0]), None)])
    assert known.class_counts == {1: 2}


@dataclass(frozen=True)
class Counting(Recipe):
    made: list = field(default_factory=list)
    alive: list = field(default_factory=list)

    def knowledge(self, rows):
        self.alive.append(sum(known() is not None for known in self.made))
        found = super().knowledge(rows)
        self.made.append(weakref.ref(found))
        return found


def test_no_more_than_two_partial_sums_are_held():
    recipe = Counting(LINEAR.phi, task="classification", target_resolution=1.0)
    batch = np.zeros((2**16, 2)), np.zeros(2**16), None
    sum_batches(recipe, [batch] * 5)
    assert recipe.alive == [0, 1, 0, 0, 0]  # only the first is held, as the total so far


def test_ordinary_rows_are_no_source(rng):
    X, y = rng.normal(size=(5, 2)), np.arange(5)
    for rows in (X, X.tolist(), sparse.csr_array(X)):
        assert as_source(rows, y) is None
        assert as_source(rows, y.tolist(), np.ones(5)) is None
    assert as_source(None, None) is None


def test_what_is_not_rows_is_named_with_the_way_to_make_it_so(tmp_path):
    import polars as pl

    with pytest.raises(TypeError, match=r"traceless\.scan\(path, target\)"):
        as_source("rows.parquet", "label")
    with pytest.raises(TypeError, match="scan"):
        as_source(tmp_path, None)
    with pytest.raises(TypeError, match=r"LazyFrame.*collect.*from_batches"):
        as_source(pl.LazyFrame({"a": [1]}), [1])
    assert as_source(pl.DataFrame({"a": [1]}), [1]) is None


def test_a_source_comes_alone():
    source = from_batches([(np.zeros((3, 2)), np.arange(3))])
    assert as_source(source, None) is source
    for more in ([0, 1, 0], None), (None, [1, 1, 1]):
        with pytest.raises(TypeError, match="its own target and weights"):
            as_source(source, *more)


def test_importing_traceless_imports_no_engine():
    code = (
        "import sys, sklearn.base\n"
        "before = set(sys.modules)\n"  # scikit-learn imports pandas, and pandas pyarrow
        "import traceless, traceless.sources\n"
        "print({m.partition('.')[0] for m in set(sys.modules) - before})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    engines = {"dask", "distributed", "pyspark", "pyarrow", "polars", "pandas"}
    assert not engines & set(ast.literal_eval(done.stdout))
