"""Makes a recording from live workers: each is asked every question of a task set, and its answer is graded.

What is done is kept at once, so that a recording that was stopped, by a kill or by its budget, goes on where it was.
A question with a past or with images is not asked: a recording knows a question by its text alone.
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
from podium.executor.worker_call import reservation_for
from podium.orchestrator import Orchestrator
from podium.recordings import RecordedQuestion, RecordingWriter, Response, split_by_hash, was_simulated
from podium.rollout.rollout import Rollout, roll
from podium.tasks.task import Task
from podium.types import Budget, Usage, estimate_tokens
from podium.workers.calculator import CalculatorWorker
from podium.workers.code import CodeWorker
from podium.workers.pool import Pool
from podium.workers.vote import VoteWorker

_TOOLS = VoteWorker, CalculatorWorker, CodeWorker
"""They answer no questions of their own."""
_LONGEST = 10_000
"""Characters of a gold answer that is kept. Tests of programs are longer, and verdicts stand without them."""
_DRESS_TOKENS = 200
"""What a worker is sent besides the question, at most."""


@dataclass(slots=True)
class Progress:
    """How far a recording is."""

    wanted: int
    kept: int
    """Responses that are in the gathering, those of earlier runs included."""
    usd: float = 0.0
    failed: int = 0
    """Calls that failed for good in this run; the next one makes them again."""
    errors: dict[str, str] = field(default_factory=dict)
    """By worker, why its latest call failed."""
    refusal: str | None = None
    """Why no more calls are made; None: all were."""
    left_out: tuple[str, ...] = ()
    """Questions that a recording cannot keep, a sentence for each reason."""


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
    watch: Callable[[Progress], None] = lambda progress: None,
) -> Progress:
    """Ask every worker every question `samples` times, leaving out what is gathered already. Tools are not asked.

    Args:
        split: of a question, by its id.
        budget: of the whole run, judging included. A call that could break it waits for those in flight; if it still
            could, no more are made. What judging costs is known afterwards, so the last verdicts may pass it.
        seed: names the randomness of simulated workers.
        dispatcher: with a response cache or accounts; when an account refuses a call, no more are made.
        watch: told of progress after each call.

    Raises:
        RunMismatchError: a question was gathered in another wording.
        StoreError: the gathering cannot be written; what was kept before stays.
    """
    # Each alone: a fallback's answer is not the worker's own, and nobody wants to pay for it here.
    alone = [pool.subset([i]) for i, worker in enumerate(pool) if not isinstance(worker, _TOOLS)]
    bare, left_out = _bare(tasks)
    wanted = [_Job(task, one, sample) for task in bare for one in alone for sample in range(samples)]
    _refuse_other_wordings(bare, writer)
    missing = [job for job in wanted if not writer.has(job.task.id, job.worker, job.sample)]
    progress = Progress(wanted=len(wanted), kept=len(wanted) - len(missing), left_out=left_out)
    spend_limit = _Purse(budget)
    shared = dispatcher or Dispatcher()
    jobs = iter(missing)

    async def work() -> None:
        for job in jobs:
            if not await spend_limit.reserve(job.hold):
                return
            usage, cost_usd = Usage(), 0.0
            try:
                rollout = await job.run(shared, seed)
                usage, cost_usd = rollout.trace.usage, rollout.trace.cost_usd + rollout.grade.cost_usd
            except BudgetError as error:
                spend_limit.refuse(str(error))
                return
            finally:
                progress.usd = spend_limit.settle(job.hold, usage, cost_usd)
            if job.keep(rollout, writer, split):
                progress.kept += 1
            else:
                progress.failed += 1
                progress.errors[job.worker] = _why(rollout)
            watch(progress)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(concurrency, len(missing))):
            group.create_task(work())
    progress.refusal = spend_limit.refusal
    return progress


def _refuse_other_wordings(tasks: Iterable[Task], writer: RecordingWriter) -> None:
    for task in tasks:
        if writer.has_other_wording(task.id, task.question.text):
            raise RunMismatchError(
                f"Question {task.id!r} had another wording when it was asked before; give the questions that were "
                "asked then, or another name for the recording."
            )


def _bare(tasks: Iterable[Task]) -> tuple[list[Task], tuple[str, ...]]:
    """The tasks whose question is its text alone, and how many others there are, by what they have besides."""
    bare: list[Task] = []
    left_out: Counter[str] = Counter()
    for task in tasks:
        if task.question.history:
            left_out["questions with a past: a recording keeps bare ones"] += 1
        elif task.question.images:
            left_out["questions with images: a recording keeps bare ones"] += 1
        else:
            bare.append(task)
    return bare, tuple(f"{reason} ({count})" for reason, count in left_out.items())


def _why(rollout: Rollout) -> str:
    """Why there is no answer, in a sentence."""
    errors = (span.error for span in rollout.trace.spans if span.error is not None)
    return next(errors, rollout.trace.error or "It gave no answer.")


class _Purse:
    """The budget of a run, of which calls in flight give back what they did not need."""

    def __init__(self, budget: Budget) -> None:
        self.refusal: str | None = None
        """Why no more calls are made; None: they may be."""
        self._loop = asyncio.get_running_loop()
        self._ledger = Ledger(budget, None if budget.seconds is None else self._loop.time() + budget.seconds)
        self._in_flight = 0
        self._settled = asyncio.Event()

    async def reserve(self, hold: Reservation) -> bool:
        """Keep `hold` aside, waiting while calls are in flight; False once a call was refused: no more are made."""
        while self.refusal is None:
            refusal = self._ledger.try_reserve(hold, self._loop.time())
            if refusal is None:
                self._in_flight += 1
                return True
            if not self._in_flight:
                self.refuse(refusal)
                break
            self._settled.clear()
            await self._settled.wait()
        return False

    def refuse(self, sentence: str) -> None:
        """Make no more calls; what is in flight ends. The first sentence stays."""
        self.refusal = self.refusal or sentence

    def settle(self, hold: Reservation, usage: Usage, cost_usd: float) -> float:
        """Give back `hold` and book what the call took; returns the dollars spent so far."""
        self._in_flight -= 1
        self._ledger.settle(hold, usage, cost_usd)
        self._settled.set()
        return self._ledger.usd


@dataclass(frozen=True, slots=True)
class _Job:
    """One question to one worker."""

    task: Task
    pool: Pool
    """The worker alone."""
    sample: int

    @property
    def worker(self) -> str:
        return self.pool.names[0]

    @property
    def hold(self) -> Reservation:
        """The most that it may cost."""
        return reservation_for(
            self.pool[0], input_tokens=estimate_tokens(self.task.question.text) + _DRESS_TOKENS
        )

    async def run(self, dispatcher: Dispatcher, seed: str) -> Rollout:
        """Ask and grade."""
        orchestrator = Orchestrator(Single(self.worker), self.pool, dispatcher=dispatcher)
        return await roll(
            orchestrator,
            self.task,
            seed=f"record/{seed}/{self.task.id}/{self.worker}/{self.sample}",
            sample=self.sample,
        )

    def keep(self, rollout: Rollout, writer: RecordingWriter, split: Callable[[str], str]) -> bool:
        """Put the answer into the gathering, on the disk; False when there is none."""
        span = rollout.trace.spans[0] if rollout.trace.spans else None
        if span is None or span.response is None:
            return False
        task = self.task
        writer.add_question(
            RecordedQuestion(
                task.id,
                task.question.text,
                task.gold if len(task.gold) <= _LONGEST else None,
                None,
                split(task.id),
            )
        )
        writer.add(
            task.id,
            Response(
                worker=self.worker,
                sample=self.sample,
                text=span.response,
                answer=rollout.grade.found,
                # A response that was paid for is kept, judged or not.
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
