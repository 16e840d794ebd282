"""The gallery tells a story: first the promise, then what people do with it."""

from __future__ import annotations

ORDER = [
    "plot_proof.py",
    "plot_table.py",
    "plot_float_trace.py",
    "plot_stages.py",
    "plot_label_errors.py",
    "plot_head.py",
    "plot_hospitals.py",
    "plot_masked_sums.py",
    "plot_followed_table.py",
    "plot_sliding_window.py",
    "plot_rho.py",
    "plot_evidence.py",
    "plot_intervals.py",
    "plot_lasso_from_sums.py",
    "plot_probabilities.py",
    "plot_imbalance.py",
    "plot_esvm_moons.py",
    "plot_path.py",
    "plot_tube.py",
    "plot_one_class.py",
    "plot_update_cost.py",
    "plot_dask.py",
]


class Told:
    """Where an example stands; one that is not listed stops the build."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, name: str) -> int:
        """Its place."""
        return ORDER.index(name)
