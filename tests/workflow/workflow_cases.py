"""What a case of the two tables is, and the texts and plans that many of them share."""

from __future__ import annotations

from typing import NamedTuple

from podium.workflow import Acceptance, Access, Step, Workflow

ALL = Access(all=True)
PREVIOUS = Access(previous=True)


def plan(*steps: tuple[int, str] | tuple[int, str, Access]) -> Workflow:
    return Workflow(tuple(Step(*step) for step in steps))


TWO = plan((2, "Find it."), (0, "Write it.", ALL))
ONE = plan((1, "Answer."))


def lists(
    *,
    model_id: str = "[2, 0]",
    subtasks: str = '["Find it.", "Write it."]',
    access_list: str = '[[], ["all"]]',
) -> str:
    """The text of `TWO`, with other lists where they are given."""
    return f"model_id = {model_id}\nsubtasks = {subtasks}\naccess_list = {access_list}"


class Accepted(NamedTuple):
    dress: str
    text: str
    expected: Workflow | Acceptance
    later_round: bool = False


class Refused(NamedTuple):
    fault: str
    text: str
    kind: str
    error: str
    """The whole text of the error."""
    workers: int = 3
    max_steps: int = 5
    later_round: bool = False
