"""Which steps may start, and what is forgotten of a workflow that turned out otherwise. No worker is called."""

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
    schedule = Schedule()
    schedule.set_workflow(workflow, needed_steps(workflow))
    running, order = schedule.get_ready(), list[int]()
    while running:
        position = running.pop(random.randrange(len(running)))  # type: ignore[attr-defined]
        assert all(read in schedule.spans for read in workflow.reads(position))
        schedule.spans[position] = ended(position)
        order.append(position)
        running += schedule.get_ready()
    assert sorted(order) == list(needed_steps(workflow))


@given(first=workflows(), second=workflows(), done=st.integers(0, 5))
def test_schedule_keeps_the_common_prefix_of_two_workflows(
    first: Workflow, second: Workflow, done: int
) -> None:
    schedule = Schedule()
    schedule.set_workflow(first, range(len(first.steps)))
    schedule.get_ready()
    for position in range(min(done, len(first.steps))):
        schedule.spans[position] = ended(position)
    same = schedule.common_prefix_length(second.steps)
    assert first.steps[:same] == second.steps[:same]
    assert first.steps[same : same + 1] != second.steps[same : same + 1] or same == min(
        len(first.steps), len(second.steps)
    )
    forgotten = schedule.forget_from(same)
    assert [span.position for span in forgotten] == list(range(same, min(done, len(first.steps))))
    assert set(schedule.spans) == set(range(min(done, same)))
