"""An operation: one small computation that a question may ask for, and the ways of asking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Operation:
    """One computation, in one skill."""

    name: str
    skill: str
    takes: tuple[str, ...]
    """Kinds of its one or two values."""
    gives: str
    compute: Callable[..., Any]
    """(value, [second value,] [number]) -> result; ValueError outside its domain."""
    phrasings: tuple[str, ...]
    """Imperative clauses with {x}, {y} for values and {n} for the number; at least three."""
    number: range | None = None
    """Where {n} is drawn from, if the operation has one."""

    @property
    def joins(self) -> bool:
        """Whether it brings two values together."""
        return len(self.takes) == 2
