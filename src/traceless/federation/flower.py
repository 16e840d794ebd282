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

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from traceless.exceptions import FederationError
from traceless.federation.coordinator import Coordinator
from traceless.federation.site import Site
from traceless.knowledge import Knowledge

_NAME = "traceless"


def answer(message: Any, context: Any, key: Ed25519PrivateKey, new_site: Callable[[], Site]) -> Any:
    """The reply of a node to a message of `run`.

    Parameters
    ----------
    message, context : of flwr.app
    key : Ed25519PrivateKey
        Of this site.
    new_site : callable() -> Site
        The site at the beginning of a round.
    """
    from flwr.app import Message

    data: bytes = message.content[_NAME]["data"]
    if data:
        site = Site.from_bytes(context.state[_NAME]["data"], key)
        reply = site.answer(data)
    else:
        site = new_site()
        reply = site.start()
    context.state[_NAME] = _record(site.to_bytes())
    return Message(_content(reply), reply_to=message)


def run(grid: Any, coordinator: Coordinator, timeout: float | None = None) -> Knowledge:
    """A whole round over the nodes of a grid; returns the total.

    Parameters
    ----------
    grid : flwr.serverapp.Grid
    coordinator : Coordinator
    timeout : float, optional
        Seconds to wait in each step; a node that has not replied by then has dropped out.
    """
    from flwr.app import Message, MessageType

    nodes: dict[str, int] = {}
    outgoing = dict.fromkeys(grid.get_node_ids(), b"")
    while coordinator.step:
        letters = [
            Message(_content(data), node, MessageType.QUERY) for node, data in outgoing.items()
        ]
        for reply in grid.send_and_receive(letters, timeout=timeout):
            if reply.has_error():
                warnings.warn(f"A node has failed: {reply.error.reason}", stacklevel=2)
                continue
            try:
                name = coordinator.take(reply.content[_NAME]["data"])
            except FederationError as error:
                warnings.warn(f"A message is refused: {error}", stacklevel=2)
            else:
                nodes[name] = reply.metadata.src_node_id
        outgoing = {nodes[name]: data for name, data in coordinator.next().items()}
    return coordinator.knowledge


def _record(data: bytes) -> Any:
    from flwr.app import ConfigRecord

    return ConfigRecord({"data": data})


def _content(data: bytes) -> Any:
    from flwr.app import RecordDict

    return RecordDict({_NAME: _record(data)})
