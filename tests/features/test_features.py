import dataclasses
import json
import math
import pickle
import subprocess
import sys
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from sklearn.base import clone
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

import traceless.features
import vectors.make
from cases import MAPS, PAPER, Cubes, name
from ours import feature_maps
from traceless import LSSVC, LSSVR, Knowledge, MismatchError, RangeError
from traceless.features import (
    FeatureMap,
    Linear,
    Polynomial,
    RandomFourier,
    RandomLayer,
    Table,
)
from traceless.features.bound_map import PROBE, probe_rows

every_map = pytest.mark.parametrize("phi", MAPS, ids=name)
rows = npst.arrays(np.float64, (7, 3), elements=st.floats(-50, 50) | st.floats(-1e4, 1e4))


def test_every_map_of_the_package_is_in_every_list_of_them():
    ours = {*traceless.features.MAPS}
    assert ours <= {*traceless.features.__all__}
    assert ours == {type(phi).__name__ for phi in feature_maps()}
    assert ours == {case["map"][0] for case in vectors.make.read("maps")}


@every_map
@given(X=rows)
def test_codes_are_integers_and_the_same_in_any_batch(phi, X):
    bound = phi.bind(3)
    codes = bound.codes(X)
    assert codes.shape == (7, len(bound.steps))
    assert (codes == np.rint(codes)).all()
    assert (codes == np.vstack([bound.codes(X[i : i + 1]) for i in range(7)])).all()
    assert (codes[::-1] == bound.codes(X[::-1].copy())).all()


@pytest.mark.parametrize("kind", traceless.features.MAPS.values())
@pytest.mark.parametrize("value", [1, 0])
def test_equal_parameters_have_equal_digests(kind, value):
    """Also in sums, whichever comes first: 1 equals True, and JSON has two texts for them."""
    forms = [convert(value) for convert in (bool, int, np.int64, np.bool_)]
    known = [Knowledge.of(kind(bias=bias), np.eye(3), [0, 1, 1]) for bias in forms]
    assert len({k.digest() for k in known}) == 1
    assert len({(a + b).digest() for a in known for b in known}) == 1
    assert len({kind(resolution=r).digest() for r in (1, 1.0, np.int64(1), np.float32(1))}) == 1


def test_equal_parameters_of_another_type_are_told_apart():
    """Where nobody knows whether a map of the user's own takes 1 for True."""

    class Own(FeatureMap):
        def __init__(self, turned=False, bias=True, resolution=0.5):
            self.turned, self.bias, self.resolution = turned, bias, resolution

        def values(self, X):
            return X

    one, other = (Knowledge.of(Own(turned), np.eye(3), [0, 1, 1]) for turned in (1, True))
    with pytest.raises(MismatchError, match=r"turned is (1 here and True|True here and 1) there"):
        one + other
    assert not Own(1).bind(3).is_of(Own(True), 3)


@every_map
def test_rows_in_several_blocks(phi, rng):
    X = rng.normal(size=(1300, 3))
    codes = phi.bind(3).codes(X)
    for i in (0, 511, 512, 1299):
        assert (codes[i] == phi.bind(3).codes(X[i : i + 1])[0]).all()


@every_map
def test_values_are_codes_times_steps(phi, rng):
    X = rng.normal(size=(9, 3))
    bound = phi.bind(3)
    is_table = isinstance(phi, Table)  # a transformer, which leaves the constant to others
    n = len(bound.steps) - is_table
    assert (phi.transform(X) == (bound.codes(X) * bound.steps)[:, :n]).all()
    assert (phi.transform(X.tolist()) == phi.transform(X)).all()
    if bound.has_bias and not is_table:
        assert (phi.transform(X)[:, -1] == 1).all()


def test_every_parameter_is_part_of_the_digest():
    digests = [phi.digest() for phi in MAPS]
    digests += [
        Linear(resolution=2**-13).digest(),
        Linear(resolution=[2**-14, 2**-13]).digest(),
        RandomFourier(50, gamma=0.1, random_state=4).digest(),
        RandomFourier(50, gamma=0.11, random_state=3).digest(),
        RandomFourier(50, gamma=0.1, random_state=3, input_resolution=2**-13).digest(),
    ]
    assert len(set(digests)) == len(digests)
    assert Linear(resolution=1).digest() == Linear(resolution=1.0).digest()


def test_linear_rounds_to_the_nearest_step():
    X = np.array([[0.3, -0.3, 0.125, 7.0]])
    assert Linear(bias=False, resolution=0.25).transform(X).tolist() == [[0.25, -0.25, 0.0, 7.0]]
    each = Linear(bias=False, resolution=[0.5, 0.25, 0.125, 4.0])
    assert each.transform(X).tolist() == [[0.5, -0.25, 0.125, 8.0]]


def test_linear_holds_values_up_to_the_limit():
    phi = Linear(bias=False)
    edge = 2.0**53 / 2**14
    assert phi.transform([[edge, -edge]]).tolist() == [[edge, -edge]]
    with pytest.raises(RangeError, match=r"1 takes the value 1\.09951e\+12.*coarser resolution"):
        phi.transform([[1.0, -edge * 2]])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@every_map
def test_values_that_are_not_finite_are_named(phi, bad, rng):
    X = rng.normal(size=(600, 3))
    X[555, 1] = bad
    if isinstance(phi, Table) and np.isnan(bad):
        pytest.skip("NaN is an absent value")
    with pytest.raises(RangeError, match=r"(NaN|infinity) \(column 1\)"):
        phi.bind(3).codes(X)


def test_polynomial_is_the_polynomial_kernel(rng):
    X = rng.normal(size=(30, 4))
    for degree, gamma, coef0 in ((1, 1.0, 1.0), (2, 1.0, 1.0), (3, 0.5, 2.0), (2, 1.0, 0.0)):
        phi = Polynomial(degree, gamma, coef0, bias=False, resolution=2**-40)
        F = phi.transform(X)
        kernel = polynomial_kernel(X, degree=degree, gamma=gamma, coef0=coef0)
        np.testing.assert_allclose(F @ F.T + coef0**degree, kernel, rtol=1e-9, atol=1e-9)


def test_random_fourier_approximates_the_rbf_kernel(rng):
    X = rng.normal(size=(40, 5))
    for D in (4000, 4001):
        F = RandomFourier(D, gamma=0.2, bias=False).transform(X)
        assert F.shape == (40, D)
        assert np.abs(F @ F.T - rbf_kernel(X, gamma=0.2)).max() < 0.06


def test_random_fourier_takes_huge_values_exactly():
    # far out on a line the angles are huge; whole turns must drop out without rounding
    phi = RandomFourier(2, gamma=0.3, bias=False)
    encode = phi.bind(1).encode
    W, turn = int(encode.keywords["W"][0, 0]), int(encode.keywords["turn"])
    x = 2**51 + 12345  # codes, far beyond one limb
    angle = float(Fraction(x * W, turn) % 1)
    value = phi.transform([[x * 2.0**-14]])[0]
    expected = [np.cos(2 * np.pi * angle), np.sin(2 * np.pi * angle)]
    assert np.abs(value - expected).max() < 1e-6


def test_very_wide_rows_get_a_coarser_grid_of_weights(rng):
    # 300 000 columns: a limb times a whole column of W must still fit 53 bits
    phi = RandomLayer(2, bias=False)
    W = phi.bind(300_000).encode.keywords["W"]
    assert np.abs(W).sum(axis=0).max() <= 2**32
    X = rng.normal(size=(2, 300_000)) * 60
    codes = phi.bind(300_000).codes(X)
    assert (codes[1] == phi.bind(300_000).codes(X[1:])[0]).all()


@pytest.mark.parametrize(
    ("activation", "function"),
    [
        ("sigmoid", lambda z: 1 / (1 + np.exp(-z))),
        ("tanh", np.tanh),
        ("relu", lambda z: np.maximum(z, 0)),
        ("sine", np.sin),
    ],
)
def test_random_layer_activations(rng, activation, function):
    X = rng.normal(size=(50, 4))
    phi = RandomLayer(30, activation=activation, bias=False)
    keywords = phi.bind(4).encode.keywords
    z = np.rint(X * 2**14) @ keywords["W"] * keywords["unit"] + keywords["offset"]
    assert np.abs(phi.transform(X) - function(z)).max() <= 0.501 * 2**-14
    assert np.abs(keywords["W"]).max() * 2**-15 <= 1


@pytest.mark.parametrize(
    ("phi", "message"),
    [
        (Linear(resolution=0.1), "power of two"),
        (Linear(resolution=0.0), "power of two"),
        (Linear(resolution=np.nan), "power of two"),
        (Linear(resolution=[2**-14] * 3), r"one per column \(2\)"),
        (RandomFourier(0), "n_components must be a positive integer"),
        (RandomFourier(2.5), "n_components must be a positive integer"),
        (RandomFourier(gamma="scale"), "gamma must be a positive finite number"),
        (RandomFourier(gamma=-1), "gamma must be a positive finite number"),
        (RandomFourier(random_state=None), "random_state must be a non-negative integer"),
        (RandomFourier(input_resolution=3.0), "input_resolution must be a power of two"),
        (RandomLayer(activation="step"), "activation must be 'sigmoid'"),
        (RandomLayer(scale=0), "scale must be a positive"),
        (Polynomial(degree=0), "degree must be a positive integer"),
        (Polynomial(coef0=-1), "coef0 must be a non-negative"),
    ],
)
def test_bad_parameters_are_named(phi, message):
    with pytest.raises(ValueError, match=message):
        phi.bind(2)


def test_a_map_of_ones_own():
    assert Cubes(bias=False).transform([[2.0, -1.0]]).tolist() == [[8.0, -1.0]]
    with pytest.raises(TypeError, match="part of its specification"):
        Cubes(resolution=object()).digest()


def test_a_map_without_values_says_what_is_missing():
    with pytest.raises(NotImplementedError, match="must define values"):
        FeatureMap().values(np.zeros((1, 1)))


@pytest.mark.parametrize("phi", [*MAPS, Polynomial(degree=3, coef0=0.0)])
def test_features_are_counted_without_making_them(phi):
    assert phi.n_outputs(4) == len(phi.bind(4).steps)


# --- one resolution per column ----------------------------------------------------------------

SEVERAL = [
    (RandomFourier, {"n_components": 5, "gamma": 0.3}),
    (RandomLayer, {"n_units": 5, "activation": "tanh"}),
    (RandomLayer, {"n_units": 5, "activation": "sine", "bias": False}),
]
several = pytest.mark.parametrize(("kind", "parameters"), SEVERAL)


@several
def test_each_feature_may_have_a_grid_of_its_own(kind, parameters, rng):
    X = rng.normal(size=(70, 3))
    steps = np.array([2**-4, 2**-9, 2**-14, 2**-20, 2**-30])
    bound = kind(**parameters, resolution=steps).bind(3)
    assert (bound.steps[:5] == steps).all()
    codes = bound.codes(X)
    for j, step in enumerate(steps):
        alone = kind(**parameters, resolution=float(step)).bind(3).codes(X)
        assert (codes[:, j] == alone[:, j]).all()
    with pytest.raises(ValueError, match=r"resolution must be one number or one per column \(5\)"):
        kind(**parameters, resolution=steps[:3]).bind(3)


@several
def test_each_column_may_have_a_grid_of_its_own(kind, parameters, rng):
    X = rng.normal(size=(70, 3)) * [1.0, 50.0, 1000.0]
    steps = np.array([2**-14, 2**-6, 2.0])
    phi = kind(**parameters, input_resolution=steps.tolist())
    rounded = np.rint(X / steps) * steps
    finest = kind(**parameters, input_resolution=2**-14).bind(3)
    assert (phi.bind(3).codes(X) == finest.codes(rounded)).all()
    assert (phi.input_steps(3) == steps).all()
    with pytest.raises(ValueError, match="input_resolution must be one number or one per column"):
        kind(**parameters, input_resolution=[2**-14]).bind(3)


def test_random_fourier_on_several_grids_in_exact_arithmetic(rng):
    X = rng.normal(size=(40, 3)) * 9
    steps = [0.5, 2**-3, 2**-7]
    grids = [2**-9, 2**-20, 2**-12, 2**-16]
    phi = RandomFourier(4, gamma=0.3, bias=False, resolution=grids, input_resolution=steps)
    encode = phi.bind(3).encode
    W, turn = encode.keywords["W"].astype(int).tolist(), Fraction(encode.keywords["turn"])
    for x, found in zip(X.tolist(), phi.transform(X), strict=True):
        codes = [round(v / s) * round(s / 2**-7) for v, s in zip(x, steps, strict=True)]
        for k in range(2):
            turns = sum(c * row[k] for c, row in zip(codes, W, strict=True)) / turn % 1
            angle = 2 * math.pi * float(turns)
            for j, value in ((k, math.cos(angle)), (k + 2, math.sin(angle))):
                assert abs(found[j] - math.sqrt(0.5) * value) <= 0.501 * grids[j]


def test_polynomials_with_a_grid_for_each_monomial_can_be_learned(rng):
    X = rng.normal(size=(30, 2))
    phi = Polynomial(resolution=[2**-14, 2**-13, 2**-12, 2**-11, 2**-10])
    model = LSSVR(phi).fit(X, X[:, 0])
    assert model.forget(X[:9], X[:9, 0]).digest() == LSSVR(phi).fit(X[9:], X[9:, 0]).digest()


# --- which map it is --------------------------------------------------------------------------


def own_map(compute, name="Squares", base=FeatureMap):
    """A class as a user writes it."""

    def make(self, bias=True, resolution=2**-14):
        self.bias = bias
        self.resolution = resolution

    methods = {"values": lambda self, X: compute(X)} if compute else {}
    return type(name, (base,), {"__init__": make, **methods})


Squares, Doubles = own_map(lambda X: X * X), own_map(lambda X: X * X * X)
MINE = own_map(lambda X: X * 1.0, name="Linear")


def learned(phi, start=0):
    X = np.random.default_rng(start).normal(size=(20, 2))
    return LSSVC(phi).fit(X, X[:, 0] > 0)


def test_two_maps_of_one_name_do_not_merge():
    a, b = learned(Squares()), learned(Doubles(), 1)
    before = a.digest()
    with pytest.raises(MismatchError, match=r"both are 'Squares' of version 1.*different codes"):
        a.merge(b)
    assert a.digest() == before
    with pytest.raises(MismatchError, match="different codes"):
        _ = a.knowledge_ + b.knowledge_
    assert a.merge(learned(own_map(lambda X: X * X)(), 1)).n_samples_ == 40  # the same, elsewhere


def test_a_map_called_linear_is_not_ours():
    X = np.arange(6.0).reshape(3, 2)
    theirs = Knowledge.of(MINE(), X, [0, 1, 1])
    ours = Knowledge.of(Linear(), X, [0, 1, 1])
    assert (theirs.sums == ours.sums).all()
    assert theirs.digest() != ours.digest()
    with pytest.raises(MismatchError, match="one is a class of yours"):
        _ = theirs + ours
    same = dataclasses.replace(theirs, specification=ours.specification)
    assert same == ours


def test_a_subclass_of_ours_is_a_map_of_its_own():
    class Shifted(RandomFourier):
        def bind(self, n_features):
            bound = super().bind(n_features)
            encode = bound.encode
            return dataclasses.replace(bound, encode=lambda X, out: encode(X + 1.0, out))

    X = np.arange(6.0).reshape(3, 2)
    plain = type("RandomFourier", (RandomFourier,), {})
    several = [RandomFourier(9), plain(9), Shifted(9), Shifted(9, gamma=0.2)]
    assert len({Knowledge.of(phi, X, [0, 1, 1]).digest() for phi in several}) == 4
    for phi in several[1:]:
        assert PROBE in phi.bind(2).describe()["features"]


def test_maps_of_ours_are_known_by_their_specification_alone():
    for phi in MAPS[:-1]:
        assert phi.bind(3).describe()["features"] == phi.specification()
    pretended = type("Linear", (Linear,), {"__module__": "traceless.features.linear"})
    assert PROBE in pretended().bind(3).describe()["features"]


def test_an_edited_map_shows_though_its_version_was_not_raised():
    model = learned(Squares())
    old = pickle.loads(pickle.dumps(model.knowledge_))
    edited = own_map(lambda X: X * X + 2**-14)
    with pytest.raises(MismatchError, match="raise its `version`"):
        _ = old + learned(edited()).knowledge_


def test_a_change_of_class_under_one_name_is_noticed():
    model = learned(Squares()).set_params(feature_map=Doubles())
    with pytest.raises(MismatchError, match="different codes"):
        model.partial_fit([[1.0, 2.0]], [True])


def test_the_same_class_in_a_script_and_in_a_module(tmp_path):
    """One file run as __main__, and imported, is one map; its name and place do not matter."""
    (tmp_path / "maps.py").write_text(
        "from traceless.features import FeatureMap\n"
        "from traceless import Knowledge\n"
        "class Squares(FeatureMap):\n"
        "    def __init__(self, bias=True, resolution=2**-14):\n"
        "        self.bias, self.resolution = bias, resolution\n"
        "    def values(self, X):\n"
        "        return X * X\n"
        "digest = Knowledge.of(Squares(), [[0.5, 3.0]], ['a']).digest()\n"
        "if __name__ == '__main__':\n"
        "    import maps\n"
        "    assert maps.Squares is not Squares and maps.digest == digest\n"
        "    print(digest)\n"
    )
    command = [sys.executable, str(tmp_path / "maps.py")]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert shown == Knowledge.of(Squares(), [[0.5, 3.0]], ["a"]).digest()


def test_the_probe_is_the_same_everywhere():
    rows = np.vstack(list(probe_rows(3)))
    assert rows.shape == (16, 3)
    assert not rows[0].any()
    for r in range(1, 16):
        for j in range(3):
            whole = 2654435761 * (3 * r + j) % 2**32 // 2**23 - 256
            assert rows[r, j] == whole * 2.0 ** (2 * (r % 4) - 10)
    assert (np.abs(rows).max(axis=0) > 8).all()
    assert Cubes().bind(3).describe()["features"][PROBE] == (
        "cd617424a7081b8e4f0fbbbed41f348c220b0e19e568bef355ec2dad411a3789"
    )


def test_maps_that_refuse_or_overflow_at_the_probe():
    """What cannot be learned counts as one value, whatever libm makes of it; warnings are none."""
    with np.errstate(all="raise"):
        for compute in (np.sqrt, np.log, lambda X: 1.0 / X, lambda X: np.exp(X * 1e6)):
            assert len(own_map(compute)().bind(3).describe()["features"][PROBE]) == 64

    def positive(X):
        if (X < 0).any():
            raise ValueError("negative")
        return X

    def never(X):
        return X if X.flags.writeable else positive(-1.0 - X * X)  # all but the first, in bind

    some, none = own_map(positive)().bind(1), own_map(never)().bind(1)
    assert some.describe() != own_map(lambda X: positive(X) * 2)().bind(1).describe()
    assert none.describe()["features"][PROBE] == "refused by Squares"
    warns = own_map(lambda X: (warnings.warn("odd", stacklevel=1), X)[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quiet = warns().bind(2)
    assert quiet.describe() == own_map(lambda X: X)().bind(2).describe()


def test_arrays_of_a_map_that_are_changed_later_change_nothing_that_is_bound():
    class Shifts(FeatureMap):
        def __init__(self, shift, bias=True, resolution=2**-14):
            self.shift = shift
            self.bias = bias
            self.resolution = resolution

        def values(self, X):
            return X + self.shift

    X, shift = np.arange(6.0).reshape(3, 2), np.array([1.0, 2.0])
    phi = Shifts(shift)
    bound = phi.bind(2)
    before, specification = bound.codes(X), dict(bound.describe()["features"])
    steps = np.array([0.5, 2**-3])
    late = RandomFourier(2, input_resolution=steps).bind(2)
    expected = RandomFourier(2, input_resolution=steps.copy()).bind(2).codes(X)
    model = LSSVC(phi).fit(X, [0, 1, 1])
    shift[:] = 7.0
    steps[:] = 4.0
    assert (bound.codes(X) == before).all()
    assert bound.describe()["features"] == specification
    assert (late.codes(X) == expected).all()
    assert phi.specification() != {k: v for k, v in specification.items() if k != PROBE}
    with pytest.raises(MismatchError, match="shift is"):
        model.partial_fit(X, [0, 1, 1])


def test_a_map_cannot_write_to_the_rows_it_is_given():
    def careless(X):
        X *= 2.0
        return X

    X = np.arange(6.0).reshape(3, 2)
    with pytest.raises(ValueError, match="read-only"):
        LSSVC(own_map(careless)()).fit(X, [0, 1, 1])
    assert X.ravel().tolist() == list(range(6))
    with pytest.raises(ValueError, match="read-only"):
        Linear().bind(2).steps[0] = 1.0


def test_values_that_would_never_be_called_are_refused():
    with pytest.raises(TypeError, match=r"Twice\.values would never be called: Linear\.bind"):
        own_map(lambda X: 2 * X, name="Twice", base=Linear)
    for ours in (getattr(traceless.features, n) for n in traceless.features.__all__):
        if ours is not traceless.features.BoundMap:
            own_map(None, base=ours)


def test_parameters_that_a_specification_cannot_tell():
    class Named(FeatureMap):
        def __init__(self, version=2):
            self.version = version

    with pytest.raises(TypeError, match="'version'"):
        Named().specification()

    class Clipped(FeatureMap):
        def __init__(self, low=-np.inf, high=np.nan, bias=np.True_):
            self.low, self.high, self.bias = low, high, bias

    said = Clipped().specification()
    assert json.loads(json.dumps(said, allow_nan=False)) == said == Clipped().specification()
    assert said == {"map": "Clipped", "version": 1, "low": "-inf", "high": "nan", "bias": True}


def test_what_is_bound_knows_what_it_is_of():
    phi = RandomFourier(5)
    bound = phi.bind(3)
    assert bound.is_of(clone(phi), 3)
    assert not bound.is_of(phi, 4)
    assert not bound.is_of(RandomFourier(6), 3)
    assert not Squares().bind(3).is_of(Doubles(), 3)
    assert Squares().bind(3).is_of(Squares(), 3)


def test_the_hash_of_the_codes_travels_with_knowledge(tmp_path):
    known = learned(Squares()).knowledge_
    known.save(tmp_path / "k")
    again = traceless.load(tmp_path / "k")
    assert again == known
    assert learned(Squares(), 1).merge(again).n_samples_ == 40
    with pytest.raises(MismatchError, match="different codes"):
        learned(Doubles(), 1).merge(again)
    live = LSSVC(Squares(), solver="woodbury", **PAPER).fit([[0.0, 1.0], [1.0, 1.0]], [0, 1])
    state = live.export_state()
    assert LSSVC(Squares(), solver="woodbury", **PAPER).import_state(state).n_samples_ == 2
    with pytest.raises(MismatchError, match="different codes"):
        LSSVC(Doubles(), solver="woodbury", **PAPER).import_state(state)
