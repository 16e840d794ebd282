"""Karasuyama & Takeuchi 2009: small runs end to end, data, theory, features and verdicts."""

import numpy as np
import pytest

from papers import karasuyama2009
from papers.__main__ import main
from papers.karasuyama2009 import changes, paths, plane, series
from papers.karasuyama2009 import judge as claims
from papers.report import Plan
from reports import check_figures, quick_run, table

NAMES = ("a", "b", "c1", "c2", "d", "e")
TINY = Plan(
    points=(1, 2, 10),
    trials=2,
    other_strengths=(),
    other_points=(),
    other_trials=1,
    gammas=(0.1, 1.0),
    Cs=(0.1, 10.0),
    repeats=1,
    folds=2,
    months=2,
    widths=(0.1,),
    path_points=4,
    path_trials=1,
    steps=60,
)
SMALLEST = Plan(**vars(TINY) | {"points": (1, 2, 4), "trials": 1, "path_points": 2, "steps": 10})


def river(path, days=180):
    """A file in the form of the paper's river: made up, and one column more than needed."""
    rng = np.random.default_rng(0)
    flow = 5 + np.cumsum(rng.normal(size=days)) / 5
    lines = [f"{t},{a:.3f},{abs(b):.3f},{c:.3f}" for t, (a, b, c) in enumerate(
        zip(rng.normal(size=days), rng.normal(size=days), flow, strict=True))]  # fmt: skip
    path.write_text("\n".join(["date,temperature,precipitation,flow", *lines]), encoding="utf-8")
    return path


def ran(*arguments, plan=TINY):
    """Exit code, standard output and standard error of a quick run."""
    return quick_run("karasuyama2009", (karasuyama2009, "SHORT"), plan, *arguments)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """Folder and terminal output of one run on a file of the river."""
    folder = tmp_path_factory.mktemp("karasuyama2009")
    file = river(folder / "river.csv")
    code, out, err = ran("--out", folder / "out", "--fisher-river", file)
    assert code == 0
    return folder / "out", out, err


# --- what a run leaves behind -----------------------------------------------------------------


def test_every_figure_is_there_with_a_verdict(outcome):
    check_figures(*outcome, NAMES)


def test_every_result_is_exact(outcome):
    rows = table(outcome[0], "e")
    assert {r["case"] for r in rows} == {
        "plane", "Fisher River", "month by month", "identical points"
    }  # fmt: skip
    assert all(float(r["residual"]) <= 1e-9 for r in rows)
    assert all(float(r["path_difference"]) <= 1e-8 for r in rows)
    assert all(r["same_bits"] == "True" for r in rows if r["certain"] == "True")


def test_times_and_breakpoints_are_there(outcome):
    rows = table(outcome[0], "a")
    assert len(rows) == TINY.trials * (3 + 3 + 2)
    assert all(0 < float(r[name]) < 10 for r in rows for name in changes.METHODS)
    for r in rows:
        theory = int(r["breakpoints_SID"]) / np.sqrt(int(r["points"]))
        assert float(r["theory"]) == pytest.approx(theory)
        came = {"adding": 1.0, "removing": 0.0, "both": 0.5}[r["scenario"]] * int(r["points"])
        assert int(r["new_at_bound"]) == came
    cells = {(r["gamma"], r["C"]) for r in table(outcome[0], "c1")}
    assert len(cells) == 4


def test_without_the_weather_the_rest_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(series.importlib.util, "find_spec", _without("vega_datasets"))
    code, shown, _ = ran("--out", tmp_path, plan=SMALLEST)
    assert code == 0
    assert "(c) was left out" in shown
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "pip install -e &#x27;.[papers]&#x27;" in text
    assert not (tmp_path / "figure_c1.png").exists()
    assert (tmp_path / "figure_e.png").exists()


def _without(missing, find=series.importlib.util.find_spec):
    return lambda name, *rest: None if name == missing else find(name, *rest)


def test_refusals(tmp_path, capsys, monkeypatch):
    options = ["--out", str(tmp_path / "out"), "--fisher-river"]
    for text, message in (
        ("temperature,flow\n1,2\n", "bad.csv has no column precipitation"),
        ("flow,temperature,precipitation\n1,2,x\n", "every day needs a number"),
    ):
        (tmp_path / "bad.csv").write_text(text, encoding="utf-8")
        assert main(["karasuyama2009", *options, str(tmp_path / "bad.csv")]) == 2
        assert message in capsys.readouterr().err
    assert main(["karasuyama2009", *options, str(tmp_path / "none.csv")]) == 2
    assert "cannot be used" in capsys.readouterr().err
    assert main(["zhu2018", *options, str(tmp_path / "bad.csv")]) == 2
    assert "karasuyama2009 only" in capsys.readouterr().err


# --- points in the plane --------------------------------------------------------------------------


def test_two_classes_in_the_plane():
    X, y = plane.points(20_000, 3)
    assert (y > 0).mean() == pytest.approx(0.5, abs=0.02)
    for some, spread in ((X[y > 0], np.sqrt(5.0)), (X[y < 0], 1.0)):  # crosses are two heaps
        np.testing.assert_allclose(some.mean(axis=0), 0.0, atol=0.06)
        np.testing.assert_allclose(some.std(axis=0), [spread, 1.0], atol=0.03)
    fewer, labels = plane.points(100, 3)
    assert np.array_equal(fewer, X[:100])
    assert np.array_equal(labels, y[:100])


@pytest.mark.parametrize("scenario", [*plane.SCENARIOS, plane.CROSSES])
def test_only_bounded_support_vectors_change(scenario):
    change = plane.scenario_change(scenario, 20, seed=1)
    assert len(change.new_labels) + len(change.gone) == 20
    before = change.before()
    assert (before.alpha[change.gone] == change.C).all()
    after = change.mid(change.before())
    assert changes.at_bound(after, len(change.new_labels)) == len(change.new_labels)
    assert scenario != plane.CROSSES or set(change.new_labels) == {1.0}


# --- the time series ------------------------------------------------------------------------------


def test_features_by_hand():
    days = np.array([[t, 10 * t, 100 * t] for t in range(10)], dtype=float)
    days[8, 0] = 3.0  # falls on day 8, then rises
    days[9, 0] = 3.0  # no change is not a rise
    X, y = series.rows_of(days)
    assert X.shape == (3, 21)
    np.testing.assert_array_equal(X[0, :6], [0, 0, 0, 1, 10, 100])
    np.testing.assert_array_equal(X[1, -3:], [7, 70, 700])
    np.testing.assert_array_equal(y, [1, -1, -1])


def test_rows_are_scaled_by_the_first_ones_only(tmp_path):
    days = series.read_days(river(tmp_path / "river.csv"), series.RIVER)
    assert days.shape == (180, 3)
    data = series.series_of("Fisher River", days)
    assert (data.initial, len(data.y)) == (143, 173)
    first = data.X[: data.initial]
    assert first.min() == 0.0
    assert first.max() == 1.0
    days[-1] += 1000.0
    np.testing.assert_array_equal(series.series_of("", days).X[:143], first)
    change = data.change(0.1, 1.0)
    np.testing.assert_array_equal(change.after[0], data.X[30:])


def test_the_weather_has_the_shape_of_the_river():
    pytest.importorskip("vega_datasets")
    data = series.load(None)
    assert (data.name, data.X.shape, data.initial) == ("Seattle weather", (1454, 21), 1423)
    assert 0.45 < (data.y > 0).mean() < 0.55


def test_folds_are_unlearned(tmp_path):
    data = series.series_of("", series.read_days(river(tmp_path / "river.csv"), series.RIVER))
    change = data.change(0.1, 10.0)
    expected = 0
    for fold in series.fold_places(len(change.y), 3):
        X, y = np.delete(change.X, fold, axis=0), np.delete(change.y, fold)
        f = change.fitted(X, y).decision_function(change.X[fold])
        expected += int((f * change.y[fold] <= 0).sum())
    assert series.cross_validated(change, change.before(), 3) == expected / len(change.y)


# --- one path -------------------------------------------------------------------------------------


def test_a_path_in_steps_is_the_path_at_once():
    change = plane.scenario_change("both", 4, seed=0)
    path = paths.taken_in_steps(change, 50)
    assert path.breakpoints[-1] == path.at_once or path.off
    assert len(path.where()) == path.breakpoints[-1]
    end = change.mid(change.before())
    left = np.delete(np.arange(path.alpha.shape[1]), change.gone)
    np.testing.assert_allclose(path.alpha[-1, left], end.alpha, atol=1e-9)
    np.testing.assert_array_equal(path.alpha[-1, change.gone], 0.0)
    if not path.off:  # what comes and goes moves straight
        np.testing.assert_allclose(path.alpha[25, change.gone], change.C / 2)
        np.testing.assert_allclose(path.alpha[25, len(change.y) :], change.C / 2)


# --- verdicts follow from the numbers -------------------------------------------------------------

EXACT = {
    "residual": 1e-14,
    "promise": 1e-9,
    "difference": 0.0,
    "path_difference": 1e-14,
    "certain": True,
    "same_bits": True,
    "restarts": 0,
    "SID_same_bits": True,
    **{f"difference_{name}": 1e-4 for name in changes.LIBSVMS},
}


def plane_rows(advantage=4.0, excess=1.0, drift=1.0):
    """MID is so many times faster at most, has so many breakpoints per theory."""
    return [
        EXACT
        | {"scenario": s, "C": plane.C, "points": k, "trial": 0, "SID": k**0.5 * advantage / 4}
        | {"MID": k**0.5 / (1 + 3 * (k > 1) + k / 100), "breakpoints_SID": 20 * k}
        | {"breakpoints_MID": 20 * k**0.5 * (excess if k > 1 else k**0.5), "theory": 20 * k**0.5}
        | dict.fromkeys(changes.LIBSVMS, 10.0 + k * (drift - 1.0))
        for s in plane.SCENARIOS
        for k in (1, 2, 10, 50)
    ]


def by_width(rows):
    most = [r | {"gamma": 1.0} for r in rows if r["points"] == 50]
    return [*most, most[0] | {"scenario": plane.CROSSES}]


def b_of(excess):
    rows = plane_rows(excess=excess)
    return claims.breakpoints(rows, by_width(rows))


def series_rows(fast, growing=2.0, error=(0.3, 0.2)):
    shared = {"gamma": 0.1, "margin": 1, "bounded": 1, "breakpoints_MID": 1, "breakpoints_SID": 9}
    return [
        EXACT | shared | {"C": C, "cv_error": e, "MID": 1.0, "SID": fast}
        | dict.fromkeys(changes.LIBSVMS, fast * t)
        for C, t, e in zip((1.0, 100.0), (1.0, growing), error, strict=True)
    ]  # fmt: skip


def path_of(thetas):
    shared = {"trial": 0, "aside": 0, "at_once": len(thetas), "in_steps": len(thetas)}
    found = [{"scenario": s, "theta": t} | shared for s in plane.SCENARIOS for t in thetas]
    return claims.path(found, [{"theta": 0.0}], TINY)


def exact(**changed):
    return claims.exactness({"plane": [EXACT | changed], "other": [EXACT | changed]})


VERDICTS = [
    (claims.plane_times(plane_rows()), "reproduces"),
    (claims.plane_times(plane_rows(drift=2.0)), "reproduces in part"),
    (claims.plane_times(plane_rows(advantage=1.0)), "does not reproduce"),
    (b_of(1.0), "reproduces"),
    (b_of(1.3), "does not reproduce"),
    (claims.series_times(series_rows(2.0), "Fisher River"), "reproduces"),
    (claims.series_times(series_rows(2.0, 1.0), "Fisher River"), "reproduces in part"),
    (claims.series_times(series_rows(0.5), "Seattle weather"), "does not reproduce"),
    (claims.cost_and_error(series_rows(2.0), "Fisher River"), "reproduces"),
    (claims.cost_and_error(series_rows(2.0, error=(0.2, 0.3)), ""), "does not reproduce"),
    (path_of(np.linspace(0.01, 0.99, 100)), "reproduces"),
    (path_of(np.linspace(0.01, 0.99, 100) ** 2), "does not reproduce"),
    (exact(), "reproduces"),
    (exact(residual=1e-8), "does not reproduce"),
    (exact(path_difference=1e-7), "does not reproduce"),
    (exact(same_bits=False), "does not reproduce"),
    (exact(same_bits=False, certain=False), "reproduces"),
]


@pytest.mark.parametrize(("finding", "verdict"), VERDICTS)
def test_verdicts_can_go_either_way(finding, verdict):
    assert finding.verdict == verdict
    assert finding.claim != finding.found


def test_every_claim_can_be_refuted():
    refuted = {f.name for f, verdict in VERDICTS if verdict == "does not reproduce"}
    assert refuted == set(NAMES)


def test_the_promise_grows_with_the_coefficients():
    assert changes.promise(np.array([1.0, 2.0])) == 1e-9
    assert changes.promise(np.full(10, 1e9)) == pytest.approx(10 * changes.EPS * 1e10)
