"""Rows on a device give the bits of the host; the CPU's tensors stand in for those of a GPU."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test-torch")

import same_bits  # noqa: E402
from traceless import LSSVC, LSSVR  # noqa: E402
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
