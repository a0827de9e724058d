"""The steps of a structured plan that are complete while the rest is being written."""

from __future__ import annotations

import itertools
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plan_texts import WORKERS, workflows
from podium.workflow import PlanRules, StepReader, Workflow, parse, render

NAMES = [f"worker-{number}" for number in range(WORKERS)]


def steps_told(pieces: list[str], *, named: bool) -> list[Workflow]:
    """What a reader makes of the pieces, each time that it finds a further step."""
    reader, told = StepReader(), []
    for piece in pieces:
        written = reader.feed(piece)
        if written is not None:
            names = NAMES if named else ()
            plan = parse(written, PlanRules(workers=len(NAMES), max_steps=5, names=names), form="structured")
            assert isinstance(plan, Workflow)
            told.append(plan)
    return told


@given(workflow=workflows(), named=st.booleans(), random=st.randoms(use_true_random=False))
def test_all_steps_but_the_last_are_told_once_the_next_one_opens(
    workflow: Workflow, named: bool, random: Random
) -> None:
    text = render(workflow, "structured", names=NAMES if named else (), thought='A "[{" of steps.')
    cuts = sorted({0, len(text), *(random.randrange(len(text)) for _ in range(random.randrange(30)))})
    pieces = [text[start:end] for start, end in itertools.pairwise(cuts)]
    told = steps_told(pieces, named=named)
    assert all(plan.steps == workflow.steps[: len(plan.steps)] for plan in told)
    lengths = [len(plan.steps) for plan in told]
    assert lengths == sorted(set(lengths))
    assert max(lengths, default=0) == len(workflow.steps) - 1


@pytest.mark.parametrize(
    "text",
    [
        "model_id = [0, 1]\nsubtasks = ['a', 'b']\naccess_list = [[], []]",
        '{"thought": "none", "accept": true}',
        '{"steps": [{"worker": 0, "subtask": "{ , {", "sees": []}]}',
        "]]}}",
    ],
)
def test_step_reader_reports_nothing_without_a_second_step(text: str) -> None:
    reader = StepReader()
    assert [reader.feed(character) for character in text] == [None] * len(text)
