"""Recipes that fail at a chosen moment; in a module of its own for the workers."""

import errno
import os
import signal
from dataclasses import dataclass, fields
from typing import Any

from traceless.knowledge.sums import Knowledge, Recipe
from traceless.sources.files import reading


def first_time(marker):
    """Whether no process has been here before; always, if there is no marker."""
    if marker is None:
        return True
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def die(marker=None):
    """Be killed as by `kill -9`: the first time, or always."""
    if first_time(marker):
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Deadly(Recipe):
    """Kills the process that gathers."""

    marker: str | None = None

    def knowledge(self, rows):
        die(self.marker)
        return super().knowledge(rows)


@dataclass(frozen=True)
class Failing(Recipe):
    """Fails as an engine's task may, not as bad data do."""

    marker: str | None = None

    def knowledge(self, rows):
        if first_time(self.marker):
            raise RuntimeError("the disk is full")
        return super().knowledge(rows)


@dataclass(frozen=True)
class Unreadable(Recipe):
    """Fails as a network's disk does."""

    marker: str | None = None

    def knowledge(self, rows):
        if first_time(self.marker):
            with reading("rows.parquet", OSError):
                raise OSError(errno.EIO, "Input/output error")
        return super().knowledge(rows)


@dataclass(frozen=True)
class Unsendable(Recipe):
    """Raises an error that no pickle brings back."""

    def knowledge(self, rows):  # noqa: ARG002
        class OwnError(Exception):
            pass

        raise OwnError("a library's own")


@dataclass(frozen=True)
class Fragile:
    """Knowledge whose first addition kills the process."""

    knowledge: Knowledge
    marker: str

    def __add__(self, other):
        die(self.marker)
        return Fragile(self.knowledge + other.knowledge, self.marker)


@dataclass(frozen=True)
class FragileRecipe(Recipe):
    marker: str = ""

    def knowledge(self, rows) -> Any:
        return Fragile(super().knowledge(rows), self.marker)


@dataclass(frozen=True)
class TwoTypes(Recipe):
    """Gathers labels as text where the first of them is 1."""

    def knowledge(self, rows):
        X, y, weight = rows
        return super().knowledge((X, y.astype(str) if y[0] == 1 else y, weight))


def of(recipe, kind, **more):
    """The same recipe, sabotaged."""
    said = {field.name: getattr(recipe, field.name) for field in fields(recipe)}
    return kind(**said, **more)
