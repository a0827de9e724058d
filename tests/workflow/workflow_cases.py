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


def written(form: str, *names: str) -> str:
    """The text of `TWO`, each list in this form of its name and its value, with other names if they are given."""
    values = ("[2, 0]", '["Find it.", "Write it."]', '[[], ["all"]]')
    named = zip(names or ("model_id", "subtasks", "access_list"), values, strict=True)
    return "\n".join(form.format(name, value) for name, value in named)


class Accepted(NamedTuple):
    dress: str
    text: str
    expected: Workflow | Acceptance = TWO
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


CARET = "¦"


def refused(
    fault: str,
    marked: str,
    kind: str,
    message: str,
    *,
    shown: str | None = None,
    workers: int = 3,
    max_steps: int = 5,
    later_round: bool = False,
) -> Refused:
    """The case of a text that has `CARET` before the place that its error shows.

    Args:
        shown: the line of that place as the error shows it, with `CARET`, where it is not the text's own.
    """
    line = shown or next((line for line in marked.split("\n") if CARET in line), None)
    place = "" if line is None else f"\n    {line.replace(CARET, '')}\n    {' ' * line.index(CARET)}^"
    text = marked.replace(CARET, "")
    return Refused(fault, text, kind, message + place, workers, max_steps, later_round)
