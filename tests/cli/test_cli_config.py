"""Defaults from files: which win, which are refused, and that the command line wins over all."""

import json
from pathlib import Path

import click
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traceless.cli import defaults
from traceless.cli.command import command
from traceless.cli.group import root
from traceless.cli.output import Result


@pytest.fixture
def here(tmp_path):
    """Write traceless.toml in the folder of the command."""
    return (tmp_path / "traceless.toml").write_text


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Write config.toml in the user's folder of settings."""
    folder = tmp_path / "of user"
    folder.mkdir()
    monkeypatch.setattr(click, "get_app_dir", lambda name: str(folder))
    return (folder / "config.toml").write_text


def folds(call, *more):
    return len(call("cv", "shop", "people.csv", "--json", *more).json["scores"])


def test_the_command_line_wins_over_this_folder_and_that_over_the_user(call, shop, here, home):
    assert folds(call) == 5
    home("folds = 2\n")
    assert folds(call) == 2
    home("folds = 2\n[cv]\nfolds = 3\n")
    assert folds(call) == 3
    here("folds = 4\n")
    assert folds(call) == 4
    here("[cv]\nfolds = 6\nshuffle = 1\n")
    assert folds(call) == 6
    assert folds(call, "--folds", "7") == 7


def test_one_file_takes_the_place_of_both(call, shop, here, home, tmp_path, monkeypatch):
    home("folds = 2\n")
    here("folds = 3\n")
    (tmp_path / "other.toml").write_text("[cv]\nfolds = 4\n")
    assert folds(call, "--config", "other.toml") == 4
    assert folds(call, "--config", "/dev/null") == 5
    monkeypatch.setenv("TRACELESS_CONFIG", "other.toml")
    assert folds(call) == 4
    said = call("status", "shop", "--config", "nowhere.toml", code=2).err
    assert "--config nowhere.toml: there is no such file." in said


def test_every_kind_of_option_can_be_set(call, shop, here):
    here(
        '[new]\ntarget = "bought"\ncolumns = "age"\ncategory = ["color=red,green"]\n'
        'map = "fourier"\nseed = 3\nrho = 0.5\nfree-intercept = false\n'
        'organisation = "Clinic"\n[show]\nall = true\n'
    )
    call("new", "s")
    told = call("show", "s", "--json").json
    assert told["organisation"] == "Clinic"
    assert [one["name"] for one in told["table"]["columns"]] == ["age", "color"]
    options = told["options"]
    assert (options["map"], options["seed"], options["rho"]) == ("fourier", 3, 0.5)
    assert options["free-intercept"] == "no"
    call("new", "t", "--free-intercept")
    assert call("show", "t", "--json").json["options"]["free-intercept"] == "yes"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[lern]\nwait = 1\n", "[lern] is not a command. Did you mean learn?"),
        ("[learn]\nwiat = 1\n", "[learn] wiat is not an option that the command has."),
        ("[learn]\nwiat = 1\n", "Did you mean wait?"),
        ("wiat = 1\n", "wiat is not an option that a command has. Did you mean wait?"),
        ("[destroy]\nyes = true\n", "yes belongs to one call: give --yes there."),
        ('key = "a"\n', "key belongs to one call"),
        ('[verify]\nreceipt = "a"\n', "receipt belongs to one call"),
        ('[new]\nsecret = "a"\n', "secret belongs to one call: give --secret there."),
        ('[receipt]\nout = "a"\n', "out belongs to one call"),
        ("wait = -1\n", "wait = -1: -1"),
        ('[cv]\nfolds = "many"\n', "[cv] folds = 'many': 'many' is not a valid integer"),
        ("[cv]\nfolds = [1]\n", "a text or a number is needed"),
        ("[cv]\nfolds = true\n", "a text or a number is needed"),
        ('[new]\nscale = "a=1:2"\n', "a list is needed"),
        ("[predict]\nscores = 1\n", "true or false is needed"),
        ("[predict]\nkeep = 2026-01-01\n", "a text or a number is needed"),
        ('["\\u001b[31m"]\na = 1\n', r"[\x1b[31m] is not a command"),
        ("wait = \n", "it cannot be read as TOML"),
        ("a = '\x00'\n", "it cannot be read as TOML"),
    ],
)
def test_what_is_wrong_in_a_file_is_said(call, here, tmp_path, text, said):
    here(text)
    err = call("new", "s", "--target", "y", "--columns", "a", code=2).err
    assert said in err
    assert "traceless.toml: " in err
    assert "Nothing was changed." in err
    assert not (tmp_path / "s").exists()
    assert "Learn the rows" in call("learn", "--help").out  # help is given all the same


def test_what_is_no_file_is_not_read(call, shop, tmp_path):
    (tmp_path / "traceless.toml").mkdir()
    assert call("status", "shop").code == 0


def test_commands_within_groups_have_sections(tmp_path):
    @command("x")
    @click.option("--wait", type=int, default=0, help="w")
    def inner(wait):
        """Inner."""
        return Result({"wait": wait})

    group = click.Group("g", {"queue": click.Group("queue", {"list": inner}), "other": inner})
    file = tmp_path / "f.toml"
    file.write_text("wait = 1\n[queue.list]\nwait = 2\n")
    found = defaults.settings(group, [file])
    assert [(line.command, line.value) for line in found] == [("", 1), ("queue list", 2)]
    runner = click.testing.CliRunner()
    for words, wait in ((["queue", "list"], 2), (["other"], 1)):
        out = runner.invoke(group, [*words, "--json", "--config", str(file)]).stdout
        assert json.loads(out)["wait"] == wait
    file.write_text("[queue]\nwait = 2\n")
    with pytest.raises(click.UsageError, match="sections only"):
        defaults.settings(group, [file])


def test_config_says_where_values_come_from(call, here, home):
    told = call("config", "--json").json
    assert [one["exists"] for one in told["files"]] == [False, False]
    home("wait = 1\nfolds = 3\n[cv]\nfolds = 9\n")
    here("wait = 2\n")
    told = call("config", "--json").json
    found = [(s["command"], s["option"], s["value"], s["used"]) for s in told["settings"]]
    assert found == [
        *((None, "wait", 1, False), (None, "folds", 3, True)),
        *(("cv", "folds", 9, True), (None, "wait", 2, True)),
    ]
    text = call("config").out
    assert "no, a later file has another" in text
    assert "traceless.toml" in text


def test_what_a_file_may_not_set_are_options():
    """A name in NEVER that no command has is a slip."""
    names = {name for _, one in defaults.all_commands(root) for name in defaults._options(one)}
    assert set(defaults.NEVER) <= names


@settings(max_examples=60)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["cv", "wait", "folds", "x"]), inner, max_size=3)
        ),
        max_leaves=8,
    )
)
def test_any_document_is_taken_or_refused(said):
    """Nothing but a sentence comes of what a file may say."""
    if not isinstance(said, dict):
        return
    try:
        found = list(defaults._lines(root, said, Path("f")))
    except click.UsageError as error:
        found = []
        assert error.message.endswith("Nothing was changed.")  # noqa: PT017
    assert all(line.option in ("wait", "folds") for line in found)
