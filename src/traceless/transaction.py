"""Updates that are all or nothing, for readers in other threads too.

A change is made to a *draft*, an estimator of the same class with its own `__dict__`, and
published by one assignment when it is complete. So after any error the estimator is what it was;
and another thread sees the attributes from before or those from after, never a mixture. Changes of
one estimator wait for each other; readers never wait.

An interrupt (Ctrl-C) may come between any two instructions, also between the assignment and the
caller's next line: as with any commit, an answer may be lost after it. The call then raises
KeyboardInterrupt, and the estimator is wholly the new one; its digest tells which it is. Whatever
came after the assignment, and undid it, could be interrupted too.

A method that reads several attributes reads them from a `snapshot`: the estimator as it is now,
which later changes leave alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from inspect import Signature, signature
from threading import RLock
from typing import Any, ClassVar, Self, TypeVar

E = TypeVar("E", bound="Changeable")


class Changeable:
    """Base of estimators that change from one whole state to another.

    The lock is kept outside of `__dict__`: it is no part of what is
    published, copied or sent, and every copy gets its own.
    """

    __slots__ = ("_lock",)
    _lock: Any  # threading.RLock
    __signature__: ClassVar[Signature]

    def __init_subclass__(cls, **options: Any) -> None:
        """Give the class the signature of its constructor: Sphinx would show that of `__new__`."""
        super().__init_subclass__(**options)
        ours = signature(cls.__init__)
        cls.__signature__ = Signature([*ours.parameters.values()][1:])

    def __new__(cls, *_: Any, **__: Any) -> Self:  # noqa: D102
        self = super().__new__(cls)
        self._lock = RLock()
        return self

    def __dir__(self) -> list[str]:
        """All names, without methods that are not available; properties are not computed."""
        kind = type(self)
        return [
            name
            for name in object.__dir__(self)
            if isinstance(getattr(kind, name, None), property) or hasattr(self, name)
        ]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__.copy()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return super().__reduce_ex__(max(protocol, 2))  # 0 and 1 would go without __new__


@contextmanager
def changing(estimator: E) -> Iterator[E]:
    """A draft of an estimator: published when the block ends, dropped if it raises.

    Parameters that were set on the estimator meanwhile stay as they were set.
    """
    with estimator._lock:
        draft, before = snapshot(estimator), estimator.__dict__.copy()
        draft.__dict__ = before.copy()
        yield draft
        now = estimator.__dict__
        others = [(k, v) for k, v in now.items() if before.get(k, now) is not v]
        meanwhile = {k: v for k, v in others if not k.startswith("_") and not k.endswith("_")}
        estimator.__dict__ = draft.__dict__ | meanwhile


def snapshot(estimator: E) -> E:
    """The estimator as it is now: what is published later does not show in it."""
    view = object.__new__(type(estimator))
    view.__dict__, view._lock = estimator.__dict__, estimator._lock
    return view


def apart(estimator: E) -> E:
    """A copy in the present state; each of the two then changes by itself."""
    own = snapshot(estimator)
    own.__dict__, own._lock = own.__dict__.copy(), RLock()
    return own


def unchangeable(estimator: E, why: str) -> E:
    """A read-only snapshot: a change raises RuntimeError; copies can be changed."""
    view = snapshot(estimator)
    view._lock = _Refusal(why)
    return view


class _Refusal:
    """In place of a lock: entering it raises."""

    def __init__(self, why: str) -> None:
        self._why = why

    def __enter__(self) -> None:
        raise RuntimeError(self._why)

    def __exit__(self, *_: object) -> None:  # `with` needs it
        pass
