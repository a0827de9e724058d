"""Which steps may start. No worker is called."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from plan_texts import workflows
from podium.executor.schedule import Schedule
from podium.trace import Span
from podium.workflow import Workflow, needed_steps


def ended(position: int) -> Span:
    return Span(position=position, worker="w", subtask="s", status="done")


@given(workflow=workflows(), random=st.randoms(use_true_random=False))
def test_each_live_step_starts_once_all_that_it_reads_has_ended(workflow: Workflow, random: object) -> None:
    schedule = Schedule(workflow, needed_steps(workflow))
    running, order = schedule.get_ready(), list[int]()
    while running:
        position = running.pop(random.randrange(len(running)))  # type: ignore[attr-defined]
        assert all(read in schedule.spans for read in workflow.reads(position))
        schedule.spans[position] = ended(position)
        order.append(position)
        running += schedule.get_ready()
    assert sorted(order) == list(needed_steps(workflow))
