import tomllib

import numpy as np
import pytest
from people import declared, table

from traceless import LSSVR, Store
from traceless.features import Linear
from traceless.features.table import as_toml
from traceless.sources import Files, Schema


def encoded(store, path):
    schema = Schema.from_facts(Store(store).about["table"])
    return schema.table.transform(Files([path], schema).arrays()[0])


def test_declarations_are_shown(call, shop):
    told = call("status", "--model", "shop", "--json").json
    assert told["table"] == Store("shop").about["table"]
    assert told["options"]["kind"] == "lssvc"
    assert told["options"]["map"] == "linear"
    text = call("status", "--model", "shop").out
    declared = tomllib.loads(text[text.index("[table]") : text.index("LSSVC: ")])
    assert declared.pop("model") == told["options"]
    assert Schema.from_facts(declared).facts() == told["table"]


def test_the_options_shown_make_the_same_model(call, shop):
    """What is shown as options is taken as options, and gives the same description."""
    chosen = {"map": "fourier", "gamma": 0.25, "n_components": 7, "rho": 0.5, "random_state": 3}
    chosen |= {"class_weight": {"u": 2, "v": 1}, "bias": False, "free_intercept": False}

    def section(options):
        return "\n".join(["[model]", *(f"{k} = {as_toml(v)}" for k, v in options.items())])

    call("new", "first", declared("a", more=section(chosen)))
    said = call("status --model first --json").json
    call("new", "second", declared("a", more=section(said["options"])))
    assert call("status --model second --json").json["described"] == said["described"]


@pytest.mark.parametrize("bias", [True, False])
def test_coefficients_have_names_and_the_largest_effect_is_first(call, tmp_path, bias):
    rng = np.random.default_rng(0)
    X = rng.normal([0, 5, -3], [1, 100, 0.01], (60, 3)).round(3)
    labels = np.where((X - X.mean(axis=0)) @ [1, 0.02, 50] + rng.normal(size=60) > 0, "b", "a")
    lines = [f"{a},{b},{c},{label}" for (a, b, c), label in zip(X, labels, strict=True)]
    table(tmp_path / "t.csv", lines, "p,q,r,label")
    columns = dict.fromkeys("pqr", 'kind = "number", required = true')
    call("new", "s", declared(columns, "label", "" if bias else "[model]\nbias = false"))
    call("learn", "s", "t.csv")
    told, model = call("status", "--model", "s", "--json").json, Store("s").model()
    found = dict(zip(told["coefficients"]["name"], told["coefficients"]["b"], strict=True))
    assert found.pop("intercept") == np.ravel(model.intercept_)[0]
    assert told["coefficients"]["name"][0] == "intercept"
    assert found == dict(zip("pqr", model.coef_[0].tolist(), strict=True))
    grid = (X / 2**-14).round() * 2**-14  # the model sees whole multiples of its resolution
    spread = dict(
        zip("pqr", grid.std(axis=0) if bias else np.sqrt((grid**2).mean(axis=0)), strict=True)
    )
    assert told["deviations"][0] is None
    np.testing.assert_allclose(told["deviations"][1:], [spread[name] for name in found], 1e-12)
    effects = [abs(coefficient) * spread[name] for name, coefficient in found.items()]
    assert effects == sorted(effects, reverse=True)
    assert list(found) != sorted(found, key=lambda name: -abs(found[name]))  # effects, not sizes


def test_coefficients_of_a_regression_have_errors(call, prices):
    told = call("status", "--model", "prices", "--level", "0.9", "--json").json["coefficients"]
    expected = {name: list(column) for name, column in prices.summary(0.9).columns.items()}
    assert told == expected | {"name": ["intercept", "size", "age"]}
    text = call("status", "--model", "prices").out
    assert "95 % from" in text
    assert "chosen by the evidence" in text


def test_several_targets_are_shown_by_name(call, tmp_path):
    lines = [f"{k},{k % 3},{k % 7}" for k in range(20)]
    table(tmp_path / "t.csv", lines, "a,u,v")
    call(
        "new",
        "s",
        declared({"a": 'kind = "number", required = true'}, 'column = ["u", "v"]\nkind = "number"'),
    )
    call("learn", "s", "t.csv")
    told = call("status", "--model", "s", "--json").json["coefficients"]
    assert told["target"] == ["u", "u", "v", "v"]
    assert told["name"] == ["intercept", "a"] * 2


def test_few_are_shown_of_many(call, tmp_path):
    table(tmp_path / "t.csv", [f"{k},{k % 2}" for k in range(30)], "a,y")
    call("new", "s", declared("a", more='[model]\nmap = "fourier"\nn_components = 90'))
    call("learn", "s", "t.csv")
    few, all_ = call("status", "--model", "s").out, call("status", "--model", "s", "--all").out
    assert "51 smaller ones are shown with --all." in few
    assert all_.count("feature ") == 90
    assert len(call("status", "--model", "s", "--json").json["coefficients"]["name"]) == 91


def test_what_has_no_coefficients_is_shown_too(call, shop, tmp_path):
    call("new", "s", declared("a"))
    assert "has learned no rows yet" in call("status", "--model", "s").out
    call("destroy", "shop", "model", "--yes")
    assert "is destroyed" in call("status", "--model", "shop").out
    assert "income" in call("status", "--model", "shop").out
    call("new", "p", declared("age", "bought", '[model]\nkind = "pathsvc"'))
    call("learn", "p", "people.csv")
    assert "made of rows" in call("status", "--model", "p").out


def test_a_store_that_was_made_in_python_is_shown(call):
    store = Store.new("s", LSSVR(Linear()))
    store.learn([[0.0], [1.0], [2.0]], [0.0, 1.0, 3.0])
    assert call("status", "--model", "s", "--json").json["coefficients"]["name"] == [
        "intercept",
        "column 0",
    ]
    assert "No table is declared" in call("status", "--model", "s").out
