from dataclasses import replace
from itertools import pairwise

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import sabotage
from traceless import RangeError, progress
from traceless.exceptions import EngineError
from traceless.features import Linear, RandomLayer
from traceless.knowledge.sums import Recipe
from traceless.sources import partitions as module
from traceless.sources.batches import joined
from traceless.sources.partitions import (
    ArrayPartition,
    partition_arrays,
    sum_partitions,
)

ONE_TASK = pytest.mark.parametrize("task", ["classification"], indirect=True)


def cut(rows, bounds):
    X, y, weight = rows
    edges = [0, *sorted(bounds), len(y)]
    return [ArrayPartition(X, y[a:b], weight[a:b], a, b) for a, b in pairwise(edges)]


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_any_number_of_processes(n_jobs, recipe, rows, digest):
    partitions = cut(rows, [7, 7, 100, 101, 350, 380])
    assert sum_partitions(recipe, partitions, n_jobs).digest() == digest
    assert sum_partitions(recipe, partitions[::-1], n_jobs).digest() == digest
    assert sum_partitions(recipe, cut(rows, []), n_jobs).digest() == digest


@given(st.lists(st.integers(0, 60)), st.randoms())
def test_any_partitions(bounds, random):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 2)), rng.integers(0, 3, 60), rng.integers(0, 9, 60) / 4
    recipe = Recipe(Linear().bind(2), task="classification", target_resolution=1.0)
    partitions = cut(rows, bounds)
    random.shuffle(partitions)
    assert sum_partitions(recipe, partitions) == recipe.knowledge(rows)


@pytest.mark.parametrize(
    ("make", "dtype"), [(np.asarray, object), (sparse.csr_matrix, str), (sparse.csr_array, object)]
)
def test_rows_in_memory(make, dtype, rng):
    X = rng.normal(size=(6000, 30))  # more than the 1 MB from which joblib maps arrays
    X[X < 0.3] = 0.0
    y = rng.choice(["yes", "no"], 6000).astype(dtype)
    recipe = Recipe(RandomLayer(50).bind(30), task="classification", target_resolution=1.0)
    expected = recipe.knowledge((X, y, 2.0))
    partitions = partition_arrays(make(X), y, 2.0, 2, 51)
    assert len(partitions) > 2
    assert sum_partitions(recipe, partitions, 2) == expected


def test_no_rows(recipe, rows):
    X, y, weight = rows
    nothing = recipe.knowledge((X[:0], y[:0], None))
    partitions = [ArrayPartition(X, y[:0], weight[:0], 3, 3)] * 3
    for n_jobs in (1, 2):
        assert sum_partitions(recipe, partitions, n_jobs) == nothing
    with pytest.raises(ValueError, match="no partitions"):
        sum_partitions(recipe, [])


@ONE_TASK
def test_a_users_own_configuration_of_joblib_holds(recipe, rows, digest, monkeypatch):
    ran = []
    monkeypatch.setattr(module, "Parallel", lambda **k: ran.append(k) or joblib.Parallel(**k))
    partitions = cut(rows, [100, 200, 300])
    assert sum_partitions(recipe, partitions).digest() == digest
    assert not ran
    for backend in ("threading", "loky"):
        with joblib.parallel_config(backend=backend, n_jobs=2):
            assert sum_partitions(recipe, partitions).digest() == digest
    assert ran


@ONE_TASK
def test_bad_rows_raise_their_own_error(recipe, rows):
    rows[0][250, 3] = np.nan
    for n_jobs in (1, 2):
        with pytest.raises(RangeError, match="NaN"):
            sum_partitions(recipe, cut(rows, [100, 200, 300]), n_jobs)


@ONE_TASK
def test_errors_name_their_cause(recipe, rows):
    partitions = cut(rows, [100, 200, 300])
    with pytest.raises(RuntimeError, match="OwnError: a library's own"):
        sum_partitions(sabotage.of(recipe, sabotage.Unsendable), partitions, 2)


def test_class_wise_batches_are_as_large_as_their_matrices():
    X, y = np.zeros((1000, 1)), np.arange(1000) % 50
    batches = [(X, y, None)] * 100
    pooled, apart = (max(len(b[1]) for b in joined(batches, 100, kind)) for kind in (False, True))
    assert pooled < 2**14 + 1000
    assert apart == 40_000  # 8 J K rows, where J = 100 and K = 50


@ONE_TASK
@pytest.mark.parametrize("verbose", [False, True])
def test_progress_is_shown_when_asked_for(recipe, rows, monkeypatch, capsys, verbose):
    monkeypatch.setattr(progress.time, "monotonic", iter(range(0, 1000, 3)).__next__)
    sum_partitions(replace(recipe, verbose=verbose), cut(rows, [100, 200, 300]))
    assert ("100%" in capsys.readouterr().err) is verbose


@ONE_TASK
def test_a_killed_process_is_an_engine_error(recipe, rows):
    partitions = cut(rows, [100, 200, 300])
    with pytest.raises(EngineError, match=r"worker process died.*Nothing was changed"):
        sum_partitions(sabotage.of(recipe, sabotage.Deadly), partitions, 2)
