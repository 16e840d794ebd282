"""What must be the same bits on a device as on the host: plain functions, for pytest and on_gpu.py.

Each takes the device. On a machine without a GPU the CPU's tensors take the device's way, with
`traceless.device.tensors.HOST` emptied.
"""

import numpy as np
import torch

from traceless import LSSVC, LSSVR, Knowledge
from traceless.arithmetic import elementary
from traceless.device import cutting, encoders, gram
from traceless.device.gram import TensorGram
from traceless.features import FeatureMap, Landmarks, Linear, Polynomial, RandomFourier, RandomLayer


class Cubes(FeatureMap):
    """A user's own map, which only the host can compute."""

    def __init__(self, bias=True, resolution=2**-10):
        self.bias = bias
        self.resolution = resolution

    def values(self, X):
        return X * X * X


MAPS = [
    Linear(),
    Linear(bias=False, resolution=2**-8),
    Linear(resolution=[2**-3, 2**-20, 2**-30]),
    Polynomial(degree=3, gamma=0.5),
    Polynomial(degree=2, coef0=0.0, bias=False),
    RandomFourier(51, gamma=0.1, random_state=3),
    RandomFourier(4, resolution=[2**-20, 2**-18, 2**-12, 2**-9], input_resolution=2**-40),
    RandomLayer(40, random_state=1),
    RandomLayer(40, activation="tanh", bias=False, input_resolution=[2**-14, 2**-3, 2**-30]),
    RandomLayer(40, activation="relu"),
    RandomLayer(40, activation="sine", scale=0.5),
    Landmarks(40, gamma=0.1, random_state=2),
    Cubes(),
]
DTYPES = ["float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "int64", "bool"]
TASKS = ["classification", "regression", "multilabel"]


def tensor(array, device):
    return None if array is None else torch.from_numpy(np.ascontiguousarray(array)).to(device)


def responses(task, n, rng):
    if task == "classification":
        return rng.integers(-2, 3, n)
    return rng.normal(size=(n, 2)) if task == "regression" else rng.integers(0, 2, (n, 3))


def weights(n, rng):
    """No weights, whole ones, and some over many orders of magnitude."""
    return [None, rng.integers(0, 4, n).astype(float), 10.0 ** rng.uniform(-9, 9, n)]


def knowledge(device, phi, task="classification", n=300, seed=0):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 3)), responses(task, n, rng)
    for weight in weights(n, rng):
        for classwise, fingerprint in [(False, False), (True, False), (False, True)]:
            if classwise and task != "classification":
                continue
            options = {"task": task, "classwise": classwise, "fingerprint": fingerprint}
            here = Knowledge.of(phi, X, y, weight, **options)
            rows = [tensor(part, device) for part in (X, y, weight)]
            there = Knowledge.of(phi, *rows, **options)
            mixed = Knowledge.of(phi, rows[0][:100], y[:100], *_first(weight), **options)
            mixed += Knowledge.of(phi, X[100:], rows[1][100:], *_rest(weight), **options)
            assert here == there == mixed, (phi, options)
            assert here.digest() == there.digest() == mixed.digest()


def _first(weight):
    return () if weight is None else (weight[:100],)


def _rest(weight):
    return () if weight is None else (weight[100:],)


def dtypes(device, kind):
    """Every type that rows come in, also as columns of a wider tensor."""
    torch.manual_seed(0)
    X = (torch.randn(200, 8) * 3).to(device).to(getattr(torch, kind))[:, 1:6]
    y = torch.randint(0, 3, (200,)).to(device).to(torch.int16)
    plain = X.cpu().double().numpy(), y.cpu().numpy()
    there, here = LSSVC().fit(X, y), LSSVC().fit(*plain)
    assert there.digest() == here.digest()
    assert there.classes_.dtype == here.classes_.dtype
    found = there.predict(X)
    assert found.device == X.device
    assert found.dtype == y.dtype
    assert np.array_equal(found.cpu().numpy(), here.predict(plain[0]))


def history(device, kind, phi, options, seed=0):
    """Rows learned and forgotten on both, in one model on several devices."""
    rng = np.random.default_rng(seed)
    X, weight = rng.normal(size=(80, 3)), rng.uniform(0.5, 2, 80)
    y = rng.integers(0, 3, 80) if kind is LSSVC else rng.normal(size=80)

    def there(*some):
        return tuple(tensor(part, device) for part in some)

    a, b = kind(phi, **options).fit(X[:50], y[:50]), kind(phi, **options)
    b.fit(*there(X[:50], y[:50]))
    a.partial_fit(X[50:], y[50:], sample_weight=weight[50:])
    b.partial_fit(*there(X[50:], y[50:]), sample_weight=tensor(weight[50:], device))
    a.forget(X[:10], y[:10])
    b.forget(*there(X[:10], y[:10]))
    a.update((X[:5], y[:5]), (X[20:30], y[20:30]))
    b.update((tensor(X[:5], device), y[:5]), (X[20:30], y[20:30]))
    assert a.digest() == b.digest()
    same_answers(a, b, X, device)


def same_answers(a, b, X, device):
    T = tensor(X, device)
    for name in ("predict", "decision_function", "predict_proba"):
        if hasattr(a, name):
            here, there = getattr(a, name)(X), getattr(b, name)(T)
            assert there.device == T.device
            assert np.array_equal(here, there.cpu().numpy()), (name, a)
    if isinstance(a, LSSVR):
        both = zip(a.predict(X, return_std=True), b.predict(T, return_std=True), strict=True)
        assert all(np.array_equal(here, there.cpu().numpy()) for here, there in both)


def blocks(device, patch):
    """Several blocks, panels and chunks, whose edges fall anywhere."""
    patch.setattr(gram, "_PANEL", 64)
    from traceless.knowledge import tensor_gathering

    patch.setattr(tensor_gathering, "ROWS", 48)
    patch.setattr(tensor_gathering, "CHUNK", 17)
    rng = np.random.default_rng(1)
    for width, spread in [(5, 1.0), (64, 1.0), (150, 300.0), (130, 1e5), (20, 1e9)]:
        X = rng.normal(size=(211, width)) * spread
        X[:100] /= 1000.0  # other digits in other blocks
        y = rng.integers(0, 7, 211)
        for weight in (None, rng.integers(1, 5000, 211).astype(float)):
            rows = [tensor(part, device) for part in (X, y, weight)]
            assert Knowledge.of(Linear(), *rows) == Knowledge.of(Linear(), X, y, weight), width


def digits(device):
    """Codes at and around the ends of what so many digits hold."""
    edges = [0, 1, 127, 128, 129, 255, 256, 32639, 32640, 32767, 32768, 32896, 8355711, 8355712]
    edges += [2**e + d for e in (15, 16, 22, 23, 24, 29, 30, 31, 40, 52) for d in (-1, 0, 1)]
    edges = np.array([*edges, *(-k for k in edges)], dtype=float)
    for k in range(0, len(edges), 3):
        X = np.stack([edges[: k + 1], edges[: k + 1][::-1]], 1)
        y = np.arange(len(X)) % 2
        phi = Linear(resolution=1.0)
        assert Knowledge.of(phi, tensor(X, device), y) == Knowledge.of(phi, X, y)
    for peak in map(int, np.abs(edges[np.abs(edges) <= 2**30])):
        n = cutting.digits_for(peak)
        planes = torch.empty((n, 32, 16), dtype=torch.int8, device=device)
        top = torch.zeros(1, dtype=torch.int32, device=device)
        values = torch.tensor([[peak, -peak]], dtype=torch.float64, device=device)
        cutting.cut(values, torch.ones(2, dtype=torch.float64, device=device), planes, 0, top)
        powers = torch.tensor([256**d for d in range(n)], device=device)[:, None]
        assert ((planes[:, :2, 0].long() * powers).sum(0).tolist()) == [peak, -peak]
        assert int(top) == peak


def full_blocks(device):
    """Columns of -128 in more rows than int32 could hold the squares of."""
    n = 2**17 + 77
    X = torch.full((n, 3), -128.0, device=device)
    X[::2, 1] = 127.0
    y = torch.arange(n, device=device) % 3
    known = Knowledge.of(Linear(resolution=1.0), X, y)
    a, b = n - n // 2, n // 2
    expected = [[n * 2**14, -128 * (127 * a - 128 * b)], [0, a * 127**2 + b * 2**14]]
    assert int(known.sums[0, 0]) == expected[0][0]
    assert int(known.sums[1, 0]) == expected[0][1]
    assert int(known.sums[1, 1]) == expected[1][1]


def flushes(device, patch):
    """Sums that are moved to the host before they could wrap."""
    patch.setattr(gram, "_FULL", 2.0**54 + 1)
    rng = np.random.default_rng(2)
    total = TensorGram(3, 2, torch.device(device))
    whole = np.zeros((5, 5), dtype=object)
    for _ in range(5):
        Z = rng.integers(-(2**52), 2**52, (40, 5)).astype(float)
        total.add_codes(tensor(Z, device), 2.0**52)
        exact = np.array([[int(v) for v in row] for row in Z], dtype=object)
        whole += exact.T @ exact
    assert (total.total().astype(object) == whole).all()


def functions(device):
    """Elementary functions: a fused multiply-add, or a reciprocal, would show in the last bits."""
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.normal(size=200_000) * 10.0**e for e in range(-6, 3)])
    t = tensor(x, device)
    pairs = [
        (elementary.cosine(x), encoders.cosine(t)),
        (elementary.cosine(x, 0.1234567), encoders.cosine(t, 0.1234567)),
        (elementary.exponential(x), encoders.exponential(t)),
        (1.0 / (1.0 + elementary.exponential(-x)), encoders._sigmoid(t)),
        (1.0 - 2.0 / (1.0 + elementary.exponential(2.0 * x)), encoders._tanh(t)),
        (elementary.cosine(x / (2.0 * np.pi) - 0.25), encoders._sine(t)),
    ]
    for k, (here, there) in enumerate(pairs):
        assert np.array_equal(here, there.cpu().numpy()), k


def refusals(device):
    """What cannot be learned is refused, with the host's words, and nothing is changed."""
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(60, 4)), rng.integers(0, 3, 60)
    model = LSSVC().fit(X, y)
    before = model.digest()
    for bad in (np.nan, np.inf, 1e300):
        rows = X.copy()
        rows[7, 2] = bad
        said = []
        for some in (rows, tensor(rows, device)):
            try:
                model.partial_fit(some, y)
            except ValueError as error:
                said.append(str(error))
        assert len({*said}) == 1, said
        assert len(said) == 2
        assert model.digest() == before
    for wrong, y_of in [(X[:, 0], y), (X[:, :3], y), (X, y[:50]), (X[:0], y[:0]), (X + 1j, y)]:
        try:
            model.partial_fit(tensor(wrong, device), tensor(y_of, device))
        except (ValueError, TypeError):
            continue
        raise AssertionError(f"{wrong.shape} was taken")
    assert model.digest() == before


def labels(device):
    """Labels of every kind, whose names and types are those of NumPy's."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(90, 2))
    T = tensor(X, device)
    for y in (
        rng.integers(0, 3, 90).astype(np.uint8),
        rng.integers(-4, 3, 90).astype(np.int32),
        rng.integers(0, 2, 90).astype(bool),
        rng.integers(0, 3, 90).astype(np.float32),
        rng.choice([-(2**60), 5, 2**60], 90),
    ):
        here, there = LSSVC().fit(X, y), LSSVC().fit(T, tensor(y, device))
        assert here.digest() == there.digest()
        assert here.classes_.dtype == there.classes_.dtype
        found = there.predict(T)
        assert torch.is_tensor(found)
        assert np.array_equal(here.predict(X), found.cpu().numpy())
    words = np.array(["ant", "bee", "cat"])[rng.integers(0, 3, 90)]
    found = LSSVC().fit(T, words).predict(T)
    assert isinstance(found, np.ndarray)
    assert np.array_equal(found, LSSVC().fit(X, words).predict(X))
