"""Rows on a device give the bits of the host; the CPU's tensors stand in for those of a GPU."""

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test-torch")

import same_bits  # noqa: E402
from traceless import LSSVC, LSSVR, on_device  # noqa: E402
from traceless.device import tensors  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::traceless.ResolutionWarning")
DEVICE = "cpu"


@pytest.fixture(autouse=True)
def _as_if_on_a_device(monkeypatch):
    monkeypatch.setattr(tensors, "HOST", frozenset())


@pytest.mark.parametrize("phi", same_bits.MAPS, ids=str)
@pytest.mark.parametrize("task", same_bits.TASKS)
def test_knowledge(phi, task):
    same_bits.knowledge(DEVICE, phi, task)


@pytest.mark.parametrize("kind", same_bits.DTYPES)
def test_types(kind):
    same_bits.dtypes(DEVICE, kind)


@pytest.mark.parametrize("phi", same_bits.MAPS, ids=str)
@pytest.mark.parametrize("kind", [LSSVC, LSSVR])
def test_histories(kind, phi):
    options = [{}, {"solver": "woodbury"}, {"guard": True}, {"fingerprint": True}]
    for each in options:
        same_bits.history(DEVICE, kind, phi, each)


def test_class_weights():
    same_bits.history(DEVICE, LSSVC, None, {"class_weight": "balanced"})


def test_blocks(monkeypatch):
    same_bits.blocks(DEVICE, monkeypatch)


def test_digits():
    same_bits.digits(DEVICE)


def test_full_blocks():
    same_bits.full_blocks(DEVICE)


def test_flushes(monkeypatch):
    same_bits.flushes(DEVICE, monkeypatch)


def test_functions():
    same_bits.functions(DEVICE)


def test_refusals():
    same_bits.refusals(DEVICE)


def test_labels():
    same_bits.labels(DEVICE)


def test_solutions(monkeypatch):
    same_bits.solutions(DEVICE, monkeypatch)


def test_predictions():
    same_bits.predictions(DEVICE)


def test_threads(monkeypatch):
    same_bits.threads(DEVICE, monkeypatch)


def test_memory(monkeypatch):
    same_bits.memory(DEVICE, monkeypatch)


def test_host_rows(monkeypatch):
    same_bits.host_rows(DEVICE, monkeypatch)


def test_rows_cannot_be_sent_where_nothing_is(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="sees no GPU"):
        on_device([[0.0], [1.0]])


def test_every_method():
    same_bits.every_method(DEVICE)


def test_arrays_of_others(monkeypatch):
    same_bits.arrays_of_others(DEVICE, monkeypatch)


def test_torch_is_not_imported_for_others():
    code = "import sys, traceless; traceless.LSSVC().fit([[0.0], [1.0]], [0, 1]).predict([[1.0]])"
    done = subprocess.run(
        [sys.executable, "-c", code + "; print('torch' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "False"
