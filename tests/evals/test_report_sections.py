"""A report has a row of collapse figures for each planner whose plans a model writes."""

from __future__ import annotations

import pytest

from graded_evaluations import column, graded
from podium.evals import Evaluation
from podium.evals.report_sections import collapse_section


def test_collapse_section_compares_a_policy_with_its_start() -> None:
    right = column(*[True] * 40)
    several = {task: (n % 3, (n + 1) % 3) for n, task in enumerate(right)}
    section = collapse_section(
        {
            "ours": graded("made", right, plans=dict.fromkeys(right, (0,))),
            "ours: untrained": graded("made", right, plans=several),
        },
        start_of={"ours": "ours: untrained"},
    )
    assert section.count("<tr") == 3
    assert "ours: Plans have one step, where those of the start had 2.0." in section
    assert "ours: untrained: " not in section


def test_a_collapsed_policy_is_named_beside_a_model_without_training() -> None:
    asked = [f"q{number}" for number in range(40)]
    right = {task: [number % 4 == 0] for number, task in enumerate(asked)}
    several = {task: (n % 3, (n + 1) % 3) for n, task in enumerate(asked)}
    schema = graded("made", right, plans=several)
    ours = graded("made", right, plans=dict.fromkeys(asked, (0,)))
    section = collapse_section(
        {"ours": ours, "model under a schema": schema}, untrained=["model under a schema"]
    )
    assert "ours: Plans have one step, where those of model under a schema had 2.0." in section
    assert "model under a schema: " not in section


def test_answers_without_a_verdict_are_not_counted_as_wrong() -> None:
    answers = graded("made", column(True, True, False, None, None, None))
    assert collapse_section({"ours": answers}).count("66.7%") == 2


def test_the_share_of_readable_plans_is_the_same_below_the_table() -> None:
    first, second, third = graded("made", {"q0": [True, True], "q1": [True]}).rollouts
    unread = third.model_copy(update={"trace": third.trace.model_copy(update={"rounds": ()})})
    answers = Evaluation((first, second, unread))
    assert answers.validity == pytest.approx(2 / 3)
    assert "66.7%" in collapse_section({"ours": answers})


def test_without_plans_of_a_model_there_is_no_section() -> None:
    assert collapse_section({}) == ""
