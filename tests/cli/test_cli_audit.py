import errno
import os

import pytest
from people import contents, people, table

from traceless.store import Receipt
from traceless.store.keys import SigningKey


@pytest.fixture
def forgot(call, shop, tmp_path):
    """A store that has forgotten half of its rows; rest.csv has the others."""
    table(tmp_path / "gone.csv", shop[:60])
    table(tmp_path / "rest.csv", shop[60:])
    call("forget", "shop", "gone.csv", "--request", "ticket 7")
    return shop


def test_status_and_history(call, forgot):
    now = call("status", "shop", "--json").json
    assert (now["rows"], now["sequence"], sum(now["classes"].values())) == (60, 2, 60)
    assert now["digest"] in call("status", "shop").out
    entries = call("history", "shop", "--json").json["entries"]
    assert [e["kind"] for e in entries] == ["new", "learn", "forget"]
    assert "ticket 7" in call("history", "shop").out
    assert len(call("history", "shop", "--last", "1", "--json").json["entries"]) == 1
    assert len(call("history", "shop", "--last", "9", "--json").json["entries"]) == 3


def test_receipts_come_as_json_and_as_a_page(call, forgot, tmp_path):
    receipt = Receipt.from_json(call("receipt", "shop").out)
    assert (receipt.kind, receipt.rows, receipt.check()) == ("forget", 60, True)
    assert call("receipt", "shop", "1", "--json").json["entry"]["kind"] == "learn"
    said = call("receipt", "shop", "--html", "r.html", "--out", "r.json").out
    assert said == "Written: r.html, r.json\n"
    assert receipt.hash in (tmp_path / "r.html").read_text()
    assert Receipt.from_json((tmp_path / "r.json").read_text()) == receipt
    assert call("receipt", "shop", "99", code=2).err.startswith("error: ")


def test_a_store_is_verified_with_and_without_rows(call, forgot):
    assert "Proven: the ledger, its signatures" in call("verify", "shop").out.splitlines()[-1]
    told = call("verify", "shop", "rest.csv", "--json").json
    assert told["ok"]
    assert all(check["ok"] for check in told["checks"])
    told = call("verify", "shop", "people.csv", "--json", code=1).json
    assert not told["ok"]
    said = call("verify", "shop", "people.csv", code=1).out
    assert "FAILED" in said
    assert said.splitlines()[-1].startswith("A check failed: refit, root, digests.")
    assert "Name a store" in call("verify", code=2).err


def test_a_receipt_is_verified_without_the_store(call, forgot, tmp_path):
    call("receipt", "shop", "--out", "r.json")
    (tmp_path / "shop").rename(tmp_path / "elsewhere")
    assert call("verify", "r.json", "rest.csv").code == 0
    assert call("verify", "r.json", "people.csv", code=1).code == 1
    text = (tmp_path / "r.json").read_text()
    assert call("verify", "-", "rest.csv", stdin=text).code == 0
    alone = call("verify", "r.json", "--json").json
    assert [check["name"] for check in alone["checks"]] == ["receipt"]
    (tmp_path / "forged.json").write_text(text.replace("index 2", "index 1"))
    told = call("verify", "forged.json", "rest.csv", "--json", code=1).json
    assert not told["checks"][0]["ok"]
    assert "no file none.json" in call("verify", "none.json", "x", code=2).err


def test_what_was_kept_elsewhere_is_compared(call, forgot):
    call("receipt", "shop", "1", "--out", "kept.json")
    call("key", "shop", "--public", "shop.pub")
    with open("head.txt", "w") as file:
        file.write(call("status", "shop", "--head").out)
    key = call("key", "shop", "--json").json["public_key"]
    call("key", "shop", "--replace")
    for public in (key, "shop.pub"):
        kept = ("kept.json", "--head", "head.txt", "--public-key", public)
        told = call("verify", "shop", *kept, "--json").json
        assert told["not_checked"] == ["rows"]
        assert "it is signed with the key that was given" in told["proven"]
    other = call("key", "shop", "--json").json["public_key"]
    for public, code in (("shop.pub", 0), (other, 1)):
        call("verify", "kept.json", "--public-key", public, code=code)
    alone = ("kept.json", "--public-key", key, "--head")
    with open("later.txt", "w") as file:
        file.write(call("status", "shop", "--head").out)
    with open("proof.txt", "w") as file:
        file.write(call("status", "shop", "--since", "head.txt").out)
    assert "continues one of 3" in call("verify", *alone, "head.txt").out
    assert "continues one of 3" in call("verify", *alone, "later.txt", code=1).out
    told = call("verify", *alone, "later.txt", "--consistency", "proof.txt", "rest.csv", code=1).out
    assert "4 entries continues" in told  # of entry 1, which held more rows
    assert "is not the head" in call("verify", "shop", "--head", "shop.pub", code=2).err
    assert "neither a public key" in call("verify", "shop", "--public-key", "abc", code=2).err
    assert "is a file" in call("verify", "rest.csv", code=2).err


@pytest.mark.parametrize("option", ["--head", "--public-key"])
def test_pipes_and_endless_devices_as_receipts_and_keys(call, shop, tmp_path, option):
    """Whoever opens a pipe waits until somebody writes into it; a device has no end."""
    os.mkfifo(tmp_path / "pipe")
    for path in ("pipe", "/dev/zero"):
        assert "no regular file" in call("verify", "shop", option, path, code=2).err
    said = call("new", "other", "model.toml", "--secret", "/dev/zero", code=2).err
    assert "no regular file" in said
    assert "no regular file" in call("new", "other", "/dev/zero", code=2).err


def test_a_secret_that_everybody_can_read_gives_a_warning(call, shop, tmp_path):
    (tmp_path / "safe.pem").write_bytes(SigningKey.new().pem())
    (tmp_path / "safe.pem").chmod(0o604)
    assert "Everybody on this machine" in call("key", "shop", "--replace-with", "safe.pem").err
    (tmp_path / "shop" / "secret").chmod(0o644)
    assert "shop/secret" in call("forget", "shop", "people.csv", "--signing-key", "safe.pem").err


def test_the_key_can_be_kept_elsewhere(call, forgot, tmp_path):
    call("key", "shop", "--private", "safe.pem")
    assert (tmp_path / "safe.pem").stat().st_mode & 0o777 == 0o600
    (tmp_path / "shop" / "key").unlink()
    people(tmp_path / "new.csv", seed=8)
    assert "private half" in call("learn shop new.csv", code=2).err
    call("learn shop new.csv --signing-key safe.pem")
    call("key shop --signing-key safe.pem --replace-with safe.pem", code=2)
    assert call("verify", "shop").code == 0


@pytest.mark.parametrize(
    "words",
    [
        ("--private", "there.pem"),
        ("--public", "there.pem"),
        ("--private", "no/such/folder.pem"),
        ("--private", "shop/key"),
        ("--private", "shop"),
        ("--private", "pipe"),
        ("--private", "new.pem", "--public", "./new.pem"),
        ("--replace-with", "there.pem", "--private", "there.pem"),
        ("--signing-key", "there.pem"),
        ("--signing-key", "there.pem", "--dry-run"),
        ("--signing-key", "there.pem", "--replace-with", "other.pem"),
    ],
)
def test_nothing_is_replaced_before_all_is_checked(call, shop, tmp_path, words):
    for name in ("there.pem", "other.pem"):
        (tmp_path / name).write_bytes(SigningKey.new().pem())
    os.mkfifo(tmp_path / "pipe")
    before = call("history", "shop", "--json").out, *contents(tmp_path)
    call("key", "shop", "--replace", *words, code=2)
    assert (call("history", "shop", "--json").out, *contents(tmp_path)) == before


def test_a_key_that_is_replaced_and_cannot_be_written(call, shop, monkeypatch):
    """The disk fills between the hand-over and the file: the hand-over stands, and is said."""

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device", "new.pem")

    old = call("key", "shop", "--json").json["public_key"]
    with monkeypatch.context() as patch:
        patch.setattr("traceless.cli.output.Outputs.write", full)
        said = call("key", "shop", "--replace", "--private", "new.pem", code=2).err
    assert "The key was replaced all the same" in said
    assert call("key", "shop", "--private", "new.pem", "--json").json["public_key"] != old
    assert call("verify", "shop").code == 0


@pytest.mark.parametrize("dry_run", [[], ["--dry-run"]])
def test_the_wrong_key_signs_nothing(call, shop, tmp_path, dry_run):
    (tmp_path / "other.pem").write_bytes(SigningKey.new().pem())
    said = call("forget", "shop", "people.csv", "--signing-key", "other.pem", *dry_run, code=2).err
    assert "other.pem is another key" in said
    assert "other.pem" in call("key shop --private x --signing-key other.pem", code=2).err
    assert "--dry-run is for --replace" in call("key shop --dry-run", code=2).err
    assert call("status", "shop", "--json").json["sequence"] == 1
