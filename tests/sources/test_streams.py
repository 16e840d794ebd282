"""Any stream of batches gives the digest of its rows."""

from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from traceless import LSSVC, LSSVR, from_batches, scan

CUTS = [0, 20, 20, 70, 100]


@pytest.fixture
def table(rng):
    X = rng.normal(size=(100, 2))
    w = rng.integers(1, 9, 100) / 4
    return pa.table({"a": X[:, 0], "b": X[:, 1], "y": rng.choice(["u", "v"], 100), "w": w})


def parts(table):
    return [table.slice(i, j - i) for i, j in pairwise(CUTS)]


def rows(table):
    X = np.column_stack([table["a"], table["b"]])
    return X, table["y"].to_numpy(), table["w"].to_numpy()


class Rays:
    """What a Ray dataset is to us."""

    def __init__(self, table):
        self.table = table

    def iter_batches(self, batch_format):
        assert batch_format == "pyarrow"
        return iter(parts(self.table))


def duck(table):
    duckdb = pytest.importorskip("duckdb")
    return duckdb.from_arrow(table).filter("a < 99")


def dataset(table):
    return pyarrow.dataset.dataset(parts(table))


def parquet_file(table):
    file = pa.BufferOutputStream()
    pq.write_table(table, file, row_group_size=30)
    return pq.ParquetFile(pa.BufferReader(file.getvalue()))


NAMED = {
    "tables": parts,
    "a function": lambda t: lambda: parts(t),
    "an iterator": lambda t: iter(parts(t)),
    "record batches": lambda t: [b for p in parts(t) for b in p.to_batches()],
    "a reader": lambda t: t.to_reader(30),
    "a table": lambda t: t,
    "pandas": lambda t: [p.to_pandas() for p in parts(t)],
    "polars": lambda t: [pl.from_arrow(p) for p in parts(t)],
    "a LazyFrame": lambda t: pl.from_arrow(t).lazy(),
    "a Dataset": dataset,
    "a Scanner": lambda t: dataset(t).scanner(batch_size=30),
    "a ParquetFile": parquet_file,
    "dicts": lambda t: [{n: np.array(p[n]) for n in p.column_names} for p in parts(t) if len(p)],
    "Ray": Rays,
    "DuckDB": duck,
}


@pytest.mark.parametrize("make", NAMED.values(), ids=NAMED.keys())
def test_streams_with_names(make, table):
    source = from_batches(make(table), "y", sample_weight="w")
    assert (source.n_features, source.feature_names) == (2, ["a", "b"])
    model = LSSVC().fit(source)
    assert model.digest() == LSSVC().fit(*rows(table)).digest()
    if make not in map(NAMED.get, ("an iterator", "a reader")):
        assert LSSVC().fit(source).digest() == model.digest()  # asked anew
    assert model.feature_names_in_.tolist() == ["a", "b"]


def test_pairs_and_triples(table):
    X, y, w = rows(table)
    cut = [slice(i, j) for i, j in pairwise(CUTS)]
    assert (
        LSSVC().fit(from_batches([(X[c], y[c], w[c]) for c in cut])).digest()
        == LSSVC().fit(X, y, w).digest()
    )
    frames = ((pd.DataFrame(X[c]), pd.Series(w[c])) for c in cut)
    assert LSSVR().fit(from_batches(frames)).digest() == LSSVR().fit(X, w).digest()


def test_labels_of_one_column_are_labels(table):
    X, y, w = rows(table)
    for make, target in ((LSSVC, y), (LSSVR, w)):
        for shapes in ([(-1,), (-1, 1)], [(-1, 1), (-1,)], [(-1, 1), (-1, 1)]):
            cut = zip((slice(40), slice(40, None)), shapes, strict=True)
            batches = [(X[c], target[c].reshape(shape)) for c, shape in cut]
            assert make().fit(from_batches(batches)).digest() == make().fit(X, target).digest()


def test_several_labels_for_each_row(table, tmp_path):
    X, _, _ = rows(table)
    Y = (X > 0).astype(int)
    model = LSSVC().fit(X, Y)
    both = pa.table({"a": X[:, 0], "b": X[:, 1], "u": Y[:, 0], "v": Y[:, 1]})
    pq.write_table(both, tmp_path / "rows.parquet")
    for source in (
        from_batches([(X[:30], Y[:30]), (X[30:], Y[30:])]),
        from_batches(both, ["u", "v"]),
        scan(tmp_path / "rows.parquet", ["u", "v"]),
    ):
        assert LSSVC().fit(source).digest() == model.digest()
        twice = LSSVC().fit(X, Y).update(add=source, forget=(X, Y))
        assert twice.digest() == model.digest()
    one = scan(tmp_path / "rows.parquet", "u", columns=["a", "b"])
    with pytest.raises(ValueError, match="must come as a matrix of 0 and 1"):
        model.partial_fit(one)


def test_a_torch_loader(table):
    torch = pytest.importorskip("torch")
    X, _, w = rows(table)
    data = torch.utils.data.TensorDataset(torch.tensor(X), torch.tensor(w))
    expected = LSSVR().fit(X, w).digest()
    for options in ({}, {"num_workers": 2}, {"collate_fn": by_name}):
        loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True, **options)
        target = "w" if "collate_fn" in options else None
        source = from_batches(loader, target)
        assert LSSVR().fit(source).digest() == expected
        assert LSSVR().fit(source).digest() == expected  # asked anew, and shuffled anew


@pytest.mark.filterwarnings("ignore")  # Ray warns of itself
def test_a_ray_dataset(table):
    ray = pytest.importorskip("ray")
    pytest.importorskip("ray.data")
    X, y, _ = rows(table)
    expected = LSSVC().fit(X, y).digest()
    ray.init(num_cpus=1, include_dashboard=False, object_store_memory=80_000_000)
    try:
        named = ray.data.from_arrow(table.drop_columns("w")).repartition(3)
        tensors = ray.data.from_items([{"x": a, "y": b} for a, b in zip(X, y, strict=True)])
        for data in (named, tensors):
            source = from_batches(data, "y")
            assert LSSVC().fit(source).digest() == expected
            assert LSSVC().fit(source).digest() == expected  # asked anew
    finally:
        ray.shutdown()


def by_name(rows):
    """A dict of tensors, as many data sets give it."""
    import torch

    X, w = zip(*rows, strict=True)
    return {"X": torch.stack(X), "w": torch.stack(w)}


def test_features_without_names(table):
    X, y, _ = rows(table)
    matrices = [{"pixels": X[i:j], "y": y[i:j]} for i, j in pairwise(CUTS) if j > i]
    lists = pa.table({"x": list(X), "y": y})
    for batches in (matrices, [lists[:0], lists]):
        source = from_batches(batches, "y")
        assert (source.n_features, source.feature_names) == (2, None)
        assert LSSVC().fit(source).digest() == LSSVC().fit(X, y).digest()


def test_every_batch_is_made_once(table):
    made = []

    def make():
        for part in parts(table):
            made.append(1)
            yield part

    source = from_batches(make, "y", sample_weight="w")
    LSSVC().fit(source)
    assert len(made) == 4
    model = LSSVC().fit(source).forget(source)  # asked anew each time
    assert (len(made), model.n_samples_) == (12, 0)


def test_what_can_be_wrong(table, tmp_path):
    once = from_batches(iter(parts(table)), "y")
    model = LSSVC().fit(once)
    digest = model.digest()
    with pytest.raises(ValueError, match=r"read once.*Nothing was changed"):
        model.partial_fit(once)
    assert model.digest() == digest
    for batches, target, error, message in [
        ([], "y", ValueError, "no batch: no row"),
        (3, "y", TypeError, "iterable of batches"),
        ([3], None, TypeError, r"must be \(X, y\)"),
        ([(np.eye(2), [0, 1])], "y", TypeError, "these batches have none"),
        ([table], None, TypeError, "say which one is the target"),
        ([table], "z", ValueError, "no column 'z'"),
        ([pa.table([[1], [2]], names=["a", "a"])], "a", ValueError, "'a' more than once"),
        ([{"x": np.eye(2), "b": [1, 2], "y": [0, 1]}], "y", TypeError, "'x' of the batch is of"),
        ([{"x": np.ones((2, 2, 2)), "y": [0, 1]}], "y", ValueError, r"'x' .* shape \(2, 2, 2\)"),
        ([(np.ones(2), [0, 1])], None, ValueError, "must have two dimensions"),
        ([{"t": ["u", "v"], "y": [0, 1]}], "y", TypeError, "'t' of the batch is of type string"),
    ]:
        with pytest.raises(error, match=message):
            from_batches(batches, target)
    with pytest.raises(ValueError, match="batch has 1 columns, and the first has 2"):
        LSSVC().fit(from_batches([(np.eye(2), [0, 1]), (np.ones((1, 1)), [0])]))
    with pytest.raises(ValueError, match="no column 'b'"):
        LSSVC().fit(from_batches([table, table.drop_columns("b")], "y"))
    pair, triple = (np.eye(2), [0, 1]), (np.eye(2), [0, 1], [5.0, 5.0])
    for batches in ([pair, triple], [triple, pair]):
        with pytest.raises(ValueError, match="Some batches have weights and others have none"):
            LSSVC().fit(from_batches(batches))
    digits = {"a": ["1", "2"], "b": [1.0, 2.0], "y": [0, 1]}
    with pytest.raises(TypeError, match="'a' of the batch is of type string"):
        LSSVC().fit(from_batches([digits | {"a": [1.0, 2.0]}, digits], "y"))
