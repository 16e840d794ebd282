"""A folder that anybody may have made: nothing outside is touched, and reading changes nothing."""

import os
import shutil
import sqlite3
import stat
import subprocess
import traceback
from contextlib import contextmanager

import numpy as np
import pytest

from traceless import LSSVC
from traceless.exceptions import StoreError
from traceless.files import container
from traceless.store import Store
from traceless.store.folder import Folder

pytestmark = pytest.mark.timeout(60)  # who opens a pipe waits for ever
ROOT = os.geteuid() == 0
FILES = (
    *("ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm"),
    *("secret", "key", "lock", "model"),
)
READING = ("status", "history", "receipt", "pending", "verify", "model")


def place(store, name):
    """The path of one of FILES; it need not be there."""
    if name == "model":
        return next((store.path / "generations").iterdir())
    return store.path / name


def contents(folder):
    """Names, bytes and times of all files."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def try_all(store, rows):
    """Do everything; what is refused is refused by a sentence. Returns what was done."""
    done, said = [], []
    for name in (*READING, "learn", "flush"):
        try:
            answer = getattr(Store(store.path), name)(*rows * (name == "learn"))
            if name != "verify" or answer.ok:
                done.append(name)
        except StoreError as error:
            said.append(str(error))
    assert all("Nothing was changed" in sentence for sentence in said), said
    return done


# --- what is not a regular file --------------------------------------------------------------

MAKE = {
    "link": lambda path, victim: path.symlink_to(victim),
    "pipe": lambda path, _: os.mkfifo(path),
    "socket": lambda path, _: os.mknod(path, stat.S_IFSOCK | 0o600),
    "folder": lambda path, _: path.mkdir(),
    "endless zeros": lambda path, _: os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5)),
}


@pytest.mark.parametrize("kind", MAKE)
@pytest.mark.parametrize("name", FILES)
def test_only_regular_files_are_opened(store, rows, tmp_path, name, kind):
    if kind == "endless zeros" and not ROOT:
        pytest.skip("only root makes devices")
    path = place(store, name)
    victim = tmp_path / "thesis.txt"
    if path.exists():
        shutil.copy(path, victim)  # even a target that would do
        path.unlink()
    else:
        victim.write_bytes(b"ten years of work" * 20)
    MAKE[kind](path, victim)
    before = victim.read_bytes()
    done = try_all(store, rows)
    assert victim.read_bytes() == before
    assert "learn" not in done
    if name in ("ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm"):
        assert not done


def test_a_link_to_a_folder_of_documents(store, rows, tmp_path):
    documents = tmp_path / "documents"
    (store.path / "generations").rename(documents)
    for name in ("thesis.txt", "7-0123456789abcdef.traceless", "7-0123456789abcdee.traceless"):
        (documents / name).write_text("ten years of work")
    (store.path / "generations").symlink_to(documents)
    before = contents(documents)
    done = try_all(store, rows)
    assert contents(documents) == before
    assert not {"learn", "model", "verify"} & {*done}
    with pytest.raises(StoreError, match="generations is a symbolic link"):
        store.model()


def test_hard_links_are_read_and_never_written(store, rows, tmp_path):
    """A backup by hard links stays what it was; so does a document with a second name in here."""
    for name in ("ledger.sqlite", "lock"):
        other = tmp_path / f"other-{name}"
        os.link(store.path / name, other)
        before = other.read_bytes()
        assert {*try_all(store, rows)} == {*READING}
        with pytest.raises(StoreError, match=r"has 2 names .* true copy .* Nothing was changed"):
            store.learn(*rows)
        assert other.read_bytes() == before
        other.unlink()
    assert store.learn(*rows).held == 500


def test_a_rollback_journal_is_not_played_back(store, rows):
    before = (store.path / "ledger.sqlite").read_bytes()
    journal = store.path / "ledger.sqlite-journal"
    journal.write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(504))
    assert not try_all(store, rows)
    assert journal.exists()
    assert (store.path / "ledger.sqlite").read_bytes() == before


def test_a_secret_without_an_end(store, rows):
    os.truncate(store.path / "secret", 2**40)
    with pytest.raises(StoreError, match="secret is missing or not 32 bytes long"):
        store.learn(*rows)


# --- what is removed ------------------------------------------------------------------------

STRANGE = (
    *("thesis.txt", "2.traceless", "model.traceless", "2-0123456789abcde.traceless", ".part"),
    *("2-0123456789ABCDEF.traceless", ".2-0123456789abcdef.traceless.part", "2-0123456789abcdef"),
    *(".thesis.txt.0123456789abcdef.part", "x2-0123456789abcdef.traceless"),
)


def test_removed_files_and_new_folders_are_on_the_disk(tmp_path, rows, monkeypatch):
    """Or the name of an old model could come back after a power cut, and a store be gone."""
    synced, to_disk = [], container.bring_to_disk

    def seen(handle):
        synced.append(
            (os.readlink(f"/proc/self/fd/{handle}"), len(list(path.rglob("*.traceless"))))
        )
        to_disk(handle)

    path = tmp_path / "a" / "b" / "store"
    monkeypatch.setattr(container, "bring_to_disk", seen)
    store = Store.new(path, LSSVC())
    folders = {folder for folder, _ in synced}
    assert {str(tmp_path), str(tmp_path / "a"), str(tmp_path / "a" / "b")} <= folders
    store.learn(*rows)
    assert synced[-1] == (str(path / "generations"), 1)  # after the old one was removed


def test_only_names_of_our_own_are_removed(store, rows):
    for name in STRANGE:
        (store.path / "generations" / name).write_text("ten years of work")
    old = store.path / "generations" / "0-0123456789abcdef.traceless"
    old.write_text("an old model")
    assert store.learn(*rows).held == 500
    assert not old.exists()
    assert {*STRANGE} < {path.name for path in (store.path / "generations").iterdir()}
    found = {check.name: check for check in store.verify().checks}["files"]
    assert not found.ok
    assert "not of the store" in found.said


def test_reading_leaves_the_folder_as_it_is(store, rows):
    (store.path / "generations" / "0-0123456789abcdef.traceless").write_text("an old model")
    (store.path / "lock").unlink()
    before = contents(store.path)
    for name in READING:
        getattr(Store(store.path), name)()
    assert contents(store.path) == before
    found = {check.name: check for check in store.verify().checks}["files"]
    assert "the next change removes: 0-0123456789abcdef.traceless" in found.said


# --- read-only media ------------------------------------------------------------------------


@contextmanager
def frozen(folder, at):
    """A copy of a folder where nothing can be written, for root too."""
    at.mkdir()
    if not ROOT:
        shutil.copytree(folder, at / "store")
        for path in [*at.rglob("*"), at]:
            path.chmod(path.stat().st_mode & 0o555)
        yield at / "store"
        for path in [at, at / "store", at / "store" / "generations"]:
            path.chmod(0o700)
        return
    mount = ["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", at]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        shutil.copytree(folder, at / "store")
        subprocess.run(["mount", "-o", "remount,ro", at], check=True)
        yield at / "store"
    finally:
        subprocess.run(["umount", "-l", at], check=True)


def in_child(do):
    """Do something in a process of its own; returns what was raised there, as text."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            do()
        except BaseException:
            os.write(write, traceback.format_exc().encode()[-4000:])
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as said:
        os.waitpid(pid, 0)
        return said.read()


def with_log(store, rows):
    """Make a change of which the log alone knows, as a killed process would leave it."""

    def learn():
        Folder.tidy = lambda *_, **__: os._exit(0)
        store.learn(rows[0][:3], rows[1][:3])

    assert in_child(learn) == ""
    assert (store.path / "ledger.sqlite-wal").stat().st_size


def test_read_only_media_can_be_read(store, rows, tmp_path):
    X, y = rows
    with frozen(store.path, tmp_path / "disk") as path:
        (tmp_path / "link").symlink_to(path)  # the store itself may be reached by one
        there = Store(tmp_path / "link")
        assert there.status().digest == store.status().digest
        assert there.history() == store.history()
        assert there.receipt() == store.receipt()
        assert there.verify(X[:200], y[:200]).ok
        np.testing.assert_array_equal(there.model().predict(X), store.model().predict(X))
        other = Store.new(tmp_path / "other", LSSVC(), secret=(path / "secret").read_bytes())
        assert other.merge(there).held == 200
        assert other.forget(X[:50], y[:50]).held == 150, "rows came with their digests"
        with pytest.raises(StoreError, match=r"can be read here, but not changed .* Nothing was"):
            there.learn(X, y)


def test_a_log_on_read_only_media_is_read_or_not_overlooked(store, rows, tmp_path):
    with_log(store, rows)
    with frozen(store.path, tmp_path / "whole") as path:
        assert Store(path).status().rows == 203
        assert Store(path).model().n_samples_ == 203
    (store.path / "ledger.sqlite-shm").unlink()
    with (
        frozen(store.path, tmp_path / "disk") as path,
        pytest.raises(StoreError, match=r"wal holds changes .* Copy the whole folder"),
    ):
        Store(path).status()


def test_a_change_while_nobody_was_expected_is_noticed(store, rows, monkeypatch):
    """A reader that may not write sees another user's change, and does not mix two states."""
    from traceless.exceptions import StoreBusyError
    from traceless.store import opening

    real = os.access
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda *a, **k: False)
        patch.setattr(os, "supports_effective_ids", set())
        reading = opening.open_ledger(store.path / "ledger.sqlite")
        ledger = reading.__enter__()
        assert ledger.last().held == 200
    assert os.access is real
    store.learn(*rows)
    with pytest.raises(StoreBusyError, match="has changed the ledger"):
        reading.__exit__(None, None, None)


# --- permissions ----------------------------------------------------------------------------


@pytest.mark.parametrize("umask", [0, 0o177])
@pytest.mark.parametrize("shared", [False, True])
def test_permissions_whatever_the_umask(tmp_path, rows, umask, shared):
    X, y = rows
    before = os.umask(umask)
    try:
        store = Store.new(tmp_path / "store", LSSVC(), shared=shared)
        store.learn(X[:20], y[:20])
        reader = sqlite3.connect(store.path / "ledger.sqlite")  # keeps the log
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM origin").fetchall()
        store.forget(X[:2], y[:2], batch=True)
    finally:
        os.umask(before)
    found = {path: path.stat().st_mode for path in [store.path, *store.path.rglob("*")]}
    assert {path.name for path in found} > {"ledger.sqlite-wal", "ledger.sqlite-shm", "lock"}
    reader.close()
    for path, mode in found.items():
        expected = (0o2770, 0o660) if shared else (0o700, 0o600)
        assert stat.S_IMODE(mode) == expected[not path.is_dir()] or not path.exists(), path


def test_a_secret_of_an_open_store_is_private(store, rows):
    (store.path / "ledger.sqlite").chmod(0o644)
    store._folder.write_private("secret", store._folder.read_private("secret"))
    store.learn(*rows)
    assert stat.S_IMODE((store.path / "secret").stat().st_mode) == 0o600
    assert stat.S_IMODE(place(store, "model").stat().st_mode) == 0o644, "as its owner wants it"


@pytest.mark.skipif(not ROOT, reason="only root can be somebody else")
def test_root_leaves_the_files_to_their_owner(store, rows):
    (store.path / "lock").unlink()
    for path in [store.path, *store.path.rglob("*")]:
        os.chown(path, 12345, 12345)
    store.learn(*rows)
    assert {path.stat().st_uid for path in store.path.rglob("*")} == {12345}


@pytest.mark.skipif(not ROOT, reason="only root can be somebody else")
def test_a_group_shares_a_store():
    """Two users of one group write in turn; a third, of another group, sees nothing."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o2777)
        os.chown(folder, 0, 20000)

        def as_user(uid, group, do):
            def done():
                os.setgroups([group])
                os.setgid(uid)
                os.setuid(uid)
                os.umask(0o077)
                do()

            return in_child(done)

        path = f"{folder}/store"
        X, y = np.ones((20, 2)), ["a", "b"] * 10
        assert as_user(11111, 20000, lambda: Store.new(path, LSSVC(), shared=True)) == ""
        for user in (22222, 11111, 22222):
            assert as_user(user, 20000, lambda: Store(path).learn(X, y)) == ""
        assert "PermissionError" in as_user(33333, 30000, lambda: Store(path))
        assert Store(path).status().rows == 60
