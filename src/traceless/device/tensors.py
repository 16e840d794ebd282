"""What may come in place of a NumPy array: torch tensors, and whatever speaks DLPack.

Rows are worked on where they are. Those in the host's memory become NumPy arrays and go the usual
way; those on a device stay tensors, and `HostRows` are sent there. torch is imported only once one
of these has come.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
from scipy.sparse import issparse

Tensor = Any  # torch.Tensor, where torch is installed

HOST = frozenset({"cpu"})  # kinds of devices whose memory NumPy reads
_DLPACK_HOST = frozenset({1, 3})  # numbers that DLPack gives to the host's memory: plain, pinned
LARGE = 1024  # features, from which on a GPU solves a system faster than the host
_PLAIN = frozenset({np.ndarray, list, tuple, int, float, type(None)})  # types that are surely here
_NARROW = frozenset({"float16", "bfloat16", "float32", "float64"})
_WHOLE = frozenset({"bool", "uint8", "int8", "int16", "int32", "int64"})
_SORTED = _WHOLE | _NARROW - {"bfloat16"}  # types of labels that torch sorts, and NumPy has
_TAKEN = "give float16, bfloat16, float32, float64, int8 to int64, uint8 or bool"


def is_tensor(value: Any) -> bool:
    """Whether something is a torch tensor; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


class HostRows:
    """Rows in the host's memory that a device is to work on; made by `traceless.on_device`.

    Attributes
    ----------
    given : array or tensor
        What they came as.
    tensor : torch.Tensor
        The same memory.
    device : torch.device
    """

    def __init__(self, given: Any, tensor: Tensor, device: Any) -> None:
        self.given, self.tensor, self.device = given, tensor, device
        self.shape, self.ndim, self.dtype = tuple(tensor.shape), tensor.ndim, tensor.dtype

    def __len__(self) -> int:
        return len(self.tensor)

    def __getitem__(self, rows: Any) -> Tensor:
        """Some rows, on the device."""
        return self.tensor[rows].to(self.device)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """The rows where they are, for whatever works on the host alone."""
        return np.array(to_array(self), dtype=dtype, copy=copy)


def sent_rows(rows: Any, device: Any) -> Any:
    """Rows of the host's memory for a device; those that are there, or sparse, as they are."""
    try:
        import torch
    except ImportError as error:
        message = "Work on a device needs torch: pip install 'traceless[torch]'."
        raise ImportError(message) from error
    there = torch.device(device)
    _check_there(there)
    rows = rows if is_tensor(rows) else taken(rows)
    if there.type in HOST or is_on_device(rows) or issparse(rows):
        return rows
    if is_tensor(rows):
        return HostRows(rows, _dense(rows), there)
    array = np.asarray(rows)
    try:
        return HostRows(rows, as_tensor(array), there)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"Rows of {array.dtype!r} with strides {array.strides} cannot be sent to {there}: "
            f"{_TAKEN}, in the machine's order of bytes and without negative strides, such as "
            "numpy.ascontiguousarray(rows, dtype='float64')."
        ) from error


def _check_there(device: Any) -> None:
    """Raise if rows cannot be sent to a device."""
    torch = sys.modules["torch"]
    if device.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if (device.index or 0) < count:
            return
        sees = f"{count} GPU(s), numbered from 0" if count else "no GPU"
        raise ValueError(
            f"Rows were to be sent to {device}; torch {torch.__version__} sees {sees}."
        )
    try:
        there = torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ValueError(
            f"Rows were to be sent to {device}; torch {torch.__version__} has no such device: "
            f"{error}"
        ) from error
    _dense(there)


def is_on_device(value: Any) -> bool:
    """Whether something is rows that a device works on."""
    if type(value) in _PLAIN:
        return False
    return type(value) is HostRows or (is_tensor(value) and value.device.type not in HOST)


def taken(value: Any) -> Any:
    """An array as the library takes it: for NumPy where the host has it, else as a torch tensor.

    Anything that is not an array of a device, or a tensor, comes back as it is.
    """
    if type(value) in _PLAIN:
        return value
    if is_tensor(value):
        tensor = _dense(value)
        return to_array(tensor) if tensor.device.type in HOST else tensor
    where = getattr(value, "__dlpack_device__", None)
    if where is None:
        return value
    if where()[0] in _DLPACK_HOST:
        return value if hasattr(value, "__array__") else np.from_dlpack(value)
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            f"{type(value).__name__} has its numbers on a device, where torch would work on them: "
            "pip install 'traceless[torch]', or bring them to the host first."
        ) from error
    try:
        there = torch.from_dlpack(value)
    except (RuntimeError, AssertionError, BufferError) as error:
        raise ValueError(
            f"{type(value).__name__} has its numbers on a device that torch {torch.__version__} "
            f"does not reach ({error}): bring them to the host first, or install a torch for it."
        ) from error
    return taken(there)


def _dense(tensor: Tensor) -> Tensor:
    """A tensor without its gradient, as its memory has it; raises if it is sparse, or has none."""
    if tensor.layout != sys.modules["torch"].strided:
        raise TypeError(
            f"Tensors of the layout {tensor.layout} are not taken: give a dense tensor "
            "(tensor.to_dense()), or a matrix of scipy.sparse."
        )
    if tensor.is_meta:
        raise TypeError(
            f"A tensor of shape {tuple(tensor.shape)} on the device 'meta' has a shape and no "
            "numbers, so there is nothing to learn or to predict from. Give it on 'cpu' or a GPU."
        )
    return tensor.detach().resolve_conj().resolve_neg()  # kernels read memory without these flags


def taken_rows(rows: tuple[Any, ...]) -> tuple[Any, ...]:
    """(X, y, weight) as the library takes them; labels and weights go where they are read.

    Labels on a device go to that of the rows, if they are one for each row in a type that torch
    sorts. Everything else that stands beside rows is for the host.
    """
    if _PLAIN.issuperset(map(type, rows)):
        return rows
    X, y, *beside = map(taken, rows)
    sorts = is_on_device(X) and is_tensor(y) and y.ndim == 1 and kind_of(y) in _SORTED
    return X, y.to(X.device) if sorts else to_array(y), *map(to_array, beside)


def on_host(rows: Any) -> Any:
    """(X, y, weight) in the host's memory; anything else as it is."""
    return tuple(map(to_array, rows)) if isinstance(rows, tuple) else rows


def to_array(value: Any) -> Any:
    """A tensor as a NumPy array, in the host's memory; anything else as it is."""
    value = value.tensor if type(value) is HostRows else value
    if not is_tensor(value):
        return value
    tensor = _dense(value)
    if kind_of(tensor) == "bfloat16":
        tensor = tensor.float()  # which holds it exactly, and NumPy has no such type
    try:
        return tensor.cpu().numpy()
    except TypeError as error:
        raise TypeError(f"Tensors of {kind_of(tensor)} are not taken: {_TAKEN}.") from error


def labels_there(X: Any, y: Any) -> Any:
    """Whole labels of rows that are sent to a device, sent too: it is faster at finding them."""
    if type(X) is not HostRows or type(y) is not np.ndarray or y.ndim != 1:
        return y
    return as_tensor(y).to(X.device) if y.dtype.name in _WHOLE - {"bool"} else y


def as_tensor(array: Any) -> Tensor:
    """An array of NumPy as a tensor of the same memory, to be read."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that some memory cannot be written to
        return torch.from_numpy(array)


def some(X: Tensor, rows: Any) -> Tensor:
    """Some rows, given by a slice or by indices of NumPy."""
    torch = sys.modules["torch"]
    return X[rows] if isinstance(rows, slice) else X[torch.from_numpy(rows).to(X.device)]


class Fetched:
    """A number on its way from a device: asking for it waits for nothing that was begun later."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor, self._done = tensor, None
        if tensor.is_cuda:
            torch = sys.modules["torch"]
            self._tensor = torch.empty(1, dtype=tensor.dtype, pin_memory=True)
            self._tensor.copy_(tensor, non_blocking=True)
            self._done = torch.cuda.Event()
            self._done.record(torch.cuda.current_stream(tensor.device))

    def value(self) -> int:
        """The number, once it is here."""
        if self._done is not None:
            self._done.synchronize()
        return int(self._tensor)


def like(rows: Any, answer: Any) -> Any:
    """An answer where its rows were: a tensor on their device if they came as one.

    Answers that no tensor can hold, such as labels that are strings, stay NumPy arrays.
    """
    if type(rows) is HostRows:
        rows, answer = rows.given, to_array(answer)
    if type(rows) in _PLAIN or is_tensor(answer):
        return answer
    rows = rows if is_tensor(rows) else taken(rows)
    if not is_tensor(rows) or answer.dtype.kind not in "biuf":
        return answer
    import torch

    try:
        return torch.from_numpy(np.ascontiguousarray(answer)).to(rows.device)
    except TypeError:
        return answer  # of a type that this torch does not know


def device_for(J: int) -> Any:
    """The device that should solve a system of J features; None where the host does.

    Only where torch has been imported already, for somebody who has tensors.
    """
    torch = sys.modules.get("torch")
    if torch is None or J < LARGE or not torch.cuda.is_available():
        return None
    return torch.device("cuda", torch.cuda.current_device())


def kind_of(tensor: Tensor) -> str:
    """The name of a tensor's type, as NumPy would have it."""
    return str(tensor.dtype).removeprefix("torch.")


def check_rows(X: Tensor) -> None:
    """Raise if a tensor on a device is nothing that rows can be."""
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got a tensor of shape {tuple(X.shape)} instead: rows come as "
            "(n_samples, n_features). Reshape it with tensor.reshape(len(tensor), -1)."
        )
    kind = kind_of(X)
    if kind not in _NARROW | _WHOLE:
        raise TypeError(f"Rows of {kind} are not taken: {_TAKEN}.")
    if not X.shape[1]:
        raise ValueError("Found tensor with 0 feature(s), and a minimum of 1 is required.")
