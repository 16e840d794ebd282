"""A round of many sites, all in one process, beside the plain merge of their knowledge.

    make bench-federation                           two minutes
    python -m benchmarks.federation --quick         few sites and features

100 sites, 784 features and ten classes; of the sites 30 drop out, at each step in turn. The time is
that of the processor, of all sites and the coordinator together, in one thread, with agreements as
they are by default: a third of the sites may collude. Writes federation.json to benchmarks/results.
"""

from __future__ import annotations

import time

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from benchmarks.findings import Findings, Record, main
from papers.claims import Claim
from traceless import Knowledge
from traceless.features import Linear
from traceless.federation import Agreement, Coordinator, Site, public_key
from traceless.federation.messages import SENT

OURS, PLAIN = "masked", "plain merge"


def measure(quick: bool) -> Findings:
    n, J, silent = (12, 60, 3) if quick else (100, 784, 30)
    rng = np.random.default_rng(0)
    piece = Knowledge.of(Linear(), rng.standard_normal((200, J - 1)), np.repeat(np.arange(10), 20))
    keys = {f"site{k:03}": Ed25519PrivateKey.generate() for k in range(n)}
    agreement = Agreement.like(piece, {name: public_key(key) for name, key in keys.items()})
    records, claims, upload = [], [], 0
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
        claims.append(Claim(f"Seconds / 15, {case}", (middle - begin) / 15.0, 1.0))
    claims.append(Claim("An upload / its sums", upload / agreement.words(piece).nbytes, 1.1))
    k, t = agreement.neighbours(n)
    said = f"Each site shares its seeds with {k} others, of which {t} restore them."
    return Findings(records, claims, [said, f"An upload has {upload} bytes."])


if __name__ == "__main__":
    main(measure, __doc__)
