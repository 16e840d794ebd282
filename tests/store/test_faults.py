"""Full disks, failing writes and interruptions: the state is what it was, or the next one."""

import errno
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from traceless import LSSVC
from traceless.exceptions import StoreError
from traceless.files import container, saving
from traceless.store import Store
from traceless.store.folder import Folder
from traceless.store.ledger import Ledger
from traceless.store.row_table import RowTable


def state(store):
    return store.history(), store.pending(), store.status().digest


def disk_full(*args, **kwargs):
    raise OSError(errno.ENOSPC, "No space left on device")


def interrupted(*args, **kwargs):
    raise KeyboardInterrupt


POINTS = {
    "write": (container, "write"),
    "fsync": (os, "fsync"),
    "rename": (os, "replace"),
    "folder": (container, "sync_folder"),
    "generation": (Folder, "write"),
    "digests": (RowTable, "add"),
    "entry": (Ledger, "append"),
    "commit": (Ledger, "commit"),
}


@pytest.mark.parametrize("point", POINTS)
def test_an_interrupt_at_any_point_leaves_everything_as_it_was(store, rows, monkeypatch, point):
    X, y = rows
    before = state(store)
    for change in (
        lambda: store.learn(X, y),
        lambda: store.correct((X[:100], y[:100]), (X[200:], y[200:])),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(*POINTS[point], interrupted)
            with pytest.raises(KeyboardInterrupt):
                change()
        assert state(store) == before
        store.flush()  # removes what a failed commit left
        assert store.verify().ok
    assert Store(store.path).learn(*rows).held == 500


def test_a_disk_that_is_full_at_any_size(tmp_path, rows):
    """The largest file allowed grows until a change fits: each time all or nothing."""
    store = Store.new(tmp_path / "store", LSSVC())
    store.learn(rows[0][:20], rows[1][:20])
    before, refused = state(store), 0
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for limit in range(1024, 400_000, 3 * 1024):
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
            store.learn(*rows)
            break
        except OSError:
            refused += 1
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert state(store) == before
    assert refused > 10
    assert store.status().rows == 320
    store.flush()
    assert store.verify().ok


def test_a_store_that_cannot_be_made_is_not_there(tmp_path, monkeypatch):
    for target in ((os, "fsync"), (os, "rename"), (Ledger, "append")):
        with monkeypatch.context() as patch:
            patch.setattr(*target, disk_full)
            with pytest.raises(OSError, match="No space left"):
                Store.new(tmp_path / "store", LSSVC())
        assert not list(tmp_path.iterdir())


def test_a_store_that_was_made_is_not_denied(tmp_path, rows, monkeypatch):
    """Once the folder is in its place, no error says that nothing was changed."""
    real = container.sync_folder

    def parent_fails(path):
        if path == tmp_path:
            disk_full()
        real(path)

    with monkeypatch.context() as patch:
        patch.setattr(container, "sync_folder", parent_fails)
        with pytest.raises(OSError, match=r"disk is full.*The store was made, but a power cut"):
            Store.new(tmp_path / "first", LSSVC())
    store = Store(tmp_path / "first")
    assert store.learn(*rows).held == 300
    assert store.verify().ok


def test_files_that_cannot_be_removed_are_removed_later(store, rows, monkeypatch):
    X, y = rows
    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", disk_full)
        assert store.forget(X[:100], y[:100]).held == 100
        store.destroy("secret")
        assert not store.verify().ok
    assert len(list((store.path / "generations").iterdir())) == 3
    again = Store(store.path)
    assert not again.verify().ok
    assert len(list((store.path / "generations").iterdir())) == 3, "readers remove nothing"
    again.flush()
    assert len(list((store.path / "generations").iterdir())) == 1
    assert not (store.path / "secret").exists()
    assert again.verify().ok


def test_left_overs_of_a_killed_process_are_swept(store, rows):
    model = "2-0123456789abcdef.traceless"
    for name in (model, f".{model}.fedcba9876543210.part"):
        (store.path / "generations" / name).write_bytes(b"half of a mod")
    (store.path / ".secret.fedcba9876543210.part").write_bytes(b"half of a secret")
    assert not store.verify().ok
    store.flush()
    assert not (store.path / ".secret.fedcba9876543210.part").exists()
    assert len(list((store.path / "generations").iterdir())) == 1
    assert store.verify().ok


def test_a_model_that_cannot_be_read_back_is_not_committed(store, rows, monkeypatch):
    before = state(store)

    def scribbled(model, path, like):
        return container.write(path, "LSSVC", {}, {}, like)

    def another(model, path, like):
        return container.write(path, "LSSVC", *LSSVC().fit(*rows)._pieces(), like)

    with monkeypatch.context() as patch:
        for save, said in ((scribbled, "cannot be read back"), (another, "holds another one")):
            patch.setattr(saving, "save", save)
            with pytest.raises(StoreError, match=said):
                store.learn(*rows)
            assert len(list((store.path / "generations").iterdir())) == 1
    assert state(store) == before
    assert store.verify().ok


def test_a_fault_at_a_call_of_the_system():
    """Some trials of faults.py, in a process that loads the shim; `make soak` runs all."""
    if sys.platform != "linux" or not shutil.which("cc"):
        pytest.skip("the shim needs Linux and a C compiler (cc)")
    only = [f"--only={name}" for name in ("forget", "queue full", "new key")]
    command = [sys.executable, str(Path(__file__).parent / "faults.py"), "--trials", "18", *only]
    shown = subprocess.run(command, capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    said = ("killed: ", "times as before, and said so", "times made all the same")
    for outcome in (*said, "18 trials of 3 changes: no state was wrong"):
        assert outcome in shown.stdout
