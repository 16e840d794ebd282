"""A round of Flower's SecAgg+ in one process: its own workflow and clients, without a network.

Messages are handed over as they are, not as bytes, which spares SecAgg+ what ours pays for.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from copy import deepcopy
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.client.mod import secaggplus_mod
from flwr.common import Code, FitRes, Status, ndarrays_to_parameters
from flwr.compat.common import recorddict_compat as compat
from flwr.server import LegacyContext, ServerConfig, SimpleClientManager
from flwr.server.compat.grid_client_proxy import GridClientProxy
from flwr.server.strategy import FedAvg
from flwr.server.workflow import SecAggPlusWorkflow
from flwr.supercore.task_identity import TaskIdentity

STEPS = ["keys", "shares", "sums", "opened"]  # as ours are called


class Loopback:
    """A grid whose nodes are in this process."""

    def __init__(self, pieces: list[np.ndarray], silent: int, step: str) -> None:
        self.pieces, self.silent, self.step = pieces, silent, step
        self.contexts = {k: Context(0, k, {}, RecordDict(), {}) for k in range(1, len(pieces) + 1)}
        self.steps = iter(STEPS)

    def send_and_receive(self, messages: Iterable[Message], **_: Any) -> list[Message]:
        """What the workflow calls in each step: the replies of those who have not dropped out."""
        absent = self.silent if next(self.steps) == self.step else 0
        return [self._reply(message) for message in sorted(messages, key=node_of)[absent:]]

    def _reply(self, message: Message) -> Message:
        node = node_of(message)
        return secaggplus_mod(deepcopy(message), self.contexts[node], self._fit)

    def _fit(self, message: Message, context: Context) -> Message:
        parameters = ndarrays_to_parameters([self.pieces[context.node_id - 1]])
        result = FitRes(Status(Code.OK, ""), parameters, 200, {})
        return Message(compat.fitres_to_recorddict(result, keep_input=True), reply_to=message)


def node_of(message: Message) -> int:
    return int(message.metadata.dst_node_id)


def a_round(pieces: list[np.ndarray], shares: int, enough: int, silent: int, step: str) -> Any:
    """Processor seconds of a round, and the mean that it found, of pieces within ±8.

    Each site gives shares to so many others, as near as SecAgg+ can: it wants an odd number, and
    one of them is the site's own.
    """
    grid, manager = Loopback(pieces, silent, step), SimpleClientManager()
    for node in grid.contexts:
        manager.register(GridClientProxy(node, grid, 0))
    state = RecordDict()
    context = LegacyContext(
        Context(0, 0, {}, state, {}), ServerConfig(), FedAvg(inplace=False), manager
    )
    logging.getLogger("flwr").setLevel("ERROR")
    TaskIdentity.task_id = TaskIdentity.run_id = TaskIdentity.node_id = 0  # the server's
    state["config"] = ConfigRecord({"current_round": 1})
    state["parameters"] = ArrayRecord([np.zeros_like(pieces[0])])
    begin = time.process_time()
    SecAggPlusWorkflow(min(shares + 1 | 1, len(pieces)), enough)(grid, context)
    seconds = time.process_time() - begin
    return seconds, state["parameters"].to_numpy_ndarrays()[0]
