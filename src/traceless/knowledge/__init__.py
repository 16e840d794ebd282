"""What rows add up to: sums with + and -, their digest, and the fingerprint of the rows."""

from traceless.knowledge.sums import Knowledge

__all__ = ["Knowledge"]
