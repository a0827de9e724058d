"""Facts about the graph of a workflow: which steps wait for which. The executor decides what runs when.

Only needed steps count (except in `edges`): those that the last step needs, directly or through others. The executor
runs no other step, unless `run_all` is set.
"""

from __future__ import annotations

from typing import Literal

from podium.workflow.model import Workflow

Topology = Literal["single", "chain", "parallel+join", "tree", "other"]


def needed_steps(workflow: Workflow) -> tuple[int, ...]:
    """The positions of the last step and of the steps that it needs, in ascending order."""
    if not workflow.steps:
        return ()
    last = len(workflow.steps) - 1
    return tuple(sorted({last, *_needs(workflow)[last]}))


def width(workflow: Workflow) -> int:
    """The largest number of steps that can run at once, since none of them waits for another."""
    needs, steps = _needs(workflow), needed_steps(workflow)
    # By Dilworth's theorem the width is the least number of chains that cover the graph: the number of steps, minus the
    # size of a maximum matching of (earlier, later) pairs, each of which joins two chains.
    followed_by: dict[int, int] = {}

    def match(later: int, tried: set[int]) -> bool:
        for earlier in needs[later] - tried:
            tried.add(earlier)
            if earlier not in followed_by or match(followed_by[earlier], tried):
                followed_by[earlier] = later
                return True
        return False

    return len(steps) - sum(match(later, set()) for later in steps)


def topology(workflow: Workflow) -> Topology:
    """The name of the graph's shape, after edges that longer paths imply are removed. "single": one step. "chain": no
    two steps can run at once. "parallel+join": all steps but the last are independent, and the last joins them. "tree":
    exactly one later step reads each response. "other": several steps that can run at once read the same response."""
    steps = needed_steps(workflow)
    if len(steps) <= 1:
        return "single"
    if width(workflow) == 1:
        return "chain"
    needs = _needs(workflow)
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
    """The earlier steps that must end before each step can start."""
    needs: list[set[int]] = []
    for position in range(len(workflow.steps)):
        reads = workflow.reads(position)
        needs.append(set(reads).union(*(needs[read] for read in reads)))
    return needs
