"""Questions of a recording as tasks: graded by the verdicts that the recording holds."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from statistics import fmean

import pyarrow as pa
import pytest
from pyarrow import parquet

from podium.errors import ConfigError
from podium.planners import SelfConsistency, Single
from podium.recordings import RecordedResponse, Recording
from podium.recordings.recording_model import RecordedWorker, RecordingHeader
from podium.recordings.writer import to_batch
from podium.rollout import run_rollout
from podium.rollout.data_fingerprint import grader_settings
from podium.tasks import Grade, open_tasks
from podium.tasks.recorded import UNJUDGED, RecordedGrader, RecordedTasks
from podium.team import Runner
from podium.workers import Pool, ScriptedWorker, VoteWorker
from podium.workers.replay import ReplayWorker
from podium.workers.spec import ReplaySpec
from podium.workers.tool import no_result
from podium.workers.vote import NOTHING

MakeRecording = Callable[..., Recording]


def replay(recording: Recording, name: str) -> ReplayWorker:
    return ReplayWorker(ReplaySpec(name=name, recording=recording.path), recording)


def many(make_recording: MakeRecording, **options: object) -> Recording:
    """24 questions: ada is right at every second, bob answered two of three; verdicts are not those of the gold."""
    given = {}
    for number in range(24):
        score = 1.0 if number % 2 else 0.25
        responses = [
            RecordedResponse(
                "ada", 0, f"I think {number}, or so.", None if number % 5 else f"n{number}", score
            )
        ]
        if number % 3:
            responses.append(RecordedResponse("bob", 0, "", "7", float(number % 4 == 0)))
        given[f"Question {number}?"] = responses
    return make_recording(given, **options)


async def accuracy(recording: Recording, name: str) -> tuple[float, float]:
    """The share of right answers and the mean score of one replayed worker."""
    pool = Pool([replay(recording, name)])
    tasks = RecordedTasks(recording, "test", pool=pool)
    rollouts = [await run_rollout(Runner(Single(name), pool), task, seed="0") for task in tasks]
    return fmean(rollout.correct for rollout in rollouts), fmean(rollout.grade.score for rollout in rollouts)


@pytest.mark.parametrize("name", ["ada", "bob"])
async def test_a_single_worker_is_as_often_right_as_in_the_recording(
    make_recording: MakeRecording, name: str
) -> None:
    recording = many(make_recording)
    given = [r for q in recording.questions for r in recording.responses(q.text).get(name, ())]
    right, score = await accuracy(recording, name)
    (worker,) = (worker for worker in recording.header.workers if worker.name == name)
    assert right == pytest.approx(worker.accuracy)
    assert score == pytest.approx(fmean(r.score or 0.0 for r in given))


def test_graders_of_another_recording_are_told_apart(make_recording: MakeRecording) -> None:
    first = RecordedTasks(many(make_recording), "test")[0].grader
    again = RecordedTasks(many(make_recording), "test")[1].grader
    other = make_recording({"Q?": [RecordedResponse("ada", 0, "Answer: 4", "4", 0.5)]})
    assert grader_settings(first) == grader_settings(again)
    assert grader_settings(first) != grader_settings(RecordedTasks(other, "test")[0].grader)


async def test_the_votes_answer_has_the_verdict_of_responses_with_that_answer(
    make_recording: MakeRecording,
) -> None:
    samples = [
        RecordedResponse("ada", 0, "Answer: 1/2", "1/2", 1.0),
        RecordedResponse("ada", 1, "So it is 0.5, or", "1/2", 1.0),
        RecordedResponse("ada", 2, "Answer: 3", "3", 0.0),
        RecordedResponse("ada", 3, "Answer: 1/2.", "1/2.", 0.0),
    ]
    recording = make_recording({"A half?": samples}, golds={"A half?": "0.5"})
    pool = Pool([replay(recording, "ada"), VoteWorker()])
    (task,) = RecordedTasks(recording, "test")
    rollout = await run_rollout(Runner(SelfConsistency("ada", 3), pool), task, seed="0")
    assert rollout.trace.answer == "2 of 3 responses agree.\nAnswer: 1/2"
    assert (rollout.grade.score, rollout.grade.found) == (1.0, "1/2")


@pytest.mark.parametrize(
    ("response", "score"),
    [
        ("Answer: 5", 0.5),
        ("answer: 5 .", 0.5),
        ("Answer: 6", 0.0),
        ("I say 6\nAnswer: 6", 0.75),
        ("Answer: seven", 1.0),
        ("Answer: seven and more", 0.0),
        ("Answer: 8", 0.0),
        ("", 0.0),
        (" \n", 0.0),
    ],
)
async def test_recorded_grader_matches_response_then_answer_then_gold_answer(
    make_recording: MakeRecording, response: str, score: float
) -> None:
    recording = make_recording(
        {
            "Q?": [
                RecordedResponse("ada", 0, "Answer: 5", "5", 0.5),
                RecordedResponse("ada", 1, "Answer: 6.", "6", 0.0),
                RecordedResponse("bob", 0, "I say 6\nAnswer: 6", "6", 0.75),
                RecordedResponse("bob", 1, "Answer: 8", "8", None),
            ],
        },
        golds={"Q?": "Seven"},
    )
    assert (await RecordedGrader(recording, "Q?")(response, "Seven")).score == score


async def test_without_a_gold_answer_an_unseen_one_is_not_graded(
    make_recording: MakeRecording,
) -> None:
    recording = make_recording({"Q?": [RecordedResponse("ada", 0, "Answer: 5", "5", 1.0)]})
    (task,) = RecordedTasks(recording, "test")
    assert task.gold == ""
    assert await task.grade("Answer: 5") == Grade(1.0, "5")
    assert await task.grade("Answer: 6") == Grade(0.0, "6", failure=UNJUDGED)
    for said in ("", NOTHING, no_result("there is no program")):
        assert await task.grade(said) == Grade(0.0)


def test_a_task_is_the_question_as_recorded_and_stays_so(make_recording: MakeRecording) -> None:
    recording = many(make_recording, golds={"Question 3?": "n3"})
    tasks = RecordedTasks(recording, "test")
    assert (tasks.name, len(tasks), len(list(tasks))) == ("small/test", 24, 24)
    assert {task.id for task in tasks} == {f"small/q{number}" for number in range(24)}
    (third,) = (task for task in tasks if task.id == "small/q3")
    assert (third.question.text, third.gold, dict(third.facts)) == ("Question 3?", "n3", {"family": "sums"})


def test_the_seed_shuffles_and_the_first_few_are_the_same_for_ever(make_recording: MakeRecording) -> None:
    recording = many(make_recording)
    order = [task.id for task in RecordedTasks(recording, "test", seed=1)]
    assert [task.id for task in RecordedTasks(recording, "test", seed=1, size=5)] == order[:5]
    assert [task.id for task in RecordedTasks(recording, "test", seed=2)] != order
    assert order != sorted(order)
    assert RecordedTasks(recording, "test", seed=1)[3].id == order[3]


def test_questions_that_one_recorded_worker_never_answered_are_left_out(
    make_recording: MakeRecording,
) -> None:
    recording = many(make_recording)
    ada, bob = replay(recording, "ada"), replay(recording, "bob")
    live = ScriptedWorker("live", [])
    assert len(RecordedTasks(recording, "test", pool=Pool([ada, live, VoteWorker()]))) == 24
    both = RecordedTasks(recording, "test", pool=Pool([bob, ada]))
    assert {task.id for task in both} == {f"small/q{number}" for number in range(24) if number % 3}
    assert len(RecordedTasks(recording, "test", pool=[bob], size=5)) == 5


def test_questions_that_were_left_out_are_counted_by_reason_and_worker(make_recording: MakeRecording) -> None:
    recording = many(make_recording)
    ada, bob = replay(recording, "ada"), replay(recording, "bob")
    assert RecordedTasks(recording, "test", pool=[ada]).warnings == ()
    assert RecordedTasks(recording, "test", pool=[ada, bob], size=5).warnings == (
        "8 of 24 questions are left out, since a worker of the pool never answered them (bob: 8)",
    )


def test_note_names_the_workers_that_lack_the_most_answers(make_recording: MakeRecording) -> None:
    given = {
        f"Question {number}?": [
            RecordedResponse(f"w{worker}", 0, "Answer: 1", "1", 1.0)
            for worker in range(6)
            if number >= worker
        ]
        for number in range(8)
    }
    recording = make_recording(given)
    pool = [replay(recording, name) for name in recording.workers]
    (note,) = RecordedTasks(recording, "test", pool=pool).warnings
    assert note.startswith("5 of 8 questions are left out")
    assert note.endswith("(w5: 5, w4: 4, w3: 3, and 2 more)")


def unjudged(make_recording: MakeRecording, **options: object) -> Recording:
    """6 questions without a verdict on the last two of bob's responses, to the last of which ada said the same."""
    given = {
        f"Question {number}?": [
            RecordedResponse("ada", 0, f"Answer: {number}", score=1.0),
            RecordedResponse("bob", 0, "Answer: 5", score=0.0 if number < 4 else None),
        ]
        for number in range(6)
    }
    return make_recording(given, **options)


def test_questions_with_ungraded_responses_are_left_out_and_counted(
    make_recording: MakeRecording,
) -> None:
    recording = unjudged(make_recording)
    ada, bob = replay(recording, "ada"), replay(recording, "bob")
    tasks = RecordedTasks(recording, "test", pool=[ada, bob])
    assert {task.id for task in tasks} == {f"small/q{number}" for number in (0, 1, 2, 3, 5)}
    assert tasks.warnings == (
        "1 of 6 questions are left out, since they have no gold answer, and a response without a verdict (bob: 1)",
    )
    assert len(RecordedTasks(recording, "test", pool=[ada])) == 6


def test_gold_answer_grades_responses_without_a_recorded_verdict(make_recording: MakeRecording) -> None:
    recording = unjudged(make_recording, golds={"Question 4?": "4"})
    tasks = RecordedTasks(recording, "test", pool=[replay(recording, "bob")])
    assert (len(tasks), tasks.warnings) == (6, ())


def test_a_recording_of_which_nothing_can_be_graded_is_refused(make_recording: MakeRecording) -> None:
    recording = make_recording({"One?": [RecordedResponse("ada", 0, "Answer: 1")]})
    with pytest.raises(
        ConfigError, match=r"\(ada: 1\)\); take workers of one recording, and import verdicts"
    ):
        RecordedTasks(recording, "test", pool=[replay(recording, "ada")])


def test_of_questions_that_differ_only_in_outer_space_the_first_is_used(tmp_path: Path) -> None:
    path = tmp_path / "twice.parquet"
    rows = [
        (
            f"q{number}",
            text,
            "1",
            None,
            "test",
            "ada",
            0,
            "Answer: 1",
            "1",
            1.0,
            *[None] * 2,
            False,
            *[None] * 3,
        )
        for number, text in enumerate(("One?", "Two?", " One?\n"))
    ]
    parquet.write_table(pa.Table.from_batches([to_batch(rows)]), path)
    header = RecordingHeader(
        name="twice",
        workers=(RecordedWorker(name="ada"),),
        questions=3,
        responses=3,
        sha256=sha256(path.read_bytes()).hexdigest(),
    )
    path.with_suffix(".json").write_text(header.model_dump_json())
    tasks = RecordedTasks(Recording.open(path), "test")
    assert {task.question.text for task in tasks} == {"One?", "Two?"}
    assert tasks.warnings == ("1 of 3 questions are left out, since another one has the same text",)


def test_workers_that_answered_no_question_in_common_are_refused(make_recording: MakeRecording) -> None:
    recording = make_recording(
        {"One?": [RecordedResponse("ada", 0, "1")], "Two?": [RecordedResponse("bob", 0, "2")]}
    )
    with pytest.raises(
        ConfigError, match=r"no question of the split 'test' that every recorded worker of the pool"
    ):
        RecordedTasks(recording, "test", pool=[replay(recording, "ada"), replay(recording, "bob")])


def test_a_recordings_file_is_a_task_set(make_recording: MakeRecording) -> None:
    recording = many(make_recording, splits={"Question 0?": "train", "Question 1?": "train"})
    path = str(recording.path)
    assert len(open_tasks(path, "test")) == 22
    assert len(open_tasks(path, "test", size=3)) == 3
    assert {task.id for task in open_tasks(path, "train", size=5)} == {"small/q0", "small/q1"}
    assert [task.id for task in open_tasks(path, "train", pool=[replay(recording, "bob")])] == ["small/q1"]


@pytest.mark.parametrize(
    ("split", "sentence"),
    [
        ("tests", r"There is no split 'tests'; did you mean 'test'\?"),
        ("held out", r"There is no split 'held out'; known: test\."),
    ],
)
def test_unknown_recorded_split_is_refused_with_the_known_splits(
    make_recording: MakeRecording, split: str, sentence: str
) -> None:
    path = str(many(make_recording).path)
    with pytest.raises(ConfigError, match=sentence):
        open_tasks(path, split)
    with pytest.raises(ConfigError, match="open at least 1"):
        open_tasks(path, "test", size=0)
