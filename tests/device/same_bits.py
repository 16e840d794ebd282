"""What must be the same bits on a device as on the host: plain functions, for pytest and on_gpu.py.

Each takes the device. On a machine without a GPU the CPU's tensors take the device's way, with
`traceless.device.tensors.HOST` emptied.
"""

import tempfile
from pathlib import Path

import numpy as np
import torch

from traceless import LSSVC, LSSVR, Knowledge, from_batches, on_device
from traceless.arithmetic import elementary
from traceless.device import cutting, encoders, gram, tensors
from traceless.device import memory as memory_of
from traceless.device.gram import TensorGram
from traceless.features import FeatureMap, Linear, Polynomial, RandomFourier, RandomLayer


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
    Linear(resolution=[2**-3, 2**-20, 2**-26]),
    Polynomial(degree=3, gamma=0.5),
    Polynomial(degree=2, coef0=0.0, bias=False),
    RandomFourier(51, gamma=0.1, random_state=3),
    RandomFourier(4, resolution=[2**-20, 2**-18, 2**-12, 2**-9], input_resolution=2**-40),
    RandomLayer(40, random_state=1),
    RandomLayer(40, activation="tanh", bias=False, input_resolution=[2**-14, 2**-3, 2**-30]),
    RandomLayer(40, activation="relu"),
    RandomLayer(40, activation="sine", scale=0.5),
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
    return [None, rng.integers(0, 4, n).astype(float), 10.0 ** rng.uniform(-6, 6, n)]


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
    from traceless.device import gathering

    patch.setattr(gathering, "ROWS", 48)
    patch.setattr(gathering, "CHUNK", 17)
    patch.setattr(gram, "_PRODUCT", 2**16)
    rng = np.random.default_rng(1)
    for width, spread in [(5, 1.0), (64, 1.0), (150, 300.0), (130, 1e5), (20, 1e9)]:
        X = rng.normal(size=(211, width)) * spread
        X[:100] /= 1000.0  # other digits in other blocks
        y = rng.integers(0, 7, 211)
        for weight in (None, rng.integers(1, 5000, 211).astype(float)):
            rows = [tensor(part, device) for part in (X, y, weight)]
            here = Knowledge.of(Linear(), X, y, weight)
            assert Knowledge.of(Linear(), *rows) == here, width
            assert Knowledge.of(Linear(), on_device(X, device), *rows[1:]) == here, width


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


def solutions(device, patch):
    """Systems of every kind, solved on the device where it decides, and on the host."""
    from traceless.device.matrices import TensorMatrix
    from traceless.device.solve import solved_there
    from traceless.solvers import cholesky
    from traceless.solvers.centring import shifted
    from traceless.solvers.ridge import Ridge
    from traceless.solvers.solve import solve

    rng = np.random.default_rng(6)
    there, answered = torch.device(device), 0
    for trial in range(40):
        J, K, n = int(rng.integers(2, 60)), int(rng.integers(1, 6)), int(rng.integers(1, 200))
        Z = np.rint(rng.normal(size=(n, J)) * 2.0 ** rng.uniform(2, 18, J)).astype(np.int64)
        Z[:, -1] = 1
        Z[:, 0] += int(rng.integers(0, 2**20)) if trial % 3 == 0 else 0
        if trial % 4 == 0:
            Z[:, J // 2] = 0
        S, Q = Z.T @ Z, Z.T @ rng.integers(-3, 4, (n, K))
        near = np.full(J, 2.0 ** rng.uniform(-3, 30))
        if trial % 2:
            near[-1] = 0.0
        ridge = Ridge(near)
        if trial % 5 == 0:
            whole = np.array([int(v) for v in rng.integers(1, 2**40, J)], dtype=object)
            ridge = Ridge.of_fractions(whole, 3 * 7 * 2**11)
        m = cholesky.whole_means(S) if ridge.is_free else None
        moved = S if m is None else shifted(S, S, m)[0]
        for asked in (False, m is not None):
            expected = solve(S, ridge, Q, m, asked)
            both = np.column_stack([S, Q])
            found = solved_there(both, lambda V: V, ridge, m, asked, there)
            if found is None:
                continue
            answered += int(found[1].sum())
            assert np.array_equal(found[0][:, found[1]], expected[:, found[1]]), trial
        assert np.array_equal(TensorMatrix.of(tensor(S, there), m).on_host(), moved)
    assert answered > 100  # of some 200 columns: the device does most of the work
    X, y = rng.normal(size=(90, 7)), rng.integers(0, 4, 90)
    for penalty in ({}, {"free_intercept": False}, {"standardize": False}, {"rho": 1e-9}):
        found = []
        for where in (there, None):
            patch.setattr(cholesky, "device_for", lambda J, where=where: where)
            model = LSSVC(**penalty).fit(X, y)
            found.append(np.column_stack([model.coef_, model.intercept_]))
        assert np.array_equal(*found)


def predictions(device):
    """Scores and their largest, for coefficients of all sizes, also next to ties and zeros."""
    from traceless.arithmetic.products import Coefficients
    from traceless.device import products

    rng = np.random.default_rng(7)
    for trial in range(40):
        J, K, n = (int(rng.integers(low, high)) for low, high in ((2, 90), (1, 40), (1, 120)))
        X = rng.normal(size=(n, J - 1)) * 10.0 ** rng.uniform(-6, 4)
        Z = rng.normal(size=(J, K)) * 10.0 ** rng.uniform(-200 if trial % 7 == 0 else -10, 10, K)
        if trial % 3 == 0:
            Z *= 10.0 ** rng.uniform(-12, 0, size=(J, K))
        if trial % 3 == 1:
            Z[-1] *= 2.0**30
        if trial % 5 == 0:
            Z = np.round(Z * 4) / 4  # many sums are exact, and some scores equal
        if trial % 11 == 0:
            Z[:, 0] = 0
        shift = np.append(rng.integers(-1000, 1000, J - 1), 0.0) if trial % 2 else None
        phi, T = Linear().bind(J - 1), tensor(X, device)
        expected = Coefficients(Z, shift).times(phi.codes(X))
        model = Coefficients(Z, shift)
        found = products.scores(model, phi, T).cpu().numpy()
        assert np.array_equal(found, expected), trial
        assert np.array_equal(np.signbit(found), np.signbit(expected)), trial
        best = products.winners(model, phi, T).cpu().numpy()
        assert np.array_equal(best, expected.argmax(1)), trial


def threads(device, patch):
    """A model that another thread asks for larger rows, while it is asked for some."""
    from traceless.arithmetic.products import Coefficients
    from traceless.device import products

    rng = np.random.default_rng(12)
    X, Z = rng.normal(size=(40, 5)) * 1000.0, rng.normal(size=(6, 3))  # three digits
    phi, solution, T = Linear().bind(5), Coefficients(Z, None), tensor(X, device)
    model, cut = products._Model.of(solution, phi, T), products.cut

    def cut_meanwhile(*arguments):
        model.digits = cutting.MOST
        cut(*arguments)

    patch.setattr(products, "cut", cut_meanwhile)
    found = products.scores(solution, phi, T).cpu().numpy()
    assert np.array_equal(found, Coefficients(Z, None).times(phi.codes(X)))


def memory(device, patch):
    """Where memory is short, blocks get smaller; where that is no help, nothing is changed."""
    from traceless.device import gathering

    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(5000, 3)), rng.integers(0, 3, 5000)
    room = 3000
    make = gathering.Block

    def block(features, digits, beside, beside_digits, rows, device):
        if rows > room:
            raise torch.cuda.OutOfMemoryError("no room")
        return make(features, digits, beside, beside_digits, rows, device)

    patch.setattr(gathering, "Block", block)
    there = tensor(X, device), tensor(y, device)
    model = LSSVC().fit(*there)
    before = model.digest()
    assert before == LSSVC().fit(X, y).digest()
    room = 10
    said = ""
    try:
        model.partial_fit(*there)
    except MemoryError as error:
        said = str(error)
    assert "Nothing was changed" in said
    assert model.digest() == before


def short_memory(device):
    """The same with a card that has no room: learned and asked in smaller blocks, or refused."""
    if not device.startswith("cuda"):
        return
    torch.manual_seed(1)
    X = torch.randn(150_000, 1024, device=device).clamp_(-1.9, 1.9)
    y = torch.randint(0, 200, (150_000,), device=device)
    model = LSSVC().fit(X, y)
    before, labels_ = model.digest(), model.predict(X)
    here = on_device(X.cpu(), device)
    device = X.device
    whole = torch.cuda.get_device_properties(device).total_memory
    for room in (400, 8):  # MB more than what is held
        torch.cuda.empty_cache()
        limit = (torch.cuda.memory_reserved(device) + room * 2**20) / whole
        torch.cuda.set_per_process_memory_fraction(limit, device)
        try:
            asked = refused(MemoryError, lambda: labels_.copy_(model.predict(X)))
            asked = refused(MemoryError, model.predict, here) or asked
            learned = refused(MemoryError, lambda: model.partial_fit(X, y).forget(here, y))
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0, device)
        assert torch.equal(labels_, model.predict(X))
        assert bool(learned) == (room == 8), learned
        for said in filter(None, (asked, learned)):
            assert "GiB are free" in said, said
            assert "Nothing was changed" in said, said
        assert model.digest() == before


def arrays_of_others(device, patch):
    """Anything with numbers on a device that speaks DLPack is taken, through torch."""
    patch.setattr(tensors, "_DLPACK_HOST", frozenset())

    class Array:
        def __init__(self, tensor):
            self._tensor, self.shape = tensor, tensor.shape

        def __dlpack__(self, **options):
            return self._tensor.__dlpack__(**options)

        def __dlpack_device__(self):
            return self._tensor.__dlpack_device__()

    rng = np.random.default_rng(9)
    X, y = rng.normal(size=(50, 3)), rng.integers(0, 3, 50)
    there = Array(tensor(X, device))
    model = LSSVC().fit(there, y)
    model.partial_fit(there, tensor(y, device), classes=[0, 1, 2])
    assert model.digest() == LSSVC().fit(np.vstack([X, X]), np.append(y, y)).digest()
    assert np.array_equal(model.predict(there).cpu().numpy(), model.predict(X))


def refused(kind, ask, *arguments):
    """What an error says; nothing if there is none."""
    try:
        ask(*arguments)
    except kind as error:
        return str(error)
    return ""


def host_rows(device, patch):
    """Rows that stay in the host's memory, sent block by block: arrays, maps, tensors, batches."""
    patch.setattr(memory_of, "_BLOCK", 2**12)
    patch.setattr(memory_of, "_PIECE", 2**10)
    rng = np.random.default_rng(10)
    X, y = rng.normal(size=(3000, 5)).astype(np.float32), rng.integers(0, 4, 3000)
    X[1500:] *= 100.0  # other digits in later blocks
    targets, weight = rng.normal(size=3000), rng.uniform(0.5, 2, 3000)
    with tempfile.TemporaryDirectory() as folder:
        mapped = np.memmap(Path(folder, "rows"), X.dtype, "w+", shape=X.shape)
        mapped[:] = X
        for given in (X, np.asfortranarray(X), X[::-1].copy()[::-1].copy(), mapped):
            there = on_device(given, device)
            for phi in (Linear(), RandomFourier(20), Cubes()):
                assert Knowledge.of(phi, there, y) == Knowledge.of(phi, X, y)
    there = on_device(X, device)
    for options in ({}, {"guard": True}, {"fingerprint": True}, {"class_weight": "balanced"}):
        here = LSSVC(**options).fit(X, y)
        model = LSSVC(**options).fit(there, y)
        model.partial_fit(on_device(X[:50], device), y[:50], sample_weight=weight[:50])
        model.forget(X[:50], y[:50], weight[:50])
        assert model.digest() == here.digest()
        for name in ("predict", "decision_function", "predict_proba"):
            found = getattr(model, name)(there)
            assert isinstance(found, np.ndarray)
            assert np.array_equal(found, getattr(here, name)(X)), name
        assert model.score(there, y) == here.score(X, y)
    here, model = LSSVR().fit(X, targets, weight), LSSVR().fit(there, targets, weight)
    assert model.digest() == here.digest()
    assert np.array_equal(model.predict(there), here.predict(X))
    assert np.array_equal(np.asarray(there), X)  # for what works on the host alone
    if device != "cpu":
        for given in (torch.from_numpy(X), torch.from_numpy(X).pin_memory(), torch.ones(9, 5)):
            for kind in (torch.float32, torch.bfloat16, torch.float64):
                given, own = given.to(kind), y[: len(given)]
                model = LSSVC().fit(on_device(given, device), own)
                assert model.digest() == LSSVC().fit(given, own).digest()
                found = model.predict(on_device(given, device))
                assert found.device.type == "cpu"
                assert torch.equal(found, model.predict(given))
    batches = [(X[i : i + 100], y[i : i + 100]) for i in range(0, 3000, 100)]
    model = LSSVC().fit(on_device(from_batches(batches), device))
    assert model.digest() == LSSVC().fit(X, y).digest()
    X[7, 2] = np.nan
    assert "NaN" in refused(ValueError, model.partial_fit, on_device(X, device), y)


def every_method(device):
    """What takes rows takes them from a device, or says where they must be."""
    rng = np.random.default_rng(11)
    X, targets, weight = rng.normal(size=(90, 3)), rng.normal(size=90), rng.uniform(size=90)
    y = rng.integers(0, 3, 90)
    several = rng.integers(0, 2, (90, 3))
    for model, responses_ in ((LSSVC(), y), (LSSVC(), several), (LSSVR(), targets)):
        model.fit(X, responses_)
        there = [tensor(part, device) for part in (X, responses_, weight)]
        assert model.score(*there) == model.score(X, responses_, weight)
        assert model.score(there[0], responses_) == model.score(X, responses_)
        for name in ("predict", "decision_function", "predict_log_proba", "predict_interval"):
            if not hasattr(model, name):
                continue
            here, found = getattr(model, name)(X), getattr(model, name)(there[0])
            here, found = (v if isinstance(v, tuple) else (v,) for v in (here, found))
            for a, b in zip(here, found, strict=True):
                assert b.device == there[0].device, name
                assert np.array_equal(a, b.cpu().numpy()), name
    from traceless import SlidingWindow
    from traceless.model_selection import cross_val_score, influence

    T, labels_there = tensor(X, device), tensor(y, device)
    for ask in (
        lambda: SlidingWindow(LSSVC(), 50).fit(T, labels_there),
        lambda: SlidingWindow(LSSVC(), 50).fit(X, y).predict(T),
        lambda: cross_val_score(LSSVC(), T, labels_there),
        lambda: influence(LSSVC(), T, labels_there),
    ):
        said = refused(TypeError, ask)
        assert not said or "cpu" in said, said  # where they must be
