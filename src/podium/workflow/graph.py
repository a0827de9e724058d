"""Facts about the graph of a workflow: which steps wait for which. The executor decides what runs when.

Only needed steps count (except in `edges`): those that the last step needs, directly or through others. The executor
runs no other step, unless `run_all` is set.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

from podium.workflow.model import Workflow

Topology = Literal["single", "chain", "parallel+join", "tree", "other"]


def needed_steps(workflow: Workflow) -> tuple[int, ...]:
    """The positions of the last step and of the steps that it needs, in ascending order."""
    if not workflow.steps:
        return ()
    last = len(workflow.steps) - 1
    return tuple(sorted({last, *_needs(workflow)[last]}))


def topology(workflow: Workflow) -> Topology:
    """The name of the graph's shape, after edges that longer paths imply are removed. "single": one step. "chain": no
    two steps can run at once. "parallel+join": all steps but the last are independent, and the last joins them. "tree":
    exactly one later step reads each response. "other": several steps that can run at once read the same response."""
    steps = needed_steps(workflow)
    if len(steps) <= 1:
        return "single"
    needs = _needs(workflow)
    if all(earlier in needs[later] for earlier, later in pairwise(steps)):
        return "chain"
    if not any(needs[position] for position in steps[:-1]):
        return "parallel+join"
    direct = {
        position: needs[position].difference(*(needs[read] for read in needs[position])) for position in steps
    }
    readers = [sum(position in reads for reads in direct.values()) for position in steps[:-1]]
    return "tree" if set(readers) == {1} else "other"


def edges(workflow: Workflow) -> str:
    """The earlier steps that each step reads, as text: "-;0;0,1" is a chain whose last step sees both."""
    return ";".join(
        ",".join(map(str, workflow.reads(position))) or "-" for position in range(len(workflow.steps))
    )


def _needs(workflow: Workflow) -> list[set[int]]:
    needs: list[set[int]] = []
    for position in range(len(workflow.steps)):
        reads = workflow.reads(position)
        needs.append(set(reads).union(*(needs[read] for read in reads)))
    return needs
