"""The importer of traces: answers to bare questions, from runs that really happened."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from podium.calls import Dispatcher
from podium.errors import UsageError, WorkerError
from podium.executor import ExecutionSettings
from podium.planner import Planner, PlanRequest
from podium.planners import SelfConsistency, Single
from podium.recordings import RecordedResponse, Recording, RecordingWriter
from podium.recordings.importers import ImportReport
from podium.recordings.trace_import import import_from_traces
from podium.store import TraceStore, read_traces
from podium.tasks.graders.text_graders import Exact
from podium.team import Runner
from podium.trace import Plan, Reply, Trace
from podium.types import (
    ANSWER_WHOLE_QUESTION,
    AnswerOptions,
    Budget,
    Message,
    Profile,
    Question,
    ToolCall,
    Usage,
)
from podium.workers import Pool, ScriptedWorker, VoteWorker
from podium.workers.function import FunctionWorker
from podium.workers.replay import ReplayWorker
from podium.workers.response_cache import ResponseCache
from podium.workers.view import requests_whole_question
from podium.workflow import Access, Step, Workflow
from sample_traces import build_trace

MakeRecording = Callable[..., Recording]


class Fixed(Planner):
    """One workflow for every question."""

    name = "fixed"

    def __init__(self, *steps: Step) -> None:
        self._workflow = Workflow(steps)

    async def plan(self, request: PlanRequest) -> Plan:
        return Plan("", self._workflow)


async def store_of(path: Path, *asked: tuple[Planner, Pool, Question]) -> list[Trace]:
    """The traces of what was asked, after they went through a store."""
    with TraceStore(path) as store:
        for planner, pool, question in asked:
            store.add(await Runner(planner, pool).answer(question, seed="0"))
        store.flush()
        return list(store.iterate())


def gathered(
    traces: Sequence[Trace | None], folder: Path, golds: dict[str, str]
) -> tuple[Recording, ImportReport]:
    with RecordingWriter() as writer:
        import_report = import_from_traces(
            traces,
            writer,
            is_whole_question=lambda span, text: requests_whole_question(span.subtask, text),
            golds=golds,
            judge=lambda response, gold: Exact().judge(response, gold).score,
        )
        writer.write(folder / "traced.parquet", name="traced")
    return Recording.open(folder / "traced.parquet"), import_report


async def test_trace_import_keeps_only_answers_to_bare_questions(tmp_path: Path) -> None:
    four, five = Question(text="What is 2 + 2?"), Question(text="What is 2 + 3?")
    pool = Pool(
        [
            ScriptedWorker(
                "ada", ["Answer: 4", "Answer: 5", "Answer: 4", "Answer: 5", "a part", "on others' work"]
            ),
            VoteWorker(),
            ScriptedWorker("down", [WorkerError("It is down.", kind="status")], fallback="spare"),
            ScriptedWorker("spare", ["Answer: 5"]),
        ]
    )
    apart = Fixed(Step(0, "Add the first two."), Step(0, ANSWER_WHOLE_QUESTION, Access(all=True)))
    traces = await store_of(
        tmp_path / "traces.sqlite",
        (SelfConsistency("ada", 3), pool, four),
        (Fixed(Step(0, five.text)), pool, five),
        (apart, pool, five),
        (Single("down"), pool, five),
    )
    recording, import_report = gathered(traces, tmp_path, {four.text: "4"})
    assert recording.workers == ("ada", "spare")
    samples = recording.responses(four.text)["ada"]
    assert [response.sample for response in samples] == [0, 1, 2]
    assert sorted((response.text, response.score) for response in samples) == [
        ("Answer: 4", 1.0),
        ("Answer: 4", 1.0),
        ("Answer: 5", 0.0),
    ]
    spans = [span for span in traces[0].spans if span.answered_by == "ada"]
    assert [(r.input_tokens, r.output_tokens, r.estimated) for r in samples] == [
        (span.usage.input_tokens, span.usage.output_tokens, True) for span in spans
    ]
    assert {
        worker: [(r.text, r.score) for r in given] for worker, given in recording.responses(five.text).items()
    } == {
        "ada": [("Answer: 5", None)],
        "spare": [("Answer: 5", None)],
    }
    assert import_report.sentences == ("responses to a part of the question, or to others' work (3)",)
    assert {question.gold for question in recording.questions} == {"4", None}


async def test_traces_of_replays_and_of_questions_with_a_past_are_left_out(
    tmp_path: Path, make_recording: MakeRecording
) -> None:
    bare = Question(text="What is 2 + 2?")
    late = Question(text="And 3?", history=(Message(role="user", content="Hello"),))
    recording = make_recording({bare.text: [RecordedResponse("old", 0, "Answer: 9")]})
    live = ScriptedWorker("ada", ["Answer: 4", "Answer: 3"])
    pool = Pool([ReplayWorker(live.profile.model_copy(update={"name": "old"}), recording, "old"), live])
    traces = await store_of(
        tmp_path / "traces.sqlite",
        (Single("old"), pool, bare),
        (Single("ada"), pool, bare),
        (Single("ada"), pool, late),
    )
    made, import_report = gathered(traces, tmp_path, {})
    assert made.workers == ("ada",)
    assert [question.text for question in made.questions] == [bare.text]
    assert set(import_report.sentences) == {
        "responses that were recorded ones already (1)",
        "traces of questions with a chat history: a recording identifies a question by its text (1)",
    }


class Twice(Planner):
    """The whole question in two rounds; the second one's access is given."""

    name = "twice"

    def __init__(self, access: Access) -> None:
        self._access = access

    async def plan(self, request: PlanRequest) -> Plan:
        access = self._access if request.earlier_rounds else Access()
        return Plan("", Workflow((Step(0, ANSWER_WHOLE_QUESTION, access),)))


@pytest.mark.parametrize("access", [Access(all=True), Access(previous=True), Access()])
async def test_a_second_round_that_saw_the_answer_of_the_first_is_left_out(
    tmp_path: Path, access: Access
) -> None:
    pool = Pool([ScriptedWorker("ada", ["Answer: 4", "Answer: 5"])])
    asked = Question(text="What is 2 + 2?")
    trace = await Runner(Twice(access), pool, budget=Budget(rounds=2)).answer(asked, seed="0")
    recording, import_report = gathered([trace], tmp_path, {})
    texts = [response.text for response in recording.responses(asked.text)["ada"]]
    if access.sees_previous:
        assert texts == ["Answer: 4"]
        assert import_report.sentences == ("responses to a part of the question, or to others' work (1)",)
    else:
        assert (texts, import_report.sentences) == (["Answer: 4", "Answer: 5"], ())


async def test_copies_from_the_response_cache_are_left_out(tmp_path: Path) -> None:
    worker = FunctionWorker(Profile(name="ada"), lambda messages: "Answer: 4", identity={"kind": "python"})
    asked = Question(text="What is 2 + 2?")
    with ResponseCache(tmp_path / "responses.sqlite") as cache:
        live = Runner(Single("ada"), Pool([worker]), dispatcher=Dispatcher(cache=cache))
        traces = [await live.answer(asked, seed=seed) for seed in ("0", "1")]
    assert [span.cached for trace in traces for span in trace.spans] == [False, True]
    recording, import_report = gathered(traces, tmp_path, {})
    assert len(recording.responses(asked.text)["ada"]) == 1
    assert import_report.sentences == ("responses from a response cache: copies, not samples (1)",)


async def test_questions_with_images_are_left_out(tmp_path: Path) -> None:
    pool = Pool([ScriptedWorker("ada", ["a cat", "a dog"])])
    seen = Question(text="What is it?", images=("https://example.org/cat.png",))
    traces = await store_of(
        tmp_path / "traces.sqlite",
        (Single("ada"), pool, seen),
        (Single("ada"), pool, Question(text="What is it?")),
    )
    recording, import_report = gathered(traces, tmp_path, {})
    assert [response.text for response in recording.responses("What is it?")["ada"]] == ["a dog"]
    assert import_report.sentences == (
        "traces of questions with images: a recording identifies a question by its text (1)",
    )


def test_tool_calls_and_responses_that_the_caller_cut_off_are_left_out(tmp_path: Path) -> None:
    call = ToolCall(id="1", name="add", arguments="{}")
    replies = {"calls": {"text": "", "tool_calls": (call,)}, "cut": {"finish": "length"}, "whole": {}}
    traces = []
    for name, changes in replies.items():
        question = Question(text="What is 2 + 3?", options=AnswerOptions(max_tokens=5))
        trace = build_trace(name, question=question)
        (round_,) = trace.rounds
        reply = replace(Reply("5", Usage()), **changes)
        span = round_.spans[0].model_copy(update={"subtask": question.text, "reply": reply})
        rounds = (round_.model_copy(update={"spans": (span,)}),)
        traces.append(trace.model_copy(update={"rounds": rounds}))
    recording, import_report = gathered(traces, tmp_path, {"What is 2 + 3?": "5"})
    assert [(r.text, r.score) for r in recording.responses("What is 2 + 3?")["ada"]] == [("5", 1.0)]
    assert set(import_report.sentences) == {
        "calls of the caller's tools: no answers yet (1)",
        "responses that the caller's or the plan's max_tokens cut off (1)",
    }


async def test_numbered_steps_count_as_the_whole_question(tmp_path: Path) -> None:
    asked = Question(text="1. Which is it?")
    plan = Fixed(
        Step(0, f"1. {ANSWER_WHOLE_QUESTION}"), Step(0, f"2. {asked.text}"), Step(0, "3. Do part 1 only.")
    )
    pool = Pool([ScriptedWorker("ada", ["one", "two", "three"])])
    runner = Runner(plan, pool, settings=ExecutionSettings(run_all=True))
    trace = await runner.answer(asked, seed="0")
    recording, import_report = gathered([trace], tmp_path, {})
    assert {response.text for response in recording.responses(asked.text)["ada"]} == {"one", "two"}
    assert import_report.sentences == ("responses to a part of the question, or to others' work (1)",)


async def test_trace_import_reads_oldest_first_without_changing_the_store(tmp_path: Path) -> None:
    pool = Pool([ScriptedWorker("ada", ["one", "two"])])
    path = tmp_path / "traces.sqlite"
    asked = Question(text="What is it?")
    traces = await store_of(path, (Single("ada"), pool, asked), (Single("ada"), pool, asked))
    before = path.read_bytes()
    assert list(read_traces(path)) == traces
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"Not a database. " * 100])
def test_file_that_is_not_a_trace_store_is_refused_unchanged(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "traces.sqlite"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"traces\.sqlite"):
        list(read_traces(path))
    assert path.read_bytes() == content


async def test_a_trace_that_cannot_be_read_is_counted_and_hides_no_other(tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite"
    pool = Pool([ScriptedWorker("ada", ["one", "two"])])
    await store_of(path, *((Single("ada"), pool, Question(text=text)) for text in ("What?", "Why?")))
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE podium_documents SET document = '{}' WHERE document LIKE '%What?%'")
    recording, import_report = gathered(list(read_traces(path)), tmp_path, {})
    assert [question.text for question in recording.questions] == ["Why?"]
    assert import_report.sentences == ("damaged traces (1)",)
