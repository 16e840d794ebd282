"""Kill a process at each call that changes a file, or let the call fail, and look at what is left.

    python tests/store/faults.py                all calls of all changes: some thousand trials
    python tests/store/faults.py --trials 100   some of them
    python tests/store/faults.py --disks 4      disks of 60, 64 … 160 kB

`shim.c` is loaded before the C library and counts calls like write, fsync, rename and unlink. For
each change of a store, and each of its calls, a child is killed before the call, or after half
of its bytes; or the call fails, once or from then on (a full disk, a bad one), or writes fewer
bytes than it was given. Then the store must be as it was before the change, or as it is after it;
after it if that was acknowledged, and as the message says if there was an error; every check of
`verify` must pass, and the same request must be answered, and make the change at most once.

Small disks are file systems in memory, which only root can mount, or who may have a namespace of
their own (`unshare`); where that is not permitted they are left out, and that is said.
"""

import argparse
import ctypes
import errno
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from traceless import LSSVC, Knowledge
from traceless.exceptions import RevealingWarning
from traceless.features import Linear, Number, Table
from traceless.sources import Schema
from traceless.store import Store

HERE = Path(__file__).parent
VARIABLE = "TRACELESS_SHIM"
LEFT_OUT = "small disks were left out: they cannot be mounted here"
RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
Y = np.where(X[:, 0] > 0, "yes", "no")
IDS = np.arange(300) // 3
SCHEMA = Schema(Table([Number(name) for name in "abc"]), ["y"], id="id")

# as in shim.c: what happens at a call
COUNT, KILL_BEFORE, KILL_AFTER, KILL_WITHIN, FAIL_ONCE, FAIL_FROM_THEN_ON, CUT_SHORT = range(7)
KILLS = (KILL_BEFORE, KILL_AFTER, KILL_WITHIN)


# --- the changes --------------------------------------------------------------------------


def nothing(path):
    pass


def some_rows(path):
    store = Store.new(path, LSSVC())
    store.learn(X[:160], Y[:160], ids=IDS[:160])
    store.learn(X[160:200], Y[160:200])


def some_that_wait(path):
    some_rows(path)
    Store(path).forget(X[:5], Y[:5], batch=True, key="waits")


def some_forgotten(path):
    some_rows(path)
    Store(path).forget(X[:60], Y[:60])


def some_rows_and_a_table(path):
    some_rows(path)
    rows = zip(X[60:].tolist(), Y[60:], IDS[60:], strict=True)
    text = "\n".join(["a,b,c,y,id", *(f"{a!r},{b!r},{c!r},{y},{i}" for (a, b, c), y, i in rows)])
    path.with_name("now.csv").write_text(text)


class Change(NamedTuple):
    """A change: the store before, what is done to it, and whether it may come again by its key."""

    before: Callable[[Path], None]
    make: Callable[[Path], Any]
    has_key: bool = True


def rows(first, last):
    return X[first:last], Y[first:last]


MERGED = Knowledge.of(Linear(), X[200:], Y[200:], fingerprint=True)
CHANGES = {
    "new": Change(nothing, lambda at: Store.new(at, LSSVC()), has_key=False),
    "learn": Change(some_rows, lambda at: Store(at).learn(*rows(200, 300), ids=IDS[200:], key="k")),
    "forget": Change(some_rows, lambda at: Store(at).forget(*rows(0, 60), key="k")),
    "relabel": Change(some_rows, lambda at: Store(at).relabel(*rows(0, 60), Y[60:120], key="k")),
    "merge": Change(some_rows, lambda at: Store(at).merge(MERGED, key="k")),
    "follow": Change(
        some_rows_and_a_table,
        lambda at: Store(at).follow(at.with_name("now.csv"), schema=SCHEMA),
    ),
    "undo": Change(some_rows, lambda at: Store(at).undo(*rows(160, 200), key="k")),
    "queue": Change(some_rows, lambda at: Store(at).forget(*rows(0, 5), batch=True, key="k")),
    "queue full": Change(
        some_that_wait, lambda at: Store(at).forget(*rows(9, 99), batch=True, key="k")
    ),
    "flush": Change(some_that_wait, lambda at: Store(at).flush(force=True), has_key=False),
    "cancel": Change(some_that_wait, lambda at: Store(at).cancel("waits"), has_key=False),
    "destroy secret": Change(some_rows, lambda at: Store(at).destroy("secret", key="k")),
    "destroy model": Change(some_rows, lambda at: Store(at).destroy("model", key="k")),
    "destroy suppression": Change(
        some_forgotten, lambda at: Store(at).destroy("suppression", key="k")
    ),
    "new key": Change(some_rows, lambda at: Store(at).new_key(), has_key=False),
}


# --- one trial ----------------------------------------------------------------------------


class Trial(NamedTuple):
    """What happens at which call of a change."""

    change: str
    call: int = 0
    what: int = COUNT
    error: int = 0

    def __str__(self):
        named = ("count", "killed before", "killed after", "killed within")
        how = (*named, "fails", "fails from then on", "is cut short")[self.what]
        error = f" ({errno.errorcode[self.error]})" if self.error else ""
        return f"{self.change}, call {self.call} {how}{error}"


class Outcome(NamedTuple):
    """What a child said: the calls it made, and its answer, error or nothing (it was killed)."""

    calls: str
    done: bool
    said: str


def in_a_child(trial, where):
    """Make the change in a child, with the trial's fault."""
    shim = ctypes.CDLL(None)
    shim.shim_made.restype = ctypes.c_long
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(read)
        done, said = True, ""
        shim.shim_arm(os.fsencode(where), ctypes.c_long(trial.call), trial.what, trial.error)
        try:
            CHANGES[trial.change].make(where / "store")
        except BaseException as error:
            done, said = False, " ".join([type(error).__name__, str(error), *notes(error)])
        calls = (ctypes.c_char * 4096).in_dll(shim, "shim_kinds")[: shim.shim_made()].decode()
        os.write(write, f"{calls}\n{done:d}\n{said}".encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    _, status = os.waitpid(pid, 0)
    if not text:
        assert os.WIFSIGNALED(status), f"{trial}: it ended without a word"
        assert os.WTERMSIG(status) == signal.SIGKILL, f"{trial}: it crashed"
        return Outcome("", done=False, said="")
    calls, done, said = text.split("\n", 2)
    return Outcome(calls, done == "1", said)


def notes(error):
    return getattr(error, "__notes__", [])


def state(path):
    """What can be told of a store without the moment and the keys of its making."""
    if not (path / "ledger.sqlite").exists():
        return None
    store = Store(path)
    status = store.status()
    kinds = [entry.kind for entry in store.history()]
    waits = [queued.key for queued in store.pending()]
    there = status.has_model, status.has_secret
    return kinds, waits, status.rows, status.digest, status.waiting, there


class Bench:
    """Changes, each with the state before and after it: some of them, or all."""

    def __init__(self, folder, only=None):
        self.folder, self.states, self.calls = Path(folder), {}, {}
        for name in only or CHANGES:
            self._copies(CHANGES[name].before)
            before = state(self._aside(name))
            outcome = in_a_child(Trial(name), self.folder / "trial")
            assert outcome.done, f"{name}: {outcome.said}"
            self.states[name] = before, state(self.folder / "trial" / "store")
            self.calls[name] = outcome.calls
            assert before != self.states[name][1], name

    def _copies(self, make):
        """Make a store once, for all trials that begin with it."""
        path = self.folder / make.__name__
        if not path.exists():
            path.mkdir()
            make(path / "store")

    def _aside(self, name):
        """A copy of the store before a change, for a trial."""
        where = self.folder / "trial"
        shutil.rmtree(where, ignore_errors=True)
        shutil.copytree(self.folder / CHANGES[name].before.__name__, where)
        return where / "store"

    def trials(self):
        """All there are."""
        for name, calls in self.calls.items():
            yield Trial(name, len(calls), KILL_AFTER)
            for i in range(1, len(calls) + 1):
                yield Trial(name, i, KILL_BEFORE)
                for error in (errno.EIO, errno.ENOSPC):
                    yield Trial(name, i, FAIL_ONCE, error)
                    yield Trial(name, i, FAIL_FROM_THEN_ON, error)
                if self.writes(Trial(name, i)):
                    yield Trial(name, i, KILL_WITHIN)
                    yield Trial(name, i, CUT_SHORT)

    def writes(self, trial):
        return self.calls[trial.change][trial.call - 1] == "w"

    def run(self, trial):
        """Make a trial, and raise AssertionError unless all is as it should be."""
        path = self._aside(trial.change)
        outcome = in_a_child(trial, path.parent)
        return self.check(trial, path, outcome)

    def check(self, trial, path, outcome):
        """Compare what is left with what was said; returns what it came to."""
        before, after = self.states[trial.change]
        found, said = state(path), f"{trial}: {outcome}"
        assert found in (before, after), f"{said} left {found}"
        if outcome.done or re.search("The (change|store) was made", outcome.said):
            assert found == after, f"{said}, and it was not made"
        elif outcome.said and "could not be seen" not in outcome.said:
            assert found == before, f"{said}, and it was made"
        full = trial.error == errno.ENOSPC and (not trial.call or self.writes(trial))
        if outcome.said and full:
            assert "full" in outcome.said or "No space" in outcome.said, (
                f"{said} names no full disk"
            )
        change = CHANGES[trial.change]
        if found == before or change.has_key:
            change.make(path)  # the next process sweeps, and makes it or knows it
        assert state(path) == after, f"{said}: then it came to {state(path)}"
        Store(path).flush()
        verified = Store(path).verify()
        assert verified.ok, f"{said}: {verified}"
        if outcome.done:
            return "made all the same"
        return ("one change further" if found == after else "as before") + (
            ", and said so" if outcome.said else ""
        )


# --- all of them --------------------------------------------------------------------------


def some_faults(bench, most, seed):
    """Trials at calls of the system."""
    trials = list(bench.trials())
    for trial in random.Random(seed).sample(trials, most) if most else trials:
        yield trial, partial(bench.run, trial)


def small_disks(bench, step):
    """Changes on disks of 60 to 160 kB, which have room again when they are looked at."""
    disk = bench.folder / "trial"
    disk.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o"]

    def run(trial, size):
        subprocess.run([*mount, f"size={size}k", "none", str(disk)], check=True)
        try:
            try:
                before = bench.folder / CHANGES[trial.change].before.__name__ / "store"
                if before.exists():
                    shutil.copytree(before, disk / "store")
            except OSError:
                return "had no room for the store"
            outcome = in_a_child(trial, disk)
            subprocess.run(["mount", "-o", "remount,size=4m", str(disk)], check=True)
            return bench.check(trial, disk / "store", outcome)
        finally:
            subprocess.run(["umount", str(disk)], check=True)

    for name in bench.states:
        for size in range(60, 161, step):
            trial = Trial(name, error=errno.ENOSPC)
            yield f"{trial} on a disk of {size} kB", partial(run, trial, size)


def main(options):
    warnings.simplefilter("ignore", RevealingWarning)
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    found, wrong = Counter(), []
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        bench = Bench(folder, options.only)
        trials = list(
            small_disks(bench, options.disks)
            if options.disks
            else some_faults(bench, options.trials, options.seed)
        )
        for trial, run in trials:
            kind = "killed" if getattr(trial, "what", 0) in KILLS else "faults"
            try:
                found[kind, run()] += 1
            except Exception as error:  # the others are tried too
                wrong.append(f"WRONG {trial}: {type(error).__name__} {error}\n")
    for (kind, outcome), n in sorted(found.items()):
        sys.stdout.write(f"{kind}: {n} times {outcome}\n")
    said = f"{len(wrong)} were wrong" if wrong else "no state was wrong"
    sys.stdout.write(
        f"{''.join(wrong)}{len(trials)} trials of {len(bench.states)} changes: {said}\n"
    )
    return bool(wrong)


def with_shim(disks):
    """Start again, with the shim loaded before the C library, and in a namespace for disks."""
    apart = ["unshare", "-rm"] if disks else []
    with tempfile.TemporaryDirectory() as folder:
        if disks:
            mount = [*apart, "mount", "-t", "tmpfs", "none", folder]
            if not shutil.which("unshare") or subprocess.run(mount, check=False).returncode:
                sys.stdout.write(f"{LEFT_OUT}\n")
                return 0
        shim = Path(folder) / "shim.so"
        build = ["cc", "-O1", "-shared", "-fPIC", "-o", str(shim), str(HERE / "shim.c"), "-ldl"]
        subprocess.run(build, check=True)
        one_thread = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        loaded = os.environ | one_thread | {"LD_PRELOAD": str(shim), VARIABLE: "loaded"}
        return subprocess.run(
            [*apart, sys.executable, *sys.argv], env=loaded, check=False
        ).returncode


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=0, help="how many; by default all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", help="trials of this change only")
    parser.add_argument("--disks", type=int, default=0, help="small disks, by so many kB")
    options = parser.parse_args()
    sys.exit(main(options) if VARIABLE in os.environ else with_shim(options.disks))
