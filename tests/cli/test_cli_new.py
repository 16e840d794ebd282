import shlex

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from people import table
from sklearn.base import clone

from traceless import ESVM, LPSVM, LSSVC, LSSVR, PathOneClass, PathSVC, Store, features, wESVM
from traceless.cli.model_options import MAPS, MODELS, build
from traceless.cli.new import new
from traceless.features import Linear, Polynomial, RandomFourier, RandomLayer
from traceless.sources import Boolean, Category, Date, Hashed, Number, Schema, TextFormat

NEW = ("new", "s", "--target", "y")


def test_choices_are_those_that_can_be_built():
    choices = {param.name: getattr(param.type, "choices", None) for param in new.params}
    assert tuple(choices["model"]) == tuple(MODELS)
    assert tuple(choices["map_"]) == tuple(MAPS)
    assert {*MAPS.values()} == {*features.MAPS}
    assert all(build(model, None, {}) for model in MODELS)
    assert all(build("lssvc", map_, {}) for map_ in MAPS)


@pytest.mark.parametrize(
    ("options", "model"),
    [
        ("", LSSVC(Linear())),
        ("--rho 0.5 --class-weight balanced", LSSVC(Linear(), rho=0.5, class_weight="balanced")),
        ("--class-weight u=2,v=1", LSSVC(Linear(), class_weight={"u": 2.0, "v": 1.0})),
        ("--set bias=no --set resolution=0.25", LSSVC(Linear(bias=False, resolution=0.25))),
        ("--set solver=woodbury", LSSVC(Linear(), solver="woodbury")),
        ("--set free_intercept=yes --set standardize=TRUE", LSSVC(Linear(), standardize=True)),
        (
            "--rho evidence --set decision=posterior",
            LSSVC(Linear(), rho="evidence", decision="posterior"),
        ),
        ("--set standardize=false --regression", LSSVR(Linear(), standardize=False)),
        ("--model lpsvm --set free_intercept=yes", LPSVM(free_intercept=True)),
        ("--map polynomial --set degree=3 --set coef0=2.0", LSSVC(Polynomial(3, coef0=2.0))),
        (
            "--map fourier --components 30 --gamma 0.5 --set random_state=7",
            LSSVC(RandomFourier(30, gamma=0.5, random_state=7)),
        ),
        (
            "--map layer --components 9 --set activation=tanh --set scale=2.0",
            LSSVC(RandomLayer(9, activation="tanh", scale=2.0)),
        ),
        ("--regression --set target_resolution=0.5", LSSVR(Linear(), target_resolution=0.5)),
        ("--model lpsvm --C 4", LPSVM(4.0)),
        ("--model esvm --C 4 --components 8", ESVM(8, 4.0)),
        ("--model wesvm --class-weight golden", wESVM(class_weight="golden")),
        ("--model pathsvc --C 4 --gamma 0.5", PathSVC(C=4.0, gamma=0.5)),
        ("--model pathsvc", PathSVC()),
    ],
)
def test_options_become_the_model(call, options, model):
    call(*NEW, "--columns", "a,b", *options.split())
    if not isinstance(model, PathSVC):
        model = clone(model).set_params(fingerprint=True)  # every store has them
    assert repr(Store("s").model()) == repr(model)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--columns a --gamma 1", "gamma does nothing with LSSVC and Linear, which take bias"),
        ("--columns a --C 1", "C does nothing with LSSVC and Linear"),
        ("--columns a --model esvm --rho 1", "--rho does nothing with --model esvm"),
        ("--columns a --model esvm --map linear", "leave out --map linear"),
        ("--columns a --model pathsvc --regression", "--regression is --model lssvr"),
        ("--columns a --regression --labels int", "this is a regression"),
        ("--columns a --map fourier --gamma -3", "gamma"),
        ("--columns a --set resolution=0.3", "power of two"),
        ("--columns a --set solver", "NAME=... is needed"),
        ("", "Say which columns to learn from"),
        ("--columns a --like x.csv", "--columns, or --like FILE"),
        ("--columns a --drop b", "--columns, or --like FILE"),
        ("--category b=x --hash b=3", "declared twice"),
        ("--category b", "NAME=... is needed"),
        ("--hash b=many", "'many' is not a number"),
        ("--hash b=2.5", "'2.5' is not a whole number"),
        ("--scale b=1", "'' is not a number"),
        ("--columns a --class-weight u=x", "'x' is not a number"),
        ("--columns a --labels int --classes a,b", "'a' is not a number"),
        ("--missing a=x", "--missing a=x: 'x' is not a number"),
        ("--missing a=1 --missing a=2", "--missing is given twice"),
        ("--category b=x --missing b=y", "Declare it as a value: --category b=A,B,"),
        ("--boolean b=ja", "NAME=YES:NO is needed"),
        ("--date b=day", "a date in ISO 8601 is needed, such as 2000-01-01, got 'day'"),
        ("--date b=%d.%m.%Y,%Y", "two of the kind format"),
        ("--columns a --id a", "'a' is there twice"),
        ("--columns a --check none.csv", "There is no file none.csv"),
        ("--like none.csv", "There is no file none.csv"),
        ("--columns a --secret none", "none: No such file"),
    ],
)
def test_bad_declarations_are_refused_and_make_nothing(call, tmp_path, options, said):
    assert said in call(*NEW, *options.split(), code=2).err
    assert list(tmp_path.iterdir()) == []


def test_like_reads_names_and_nothing_else(call, tmp_path):
    (tmp_path / "t.csv").write_text("id,a,y,w,b\nnot,even,rows\n")
    call(*NEW, "--like", "t.csv", "--drop", "id", "--weight", "w")
    facts = Store("s").about["table"]
    assert [c["name"] for c in facts["columns"]] == ["a", "b"]
    assert facts["weight"] == "w"
    assert "has no column 'q'" in call("new z --target q --like t.csv", code=2).err
    said = call(*NEW, "--like", "t.csv", "--category", "other=x", code=2).err
    assert "'other' is declared, but is not among the columns of t.csv" in said
    (tmp_path / "t.csv").write_text("patient;a;y\n")
    call("new u --target y --like t.csv --id patient --delimiter ';'")
    assert [c["name"] for c in Store("u").about["table"]["columns"]] == ["a"]


@pytest.mark.parametrize("example", new.examples)
def test_the_examples_work(call, tmp_path, example):
    (tmp_path / "customers.csv").write_text("name,email,age,bought\n")
    (tmp_path / "january.csv").write_text("age,income,bought\n31,2000,yes\n")
    columns = {f"pixels{k}": [0.0] for k in range(4)} | {"digit": [0]}
    pq.write_table(pa.table(columns), "digits.parquet")
    words = shlex.split(example)[1:]
    assert call(*words, "--json").json["ok"]


def test_an_existing_folder_is_not_touched(call, shop):
    before = call("status", "shop", "--json").out
    assert call("new", "shop", "--target", "y", "--columns", "a", code=2).err.startswith("error: ")
    assert call("status", "shop", "--json").out == before


def test_one_class_needs_no_target(call, tmp_path, rng):
    X = rng.normal(size=(40, 2)).round(3)
    rows = [f"{a},{b}" for a, b in X]
    for name, part in (("all", rows), ("gone", rows[:25])):
        table(tmp_path / f"{name}.csv", part, "a,b")
    call("new s --columns a,b --model pathoneclass --set nu=0.2")
    call("learn s all.csv")
    call("forget s gone.csv --yes")
    assert Store("s").model().digest() == PathOneClass(nu=0.2).fit(X[25:]).digest()
    assert "-1" in call("predict s all.csv").out
    assert "no target to compare answers with" in call("score s all.csv", code=2).err
    assert "Say which column to predict" in call("new t --columns a,b", code=2).err
    call("new t --columns a --model pathoneclass --labels int", code=2)


def test_check_lists_what_does_not_fit_and_makes_nothing(call, tmp_path):
    (tmp_path / "t.csv").write_text("a,b,y\n1,x,u\ntwo,x,u\n3,,v\n4,x,\n")
    declared = (*NEW, "--columns", "a", "--category", "b=x,", "--check", "t.csv")
    answer = call(*declared, "--json", code=1).json
    assert answer["problems"] == [
        "t.csv, line 3, column 'a': a number is needed, got 'two'.",
        "t.csv, line 5, column 'y': the label is missing, there is none.",
    ]
    assert (answer["rows"], answer["columns"], answer["features"]) == (4, 2, 3)
    assert "2 problems were found. Nothing was made." in call(*declared, code=1).out
    (tmp_path / "t.csv").write_text("a,b,y\n1,x,u\n2,x,v\n2,x,v\n")
    answer = call(*declared, "--json").json
    assert answer["labels"] == {"u": 1, "v": 2}
    assert answer["problems"] == []
    (tmp_path / "t.csv").write_text("a,b,y\n" + "?,x,u\n" * 100)
    answer = call(*declared, "--json", code=1).json
    assert len(answer["problems"]) == 20
    assert not answer["all_read"]
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_a_store_for_its_owner_or_for_a_group(call, tmp_path):
    call("new", "mine", "--target", "y", "--columns", "x")
    call("new", "ours", "--target", "y", "--columns", "x", "--shared")
    assert (tmp_path / "mine").stat().st_mode & 0o7777 == 0o700
    assert (tmp_path / "ours").stat().st_mode & 0o7777 == 0o2770


def test_the_declaration_is_kept(call):
    """A column that is declared by itself need not be named in --columns."""
    call(
        *("new", "s", "--target", "ill", "--columns", 'age,"a,b",weight', "--missing", "age=40"),
        *("--scale", "weight=70:10", "--missing", "weight=75", "--boolean", "smoker=ja,j:nein"),
        *("--date", "visited", "--missing", "visited=2020-01-01", "--boolean", "new"),
        *("--date", "born=%d.%m.%Y,365.25 days,1950-01-01", "--missing", "dose=0"),
        *("--category", "color=red,,blue", "--hash", "city=8", "--labels", "int"),
        *("--classes", "1,2", "--id", "patient", "--delimiter", "tab", "--decimal", ","),
        *("--null", "NA,?"),
    )
    columns = [
        Number("age", missing=40.0),
        Number("a,b"),
        Number("weight", 70.0, 10.0, missing=75.0),
        Category("color", ("red", "", "blue")),
        Hashed("city", 8),
        Boolean("smoker", ("ja", "j"), ("nein",)),
        Boolean("new"),
        Date("visited", missing="2020-01-01"),
        Date("born", "1950-01-01", "365.25 days", "%d.%m.%Y"),
        Number("dose", missing=0.0),
    ]
    text = TextFormat("\t", ",", ("NA", "?"))
    expected = Schema(columns, ["ill"], "int", classes=[1, 2], id="patient", text=text)
    assert Store("s").about["table"] == expected.facts()
