from __future__ import annotations

from hypothesis import given

from plan_texts import workflows
from podium.workflow import Acceptance, Access, Step, Workflow, render


def test_the_canonical_text() -> None:
    workflow = Workflow(
        (Step(2, "Find an algorithm."), Step(0, 'Write "it"\nin C:\\, für 日本.', Access(all=True)))
    )
    assert render(workflow) == (
        "model_id = [2, 0]\n"
        'subtasks = ["Find an algorithm.", "Write \\"it\\"\\nin C:\\\\, für 日本."]\n'
        'access_list = [[], ["all"]]'
    )


def test_the_canonical_access_lists() -> None:
    accesses = [
        Access(previous=True),
        Access(),
        Access(steps=(0, 1)),
        Access(steps=(0,), previous=True),
        Access(all=True),
    ]
    workflow = Workflow(tuple(Step(0, "Do it.", access) for access in accesses))
    assert render(workflow).splitlines()[2] == (
        'access_list = [["previous"], [], [0, 1], [0, "previous"], ["all"]]'
    )


def test_the_canonical_acceptance() -> None:
    assert render(Acceptance()) == "model_id = []\nsubtasks = []\naccess_list = []"


@given(workflows(later_round=True))
def test_a_plan_is_three_lines_whatever_its_subtasks_hold(workflow: Workflow) -> None:
    assert render(workflow).count("\n") == 2
