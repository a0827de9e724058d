from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import pytest
from hypothesis import given

from plan_texts import workflows
from podium.workflow import Access, Step, Workflow, edges, needed_steps, topology


def flow(*reads: tuple[int, ...] | str) -> Workflow:
    """A workflow by what each step reads: positions, or "all"."""
    return Workflow(
        tuple(Step(0, "Do it.", Access(all=True) if r == "all" else Access(steps=tuple(r))) for r in reads)
    )


class Graph(NamedTuple):
    """A workflow and the facts of it."""

    workflow: Workflow
    topology: str
    needed: tuple[int, ...]


GRAPHS = [
    Graph(flow(()), "single", (0,)),
    Graph(flow("all"), "single", (0,)),
    Graph(flow((), ()), "single", (1,)),
    Graph(flow((), (0,)), "chain", (0, 1)),
    Graph(flow((), "all", "all", "all", "all"), "chain", (0, 1, 2, 3, 4)),
    Graph(flow((), (0,), (0, 1)), "chain", (0, 1, 2)),
    Graph(flow((), (), (0,)), "chain", (0, 2)),
    Graph(flow((), (), (0, 1)), "parallel+join", (0, 1, 2)),
    Graph(flow((), (), (), "all"), "parallel+join", (0, 1, 2, 3)),
    Graph(flow((), (), (0,), (0, 1)), "parallel+join", (0, 1, 3)),
    Graph(flow((), (), (0, 1), (2,)), "tree", (0, 1, 2, 3)),
    Graph(flow((), (), (0,), "all"), "tree", (0, 1, 2, 3)),
    Graph(flow((), (0,), (), (2,), (1, 3)), "tree", (0, 1, 2, 3, 4)),
    Graph(flow((), (0,), (0,), (1, 2)), "other", (0, 1, 2, 3)),
    Graph(flow((), (), (0, 1), (0, 1), "all"), "other", (0, 1, 2, 3, 4)),
]


@pytest.mark.parametrize("graph", GRAPHS)
def test_needed_steps_and_topology_of_known_graphs(graph: Graph) -> None:
    flow = graph.workflow
    assert (flow, topology(flow), needed_steps(flow)) == graph


def test_a_workflow_without_steps_has_nothing_to_run() -> None:
    empty = Workflow(())
    assert (needed_steps(empty), topology(empty)) == ((), "single")


def depth(workflow: Workflow, position: int) -> int:
    """The steps of the longest chain that ends at `position`."""
    return 1 + max((depth(workflow, read) for read in workflow.reads(position)), default=0)


def needs(workflow: Workflow, position: int) -> set[int]:
    return set().union(*({read} | needs(workflow, read) for read in workflow.reads(position)))


@given(workflows(max_steps=7))
def test_needed_steps_and_topology_equal_their_definitions(workflow: Workflow) -> None:
    needed = needed_steps(workflow)
    last = len(workflow.steps) - 1
    assert needed == tuple(sorted(needs(workflow, last) | {last}))
    before = {position: needs(workflow, position) for position in needed}
    at_once = [pair for pair in combinations(needed, 2) if pair[0] not in before[pair[1]]]
    deep = depth(workflow, last)
    match topology(workflow):
        case "single":
            assert (len(needed), deep) == (1, 1)
        case "chain":
            assert (deep, at_once) == (len(needed), [])
            assert len(needed) > 1
        case "parallel+join":
            assert (deep, at_once) == (2, [*combinations(needed[:-1], 2)])
        case "tree":
            assert deep > 2
            assert at_once
        case "other":
            assert len(needed) >= 4


def test_edges_name_the_steps_that_each_step_reads() -> None:
    assert edges(flow((), (0,), "all")) == "-;0;0,1"
