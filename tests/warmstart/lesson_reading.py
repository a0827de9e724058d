"""What a lesson about a recording shows and says, read back from its text.

A prompt lists a rated worker by its figures alone. Tests give each worker an accuracy of its own, and
`by_percent` of these tells who is meant.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from podium.baselines.plans import VOTE
from podium.warmstart.examples import SFTExample
from podium.warmstart.recorded_examples import MOST_STEPS
from podium.workflow import Acceptance, PlanError, Workflow, parse

_NAMED = re.compile(r"^(?P<number>\d+): (?P<name>[\w-]+): ")
_RATED = re.compile(r"^- (?P<figures>(?P<percent>\d+%) [\d.]+x): (?P<number>\d+)$")
_NOBODY: Mapping[str, str] = MappingProxyType({})
"""Of a pool without ratings."""


def by_percent(accuracies: Mapping[str, float]) -> dict[str, str]:
    """Names of rated workers by the percent that prompts show of them.

    Args:
        accuracies: by name; all different, and in steps of five percent, as prompts show them.
    """
    named = {f"{accuracy:.0%}": name for name, accuracy in accuracies.items()}
    assert len(named) == len(accuracies)
    return named


def _listed(example: SFTExample) -> list[dict[str, str]]:
    """What the lines about workers say, in order."""
    lines = example.prompt.partition("\nModels:\n")[2].splitlines()
    found = [_NAMED.match(line) or _RATED.match(line) for line in lines]
    return [match.groupdict() for match in found[: found.index(None)] if match is not None]


def listed(example: SFTExample, rated: Mapping[str, str] = _NOBODY) -> list[tuple[int, str, str]]:
    """The lines about workers, in order: number, name, and figures where it is rated.

    Args:
        rated: as `by_percent` makes it.
    """
    return [
        (int(line["number"]), line.get("name") or rated[line["percent"]], line.get("figures", ""))
        for line in _listed(example)
    ]


def shown_team(example: SFTExample, rated: Mapping[str, str] = _NOBODY) -> list[str]:
    """Names of the workers in a lesson's prompt, by number."""
    numbered = sorted((number, name) for number, name, _ in listed(example, rated))
    assert [number for number, _ in numbered] == list(range(len(numbered)))
    return [name for _, name in numbered]


def written(example: SFTExample) -> str:
    """What follows on a lesson's prompt."""
    return "".join(text for text, _ in example.pieces)


def kind_in(written: str) -> str:
    """The kind that a thought names; empty where it names none."""
    return written.partition("; steps ")[0].rstrip("0123456789()")


def decision(example: SFTExample) -> Workflow | Acceptance | PlanError:
    """What a lesson's plan is to its own prompt."""
    assert all(learned for text, learned in example.pieces if text)
    later = "\nEarlier plan:\n" in example.prompt
    return parse(written(example), workers=len(_listed(example)), max_steps=MOST_STEPS, later_round=later)


def committee(example: SFTExample, rated: Mapping[str, str] = _NOBODY) -> tuple[str, ...]:
    """Who answers by a lesson's plan, in its order; nobody where it accepts."""
    found, team = decision(example), shown_team(example, rated)
    assert not isinstance(found, PlanError)
    steps = found.steps if isinstance(found, Workflow) else ()
    return tuple(team[step.worker] for step in steps if team[step.worker] != VOTE)
