"""A round of `traceless.federation` over Flower (flwr), as an app: four sites, then their total.

python flower_round.py        in Flower's simulation, with Ray
flwr run FOLDER               with a SuperLink and SuperNodes: tests/federation/test_flower.py
"""

import time
from hashlib import sha256
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp

from traceless import LSSVC, Knowledge
from traceless.federation import Agreement, Coordinator, Site, flower, public_key

NAMES = [f"site{k}" for k in range(4)]
client = ClientApp()
server = ServerApp()  # an assignment of its own, as flwr reads it


def key_of(name: str) -> Ed25519PrivateKey:
    """Of an example: a site has a secret key, and alone. Ray could not pickle one made above."""
    return Ed25519PrivateKey.from_private_bytes(sha256(name.encode()).digest())


def knowledge_of(name: str) -> Knowledge:
    X = np.random.default_rng(NAMES.index(name)).standard_normal((100, 5))
    return LSSVC().fit(X, X[:, 0] > 0).knowledge_


def terms() -> Agreement:
    keys = {name: public_key(key_of(name)) for name in NAMES}
    return Agreement.like(knowledge_of(NAMES[0]), keys)


@client.query()  # type: ignore[untyped-decorator]
def query(message: Any, context: Any) -> Any:
    name = NAMES[int(context.node_config["partition-id"])]
    key = key_of(name)
    return flower.answer(
        message, context, key, lambda: Site(terms(), name, key, knowledge_of(name))
    )


@server.main()  # type: ignore[untyped-decorator]
def main(grid: Any, context: Any) -> None:  # noqa: ARG001
    while len([*grid.get_node_ids()]) < len(NAMES):
        time.sleep(0.1)
    total = flower.run(grid, Coordinator(terms()), timeout=200)
    pieces = [knowledge_of(name) for name in NAMES]
    same = total.digest() == sum(pieces[1:], pieces[0]).digest()
    print(f"the total of {total.n_samples} rows is the plain merge: {same}", flush=True)


if __name__ == "__main__":
    from flwr.simulation import run_simulation

    run_simulation(server, client, len(NAMES), backend_config={"client_resources": {"num_cpus": 1}})
