import gzip

import numpy as np
import pytest

from papers import datasets


def write_idx(folder, prefix, n):
    folder.mkdir(parents=True, exist_ok=True)
    images = np.arange(n * 4, dtype=np.uint8)
    header = b"\x00\x00\x08\x03" + np.array([n, 2, 2], ">i4").tobytes()
    (folder / f"{prefix}-images-idx3-ubyte.gz").write_bytes(
        gzip.compress(header + images.tobytes())
    )
    header = b"\x00\x00\x08\x01" + np.array([n], ">i4").tobytes()
    labels = bytes(range(n))
    (folder / f"{prefix}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(header + labels))


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    monkeypatch.delenv("TRACELESS_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.parametrize("place", ["data", "data/mnist", "cache/traceless/mnist"])
def test_found_by_variable_or_in_the_cache(nowhere, monkeypatch, place):
    write_idx(nowhere / place, "train", 3)
    write_idx(nowhere / place, "t10k", 2)
    monkeypatch.setenv("TRACELESS_DATA", str(nowhere / "data"))
    assert datasets.find_mnist() == nowhere / place
    X, y = datasets.load_mnist()
    assert (np.arange(12).reshape(3, 4) == X).all()
    assert y.tolist() == [0, 1, 2]
    assert datasets.load_mnist("test")[0].shape == (2, 4)


def test_damaged_files_are_refused(nowhere, monkeypatch):
    monkeypatch.setenv("TRACELESS_DATA", str(nowhere))
    write_idx(nowhere, "train", 3)
    path = nowhere / "train-images-idx3-ubyte.gz"
    whole = gzip.decompress(path.read_bytes())
    path.write_bytes(gzip.compress(whole[:-1]))
    with pytest.raises(ValueError, match="cut short"):
        datasets.load_mnist()
    path.write_bytes(gzip.compress(b"PK" + whole))
    with pytest.raises(ValueError, match="not an idx file"):
        datasets.load_mnist()


def test_downloaded_otherwise_with_a_message(nowhere, monkeypatch, capsys):
    assert datasets.find_mnist() is None

    def fetch(name, **options):
        assert name == "mnist_784"
        assert options["data_home"] == nowhere / "cache" / "traceless"
        return np.zeros((70_000, 1)), np.array(["3"] * 70_000)

    monkeypatch.setattr(datasets, "fetch_openml", fetch)
    assert datasets.load_mnist("test")[1].tolist() == [3] * 10_000
    assert "downloading" in capsys.readouterr().err


def test_no_network_says_what_to_do(nowhere, monkeypatch):
    def fetch(*_, **__):
        raise OSError("no route")

    monkeypatch.setattr(datasets, "fetch_openml", fetch)
    with pytest.raises(FileNotFoundError, match="Set TRACELESS_DATA"):
        datasets.load_mnist()
