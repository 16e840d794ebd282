"""Rows that a device is to work on, where there is none."""

import sys

import numpy as np
import pytest

from traceless import from_batches, on_device


def test_torch_is_asked_for_by_name(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"pip install 'traceless\[torch\]'"):
        on_device(np.eye(2))


def test_a_source_is_not_read_before_it_is_learned():
    read = []
    batches = lambda: (read.append(k) or (np.eye(2), [0, 1]) for k in range(3))  # noqa: E731
    source = on_device(from_batches(batches))
    assert (source.n_features, read) == (2, [0])
