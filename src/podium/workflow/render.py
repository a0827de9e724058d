"""The canonical text of a plan: what a policy learns to write and what people are shown (design §4.7)."""

from __future__ import annotations

import json

from podium.workflow.model import Acceptance, Access, Workflow


def render(plan: Workflow | Acceptance) -> str:
    """The three lists, a line each, as JSON writes them.

    For every workflow that `check` lets pass, `parse` reads the same workflow back.
    """
    steps = plan.steps if isinstance(plan, Workflow) else ()
    return (
        f"model_id = {_written([step.worker for step in steps])}\n"
        f"subtasks = {_written([step.subtask for step in steps])}\n"
        f"access_list = {_written([_entries(step.access) for step in steps])}"
    )


def _entries(access: Access) -> list[int | str]:
    if access.all:
        return ["all"]
    return [*access.steps, *(["previous"] if access.previous else [])]


def _written(entries: object) -> str:
    return json.dumps(entries, ensure_ascii=False)
