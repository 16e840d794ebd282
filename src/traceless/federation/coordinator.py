"""The coordinator: it carries messages between sites, and learns the total of those that survive.

    Σ_i x_i = Σ_i y_i - Σ_i PRG(b_i) - Σ_(i, j) ± PRG(s_ij)     i survives, j dropped out

with the b of survivors and the s of all others restored from shares. A message that does not
fit is refused by name and changes nothing; whoever has not sent one by `next` has dropped out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

import numpy as np

from traceless.exceptions import FederationError
from traceless.federation import masks, messages
from traceless.federation.agreement import Agreement
from traceless.federation.messages import Message
from traceless.federation.site import _public, included, pair_seed, roster
from traceless.knowledge import Knowledge

_STEPS = tuple(messages.SENT)


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
        self.agreement = agreement
        self.step, self.survivors = _STEPS[0], list(agreement.sites)
        self._taken: dict[str, dict[str, Message]] = {step: {} for step in _STEPS}
        self._raw: dict[str, str] = {}

    @property
    def waits_for(self) -> list[str]:
        """Sites that have not sent the message of this step."""
        return [name for name in self.survivors if name not in self._taken.get(self.step, ())]

    def take(self, data: bytes) -> str:
        """Take a message of a site; returns its name. Raises FederationError if it is refused."""
        if not self.step:
            raise FederationError("The round is over.")
        message = messages.read_signed(data, self.step, self.agreement)
        name: str = message.facts["site"]
        if name in self._taken[self.step]:
            raise FederationError(f"{name!r} has sent its message {self.step!r} before.")
        if name not in self.survivors:
            raise FederationError(f"{name!r} has dropped out of this round, and must stay out.")
        if self.step == "keys":
            same = message.facts["agreement"] == self.agreement.digest
        else:
            same = message.facts["round"] == self._round
        if not same:
            raise FederationError(
                f"A message {self.step!r} of {name!r} is of another round, or of other terms."
            )
        check: Callable[..., None] | None = getattr(self, f"_check_{self.step}", None)
        if check:
            check(name, message)
        self._taken[self.step][name] = message
        if self.step in ("keys", "survivors"):
            self._raw[name] = data.hex()
        return name

    def next(self) -> dict[str, bytes]:
        """End this step: what each site is to be sent, nothing once `knowledge` is there."""
        taken, enough = self._taken[self.step], self.agreement.survivors
        if len(taken) < enough:
            raise FederationError(
                f"{len(taken)} of {len(self.agreement.sites)} sites have sent a message "
                f"{self.step!r}, and {enough} are needed. Wait for {', '.join(self.waits_for)}; "
                "nothing is lost, and nothing was learned."
            )
        if self.step in ("keys", "shares", "sums"):
            self.survivors = sorted(taken)
        answers: Mapping[str, bytes] = getattr(self, f"_after_{self.step}")()
        self._raw = {}
        self.step = (*_STEPS, "")[_STEPS.index(self.step) + 1]
        return dict(answers)

    # --- the steps --------------------------------------------------------------------------

    def _after_keys(self) -> dict[str, bytes]:
        self._roster, self._round = roster(self.agreement, self._raw)
        return self._to_all("roster", {"messages": self._raw})

    def _check_shares(self, name: str, message: Message) -> None:
        boxes, commitments = message.facts["boxes"], message.facts["commitments"]
        others = self._roster.keys() - {name}
        if not boxes.keys() <= others or boxes.keys() != commitments.keys():
            raise FederationError(f"{name!r} has sent shares for sites that are not in the roster.")

    def _after_shares(self) -> dict[str, bytes]:
        sent = {name: message.facts["boxes"] for name, message in self._taken["shares"].items()}
        answers = {}
        for name in self.survivors:
            boxes = {other: sent[other][name] for other in self.survivors if name in sent[other]}
            facts = {"round": self._round, "present": self.survivors, "boxes": boxes}
            answers[name] = messages.body("delivery", facts)
        return answers

    def _check_sums(self, name: str, message: Message) -> None:
        shapes = {m.sums.shape for m in self._taken["sums"].values() if m.sums is not None}
        if message.sums is None or message.sums.ndim != 2 or not shapes <= {message.sums.shape}:
            raise FederationError(f"{name!r} has sent sums of another size than the other sites.")
        shown = {name: message.facts["included"]}
        included(self.agreement, shown, [name], self._round, self.survivors)

    def _after_sums(self) -> dict[str, bytes]:
        shown = {name: message.facts["included"] for name, message in self._taken["sums"].items()}
        facts = {"round": self._round, "survivors": self.survivors, "included": shown}
        return self._to_all("survivors", facts)

    def _check_survivors(self, name: str, message: Message) -> None:
        if message.facts["survivors"] != self.survivors:
            raise FederationError(f"{name!r} has signed another list of survivors.")

    def _after_survivors(self) -> dict[str, bytes]:
        answer = self._to_all("signatures", {"round": self._round, "messages": self._raw})
        return {name: data for name, data in answer.items() if name in self._raw}

    def _check_opened(self, name: str, message: Message) -> None:
        shares = message.facts["shares"]
        for other in self._taken["shares"]:
            expected = self._taken["shares"][other].facts["commitments"].get(name)
            if expected is None:
                continue
            digest = sha256(bytes.fromhex(shares.get(other, ""))).hexdigest()
            if digest != expected[other not in self.survivors]:
                raise FederationError(
                    f"{name!r} has opened another share than it was given by {other!r}."
                )

    def _after_opened(self) -> dict[str, bytes]:
        total: Any = None
        for message in self._taken["sums"].values():
            words = np.asarray(message.sums).view(np.uint64)
            if total is None:
                total = words.copy()
            else:
                masks.add(total, words)
        plus: list[bytes] = []
        minus = [self._restored(name) for name in self.survivors]
        for name in self._taken["shares"].keys() - set(self.survivors):
            private = self._restored(name).hex()
            if _public(private) != self._roster[name]["mask_key"]:
                raise FederationError(f"The shares of {name!r} do not give its key.")
            for other in self._near(name):
                seed = pair_seed(private, self._roster[other]["mask_key"], self._round)
                (plus if name < other else minus).append(seed)
        self.knowledge = self.agreement.knowledge(masks.masked(total, plus, minus))
        return {}

    # --- inside -----------------------------------------------------------------------------

    def _near(self, name: str) -> list[str]:
        """The survivors that share a mask with a site."""
        boxes = {n: self._taken["shares"][n].facts["boxes"] for n in self._taken["shares"]}
        return [n for n in self.survivors if n in boxes[name] or name in boxes[n]]

    def _restored(self, name: str) -> bytes:
        """The seed of a site, from the shares of it that its neighbours have opened."""
        places, shares = self.agreement.places, {}
        for other, message in self._taken["opened"].items():
            if name in message.facts["shares"]:
                shares[places[other]] = bytes.fromhex(message.facts["shares"][name])
        if len(shares) < self.agreement.shares:
            raise FederationError(
                f"Of the shares of {name!r} only {len(shares)} were opened, and "
                f"{self.agreement.shares} are needed: begin another round."
            )
        return masks.restored(dict(sorted(shares.items())[: self.agreement.shares]))

    def _to_all(self, step: str, facts: dict[str, Any]) -> dict[str, bytes]:
        data = messages.body(step, facts)
        return dict.fromkeys(self.survivors, data)
