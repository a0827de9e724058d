"""Questions of stored traffic: what users said decides, and what nobody knows is not guessed."""

from __future__ import annotations

from typing import Any

import pytest

from podium.calls import CallState
from podium.errors import NoTasksError
from podium.evals.study.judges import PoolJudge
from podium.evals.study.questions import load_study_questions, questions_of_traces
from podium.planners import Single
from podium.recordings import RecordedResponse
from podium.team import Runner
from podium.trace import Outcome, Trace
from podium.types import Message, Question
from podium.workers import Pool, ScriptedWorker
from podium.workers.replay import ReplayWorker
from podium.workers.spec import ReplaySpec


async def asked(text: str, right: bool | None = None, **more: object) -> Trace:
    pool = Pool([ScriptedWorker("team", {"": "So it is.\nAnswer: Seven"})])
    question = Question.model_validate({"text": text, **more})
    trace = await Runner(Single("team"), pool).answer(question)
    outcome = None if right is None else Outcome(right=right, at="2026-03-02T00:00:00Z")
    return trace.model_copy(update={"outcome": outcome})


async def test_answers_are_graded_by_user_feedback_or_left_ungraded() -> None:
    traces = [await asked("liked", True), await asked("disliked", False), await asked("unjudged")]
    found = questions_of_traces(traces, share=1.0)
    assert found.judged_by == "outcomes"
    judge = PoolJudge(Pool([ScriptedWorker("judy", {})]), "judy", CallState())
    assert found.with_judge(judge).judged_by == "outcomes and judge"
    assert "Users judged the answers to 2 of 3 questions" in found.notes[-1]
    tasks = {task.question.text: task for task in found.tasks}
    said = {
        (text, answer): await task.grade(f"Answer: {answer}")
        for text, task in tasks.items()
        for answer in ("seven", "eight")
    }
    verdicts = {key: None if grade.failure else grade.score for key, grade in said.items()}
    assert verdicts == {
        ("liked", "seven"): 1.0,
        ("liked", "eight"): 0.0,
        ("disliked", "seven"): 0.0,
        ("disliked", "eight"): None,
        ("unjudged", "seven"): None,
        ("unjudged", "eight"): None,
    }


async def test_every_answer_that_a_user_called_right_is_right() -> None:
    first, second = await asked("liked", True), await asked("liked", True)
    traces = [first.model_copy(update={"answer": "Answer: 7"}), second]
    (task,) = questions_of_traces(traces, share=1.0).tasks
    scores = [(await task.grade(f"Answer: {answer}")).score for answer in ("7", "seven", "eight")]
    assert scores == [1.0, 1.0, 0.0]


async def test_a_share_of_traffic_grows_and_each_question_counts_once() -> None:
    history = (Message(role="user", content="Before."),)
    traces = [await asked(f"question {n % 40}") for n in range(60)] + [await asked("later", history=history)]
    shares = [questions_of_traces(traces, share=share) for share in (0.3, 0.6, 1.0)]
    ids = [{task.id for task in found.tasks} for found in shares]
    assert ids[0] < ids[1] < ids[2]
    assert len(ids[2]) == 40
    assert "(1)" in shares[0].notes[0]
    with pytest.raises(NoTasksError, match="--share"):
        questions_of_traces(traces[:1], share=1e-9)


def test_a_recording_is_studied_without_a_split_that_some_worker_lacks(make_recording: Any) -> None:
    both = [RecordedResponse(name, 0, "Answer: 4", score=1.0) for name in ("ada", "bob")]
    splits = {"Seen?": "train", "Half?": "validation", "New?": "test"}
    recording = make_recording({"Seen?": both, "Half?": both[:1], "New?": both}, splits=splits)
    pool = Pool(
        [ReplayWorker(ReplaySpec(name=name, recording=recording.path), recording) for name in ("ada", "bob")]
    )
    found = load_study_questions(str(recording.path), pool=pool)
    assert {task.question.text for task in found.tasks} == {"Seen?", "New?"}
