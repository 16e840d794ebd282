"""Heads and proofs in the forms of C2SP, against the example of Go's sumdb/note."""

import base64
import hashlib

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from traceless.store import verify_receipt
from traceless.store.checkpoint import Head, hashes_of, verifier_key
from traceless.store.envelope import signed_bytes
from traceless.store.keys import SigningKey

PUBLIC = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
PRIVATE = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
TEXT = """If you think cryptography is the answer to your problem,
then you don't know what your problem is.
"""
SIGNED = (
    "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM="
)


@pytest.fixture
def key():
    seed = base64.b64decode(PRIVATE.split("+", 4)[4])[1:]
    return SigningKey(Ed25519PrivateKey.from_private_bytes(seed))


def test_signatures_are_those_of_other_programs(key):
    """The note of the example is no checkpoint: what is signed, and by which key, is the same."""
    head = Head("PeterNeumann", 0, b"", TEXT, (("PeterNeumann", base64.b64decode(SIGNED)),))
    assert verifier_key("PeterNeumann", key.public) == PUBLIC
    assert head.is_signed(key.public)
    assert str(head) == f"{TEXT}\n\u2014 PeterNeumann {SIGNED}\n"
    assert not head._replace(text=TEXT.upper()).is_signed(key.public)
    assert not head._replace(origin="Peter").is_signed(key.public)


def test_a_head_has_the_form_of_a_checkpoint(key):
    root = hashlib.sha256(b"x").digest()
    head = Head.signed("traceless/ab", 5, root, [key, SigningKey.new()])
    lines = str(head).split("\n")
    assert lines[:3] == ["traceless/ab", "5", base64.b64encode(root).decode()]
    assert lines[3] == lines[-1] == ""
    assert all(line.startswith("\u2014 traceless/ab ") for line in lines[4:-1])
    assert Head.parsed(str(head)) == head
    witnessed = f"{head}\u2014 witness.example/w AAAAAAAA\n"  # others may sign it as well
    assert Head.parsed(witnessed).is_signed(key.public)
    for old, new in (
        ("\n5\n", "\n05\n"),
        ("\n5\n", "\n-5\n"),
        ("\n5\n", "\n0\n"),
        ("\n5\n", f"\n{2**2000}\n"),
        ("\n\n", "\n"),
        ("=", ""),
        ("\u2014", "-"),
    ):
        with pytest.raises(ValueError, match="not the head of a store"):
            Head.parsed(str(head).replace(old, new))


def witness(name, text, seen, kind=4):
    """The verifier key of a witness, and its line below a head: tlog-cosignature, word for word."""
    private = Ed25519PrivateKey.generate()
    public = bytes([kind]) + private.public_key().public_bytes_raw()
    number = hashlib.sha256(f"{name}\n".encode() + public).digest()[:4]
    signature = private.sign(f"cosignature/v1\ntime {seen}\n{text}".encode())
    line = base64.b64encode(number + seen.to_bytes(8, "big") + signature).decode()
    key = f"{name}+{number.hex()}+{base64.b64encode(public).decode()}"
    return key, f"\u2014 {name} {line}\n"


def test_witnesses_say_when_they_saw_a_head(key, store):
    head = Head.parsed(store.head())
    mine, line = witness("witness.example/w", head.text, 1_700_000_000)
    seen = f"{head}{line}"
    assert Head.parsed(seen).cosigned(mine) == "2023-11-14T22:13:20Z"
    other, _ = witness("witness.example/w", head.text, 1_700_000_000)
    _, late = witness("witness.example/w", head.text.replace("2", "3", 1), 1_700_000_000)
    for text, asked in ((seen, other), (str(head), mine), (f"{head}{late}", mine)):
        assert Head.parsed(text).cosigned(asked) is None
    kept = {"head": seen, "witnesses": [mine]}
    for found in (store.verify(**kept), verify_receipt(store.receipt(), **kept)):
        assert found.ok
        assert "witness.example/w saw the head at 2023-11-14T22:13:20Z" in str(found)
        assert len(found.checks) > len(kept)
    for found in (
        store.verify(head=seen, witnesses=[mine, other]),
        verify_receipt(store.receipt(), head=str(head), witnesses=[mine]),
    ):
        assert [c.name for c in found.checks if not c.ok] in (["kept witnesses"], ["witnesses"])
    with pytest.raises(ValueError, match="give it too"):
        store.verify(witnesses=[mine])
    for wrong in (verifier_key("a", key.public), mine[:-4], "a+b", mine.replace("w+", "v+")):
        with pytest.raises(ValueError, match="verifier key of a witness"):
            store.verify(head=seen, witnesses=[wrong])


def test_hashes_have_one_text():
    with pytest.raises(ValueError, match="32 bytes"):
        hashes_of("AAAA\n")
    with pytest.raises(ValueError, match="base64"):
        hashes_of(base64.b64encode(bytes(32)).decode()[:-2] + "B=\n")


def test_what_a_signature_covers_is_the_example_of_dsse():
    said = signed_bytes(b"hello world", "http://example.com/HelloWorld")
    assert said == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
