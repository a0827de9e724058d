"""A problem: a chain or graph of operations, with their true results.

A hop is one operation with its inputs. An input is a value from the question or the result of an earlier hop. Values
are stored as text; `ValueType` reads and writes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from podium.lab.operations import Operation
from podium.lab.values import LARGEST_INT, VALUE_TYPES

_LARGEST_INPUT = 10**9
"""Far above what a question or a worker's error holds; a test for primes takes a moment here, and hours above."""


@dataclass(frozen=True, slots=True)
class Hop:
    """One operation of a problem."""

    operation: Operation
    inputs: tuple[str | int, ...]
    """For each input, a value as text, or the position of the earlier hop whose result is the input."""
    number: int | None = None
    clause: str = ""
    """The words of the question that request this hop."""

    @property
    def sources(self) -> tuple[int, ...]:
        """The positions of the hops whose results are inputs."""
        return tuple(i for i in self.inputs if isinstance(i, int))


@dataclass(frozen=True)
class Problem:
    """Hops in the order in which the question requests them; the result of the last one is the answer."""

    hops: tuple[Hop, ...]

    def compute(self, position: int, results: Sequence[str]) -> str:
        """The result of one hop, given the (perhaps wrong) results of the hops before it.

        Raises ValueError when an input is outside the operation's domain.
        """
        hop = self.hops[position]
        operation = hop.operation
        values = [
            VALUE_TYPES[kind].read(results[source] if isinstance(source, int) else source)
            for kind, source in zip(operation.takes, hop.inputs, strict=True)
        ]
        if hop.number is not None:
            values.append(hop.number)
        if any(isinstance(value, int) and abs(value) > _LARGEST_INPUT for value in values):
            raise ValueError("too large")
        try:
            result = operation.compute(*values)
        except ArithmeticError as error:
            raise ValueError(str(error)) from error
        if isinstance(result, int) and result > LARGEST_INT:
            raise ValueError("too large")
        return VALUE_TYPES[operation.gives].write(result)

    @cached_property
    def truths(self) -> tuple[str, ...]:
        """The right result of every hop."""
        results: list[str] = []
        for position in range(len(self.hops)):
            results.append(self.compute(position, results))
        return tuple(results)

    @property
    def answer(self) -> str:
        """The right result of the last hop."""
        return self.truths[-1]

    @property
    def skills(self) -> tuple[str, ...]:
        """The skill of each hop, in order."""
        return tuple(hop.operation.skill for hop in self.hops)

    @property
    def shape(self) -> str:
        """Either "chain" or "join"."""
        return "join" if any(len(hop.sources) == 2 for hop in self.hops) else "chain"

    @cached_property
    def key(self) -> str:
        """The problem without its wording: two questions with equal keys are the same problem."""
        return "; ".join(
            f"{hop.operation.name}({', '.join(f'#{i}' if isinstance(i, int) else i for i in hop.inputs)}"
            f"{'' if hop.number is None else f' | {hop.number}'})"
            for hop in self.hops
        )

    @property
    def compositions(self) -> tuple[tuple[str, str], ...]:
        """Pairs of names of operations, (source, taker): the taker gets the source's result as an input."""
        return tuple(
            (self.hops[source].operation.name, hop.operation.name)
            for hop in self.hops
            for source in hop.sources
        )
