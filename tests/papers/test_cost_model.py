"""The cost model on numbers that can be checked by hand."""

import dataclasses

import numpy as np
import pytest

from by_hand import HAND, MODEL
from papers.cost_model import model as cost_model
from papers.cost_model.costs import gathered, scaled
from papers.cost_model.model import Engine, Model, Problem
from traceless import Knowledge
from traceless.features import Linear


def test_pieces():
    pooled, apart = (Problem(100, 9, 3, kind) for kind in ("pooled", "class-wise"))
    assert (pooled.entries, apart.entries) == (12 * 13 / 2, 3 * 10 * 11 / 2)
    assert (pooled.memory, apart.memory) == (8 * 81, 3 * 8 * 81)
    known = gathered(60, 9, 3)
    assert known.sums.shape == (3, 10, 10)


def test_gathering_and_solving_by_hand():
    apart = Problem(100, 10, 3, "class-wise")
    assert MODEL.gather(apart, 100) == pytest.approx(100 + 0.1 * 100 * 100 + 3 * 100)
    assert MODEL.gather(apart, 100, pieces=2) - MODEL.gather(apart, 100) == pytest.approx(300)
    assert MODEL.solve(apart) == 1000 + 2 * 3 * 100
    assert MODEL.solve(apart, "one_vs_rest") == 3 * 1000
    assert MODEL.solve(dataclasses.replace(apart, kind="pooled")) == 1000 + 30


def test_tree_and_flat_by_hand():
    problem = Problem(1e6, 10, 3, "pooled")
    step = problem.entries * (1 + 1 + 1 + 8 * 0.5)
    assert MODEL.step(problem, 1e6) == step
    assert MODEL.tree(problem, 8) == 3 * (step + 1000)
    assert MODEL.tree(problem, 5) == 3 * (step + 1000)  # 5, 3, 2, 1
    assert MODEL.flat(problem, 8) == 8 * step + 1000
    fewer = Model(HAND, Engine(byte=0.0, round_=0.0, loads=2, pieces=4))
    step = problem.entries * (2 + 1 + 1)
    assert fewer.tree(problem, 2) == (2 + 1 + 1) * step  # 8 pieces: 4, 2 and 1 pairs by two


def test_beyond_int64_by_hand():
    limit = MODEL.limit
    assert limit == 2.0**35
    problem = Problem(4 * limit, 10, 2, "pooled")
    narrow, wide = MODEL.step(problem, 0.0), MODEL.step(problem, 2 * limit)
    assert wide - narrow == 100 * problem.entries
    assert MODEL.tree(problem, 8) == narrow + 2 * wide + 3000  # pieces of 1/2, 1, 2 and 4 limits
    assert MODEL.flat(problem, 8) == 2 * narrow + 6 * wide + 1000
    assert MODEL.solve(problem) == 1000 + 20 + 7 * 100
    apart = Problem(1.5 * limit, 10, 2, "class-wise")
    assert MODEL.solve(apart) == 1000 + 2 * 2 * 100  # each class still fits


@pytest.mark.parametrize(("n", "dtype"), [(7, np.int64), (8, object)])
def test_where_int64_ends(n, dtype):
    weight = np.full(n, 2.0**32)  # 8 · 2^32 = 2^35 rows of φ = 1
    known = Knowledge.of(Linear(bias=False), np.ones((n, 1)), [0] * n, weight)
    assert known.sums.dtype == dtype
    assert (n * 2.0**32 < cost_model.rows_in_int64(1.0)) == (dtype is np.int64)


def test_known_coefficients_are_kept():
    terms = {"a": (1, 0, 0), "b": (0, 1, 0)}
    fit = cost_model.fitted(terms, [(1, 2, 0), (3, 1, 0)], [8, 9], {"b": 3.0})
    assert fit == pytest.approx({"a": 2.0, "b": 3.0})


def test_scaled_knowledge_is_as_large_as_said():
    known = gathered(200, 8, 3)
    large, beyond = scaled(known, 60), scaled(known, 70)
    assert int(large.gram.max()).bit_length() == 60
    assert (large.sums.dtype, beyond.sums.dtype) == (np.int64, object)
    more = 60 - int(known.gram.max()).bit_length()
    assert np.array_equal(large.sums, known.sums << more)
