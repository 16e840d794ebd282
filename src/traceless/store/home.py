"""The store."""


class Store:
    """Placeholder."""
