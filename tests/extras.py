"""One use of each extra, and the modules without which it must say what to install."""

from importlib.metadata import metadata
from typing import NamedTuple

FOR_DEVELOPERS = {"bench", "docs", "papers", "test"}


class Use(NamedTuple):
    code: str
    without: tuple[str, ...] = ()  # none: it is the user's own library that asks for the extra


USES = {
    "plots": Use(
        """
import os
os.environ["MPLBACKEND"] = "Agg"
from traceless import LSSVC
from traceless.displays import HistoryDisplay
X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]
HistoryDisplay.from_estimator(LSSVC(), [("all", "fit", (X, y))], X, y)
""",
        ("matplotlib",),
    ),
    "files": Use(
        """
import tempfile
from pathlib import Path
folder = Path(tempfile.mkdtemp())
try:
    import pyarrow as pa
    import pyarrow.parquet
    pa.parquet.write_table(pa.table({"x": [0.0, 1.0], "y": [0, 1]}), folder / "rows.parquet")
except ImportError:
    (folder / "rows.parquet").touch()
from traceless import LSSVC, scan
assert LSSVC().fit(scan(folder, "y")).n_features_in_ == 1
""",
        ("pyarrow",),
    ),
    "delta": Use(
        """
import tempfile
from pathlib import Path
folder = Path(tempfile.mkdtemp())
try:
    import pyarrow as pa
    from deltalake import write_deltalake
    write_deltalake(folder, pa.table({"x": [0.0, 1.0], "y": [0, 1]}))
except ImportError:
    (folder / "_delta_log").mkdir()
from traceless import scan
assert scan(folder, "y").table_version == 0
""",
        ("deltalake",),
    ),
    "dask": Use(
        """
import dask.array as da
import numpy as np
from traceless import LSSVC
X, y = np.array([[0.0], [1.0]]), np.array([0, 1])
lazy = LSSVC().fit(da.from_array(X, chunks=1), da.from_array(y, chunks=1))
assert lazy.digest() == LSSVC().fit(X, y).digest()
""",
    ),
    "torch": Use(
        """
import torch
from traceless import LSSVC
X, y = torch.tensor([[0.0], [1.0]]), torch.tensor([0, 1])
model = LSSVC().fit(X, y)
assert model.digest() == LSSVC().fit(X.numpy(), y.numpy()).digest()
assert torch.equal(model.predict(X), y)
""",
    ),
    "spark": Use("import pandas, pyarrow, pyspark\nfrom traceless import from_spark"),
    "serve": Use(
        """
import sys, tempfile
from traceless import LSSVC, Store
folder = tempfile.mkdtemp() + "/s"
Store.new(folder, LSSVC())
from pathlib import Path
try:
    from traceless.serve.desk import Desk
except ImportError:
    from traceless.cli.group import run
    sys.exit(run(["serve", folder]))
assert Desk(Path(folder), [], "t", 80).application()
""",
        ("starlette", "uvicorn"),
    ),
    "cli": Use(
        "import sys; sys.argv[1:] = ['--help']\nfrom traceless.cli import main; main()", ("click",)
    ),
    "store": Use(
        """
from traceless import Knowledge
from traceless.features import Linear
Knowledge.of(Linear(), [[0.0], [1.0]], [0, 1], fingerprint=True)
""",
        ("blake3",),
    ),
    "onnx": Use(
        """
from traceless import LSSVC
from traceless.estimators.onnx import to_onnx
to_onnx(LSSVC().fit([[0.0], [1.0]], [0, 1]))
""",
        ("onnx",),
    ),
}


def extras() -> list[str]:
    """The extras of the installed package that are for its users."""
    declared = metadata("traceless").get_all("Provides-Extra") or []
    return sorted(set(declared) - FOR_DEVELOPERS)
