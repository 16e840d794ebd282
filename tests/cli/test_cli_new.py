import shlex

import pytest
from people import declared, table
from sklearn.base import clone

from traceless import ESVM, LPSVM, LSSVC, LSSVR, PathOneClass, PathSVC, Store, features, wESVM
from traceless.cli.declaration import MAPS, MODELS, build
from traceless.cli.new import new
from traceless.features import Number, Polynomial, RandomFourier, RandomLayer, Table
from traceless.features.table import as_toml
from traceless.sources import Schema

TABLE = Table([Number("a"), Number("b")])
NUMBERS = 'column = "y"\nkind = "number"'


def test_every_model_and_map_can_be_declared():
    assert {*MAPS.values()} == {*features.MAPS} - {"Linear"}  # which a table takes the place of
    text, numbers = Schema(TABLE, ["y"]), Schema(TABLE, ["y"], "number")
    for model in MODELS:
        assert build({"kind": model}, numbers if model in ("lssvr", "pathsvr") else text)
    assert all(build({"map": map_}, text) for map_ in MAPS)
    assert len(new.params) - 2 <= 8


@pytest.mark.parametrize(
    ("section", "model"),
    [
        ({}, LSSVC(TABLE)),
        ({"rho": 0.5, "class_weight": "balanced"}, LSSVC(TABLE, rho=0.5, class_weight="balanced")),
        ({"class_weight": {"u": 2.0, "v": 1}}, LSSVC(TABLE, class_weight={"u": 2.0, "v": 1})),
        (
            {"bias": False, "resolution": 0.25},
            LSSVC(Table(TABLE.columns, bias=False, resolution=0.25)),
        ),
        ({"solver": "woodbury"}, LSSVC(TABLE, solver="woodbury")),
        (
            {"rho": "evidence", "decision": "posterior"},
            LSSVC(TABLE, rho="evidence", decision="posterior"),
        ),
        ({"kind": "lpsvm", "free_intercept": True}, LPSVM(free_intercept=True)),
        ({"map": "polynomial", "degree": 3}, LSSVC(Polynomial(3, table=TABLE))),
        (
            {"map": "fourier", "n_components": 30, "gamma": 0.5, "random_state": 7},
            LSSVC(RandomFourier(30, gamma=0.5, random_state=7, table=TABLE)),
        ),
        (
            {"map": "layer", "n_units": 9, "activation": "tanh", "scale": 2.0},
            LSSVC(RandomLayer(9, activation="tanh", scale=2.0, table=TABLE)),
        ),
        ({"kind": "lpsvm", "C": 4}, LPSVM(4.0)),
        ({"kind": "esvm", "C": 4, "n_units": 8}, ESVM(8, 4.0)),
        ({"kind": "wesvm", "class_weight": "golden"}, wESVM(class_weight="golden")),
        ({"kind": "pathsvc", "C": 4.0, "gamma": 0.5}, PathSVC(C=4.0, gamma=0.5, table=TABLE)),
        ({"kind": "pathsvc"}, PathSVC(table=TABLE)),
    ],
)
def test_the_section_becomes_the_model(call, section, model):
    lines = "\n".join(["[model]", *(f"{k} = {as_toml(v)}" for k, v in section.items())])
    call("new", "s", declared("a,b", more=lines))
    if not isinstance(model, PathSVC):
        model = clone(model).set_params(fingerprint=True)  # every store has them
    if section.get("kind") == "lpsvm":
        model.set_params(feature_map=TABLE)
    if section.get("kind") in ("esvm", "wesvm"):
        model.feature_map.set_params(table=TABLE)
    assert repr(Store("s").model()) == repr(model)


def test_a_target_of_numbers_is_a_regression(call):
    call("new", "s", declared("a,b", NUMBERS, "[model]\ntarget_resolution = 0.5"))
    wanted = LSSVR(TABLE, target_resolution=0.5, fingerprint=True)
    assert repr(Store("s").model()) == repr(wanted)


@pytest.mark.parametrize(
    ("columns", "target", "more", "said"),
    [
        (
            "a",
            "y",
            "[model]\ngamma = 1",
            "gamma does nothing with LSSVC and Table, which take bias",
        ),
        ("a", "y", "[model]\nC = 1", "C does nothing with LSSVC and Table"),
        ("a", "y", "[model]\ntable = 1", "table does nothing"),
        ("a", "y", '[model]\nkind = "esvm"\nrho = -1', "rho must be"),
        ("a", "y", '[model]\nkind = "esvm"\nmap = "linear"', "leave out map"),
        ("a", "y", '[model]\nkind = "svm"', "kind must be one of lssvc"),
        ("a", "y", '[model]\nmap = "cubic"', "map must be one of linear"),
        ("a", NUMBERS, '[model]\nkind = "pathsvc"', "does not suit the target: declare lssvr"),
        ("a", "y", '[model]\nkind = "lssvr"', "declare kind = 'number' in [target]"),
        ("a", "y", '[model]\nmap = "fourier"\ngamma = -3', "gamma must be"),
        ("a", "y", "[model]\nresolution = 0.3", "power of two"),
        ("a", "", "", "a section [target] must say which column to predict"),
        ("a", "y", '[id]\ncolumn = "a"', "must be text and differ, got 'a' twice"),
        (
            "a",
            "y",
            '[id]\ncolumn = "p"\nsuppres = 3',
            "[id] has no 'suppres'; it has column, suppress",
        ),
        ("a", "y", "[models]", "there is no section [models]"),
        ("a", "y", "[model", "model.toml: "),
        ({"a": 'kind = "text"'}, "y", "", "kind must be one of number, boolean"),
        ({"a": 'kind = "number", missing = 3'}, "y", "", "number has no 'missing'; it has"),
        ({"b": 'kind = "category", values = []'}, "y", "", "the categories must be words, and at"),
        ({"b": 'kind = "hashed", buckets = 2.5'}, "y", "", "between 1 and 65536, got 2.5"),
        ({"b": 'kind = "date", origin = "day"'}, "y", "", "such as 2000-01-01, got 'day'"),
        ("a", 'column = "y"\nkind = "int"\nclasses = ["a"]', "", "do not suit kind = 'int'"),
    ],
)
def test_bad_declarations_are_refused_and_make_nothing(call, tmp_path, columns, target, more, said):
    path = declared(columns, target, more)
    assert said in call("new", "s", path, code=2).err
    assert [one.name for one in tmp_path.iterdir()] == [path]


def test_files_that_are_not_there_are_named(call, tmp_path):
    assert "none.toml: No such file" in call("new", "s", "none.toml", code=2).err
    path = declared("a")
    assert "There is no file none.csv" in call("new", "s", path, "--check", "none.csv", code=2).err
    assert "none: No such file" in call("new", "s", path, "--secret", "none", code=2).err
    assert [one.name for one in tmp_path.iterdir()] == [path]


@pytest.mark.parametrize("example", new.examples)
def test_the_examples_work(call, tmp_path, example):
    (tmp_path / "january.csv").write_text("age,y\n31,yes\n")
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "secret").write_bytes(bytes(32))
    words = shlex.split(example)[1:]
    words = [f"{word}-s" if word == "shop" else word for word in words]
    declared("age")
    assert call(*words, "--json").json["ok"]


def test_an_existing_folder_is_not_touched(call, shop):
    before = call("status", "shop", "--json").out
    assert call("new", "shop", declared("a"), code=2).err.startswith("error: ")
    assert call("status", "shop", "--json").out == before


def test_one_class_needs_no_target(call, tmp_path, rng):
    X = rng.normal(size=(40, 2)).round(3)
    rows = [f"{a},{b}" for a, b in X]
    for name, part in (("all", rows), ("gone", rows[:25])):
        table(tmp_path / f"{name}.csv", part, "a,b")
    call("new", "s", declared("a,b", "", '[model]\nkind = "pathoneclass"\nnu = 0.2'))
    call("learn s all.csv")
    call("forget s gone.csv --yes")
    assert Store("s").model().digest() == PathOneClass(nu=0.2, table=TABLE).fit(X[25:]).digest()
    assert "-1" in call("predict s all.csv").out
    assert "no target to compare answers with" in call("predict --compare s all.csv", code=2).err


def test_check_lists_what_does_not_fit_and_makes_nothing(call, tmp_path):
    (tmp_path / "t.csv").write_text("a,b,y\n1,x,u\ntwo,x,u\n3,,v\n4,x,\n5,z,v\n")
    columns = {"a": 'kind = "number", required = true', "b": 'kind = "category", values = ["x"]'}
    words = ("new", "s", declared(columns), "--check", "t.csv")
    answer = call(*words, "--json", code=1).json
    assert answer["problems"] == [
        "t.csv, line 3, column 'a': a number is needed, got 'two'.",
        "t.csv, line 6, column 'b': one of the categories 'x' is needed, got 'z'. Declare it, or "
        "take other words as absent: Category('b', [...], unknown='zero').",
        "t.csv, line 5, column 'y': the label is missing, there is none.",
    ]
    assert (answer["rows"], answer["columns"], answer["features"]) == (5, 2, 2)
    assert "3 problems were found. Nothing was made." in call(*words, code=1).out
    (tmp_path / "t.csv").write_text("a,b,y\n1,x,u\n2,x,v\n2,x,v\n")
    answer = call(*words, "--json").json
    assert answer["labels"] == {"u": 1, "v": 2}
    assert answer["problems"] == []
    (tmp_path / "t.csv").write_text("a,b,y\n" + "?,x,u\n" * 100)
    answer = call(*words, "--json", code=1).json
    assert len(answer["problems"]) == 20
    assert not answer["all_read"]
    assert {path.name for path in tmp_path.iterdir()} == {"t.csv", "model.toml"}


def test_a_store_for_its_owner_or_for_a_group(call, tmp_path):
    call("new", "mine", declared("x"))
    call("new", "ours", declared("x"), "--shared")
    assert (tmp_path / "mine").stat().st_mode & 0o7777 == 0o700
    assert (tmp_path / "ours").stat().st_mode & 0o7777 == 0o2770


def test_columns_keep_their_order(call, tmp_path):
    """A ledger sorts keys; a table whose columns it sorted would mix them up."""
    call("new", "s", declared("z,a,m"))
    table(tmp_path / "t.csv", ["1,20,300,u", "2,10,100,v"], "m,a,z,y")
    call("learn s t.csv")
    wanted = LSSVC(Table([Number(name) for name in "zam"]), fingerprint=True)
    frame = [{"z": 300, "a": 20, "m": 1}, {"z": 100, "a": 10, "m": 2}]
    assert Store("s").model().digest() == wanted.fit(frame, ["u", "v"]).digest()
