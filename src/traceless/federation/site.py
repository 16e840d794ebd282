"""A site: it gives its sums to a total, and to nobody else.

Bonawitz et al. 2017 (figure 4) with the sparse graph of Bell et al. 2020. In turn it sends

    keys       two X25519 keys for this round, signed, for shares and for masks
    shares     a seed b of its own and the private key s of masks, in shares for its neighbours
    sums       x + PRG(b) + Σ ± PRG(s_ij) over neighbours, whichever of the two picked the other,
               and a signature under the list of sites whose shares it was told have come
    signature  under the list of those whose sums have come, one list in a round, if all of
               them have signed the other list: their masks are those it knows of
    opened     once enough have signed: its shares of b of survivors, and of s of all others

so of no site can both b and s be known, unless more sites collude than were agreed on. What does
not fit is refused by name, and the site is as it was.
"""

from __future__ import annotations

import secrets
from copy import copy
from typing import Any, Self

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from traceless.exceptions import FederationError
from traceless.federation import masks, messages
from traceless.federation.agreement import Agreement, digest, require
from traceless.files import container
from traceless.knowledge import Knowledge

_NONCE = bytes(12)  # each key is used once


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
    earlier : iterable of dict
        What `summed` has said in each earlier round, so that no two totals show a single site.

    Examples
    --------
    `traceless.federation` has a whole round.
    """

    def __init__(
        self, agreement: Agreement, name: str, key: Any, knowledge: Knowledge, earlier: Any = ()
    ) -> None:
        ours = agreement.sites.get(name) == public_key(key)
        require(ours, f"The agreement does not have this key for the site {name!r}.")
        self.agreement, self.name, self._key = agreement, name, key
        self._words, sums, earlier = agreement.words(knowledge), knowledge.digest(), [*earlier]
        same = [total["state"] for total in earlier if total["digest"] == sums]
        self._facts: dict[str, Any] = {
            "expects": "roster",
            "round": agreement.digest,
            "digest": sums,
            "state": same[0] if same else secrets.token_hex(16),
            "earlier": [total["survivors"] for total in earlier],
            **{name: secrets.token_hex(32) for name in ("b", "mask_key", "share_key")},
        }

    def start(self) -> bytes:
        """The first message to the coordinator."""
        require(self._facts["expects"] == "roster", "This site has started before.")
        said = {name: masks.public(self._facts[name]) for name in ("share_key", "mask_key")}
        said |= {"state": self._facts["state"], "b_digest": digest(self._facts["b"])}
        return self._signed("keys", said)

    def answer(self, message: bytes) -> bytes:
        """The answer to a message of the coordinator; each is answered once."""
        draft, step = copy(self), self._facts["expects"]
        require(step, "This site has opened its shares: the round is over for it.")
        draft._facts = self._facts | {"expects": messages.TOLD[messages.TOLD.index(step) + 1]}
        try:
            told = messages.read(message, step, self._facts["round"])
            answer: bytes = getattr(draft, f"_{step}")(told)
        except ValueError as error:
            raise FederationError(f"{self.name!r} refuses a message {step!r}: {error}") from None
        self.__dict__ = draft.__dict__
        return answer

    def summed(self) -> dict[str, Any]:
        """Which sites are in the total; keep it, and give it to `Site` in later rounds."""
        require("survivors" in self._facts, "This site has not signed a list of survivors yet.")
        return {name: self._facts[name] for name in ("state", "digest", "survivors")}

    def to_bytes(self) -> bytes:
        """The site as bytes, to go on in another process. They hold secrets: keep them private."""
        terms = {"agreement": self.agreement.to_json(), "name": self.name, "facts": self._facts}
        return container.encoded("federation site", terms, {"words": self._words.T.view(np.int64)})

    @classmethod
    def from_bytes(cls, data: bytes, key: Ed25519PrivateKey) -> Self:
        """The site of `to_bytes`. Never go back to older ones: it would answer twice."""
        kept, site = container.parsed(data, "What was kept of this site"), cls.__new__(cls)
        require(kept.kind == "federation site", f"These are bytes of {kept.kind!r}, not of a site.")
        site.agreement = Agreement(**container.parsed_json(kept.facts["agreement"]))
        site.name, site._facts, site._key = kept.facts["name"], kept.facts["facts"], key
        site._words = kept.tensors["words"].view(np.uint64).T
        return site

    # --- the steps: of a draft, which takes the place of the site if none of it is refused -------

    def _roster(self, told: dict[str, Any]) -> bytes:
        facts, roster = self._facts, messages.roster(self.agreement, told["keys"])
        mine = roster.get(self.name, {}).get("mask_key") == masks.public(facts["mask_key"])
        require(mine, "it does not have the keys of this site.")
        k, t = self.agreement.neighbours(len(roster))
        chosen = sorted(secrets.SystemRandom().sample(sorted(roster.keys() - {self.name}), k))
        facts |= {"roster": roster, "round": digest(roster), "chosen": chosen, "enough": t}
        keys = {name: self.agreement.sites[name] for name in chosen}
        of_b, of_s = (masks.shares(facts[seed], keys, t) for seed in ("b", "mask_key"))
        both = {name: bytes.fromhex(of_b[name] + of_s[name]) for name in chosen}
        boxes = {n: self._box(self.name, n).encrypt(_NONCE, both[n], None).hex() for n in chosen}
        return self._signed("shares", {"boxes": boxes})

    def _delivery(self, told: dict[str, Any]) -> bytes:
        facts, present, held = self._facts, told["present"], {}
        self._check_list(present, facts["roster"])
        require(told["boxes"].keys() <= {*present}, "there are shares of sites that are absent.")
        for name, box in told["boxes"].items():
            try:
                shares = self._box(name, self.name).decrypt(_NONCE, bytes.fromhex(box), None).hex()
            except InvalidTag:
                raise FederationError(f"the shares of {name!r} were changed on the way.") from None
            held[name] = [shares[: masks.SHARE], shares[masks.SHARE :]]
        facts |= {"present": present, "held": held}
        near = {*facts["chosen"]} & {*present} | held.keys()
        seeds = {name: self._seed("mask_key", name, "mask") for name in near}
        plus = [bytes.fromhex(facts["b"]), *(seeds[name] for name in near if self.name < name)]
        minus = [seeds[name] for name in near if name < self.name]
        words, self._words = masks.masked(self._words, plus, minus), np.zeros((1, 0), np.uint64)
        return self._signed("sums", self._list("sums", present), words)

    def _survivors(self, told: dict[str, Any]) -> bytes:
        facts, names, least = self._facts, told["survivors"], self.agreement.minimum_changes
        self._check_list(names, facts["present"])
        signed = messages.list_of("sums", facts["round"], facts["present"])
        messages.check_signatures(self.agreement, names, told["signatures"], signed)
        facts["survivors"] = {name: facts["roster"][name]["state"] for name in names}
        for earlier in facts["earlier"]:
            changed = {name for name, _ in facts["survivors"].items() ^ earlier.items()}
            said = f"an earlier total without {', '.join(sorted(changed))} would show their sums"
            require(not 0 < len(changed) < least, f"{said}: wait until {least} have changed.")
        return self._signed("signature", self._list("signature", names))

    def _signatures(self, told: dict[str, Any]) -> bytes:
        facts, signatures, held = self._facts, told["signatures"], self._facts["held"]
        signed = messages.list_of("signature", facts["round"], sorted(facts["survivors"]))
        messages.check_signatures(self.agreement, signatures, signatures, signed)
        require(len(signatures) >= self.agreement.survivors, "too few sites have signed the list.")
        shares = {name: held[name][name not in facts["survivors"]] for name in held}
        answer = self._signed("opened", {"shares": shares})
        self._facts = {name: facts[name] for name in ("expects", "state", "digest", "survivors")}
        return answer

    # --- inside -----------------------------------------------------------------------------

    def _check_list(self, names: list[str], known: Any) -> None:
        """Raise unless these are enough known sites, this one and its neighbours among them."""
        ours, near = {self.name} <= {*names} <= {*known}, {*self._facts["chosen"]} & {*names}
        require(ours, "its list of sites is without this one, or with some that are not there.")
        enough = len(names) >= self.agreement.survivors and len(near) >= self._facts["enough"]
        require(enough, "too few sites are left, or too few neighbours. Begin another round.")

    def _list(self, step: str, names: list[str]) -> dict[str, str]:
        data = messages.list_of(step, self._facts["round"], names)
        return {"signature": messages.signature(self._key, data).hex()}

    def _box(self, *way: str) -> ChaCha20Poly1305:
        """The cipher for shares from a sender to a receiver, of whom one is this site."""
        other = way[way[0] == self.name]
        return ChaCha20Poly1305(self._seed("share_key", other, container.canonical_json(way)))

    def _seed(self, name: str, other: str, use: str) -> bytes:
        ours, theirs = self._facts[name], self._facts["roster"][other][name]
        return masks.pair_seed(ours, theirs, f"{self._facts['round']} {use}")

    def _signed(self, step: str, said: dict[str, Any], sums: Any = None) -> bytes:
        body = messages.body(step, self._facts["round"], said | {"site": self.name}, sums)
        return messages.signature(self._key, body) + body


def public_key(key: Ed25519PrivateKey) -> str:
    """The public half of a key, as an agreement has it."""
    return key.public_key().public_bytes_raw().hex()
