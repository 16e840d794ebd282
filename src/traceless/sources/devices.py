"""Rows of the host's memory, or of a source, that a device works on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from traceless.device.tensors import sent_rows
from traceless.sources.batches import Source

if TYPE_CHECKING:
    from traceless.knowledge.sums import Knowledge, Recipe


def on_device(rows: Any, device: Any = "cuda") -> Any:
    """Rows for a GPU to work on, block by block: they need not fit there.

    While the GPU works on one block, the next one is sent. Models, and their digests, are the same
    as without it.

    Parameters
    ----------
    rows : array, memory map or tensor of shape (n_samples, n_features), or a source
        In the host's memory; or what `scan` or `from_batches` returned.
    device : str or torch.device, default="cuda"

    Returns
    -------
    rows
        To be passed in place of X (of a source, in place of X and y) to ``fit``, ``partial_fit``,
        ``forget``, ``update`` and `Knowledge.of`; rows also to ``predict``, ``decision_function``,
        ``predict_proba`` and ``score``, whose answers are in the host's memory. Nothing is copied
        before that. Rows that are on a device already, and sparse ones, come back as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from traceless import LSSVC, on_device
    >>> X = np.load("embeddings.npy", mmap_mode="r")  # doctest: +SKIP
    >>> head = LSSVC().fit(on_device(X), y)  # doctest: +SKIP
    """
    if isinstance(rows, Source):
        return DeviceSource(rows, device)._like(rows)
    return sent_rows(rows, device)


class DeviceSource(Source):
    """A source whose rows a device works on; made by `on_device`."""

    def __init__(self, source: Source, device: Any) -> None:
        self._source, self._device = source, device

    def knowledge(self, recipe: Recipe, n_jobs: int | None = None) -> Knowledge:
        """The knowledge of all rows, computed on the device."""
        return self._source.knowledge(replace(recipe, device=self._device), n_jobs)
