import tracemalloc
from enum import StrEnum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy import sparse
from threadpoolctl import threadpool_limits

from cases import MAPS, exact_gram, examples, name, slow_plainly
from traceless import Knowledge, MismatchError, RangeError
from traceless.features import Linear, Polynomial
from traceless.knowledge import gathering
from traceless.knowledge.sums import Recipe

PHI = Linear()


class Colour(StrEnum):
    RED = "red"


@pytest.mark.parametrize("classwise", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("phi", MAPS, ids=name)
def test_chunks_threads_and_order_do_not_matter(phi, weighted, classwise, rng, monkeypatch):
    X, y, order = rng.normal(size=(300, 6)), rng.integers(0, 4, 300), rng.permutation(300)
    w = np.exp(rng.normal(size=300) * 3) if weighted else np.ones(300)  # of many sizes
    options = {"classwise": classwise, "fingerprint": True}
    known = [Knowledge.of(phi, X, y, w, **options)]
    for chunk, threads in ((7, 1), (130, 2), (299, 1)):
        monkeypatch.setattr(gathering, "_chunk_rows", lambda _, chunk=chunk: chunk)
        with threadpool_limits(threads):
            known.append(Knowledge.of(phi, X[order], y[order], w[order], **options))
    assert len({one.digest() for one in known}) == 1


@st.composite
def raw_tables(draw):
    """Codes of columns as they come: whole numbers, fractions, offsets, up to 2^53 steps."""
    n = draw(st.integers(1, 12))
    columns = []
    for _ in range(draw(st.integers(1, 4))):
        zeros = draw(st.sampled_from([0, 3, 7, 14, 21]))
        offset = draw(st.sampled_from([0, 1, 10**4, 2**30])) << zeros
        size = 2 ** draw(st.integers(0, 52 - max(zeros, 31)))
        codes = draw(npst.arrays(np.int64, n, elements=st.integers(-size, size)))
        columns.append(offset + (codes << zeros))
    return np.column_stack(columns)


@examples(100)
@given(raw_tables(), st.sampled_from([None, 1, 2**11 + 1]), st.integers(1, 13), st.data())
def test_sums_of_raw_columns_are_those_of_python_integers(codes, weight, chunk, data):
    n = len(codes)
    y = data.draw(npst.arrays(np.int64, n, elements=st.integers(0, 2)))
    weights = None if weight is None else 1 + np.arange(n) * weight
    X = np.ldexp(codes.astype(float), -14)
    X = sparse.csr_array(X) if data.draw(st.booleans()) else X
    beside = np.column_stack([codes, np.ones(n, dtype=np.int64)])  # the constant feature
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gathering, "_chunk_rows", lambda _: chunk)
        patch.setattr(gathering.Gathering, "are_few", data.draw(st.booleans()))
        pooled = Knowledge.of(PHI, X, y, weights)
        apart = Knowledge.of(PHI, X, y, weights, classwise=True)
        real = Knowledge.of(PHI, X, 10**4 + y, weights, task="regression")
    labels = np.unique(y)
    one_hot = np.column_stack([beside, y[:, None] == labels])
    assert (pooled.sums == exact_gram(one_hot, weights)).all()
    assert (real.sums == exact_gram(np.column_stack([beside, (10**4 + y) << 14]), weights)).all()
    for k, label in enumerate(labels):
        of, w = y == label, None if weights is None else weights[y == label]
        one = np.column_stack([beside, np.ones(n, dtype=np.int64)])[of]
        assert (apart.sums[k] == exact_gram(one, w)).all()


TASKS = ["classification", "classes apart", "regression", "multilabel"]


@examples(150)
@given(
    st.sampled_from(TASKS),
    st.sampled_from([None, "whole", "fractions"]),
    st.booleans(),
    st.sampled_from([2.0**-14, 2.0**-30, 2.0**-44]),
    st.integers(0, 2**32 - 1),
)
def test_few_rows_change_knowledge_as_sums_of_rows_do(task, weights, fingerprint, grid, seed):
    rng, apart = np.random.default_rng(seed), task == "classes apart"
    kind = "classification" if apart else task
    recipe = Recipe(Linear(resolution=grid).bind(2), kind, 2.0**-14, apart, fingerprint)

    def some(n):
        labels = rng.integers(0, 2, (n, 2)) if task == "multilabel" else rng.integers(0, 3, n)
        w = {"whole": rng.integers(0, 5, n), "fractions": rng.integers(0, 9, n) / 8}.get(weights)
        return rng.normal(size=(n, 2)), labels * 1.0 if task == "regression" else labels, w

    known, held = recipe.knowledge(some(6)), []
    for _ in range(6):
        if held and rng.random() < 0.5:
            rows, sign = held.pop(), -1
        else:
            rows, sign = some(int(rng.integers(1, 4))), 1
            held.append(rows)
        part, total = recipe.knowledge(rows), known.total.copy()
        expected = known + part if sign > 0 else known - part
        after = recipe.changed(known, rows, sign)
        assert after == expected
        assert after.digest() == expected.digest()
        assert (known.total == total).all()
        known = after


def test_few_rows_that_do_not_fit_take_the_general_way():
    recipe = Recipe(PHI.bind(1), "classification", 1.0)
    known = recipe.knowledge((np.array([[2.0**16]]), [0], None))
    for x, label, weight in ((2.0**17, 0, None), (2.0**16, 1, None), (1.0, 0, [2.0**-30])):
        rows = np.array([[x]]), [label], weight
        for _ in range(3):
            after = recipe.changed(known, rows, 1)
            assert after == known + recipe.knowledge(rows)
            assert recipe.changed(after, rows, -1) == known
            known = after
    with pytest.raises(MismatchError, match="one type"):
        recipe.changed(known, (np.ones((1, 1)), ["a"], None), 1)
    with pytest.raises(MismatchError):
        Recipe(Linear(resolution=1.0).bind(1), "classification", 1.0).changed(known, rows, 1)
    with pytest.raises(RangeError):
        recipe.changed(known, (np.full((1, 1), np.nan), [0], None), 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint8, bool])
def test_rows_of_any_type_are_converted_a_chunk_at_a_time(dtype, rng):
    X = rng.integers(0, 2, size=(30, 3)).astype(dtype)
    y = rng.integers(0, 2, 30)
    assert Knowledge.of(PHI, X, y) == Knowledge.of(PHI, X.astype(np.float64), y)


@pytest.mark.parametrize("phi", MAPS, ids=name)
def test_sparse_rows_are_the_dense_ones(phi, rng):
    X = sparse.csr_array(np.where(rng.random((60, 5)) < 0.3, rng.normal(size=(60, 5)), 0.0))
    y = rng.integers(0, 3, 60)
    dense = Knowledge.of(phi, X.toarray(), y)
    assert Knowledge.of(phi, X, y) == dense
    assert Knowledge.of(phi, X.tocsc(), y) == dense


def peak_over_input(X, y):
    tracemalloc.start()
    k = Knowledge.of(PHI, X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak, k.gram.nbytes


@pytest.mark.parametrize("n", [20_000, 200_000])
def test_memory_does_not_grow_with_the_rows(n):
    X, y = np.ones((n, 100)), np.arange(n) % 10
    peak, size = peak_over_input(X, y)
    assert peak <= 2 * size + 64e6


@slow_plainly
def test_a_sparse_matrix_is_never_dense_as_a_whole():
    X = sparse.eye(300, format="csr")
    X = sparse.vstack([X] * 1000, format="csr")  # 720 MB if it were dense
    peak, size = peak_over_input(X, np.arange(300_000) % 2)
    assert peak <= 2 * size + 64e6


def test_the_callers_arrays_are_never_written_to(rng):
    for order in "CF":
        X = np.array(rng.normal(size=(50, 4)), order=order)
        y, w = rng.normal(size=50), rng.uniform(1, 2, size=50)
        before = X.copy(), y.copy(), w.copy()
        for a in (X, y, w):
            a.setflags(write=False)
        Knowledge.of(PHI, X, y, w, task="regression")
        Knowledge.of(Polynomial(), X, (y > 0), w)
        assert all((a == b).all() for a, b in zip(before, (X, y, w), strict=True))


@pytest.mark.parametrize(
    ("y", "labels"),
    [
        (np.array([2, 0, 2], dtype=np.int8), (0, 2)),
        (np.array([2.0, 0.0, 2.0]), (0, 2)),
        (np.array(["b", "a", "b"]), ("a", "b")),
        (np.array(["b", "a", "b"], dtype=object), ("a", "b")),
        (np.array([True, False, True]), (False, True)),
        (np.array([b"x", b"y", b"x"]), (b"x", b"y")),
        (np.array([2**53 + 1, 2**53, 2**53 + 1]), (2**53, 2**53 + 1)),
        (np.array([2**64 - 1, 2**64 - 2, 5], dtype=np.uint64), (5, 2**64 - 2, 2**64 - 1)),
        (np.array([np.int64(2), np.int8(1), 2.0], dtype=object), (1, 2)),
        (np.array([np.str_("b"), Colour.RED, "b"], dtype=object), ("b", "red")),
    ],
)
def test_labels_are_kept_in_pythons_types(y, labels):
    k = Knowledge.of(PHI, np.ones((3, 1)), y)
    assert k.responses == labels
    assert [type(v) for v in k.responses] == [type(v) for v in labels]


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        (np.array([0.5, 1.0]), ValueError, r"got 0\.5"),
        (np.array([np.nan, 1.0]), ValueError, "got nan"),
        (np.array([1, "a"], dtype=object), TypeError, "one sortable type"),
        (np.array([True, 2], dtype=object), MismatchError, "bool and int"),
        (np.array([True, 1], dtype=object), MismatchError, "bool and int"),
        (np.array([1, True], dtype=object), MismatchError, "bool and int"),
        (np.array([np.True_, 1.0], dtype=object), MismatchError, "bool and int"),
        (np.array([2.0**53 + 2, 1.0]), ValueError, "as integers of one type"),
        ([2**63 + 1, -1], ValueError, "as integers of one type"),
        (np.array([None, None]), ValueError, "missing"),
        (np.array([[1, 2], [3, 4]]), ValueError, "one per row"),
        (np.array([1, 2, 3]), ValueError, "X has 2 rows, but y has 3"),
    ],
)
def test_bad_labels(y, error, message):
    with pytest.raises(error, match=message):
        Knowledge.of(PHI, np.ones((2, 1)), y)


def test_no_rows_at_all():
    for options in ({}, {"classwise": True}, {"fingerprint": True}, {"task": "regression"}):
        nothing = Knowledge.of(PHI, np.empty((0, 2)), np.empty(0), **options)
        some = Knowledge.of(PHI, np.ones((1, 2)), [3], **options)
        assert nothing.check_possible().n_samples == 0
        assert nothing + some == some
        assert nothing == some - some


def test_bad_targets():
    X = np.ones((2, 1))
    for y in ([1.0, np.nan], [np.inf, 1.0], [1e300, 0.0]):
        with pytest.raises(RangeError, match="coarser target_resolution"):
            Knowledge.of(PHI, X, y, task="regression")
    with pytest.raises(ValueError, match="target_resolution must be a power of two"):
        Knowledge.of(PHI, X, [1.0, 2.0], task="regression", target_resolution=0.3)


def test_rows_of_another_width_than_the_bound_map():
    with pytest.raises(ValueError, match="2 columns, the feature map takes 3"):
        Knowledge.of(PHI.bind(3), np.ones((1, 2)), [0])


def test_progress_is_shown_when_asked_for(monkeypatch, capsys):
    from traceless import progress

    monkeypatch.setattr(gathering, "_chunk_rows", lambda _: 1)
    monkeypatch.setattr(gathering.Gathering, "are_few", False)
    monkeypatch.setattr(progress.time, "monotonic", iter(range(0, 1000, 3)).__next__)
    Knowledge.of(PHI, np.ones((8, 1)), np.arange(8) % 2, verbose=True)
    shown = capsys.readouterr().err
    assert "learning" in shown
    assert "100%" in shown
    Knowledge.of(PHI, np.ones((8, 1)), np.arange(8) % 2)
    assert capsys.readouterr().err == ""
