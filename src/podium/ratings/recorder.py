"""Makes a recording from live workers: sends every question of a task set to each worker and grades the answers.

Each answer is saved at once. If a kill or the budget stops a recording, the next run continues it. Questions with a
chat history or with images are left out, because a recording identifies a question by its text alone.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from podium.baselines import Single
from podium.errors import BudgetError, RunMismatchError
from podium.executor import Dispatcher, Ledger
from podium.executor.ledger import Reservation
from podium.executor.worker_call import first_reservation
from podium.orchestrator import Orchestrator
from podium.recordings import RecordedQuestion, RecordingWriter, Response, split_by_hash, was_simulated
from podium.rollout.rollout import Rollout, roll
from podium.tasks.task import Task
from podium.types import Budget, Message, Usage
from podium.workers.pool import Pool, is_tool

_LONGEST = 10_000
"""Most characters of a gold answer that is saved. Tests of programs are longer; the verdicts are saved without them."""
_OVERHEAD_BYTES = 800
"""Most bytes that a worker is sent besides the question."""


@dataclass(slots=True)
class Progress:
    """The progress of a recording."""

    wanted: int
    """Responses that the finished recording will have."""
    kept: int
    """Responses that are saved, those of earlier runs included."""
    usd: float = 0.0
    """Dollars spent in this run."""
    failed: int = 0
    """Calls of this run that failed for good. The next run makes them again."""
    errors: dict[str, str] = field(default_factory=dict)
    """For each worker, why its latest failed call failed."""
    refusal: str | None = None
    """Why no more calls are made; None: all calls were made."""
    left_out: tuple[str, ...] = ()
    """A sentence about each sort of question that is left out."""


async def record(
    pool: Pool,
    tasks: Iterable[Task],
    writer: RecordingWriter,
    *,
    split: Callable[[str], str] = split_by_hash,
    samples: int = 1,
    concurrency: int = 16,
    budget: Budget = Budget(),
    seed: str = "0",
    dispatcher: Dispatcher | None = None,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Progress:
    """Send every question `samples` times to every worker that is no tool, unless the response is saved already.

    Args:
        split: the split of a question, by its id.
        budget: of this run, grading included. A call that could exceed it waits until calls in flight have settled. If
            it still could, no more calls are made. What grading costs is known only afterwards, so the last verdicts
            may exceed the budget.
        seed: seeds the randomness of simulated workers.
        dispatcher: with a response cache or accounts. Once an account refuses a call, no more calls are made.
        on_progress: called with the progress after each call.

    Raises:
        RunMismatchError: a question with the same id was saved with another wording.
        StoreError: the file cannot be written. What was saved before stays.
    """
    # Each worker has a pool of its own, without fallbacks: a fallback's answer is not the worker's own.
    alone = [pool.subset([i]) for i, worker in enumerate(pool) if not is_tool(worker)]
    bare, left_out = bare_tasks(tasks)
    wanted = [_Job(task, one, sample) for task in bare for one in alone for sample in range(samples)]
    refuse_other_wordings(bare, writer)
    missing = [job for job in wanted if not writer.has(job.task.id, job.worker, job.sample)]
    progress = Progress(wanted=len(wanted), kept=len(wanted) - len(missing), left_out=left_out)
    run_budget = RunBudget(budget)
    shared = dispatcher or Dispatcher()
    jobs = iter(missing)

    async def work() -> None:
        for job in jobs:
            if not await run_budget.reserve(job.reservation):
                return
            usage, cost_usd = Usage(), 0.0
            try:
                rollout = await job.run(shared, seed)
                usage, cost_usd = rollout.trace.usage, rollout.trace.cost_usd + rollout.grade.cost_usd
            except BudgetError as error:
                run_budget.refuse(str(error))
                return
            finally:
                progress.usd = run_budget.settle(job.reservation, usage, cost_usd)
            if job.keep(rollout, writer, split):
                progress.kept += 1
            else:
                progress.failed += 1
                progress.errors[job.worker] = failure_of(rollout)
            on_progress(progress)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(concurrency, len(missing))):
            group.create_task(work())
    progress.refusal = run_budget.refusal
    return progress


def refuse_other_wordings(tasks: Iterable[Task], writer: RecordingWriter) -> None:
    """Raise `RunMismatchError` if a question was saved with another wording or another right answer."""
    for task in tasks:
        if writer.has_other_gold(task.id, _kept_gold(task)):
            raise RunMismatchError(
                f"Question {task.id!r} was recorded before with another right answer; give the answers of that run, or "
                "another name for the recording."
            )
        if writer.has_other_wording(task.id, task.question.text):
            raise RunMismatchError(
                f"Question {task.id!r} was recorded before with another wording; give the questions of that run, or "
                "another name for the recording."
            )


def bare_tasks(tasks: Iterable[Task]) -> tuple[list[Task], tuple[str, ...]]:
    """The tasks whose question is only a text, and a sentence about each sort of other tasks with their number."""
    bare: list[Task] = []
    left_out: Counter[str] = Counter()
    for task in tasks:
        if task.question.history:
            left_out["questions with a chat history: a recording identifies a question by its text"] += 1
        elif task.question.images:
            left_out["questions with images: a recording identifies a question by its text"] += 1
        else:
            bare.append(task)
    return bare, tuple(f"{reason} ({count})" for reason, count in left_out.items())


def failure_of(rollout: Rollout) -> str:
    """A sentence that says why there is no answer."""
    errors = (span.error for span in rollout.trace.spans if span.error is not None)
    return next(errors, rollout.trace.error or "It gave no answer.")


def recorded_question(task: Task, split: str) -> RecordedQuestion:
    """The question of a task, as a recording has it."""
    return RecordedQuestion(task.id, task.question.text, _kept_gold(task), None, split)


def _kept_gold(task: Task) -> str | None:
    return task.gold if len(task.gold) <= _LONGEST else None


class RunBudget:
    """The budget of a run. A call reserves its highest cost and, when it ends, settles what it really cost."""

    def __init__(self, budget: Budget) -> None:
        self.refusal: str | None = None
        """Why no more calls are made; None: calls may be made."""
        self._loop = asyncio.get_running_loop()
        self._ledger = Ledger(budget, None if budget.seconds is None else self._loop.time() + budget.seconds)
        self._in_flight = 0
        self._settled = asyncio.Event()

    async def reserve(self, reservation: Reservation) -> bool:
        """Reserve the cost of a call. If the budget lacks it, wait for calls in flight to settle.

        Returns:
            False if the budget refused this or an earlier call. Then no more calls are made.
        """
        while self.refusal is None:
            refusal = self._ledger.try_reserve(reservation, self._loop.time())
            if refusal is None:
                self._in_flight += 1
                return True
            if not self._in_flight:
                self.refuse(refusal)
                break
            self._settled.clear()
            await self._settled.wait()
        return False

    def add(self, cost_usd: float) -> float:
        """Count dollars that were spent without a reservation, as on grading. Returns the dollars spent so far."""
        self._ledger.usd += cost_usd
        return self._ledger.usd

    def refuse(self, sentence: str) -> None:
        """Make no more calls. Calls in flight end normally. If it is called again, the first sentence stays."""
        self.refusal = self.refusal or sentence

    def settle(self, reservation: Reservation, usage: Usage, cost_usd: float) -> float:
        """Release `reservation` and charge what the call really cost. Returns the dollars spent so far."""
        self._in_flight -= 1
        self._ledger.settle(reservation, usage, cost_usd)
        self._settled.set()
        return self._ledger.usd


@dataclass(frozen=True, slots=True)
class _Job:
    """One question for one worker."""

    task: Task
    pool: Pool
    """A pool of this worker alone."""
    sample: int

    @property
    def worker(self) -> str:
        return self.pool.names[0]

    @property
    def reservation(self) -> Reservation:
        """The highest cost of the call."""
        text = " " * _OVERHEAD_BYTES + self.task.question.text
        return first_reservation(self.pool[0], (Message(role="user", content=text),))

    async def run(self, dispatcher: Dispatcher, seed: str) -> Rollout:
        """Call the worker and grade its answer."""
        orchestrator = Orchestrator(Single(self.worker), self.pool, dispatcher=dispatcher)
        return await roll(
            orchestrator,
            self.task,
            seed=f"record/{seed}/{self.task.id}/{self.worker}/{self.sample}",
            sample=self.sample,
        )

    def keep(self, rollout: Rollout, writer: RecordingWriter, split: Callable[[str], str]) -> bool:
        """Save the answer to disk. Returns False if there is none."""
        span = rollout.trace.spans[0] if rollout.trace.spans else None
        if span is None or span.response is None:
            return False
        task = self.task
        writer.add_question(recorded_question(task, split(task.id)))
        writer.add(
            task.id,
            Response(
                worker=self.worker,
                sample=self.sample,
                text=span.response,
                answer=rollout.grade.found,
                # A response that was paid for is saved even if it could not be graded.
                score=None if rollout.grade.failure else rollout.grade.score,
                input_tokens=span.usage.input_tokens,
                output_tokens=span.usage.output_tokens,
                estimated=span.usage.estimated,
                seconds=span.seconds,
            ),
        )
        if was_simulated(span):
            writer.note_simulated(self.worker)
        writer.commit()
        return True
