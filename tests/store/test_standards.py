"""Others check what a store signs: openssl, securesystemslib, and the published schema."""

import base64
import json
import shutil
import subprocess
from pathlib import Path

import jsonschema
import pytest
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import UnverifiedSignatureError, VerificationError
from securesystemslib.signer import SSlibKey

from pages import blocks
from traceless.store.keys import public_pem

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def kept(store, rows, tmp_path, monkeypatch):
    """A folder with a receipt and the public key, where commands run."""
    store.forget(rows[0][:100], rows[1][:100], key="letter 7")
    (tmp_path / "receipt.json").write_text(store.receipt().to_json())
    (tmp_path / "clinic.pub").write_text(public_pem(store.public_key))
    monkeypatch.chdir(tmp_path)
    return store


def bash(command):
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)


def test_the_docs_show_how_openssl_checks_a_receipt(kept):
    """The lines of the page, as they stand there."""
    shown = {kind: text for kind, text in blocks(DOCS / "store.md") if "openssl pkeyutl" in text}
    (kind,) = shown
    assert kind == "bash"
    done = bash(shown[kind])
    assert "Signature Verified Successfully" in done.stdout, done
    receipt = json.loads(Path("receipt.json").read_text())
    payload = base64.b64decode(receipt["envelope"]["payload"])
    changed = base64.b64encode(
        payload.replace(b'"rows": 100', b'"rows": 101').replace(b'"rows":100', b'"rows":101')
    )
    receipt["envelope"]["payload"] = changed.decode()
    Path("receipt.json").write_text(json.dumps(receipt))
    assert "Signature Verified Successfully" not in bash(shown[kind]).stdout


def test_securesystemslib_checks_an_envelope(kept):
    said = kept.receipt().envelope()
    public = kept.public_key
    envelope = Envelope.from_dict(json.loads(json.dumps(said)))
    key = SSlibKey(public, "ed25519", "ed25519", {"public": public})
    assert envelope.verify([key], 1) == {public: key}
    envelope.payload = envelope.payload.replace(b"100", b"101")
    with pytest.raises((VerificationError, UnverifiedSignatureError)):
        envelope.verify([key], 1)


def test_every_entry_is_a_statement_of_the_published_schema(kept, rows):
    X, y = rows
    kept.learn(X[:50], y[:50], ids=range(50))
    kept.forget(X[:3], y[:3], batch=True)
    kept.cancel(4)
    kept.relabel(X[:50], y[:50], y[50:100])
    kept.new_key()
    kept.destroy("secret")
    kept.destroy("model")
    schema = json.loads((DOCS / "change.schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    validator.check_schema(schema)
    kinds = set()
    for entry in kept.history():
        statement = json.loads(entry.payload)
        validator.validate(statement)
        kinds.add(entry.kind)
        assert statement["predicateType"] == schema["properties"]["predicateType"]["const"]
        path = kept.path / "generations" / str(entry.generation)
        if path.exists():
            assert statement["subject"][0] == {
                "name": path.name,
                "digest": {"sha256": entry.sha256},
            }
        for name in statement["predicate"]:
            less = {**statement, "predicate": {**statement["predicate"]}}
            del less["predicate"][name]
            assert not validator.is_valid(less), name
        assert not validator.is_valid({**statement, "more": 1})
    assert len(kinds) == 8


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not here")
def test_a_local_authority_dates_a_head(kept):
    """RFC 3161, with openssl ts: the answer is one for these bytes, and for no others."""
    shown = next(text for _, text in blocks(DOCS / "store.md") if "openssl ts -query" in text)
    Path("head.txt").write_text(kept.head())
    ask, verify = (
        next(line for line in shown.splitlines() if word in line) for word in ("-query", "-verify")
    )
    authority()
    assert bash(ask).returncode == 0
    done = bash("openssl ts -reply -queryfile head.tsq -config tsa.cnf -section tsa -out head.tsr")
    assert done.returncode == 0, done
    assert "Verification: OK" in bash(verify).stdout + bash(verify).stderr
    rfc3161_says(Path("head.txt").read_bytes())
    Path("head.txt").write_text(kept.head().replace("3", "4"))
    assert "Verification: OK" not in bash(verify).stdout + bash(verify).stderr


def authority():
    """The certificate and the settings of an authority of our own."""
    Path("tsa.cnf").write_text(
        "[req]\ndistinguished_name=dn\nx509_extensions=ext\nprompt=no\n[dn]\nCN=local authority\n"
        "[ext]\nextendedKeyUsage=critical,timeStamping\nkeyUsage=critical,digitalSignature\n"
        "basicConstraints=critical,CA:false\nsubjectKeyIdentifier=hash\n"
        "[tsa]\nserial=serial\nsigner_cert=tsa.pem\nsigner_key=tsa.key\ncerts=tsa.pem\n"
        "signer_digest=sha256\ndefault_policy=1.2.3.4\ndigests=sha256\ness_cert_id_chain=no\n"
        "ess_cert_id_alg=sha256\nordering=yes\ntsa_name=yes\naccuracy=secs:1\n"
    )
    Path("serial").write_text("01\n")
    done = bash(
        "openssl req -x509 -newkey rsa:2048 -nodes -keyout tsa.key -out tsa.pem -days 30 "
        "-config tsa.cnf -extensions ext"
    )
    assert done.returncode == 0, done


def rfc3161_says(head):
    from cryptography.x509 import load_pem_x509_certificate
    from rfc3161_client import VerifierBuilder, decode_timestamp_response

    response = decode_timestamp_response(Path("head.tsr").read_bytes())
    certificate = load_pem_x509_certificate(Path("tsa.pem").read_bytes())
    verifier = VerifierBuilder().tsa_certificate(certificate).add_root_certificate(certificate)
    assert verifier.build().verify_message(response, head)
