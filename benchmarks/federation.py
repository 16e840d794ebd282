"""A round of many sites, all in one process, beside the plain merge and Flower's SecAgg+.

    make bench-federation                           four minutes, in the environment of Flower
    python -m benchmarks.federation --quick         few sites and features

100 sites, 784 features and ten classes; of the sites 30 drop out, at each step in turn. The time is
that of the processor, of all sites and the coordinator together, in one thread, with agreements as
they are by default: a third of the sites may collude. SecAgg+ is run by its own workflow and
clients, with as many shares and the same threshold, on the same sums as float64 scaled to its
range. It has no step of signatures, and its round breaks off (a KeyError in flwr 1.41) where a site
drops out before it has sent shares. Writes federation.json to benchmarks/results.
"""

from __future__ import annotations

import time
from importlib.util import find_spec

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from benchmarks.findings import Findings, Record, main
from papers.claims import Claim
from traceless import Knowledge
from traceless.arithmetic import integers
from traceless.features import Linear
from traceless.federation import Agreement, Coordinator, Site, public_key
from traceless.federation.messages import SENT

OURS, PLAIN, PEER = "masked", "plain merge", "SecAgg+"


def measure(quick: bool) -> Findings:
    n, J, silent = (12, 60, 3) if quick else (100, 784, 30)
    rng = np.random.default_rng(0)
    piece = Knowledge.of(Linear(), rng.standard_normal((200, J - 1)), np.repeat(np.arange(10), 20))
    keys = {f"site{k:03}": Ed25519PrivateKey.generate() for k in range(n)}
    agreement = Agreement.like(piece, {name: public_key(key) for name, key in keys.items()})
    records, claims, upload, errors = [], [], 0, list[float]()
    k, t = agreement.neighbours(n)
    sums = np.asarray(integers.packed(piece.total), float)
    scaled = sums / np.abs(sums).max() * 8.0  # SecAgg+ clips beyond ±8
    flower = find_spec("flwr") is not None
    for step in SENT[:-1]:
        begin = time.process_time()
        sites = {name: Site(agreement, name, keys[name], piece) for name in keys}
        coordinator, letters = Coordinator(agreement), [site.start() for site in sites.values()]
        while coordinator.step:
            if coordinator.step == "sums":
                upload = max(map(len, letters))
            for letter in letters[silent if coordinator.step == step else 0 :]:
                coordinator.take(letter)
            told = coordinator.next()
            letters = [sites[name].answer(data) for name, data in told.items()]
        middle = time.process_time()
        total = sum([piece] * (len(coordinator.survivors) - 1), piece)
        end, case = time.process_time(), f"{silent} drop out before {step!r}"
        if coordinator.knowledge.digest() != total.digest():
            raise AssertionError("The total is not the plain merge.")
        job = f"{n} sites, {J} features"
        records += [Record(job, OURS, middle - begin, case), Record(job, PLAIN, end - middle, case)]
        if flower and step in ("sums", "opened"):
            from benchmarks import secagg_plus

            seconds, mean = secagg_plus.a_round([scaled] * n, k, t, silent, step)
            records.append(Record(job, PEER, seconds, case))
            errors.append(float(np.abs(mean - scaled).max() / 8.0))
        claims.append(Claim(f"Seconds / 15, {case}", (middle - begin) / 15.0, 1.0))
    claims.append(Claim("An upload / its sums", upload / agreement.words(piece).nbytes, 1.1))
    notes = [
        f"Each site shares its seeds with {k} others, of which {t} restore them.",
        f"An upload has {upload} bytes; of SecAgg+ {scaled.nbytes}, as int64.",
    ]
    if flower:
        notes.append(
            f"The largest error of SecAgg+ is {max(errors):.1g} of the largest sum; ours is 0."
        )
    else:
        notes.append("Flower is not here, so SecAgg+ was not timed: make bench-federation has it.")
    return Findings(records, claims, notes)


if __name__ == "__main__":
    main(measure, __doc__)
