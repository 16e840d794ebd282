"""What somebody can do to a ledger, or a receipt, who has its file in hand."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace

from traceless.store.checkpoint import Head, proof_text
from traceless.store.entries import hash_of
from traceless.store.envelope import signed_bytes
from traceless.store.keys import SigningKey
from traceless.store.merkle import Tree


def key_of(store):
    return SigningKey.read(store.path / "key")


def edit(store, *statements):
    """Change the ledger; its guards are put up again."""
    with closing(sqlite3.connect(store.path / "ledger.sqlite")) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        guards = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        guards = guards.fetchall()
        for name, _ in guards:
            connection.execute(f"DROP TRIGGER {name}")
        for statement, *values in statements:
            connection.execute(statement, values)
        for _, guard in guards:
            connection.execute(guard)
        connection.commit()


def restated(entry, key=None, **facts):
    """An entry with other facts: signed with this key, or with the signature that it had."""
    entry = replace(entry, **facts)
    payload = json.dumps(entry.statement()).encode()
    signature = entry.signature if key is None else key.signature(signed_bytes(payload))
    return replace(entry, payload=payload, signature=signature)


def put(store, entry):
    """Put an entry into its place in the table, and change nothing else."""
    statement = "UPDATE entries SET payload = ?, signature = ? WHERE sequence = ?"
    edit(store, (statement, entry.payload, entry.signature, entry.sequence))


def relogged(store, entries, key=None, log=None):
    """Write all entries, and make tree and heads anew, with old signatures or this key's."""
    old = () if key or log else Head.parsed(store.head()).signatures
    nodes, log = {}, log or store.head().split("\n")[0]
    statements = [(f"DELETE FROM {table}",) for table in ("entries", "nodes", "heads")]
    for entry in entries:
        Tree(nodes).append(entry.sequence, entry.payload)
        row = entry.sequence, entry.payload, entry.signature
        statements.append(("INSERT INTO entries VALUES (?, ?, ?)", *row))
    for (level, place), node in nodes.items():
        statements.append(("INSERT INTO nodes VALUES (?, ?, ?)", level, place, node))
    for size in sorted({1, len(entries)}):
        head = Head.signed(log, size, Tree(nodes).root(size), [key] if key else [])
        head = head if key else head._replace(signatures=old)
        statements.append(("INSERT INTO heads VALUES (?, ?)", size, str(head)))
    edit(store, *statements)


def with_description(receipt, signing, **facts):
    """A receipt that a stranger has signed, of a store with another description."""
    document = json.dumps({**receipt.store, **facts})
    origin = hash_of(document.encode())
    entry = restated(receipt, signing, sequence=0, signer=signing.public, since=0, origin=origin)
    nodes = {}
    Tree(nodes).append(0, entry.payload)
    head = Head.signed(f"traceless/{receipt.store['store']}", 1, Tree(nodes).root(1), [signing])
    return replace(entry, document=document, proof=proof_text(0, [], head))
