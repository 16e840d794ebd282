"""Everyday data: that the sets are raw and the same each time, and what scores and goals say."""

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, cross_val_predict

from benchmarks import everyday, everyday_sets
from benchmarks.everyday_sets import CLASSIFICATION, REGRESSION, DataSet, Table
from benchmarks.findings import Record
from traceless.exceptions import ResolutionWarning

ACCURACY, R2 = everyday.JOBS.values()


def small(task=REGRESSION, n=60):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 3))
    score = X[:, 0] + 0.3 * rng.normal(size=n)
    return DataSet("small", task, X, score if task == REGRESSION else (score > 0.4).astype(int))


@pytest.fixture(scope="module")
def sets():
    return list(everyday_sets.data_sets(300))


def test_sets_are_the_same_each_time(sets):
    for one, again in zip(sets, everyday_sets.data_sets(300), strict=True):
        assert one.case == again.case
        np.testing.assert_array_equal(one.X, again.X)
        np.testing.assert_array_equal(one.y, again.y)


def test_nothing_is_scaled(sets):
    X = {found.name: found.X for found in sets}
    assert X["wine"][:, 12].max() > 1000  # proline, in mg/l
    np.testing.assert_allclose(X["means of a million: sign"].mean(axis=0), 1e6, atol=0.5)
    assert np.abs(X["millionths: value"]).max() < 1e-5


@pytest.fixture
def package(tmp_path, monkeypatch):
    (tmp_path / "some_package").mkdir()
    (tmp_path / "some_package" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path / "some_package"


def test_text_dates_and_gaps_of_a_file(package):
    rows = ["row,day,colour,size,y", "a,1970-01-03,red,1.5,7", "b,1970-01-01,blue,,8"]
    (package / "rows.csv").write_text("\n".join([*rows, "c,1970-02-01,blue,2.5,9"]))
    table = Table("it", package.name, "rows.csv", "y", REGRESSION, ["row"], ["day"])
    found = table.read()
    assert found.case == "it (2 × 4)"
    np.testing.assert_array_equal(found.X, [[2, 1.5, 0, 1], [31, 2.5, 1, 0]])  # blue, red
    np.testing.assert_array_equal(found.y, [7.0, 9.0])


def test_labels_stay_labels_and_json_and_quotes_are_read(package):
    (package / "rows.json").write_text('[{"x": 1, "y": "no"}, {"x": 2, "y": "yes"}]')
    found = Table("", package.name, "rows.json", "y", CLASSIFICATION).read()
    assert found.y.tolist() == ["no", "yes"]
    (package / "rows.csv").write_text("'x'\t'y'\n1\t0\n2\t1\n")
    found = Table("", package.name, "rows.csv", "y", CLASSIFICATION, separator="\t").read()
    assert found.y.tolist() == [0, 1]


def test_a_package_that_is_missing_is_named(monkeypatch):
    absent = Table("", "no_such_package_here", "rows.csv", "y", REGRESSION)
    assert absent.read() is None
    monkeypatch.setattr(everyday_sets, "TABLES", [absent])
    assert list(everyday_sets.from_packages()) == []
    assert everyday_sets.missing_packages() == ["no_such_package_here"]


def test_scores_are_those_of_scikit_learns_cross_validation():
    data = small()
    expected = [
        r2_score(data.y, cross_val_predict(Ridge(), data.X, data.y, cv=KFold(5, **shuffled)))
        for shuffled in ({"shuffle": True, "random_state": seed} for seed in range(3))
    ]
    found, warned = everyday.scores({"Ridge": Ridge}, data, 3)
    assert found == {"Ridge": pytest.approx(np.mean(expected), abs=1e-12)}
    assert warned == []


class Warns(BaseEstimator):
    """Predicts 0, and says that its grid is coarse."""

    def fit(self, X, y):  # noqa: ARG002
        warnings.warn("coarse", ResolutionWarning, stacklevel=1)
        return self

    def predict(self, X):
        return np.zeros(len(X))


def test_sets_whose_grid_is_coarse_are_named():
    models = {"ours": Warns, "theirs": Ridge}
    records, coarse = everyday.compare([small()], lambda task: models, quick=True)
    assert coarse == ["small (60 × 3)"]
    assert [r.way for r in records] == ["ours", "theirs"]
    _, coarse = everyday.compare([small()], lambda task: dict(reversed(models.items())), quick=True)
    assert coarse == []  # a warning of another way than ours


def records_of(job, ours, theirs):
    return [
        Record(job, way, value, f"set {k}", "share")
        for way, values in (("ours", ours), ("theirs", theirs))
        for k, value in enumerate(values)
    ]


def test_goals_are_about_the_mean_and_the_worst_set():
    records = records_of(R2, ours=[0.9, 0.5, -1000.0], theirs=[0.9, 0.6, -1.0])
    mean, worst = everyday.claims_of(records)
    assert mean.ratio == pytest.approx(1 - 0.1 / 3)
    assert worst.ratio == pytest.approx(0.9)
    assert [mean.verdict, worst.verdict] == ["MISSED", "MISSED"]


def test_goals_are_also_tried_without_the_sets_that_warned():
    records = records_of(R2, ours=[0.9, 0.5], theirs=[0.9, 0.6])
    claims = everyday.claims_of(records, coarse=["set 1"])
    assert [claim.verdict for claim in claims] == ["MISSED", "MISSED", "met", "met"]
    assert ["no warning" in claim.what for claim in claims] == [False, False, True, True]


def test_means_count_no_r2_below_minus_one():
    (ours, theirs) = everyday.means(records_of(R2, [0.5, -1000.0], [0.5, 0.5]))
    assert (ours.value, theirs.value) == (-0.25, 0.5)
    assert ours.case == everyday.MEAN


def test_the_short_form_runs(monkeypatch):
    some = [small(), small(CLASSIFICATION)]
    monkeypatch.setattr(everyday, "data_sets", lambda most_rows: some)
    found = everyday.measure(quick=True)
    assert set(found.jobs()) == {ACCURACY, R2}
    assert found.value(ACCURACY, "LSSVC()", "small (60 × 3)") > 0.8
    assert len(found.claims) == 4
    assert found.notes[0] == "1 sets of classification, 1 of regression."
