"""Measures how much a policy's plans differ: one that always writes the same plan stops learning. Pure arithmetic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from math import log
from typing import Any

SIGNS = {"commonest_plan": 0.95, "zero_variance_groups": 0.95, "unreadable": 0.5}
"""A figure above its limit means that the policy collapses or writes no readable plans; see `alarms`."""


def entropy(values: Iterable[Hashable]) -> float:
    """Of the values' shares, in nats; 0 if all are equal, or there are none."""
    counts = Counter(values)
    total = counts.total()
    return -sum(count / total * log(count / total) for count in counts.values()) if total else 0.0


def variety(plans: Sequence[tuple[tuple[str, ...], str]]) -> dict[str, float]:
    """Figures of collapse over plans, each given as the workers of its steps and its topology.

    "worker_entropy" is over all steps, "topology_entropy" over plans, both in nats. "commonest_plan" is the
    share of the commonest pair of workers and topology; subtasks do not count.
    """
    commonest = Counter(plans).most_common(1)
    return {
        "worker_entropy": entropy(worker for workers, _ in plans for worker in workers),
        "topology_entropy": entropy(topology for _, topology in plans),
        "commonest_plan": commonest[0][1] / len(plans) if commonest else 0.0,
    }


def alarms(row: dict[str, Any]) -> list[str]:
    """A sentence for each figure of a row that shows collapse."""
    said = {
        "commonest_plan": "of the readable plans name the same workers in the same topology",
        "zero_variance_groups": "of the groups have equal rewards, and teach nothing",
        "unreadable": "of the plans cannot be read",
    }
    return [f"{row[key]:.0%} {said[key]}." for key, limit in SIGNS.items() if row.get(key, 0.0) > limit]
