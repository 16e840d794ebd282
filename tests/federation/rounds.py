"""A round of several sites in one process."""

from hashlib import sha256

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from traceless.federation import Agreement, Coordinator, Site, messages, public_key
from traceless.files import container


def key_of(name):
    return Ed25519PrivateKey.from_private_bytes(sha256(name.encode()).digest())


def public_keys(names):
    return {name: public_key(key_of(name)) for name in names}


def team(pieces, earlier=(), **terms):
    """Terms and sites for pieces of knowledge by name."""
    names = sorted({label for piece in pieces.values() for label in piece.responses})
    terms = {"minimum_rows": 1, "responses": names} | terms
    agreement = Agreement.like(next(iter(pieces.values())), public_keys(pieces), **terms)
    return agreement, {
        name: Site(agreement, name, key_of(name), piece, earlier=[r[name] for r in earlier])
        for name, piece in pieces.items()
    }


def play(agreement, sites, lost=None, until=None, keep=None):
    """The coordinator at the end of a round, or before `until`, and what it has told each site.

    `lost` has the sites that fall silent at a step; `keep` replaces a site between steps.
    """
    coordinator, told = Coordinator(agreement), dict.fromkeys(sites)
    while coordinator.step and coordinator.step != until:
        silent = (lost or {}).get(coordinator.step, ())
        for name in told.keys() - {*silent}:
            data = told[name]
            letter = sites[name].start() if data is None else sites[name].answer(data)
            assert coordinator.take(letter) == name
            if keep:
                sites[name] = keep(sites[name], key_of(name))
        told = coordinator.next()
    return coordinator, told


def resigned(letter, name, **facts):
    """A letter with other facts and the site's own signature: what a site that lies would send."""
    found = container.parsed(letter[64:], "it")
    body = container.encoded(found.kind, found.facts | facts, found.tensors)
    return messages.signature(key_of(name), body) + body


def retold(data, **facts):
    """A message of the coordinator with other facts: what one that lies would send."""
    found = container.parsed(data, "it")
    return container.encoded(found.kind, found.facts | facts, found.tensors)
