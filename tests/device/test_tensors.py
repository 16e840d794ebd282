"""Whatever tensors come as: the bits of NumPy's rows, or a sentence that says what to give."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test-torch")

from traceless import LSSVC, LSSVR, Knowledge, from_batches, on_device  # noqa: E402
from traceless.device import tensors  # noqa: E402
from traceless.features import Linear  # noqa: E402

X = np.random.default_rng(0).normal(size=(90, 3))
LABELS, TARGETS = np.arange(90) % 3, X @ [1.0, -2.0, 3.0]


@pytest.fixture(params=["host", "device"], autouse=True)
def way(request, monkeypatch):
    """Tensors of the CPU as they are, and as if they were on a device."""
    monkeypatch.setattr(tensors, "HOST", frozenset({"cpu"} if request.param == "host" else ()))
    return request.param


def views(rows):
    """The same rows as tensors that lie in memory in other ways, or carry flags."""
    plain = torch.from_numpy(rows)
    yield plain
    yield plain.flip(0).flip(0)
    yield torch.from_numpy(rows.T.copy()).T
    yield torch.from_numpy(np.repeat(rows, 2, axis=0))[::2]
    yield plain.clone().requires_grad_()
    yield torch.complex(plain, -plain).conj().imag  # negative only by a flag
    yield torch._neg_view(-plain)


@pytest.mark.parametrize("view", range(7))
def test_views_have_the_bits_of_their_rows(view):
    T = list(views(X))[view]
    before = T.detach().clone()
    for kind, y in ((LSSVC, LABELS), (LSSVR, TARGETS)):
        here, there = kind().fit(X, y), kind().fit(T, torch.from_numpy(y))
        assert here.digest() == there.digest()
        found = there.predict(T)
        assert not found.requires_grad
        assert np.array_equal(found.numpy(), here.predict(X))
    ends = there.predict_interval(T)
    assert all(map(np.array_equal, ends, here.predict_interval(X)))
    assert np.array_equal(T.detach().resolve_neg().numpy(), before.numpy())  # nothing is written


LABEL_TYPES = (
    "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 float64"
)


@pytest.mark.parametrize("kind", LABEL_TYPES.split())
def test_labels_of_every_type(kind):
    y = torch.from_numpy(LABELS).to(getattr(torch, kind))
    here = LSSVC().fit(X, y.float().numpy() if kind == "bfloat16" else y.numpy())
    there = LSSVC().fit(torch.from_numpy(X), y)
    assert here.digest() == there.digest()
    assert here.classes_.dtype == there.classes_.dtype
    found = there.predict(torch.from_numpy(X))
    assert torch.is_tensor(found)
    assert np.array_equal(found.numpy(), here.predict(X))


def test_labels_follow_their_rows(way):
    """Two GPUs may hold them; here 'meta' stands for the second."""
    if way == "host":
        pytest.skip("labels are NumPy's there")
    rows = tensors.HostRows(X, torch.from_numpy(X), torch.device("meta"))
    _, y, weight = tensors.taken_rows((rows, torch.from_numpy(LABELS), torch.ones(90)))
    assert y.device == rows.device
    assert isinstance(weight, np.ndarray)


@pytest.mark.filterwarnings("ignore:A column-vector y")
def test_labels_in_a_column():
    there = LSSVC().fit(torch.from_numpy(X), torch.from_numpy(LABELS[:, None]))
    assert there.digest() == LSSVC().fit(X, LABELS).digest()


def test_nullable_labels_of_pandas():
    pd = pytest.importorskip("pandas")
    y = pd.Series(LABELS > 0).astype("boolean")
    assert LSSVC().fit(torch.from_numpy(X), y).digest() == LSSVC().fit(X, y).digest()


def test_batches_of_tensors_that_numpy_has_no_type_for():
    short = torch.from_numpy(X).bfloat16()
    for rows in (short, torch._neg_view(torch.from_numpy(-X))):
        there = LSSVC().fit(from_batches([(rows, LABELS)]))
        assert there.digest() == LSSVC().fit(rows, LABELS).digest()


def test_numbers_that_no_array_holds():
    if not hasattr(torch, "float8_e4m3fn"):
        pytest.skip("this torch has no numbers of eight bits")
    T, small = torch.from_numpy(X), torch.from_numpy(LABELS).to(torch.float8_e4m3fn)
    for rows in ((T.to(torch.float8_e4m3fn), LABELS), (T, small), (X, small), (T, LABELS, small)):
        with pytest.raises(TypeError, match=r"float8_e4m3fn are not taken: give float16, bfloat16"):
            LSSVC().fit(*rows)


@pytest.mark.parametrize("part", range(3))
def test_tensors_without_numbers(part):
    rows = [torch.from_numpy(a) for a in (X, LABELS, np.ones(90))]
    rows[part] = rows[part].to("meta")
    with pytest.raises(TypeError, match="on the device 'meta' has a shape and no numbers"):
        LSSVC().fit(*rows)
    if part == 0:
        with pytest.raises(TypeError, match="Give it on 'cpu' or a GPU"):
            LSSVC().fit(X, LABELS).predict(rows[0])


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
def test_other_layouts_are_named():
    for rows in (torch.eye(4).to_sparse(), torch.eye(4).to_sparse_csr()):
        with pytest.raises(TypeError, match=rf"{rows.layout} are not taken: give a dense tensor"):
            LSSVC().fit(rows, [0, 1, 0, 1])


class Foreign:
    """An array of another library: DLPack is all that it speaks."""

    def __init__(self, tensor):
        self._tensor, self.shape = tensor, tuple(tensor.shape)

    def __dlpack__(self, **options):
        return self._tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._tensor.__dlpack_device__()


class OnNoDevice(Foreign):
    """One whose numbers are where torch sees nothing."""

    def __dlpack__(self, **options):
        raise BufferError("there is no such device")

    def __dlpack_device__(self):
        return 2, 0


def test_foreign_arrays_of_the_host():
    rows, y = Foreign(torch.from_numpy(X)), Foreign(torch.from_numpy(LABELS))
    model = LSSVC().fit(rows, y)
    assert model.digest() == LSSVC().fit(X, LABELS).digest()
    assert np.array_equal(model.predict(rows), model.predict(X))
    assert model.score(rows, y) == model.score(X, LABELS)
    assert Knowledge.of(Linear(), rows, y) == model.knowledge_


@pytest.mark.skipif(torch.cuda.is_available(), reason="torch reaches the device of these rows")
def test_foreign_arrays_out_of_reach():
    rows = OnNoDevice(torch.from_numpy(X))
    with pytest.raises(ValueError, match="OnNoDevice has its numbers on a device that torch"):
        LSSVC().fit(rows, LABELS)
    with pytest.raises(ValueError, match="bring them to the host first"):
        LSSVC().fit(X, LABELS).predict(rows)


def test_rows_that_cannot_be_sent(way):
    if way == "host":
        pytest.skip("nothing is sent")
    for rows in (X[::-1], X.astype(">f8"), X.astype(object), X.astype(str)):
        with pytest.raises(TypeError, match=r"cannot be sent to cpu: give float16, bfloat16"):
            on_device(rows, "cpu")


def test_devices_that_are_not_there(monkeypatch):
    with pytest.raises(TypeError, match="'meta' has a shape and no numbers"):
        on_device(X, "meta")
    if not torch.backends.mps.is_available():
        with pytest.raises(ValueError, match="were to be sent to mps"):
            on_device(X, "mps")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(ValueError, match=r"sent to cuda:2; torch .* sees 2 GPU"):
        on_device(X, "cuda:2")
