"""Chooses a pool from tested candidates: the online knapsack of arXiv 2510.16499 (NeurIPS 2025).

Candidates come one after another, the cheapest first. A candidate is worth the weights of the kinds of questions that
it passed and that no chosen worker covers yet. It is chosen if it is worth enough for each of its dollars. How much is
enough rises with the share of the budget that chosen candidates take. Nothing is called here: `candidate_tests` tests.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

UNSORTED = "unsorted"
"""How the kind without a name is shown: questions that no cluster has words of, or all where there are no clusters."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One candidate that has answered all tests."""

    worker: str
    passed: frozenset[str]
    """The kinds of questions that it passed."""
    cost_usd: float
    """Dollars of its tests, as if nothing had been cached."""


@dataclass(frozen=True, slots=True)
class CandidateOutcome:
    """What became of one candidate."""

    worker: str
    chosen: bool
    reason: str
    """Half a sentence for a table."""


def bar(share: float, lowest: float, highest: float) -> float:
    """Psi(z): the least value for each dollar of a candidate when `share` of the budget is used up.

    Args:
        share: from 0 to 1.
        lowest, highest: bounds L and U of the value for each dollar of any useful candidate, both above 0.
    """
    return math.exp(share * math.log(highest * math.e / lowest)) * lowest / math.e


def choose(
    tested: Sequence[Candidate], weights: Mapping[str, float], budget_usd: float, most: int | None = None
) -> tuple[CandidateOutcome, ...]:
    """Choose from the candidates, the cheapest first. Returns what became of each, in this order.

    Args:
        weights: kind -> its weight, at least 1.
        budget_usd: the dollars of which chosen candidates take what their tests cost.
        most: the most workers; None: no limit.
    """
    costs = [one.cost_usd for one in tested if one.cost_usd > 0 and one.passed]
    lowest, highest = (1 / max(costs), sum(weights.values()) / min(costs)) if costs else (1.0, 1.0)
    covered: set[str] = set()
    used_usd, chosen, choices = 0.0, 0, []
    for one in sorted(tested, key=lambda one: (one.cost_usd, one.worker)):
        new = sorted(one.passed - covered, key=lambda kind: (-weights[kind], kind))
        value = sum(weights[kind] for kind in new)
        named = ", ".join(kind or UNSORTED for kind in new)
        wanted = bar(min(1.0, used_usd / budget_usd), lowest, highest) * one.cost_usd
        if not new:
            reason = "passed nothing" if not one.passed else "cheaper workers cover what it passed"
        elif most is not None and chosen == most:
            reason = f"the pool has its {most}"
        elif value < wanted:
            reason = f"too dear for {named}: worth {value:.3g}, and {wanted:.3g} are needed"
        else:
            covered |= one.passed
            used_usd += one.cost_usd
            chosen += 1
            choices.append(CandidateOutcome(one.worker, True, f"covers {named}"))
            continue
        choices.append(CandidateOutcome(one.worker, False, reason))
    return tuple(choices)
