"""The experiments run, judge by the numbers, and leave a report that stands alone."""

import math
import re

import numpy as np
import pytest

from papers.lee2019 import judge as claims
from papers.lee2019 import measure
from papers.report import Plan
from reports import check_figures, rows_of, run_without_mnist, table

NAMES = tuple(f"1{letter}" for letter in "abcdef")
TINY = Plan(
    rows=400,
    test_rows=200,
    components=30,
    sizes=(100, 250),
    batches=(10, 50),
    all_batches=(1, 10, 100),
    rounds=1,
    forgotten=2,
)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """Folder and terminal output of one run without MNIST."""
    folder = tmp_path_factory.mktemp("experiments")
    return run_without_mnist("lee2019", (measure, "DIGITS"), TINY, folder)


# --- what a run leaves behind -----------------------------------------------------------------


def test_every_figure_is_there_with_a_verdict(outcome):
    check_figures(*outcome, NAMES)
    assert outcome[2].count("100%") == 8  # (c) and (d) have one for each map


def test_the_report_stands_alone(outcome):
    text = (outcome[0] / "report.html").read_text(encoding="utf-8")
    text = re.sub(r'"data:[^"]*"', '"data:"', text)
    assert set(re.findall(r'src="([^"]*)"', text)) == {"data:"}
    assert all(link.startswith("#") for link in re.findall(r'href="([^"]*)"', text))
    for word in ("http", "url(", "@import", "<script", "<link", "//"):
        assert word not in text


def test_accuracies_and_digests(outcome):
    stages = table(outcome[0], "1a")
    assert [r["group"] for r in stages[:5]] == ["0&1", "2&3", "4&5", "6&7", "8&9"]
    assert all(r["digest"] == r["digest_from_scratch"] for r in stages)
    assert [r["rows"] for r in stages if r["group"] == "8&9"] == ["400", "400"]
    removed = table(outcome[0], "1b")
    assert len(removed) == 2 * 2 * 11
    assert all((r["removed"] == "1.0") == (r["equals_never_learned"] == "True") for r in removed)
    assert all(0.3 < float(r["accuracy"]) <= 1 for r in stages + removed)


def test_times_and_sizes(outcome):
    times = table(outcome[0], "1c")
    jobs = {("update", "10"), ("update", "50"), ("retrain", "10")}
    assert {(r["how"], r["batch"]) for r in times} == jobs
    for row in times + table(outcome[0], "1d"):
        assert 0 < float(row["seconds"]) < 10
    for row in table(outcome[0], "1e"):
        J = {"Linear": 65, "RandomFourier": 31}[row["map"]]
        assert int(row["w_and_C"]) == 8 * (J + J * J)
        assert int(row["rows_float64"]) == 8 * int(row["rows_bytes"]) == 8 * 64 * int(row["size"])
        assert int(row["whole_model"]) > int(row["w_and_C"])


def test_better_estimates_leave_less_behind(outcome):
    rows = [r for r in table(outcome[0], "1f") if r["size"] == "250"]
    errors = {
        size: np.median([float(r["w_error"]) for r in rows if r["row_error"] == size])
        for size in ("0.001", "0.03", "1.0")
    }
    assert 0 < errors["0.001"] < errors["0.03"] < errors["1.0"]


# --- the paper's formulas, against independent ones ---------------------------------------------


def test_theorem_1_is_a_refit(rng):
    Phi, y = rng.normal(size=(6, 40)), rng.choice([-1.0, 1.0], 40)

    def direct(Phi, y):
        A = measure.RHO * np.eye(6) + Phi @ Phi.T
        return np.linalg.solve(A, Phi @ y), np.linalg.solve(A, Phi @ Phi.T)

    w, C = measure.theorem_1(*direct(Phi[:, :30], y[:30]), Phi[:, 30:], y[30:])
    expected_w, expected_C = direct(Phi, y)
    np.testing.assert_allclose(w, expected_w, rtol=1e-10)
    np.testing.assert_allclose(C, expected_C, atol=1e-12)


@pytest.mark.parametrize("make", [measure.exact_model, measure.updating_model])
def test_models_have_the_penalty_of_the_paper(make):
    data = measure.load_small(TINY)
    phi = data.maps["Linear"]
    F = phi.transform(data.X)
    A = measure.RHO * np.eye(F.shape[1]) + F.T @ F  # the intercept is one of w
    expected = np.linalg.solve(A, F.T @ (2.0 * data.y - 1.0))
    got = measure.coefficients(make(phi).fit(data.X, data.y))
    np.testing.assert_allclose(got, expected, rtol=1e-8, atol=1e-10)


def test_forgetting_an_estimate_is_the_dense_formula(rng):
    data = measure.load_small(TINY)
    phi = data.maps["RandomFourier"]
    model = measure.updating_model(phi).fit(data.X, data.y)
    guess = measure.estimate(data.X[:1], "everywhere", 0.1, rng)
    F, f = phi.transform(data.X), phi.transform(guess)
    target = 2.0 * data.y - 1.0
    A = measure.RHO * np.eye(F.shape[1]) + F.T @ F - f.T @ f
    expected = np.linalg.solve(A, F.T @ target - f[0] * target[0])
    got = measure.without(model, guess, data.y[:1])
    np.testing.assert_allclose(got, expected, rtol=1e-8, atol=1e-10)


def test_the_auxiliary_matrix_is_that_of_equation_4():
    data = measure.load_small(TINY)
    for phi in data.maps.values():
        F = phi.transform(data.X)
        C = F.T @ np.linalg.solve(F @ F.T + measure.RHO * np.eye(len(F)), F)
        model = measure.updating_model(phi).fit(data.X, data.y)
        np.testing.assert_allclose(measure.auxiliary(model), C, atol=1e-9)


@pytest.mark.parametrize("noise", measure.NOISES)
def test_estimates_are_off_by_what_is_said(rng, noise):
    x = np.array([[0.0, 3.0, 4.0]])
    change = measure.estimate(x, noise, 0.1, rng) - x
    assert np.linalg.norm(change) == pytest.approx(0.5)
    assert (change[0, 0] == 0) == (noise == "on the ink")


def test_estimates_that_cannot_be_right_are_infinitely_wrong():
    data = measure.load_small(TINY)
    model = measure.updating_model(data.maps["Linear"]).fit(data.X, data.y)
    w = measure.without(model, 1000 * data.X[:1], data.y[:1])
    assert np.isinf(w).all()
    assert w.size == measure.coefficients(model).size


# --- verdicts follow from the numbers -----------------------------------------------------------

MAPS = ("Linear", "RandomFourier")


def groups(accuracy, equal=True):
    names = [f"{k}&{k + 1}" for k in range(0, 10, 2)]
    stages = list(zip(names, accuracy, "xxxxx" if equal else "xyxxx", strict=True))
    columns = "map group accuracy digest_from_scratch digest"
    return claims.groups_learned(rows_of(columns, ((m, *s, "x") for m in MAPS for s in stages)))


def wrong_labels(flipped, drawn, equal=True):
    curves = {"flipped": flipped, "drawn at random": drawn}.items()
    values = (
        (m, reading, k / 2, accuracy, equal and k == 2)
        for m in MAPS
        for reading, curve in curves
        for k, accuracy in enumerate(curve)
    )
    columns = "map wrong_labels removed accuracy equals_never_learned"
    return claims.wrong_labels_forgotten(rows_of(columns, values))


def times(update, retrain):
    """Seconds of an update with 10 rows (ten times that with 100), and of retraining."""
    jobs = ("update", 10, update), ("update", 100, 10 * update), ("retrain", 10, retrain)
    values = ((m, n, *job) for m in MAPS for n in (1000, 2000) for job in jobs)
    return claims.update_times(rows_of("map size how batch seconds", values))


def per_row(block, ours, batches=(1, 1000, 5000)):
    values = (
        (m, how, batch, seconds * batch, seconds)
        for m in MAPS
        for how, curve in (("one block", block), ("traceless", ours))
        for batch, seconds in zip(batches, curve, strict=True)
    )
    return claims.times_per_row(rows_of("map how batch seconds seconds_per_row", values))


def sizes(kept):
    kinds = [(n, 80 * n, 10 * n, k, 2 * k) for n, k in zip((100, 1000), kept, strict=True)]
    columns = "map size rows_float64 rows_bytes w_and_C whole_model"
    return claims.storage(rows_of(columns, ((m, *kind) for m in MAPS for kind in kinds)))


def estimates(ink, everywhere=0.001):
    values = (
        (m, n, 0, noise, error, w * error / 0.1, 0.02)
        for m in MAPS
        for n in (1000, 55_000)
        for noise, w in (("on the ink", ink), ("everywhere", everywhere))
        for error in measure.ERRORS
    )
    columns = "map size row noise row_error w_error w_error_not_forgotten"
    return claims.estimates_forgotten(rows_of(columns, values))


RISING = [0.5, 0.7, 0.68, 0.8, 0.9]
VERDICTS = [
    (groups(RISING), "reproduces"),
    (groups(sorted(RISING)), "reproduces in part"),
    (groups(RISING, equal=False), "does not reproduce"),
    (groups(RISING[::-1]), "does not reproduce"),
    (wrong_labels([0.5, 0.7, 0.9], [0.8, 0.85, 0.9]), "reproduces"),
    (wrong_labels([0.5, 0.7, 0.9], [0.9, 0.85, 0.8]), "reproduces in part"),
    (wrong_labels([0.9, 0.9, 0.9], [0.8, 0.85, 0.9]), "does not reproduce"),
    (wrong_labels([0.5, 0.95, 0.9], [0.8, 0.85, 0.9]), "does not reproduce"),
    (wrong_labels([0.5, 0.7, 0.9], [0.8, 0.85, 0.9], equal=False), "does not reproduce"),
    (times(update=0.01, retrain=1.0), "reproduces"),
    (times(update=0.01, retrain=0.04), "does not reproduce"),
    (times(update=0.01, retrain=0.06), "does not reproduce"),
    (per_row([3, 1, 2], [3, 1, 1]), "reproduces"),
    (per_row([3, 1, 2], [3, 1, 1], batches=(1, 100, 5000)), "reproduces in part"),
    (per_row([3, 2, 1], [3, 0.5, 0.5]), "does not reproduce"),
    (per_row([3, 1, 2], [3, 1, 2]), "does not reproduce"),
    (sizes([800, 800]), "reproduces"),
    (sizes([800, 900]), "does not reproduce"),
    (sizes([80_000, 80_000]), "does not reproduce"),
    (estimates(0.001), "reproduces"),
    (estimates(0.001, everywhere=math.inf), "reproduces in part"),
    (estimates(0.02), "does not reproduce"),
]


@pytest.mark.parametrize(("finding", "verdict"), VERDICTS)
def test_verdicts_can_go_either_way(finding, verdict):
    assert finding.verdict == verdict
    assert finding.claim != finding.found


def test_every_figure_can_be_refuted():
    refuted = {f.name for f, verdict in VERDICTS if verdict == "does not reproduce"}
    assert refuted == set(NAMES)
