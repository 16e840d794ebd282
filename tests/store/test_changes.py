"""Every change, with its options, through every interface: library, dry run and command line.

All of them must say the same of one change, and refuse the same. A trial leaves nothing behind.
"""

import json
import shutil
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from traceless import LSSVC, Store
from traceless.cli.group import root
from traceless.exceptions import RevealingWarning
from traceless.features import Number, Table
from traceless.sources import Schema
from traceless.store import Queued

SCHEMA = Schema(Table([Number("a"), Number("b")]), ["state"], id="who")
RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(300, 2)), 3)
Y = np.where(X[:, 0] + X[:, 1] > 0, "ill", "well")
WHO = np.arange(300) // 3
OTHER = np.where(Y == "ill", "well", "ill")
SAID = (
    *("sequence", "kind", "keys", "rows", "added", "removed", "classes", "held"),
    *("unknown", "waiting", "digest_before", "digest_after", "root_before", "root_after"),
    *("totals", "request", "revealing", "subject", "signer", "origin"),
)


def rows(first, last):
    """As the library takes them."""
    return X[first:last], Y[first:last], None


def on(method, first, last, **options):
    """A change of these rows."""
    options["ids"] = WHO[first:last]
    return lambda store, **o: getattr(store, method)(*rows(first, last), **options, **o)


def relabelled(first, last, new=OTHER, **options):
    options["ids"] = WHO[first:last]
    return lambda s, **o: s.relabel(X[first:last], Y[first:last], new[first:last], **options, **o)


def corrected(old, new):
    old, new = ((*rows(*place), WHO[slice(*place)]) for place in (old, new))
    return lambda store, **o: store.correct(old, new, **o)


def with_branch(method, **options):
    """A change with the store beside this one."""
    return lambda s, **o: getattr(s, method)(s.path.parent / "branch", **options, **o)


def without_rows(method, *given, **options):
    return lambda store, **o: getattr(store, method)(*given, **options, **o)


def table(folder, first, last):
    """The same as the command line takes them, with the other label beside; its name."""
    path = folder / f"{first}-{last}.csv"
    lines = [
        f"{a},{b},{state},{who},{other}"
        for (a, b), state, who, other in zip(
            *(some[first:last] for some in (X.tolist(), Y, WHO, OTHER)), strict=True
        )
    ]
    path.write_text("\n".join(["a,b,state,who,other", *lines]) + "\n")
    return str(path)


@dataclass
class Change:
    """A change, the command that makes it (FIRST-LAST is a file), and what was done before."""

    made: object
    words: str
    before: object = None
    keyed: bool = True


FORGOTTEN, WAITING = on("forget", 0, 60), on("forget", 0, 6, batch=True)
UNDONE, MERGED = on("undo", 0, 200), with_branch("merge", name="north")
LEARNED = on("learn", 200, 300)
CHANGES = {
    "learn": Change(LEARNED, "learn 200-300"),
    "learn again": Change(on("learn", 0, 200), "learn 0-200 --again"),
    "learn who was forgotten": Change(
        on("learn", 0, 9, again=True), "learn 0-9 --again", FORGOTTEN
    ),
    "learn what was undone": Change(on("learn", 0, 200, once=True), "learn 0-200", UNDONE),
    "forget": Change(FORGOTTEN, "forget 0-60"),
    "forget whole": Change(on("forget", 0, 60, whole=True), "forget 0-60 --whole"),
    "forget by id": Change(on("forget", 3, 9, whole=True), "forget --from 0-200 --where who=1,2"),
    "wait": Change(WAITING, "forget 0-6 --batch"),
    "enough wait": Change(on("forget", 6, 150, batch=True), "forget 6-150 --batch", WAITING),
    "flush": Change(
        lambda s, **o: s.flush(force=True, **o)[0], "queue flush --force", WAITING, False
    ),
    "cancel": Change(without_rows("cancel", 2), "queue cancel 2", WAITING, False),
    "undo": Change(UNDONE, "undo 0-200"),
    "relabel": Change(relabelled(0, 60), "correct --from 0-60 --label-column other"),
    "relabel to one": Change(relabelled(0, 60, ["new"] * 60), "correct --from 0-60 --label new"),
    "relabel by id": Change(
        relabelled(3, 9, ["new"] * 9, whole=True),
        "correct --from 0-200 --where who=1,2 --label new",
    ),
    "correct": Change(corrected((0, 60), (200, 250)), "correct --from 0-60 --to 200-250"),
    "merge": Change(MERGED, "merge BRANCH --name north"),
    "take out": Change(
        with_branch("forget", name="north"), "forget --slice BRANCH --name north", MERGED
    ),
    "destroy secret": Change(without_rows("destroy", "secret"), "destroy secret --yes"),
    "destroy model": Change(without_rows("destroy", "model"), "destroy model --yes"),
    "new key": Change(without_rows("new_key"), "key --replace", keyed=False),
}
REFUSED = {
    "learn who was forgotten": Change(on("learn", 0, 63), "learn 0-63", FORGOTTEN),
    "learn who waits": Change(on("learn", 3, 9), "learn 3-9", WAITING),
    "learn what the last change learned": Change(on("learn", 0, 200, once=True), "learn 0-200"),
    "learn what an earlier change learned": Change(
        on("learn", 0, 200, once=True), "learn 0-200", LEARNED
    ),
    "forget what was never learned": Change(on("forget", 190, 210), "forget 190-210"),
    "forget a part of an id": Change(on("forget", 0, 5, whole=True), "forget 0-5 --whole"),
    "forget what waits": Change(on("forget", 0, 6), "forget 0-6", WAITING),
    "wait with what is not held": Change(
        on("forget", 199, 202, batch=True), "forget 199-202 --batch"
    ),
    "undo other rows": Change(on("undo", 0, 199), "undo 0-199"),
    "relabel what is not held": Change(
        relabelled(0, 201), "correct --from 0-201 --label-column other"
    ),
    "correct what is not held": Change(
        corrected((200, 210), (0, 5)), "correct --from 200-210 --to 0-5"
    ),
    "cancel what does not wait": Change(without_rows("cancel", "nothing"), "queue cancel nothing"),
    "merge twice": Change(MERGED, "merge BRANCH --name north", MERGED),
    "take out what did not come": Change(with_branch("forget"), "forget --slice BRANCH"),
    "destroy twice": Change(
        without_rows("destroy", "secret"),
        "destroy secret --yes",
        without_rows("destroy", "secret"),
    ),
}


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """A store that has learned the first 200 rows, and a branch with 50 others, to be copied."""
    folder = tmp_path_factory.mktemp("stores")
    about = {"table": SCHEMA.facts()}
    on("learn", 0, 200)(Store.new(folder / "store", LSSVC(SCHEMA.table), about=about))
    Store.new(folder / "branch", LSSVC(SCHEMA.table), about=about).learn(*rows(250, 300))
    return folder


@pytest.fixture
def at(stores, tmp_path):
    """A function that copies the store and prepares it for a change."""

    def prepared(change):
        store = Store(shutil.copytree(stores, tmp_path / "one") / "store")
        if change.before is not None:
            change.before(store)
        return store

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RevealingWarning)
        yield prepared


def command(store, change, *options):
    """Call the command of a change; its result."""
    folder = store.path.parent
    words = [
        table(folder, *map(int, word.split("-")))
        if "-" in word[1:-1] and word[0].isdigit()
        else word
        for word in change.words.replace("BRANCH", str(folder / "branch")).split()
    ]
    name = 2 if words[0] == "queue" else 1
    words[name:name] = [str(store.path)]
    return CliRunner().invoke(root, [*words, *options, "--json"])


def said(answer):
    """What a receipt says, but for the moment and the names of files."""
    entry = answer.receipt if isinstance(answer, Queued) else answer
    facts = entry if isinstance(entry, dict) else entry.as_dict()
    return {name: facts[name] for name in SAID if (facts["kind"], name) != ("key", "subject")}


def contents(store):
    """Every file that means something: SQLite's log and the note in the lock do not."""
    return {
        path.name: path.read_bytes()
        for path in Path(store.path).rglob("*")
        if path.is_file() and path.name not in ("ledger.sqlite-wal", "ledger.sqlite-shm", "lock")
    }


@pytest.mark.parametrize("name", CHANGES)
def test_all_interfaces_make_the_same_change(at, name):
    change = CHANGES[name]
    store = at(change)
    before = contents(store)
    trials = [change.made(store, dry_run=True)]
    if change.words:
        shown = command(store, change, "--dry-run")
        assert shown.exit_code == 0, shown.output
        trials.append(json.loads(shown.stdout)["receipt"])
    assert contents(store) == before
    other = shutil.copytree(store.path.parent, store.path.parent.with_name("two")) / "store"
    made = change.made(store)
    expected = said(made)
    for trial in trials:
        assert said(trial) == expected
    (tried, *_) = trials
    tried = getattr(tried, "receipt", tried)
    assert (tried.dry_run, tried.signature, tried.check()) == (True, "", False)
    receipt = getattr(made, "receipt", made)
    assert (receipt.dry_run, receipt.tried, receipt.check()) == (False, None, True)
    if tried.tried is not None and receipt.held:
        assert tried.tried.digest() == receipt.digest_after
    assert store.verify().ok
    if change.words:
        shown = command(Store(other), change)
        assert shown.exit_code == 0, shown.output
        assert said(json.loads(shown.stdout)["receipt"]) == expected
        assert Store(other).receipt().check()
        assert Store(other).verify().ok


@pytest.mark.parametrize("name", [name for name, change in CHANGES.items() if change.keyed])
def test_a_key_is_recognised_by_every_interface(at, name):
    change = CHANGES[name]
    store = at(change)
    first = change.made(store, key="k")
    history = store.history()
    answers = [change.made(store, key="k"), change.made(store, key="k", dry_run=True)]
    assert all(answer.replayed for answer in answers)
    assert [said(answer) for answer in answers] == [said(first)] * 2
    other = CHANGES["destroy model" if name == "destroy secret" else "destroy secret"]
    for options in ({}, {"dry_run": True}):
        with pytest.raises(ValueError, match=r"the key 'k'|The key 'k'"):
            other.made(store, key="k", **options)
    if change.words:
        for options in ([], ["--dry-run"]):
            shown = json.loads(command(store, change, "--request", "k", *options).stdout)
            assert shown["receipt"]["replayed"]
            assert said(shown["receipt"]) == said(first)
    assert store.history() == history


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_refused_by_every_interface(at, name):
    change = REFUSED[name]
    store = at(change)
    before = contents(store)
    for options in ({}, {"dry_run": True}):
        with pytest.raises(ValueError, match="Nothing was changed") as error:
            change.made(store, **options)
        assert str(error.value).count("othing was changed") == 1
    for options in ([], ["--dry-run"]):
        shown = command(store, change, *options)
        assert shown.exit_code == 2
        told = json.loads(shown.stdout)["error"]
        assert told.startswith(str(error.value)[:60]), told
    assert contents(store) == before


def test_an_error_that_knows_of_no_store_says_it_too(at):
    store = at(CHANGES["learn"])
    for wrong in (np.zeros((2, 3)), [["a", "b"]] * 2):
        with pytest.raises(ValueError, match=r"Nothing was changed\.$"):
            store.learn(wrong, ["ill", "well"])
    assert len(store.history()) == 2


def test_the_next_change_starts_from_what_is_there(at):
    store = at(CHANGES["learn"])
    LEARNED(store, dry_run=True)
    digest = LSSVC(SCHEMA.table, fingerprint=True).fit(X[60:200], Y[60:200]).digest()
    assert FORGOTTEN(store).digest_after == digest


def test_no_row_of_a_trial_goes_into_the_log(tmp_path):
    """A request that waits has its rows in the ledger; one that is only tried has not."""
    X = np.full((30, 4), 1234.5678)
    store = Store.new(tmp_path / "store", LSSVC())
    store.learn(np.r_[X, -X], ["a"] * 30 + ["b"] * 30)
    store.forget(X[:1], ["a"], batch=True, dry_run=True)
    for path in store.path.rglob("*"):
        assert path.is_dir() or X[:1].tobytes() not in path.read_bytes()
