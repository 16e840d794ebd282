"""A device's memory: what is sent there, what comes back, and what is done where it is short.

A device reads and writes pinned pages of the host without the processor's help. All others are
copied to such pages first, a piece at a time: while one piece is on its way, the next is copied.
Rows that stay in the host's memory (`traceless.device.tensors.HostRows`) are sent block by block,
by a thread and a stream of their own: the device works on one block while the next one comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from traceless.device.tensors import HostRows, Tensor, kind_of

T = TypeVar("T")
OutOfMemoryError = torch.cuda.OutOfMemoryError
_PIECE = 2**25  # bytes that are on their way together
_BLOCK = 2**30  # bytes of a block of rows


def send(host: Tensor, out: Tensor) -> None:
    """Copy a tensor of the host to one of its shape on a device."""
    if not out.is_cuda or host.is_pinned():
        out.copy_(host, non_blocking=out.is_cuda)
        return
    stream = torch.cuda.current_stream(out.device)
    for some, page, done in _pieces(host):
        done.synchronize()  # what was on this page before has left
        page.copy_(host[some])
        out[some].copy_(page, non_blocking=True)
        done.record(stream)


def touched(shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    """An array whose pages are there already: most of the time of a copy to new ones."""
    out = np.empty(shape, dtype=dtype)
    torch.from_numpy(out).zero_()
    return out


def fetch(tensor: Tensor, out: NDArray[Any] | None = None) -> NDArray[Any]:
    """A tensor as an array, in memory of its own, or in an array that is given."""
    out = np.empty(tuple(tensor.shape), dtype=kind_of(tensor)) if out is None else out
    host = torch.from_numpy(out)
    if not tensor.is_cuda:
        host.copy_(tensor)
        return out
    stream, before = torch.cuda.current_stream(tensor.device), None
    for some, page, done in _pieces(host):
        page.copy_(tensor[some], non_blocking=True)
        done.record(stream)
        if before is not None:
            _arrive(host, *before)
        before = some, page, done
    if before is not None:
        _arrive(host, *before)
    return out


def _arrive(host: Tensor, some: slice, page: Tensor, done: Any) -> None:
    done.synchronize()
    host[some].copy_(page)


def _pieces(host: Tensor) -> Iterator[tuple[slice, Tensor, Any]]:
    """Rows of a tensor, pinned pages for them, two in turn, and an event for each."""
    n = len(host)
    rows = max(1, min(n, _PIECE // max(1, host[:1].numel() * host.element_size())))
    shape = rows, *host.shape[1:]
    pages = [
        (torch.empty(shape, dtype=host.dtype, pin_memory=True), torch.cuda.Event())
        for _ in range(2)
    ]
    for start, (page, done) in zip(range(0, n, rows), cycle(pages), strict=False):
        some = slice(start, min(start + rows, n))
        yield some, page[: some.stop - start], done


def block_rows(X: HostRows, most: int) -> int:
    """How many rows should be sent together."""
    each = max(1, X.shape[1] * X.tensor.element_size())
    return int(max(1, min(most, _BLOCK // each)))


def streamed(X: HostRows, parts: Sequence[Any]) -> Iterator[Tensor]:
    """Parts of rows, given by slices or indices, on the device: one is there, the next comes."""
    if X.device.type != "cuda":
        yield from map(X.__getitem__, parts)
        return
    coming = torch.cuda.Stream(X.device)
    with ThreadPoolExecutor(1) as sender:
        ahead = [sender.submit(_sent, X, some, coming) for some in parts[:1]]
        for k in range(len(parts)):
            block, done = ahead.pop().result()
            ahead += [sender.submit(_sent, X, some, coming) for some in parts[k + 1 : k + 2]]
            work = torch.cuda.current_stream(X.device)
            work.wait_event(done)
            block.record_stream(work)
            yield block
            del block


def _sent(X: HostRows, some: Any, stream: Any) -> tuple[Tensor, Any]:
    """A part of rows on its way, and the event of its arrival."""
    host = X.tensor[some]
    with torch.cuda.stream(stream):
        block = torch.empty(tuple(host.shape), dtype=host.dtype, device=X.device)
        send(host, block)
        return block, stream.record_event()


def answered(X: HostRows, work: Callable[[Tensor], Tensor], size: int) -> Tensor:
    """What is found for rows on the device, so many at a time, in the host's memory."""
    n = len(X)
    parts = [slice(start, min(start + size, n)) for start in range(0, n, size)]
    return torch.cat([torch.from_numpy(fetch(work(block))) for block in streamed(X, parts)])


def smaller(work: Callable[[int], T], size: int, fewest: int, needs: Callable[[], str]) -> T:
    """Work in blocks of so many rows; anew with half of them, and half again, if memory is short.

    Below `fewest` it raises MemoryError with what is needed.
    """
    while True:
        try:
            return work(size)
        except OutOfMemoryError as error:
            if size // 2 < fewest:
                raise MemoryError(needs()) from error
        size //= 2
        torch.cuda.empty_cache()


def free_there(device: Any) -> str:
    """How much of a device's memory is free, in words."""
    if device.type != "cuda":
        return "less is free"
    return f"{torch.cuda.mem_get_info(device)[0] / 2**30:.1f} GiB are free there"
