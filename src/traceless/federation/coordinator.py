"""The coordinator: it carries messages between sites, and learns the total of those that survive.

    Σ_i x_i = Σ_i y_i - Σ_i PRG(b_i) - Σ_(i, j) ± PRG(s_ij)     i survives, j dropped out

with the b of survivors and the s of all others restored from shares. A message that does not
fit is refused by name and changes nothing; whoever has not sent one by `next` has dropped out. It
has no secrets, and the same letters always make the same coordinator: to go on in another process,
keep the letters, and let a new one take them again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from traceless.exceptions import FederationError
from traceless.federation import masks, messages
from traceless.federation.agreement import Agreement, digest, require
from traceless.files.facts import tensor
from traceless.knowledge import Knowledge


class Coordinator:
    """One round, seen from the middle.

    Parameters
    ----------
    agreement : Agreement

    Attributes
    ----------
    step : str
        The message that sites are to send next; "" at the end.
    knowledge : Knowledge
        The total, at the end.
    survivors : list of str
        Whose sums it holds.

    Examples
    --------
    `traceless.federation` has a whole round.
    """

    knowledge: Knowledge

    def __init__(self, agreement: Agreement) -> None:
        self.agreement, self.step, self._round = agreement, messages.SENT[0], agreement.digest
        self.survivors, self._keys = [*agreement.sites], dict[str, str]()
        self._taken: dict[str, dict[str, Any]] = {step: {} for step in messages.SENT}
        self._zero = agreement.words(agreement.nothing)

    def take(self, data: bytes) -> str:
        """Take a message of a site; returns its name. Raises FederationError if it is refused."""
        require(self.step, "The round is over.")
        taken, name = self._taken[self.step], "?"
        try:
            facts = messages.read_signed(data, self.step, self._round, self.agreement)
            name = str(facts["site"])
            require(name in {*self.survivors} - taken.keys(), "it came twice, or too late.")
            self._check(name, data, facts)
        except ValueError as error:
            raise FederationError(f"{self.step!r} of {name!r} is refused: {error}") from None
        taken[name] = facts
        return name

    def next(self) -> dict[str, bytes]:
        """End this step: what each site is to be sent, nothing once `knowledge` is there."""
        names, enough = sorted(self._taken[self.step]), self.agreement.survivors
        require(len(names) >= enough, f"{len(names)} sent {self.step!r}, and {enough} are needed.")
        answers: dict[str, bytes] = getattr(self, f"_after_{self.step}")(names)
        if self.step in ("keys", "shares", "sums"):
            self.survivors = names
        self.step = messages.SENT[messages.SENT.index(self.step) + 1]
        return answers

    # --- the steps --------------------------------------------------------------------------

    def _check(self, name: str, data: bytes, facts: dict[str, Any]) -> None:
        """Raise unless a message of this step can be used."""
        if self.step == "keys":
            for key in ("share_key", "mask_key"):  # an exchange refuses what is no proper key
                masks.pair_seed("01" * 32, facts[key], "a test")
            self._keys[name] = data.hex()
        elif self.step in ("sums", "signature"):
            signed = messages.list_of(self.step, self._round, self.survivors)
            messages.check_signatures(self.agreement, [name], {name: facts["signature"]}, signed)
        if self.step == "sums":
            tensor(facts, "sums", "i", self._zero.shape)  # raises ValueError

    def _after_keys(self, names: list[str]) -> dict[str, bytes]:
        answers = self._told(names, "roster", keys=self._keys)  # of the round that has no keys yet
        self._roster = messages.roster(self.agreement, self._keys)
        self._round, (_, self._enough) = digest(self._roster), self.agreement.neighbours(len(names))
        return answers

    def _after_shares(self, names: list[str]) -> dict[str, bytes]:
        sent, answers = self._sent("shares", "boxes"), dict[str, bytes]()
        for name in names:
            boxes = {other: sent[other][name] for other in names if name in sent[other]}
            answers |= self._told([name], "delivery", present=names, boxes=boxes)
        return answers

    def _after_sums(self, names: list[str]) -> dict[str, bytes]:
        shown = self._sent("sums", "signature")
        return self._told(names, "survivors", survivors=names, signatures=shown)

    def _after_signature(self, names: list[str]) -> dict[str, bytes]:
        return self._told(names, "signatures", signatures=self._sent("signature", "signature"))

    def _after_opened(self, _: list[str]) -> dict[str, bytes]:
        total, boxes = self._zero.copy(), self._sent("shares", "boxes")
        for sums in self._sent("sums", "sums").values():
            masks.add(total, sums.view(np.uint64))
        plus, minus = list[bytes](), [bytes.fromhex(self._restored(n)) for n in self.survivors]
        for name in boxes.keys() - {*self.survivors}:
            private = self._restored(name)
            for other in self.survivors:
                if other in boxes[name] or name in boxes[other]:
                    theirs = self._roster[other]["mask_key"]
                    seed = masks.pair_seed(private, theirs, f"{self._round} mask")
                    (plus if name < other else minus).append(seed)
        try:
            self.knowledge = self.agreement.knowledge(masks.masked(total, plus, minus))
        except ValueError as error:
            raise FederationError(f"Some site has sent what are no sums of rows: {error}") from None
        return {}

    # --- inside -----------------------------------------------------------------------------

    def _sent(self, step: str, fact: str) -> dict[str, Any]:
        return {name: facts[fact] for name, facts in self._taken[step].items()}

    def _told(self, names: list[str], step: str, **facts: Any) -> dict[str, bytes]:
        return dict.fromkeys(names, messages.body(step, self._round, facts))

    def _restored(self, name: str) -> str:
        """The seed b of a survivor, or s of another site, from the shares that were opened.

        Where some have opened wrong ones, others in a row may still give it.
        """
        survived, t, opened = name in self.survivors, self._enough, self._taken["opened"]
        promised = self._roster[name]["b_digest" if survived else "mask_key"]
        near = [n for n in self._taken["shares"][name]["boxes"] if n in opened]
        shares = {self.agreement.sites[n]: opened[n]["shares"].get(name, "00") for n in near}
        for first in range(len(near) if len(near) >= t else 0):
            seed = masks.restored(dict([*shares.items(), *shares.items()][first : first + t]))
            if (digest(seed) if survived else masks.public(seed)) == promised:
                return seed
        said = f"Of {name!r} fewer than {t} shares were opened, or wrong ones, by {', '.join(near)}"
        raise FederationError(f"{said}. Begin another round, without the site that sends these.")
