"""Work that takes long, done aside: on any core, while the service's own threads stay on theirs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from runtime import Part

T = TypeVar("T")

_wraps: Part[list[Callable[[Any], Any]]] = Part(list)


def use(for_long_work: Callable[[Any], Any] | None) -> None:
    """From now on `for_long_work` wraps what is done aside; None: nothing does."""
    _wraps()[:] = [for_long_work] if for_long_work else []


def do(work: Callable[[], T]) -> T:
    """Do it in this thread, aside, and return what came of it."""
    return (_wraps()[0](work) if _wraps() else work)()
