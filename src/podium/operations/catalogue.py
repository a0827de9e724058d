"""All operations, by name and by skill."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from podium.operations import dates, facts, lists, logic, numerals, sums, units, words
from podium.operations.operation import Operation

OPERATIONS: Mapping[str, Operation] = MappingProxyType(
    {
        operation.name: operation
        for skill in (sums, words, lists, dates, units, numerals, facts, logic)
        for operation in skill.operations()
    }
)
SKILLS: tuple[str, ...] = tuple(dict.fromkeys(operation.skill for operation in OPERATIONS.values()))
