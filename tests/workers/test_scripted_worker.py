"""A scripted worker chooses its reply by the subtask or by the question."""

from __future__ import annotations

import pytest

from podium.planners import Constant
from podium.team import Runner
from podium.types import Question
from podium.workers import Pool, ScriptedWorker
from podium.workflow import Step, Workflow


@pytest.mark.parametrize(
    ("question", "subtask", "reply"),
    [
        ("What is 6 x 7?", "Answer the whole question.", "42"),
        ("What is 2 + 2?", "Check the sum.", "Right."),
        ("What is 6 x 7?", "Check the product.", "42"),
    ],
)
async def test_scripted_reply_is_chosen_by_text_in_question_or_subtask(
    question: str, subtask: str, reply: str
) -> None:
    pool = Pool([ScriptedWorker("w", {"6 x 7": "42", "Check": "Right."})])
    plan = Constant(Workflow((Step(0, subtask),)), pool.names)
    assert (await Runner(plan, pool).answer(Question(text=question))).answer == reply
