"""Decides which request gets which fault: rules, and the counts of the rules that a server has now.

A rule is a value without counts, so several servers may use the same rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from pydantic import Field

from podium.config import Settings
from podium_testing.exchange import Exchange, Fault, messages_text
from podium_testing.faults import AnyFault


class Rule(Settings):
    """A fault, and conditions. A request gets the fault if it meets all conditions that are set."""

    fault: AnyFault
    model: str | None = None
    """The request is for this model."""
    contains: str | None = None
    """Text in the content of any message."""
    after: int = Field(default=0, ge=0)
    """How many matching requests pass without the fault before the first one that may get it."""
    every: int = Field(default=1, ge=1)
    """How many matching requests there are from one that may get the fault to the next."""
    share: float = Field(default=1.0, ge=0, le=1)
    """The chance with which such a request gets the fault; drawn by the server's seed."""
    times: int | None = Field(default=None, ge=0)
    """The most requests that get the fault. None sets no limit."""

    def matches(self, exchange: Exchange) -> bool:
        """Whether the request is for this model and contains this text; `ActiveRules` checks the counts."""
        if self.model is not None and self.model != exchange.model:
            return False
        return self.contains is None or self.contains in messages_text(exchange.body["messages"])


class ActiveRules:
    """The rules that a server has now. It counts for each how many requests matched it and how many faults it gave.

    The first rule that gives its fault decides, and later rules do not count that request. So several rules are a
    sequence: two refusals, then one reply that hangs, then good replies.
    """

    def __init__(self, rules: Sequence[Rule], seed: str) -> None:
        self.rules = tuple(rules)
        self._seen = [0] * len(self.rules)
        self._given = [0] * len(self.rules)
        self._draws = [Random(f"{seed}/rule/{index}") for index in range(len(self.rules))]

    def fault(self, exchange: Exchange) -> Fault | None:
        """The fault that this request gets, or None for a good reply. The request is counted."""
        for index, rule in enumerate(self.rules):
            if rule.matches(exchange) and self._gives(index, rule):
                self._given[index] += 1
                return rule.fault
        return None

    def _gives(self, index: int, rule: Rule) -> bool:
        turn = self._seen[index] - rule.after
        self._seen[index] += 1
        if turn < 0 or turn % rule.every or self._given[index] == rule.times:
            return False
        return rule.share == 1.0 or self._draws[index].random() < rule.share
