"""Random histories of the path family on degenerate data, judged from outside after each update.

    python tests/hinge/stress.py --count 100000 --jobs 16          some minutes on 16 cores
    python tests/hinge/stress.py --history "PathSVR:lattice:17"    one history again, step by step

Only what is public is used. Rows come and go, also by content, parameters change, models are
pickled. After each update, which has a time limit, `posed` measures in long double what is
published. Now and then the digest is compared with that of a fit to shuffled rows. Beside that,
rows of a few live models are exchanged `--swaps` times, mostly one by one.

Printed for each machine: updates; `bad`: residuals above max(1e-9, rounding of g) that no warning
tells of (`told`: that one does); `untrue`: ``kkt_residual_`` is less than what was found; `beaten`:
pairs of α better the objective by more than 1e-9 of it (they are tried where the duality gap is
`loose`); `values`: predictions that are not those of the coefficients; bits that are `equal`,
`different` or `flagged`; `errors`; `dead`: beyond the time limit, or crashed; the largest
residual in units of the promise, and the slowest update in milliseconds.
"""

from __future__ import annotations

import argparse
import faulthandler
import itertools
import multiprocessing
import os
import pickle
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from families import FAMILIES, MORE, TARGETS, draw_points
from posed import Array, Posed, kernel_values, posed
from traceless import PathOneClass, PathSVC, PathSVR

ALL = FAMILIES | MORE
MACHINES = ("PathSVC", "three classes", "precomputed", "PathSVR", "PathOneClass")
WRONG = ("bad", "untrue", "beaten", "values", "different", "errors", "dead")
LIVE = {  # models that live long, and their rows
    "PathSVC:generic": 300,
    "PathSVC:duplicates": 1500,
    "PathSVR:lattice": 300,
    "PathOneClass:near duplicates": 300,
}
LARGEST = ("worst", "slowest")  # of which there is no sum
LIMIT, LENGTH = 30.0, 20  # seconds for an update, updates of a history
Rows = tuple[Array, Array, Array]  # values (or numbers of rows of the pool), labels, weights


class History:
    """A model, the rows that it should hold, and what was wrong with it."""

    def __init__(self, name: str, say: bool = False) -> None:
        self.name, self.say = name, say
        self.machine, family, seed = name.split(":")
        self.family = ALL[family]
        self.rng = rng = np.random.default_rng([int(seed), *name.encode()])
        self.tally, self.failures, self.worst, self.slowest = Counter[str](), list[str](), 0.0, 0.0
        self.style, self.what = str(rng.choice([*TARGETS])), ""
        self.pool = self.family.draw(rng, 200)
        self.gram = kernel_values(self.family.options, self.pool[0], self.pool[0]).astype(float)
        self.model = self.made()

    def begin(self, n: int = 0) -> None:
        """A first fit."""
        few = int(self.rng.integers(10, 120))
        self.rows = self.draw(n or few * int(self.rng.choice([1, 12], p=[0.99, 0.01])))
        self.step("fit", lambda: self.model.fit(self.fresh_values(self.rows), *self.rows[1:]))

    def made(self) -> Any:
        rng, options = self.rng, dict(self.family.options)
        options["cache_size"] = float(rng.choice([1000.0, 1000.0, 0.05]))
        if self.machine == "PathOneClass":
            return PathOneClass(nu=float(rng.choice([0.02, 0.1, 0.5, 0.9, 1.0])), **options)
        options["C"] = self.family.bound
        if self.machine == "PathSVR":
            return PathSVR(epsilon=float(rng.choice([0.0, 1e-6, 0.1, 0.5])), **options)
        options["class_weight"] = rng.choice(np.array([None, None, "balanced"]))
        if self.machine == "precomputed":
            options["kernel"] = "precomputed"
        return PathSVC(decision_function_shape="ovo", **options)

    def draw(self, n: int) -> Rows:
        X, y, u = draw_points(self.family, self.rng, n)
        if self.machine == "three classes":
            y = np.where(y > 0, 2, self.rng.integers(2, size=n))
        elif self.machine == "PathOneClass":
            y = np.zeros(n)
        elif self.machine == "PathSVR":
            y = TARGETS[self.style](X, y)
        elif self.machine == "precomputed":
            at = self.rng.integers(len(self.gram), size=n)
            X, y = at[:, None].astype(float), self.pool[1][at]
        return X, y, u / self.family.bound

    def fresh_values(self, rows: Rows) -> Array:
        """What is fitted."""
        return self.gram[np.ix_(*2 * [rows[0][:, 0].astype(int)])] if self.given else rows[0]

    @property
    def given(self) -> bool:
        return self.machine == "precomputed"

    # --- updates -----------------------------------------------------------------------------

    def change(self) -> None:
        """One random update."""
        rng, n = self.rng, len(self.rows[1])
        kind, most = int(rng.integers(16)), int(rng.choice([1, 5, 30]))
        m, k = int(rng.integers(most + 1)), int(rng.integers(most + 1))
        if kind == 0:
            name = {"PathSVR": "epsilon", "PathOneClass": "nu"}.get(self.machine, "C")
            value = getattr(self.model, name) * float(rng.choice([0.01, 0.5, 2.0, 30.0]))
            value = min(max(value, 1e-8), 1.0 if name == "nu" else 1e8)
            self.step(
                f"{name} = {value:g}", lambda: self.model.set_params(**{name: value}).intercept_
            )
            return
        if kind == 1:
            self.model = pickle.loads(pickle.dumps(self.model))
        if kind == 2:
            k = n - int(rng.integers(0, 4))
        gone = rng.choice(n, size=min(max(k, 0), n), replace=False)
        if kind == 3:  # all of a class, or all but one
            gone = np.flatnonzero(self.rows[1] == rng.choice(self.rows[1]))
            gone = gone[int(rng.integers(0, 2)) :]
        if kind == 4:
            gone = np.arange(n)
        m += 30 if n - len(gone) < 5 else 0
        self.exchange(self.draw(m), gone, by_content=kind == 5 and not self.given)

    def exchange(self, new: Rows, gone: Array, by_content: bool = False, look: bool = True) -> None:
        """New rows for some."""
        held, before = self.rows, self.model.ids_
        add: Any = (new[0], *new[1:]) if len(new[1]) else None
        if add and self.given:
            at = new[0][:, 0].astype(int), np.concatenate([held[0], new[0]])[:, 0].astype(int)
            add = (self.gram[np.ix_(*at)], *new[1:])
        forget: Any = tuple(part[gone] for part in held) if by_content else before[gone]

        def job() -> None:
            self.model.update(add=add, forget=forget if len(gone) else None)
            left = np.isin(before, self.model.ids_)
            if by_content:
                assert sorted(_keys(held, ~left)) == sorted(_keys(held, gone)), "other rows left"
            self.rows = tuple(np.concatenate([a[left], b]) for a, b in zip(held, new, strict=True))

        if add or len(gone):
            self.step(f"{len(new[1])} in, {len(gone)} of {len(before)} out", job, look)

    def step(self, what: str, job: Callable[[], object], look: bool = True) -> None:
        """An update, and all that is published after it."""
        self.what = what
        if self.say:
            sys.stderr.write(f"{self.name}: {what}\n")
        faulthandler.dump_traceback_later(LIMIT, exit=True)
        start = time.perf_counter()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                job()
            except MemoryError:  # which says that cache_size is too little
                self.model.set_params(cache_size=1000.0)
                self.tally["too little cache"] += 1
                job()
            self.slowest = max(self.slowest, time.perf_counter() - start)
            self.tally["updates"] += 1
            if look:
                self.judge(told)
        faulthandler.cancel_dump_traceback_later()

    # --- verdicts ----------------------------------------------------------------------------

    def judge(self, told: list[Any]) -> None:
        """Compare what is published with the rows."""
        model, X = self.model, self.fresh_values(self.rows)
        labels = model.predict(X)  # first: values of the path will do for these
        problems = list(posed(model, self.rows, self.kernel()))
        said = any(issubclass(w.category, ConvergenceWarning) for w in told)
        self.tally["told"] += said
        worst = 0.0
        for p in problems:
            found, promise = p.violation(), max(1e-9, p.noise() / p.unit)
            worst = max(worst, found)
            if not found <= promise and not said:
                self.wrong("bad", f"{found:.2g}, promised {promise:.2g}")
            if not said:
                self.worst = max(self.worst, found / promise)
            if self.family.definite:
                self.contend(p)
        noise = max((p.noise() / p.unit for p in problems), default=0.0)
        if worst > max(1e-9, noise, 1.1 * model.kkt_residual_):
            self.wrong("untrue", f"{worst:.2g}, and kkt_residual_ is {model.kkt_residual_:.2g}")
        self.compare(problems, labels, X)
        if self.rng.random() < 0.1:
            self.refit()

    def contend(self, p: Posed) -> None:
        """Whether anybody could do better."""
        enough = 1e-9 * abs(p.objective())
        if p.gap() <= enough:
            return
        self.tally["loose"] += 1
        gain = p.gain(300)
        if gain > enough + p.size() * p.noise():
            self.wrong("beaten", f"by {gain:.2g} of {p.objective():.6g}")

    def compare(self, problems: list[Posed], labels: Array, X: Array) -> None:
        """Values and labels are those of the coefficients."""
        model = self.model
        if not problems:  # one class
            if not (labels == model.classes_[0]).all():
                self.wrong("values", "another label than that of the only class")
            return
        f = np.array([p.values(p.alpha, p.b) for p in problems]).T
        kkt = model.kkt_residual_
        near = max(10 * max(max(1e-9, kkt) * p.unit, p.noise()) for p in problems)
        ours = model.predict(X) if isinstance(model, PathSVR) else model.decision_function(X)
        # of other classes' rows two solutions within the promise may say something else
        off = max(
            float(np.abs(ours.reshape(f.shape) - f)[p.row, k].max()) for k, p in enumerate(problems)
        )
        if off > near:
            self.wrong("values", f"off by {off:.2g}")
        if isinstance(model, PathSVR):
            expected = labels
        elif isinstance(model, PathOneClass):
            expected = np.where(f[:, 0] >= 0, 1, -1)
        elif f.shape[1] == 1:
            expected = model.classes_[(f[:, 0] >= 0).astype(int)]
        else:
            won = np.zeros((len(f), 3))
            for k, (i, j) in enumerate(itertools.combinations(range(3), 2)):
                won[:, i] += f[:, k] > 0
                won[:, j] += f[:, k] <= 0
            expected = model.classes_[won.argmax(axis=1)]
        clear = (np.abs(f) > near).all(axis=1)
        if (labels != expected)[clear].any():
            self.wrong("values", f"{(labels != expected)[clear].sum()} labels")

    def refit(self) -> None:
        """Compare the digest with that of a fit to shuffled rows."""
        order = self.rng.permutation(len(self.rows[1]))
        rows: Any = tuple(part[order] for part in self.rows)
        fresh = clone(self.model).set_params(cache_size=1000.0)
        fresh.fit(self.fresh_values(rows), *rows[1:])
        if self.model.ambiguous_ or fresh.ambiguous_:
            self.tally["flagged"] += 1
        elif fresh.digest() == self.model.digest():
            self.tally["equal"] += 1
        else:
            self.wrong("different", "from a fresh fit")

    def kernel(self) -> Array:
        if self.given:
            return self.fresh_values(self.rows).astype(np.longdouble)
        return kernel_values(self.family.options, self.rows[0], self.rows[0])

    def wrong(self, kind: str, how: str) -> None:
        self.tally[kind] += 1
        text = f"{self.name} {kind}: {how}, after {self.what} (update {self.tally['updates']})"
        self.failures.append(text)


def _keys(rows: Rows, which: Any) -> list[str]:
    return [
        repr((x.tolist(), y, w)) for x, y, w in zip(*(part[which] for part in rows), strict=True)
    ]


def run(name: str, length: int = LENGTH, say: bool = False) -> History:
    """A history of random updates; or of swaps of a live model, if there are many."""
    live, it = length > LENGTH, History(name, say)
    try:
        it.begin(LIVE[name.rpartition(":")[0]] if live else 0)
        for k in range(length):
            if live:
                m = int(it.rng.choice([1, 30], p=[0.98, 0.02]))
                gone = it.rng.choice(len(it.rows[1]), size=m, replace=False)
                it.exchange(it.draw(m), gone, look=k % 500 == 499)
            else:
                it.change()
        it.refit()
    except Exception as error:
        if not it.family.definite and "not positive semidefinite" in str(error):
            it.tally["refused"] += 1
        else:
            it.wrong("errors", f"{type(error).__name__}: {error}")
    faulthandler.cancel_dump_traceback_later()
    return it


# --- many processes ------------------------------------------------------------------------------


def work(pipe: Connection) -> None:
    """Run the histories that are asked for."""
    while True:
        it = run(*pipe.recv())
        pipe.send((it.tally, it.failures, it.worst, it.slowest))


class Worker:
    """A process that may die, and what it is doing."""

    def __init__(self) -> None:
        self.pipe, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.get_context("spawn").Process(
            target=work, args=(theirs,), daemon=True
        )
        self.process.start()
        theirs.close()
        self.task: tuple[str, int] = ("", 0)

    def ask(self, task: tuple[str, int]) -> None:
        self.task = task
        self.pipe.send(task)


def tasks(seed: int, count: int, swaps: int) -> Iterator[tuple[str, int]]:
    """Live models first, since they take longest; then each machine on each family, in turn."""
    for name in LIVE if swaps else ():
        yield f"{name}:{seed}", swaps
    pairs = [*itertools.product(ALL, MACHINES)]
    for k in range(count // LENGTH):
        family, machine = pairs[k % len(pairs)]
        yield f"{machine}:{family}:{seed + k // len(pairs)}", LENGTH


def gathered(todo: Iterator[tuple[str, int]], jobs: int, end: float) -> dict[str, Counter[str]]:
    """Run all tasks in some processes until the time is up; what went wrong goes to stderr."""
    totals: dict[str, Counter[str]] = {}
    workers = [worker for _ in range(jobs) if (worker := _next(None, todo, end))]
    while workers:
        for ready in wait([worker.pipe for worker in workers]):
            worker = next(w for w in workers if w.pipe is ready)
            total = totals.setdefault(worker.task[0].split(":")[0], Counter())
            workers.remove(worker)
            try:
                tally, failures, worst, slowest = worker.pipe.recv()
            except EOFError:  # it is dead
                tally, failures = {"dead": 1}, [f"{worker.task[0]} dead: see above"]
                worst, slowest, worker = 0.0, LIMIT, None
            total.update(tally)
            total["worst"] = max(total["worst"], worst)
            total["slowest"] = max(total["slowest"], 1e3 * slowest)
            sys.stderr.write("".join(f"{text}\n" for text in failures))
            if following := _next(worker, todo, end):
                workers.append(following)
    return totals


def _next(worker: Worker | None, todo: Iterator[tuple[str, int]], end: float) -> Worker | None:
    """A worker that has been given the next task, if there is one and time for it."""
    task = next(todo, None) if time.monotonic() < end else None
    if task is None:
        if worker:
            worker.process.terminate()
        return None
    worker = worker or Worker()
    worker.ask(task)
    return worker


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=2000, help="updates in all")
    parser.add_argument("--swaps", type=int, default=0, help="of each live model")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=600.0)
    parser.add_argument("--history", help="run one again, MACHINE:FAMILY:SEED")
    given = parser.parse_args()
    if given.history:
        it = run(given.history, say=True)
        sys.exit("\n".join(it.failures))
    end = time.monotonic() + 60 * given.minutes
    totals = gathered(tasks(given.seed, given.count, given.swaps), given.jobs, end)
    everything = totals["all"] = Counter[str]()
    for name, total in totals.items():
        if name != "all":
            everything.update({key: n for key, n in total.items() if key not in LARGEST})
            everything |= {key: total[key] for key in LARGEST}
        counts = " ".join(
            f"{key} {n:.3g}" if key in LARGEST else f"{key} {n}" for key, n in sorted(total.items())
        )
        sys.stdout.write(f"{name:14s} {counts}\n")
    sys.exit(any(everything[kind] for kind in WRONG))


if __name__ == "__main__":
    main()
