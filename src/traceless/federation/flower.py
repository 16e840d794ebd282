"""A round over Flower (`flwr`): its nodes are the sites, its server is the coordinator.

In the client's app, which keeps what the site must remember in Flower's own state of the node:

    @app.query()
    def query(message, context):
        return flower.answer(message, context, key, lambda: Site(terms, name, key, knowledge))

and in the server's ``total = flower.run(grid, Coordinator(terms))``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from traceless.exceptions import FederationError
from traceless.federation.agreement import require
from traceless.federation.coordinator import Coordinator
from traceless.federation.site import Site
from traceless.knowledge import Knowledge

_NAME = "traceless"


def answer(message: Any, context: Any, key: Any, new_site: Callable[[], Site]) -> Any:
    """The reply of a node to a message of `run`.

    Parameters
    ----------
    message, context : of flwr.app
    key : Ed25519PrivateKey
        Of this site.
    new_site : callable() -> Site
        The site at the beginning of a round.
    """
    from flwr.app import ConfigRecord, Message, RecordDict

    told: bytes = message.content[_NAME]["data"]
    site = Site.from_bytes(context.state[_NAME]["data"], key) if told else new_site()
    reply = ConfigRecord({"data": site.answer(told) if told else site.start()})
    context.state[_NAME] = ConfigRecord({"data": site.to_bytes()})
    return Message(RecordDict({_NAME: reply}), reply_to=message)


def run(grid: Any, coordinator: Coordinator, timeout: float | None = None) -> Knowledge:
    """A whole round over the nodes of a grid; returns the total.

    Parameters
    ----------
    grid : flwr.serverapp.Grid
    coordinator : Coordinator
    timeout : float, optional
        Seconds to wait in each step; a node that has not replied by then has dropped out.
    """
    from flwr.app import ConfigRecord, Message, RecordDict

    told, nodes = dict.fromkeys(grid.get_node_ids(), b""), dict[str, int]()
    while coordinator.step:
        sent = {node: RecordDict({_NAME: ConfigRecord({"data": told[node]})}) for node in told}
        letters = [Message(content, node, "query") for node, content in sent.items()]
        for reply in grid.send_and_receive(letters, timeout=timeout):
            try:
                require(not reply.has_error(), f"A node has failed: {reply}")
                nodes[coordinator.take(reply.content[_NAME]["data"])] = reply.metadata.src_node_id
            except FederationError as error:
                warnings.warn(str(error), stacklevel=2)
        told = {nodes[name]: data for name, data in coordinator.next().items()}
    return coordinator.knowledge
