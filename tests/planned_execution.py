"""Executions of workflows that are whole from the start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from podium.executor import Execution, QuestionContext
from podium.workers.view import EarlierStep
from podium.workflow import Workflow


async def planned(
    context: QuestionContext,
    workflow: Workflow,
    *,
    round: int = 0,
    previous: str | None = None,
    earlier_calls: Mapping[int, int] | None = None,
    max_tokens: Sequence[int | None] = (),
    shown: tuple[EarlierStep, ...] = (),
) -> Execution:
    """An execution that is ready to run. Its arguments are those of `Execution` and of its `complete`."""
    execution = Execution(context, round=round, previous=previous, earlier_calls=earlier_calls)
    await execution.complete(workflow, max_tokens, shown)
    return execution
