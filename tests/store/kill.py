"""Kill a process that changes a store, at random moments, and look at what is left.

    python tests/store/kill.py --kills 200

A child learns, forgets, relabels and queues requests, each under a key of its own, and says after
each operation that it is done. It is killed (-9). The store
must then stand after the last operation that was acknowledged, or after the next one; an
independent replay of the operations, refitted from scratch, must have the same digest; and
every check of `verify` must pass. The next child repeats the operation it does not know of.
"""

import argparse
import copy
import os
import random
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

from traceless import LSSVC
from traceless.exceptions import RevealingWarning
from traceless.store import SAFE_ROWS, Store

LABELS = ("no", "perhaps", "yes")


def row(number):
    """The values of a row: a function of its number."""
    return np.random.default_rng(number).normal(size=4).round(3)


def arrays(rows):
    """Rows {number: label} as X and y."""
    return np.array([row(i) for i in rows]).reshape(-1, 4), np.array(list(rows.values()))


class Replay:
    """What the store should hold: rows by number, without any store."""

    def __init__(self, seed):
        self.seed, self.done = seed, 0
        self.known, self.queue = {}, {}

    def next(self):
        """The next operation, as (kind, rows): a function of the seed and of what came before."""
        chance = random.Random(f"{self.seed} {self.done}")
        start = 1000 * (self.done + 1)
        fresh = {start + i: chance.choice(LABELS) for i in range(chance.randint(30, 60))}
        free = sorted(self.known.keys() - self.queue.keys())
        kinds = ["learn"]
        if len(free) > 100:
            kinds += ["forget", "forget", "queue", "queue", "relabel"]
        kind = chance.choice(kinds)
        if kind == "learn":
            return kind, fresh
        return kind, {i: self.known[i] for i in chance.sample(free, chance.randint(10, 40))}

    def apply(self):
        """Do it here."""
        kind, rows = self.next()
        self.done += 1
        if kind == "learn":
            self.known |= rows
        elif kind == "relabel":
            self.known |= {i: other(label) for i, label in rows.items()}
        elif kind == "forget":
            self._drop(rows)
        else:
            self.queue |= rows
            if min(Counter(self.queue.values()).values()) >= SAFE_ROWS:
                self._drop(self.queue)
                self.queue = {}

    def _drop(self, rows):
        self.known = {i: label for i, label in self.known.items() if i not in rows}

    def digest(self):
        """Of a fit from scratch."""
        model = LSSVC(fingerprint=True)
        return model.fit(*arrays(self.known)).digest() if self.known else None


def other(label):
    return LABELS[(LABELS.index(label) + 1) % 3]


def perform(store, operation, key):
    """Do an operation to a store."""
    kind, rows = operation
    X, y = arrays(rows)
    if kind == "relabel":
        return store.relabel(X, y, [other(label) for label in y], key=key)
    if kind == "learn":
        return store.learn(X, y, key=key)
    return store.forget(X, y, key=key, batch=kind == "queue")


def child(path, replay, acknowledge):
    """Go on for ever."""
    store = Store(path)
    while True:
        perform(store, replay.next(), f"operation {replay.done}")
        replay.apply()
        os.write(acknowledge, f"{replay.done}\n".encode())


def one_life(path, replay, seconds):
    """Run a child for some time, kill it, and return how many operations it acknowledged."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(read)
        try:
            child(path, replay, write)
        except BaseException:
            traceback.print_exc()
        os._exit(7)
    os.close(write)
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    with os.fdopen(read) as said:
        acknowledged = [int(line) for line in said.read().split("\n")[:-1]]
    assert os.WIFSIGNALED(status), "the child ended by an error"
    return acknowledged[-1] if acknowledged else replay.done


def check(path, replay, acknowledged):
    """Bring the replay to where the store is, and compare; returns whether it was one ahead."""
    store = Store(path)
    made = [entry for entry in store.history() if entry.kind != "queue"]
    answered = [key for entry in made for key in entry.keys]
    waiting = [queued.key for queued in store.pending()]
    assert len(set(answered + waiting)) == len(answered + waiting), "an operation was done twice"
    done = len(answered) + len(waiting)
    assert done in (acknowledged, acknowledged + 1), (done, acknowledged)
    while replay.done < acknowledged:
        replay.apply()
    ahead = copy.deepcopy(replay)
    if done > acknowledged:
        ahead.apply()
    status = store.status()
    assert status.digest == ahead.digest(), "the digest is not that of an independent replay"
    assert status.waiting == len(ahead.queue)
    store.flush()  # too few rows wait for that, but what the killed process left is removed
    verified = store.verify()
    assert verified.ok, verified
    if ahead.known:
        assert store.verify(*arrays(ahead.known)).ok
    return done > acknowledged


def main(kills, seed, folder):
    warnings.simplefilter("ignore", RevealingWarning)
    path, replay, chance = Path(folder) / "store", Replay(seed), random.Random(seed)
    Store.new(path, LSSVC())
    ahead = orphans = 0
    for _ in range(kills):
        acknowledged = one_life(path, replay, chance.uniform(0.0, 0.5))
        orphans += len(list((path / "generations").iterdir())) > 1
        ahead += check(path, replay, acknowledged)
    sys.stdout.write(
        f"{kills} kills over {replay.done} acknowledged operations: no state was wrong; "
        f"{ahead} times the store was one operation ahead, {orphans} times files were left over\n"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as aside:
        main(options.kills, options.seed, aside)
