import contextlib
import gc
import os

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster, worker_client
from scipy import sparse

import sabotage
from traceless import LSSVC, Knowledge, RangeError, scan
from traceless.exceptions import EngineError
from traceless.features import Linear
from traceless.knowledge.sums import Recipe
from traceless.sources import as_source
from traceless.sources import dask as module

ONE_TASK = pytest.mark.parametrize("task", ["classification"], indirect=True)
CUTS = [(100, 0, 50, 250), (40,) * 10]
LINEAR = Recipe(Linear().bind(2), task="classification", target_resolution=1.0)


@pytest.fixture(scope="module")
def two_workers():
    """Each a process of its own with one thread."""
    settings = {
        "distributed.scheduler.allowed-failures": 1,
        "distributed.admin.low-level-log-length": 0,
    }
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",  # any free port: None means 8787, and a warning if it is taken
            silence_logs=50,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def cluster(two_workers):
    """Two workers: new ones where a test has killed some that did not come back, on a busy core."""
    try:
        two_workers.wait_for_workers(2, timeout=30)
    except TimeoutError:
        two_workers.cluster.scale(0)
        two_workers.cluster.scale(2)
        two_workers.wait_for_workers(2, timeout=60)
    return two_workers


@pytest.fixture(params=["threads", "cluster"])
def scheduler(request):
    """Both ways that Dask computes: in threads of this process, and on a cluster."""
    if request.param == "cluster":
        with request.getfixturevalue("cluster").as_current():
            yield
    else:
        with dask.config.set(scheduler="threads"):
            yield


def arrays(rows, cut, columns=5):
    X, y, weight = rows
    return (
        da.from_array(X, chunks=(cut, columns)),
        da.from_array(y, chunks=(cut, *y.shape[1:])),
        da.from_array(weight, chunks=(cut,)),
    )


def frames(rows, n):
    X, y, weight = rows
    table = pd.DataFrame(X, columns=list("abcde"))
    targets = ["y"] if y.ndim == 1 else ["y", "z"]
    table[targets] = y.reshape(len(y), -1)
    table["w"] = weight
    lazy = dd.from_pandas(table, npartitions=n, sort=False)
    return lazy[list("abcde")], lazy[targets if y.ndim == 2 else "y"], lazy["w"]


@pytest.mark.parametrize("cut", CUTS, ids=str)
def test_arrays(cut, recipe, rows, digest, scheduler):
    source = as_source(*arrays(rows, cut))
    assert (source.n_features, source.feature_names) == (5, None)
    assert source.knowledge(recipe).digest() == digest


def test_chunks_of_columns_and_of_y_follow_the_rows_of_x(recipe, rows, digest, scheduler):
    X, _, _ = arrays(rows, (150, 250), columns=2)
    _, y, _ = arrays(rows, (40,) * 10)
    _, _, weight = arrays(rows, (400,))
    assert as_source(X, y, weight).knowledge(recipe).digest() == digest


@pytest.mark.parametrize("n", [1, 8])
def test_frames(n, recipe, rows, digest, scheduler):
    X, y, weight = frames(rows, n)
    source = as_source(X, y, weight)
    assert (source.n_features, source.feature_names) == (5, list("abcde"))
    assert source.knowledge(recipe).digest() == digest


@pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame.reset_index")  # Dask's own
def test_partitions_that_dask_reads_together(rng, tmp_path):
    names = [f"x{j}" for j in range(60)]
    table = pd.DataFrame(rng.normal(size=(400, 60)), columns=names).assign(y=np.arange(400) % 3)
    for k in range(8):
        table[k::8].to_parquet(tmp_path / f"{k}.parquet", index=False)
    frame = dd.read_parquet(tmp_path)
    assert len(frame["y"].to_delayed()) < len(frame[names].to_delayed())  # else shows nothing
    model = LSSVC().fit(frame[names], frame["y"])
    assert model.digest() == LSSVC().fit(table[names], table["y"]).digest()


def test_frames_and_arrays_of_unknown_lengths(recipe, rows, digest, scheduler):
    X, y, weight = frames(rows, 5)
    keep = X["a"] < np.inf
    for chosen in (X[keep].values, y[keep], weight[keep].values), (X, y, weight.values):
        assert as_source(*chosen).knowledge(recipe).digest() == digest


@ONE_TASK
def test_empty_partitions(recipe, rows, scheduler):
    X, y, weight = frames(rows, 8)
    keep = (X["a"] > 2.5) & (y == "a")
    source = as_source(X[keep], y[keep], weight[keep])
    chosen = (rows[0][:, 0] > 2.5) & (rows[1] == "a")
    expected = recipe.knowledge(tuple(a[chosen] for a in rows))
    assert 0 < expected.n_samples < 8
    assert source.knowledge(recipe) == expected
    nothing = as_source(X[X["a"] > 99], y[X["a"] > 99])
    assert nothing.knowledge(recipe).n_samples == 0


def test_sparse_blocks_and_one_weight_for_all(scheduler):
    X = np.where(np.arange(60).reshape(30, 2) % 3, 1.5, 0.0)
    y = np.arange(30) % 2
    blocks = da.from_array(X, chunks=(10, 2)).map_blocks(sparse.csr_matrix)
    found = as_source(blocks, da.from_array(y, chunks=10), 2.0).knowledge(LINEAR)
    assert found == LINEAR.knowledge((X, y, 2.0))


@ONE_TASK
def test_only_the_sum_comes_to_this_process(recipe, rows, digest, cluster, unpickled):
    with cluster.as_current():
        assert as_source(*arrays(rows, (40,) * 10)).knowledge(recipe).digest() == digest
    assert len(unpickled) == 1


@ONE_TASK
def test_the_sum_is_not_kept_on_the_cluster(recipe, rows, cluster):
    source = as_source(*arrays(rows, (100,) * 4))
    with cluster.as_current():
        source.knowledge(recipe)
    gc.collect()
    cluster.run_on_scheduler(lambda: None)
    assert not cluster.futures


def counted(block, log):
    with open(log, "ab") as file:
        file.write(b".")
    return block


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_nothing_is_computed_twice(kind, rng, tmp_path, scheduler):
    X, y, log = rng.normal(size=(60, 2)), np.arange(60) % 3, str(tmp_path / "log")
    if kind == "array":
        lazy = da.from_array(X, chunks=(12, 2)).map_blocks(counted, log, meta=X[:0])
        model = LSSVC().fit(lazy, da.from_array(y, chunks=12))
    else:
        frame = dd.from_pandas(pd.DataFrame(X, columns=["a", "b"]).assign(y=y), npartitions=5)
        frame = frame.map_partitions(counted, log, meta=frame._meta).shuffle("y", npartitions=5)
        model = LSSVC().fit(frame[["a", "b"]], frame["y"])
    assert os.path.getsize(log) == 5
    assert model.digest() == LSSVC().fit(X, y).digest()


@ONE_TASK
def test_the_graph_is_linear_in_the_partitions(recipe, rows, digest, monkeypatch):
    sizes = []
    monkeypatch.setattr(module, "_compute", lambda root, verbose: sizes.append(len(root.dask)))
    for n in (100, 200, 400):
        as_source(*arrays(rows, (400 // n,) * n)).knowledge(recipe)
    assert sizes[2] < 4.2 * sizes[0]  # four times the partitions


@ONE_TASK
def test_annotations_are_honoured(recipe, rows, digest, cluster, tmp_path):
    lazy = arrays(rows, (100,) * 4)
    failing = sabotage.of(recipe, sabotage.Failing, marker=str(tmp_path / "failed"))
    with cluster.as_current(), dask.annotate(retries=2):
        assert as_source(*lazy).knowledge(failing).digest() == digest
    with cluster.as_current(), pytest.raises(RuntimeError, match="the disk is full"):
        as_source(*lazy).knowledge(sabotage.of(recipe, sabotage.Failing))


def fitted(X, y):
    return LSSVC().fit(da.from_array(X, chunks=(50, 2)), da.from_array(y, chunks=50)).digest()


def fitted_by_a_client(X, y):
    with worker_client():
        return fitted(X, y)


@pytest.mark.parametrize("task", [fitted, fitted_by_a_client])
def test_a_fit_inside_of_tasks_does_not_wait_for_its_own_thread(task, cluster, rng):
    X, y = rng.normal(size=(100, 2)), rng.integers(0, 2, 100)
    futures = [cluster.submit(task, X, y, pure=False) for _ in range(4)]  # on two threads
    assert {*cluster.gather(futures)} == {LSSVC().fit(X, y).digest()}


# --- what can be wrong --------------------------------------------------------------------------


@ONE_TASK
@pytest.mark.parametrize("kind", [sabotage.Deadly, sabotage.FragileRecipe])
def test_a_killed_worker_changes_nothing(kind, recipe, rows, digest, cluster, tmp_path):
    marker = tmp_path / "killed"
    source = as_source(*arrays(rows, (50,) * 8))
    with cluster.as_current():
        known = source.knowledge(sabotage.of(recipe, kind, marker=str(marker)))
    assert marker.exists()
    assert (known if isinstance(known, Knowledge) else known.knowledge).digest() == digest


def kill(block):
    sabotage.die()
    return block


def allow_failures(n, dask_scheduler):
    dask_scheduler.allowed_failures = n


@pytest.fixture
def impatient(cluster):
    """The cluster, which tries no task again."""
    cluster.run_on_scheduler(allow_failures, 0)
    yield cluster
    cluster.run_on_scheduler(allow_failures, 1)


def test_workers_killed_every_time_leave_the_model_unchanged(impatient, rng):
    X, y = rng.normal(size=(100, 2)), rng.integers(0, 2, 100)
    model = LSSVC().fit(X, y)
    before = model.digest()
    lazy = da.from_array(X, chunks=(50, 2)).map_blocks(kill, meta=X[:0])
    with (
        impatient.as_current(),
        pytest.raises(EngineError, match=r"KilledWorker.*Nothing was changed") as caught,
    ):
        model.partial_fit(lazy, da.from_array(y, chunks=50))
    assert type(caught.value.__cause__).__name__ == "KilledWorker"
    assert model.digest() == before


@ONE_TASK
def test_bad_rows_raise_their_own_error(recipe, rows, scheduler):
    rows[0][250, 3] = np.nan
    with pytest.raises(RangeError, match="NaN"):
        as_source(*arrays(rows, (200, 200))).knowledge(recipe)


@ONE_TASK
def test_rows_that_do_not_belong_together(recipe, rows):
    X, y, weight = arrays(rows, (200, 200))
    with pytest.raises(ValueError, match="X has 400 rows, but y has 300"):
        as_source(X, y[:300])
    with pytest.raises(ValueError, match="400 rows, but sample_weight has 10"):
        as_source(X, y, weight[:10])
    with pytest.raises(ValueError, match=r"X has 3 partitions, y 2.*compute_chunk_sizes"):
        as_source(frames(rows, 3)[0], y)
    with pytest.raises(ValueError, match="two dimensions, got 1"):
        as_source(weight, y)
    with (
        dask.config.set(scheduler="sync"),
        pytest.raises(ValueError, match="X has 200 rows, but y has 0"),
    ):
        as_source(frames(rows, 2)[0], y[y == "none"]).knowledge(recipe)


@ONE_TASK
@pytest.mark.parametrize(
    ("choose", "message"),
    [
        (lambda X, y, w: (X, y.compute()), "X is a Dask collection and y is ndarray"),
        (lambda X, y, w: (X.compute(), y), "y is a Dask collection and X is ndarray"),
        (lambda X, y, w: (X, None), "X is a Dask collection and y is NoneType"),
        (lambda X, y, w: (X, y, w.compute()), "X is a Dask collection and sample_weight is nd"),
        (lambda X, y, w: (X.compute(), y.compute(), w), "sample_weight is a Dask collection"),
        (lambda X, y, w: (dask.delayed(X), y), "X is a Dask Delayed; pass Dask arrays"),
    ],
)
def test_all_or_none_are_dask_collections(choose, message, rows):
    with pytest.raises(TypeError, match=message):
        as_source(*choose(*arrays(rows, (200, 200))))


def test_blas_threads_are_as_before(scheduler, recipe, rows):
    from threadpoolctl import threadpool_info

    def threads():
        return [(lib["filepath"], lib["num_threads"]) for lib in threadpool_info()]

    before = threads()
    for _ in range(3):
        as_source(*arrays(rows, (40,) * 10)).knowledge(recipe)
    with contextlib.suppress(RangeError):
        as_source(*arrays((rows[0] * np.nan, *rows[1:]), (40,) * 10)).knowledge(recipe)
    assert threads() == before


# --- files, opened by the workers -----------------------------------------------------------------


@ONE_TASK
def test_partitions_of_files_on_a_cluster(recipe, rows, digest, cluster, tmp_path):
    X, y, weight = rows
    for k in range(3):
        table = pd.DataFrame(X[k::3], columns=list("abcde")).assign(y=y[k::3], w=weight[k::3])
        table.to_parquet(tmp_path / f"{k}.parquet", index=False, row_group_size=20)
    source = scan(tmp_path, "y", sample_weight="w", batch_rows=30).on(cluster)
    assert (source.n_features, source.feature_names) == (5, list("abcde"))
    assert source.knowledge(recipe).digest() == digest
    with pytest.raises(TypeError, match="or a SparkSession, got str"):
        scan(tmp_path / "0.parquet", "y").on("local[2]")


def test_several_labels_for_each_row(rng):
    X = rng.normal(size=(100, 4))
    Y = (X[:, :3] > 0).astype(int)
    frame = dd.from_pandas(pd.DataFrame(np.hstack([X, Y]), columns=list("abcdxyz")), npartitions=3)
    arrays = da.from_array(X, chunks=(30, 4)), da.from_array(Y, chunks=(30, 3))
    here = LSSVC().fit(X, Y)
    for rows in (arrays, (frame[list("abcd")], frame[list("xyz")])):
        model = LSSVC().partial_fit(*rows, classes=range(3))
        assert model.digest() == here.digest()
        assert model.partial_fit(*rows).forget(*rows).digest() == here.digest()
