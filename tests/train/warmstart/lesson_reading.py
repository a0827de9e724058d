"""What a lesson about a recording shows and says, read back from its text."""

from __future__ import annotations

import re

from podium.baselines.plans import VOTE
from podium.train.warmstart.lessons import Lesson
from podium.train.warmstart.recorded_lessons import MOST_STEPS
from podium.workflow import Acceptance, PlanError, Workflow, parse

_NUMBERED = re.compile(r"^(?P<number>\d+): (?P<name>[\w-]+): ")
_RATED = re.compile(r"^(?P<name>[\w-]+): (?P<figures>\d+% [\d.]+x): (?P<number>\d+)$")


def listed(lesson: Lesson) -> list[tuple[int, str, str]]:
    """The lines about workers, in order: number, name, and figures where it is rated."""
    lines = lesson.prompt.partition("\nModels:\n")[2].splitlines()
    found = [_NUMBERED.match(line) or _RATED.match(line) for line in lines]
    workers = [match.groupdict() for match in found[: found.index(None)] if match is not None]
    return [(int(worker["number"]), worker["name"], worker.get("figures", "")) for worker in workers]


def shown_team(lesson: Lesson) -> list[str]:
    """Names of the workers in a lesson's prompt, by number."""
    numbered = sorted((number, name) for number, name, _ in listed(lesson))
    assert [number for number, _ in numbered] == list(range(len(numbered)))
    return [name for _, name in numbered]


def written(lesson: Lesson) -> str:
    """What follows on a lesson's prompt."""
    return "".join(text for text, _ in lesson.pieces)


def decision(lesson: Lesson) -> Workflow | Acceptance | PlanError:
    """What a lesson's plan is to its own prompt."""
    assert all(learned for text, learned in lesson.pieces if text)
    later = "\nEarlier plan:\n" in lesson.prompt
    return parse(written(lesson), workers=len(shown_team(lesson)), max_steps=MOST_STEPS, later_round=later)


def committee(lesson: Lesson) -> tuple[str, ...]:
    """Who answers by a lesson's plan, in its order; nobody where it accepts."""
    found, team = decision(lesson), shown_team(lesson)
    assert not isinstance(found, PlanError)
    steps = found.steps if isinstance(found, Workflow) else ()
    return tuple(team[step.worker] for step in steps if team[step.worker] != VOTE)
