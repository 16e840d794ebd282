"""What a verification says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """One thing that was checked.

    Attributes
    ----------
    name : str
    ok : bool
    said : str
        What was found.
    """

    name: str
    ok: bool
    said: str


@dataclass(frozen=True)
class Verification:
    """All that was checked.

    Attributes
    ----------
    checks : tuple of Check
    """

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether every check passed."""
        return all(check.ok for check in self.checks)

    def __str__(self) -> str:
        return "\n".join(f"{'ok ' if c.ok else 'BAD'} {c.name}: {c.said}" for c in self.checks)
