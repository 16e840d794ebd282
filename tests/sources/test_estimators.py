"""Estimators take sources in place of rows, and nothing else changes."""

import numpy as np
import pandas as pd
import pytest

from cases import PAPER
from traceless import (
    LSSVC,
    LSSVR,
    MismatchError,
    NotLearnedError,
    RangeError,
    ResolutionWarning,
    scan,
)
from traceless.exceptions import UnsealableError
from traceless.sources import Source


@pytest.fixture
def table(rng):
    """Rows of three classes with names, in three files."""
    frame = pd.DataFrame(rng.normal(size=(300, 3)), columns=["a", "b", "c"])
    return frame.assign(y=np.repeat(["x", "y", "z"], [180, 90, 30])[rng.permutation(300)])


@pytest.fixture
def files(table, tmp_path):
    for k in range(3):
        table[k::3].to_parquet(tmp_path / f"{k}.parquet", index=False)
    return [tmp_path / f"{k}.parquet" for k in range(3)]


def fit(model, table):
    return model.fit(table[["a", "b", "c"]], table["y"])


@pytest.mark.parametrize(
    ("solver", "n_jobs", "class_weight"),
    [("cholesky", None, None), ("woodbury", None, "balanced"), ("cholesky", 2, "balanced")],
)
def test_a_history_of_sources(solver, n_jobs, class_weight, table, files):
    model = LSSVC(solver=solver, n_jobs=n_jobs, class_weight=class_weight)
    model.fit(scan(files[0], "y")).partial_fit(scan(files[1:], "y"))
    fresh = fit(LSSVC(class_weight=class_weight), table)
    assert model.digest() == fresh.digest()
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert np.array_equal(model.seal().coef_, fresh.coef_)
    model.update(add=scan(files[1], "y"), forget=scan(files[0], "y"))
    model.forget(scan(files[1], "y"))
    rest = pd.concat([table[1::3], table[2::3]])
    assert model.digest() == fit(LSSVC(class_weight=class_weight), rest).digest()
    assert model.merged_ == {}


def test_columns_must_be_the_same(table, files, tmp_path):
    model = LSSVC().fit(scan(files, "y"))
    digest = model.digest()
    renamed, fewer = tmp_path / "renamed.parquet", tmp_path / "fewer.parquet"
    table.rename(columns={"b": "bee"}).to_parquet(renamed, index=False)
    table.drop(columns="b").to_parquet(fewer, index=False)
    with pytest.raises(MismatchError, match=r"\['a', 'b', 'c'\] here, \['a', 'bee', 'c'\] there"):
        model.partial_fit(scan(renamed, "y"))
    with pytest.raises(ValueError, match="X has 2 features, but LSSVC is expecting 3"):
        model.forget(scan(fewer, "y"))
    assert model.digest() == digest
    assert model.fit(scan(fewer, "y")).feature_names_in_.tolist() == ["a", "c"]  # anew


def test_nothing_changes_when_a_source_is_wrong(table, files, tmp_path):
    model = LSSVC().fit(scan(files[:2], "y"))
    digest = model.digest()
    bad = tmp_path / "bad.parquet"
    table.assign(b=table["b"].where(table.index != 250, np.inf)).to_parquet(bad, index=False)
    with pytest.raises(RangeError):
        model.partial_fit(scan([files[2], bad], "y"))
    with pytest.raises(NotLearnedError):
        model.forget(scan(files, "y"))
    assert model.digest() == digest
    empty = LSSVC()
    with pytest.raises(RangeError):
        empty.fit(scan(bad, "y"))
    assert not hasattr(empty, "n_features_in_")


def test_classes_that_are_not_listed_are_refused(files):
    model = LSSVC()
    with pytest.raises(ValueError, match=r"\['z'\] that are not in classes=\['x', 'y'\]"):
        model.partial_fit(scan(files, "y"), classes=["x", "y"])
    assert not hasattr(model, "classes_")
    model.partial_fit(scan(files, "y"), classes=["x", "y", "z"])
    assert model.partial_fit(scan(files[0], "y"), classes=["x", "y", "z"]).n_samples_ == 400


def test_a_coarse_grid_is_reported(table, tmp_path):
    path = tmp_path / "fine.parquet"
    table.assign(b=table["b"] * 1e-5).to_parquet(path, index=False)
    with pytest.warns(ResolutionWarning, match="Column 1"):
        LSSVC().fit(scan(path, "y"))


def test_a_state_without_knowledge_says_so(table, files):
    state = fit(LSSVC(solver="woodbury", **PAPER), table).export_state()
    model = LSSVC(solver="woodbury", **PAPER).import_state(state)
    with pytest.raises(UnsealableError, match="without the knowledge"):
        model.forget(scan(files[0], "y"))


def test_what_is_no_rows():
    with pytest.raises(ValueError, match="or as a source, got list"):
        LSSVC().update(add=[1, 2])


def test_processes_give_the_same_bits_for_rows_in_memory(rng):
    X, y = rng.normal(size=(9000, 6)), rng.integers(0, 3, 9000)
    weight = rng.integers(0, 9, 9000) / 4
    one = LSSVC(class_weight="golden").fit(X, y, weight)
    two = LSSVC(class_weight="golden", n_jobs=2).fit(X, y, weight)
    assert one.digest() == two.digest()
    two.forget(X[:5000], y[:5000], weight[:5000])
    rest = LSSVC(class_weight="golden").fit(X[5000:], y[5000:], weight[5000:])
    assert np.array_equal(two.coef_, rest.coef_)


class Counted(Source):
    """Counts how often its rows are learned."""

    n_features, feature_names, n_targets, passes = 2, None, 1, 0

    def knowledge(self, recipe, n_jobs=None):  # noqa: ARG002
        self.passes += 1
        rng = np.random.default_rng(0)
        return recipe.knowledge((rng.normal(size=(20, 2)), np.arange(20) % 2, None))


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        *[(LSSVC, {"rho": rho}) for rho in (-1.0, "evidenz", [1.0, 2.0])],
        *[(LSSVC, {"class_weight": weight}) for weight in ("balance", {0: -1.0}, {0: "two"}, 3)],
        (LSSVC, {"guard": True}),
        (LSSVR, {"target_resolution": 0.3, "feature_map": 3}),
    ],
)
def test_a_wrong_parameter_is_found_before_the_pass(kind, options):
    source = Counted()
    with pytest.raises((ValueError, TypeError)):
        kind(**options).fit(source)
    assert source.passes == 0
    kind().fit(source)
    assert source.passes == 1
