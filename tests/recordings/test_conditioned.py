"""Conditioned responses, given to other answers: what their worker saw finds them, and nothing else does."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from podium.errors import WorkerError
from podium.executor.step_input import build_messages
from podium.recordings import RecordedQuestion, RecordedResponse, Recording, RecordingWriter, ShownContext
from podium.recordings.recording_model import COLUMNS
from podium.types import ANSWER_WHOLE_QUESTION, Message
from podium.workers.base import Request
from podium.workers.replay import ReplayWorker
from podium.workers.spec import ReplaySpec
from podium.workers.view import EarlierStep, WorkerView

FOUR = "What is 2 + 2?"
CRITIC = ShownContext("Find a fault.", ((ANSWER_WHOLE_QUESTION, "Answer: 5"),))
MENDED = ShownContext("Mend it.", ((ANSWER_WHOLE_QUESTION, "Answer: 5"), ("Find a fault.", "It is 4.")))


def made(folder: Path, *, conditioned: bool = True) -> Recording:
    with RecordingWriter() as writer:
        writer.add_question(RecordedQuestion("q0", FOUR, "4", None, "test"))
        writer.add("q0", RecordedResponse("ada", 0, "Answer: 5", "5", 0.0))
        if conditioned:
            for sample, text in enumerate(("It is 4.", "You added wrongly.")):
                assert writer.add("q0", RecordedResponse("judge", 7 + sample, text), seen=CRITIC)
            assert not writer.add("q0", RecordedResponse("judge", 7, "Again."), seen=CRITIC)
            writer.add("q0", RecordedResponse("ada", 0, "Answer: 4", "4", 1.0, input_tokens=60), seen=MENDED)
        writer.write(folder / "r.parquet", name="r")
    return Recording.open(folder / "r.parquet")


def replay(recording: Recording, worker: str) -> ReplayWorker:
    return ReplayWorker(ReplaySpec(name=worker, recording=recording.path), recording)


def request(subtask: str, *shown: tuple[str, str], duplicate: int = 0) -> Request:
    earlier = tuple(EarlierStep(3 * n, *step) for n, step in enumerate(shown))
    messages = build_messages(WorkerView(FOUR, subtask, earlier), "packed", f"{duplicate:016x}")
    return Request(messages, seed="0", earlier_calls=5, duplicate_index=duplicate)


async def test_replay_finds_a_response_by_the_work_shown_to_the_step(tmp_path: Path) -> None:
    recording = made(tmp_path)
    critics = [
        await replay(recording, "judge").answer(
            request("Find a fault.", (ANSWER_WHOLE_QUESTION, " Answer: 5\n"), duplicate=number)
        )
        for number in range(3)
    ]
    assert [reply.text for reply in critics] == ["It is 4.", "You added wrongly.", "It is 4."]
    assert critics[1].recorded == f"r#q0/judge/1@{CRITIC.key}"
    mended = await replay(recording, "ada").answer(
        request("Mend it.", (ANSWER_WHOLE_QUESTION, "Answer: 5"), ("Find a fault.", "It is 4."))
    )
    assert (mended.text, mended.usage.input_tokens) == ("Answer: 4", 60)
    bare = await replay(recording, "ada").answer(request(ANSWER_WHOLE_QUESTION))
    assert (bare.text, bare.recorded) == ("Answer: 5", "r#q0/ada/0")


@pytest.mark.parametrize(
    ("worker", "subtask", "shown"),
    [
        ("judge", "Find the fault.", [(ANSWER_WHOLE_QUESTION, "Answer: 5")]),
        ("judge", "Find a fault.", [(ANSWER_WHOLE_QUESTION, "Answer: 6")]),
        ("judge", "Find a fault.", [("Do part 1 only.", "Answer: 5")]),
        (
            "judge",
            "Find a fault.",
            [(ANSWER_WHOLE_QUESTION, "Answer: 5"), (ANSWER_WHOLE_QUESTION, "Answer: 5")],
        ),
        ("judge", "Find a fault.", []),
        ("judge", ANSWER_WHOLE_QUESTION, []),
        ("ada", "Find a fault.", [(ANSWER_WHOLE_QUESTION, "Answer: 5")]),
        ("ada", "Mend it.", [("Find a fault.", "It is 4."), (ANSWER_WHOLE_QUESTION, "Answer: 5")]),
    ],
)
async def test_replay_fails_for_a_step_that_shows_other_work(
    tmp_path: Path, worker: str, subtask: str, shown: list[tuple[str, str]]
) -> None:
    with pytest.raises(WorkerError, match=f"r holds no response of {worker} to the question") as caught:
        await replay(made(tmp_path), worker).answer(request(subtask, *shown))
    assert caught.value.kind == "unrecorded"


async def test_replay_inside_a_team_counts_the_work_shown_to_the_team(tmp_path: Path) -> None:
    recording = made(tmp_path)
    (outer,) = request("Find a fault.", (ANSWER_WHOLE_QUESTION, "Answer: 5")).messages
    inner = build_messages(WorkerView(outer.content, ANSWER_WHOLE_QUESTION), "packed", "beef")
    assert (await replay(recording, "judge").answer(Request(inner, seed="0"))).text == "It is 4."
    other = build_messages(WorkerView(outer.content, "Mend it."), "packed", "beef")
    with pytest.raises(WorkerError, match="with this subtask and these earlier responses"):
        await replay(recording, "ada").answer(Request(other, seed="0"))
    direct = Request((Message(role="user", content=FOUR),), seed="0")
    assert (await replay(recording, "ada").answer(direct)).text == "Answer: 5"


def test_recording_stores_seen_work_and_counts_conditioned_responses(tmp_path: Path) -> None:
    recording = made(tmp_path)
    assert recording.header.conditioned == {"ada": 1, "judge": 2}
    rows = pq.read_table(recording.path).to_pylist()
    assert [(row["worker"], row["sample"], row["seen"]) for row in rows] == [
        ("ada", 0, None),
        ("ada", 0, MENDED.key),
        ("judge", 0, CRITIC.key),
        ("judge", 1, CRITIC.key),
    ]
    assert rows[2]["shown"] == (
        '{"subtask":"Find a fault.","earlier":[["Answer the whole question.","Answer: 5"]]}'
    )
    ada, judge = recording.header.workers
    assert (ada.responses, ada.judged, ada.accuracy) == (2, 1, 0.0), "of bare questions alone"
    assert (judge.responses, judge.accuracy) == (2, None)
    assert [recording.samples(worker) for worker in ("ada", "judge")] == [1, 0]
    assert [replay(recording, worker).knows(FOUR) for worker in ("ada", "judge")] == [True, True]


def test_recording_without_conditioned_responses_has_the_same_columns(tmp_path: Path) -> None:
    recording = made(tmp_path, conditioned=False)
    read = pq.read_table(recording.path)
    assert tuple(read.column_names) == COLUMNS
    assert read.column("seen").null_count == len(read)
    assert not recording.conditioned
