"""A store, and a table as the store declares it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from traceless.sources import Schema, Table
    from traceless.store import Store


def open_store(path: str, wait: float = 0.0) -> Store:
    """The store in a folder."""
    from traceless.store import Store

    return Store(path, wait=wait)


def schema_in(about: Any) -> Schema:
    """The schema that `traceless new` put with the store."""
    from traceless.sources import Schema

    if not isinstance(about, dict) or "table" not in about:
        raise ValueError(
            "No table is declared for this store, so files cannot be read for it. Stores made by "
            "'traceless new' have one; in Python it is about={'table': Schema(...).facts()}."
        )
    return Schema.from_facts(about["table"])


def table_for(store: Store, files: Sequence[str], format_: str | None) -> Table:
    """Files, to be read as the store declares."""
    from traceless.sources import Table

    return Table(files, schema_in(store.about), format_)
