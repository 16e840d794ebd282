"""Two processes learn their own embeddings, add up what they know, and have the digest of one.

Each process stands for a GPU: with one there, its rows are on it. Knowledge is gathered over
torch.distributed (gloo, which needs no GPU) and added up by the first.

python examples/two_processes.py
"""

from __future__ import annotations

import os
import socket
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from traceless import LSSVC, Knowledge
from traceless.features import Linear

ROWS, FEATURES, CLASSES, PROCESSES = 4000, 64, 5, 2


def embeddings(rank: int) -> tuple[Any, Any]:
    """The rows of one process, as a frozen network might leave them."""
    torch.manual_seed(rank)
    y = torch.randint(0, CLASSES, (ROWS,))
    X = torch.randn(ROWS, FEATURES) + 2.0 * torch.nn.functional.one_hot(y, FEATURES)
    device = f"cuda:{rank}" if torch.cuda.device_count() > rank else "cpu"
    return X.to(device), y.to(device)


def learn(rank: int, port: int) -> None:
    """What each process does."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=PROCESSES)
    mine = Knowledge.of(Linear(), *embeddings(rank))
    parts = [None] * PROCESSES if rank == 0 else None
    dist.gather_object(mine, parts)
    if parts is not None:
        together = LSSVC().merge(sum(parts))
        X, y = (torch.cat(part) for part in zip(*map(embeddings, range(PROCESSES)), strict=True))
        alone = LSSVC().fit(X.cpu(), y.cpu())
        print(f"two processes: {together.digest()[:16]}, {together.n_samples_} rows")
        print(f"one process:   {alone.digest()[:16]}, {alone.n_samples_} rows")
        assert together.digest() == alone.digest()
        together.merge(-mine)  # the first leaves again, with its rows
        print(f"one has left:  {together.n_samples_} rows")
    dist.destroy_process_group()


def main() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mp.spawn(learn, args=(port,), nprocs=PROCESSES)


if __name__ == "__main__":
    main()
