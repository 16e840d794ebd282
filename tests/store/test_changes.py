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
from traceless.sources import Number, Schema
from traceless.store import Queued

SCHEMA = Schema([Number("a"), Number("b")], ["state"], id="who")
RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(300, 2)), 3)
Y = np.where(X[:, 0] + X[:, 1] > 0, "ill", "well")
WHO = np.arange(300) // 3
OTHER = np.where(Y == "ill", "well", "ill")
SAID = (
    *("version", "sequence", "kind", "keys", "rows", "added", "removed", "classes", "held"),
    *("unknown", "waiting", "digest_before", "digest_after", "root_before", "root_after"),
    *("alive", "ids", "request", "revealing", "subject", "signer", "origin"),
)


def rows(first, last):
    """As the library takes them."""
    return X[first:last], Y[first:last], None


def ids(first, last):
    return {"ids": WHO[first:last]}


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
    """A change of the store `at`, which `before` was done to; FIRST-LAST stands for a file."""

    made: object
    words: str
    before: tuple = ()
    keyed: bool = True


def queued(store):
    store.forget(*rows(0, 6), **ids(0, 6), batch=True, key="waits")


def corrected(store, **options):
    old, new = ((*rows(*place), WHO[slice(*place)]) for place in ((0, 60), (200, 250)))
    return store.correct(old, new, **options)


def slice_of(store):
    return store.path.parent / "branch"


CHANGES = {
    "learn": Change(lambda s, **o: s.learn(*rows(200, 300), **ids(200, 300), **o), "learn 200-300"),
    "learn again": Change(
        lambda s, **o: s.learn(*rows(0, 200), **ids(0, 200), **o), "learn 0-200 --again"
    ),
    "forget": Change(lambda s, **o: s.forget(*rows(0, 60), **ids(0, 60), **o), "forget 0-60"),
    "forget whole": Change(
        lambda s, **o: s.forget(*rows(0, 60), **ids(0, 60), whole=True, **o), "forget 0-60 --whole"
    ),
    "forget by id": Change(
        lambda s, **o: s.forget(*rows(3, 9), **ids(3, 9), whole=True, **o),
        "forget --from 0-200 --where who=1,2",
    ),
    "wait": Change(
        lambda s, **o: s.forget(*rows(0, 6), **ids(0, 6), batch=True, **o), "forget 0-6 --batch"
    ),
    "enough wait": Change(
        lambda s, **o: s.forget(*rows(6, 150), **ids(6, 150), batch=True, **o),
        "forget 6-150 --batch",
        (queued,),
    ),
    "flush": Change(
        lambda s, **o: s.flush(force=True, **o)[0], "flush --force", (queued,), keyed=False
    ),
    "cancel": Change(
        lambda s, **o: s.cancel("waits", **o), "queue cancel waits", (queued,), keyed=False
    ),
    "undo": Change(lambda s, **o: s.undo(*rows(0, 200), **ids(0, 200), **o), "undo 0-200"),
    "relabel": Change(
        lambda s, **o: s.relabel(X[:60], Y[:60], OTHER[:60], **ids(0, 60), **o),
        "relabel 0-60 --new-column other",
    ),
    "relabel to one": Change(
        lambda s, **o: s.relabel(X[:60], Y[:60], ["new"] * 60, **ids(0, 60), **o),
        "relabel 0-60 --to new",
    ),
    "correct": Change(corrected, "correct --from 0-60 --to 200-250"),
    "merge": Change(
        lambda s, **o: s.merge(slice_of(s), name="north", **o), "merge BRANCH --name north"
    ),
    "take out": Change(
        lambda s, **o: s.forget(slice_of(s), name="north", **o),
        "forget --slice BRANCH --name north",
        (lambda s: s.merge(slice_of(s), name="north"),),
    ),
    "destroy secret": Change(lambda s, **o: s.destroy("secret", **o), "destroy secret --yes"),
    "destroy model": Change(lambda s, **o: s.destroy("model", **o), "destroy model --yes"),
    "new key": Change(lambda s, **o: s.new_key(**o), "key --replace", keyed=False),
    "seal": Change(lambda s, **o: s.seal(**o), ""),
}
CHANGES |= {
    "learn who was forgotten": Change(
        lambda s, **o: s.learn(*rows(0, 9), **ids(0, 9), again=True, **o),
        "learn 0-9 --again",
        (CHANGES["forget"].made,),
    ),
    "learn what was undone": Change(
        lambda s, **o: s.learn(*rows(0, 200), **ids(0, 200), once=True, **o),
        "learn 0-200",
        (CHANGES["undo"].made,),
    ),
}
REFUSED = {
    "learn who was forgotten": Change(
        lambda s, **o: s.learn(*rows(0, 63), **ids(0, 63), once=True, **o),
        "learn 0-63",
        (CHANGES["forget"].made,),
    ),
    "learn who waits": Change(
        lambda s, **o: s.learn(*rows(3, 9), **ids(3, 9), **o), "learn 3-9", (queued,)
    ),
    "learn what an earlier change learned": Change(
        lambda s, **o: s.learn(*rows(0, 200), **ids(0, 200), once=True, **o),
        "learn 0-200",
        (CHANGES["learn"].made, CHANGES["relabel"].made),
    ),
    "learn what the last change learned": Change(
        lambda s, **o: s.learn(*rows(0, 200), **ids(0, 200), once=True, **o), "learn 0-200"
    ),
    "forget what was never learned": Change(
        lambda s, **o: s.forget(*rows(190, 210), **ids(190, 210), **o), "forget 190-210"
    ),
    "forget a part of an id": Change(
        lambda s, **o: s.forget(*rows(0, 5), **ids(0, 5), whole=True, **o), "forget 0-5 --whole"
    ),
    "forget what waits": Change(
        lambda s, **o: s.forget(*rows(0, 6), **ids(0, 6), **o), "forget 0-6", (queued,)
    ),
    "wait with what is not held": Change(
        lambda s, **o: s.forget(*rows(199, 202), **ids(199, 202), batch=True, **o),
        "forget 199-202 --batch",
    ),
    "undo other rows": Change(
        lambda s, **o: s.undo(*rows(0, 199), **ids(0, 199), **o), "undo 0-199"
    ),
    "relabel what is not held": Change(
        lambda s, **o: s.relabel(X[:201], Y[:201], OTHER[:201], **ids(0, 201), **o),
        "relabel 0-201 --new-column other",
    ),
    "correct what is not held": Change(
        lambda s, **o: s.correct((*rows(200, 210), WHO[200:210]), (*rows(0, 5), WHO[:5]), **o),
        "correct --from 200-210 --to 0-5",
    ),
    "cancel what does not wait": Change(
        lambda s, **o: s.cancel("nothing", **o), "queue cancel nothing", keyed=False
    ),
    "merge twice": Change(
        lambda s, **o: s.merge(slice_of(s), name="north", **o),
        "merge BRANCH --name north",
        (lambda s: s.merge(slice_of(s), name="north"),),
    ),
    "take out what did not come": Change(
        lambda s, **o: s.forget(slice_of(s), **o), "forget --slice BRANCH"
    ),
    "destroy twice": Change(
        lambda s, **o: s.destroy("secret", **o),
        "destroy secret --yes",
        (lambda s: s.destroy("secret"),),
    ),
}


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """A store that has learned the first 200 rows, and a branch with 50 others, to be copied."""
    folder = tmp_path_factory.mktemp("stores")
    about = {"table": SCHEMA.facts()}
    Store.new(folder / "store", LSSVC(), about=about).learn(*rows(0, 200), **ids(0, 200))
    Store.new(folder / "branch", LSSVC(), about=about).learn(*rows(250, 300))
    return folder


@pytest.fixture
def at(stores, tmp_path):
    """A function that copies the store and prepares it for a change."""

    def prepared(change, name="one"):
        shutil.copytree(stores, tmp_path / name)
        store = Store(tmp_path / name / "store")
        for step in change.before:
            step(store)
        return store

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RevealingWarning)
        yield prepared


def command(store, change, *options):
    """Call the command of a change; its result."""
    folder = store.path.parent
    words = [
        table(folder, *map(int, word.split("-"))) if word[0].isdigit() else word
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
    other = CHANGES["forget" if name == "seal" else "seal"]
    for options in ({}, {"dry_run": True}):
        with pytest.raises(ValueError, match=r"the key 'k'|The key 'k'"):
            other.made(store, key="k", **options)
    if change.words:
        for options in ([], ["--dry-run"]):
            shown = json.loads(command(store, change, "--key", "k", *options).stdout)
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
    for options in ([], ["--dry-run"]):
        shown = command(store, change, *options)
        assert shown.exit_code == 2
        told = json.loads(shown.stdout)["error"]
        assert told.startswith(str(error.value)[:60]), told
    assert contents(store) == before
