"""Recording live workers: every answer is kept with its grade, and what was stopped goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from podium.config import build
from podium.errors import RunMismatchError, WorkerError
from podium.evals.ratings.asking import AskingProgress
from podium.evals.ratings.recorder import record
from podium.planners import Single
from podium.recordings import RecordedResponse, Recording, RecordingWriter
from podium.rollout import roll
from podium.tasks.graders.judge import Judge
from podium.tasks.graders.text_graders import Exact
from podium.tasks.recorded import RecordedTasks
from podium.tasks.task import Task, TaskList
from podium.team import Runner
from podium.team.team_worker import TeamWorker
from podium.types import Budget, Limits, Message, Price, Profile, Question, Spent
from podium.workers import Pool, ScriptedWorker
from scripted_team import SKILLS, Calculator, Sums

MakeRecording = Callable[..., Recording]
PRICE = Price(input=1.0, output=6.0)
TASKS = Sums("test", 8)


def to_test(question_id: str) -> str:
    return "test"


def calculators() -> Pool:
    return Pool(
        [
            Calculator(Profile(name=name, price=PRICE), dict.fromkeys(SKILLS, ability))
            for name, ability in (("able", 0.9), ("weak", 0.5))
        ]
    )


def dear(reply: str | WorkerError, name: str = "dear", fallback: str | None = None) -> ScriptedWorker:
    """100 output tokens at most, a dollar each; every call takes a moment, so that others come between."""
    return ScriptedWorker(
        name,
        {"": reply},
        delay=0.002,
        profile=Profile(name=name, price=Price(output=1e6)),
        limits=Limits(max_tokens=100, retries=0),
        fallback=fallback,
    )


async def test_every_answer_of_every_worker_is_kept_with_its_grade(tmp_path: Path) -> None:
    pool = calculators()
    told: list[int] = []
    with RecordingWriter() as writer:
        progress = await record(
            pool,
            TASKS,
            writer,
            split=to_test,
            samples=2,
            on_progress=lambda progress: told.append(progress.kept),
        )
        header = writer.write(tmp_path / "r.parquet", name="r")
    assert progress == AskingProgress(wanted=32, kept=32, usd=progress.usd)
    assert sorted(told) == list(range(33))
    assert (header.questions, header.responses, header.splits) == (8, 32, {"test": 8})
    recording = Recording.open(tmp_path / "r.parquet")
    spent = 0.0
    for task in TASKS:
        question = recording.find(task.question.text)
        assert question is not None
        assert (question.id, question.gold) == (task.id, task.gold)
        for worker in pool:
            name = worker.profile.name
            for sample, response in enumerate(recording.responses(task.question.text)[name]):
                runner = Runner(Single(name), pool)
                live = await roll(runner, task, seed=f"record/0/{task.id}/{name}/{sample}")
                (span,) = live.trace.spans
                spent += live.trace.cost_usd
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
                assert response.seconds == pytest.approx(span.seconds)
    assert progress.usd == pytest.approx(spent)


async def test_an_answer_that_could_not_be_judged_is_kept_without_a_verdict(tmp_path: Path) -> None:
    worker = {"name": "judy", "kind": "scripted", "replies": {"": {"error": "status"}}}
    judge = build({"kind": "judge", "worker": worker}, Judge)
    tests = f'{{"form": "programs", "inputs": ["{"x" * 10_000}"], "outputs": [""]}}'
    tasks = TaskList("judged", [Task("a", Question(text="Why?"), tests, judge)])
    with RecordingWriter() as writer:
        await record(Pool([dear("Answer: 5")]), tasks, writer, split=to_test)
        writer.write(tmp_path / "r.parquet", name="r")
    recording = Recording.open(tmp_path / "r.parquet")
    ((response,),) = recording.responses("Why?").values()
    assert (response.text, response.score) == ("Answer: 5", None)
    (question,) = recording.of_split("test")
    assert question.gold is None, "tests of programs are too long to be kept"


async def test_without_a_split_questions_are_split_by_a_hash(tmp_path: Path) -> None:
    with RecordingWriter() as writer:
        await record(calculators(), Sums("test", 40), writer)
        header = writer.write(tmp_path / "r.parquet", name="r")
    assert header.splits.keys() == {"train", "validation", "test"}


@pytest.mark.parametrize("concurrency", [1, 16])
async def test_a_run_that_its_budget_stopped_goes_on_and_ends_with_the_same_rows(
    tmp_path: Path, concurrency: int
) -> None:
    pool = calculators()
    with RecordingWriter() as writer:
        await record(pool, TASKS, writer, split=to_test, samples=2)
        whole = writer.write(tmp_path / "whole.parquet", name="r")
    file, runs = tmp_path / "parts.partial", []
    while not runs or runs[-1].refusal is not None:
        with RecordingWriter(file) as writer:
            progress = await record(
                pool,
                TASKS,
                writer,
                split=to_test,
                samples=2,
                concurrency=concurrency,
                budget=Budget(calls=13),
            )
            runs.append(progress)
    assert [progress.kept for progress in runs] == [13, 26, 32]
    assert [progress.refusal for progress in runs] == ["The budget of 13 calls is used up."] * 2 + [None]
    with RecordingWriter(file) as writer:
        assert writer.write(tmp_path / "parts.parquet", name="r") == whole
    assert pq.read_table(tmp_path / "parts.parquet").equals(pq.read_table(tmp_path / "whole.parquet"))


async def test_a_complete_recording_calls_no_worker(tmp_path: Path) -> None:
    worker = dear("Answer: 4")
    with RecordingWriter() as writer:
        await record(Pool([worker]), TASKS, writer)
        again = await record(Pool([worker]), TASKS, writer, budget=Budget(calls=0))
        more = await record(Pool([worker]), TASKS, writer, samples=2)
    assert (again.kept, again.refusal) == (8, None)
    assert (more.wanted, more.kept, len(worker.requests)) == (16, 16, 16)


async def test_what_judging_costs_counts_too() -> None:
    worker = {"name": "judy", "kind": "scripted", "replies": {"": "RIGHT"}}
    worker |= {"price": {"output": 1e5}, "limits": {"max_tokens": 2}}
    tasks = TaskList(
        "judged",
        [
            Task(f"{n}", Question(text=f"Why {n}?"), "5", build({"kind": "judge", "worker": worker}, Judge))
            for n in range(8)
        ],
    )
    grade = await tasks[0].grade("Answer: 5")
    assert (grade.failure, grade.cost_usd > 0) == (None, True)
    with RecordingWriter() as writer:
        progress = await record(
            Pool([ScriptedWorker("free", {"": "Answer: 5"})]),
            tasks,
            writer,
            concurrency=1,
            budget=Budget(usd=2.5 * grade.cost_usd),
        )
        assert (progress.kept, progress.refusal is None) == (2, False)
        # The answer whose judge was refused is saved, and judged by the next run.
        saved = writer.find(unjudged := tasks[2].id, "free", 0)
        assert saved is not None
        assert (saved.text, saved.score) == ("Answer: 5", None)
        again = await record(
            Pool([ScriptedWorker("free", {"": "Answer: 5"})]),
            [tasks[k] for k in range(3)],
            writer,
            concurrency=1,
        )
        assert (again.kept, again.wanted) == (3, 3)
        assert writer.find(unjudged, "free", 0) == replace(saved, answer="Answer: 5", score=1.0)


async def test_questions_with_a_past_or_images_are_left_out_and_counted(tmp_path: Path) -> None:
    def task(name: str, **more: Any) -> Task:
        return Task(name, Question(text="And 3?", **more), "6", Exact())

    def past(said: str) -> tuple[Message, ...]:
        return (Message(role="user", content=said),)

    tasks = [
        task("double", history=past("Double each number I say.")),
        task("square", history=past("Square each number I say.")),
        task("seen", images=("https://example.org/3.png",)),
        task("bare"),
    ]
    worker = ScriptedWorker("ada", ["Answer: 4"])
    with RecordingWriter() as writer:
        progress = await record(Pool([worker]), tasks, writer)
        writer.write(tmp_path / "r.parquet", name="r")
    assert len(worker.requests) == progress.wanted == progress.kept == 1
    assert progress.left_out == (
        "questions with a chat history: a recording identifies a question by its text (2)",
        "questions with images: a recording identifies a question by its text (1)",
    )
    (question,) = Recording.open(tmp_path / "r.parquet").questions
    assert question.id == "bare"


@pytest.mark.parametrize("dollars", [0.0, 2.0, 99.0, 120.0, 350.0, 1700.0])
async def test_with_16_at_once_spending_never_passes_the_budget(dollars: float) -> None:
    worker = dear("Answer: 4, at some length")
    tasks = Sums("test", 60)
    seen: list[float] = []
    with RecordingWriter() as writer:
        progress = await record(
            Pool([worker]),
            tasks,
            writer,
            concurrency=16,
            budget=Budget(usd=dollars),
            on_progress=lambda progress: seen.append(progress.usd),
        )
    cost = progress.usd / max(len(worker.requests), 1)
    assert max(seen, default=0.0) <= dollars
    assert progress.usd == pytest.approx(len(worker.requests) * cost)
    assert progress.kept == len(worker.requests) < 60 or dollars > 60 * cost
    assert (progress.refusal is None) == (progress.kept == 60)


async def test_a_worker_without_a_price_is_held_at_the_most_its_limits_allow() -> None:
    # A team costs what its workers cost: a dollar for a call here, and no price says so.
    inner = ScriptedWorker(
        "inner", {"": "5"}, profile=Profile(name="inner", price=Price(output=1e6)), delay=0.002
    )
    team = TeamWorker(
        Profile(name="team"),
        Runner(Single("inner"), Pool([inner]), budget=Budget()),
        limits=Limits(retries=0, max_usd=1.0),
    )
    with RecordingWriter() as writer:
        progress = await record(
            Pool([team]), Sums("test", 16), writer, budget=Budget(usd=4.5), concurrency=16
        )
    assert progress.kept == 4
    assert progress.usd == pytest.approx(4.0)
    assert progress.refusal is not None
    assert "could cost $1.000000" in progress.refusal


async def test_once_a_call_is_refused_no_more_are_made_and_the_reason_stays() -> None:
    def priced(name: str, dollars: float) -> ScriptedWorker:
        """It may say two tokens, and says one."""
        return ScriptedWorker(
            name,
            {"": "5"},
            delay=0.01,
            profile=Profile(name=name, price=Price(output=dollars / 2 * 1e6)),
            limits=Limits(max_tokens=2, retries=0),
        )

    # After dear, dear2 does not fit, and cheap would.
    workers = [priced("dear", 1.0), priced("dear2", 1.0), priced("cheap", 0.1)]
    with RecordingWriter() as writer:
        progress = await record(
            Pool(workers), Sums("test", 1), writer, budget=Budget(usd=1.05), concurrency=1
        )
    assert [len(worker.requests) for worker in workers] == [1, 0, 0]
    assert (progress.kept, progress.failed, progress.wanted) == (1, 0, 3)
    assert progress.refusal is not None
    assert "The call could cost $1.000000, and $0.550000 of the run's $1.05 are left" in progress.refusal


async def test_every_try_of_a_recorded_call_is_reserved() -> None:
    """A try costs up to $2 and takes $1; the third would not fit."""
    empty = WorkerError("It wrote nothing.", kind="protocol", retryable=True)
    worker = ScriptedWorker(
        "dear",
        {"": empty},
        failures_spend=Spent(cost_usd=1.0),
        profile=Profile(name="dear", price=Price(output=1e6)),
        limits=Limits(max_tokens=2, retries=5),
    )
    with RecordingWriter() as writer:
        progress = await record(
            Pool([worker]), Sums("test", 1), writer, budget=Budget(usd=3.5), concurrency=1
        )
    assert (len(worker.requests), progress.usd, progress.kept) == (2, 2.0, 0)
    assert progress.refusal is not None


async def test_a_fallback_is_neither_recorded_nor_paid_beyond_the_budget() -> None:
    broken = WorkerError("It is down.", kind="status")
    down = [
        ScriptedWorker(
            f"down{k}",
            {"": broken},
            profile=Profile(name=f"down{k}"),
            limits=Limits(retries=0),
            fallback="dear",
        )
        for k in range(16)
    ]
    with RecordingWriter() as writer:
        progress = await record(
            Pool([*down, dear("Answer: 4")]), TASKS, writer, budget=Budget(usd=20.0), concurrency=16
        )
        assert not any(writer.find(task.id, "down0", 0) for task in TASKS)
    assert progress.usd <= 20.0


async def test_calls_that_failed_are_counted_and_made_again() -> None:
    replies: list[str | WorkerError] = [
        "Answer: 4",
        WorkerError("It is down.", kind="status"),
        "Answer: 5",
        "Answer: 6",
    ]
    worker = ScriptedWorker("moody", replies)
    tasks = Sums("test", 3)
    with RecordingWriter() as writer:
        first = await record(Pool([worker]), tasks, writer, concurrency=1)
        second = await record(Pool([worker]), tasks, writer, concurrency=1)
    assert (first.wanted, first.kept, first.failed, first.refusal) == (3, 2, 1, None)
    assert (second.kept, second.failed, len(worker.requests)) == (3, 0, 4)
    assert (first.errors, second.errors) == ({"moody": "moody: It is down."}, {})


async def test_questions_of_another_wording_than_before_are_refused_uncalled() -> None:
    def tasks(*texts: str) -> list[Task]:
        return [Task(f"{n}", Question(text=text), "5", Exact()) for n, text in enumerate(texts)]

    worker = ScriptedWorker("ada", {"": "Answer: 5"})
    with RecordingWriter() as writer:
        await record(Pool([worker]), tasks("What is 2 + 3?", "What is 5?"), writer)
        with pytest.raises(RunMismatchError, match="Question '1' was recorded before with another wording"):
            await record(
                Pool([worker]), tasks("What is 2 + 3?", "What is 6?", "What is 7?"), writer, samples=2
            )
        grown = await record(Pool([worker]), tasks("What is 2 + 3?", "What is 5?", "What is 7?"), writer)
    assert (grown.kept, len(worker.requests)) == (3, 3)


async def test_a_time_limit_stops_it_too() -> None:
    with RecordingWriter() as writer:
        progress = await record(
            Pool([dear("Answer: 4")]),
            Sums("test", 400),
            writer,
            concurrency=1,
            budget=Budget(seconds=0.1),
        )
    assert progress.refusal == "The time limit of 0.1 s was reached."
    assert progress.kept < 400


async def test_what_was_done_before_it_was_cancelled_is_kept(tmp_path: Path) -> None:
    worker = dear("Answer: 4")
    told: list[int] = []

    def stop(progress: AskingProgress) -> None:
        told.append(progress.kept)
        if progress.kept == 5:
            job.cancel()

    with RecordingWriter(tmp_path / "g") as writer:
        job = asyncio.create_task(record(Pool([worker]), TASKS, writer, concurrency=2, on_progress=stop))
        with pytest.raises(asyncio.CancelledError):
            await job
    with RecordingWriter(tmp_path / "g") as writer:
        assert sum(writer.find(task.id, "dear", 0) is not None for task in TASKS) == told[-1] < 8
        assert (await record(Pool([worker]), TASKS, writer)).kept == 8


async def test_what_was_recorded_of_a_recording_replays_alike(make_recording: MakeRecording) -> None:
    source = make_recording({"Q?": [RecordedResponse("ada", 0, "Answer: 4", "4", 0.5)]})
    worker = ScriptedWorker("live", ["Answer: 4"])
    with RecordingWriter() as writer:
        await record(Pool([worker]), RecordedTasks(source, "test"), writer, split=to_test)
        header = writer.write(source.path.with_name("again.parquet"), name="again")
    assert header.workers[0].accuracy == 0
    (response,) = Recording.open(source.path.with_name("again.parquet")).responses("Q?")["live"]
    assert (response.answer, response.score) == ("4", 0.5)
