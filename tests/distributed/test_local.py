import tempfile
from itertools import pairwise

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import sabotage
from traceless import EngineError, Knowledge, RangeError
from traceless.distributed import local
from traceless.distributed.local import ArraySlice, Sliced, gather, slices_of
from traceless.features import Linear, RandomLayer
from traceless.knowledge.sums import Recipe

ONE_TASK = pytest.mark.parametrize("task", ["classification"], indirect=True)


def pieces(rows, bounds):
    X, y, weight = rows
    edges = [0, *sorted(bounds), len(y)]
    return [ArraySlice(X, y[a:b], weight[a:b], a, b) for a, b in pairwise(edges)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where temporary files go; must be empty in the end."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield tmp_path
    assert not list(tmp_path.glob("traceless-*"))


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_any_number_of_processes(n_jobs, recipe, rows, digest, folder):
    slices = pieces(rows, [7, 7, 100, 101, 350, 380])
    assert gather(recipe, slices, n_jobs).digest() == digest
    assert gather(recipe, slices[::-1], n_jobs).digest() == digest
    assert gather(recipe, pieces(rows, []), n_jobs).digest() == digest


@given(st.lists(st.integers(0, 60)), st.randoms())
def test_any_slices(bounds, random):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 2)), rng.integers(0, 3, 60), rng.integers(0, 9, 60) / 4
    recipe = Recipe(Linear().bind(2), task="classification", target_resolution=1.0)
    slices = pieces(rows, bounds)
    random.shuffle(slices)
    assert gather(recipe, slices) == recipe.knowledge(rows)


@settings(max_examples=5)
@given(st.lists(st.integers(0, 60), min_size=1, max_size=20), st.integers(2, 3))
def test_any_slices_in_processes(bounds, n_jobs):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 2)), rng.normal(size=60), rng.integers(0, 9, 60) / 4
    recipe = Recipe(Linear().bind(2), task="regression", target_resolution=2**-14)
    assert gather(recipe, pieces(rows, bounds), n_jobs) == recipe.knowledge(rows)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("dtype", [str, object])
def test_rows_in_memory(make, dtype, rng):
    X = rng.normal(size=(6000, 30))  # more than the 1 MB from which joblib maps arrays
    X[X < 0.3] = 0.0
    y = rng.choice(["yes", "no"], 6000).astype(dtype)
    recipe = Recipe(RandomLayer(50).bind(30), task="classification", target_resolution=1.0)
    expected = recipe.knowledge((X, y, 2.0))
    slices = slices_of(make(X), y, 2.0, 2, 51)
    assert len(slices) > 2
    assert gather(recipe, slices, 2) == expected


@pytest.mark.parametrize(
    ("n", "n_jobs", "n_outputs", "parts"),
    [(100_000, None, 10, 1), (100_000, 2, 10, 8), (100_000, 2, 4000, 3), (500, 2, 10, 1)],
)
def test_slices_are_large_enough_for_additions_not_to_matter(n, n_jobs, n_outputs, parts):
    X, y = np.zeros((n, 1)), np.arange(n)
    slices = slices_of(X, y, y, n_jobs, n_outputs)
    assert len(slices) == parts
    assert np.array_equal(np.concatenate([s.y for s in slices]), y)
    assert [s.stop for s in slices[:-1]] == [s.start for s in slices[1:]]
    assert len(slices_of(X[:0], y[:0], None, 2, 10)) == 1


def test_no_rows(recipe, rows):
    X, y, weight = rows
    nothing = recipe.knowledge((X[:0], y[:0], None))
    slices = [ArraySlice(X, y[:0], weight[:0], 3, 3)] * 3
    for n_jobs in (1, 2):
        assert gather(recipe, slices, n_jobs) == nothing
    assert Sliced(slices, 5).head()[0].shape == (0, 5)
    with pytest.raises(ValueError, match="no slices"):
        gather(recipe, [])


@ONE_TASK
def test_a_users_own_configuration_of_joblib_holds(recipe, rows, digest, monkeypatch):
    ran = []
    monkeypatch.setattr(local, "Parallel", lambda **k: ran.append(k) or joblib.Parallel(**k))
    slices = pieces(rows, [100, 200, 300])
    assert gather(recipe, slices).digest() == digest
    assert not ran
    for backend in ("threading", "loky"):
        with joblib.parallel_config(backend=backend, n_jobs=2):
            assert gather(recipe, slices).digest() == digest
    assert ran


@ONE_TASK
def test_only_the_sum_comes_back_to_this_process(recipe, rows, digest, monkeypatch):
    made = []

    def setstate(self, state, original=Knowledge.__setstate__):
        made.append(self)
        original(self, state)

    monkeypatch.setattr(Knowledge, "__setstate__", setstate)
    assert gather(recipe, pieces(rows, range(20, 400, 20)), 2).digest() == digest
    assert len(made) == 1


@ONE_TASK
def test_bad_rows_raise_their_own_error(recipe, rows, folder):
    rows[0][250, 3] = np.nan
    for n_jobs in (1, 2):
        with pytest.raises(RangeError, match="NaN"):
            gather(recipe, pieces(rows, [100, 200, 300]), n_jobs)


@ONE_TASK
def test_a_killed_process_is_an_engine_error(recipe, rows, digest, folder):
    slices = pieces(rows, [100, 200, 300])
    with pytest.raises(EngineError, match=r"worker process died.*Nothing was changed"):
        gather(sabotage.of(recipe, sabotage.Deadly), slices, 2)
    assert gather(recipe, slices, 2).digest() == digest


@ONE_TASK
def test_progress_is_shown_when_asked_for(recipe, rows, monkeypatch, capsys):
    from dataclasses import replace

    from traceless import progress

    monkeypatch.setattr(progress.time, "monotonic", iter(range(0, 1000, 3)).__next__)
    gather(replace(recipe, verbose=True), pieces(rows, [100, 200, 300]))
    assert "100%" in capsys.readouterr().err
    gather(recipe, pieces(rows, [100, 200, 300]))
    assert capsys.readouterr().err == ""
