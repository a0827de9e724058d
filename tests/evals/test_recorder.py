"""Recording live workers: every answer is kept with its grade, and what was stopped goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import pyarrow.parquet as pq
import pytest

from podium.calls import CallState
from podium.config import build
from podium.errors import WorkerError
from podium.evals.evaluation import rollout_seed
from podium.evals.question_table import AskingProgress, QuestionTable, ask_each_alone
from podium.evals.recorder import MaxCalls, QuestionsToRecord, RecordingRun, bare_tasks
from podium.planners import Single
from podium.recordings import RecordedResponse, Recording, RecordingHeader
from podium.rollout import run_rollout
from podium.spending.shared_spend_limit import SharedSpendLimit
from podium.tasks.graders.judge import Judge
from podium.tasks.graders.text_graders import Exact
from podium.tasks.recorded import RecordedTasks
from podium.tasks.task import Task
from podium.team import Runner
from podium.team.settings import TeamSettings
from podium.types import Limits, Message, Price, Profile, Question
from podium.workers import Pool, ScriptedWorker
from podium.workers.function import FunctionWorker
from podium.workers.response_cache import ResponseCache
from scripted_team import SKILLS, Calculator, Sums

MakeRecording = Callable[..., Recording]
PRICE = Price(input=1.0, output=6.0)
TASKS = Sums("test", 8)


def calculators() -> Pool:
    return Pool(
        [
            Calculator(Profile(name=name, price=PRICE), dict.fromkeys(SKILLS, ability))
            for name, ability in (("able", 0.9), ("weak", 0.5))
        ]
    )


def dear(reply: str | WorkerError) -> ScriptedWorker:
    """100 output tokens at most, a dollar each; every call takes a moment, so that others come between."""
    return ScriptedWorker(
        "dear",
        {"": reply},
        delay=0.002,
        profile=Profile(name="dear", price=Price(output=1e6)),
        limits=Limits(max_tokens=100, retries=0),
    )


def table_of(folder: Path, pool: Pool, tasks: Sequence[Task], concurrency: int = 16) -> QuestionTable:
    return QuestionTable(folder, TeamSettings(pool="mine"), pool, tasks, concurrency=concurrency)


async def ask(
    table: QuestionTable, *, repeats: int = 1, call_state: CallState | None = None
) -> AskingProgress:
    return await ask_each_alone(
        [replace(table, repeats=repeats)], call_state or CallState(), lambda what, done, total: None
    )


def written(table: QuestionTable, out: Path, repeats: int = 1) -> RecordingHeader:
    """The recording of a copy of a table's answers."""
    split_of = {task.id: "test" for task in table.questions}
    questions = QuestionsToRecord(tuple(table.questions), split_of, sets=(), left_out=(), warnings=())
    copied = replace(table, folder=out.with_suffix(".partial"), repeats=repeats)
    copytree(table.folder, copied.folder)
    return RecordingRun(out, questions, copied).write("r", missing=0)


def calls(budget: int) -> CallState:
    return CallState(spend_limits=[MaxCalls(budget)])


async def test_every_answer_of_every_worker_is_kept_with_its_grade(tmp_path: Path) -> None:
    table = table_of(tmp_path / "made", pool := calculators(), TASKS)
    progress = await ask(table, repeats=2)
    header = written(table, tmp_path / "r.parquet", repeats=2)
    assert progress == AskingProgress(wanted=32, kept=32)
    assert (header.questions, header.responses, header.splits) == (8, 32, {"test": 8})
    recording = Recording.open(tmp_path / "r.parquet")
    for task in TASKS:
        question = recording.find(task.question.text)
        assert question is not None
        assert (question.id, question.gold) == (task.id, task.gold)
        for name in pool.names:
            for sample, response in enumerate(recording.responses(task.question.text)[name]):
                seed = rollout_seed("0", task.id, sample)
                live = await run_rollout(Runner(Single(name), pool), task, seed=seed)
                (span,) = live.trace.spans
                assert (response.text, response.answer, response.score) == (
                    live.trace.answer,
                    live.grade.found,
                    live.grade.score,
                )
                assert (response.input_tokens, response.output_tokens, response.estimated) == (
                    span.usage.input_tokens,
                    span.usage.output_tokens,
                    False,
                )


async def test_an_answer_that_could_not_be_judged_is_kept_without_a_verdict(tmp_path: Path) -> None:
    worker = {"name": "judy", "kind": "scripted", "replies": {"": {"error": "status"}}}
    judge = build({"kind": "judge", "worker": worker}, Judge)
    tests = f'{{"form": "programs", "inputs": ["{"x" * 10_000}"], "outputs": [""]}}'
    table = table_of(tmp_path, Pool([dear("Answer: 5")]), [Task("a", Question(text="Why?"), tests, judge)])
    await ask(table)
    written(table, tmp_path / "r.parquet")
    recording = Recording.open(tmp_path / "r.parquet")
    ((response,),) = recording.responses("Why?").values()
    assert (response.text, response.score) == ("Answer: 5", None)
    (question,) = recording.questions_of("test")
    assert question.gold is None, "tests of programs are too long to be kept"


@pytest.mark.parametrize("concurrency", [1, 16])
async def test_a_run_that_its_budget_stopped_goes_on_and_ends_with_the_same_rows(
    tmp_path: Path, concurrency: int
) -> None:
    whole = table_of(tmp_path / "whole", calculators(), TASKS)
    await ask(whole, repeats=2)
    header = written(whole, tmp_path / "whole.parquet", repeats=2)
    parts = table_of(tmp_path / "parts", calculators(), TASKS, concurrency)
    runs = [await ask(parts, repeats=2, call_state=calls(13)) for _ in range(3)]
    assert [progress.kept for progress in runs] == [13, 26, 32]
    assert [progress.refusal for progress in runs] == ["The budget of 13 calls is used up."] * 2 + [None]
    assert written(parts, tmp_path / "parts.parquet", repeats=2).responses == header.responses
    made = [pq.read_table(tmp_path / f"{name}.parquet") for name in ("whole", "parts")]
    timeless = [table.drop_columns("seconds") for table in made]
    assert timeless[0].equals(timeless[1])


async def test_models_of_one_host_answer_the_same_questions_under_a_call_budget(tmp_path: Path) -> None:
    workers = [
        FunctionWorker(Profile(name=name), lambda messages: "Answer: 3", limits=Limits(host="box"))
        for name in ("ada", "bob")
    ]
    table = table_of(tmp_path, Pool(workers), TASKS, 1)
    await ask(table, call_state=calls(6))
    answered = [{task for task, _ in table.alone(name).kept_answers()} for name in ("ada", "bob")]
    assert answered[0] == answered[1]
    assert len(answered[0]) == 3


async def test_a_complete_recording_calls_no_worker(tmp_path: Path) -> None:
    worker = dear("Answer: 4")
    table = table_of(tmp_path, Pool([worker]), TASKS)
    await ask(table)
    again = await ask(table, call_state=calls(0))
    more = await ask(table, repeats=2)
    assert (again.kept, again.refusal) == (8, None)
    assert (more.wanted, more.kept, len(worker.requests)) == (16, 16, 16)


async def test_judging_cost_counts_toward_the_budget_and_paid_answers_are_kept(tmp_path: Path) -> None:
    spec = {"name": "judy", "kind": "scripted", "replies": {"": "RIGHT"}}
    spec |= {"price": {"output": 1e5}, "limits": {"max_tokens": 2}}
    judge = build({"kind": "judge", "worker": spec}, Judge)
    tasks = [Task(f"{n}", Question(text=f"Why {n}?"), "5", judge) for n in range(8)]
    grade = await tasks[0].grade("Answer: 5")
    assert (grade.failure, grade.cost_usd > 0) == (None, True)
    asked: list[object] = []

    def answer(messages: list[dict[str, str]]) -> str:
        asked.append(messages)
        return "Answer: 5"

    pool = Pool([FunctionWorker(Profile(name="free"), answer, identity={"model": "m"})])
    with ResponseCache(tmp_path / "responses.sqlite") as cache:
        with closing(SharedSpendLimit(None, "run", 2.5 * grade.cost_usd)) as limit:
            stopped = await ask(
                table_of(tmp_path, pool, tasks, 1),
                call_state=CallState(cache=cache, spend_limits=[limit]),
            )
        assert (stopped.kept, stopped.refusal is None, len(asked)) == (2, False, 3)
        again = await ask(table_of(tmp_path, pool, tasks[:3], 1), call_state=CallState(cache=cache))
    assert (again.kept, again.wanted, len(asked)) == (3, 3, 3)


def test_questions_with_a_past_or_images_are_left_out_and_counted() -> None:
    def task(name: str, **more: Any) -> Task:
        return Task(name, Question(text="And 3?", **more), "6", Exact())

    def past(said: str) -> tuple[Message, ...]:
        return (Message(role="user", content=said),)

    bare, left_out = bare_tasks(
        [
            task("double", history=past("Double each number I say.")),
            task("square", history=past("Square each number I say.")),
            task("seen", images=("https://example.org/3.png",)),
            task("bare"),
        ]
    )
    assert [task.id for task in bare] == ["bare"]
    assert left_out == (
        "questions with a chat history: a recording identifies a question by its text (2)",
        "questions with images: a recording identifies a question by its text (1)",
    )


@pytest.mark.parametrize("dollars", [0.0, 150.0])
async def test_recorder_with_16_concurrent_calls_stays_within_budget(tmp_path: Path, dollars: float) -> None:
    worker = dear("Answer: 4, at some length")
    with closing(SharedSpendLimit(None, "run", dollars)) as limit:
        table = table_of(tmp_path, Pool([worker]), Sums("test", 30))
        progress = await ask(table, call_state=CallState(spend_limits=[limit]))
        spent = limit.spent_usd
    assert spent <= dollars
    assert progress.kept == len(worker.requests) < 30
    assert (progress.refusal is None) == (progress.kept == 30)


async def test_a_fallback_is_neither_recorded_nor_paid_beyond_the_budget(tmp_path: Path) -> None:
    broken = WorkerError("It is down.", kind="status")
    down = [
        ScriptedWorker(f"down{k}", {"": broken}, limits=Limits(retries=0), fallback="dear") for k in range(16)
    ]
    with closing(SharedSpendLimit(None, "run", 20.0)) as limit:
        table = table_of(tmp_path, Pool([*down, dear("Answer: 4")]), TASKS)
        await ask(table, call_state=CallState(spend_limits=[limit]))
        assert limit.spent_usd <= 20.0
    kept = table.alone("down0").kept_answers().values()
    assert not any(answer.trace.answer for answer in kept)


async def test_calls_that_failed_are_counted_and_made_again(tmp_path: Path) -> None:
    replies: list[str | WorkerError] = [
        "Answer: 4",
        WorkerError("It is down.", kind="status"),
        "Answer: 5",
        "Answer: 6",
    ]
    worker = ScriptedWorker("moody", replies)
    table = table_of(tmp_path, Pool([worker]), Sums("test", 3), 1)
    first, second = await ask(table), await ask(table)
    assert (first.wanted, first.kept, first.failed, first.refusal) == (3, 2, 1, None)
    assert (second.kept, second.failed, len(worker.requests)) == (3, 0, 4)
    assert (first.errors, second.errors) == ({"moody": "moody: It is down."}, {})


async def test_cancelled_recording_keeps_its_finished_answers(tmp_path: Path) -> None:
    table = table_of(tmp_path, Pool([dear("Answer: 4")]), TASKS, 2)
    ended: list[int] = []

    def stop(what: str, done: int, total: int) -> None:
        ended.append(done)
        if done == 5:
            job.cancel()

    job = asyncio.create_task(ask_each_alone([table], CallState(), stop))
    with pytest.raises(asyncio.CancelledError):
        await job
    assert len(table.alone("dear").kept_answers()) == ended[-1] < 8
    assert (await ask(table)).kept == 8


async def test_recording_of_a_recording_replays_the_same_answers(
    tmp_path: Path, make_recording: MakeRecording
) -> None:
    source = make_recording({"Q?": [RecordedResponse("ada", 0, "Answer: 4", "4", 0.5)]})
    worker = ScriptedWorker("live", ["Answer: 4"])
    table = table_of(tmp_path / "made", Pool([worker]), RecordedTasks(source, "test"))
    await ask(table)
    header = written(table, tmp_path / "again.parquet")
    assert header.workers[0].accuracy == 0
    (response,) = Recording.open(tmp_path / "again.parquet").responses("Q?")["live"]
    assert (response.answer, response.score) == ("4", 0.5)
