"""A site: it gives its sums to a total, and to nobody else.

Bonawitz et al. 2017 (figure 4) with the sparse graph of Bell et al. 2020. In turn

    keys       two X25519 keys for this round, signed, for shares and for masks
    shares     a seed b of its own and the private key s of masks, in shares for its neighbours
    sums       x + PRG(b) + Σ ± PRG(s_ij) over neighbours, whichever of the two picked the other
               and, signed, a hash of the list of sites whose shares it was told have come
    survivors  a signature under the list of those whose sums have come, one list in a round,
               if all of them were told of the same shares: their masks are those it knows of
    opened     once enough have signed: its shares of b of survivors, and of s of all others

so of no site can both b and s be known, unless more sites collude than were agreed on. A site
refuses by name what does not fit, and then is as it was.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from hashlib import sha256
from typing import Any, Self

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from traceless.exceptions import FederationError
from traceless.federation import masks, messages
from traceless.federation.agreement import Agreement
from traceless.federation.messages import Message
from traceless.files import container
from traceless.files.container import canonical_json
from traceless.files.facts import named
from traceless.knowledge import Knowledge

_NEXT = {"roster": "delivery", "delivery": "survivors", "survivors": "signatures"}
_KIND = "federation site"


class Site:
    """One site in one round.

    Parameters
    ----------
    agreement : Agreement
    name : str
        Its own, in the agreement.
    key : Ed25519PrivateKey
        Whose public half the agreement has.
    knowledge : Knowledge
        What it gives to the total: ``model.knowledge_``.
    earlier : iterable of bytes
        The `receipt` of each earlier round, so that no two totals show a single site.

    Examples
    --------
    `traceless.federation` has a whole round.
    """

    def __init__(
        self,
        agreement: Agreement,
        name: str,
        key: Ed25519PrivateKey,
        knowledge: Knowledge,
        earlier: Iterable[bytes] = (),
    ) -> None:
        if agreement.sites.get(name) != public_key(key):
            raise FederationError(f"The agreement does not have this key for the site {name!r}.")
        self.agreement, self.name, self._key = agreement, name, key
        self._words = agreement.words(knowledge)
        digest, receipts = knowledge.digest(), [_receipt(data) for data in earlier]
        state = next((r["state"] for r in receipts if r["digest"] == digest), None)
        new: dict[str, Any] = {
            "expects": "roster",
            "digest": digest,
            "state": state or secrets.token_hex(16),
            "earlier": [r["survivors"] for r in receipts],
            "b": secrets.token_hex(masks.SEED),
            "shares_key": secrets.token_hex(masks.SEED),
            "s": secrets.token_hex(masks.SEED),
            "seen": "",
        }
        self._facts, self._answer = new, b""

    def start(self) -> bytes:
        """The first message to the coordinator."""
        facts = self._facts
        terms = {"agreement": self.agreement.digest, "state": facts["state"]}
        keys = {"share_key": _public(facts["shares_key"]), "mask_key": _public(facts["s"])}
        return self._signed("keys", terms | keys)

    def answer(self, message: bytes) -> bytes:
        """The answer to a message of the coordinator; a message that comes again gets it again."""
        seen = sha256(message).hexdigest()
        if seen == self._facts["seen"]:
            return self._answer
        step = self._facts["expects"]
        if step not in messages.ANSWERED:
            raise FederationError("This site has opened its shares: the round is over for it.")
        facts = dict(self._facts)
        said = messages.read(message, step, messages.ANSWERED)
        if step != "roster" and said.facts["round"] != facts["round"]:
            raise FederationError(
                f"A message {step!r} of another round, or of a coordinator that has shown other "
                "keys to other sites, is refused."
            )
        answer: bytes = getattr(self, f"_{step}")(facts, said)
        facts |= {"expects": _NEXT.get(step, "nothing"), "seen": seen}
        if step == "signatures":
            self._words = np.empty((0, 1), np.uint64)
            facts |= dict.fromkeys(("b", "s", "shares_key"), "")
        self._facts, self._answer = facts, answer
        return answer

    def receipt(self) -> bytes:
        """Which sites were in the total; keep it, and give it to `Site` in later rounds."""
        if self._facts["expects"] not in ("signatures", "nothing"):
            raise FederationError("This site has not signed a list of survivors yet.")
        kept = {name: self._facts[name] for name in ("state", "digest", "survivors")}
        return canonical_json(kept).encode()

    def to_bytes(self) -> bytes:
        """The site as bytes, to go on in another process. They hold secrets: keep them private."""
        terms = {"agreement": self.agreement.to_json(), "name": self.name, "facts": self._facts}
        answer, words = np.frombuffer(self._answer, np.uint8), self._words.view(np.int64)
        return container.encoded(_KIND, terms, {"answer": answer, "words": words})

    @classmethod
    def from_bytes(cls, data: bytes, key: Ed25519PrivateKey) -> Self:
        """The site of `to_bytes`. Never go back to older ones: it would answer twice."""
        found = container.parsed(data, "What was kept of this site")
        if found.kind != _KIND:
            raise FederationError(f"These are bytes of kind {found.kind!r}, not of a site.")
        site = cls.__new__(cls)
        site.agreement = Agreement.from_json(found.facts["agreement"])
        site.name, site._facts, site._key = found.facts["name"], found.facts["facts"], key
        site._words = found.tensors["words"].view(np.uint64)
        site._answer = found.tensors["answer"].tobytes()
        return site

    # --- the steps --------------------------------------------------------------------------

    def _roster(self, facts: dict[str, Any], said: Message) -> bytes:
        facts["roster"], facts["round"] = roster(self.agreement, said.facts["messages"])
        ours = facts["roster"].get(self.name)
        if ours is None or ours["mask_key"] != _public(facts["s"]):
            raise FederationError(
                f"The roster does not have the keys that {self.name!r} has sent for this round."
            )
        others = sorted(facts["roster"].keys() - {self.name})
        k, t = self.agreement.neighbours, self.agreement.shares
        chosen = secrets.SystemRandom().sample(others, min(k, len(others)))
        places = {name: self.agreement.places[name] for name in chosen}
        of_b, of_s = (masks.shares(bytes.fromhex(facts[v]), places.values(), t) for v in "bs")
        boxes, commitments = {}, {}
        for name, place in places.items():
            pair = of_b[place], of_s[place]
            box = self._box(facts, self.name, name)
            boxes[name] = box.encrypt(bytes(12), b"".join(pair), None).hex()
            commitments[name] = [sha256(share).hexdigest() for share in pair]
        facts["chosen"] = sorted(chosen)
        sent = {"round": facts["round"], "boxes": boxes, "commitments": commitments}
        return self._signed("shares", sent)

    def _delivery(self, facts: dict[str, Any], said: Message) -> bytes:
        present, boxes = said.facts["present"], said.facts["boxes"]
        self._check_many(facts, present)
        held = {}
        for name in sorted(boxes):
            if name not in present:
                raise FederationError(f"There are shares of {name!r}, who is said to be absent.")
            try:
                box = self._box(facts, name, self.name)
                plain = box.decrypt(bytes(12), bytes.fromhex(boxes[name]), None)
            except (InvalidTag, ValueError):
                raise FederationError(
                    f"The shares from {name!r} to {self.name!r} were changed on the way."
                ) from None
            held[name] = [plain[: masks.SHARE].hex(), plain[masks.SHARE :].hex()]
        near = [name for name in facts["chosen"] if name in present]
        if len(near) < self.agreement.shares:
            raise FederationError(
                f"Of the {len(facts['chosen'])} neighbours of {self.name!r} only {len(near)} are "
                f"left, and {self.agreement.shares} are needed. Begin another round."
            )
        facts |= {"present": present, "held": held}
        shown = {"round": facts["round"], "present": _digest(present)}
        seeds: dict[bool, list[bytes]] = {False: [bytes.fromhex(facts["b"])], True: []}
        for name in {*near, *held}:
            seed = pair_seed(facts["s"], facts["roster"][name]["mask_key"], facts["round"])
            seeds[name < self.name].append(seed)
        words = masks.masked(self._words, seeds[False], seeds[True])
        included = self._signed("included", shown).hex()
        return self._signed("sums", {"round": facts["round"], "included": included}, words)

    def _survivors(self, facts: dict[str, Any], said: Message) -> bytes:
        names = said.facts["survivors"]
        self._check_many(facts, names)
        if not set(names) <= set(facts["present"]):
            raise FederationError("There are survivors that were said to be absent before.")
        included(self.agreement, said.facts["included"], names, facts["round"], facts["present"])
        now = {(name, facts["roster"][name]["state"]) for name in names}
        for earlier in facts["earlier"]:
            changed = {name for name, _ in now ^ set(earlier.items())}
            if 0 < len(changed) < self.agreement.minimum_changes:
                raise FederationError(
                    f"Of an earlier total and this one, only {', '.join(sorted(changed))} would "
                    "differ, and the difference of the two would show their sums. The sites "
                    f"agreed on {self.agreement.minimum_changes} changes at least: wait for others."
                )
        facts["survivors"] = dict(now)
        return self._signed("survivors", {"round": facts["round"], "survivors": names})

    def _signatures(self, facts: dict[str, Any], said: Message) -> bytes:
        names = sorted(facts["survivors"])
        signers = set()
        for data in said.facts["messages"].values():
            signature = messages.read_signed(bytes.fromhex(data), "survivors", self.agreement).facts
            if signature["round"] != facts["round"] or signature["survivors"] != names:
                raise FederationError(
                    f"{signature['site']!r} has signed another list of survivors than "
                    f"{self.name!r}: the coordinator has shown different ones."
                )
            signers.add(signature["site"])
        if len(signers & set(names)) < self.agreement.survivors:
            raise FederationError(
                f"Only {len(signers)} sites have signed the list of survivors, and "
                f"{self.agreement.survivors} must."
            )
        shares = {name: pair[name not in names] for name, pair in facts["held"].items()}
        return self._signed("opened", {"round": facts["round"], "shares": shares})

    # --- inside -----------------------------------------------------------------------------

    def _check_many(self, facts: dict[str, Any], names: Any) -> None:
        """Raise unless these are enough sites of the roster, in order, and this one among them."""
        known = isinstance(names, list) and all(isinstance(n, str) for n in names)
        if not known or names != sorted({*names} & facts["roster"].keys()):
            raise FederationError("A list of sites is not one of names of the roster, in order.")
        if self.name not in names:
            raise FederationError(f"{self.name!r} is not in the list, so there is nothing to do.")
        if len(names) < self.agreement.survivors:
            raise FederationError(
                f"Only {len(names)} sites are left, and {self.agreement.survivors} are needed: "
                "a total of so few would show too much. Begin another round."
            )

    def _box(self, facts: dict[str, Any], sender: str, receiver: str) -> ChaCha20Poly1305:
        """The cipher for shares of one neighbour for another; each key is used once."""
        other = receiver if sender == self.name else sender
        theirs = facts["roster"][other]["share_key"]
        use = canonical_json([sender, receiver])
        return ChaCha20Poly1305(pair_seed(facts["shares_key"], theirs, facts["round"], use))

    def _signed(self, step: str, facts: dict[str, Any], sums: Any = None) -> bytes:
        body = messages.body(step, facts | {"site": self.name}, sums)
        return messages.signed(self._key, body)


def public_key(key: Ed25519PrivateKey) -> str:
    """The public half of a key, as an agreement has it."""
    return key.public_key().public_bytes_raw().hex()


def roster(agreement: Agreement, found: dict[str, str]) -> tuple[dict[str, Any], str]:
    """The keys of all sites by name, and the digest that stands for the round."""
    out = {}
    for data in found.values():
        facts = messages.read_signed(bytes.fromhex(data), "keys", agreement).facts
        if facts["agreement"] != agreement.digest:
            raise FederationError(
                f"{facts['site']!r} has agreed on other terms: compare Agreement.digest."
            )
        out[facts["site"]] = facts
    if len(out) < agreement.survivors or out.keys() != found.keys():
        raise FederationError(
            f"The roster has {len(out)} sites, and {agreement.survivors} are needed."
        )
    return out, _digest(out)


def included(
    agreement: Agreement, found: dict[str, str], names: list[str], round_: str, present: list[str]
) -> None:
    """Raise unless these sites have signed that their masks are for the same list of sites."""
    for name in names:
        data = bytes.fromhex(found.get(name, ""))
        facts = messages.read_signed(data, "included", agreement, messages.INCLUDED).facts
        if facts != {"round": round_, "site": name, "present": _digest(present)}:
            raise FederationError(
                f"{name!r} was told of other sites than the rest, so its sums may be less hidden "
                "than they should be: the coordinator has shown different lists."
            )


def _digest(value: Any) -> str:
    return sha256(canonical_json(value).encode()).hexdigest()


def pair_seed(ours: str, theirs: str, round_: str, use: str = "mask") -> bytes:
    """The seed that two sites have in common, of a private key and a public one."""
    private = X25519PrivateKey.from_private_bytes(bytes.fromhex(ours))
    shared = private.exchange(X25519PublicKey.from_public_bytes(bytes.fromhex(theirs)))
    info = f"traceless federation 1 {round_} {use}".encode()
    return HKDF(hashes.SHA256(), masks.SEED, None, info).derive(shared)


def _public(private: str) -> str:
    key = X25519PrivateKey.from_private_bytes(bytes.fromhex(private))
    return key.public_key().public_bytes_raw().hex()


def _receipt(data: bytes) -> dict[str, Any]:
    return named(container.parsed_json(data.decode()), {"state", "digest", "survivors"})
