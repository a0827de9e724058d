"""Traces for the viewer to show: made by answering questions, not written by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from podium.conductor import Conductor
from podium.conductor.policy import WorkerPolicy
from podium.errors import WorkerError
from podium.planners.controls import Constant
from podium.store import TraceStore
from podium.store.trace_rows import TraceRows
from podium.team import Runner
from podium.team.team_worker import TeamWorker
from podium.trace import Trace
from podium.trace.serialization import TraceRow, to_row
from podium.types import Budget, Limits, Price, Profile, Question, Rating
from podium.workers.base import Worker
from podium.workers.pool import Pool
from podium.workers.scripted import ScriptedWorker
from podium.workflow import Access, Step, Workflow
from podium_testing import POISONS
from scripted_team import Sums, open_team

WRITABLE = {name: text for name, text in POISONS.items() if name != "surrogate" and text.strip()}


def answered(
    workers: Sequence[Worker], steps: Sequence[Step], question: str = "What is 6 x 7?", rounds: int = 1
) -> Trace:
    """What becomes of a question under a plan of `steps`."""
    pool = Pool(workers)
    planner = Constant(Workflow(tuple(steps)), pool.names)
    return _answered(Runner(planner, pool, budget=Budget(rounds=rounds)), question)


def _answered(runner: Runner, question: str) -> Trace:
    def run() -> Trace:
        return asyncio.run(runner.answer(Question(text=question), seed="0"))

    with ThreadPoolExecutor(1) as thread:  # Playwright's own event loop runs in this one.
        return thread.submit(run).result()


def plain(answer: str = "42", *, seconds: float = 0.0, name: str = "ada") -> Trace:
    """One step."""
    worker = ScriptedWorker(name, {"": answer}, delay=seconds)
    return answered([worker], [Step(0, "Answer it.", Access())])


def two_rounds() -> Trace:
    """A plan of three steps, and its acceptance."""
    workers = [ScriptedWorker("ada", {"": "6"}), ScriptedWorker("bram", {"": "42"}, delay=0.02)]
    steps = [Step(0, "Take half."), Step(1, "Take all."), Step(0, "Decide.", Access(all=True))]
    return answered(workers, steps, rounds=2)


def poisoned() -> Trace:
    """Every text that means harm, as question, subtask, worker's name and response."""
    texts = list(WRITABLE.values())
    worker = ScriptedWorker("<img src=x onerror=alert(1)>", texts)
    steps = [Step(0, text[:4000].strip(), Access(all=True)) for text in texts]
    return answered([worker], steps, question=WRITABLE["html"] + WRITABLE["bidi"] + WRITABLE["terminal"])


def troubled() -> Trace:
    """A step whose worker fails and whose fallback answers, and a step that another team does."""
    broken = WorkerError("The provider is down.", kind="connection")
    inner = Pool([ScriptedWorker("cleo", {"": "42"})])
    planner = Constant(Workflow((Step(0, "Do it for them."),)), inner.names)
    team = TeamWorker(Profile(name="team"), Runner(planner, inner))
    workers = [
        ScriptedWorker("ada", {"": broken}, limits=Limits(retries=0), fallback="bram"),
        ScriptedWorker("bram", {"": "41"}),
        team,
    ]
    return answered(workers, [Step(0, "Guess."), Step(2, "Decide.", Access(all=True))])


def hundred_steps() -> Trace:
    """Ten layers of ten steps, each of which reads all that came before."""
    workers = [ScriptedWorker(f"worker-{i}", {"": "a number"}) for i in range(10)]
    steps = [
        Step(i % 10, f"Part {i} of the work.", Access(steps=tuple(range(10 * (i // 10))))) for i in range(99)
    ]
    return answered(workers, [*steps, Step(0, "Put it together.", Access(all=True))])


def many(count: int) -> Iterator[Trace]:
    """So many traces, a second after one another; every tenth has failed."""
    one = plain()
    first = datetime(2026, 1, 1, tzinfo=UTC)
    for number in range(count):
        yield one.model_copy(
            update={
                "id": f"{number:032x}",
                "question": Question(text=f"Question number {number}"),
                "started_at": (first + timedelta(seconds=number)).isoformat(timespec="milliseconds"),
                "status": "ok" if number % 10 else "failed",
            }
        )


def of_sums(count: int) -> list[Trace]:
    """Sums, each answered by two workers of the scripted team."""
    workers = list(open_team())
    steps = [Step(0, "Take the first step."), Step(1, "Give the answer.", Access(all=True))]
    return [answered(workers, steps, task.question.text) for task in Sums(size=count)]


def keep(path: Path, *traces: Trace) -> Path:
    """The store of `traces`."""
    with TraceStore(path) as store:
        store.add_all(traces)
    return path


def keep_rows(path: Path, count: int) -> Path:
    """The store of so many lines of a list, made faster than traces are; no trace is behind them."""
    row = to_row(plain())._replace(costs=(), document="")

    def rows() -> Iterator[TraceRow]:
        for number in range(count):
            question = f"Question number {number}"
            listed = row.listed._replace(
                started=1.7e9 + number, id=f"{number:032x}", question=question, searched=question.lower()
            )
            yield row._replace(listed=listed)

    with TraceStore(path) as store:
        TraceRows(store.database).write(rows())
    return path


def rejected_first() -> Trace:
    """A Conductor that thinks, whose first text is no plan. Its workers are rated and priced; the first falls back."""
    broken = WorkerError("The provider is down.", kind="connection")
    quill, vet = (
        Profile(
            name=name,
            price=Price(input=1.0, output=4.0),
            rating=Rating(cluster="sums", accuracy=accuracy, cost_usd=0.002, questions=8),
        )
        for name, accuracy in (("quill", 0.9), ("vet", 0.6))
    )
    workers = [
        ScriptedWorker("quill", {"": broken}, profile=quill, limits=Limits(retries=0), fallback="vet"),
        ScriptedWorker("vet", {"": "# Sum\n\nIt is **42**."}, profile=vet),
    ]
    pool = Pool(workers)
    plan = 'Quill is best at sums.\nmodel_id = [0]\nsubtasks = ["Add the numbers."]\naccess_list = [[]]'
    chief = ScriptedWorker("chief", ["No plan at all.", plan], profile=Profile(name="chief", price=vet.price))
    trace = _answered(Runner(Conductor(WorkerPolicy(chief), second_try=True), pool), "What is 6 x 7?")
    (round_,) = trace.rounds
    span = round_.spans[0]
    assert span.reply is not None
    reply = replace(span.reply, reasoning="Six sevens.", parameters={"model": "vet-1", "max_tokens": 64})
    span = span.model_copy(update={"reply": reply})
    round_ = round_.model_copy(
        update={"plan": replace(round_.plan, reasoning="A sum: one worker will do."), "spans": (span,)}
    )
    return trace.model_copy(update={"rounds": (round_,)})
