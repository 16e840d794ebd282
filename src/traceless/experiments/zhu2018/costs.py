"""(e) The costs that the model needs, measured on this machine, on one thread.

Features are a random layer over 64 columns. Sums are scaled up to about 2^60, as if of
10^10 rows, so that the solve has as many digits to work on as it would have there; for
Python integers to beyond 2^63.
"""

from __future__ import annotations

import pickle
import socket
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from scipy.linalg import cho_factor

from traceless import wESVM
from traceless.arithmetic.integers import shift_left
from traceless.experiments.conduct import shown
from traceless.experiments.verdict import Row, Rows
from traceless.experiments.zhu2018.cost_model import (
    GATHER,
    SOLVE,
    Costs,
    Handling,
    evaluated,
    fitted,
)
from traceless.experiments.zhu2018.plan import SCALE, Plan
from traceless.experiments.zhu2018.workers import PIECES, synthetic, written
from traceless.features import RandomLayer
from traceless.knowledge.sums import Knowledge
from traceless.timing import Job, interleaved_medians

ROWS = (1_024, 6_144)  # gathered, to tell costs of a row from those of a piece
LARGEST = 9e7  # bytes of the matrices that are solved
GATHERED_CLASSES = (2, 10)
BITS = {"int64": 60, "Python integers": 70}  # of the largest sum
Point = tuple[float, float, float]
Jobs = dict[Point, Callable[[], Job]]


@dataclass(frozen=True)
class Measured:
    """The costs, and the times they come from, with those kept back for a test."""

    costs: Costs
    rows: Rows


def layer(J: int) -> RandomLayer:
    """A map with J features, the constant one among them."""
    return RandomLayer(J - 1, scale=SCALE)


def gathered(n: int, J: int, K: int, classwise: bool = True) -> Knowledge:
    """The knowledge of synthetic rows."""
    return Knowledge.of(layer(J), *synthetic(n, K), classwise=classwise)


def scaled(known: Knowledge, bits: int) -> Knowledge:
    """The same with sums over all classes as large as those of many more rows."""
    more = bits - int(known.gram.max()).bit_length()
    sums = shift_left(known.sums, more)
    return replace(known, sums=sums, counts=tuple(n << more for n in known.counts))


def measure(plan: Plan) -> Measured:
    """All costs."""
    gather, rows = _gathering(plan)
    solves, cubic = {}, _factor_seconds(2 * plan.widths[-1])
    for how in SOLVE:
        solves[how], more = _solving(plan, how, cubic)
        rows += more
    J = plan.widths[-2]
    narrow, wide = (_handling(scaled(gathered(2 * J, J, 10), b)) for b in BITS.values())
    costs = Costs(
        gather=gather,
        solve=solves,
        narrow=narrow,
        wide=wide,
        wide_solve=_wide_solve(plan.widths[0]),
        file=_file_seconds(),
        loopback=_loopback_seconds(),
        dispatch=_dispatch_seconds(),
        mean_square=mean_square(),
    )
    return Measured(costs, rows)


def mean_square() -> float:
    """The largest mean of φ² over the features of a layer."""
    Phi = layer(256).transform(synthetic(2_000, 2)[0])[:, :-1]
    return float((Phi * Phi).mean(axis=0).max())


# --- gathering and solving: fitted, with the widest kept back ---------------------------------


def _gathering(plan: Plan) -> tuple[dict[str, float], Rows]:
    jobs: Jobs = {}
    for J in plan.widths:
        for K in GATHERED_CLASSES:
            for n in ROWS:
                jobs[n, J, K] = partial(_gather, n, J, K)
    times = interleaved_medians(jobs, shown(range(plan.rounds + 1), "(e) gathering"))
    used = {p: s for p, s in times.items() if p[1] != plan.widths[-1]}
    coefficients = fitted(GATHER, list(used), list(used.values()))
    rows = [
        _told("gather", p, s, evaluated(GATHER, coefficients, *p), p in used)
        for p, s in times.items()
    ]
    return coefficients, rows


def _gather(n: int, J: int, K: int) -> Job:
    phi, (X, y) = layer(J).bind(64), synthetic(n, K)
    return lambda: Knowledge.of(phi, X, y, classwise=True)


def _factor_seconds(J: int) -> float:
    """Seconds of a Cholesky factorisation by J³: too small a part of the times to be fitted."""
    A = np.eye(J) + 1.0 / J
    return _median(lambda: partial(cho_factor, A, check_finite=False), range(4)) / J**3


def _solving(plan: Plan, how: str, cubic: float) -> tuple[dict[str, float], Rows]:
    jobs: Jobs = {}
    for J in plan.widths:
        for K in plan.class_numbers:
            matrices = 1 if how == "pooled" else K
            alike = how == "one_vs_rest" and K == 2  # two classes have one problem only
            if 8 * matrices * J * J <= LARGEST and not alike:
                sums = scaled(gathered(4 * J, J, K, how != "pooled"), BITS["int64"])
                jobs[0, J, K] = partial(_solve, sums, how)
    times = interleaved_medians(jobs, shown(range(plan.rounds + 1), f"(e) solving, {how}"))
    used = {p: s for p, s in times.items() if p[1] != plan.widths[-1]}
    known = {next(iter(SOLVE[how])): cubic}
    coefficients = fitted(SOLVE[how], list(used), list(used.values()), known)
    rows = [
        _told(f"solve, {how}", p, s, evaluated(SOLVE[how], coefficients, *p), p in used)
        for p, s in times.items()
    ]
    return coefficients, rows


def _solve(known: Knowledge, how: str) -> Job:
    """Compute the coefficients, with a ridge in proportion to the number of rows."""
    rule, scope = (None, "shared") if how == "pooled" else ("balanced", how)
    C = 1e4 / known.n_samples
    model = wESVM(known.n_outputs - 1, C, class_weight=rule, weighting=scope, scale=SCALE)
    model.merge(known)
    return lambda: model.feature_coef_


def _wide_solve(J: int) -> float:
    """Further seconds for each entry of a matrix, where entries are Python integers."""
    known = gathered(4 * J, J, 2)
    narrow, wide = (
        _median(partial(_solve, scaled(known, bits), "shared")) for bits in BITS.values()
    )
    return max(0.0, wide - narrow) / (2 * J * J)


def _told(what: str, point: Point, seconds: float, predicted: float, used: bool) -> Row:
    n, J, K = (int(v) for v in point)
    return {
        "what": what,
        "workers": 1,
        "rows": n,
        "features": J,
        "classes": K,
        "measured": seconds,
        "predicted": predicted,
        "used": "fitted" if used else "kept back",
    }


# --- pieces and where they travel --------------------------------------------------------------


def _handling(known: Knowledge) -> Handling:
    """Seconds for each packed integer of a piece."""
    packed = pickle.dumps(known, protocol=pickle.HIGHEST_PROTOCOL)
    K, J = len(known.responses), known.n_outputs + 1
    entries = K * J * (J + 1) / 2
    dump = partial(pickle.dumps, known, protocol=pickle.HIGHEST_PROTOCOL)
    return Handling(
        add=_median(lambda: lambda: known + known) / entries,
        dump=_median(lambda: dump) / entries,
        load=_median(lambda: partial(pickle.loads, packed)) / entries,
        size=len(packed) / entries,
    )


def _file_seconds(size: int = 2**24) -> float:
    """Seconds to write a byte to a temporary file and read it again."""
    data = bytes(size)
    with tempfile.TemporaryDirectory(prefix="traceless-") as folder:
        file = Path(folder) / "piece"

        def there_and_back() -> None:
            file.write_bytes(data)
            file.read_bytes()

        return _median(lambda: there_and_back) / size


def _loopback_seconds(size: int = 2**25) -> float:
    """Seconds for a byte through a connection of this machine with itself."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return _median(lambda: partial(_send, server.getsockname(), server, bytes(size))) / size


def _send(address: tuple[str, int], server: socket.socket, data: bytes) -> None:
    with socket.create_connection(address) as sender:
        receiver, _ = server.accept()
        with receiver:
            thread = threading.Thread(target=sender.sendall, args=(data,))
            thread.start()
            buffer = bytearray(2**20)
            left = len(data)
            while left:
                left -= receiver.recv_into(buffer)
            thread.join()


def _dispatch_seconds() -> float:
    """Seconds of a round of tasks in two processes that have next to nothing to do."""
    rounds = 1 + (PIECES - 1).bit_length()  # gathering, then pairs
    with tempfile.TemporaryDirectory(prefix="traceless-") as folder:
        source = written(Path(folder), 16 * PIECES, 2, PIECES)
        model = wESVM(8, n_jobs=2)
        return _median(lambda: lambda: model.partial_fit(source)) / rounds


def _median(prepare: Callable[[], Job], rounds: Sequence[object] = range(6)) -> float:
    return interleaved_medians({"one": prepare}, rounds)["one"]
