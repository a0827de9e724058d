"""Makes a recording from live workers: sends every question of a task set to each worker and grades the answers.

Each answer is saved at once. If a kill or the budget stops a recording, the next run continues it. Questions with a
chat history or with images are left out, because a recording identifies a question by its text alone.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from podium.calls import Dispatcher
from podium.errors import RunMismatchError
from podium.evals.ratings.asking import AskingProgress, RunBudget
from podium.recordings import RecordedQuestion, RecordedResponse, RecordingWriter, split_by_hash
from podium.tasks.task import Task
from podium.team import Runner
from podium.trace import Span, Trace
from podium.types import Budget
from podium.workers.pool import Pool
from podium.workers.traits import is_tool

_LONGEST = 10_000
"""Most characters of a gold answer that is saved. Tests of programs are longer; the verdicts are saved without them."""


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
    on_progress: Callable[[AskingProgress], None] = lambda progress: None,
) -> AskingProgress:
    """Send every question `samples` times to every worker that is no tool, unless the response is saved already. A
    response that was saved without a verdict is graded.

    Args:
        split: the split of a question, by its id.
        budget: of this run, grading included (`RunBudget`).
        seed: seeds what workers draw.
        dispatcher: with a response cache or spend limits. Once a spend limit refuses a call, no more calls are made.
        on_progress: called with the progress before the first call and after each.

    Raises:
        RunMismatchError: a question with the same id was saved with another wording.
        StoreError: the file cannot be written. What was saved before stays.
    """
    # Each worker has a pool of its own, without fallbacks: a fallback's answer is not the worker's own.
    alone = [pool.subset([i]) for i, worker in enumerate(pool) if not is_tool(worker)]
    bare, left_out = bare_tasks(tasks)
    wanted = [_Job(task, one, sample) for task in bare for one in alone for sample in range(samples)]
    refuse_other_wordings(bare, writer)
    missing = [job for job in wanted if not job.is_done(writer)]
    progress = AskingProgress(wanted=len(wanted), kept=len(wanted) - len(missing), left_out=left_out)
    on_progress(progress)
    jobs = iter(missing)

    async def work() -> None:
        for job in jobs:
            await asyncio.sleep(0)  # Questions that wait for dollars come before this one.
            saved = writer.find(job.task.id, job.worker, job.sample, None)
            if run_budget.refusal is not None or (saved is None and not run_budget.take_call()):
                return
            if saved is None:
                trace = await job.ask(run_budget, seed)
                saved = job.keep(trace, writer, split)
                if saved is None and not run_budget.refused():
                    progress.fail(job.worker, trace)
            if saved is not None:
                progress.kept += await job.grade(saved, run_budget, writer)
            progress.usd, progress.worker = run_budget.spent_usd, job.worker
            on_progress(progress)

    with RunBudget(budget, dispatcher or Dispatcher()) as run_budget:
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


def recorded_question(task: Task, split: str) -> RecordedQuestion:
    """The question of a task, as a recording has it."""
    return RecordedQuestion(task.id, task.question.text, _kept_gold(task), None, split)


def _kept_gold(task: Task) -> str | None:
    return task.gold if len(task.gold) <= _LONGEST else None


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

    def is_done(self, writer: RecordingWriter) -> bool:
        """Whether its response and its verdict are saved."""
        saved = writer.find(self.task.id, self.worker, self.sample, None)
        return saved is not None and saved.score is not None

    async def ask(self, run_budget: RunBudget, seed: str) -> Trace:
        """Call the worker."""
        return await Runner.alone(self.worker, self.pool, run_budget.dispatcher).answer(
            self.task.question,
            seed=f"record/{seed}/{self.task.id}/{self.worker}/{self.sample}",
            sample=self.sample,
        )

    def keep(
        self, trace: Trace, writer: RecordingWriter, split: Callable[[str], str]
    ) -> RecordedResponse | None:
        """Save the answer to disk, before it is graded: it is paid for. Returns None if there is none."""
        span = trace.spans[0] if trace.spans else None
        if span is None or span.response is None:
            return None
        writer.add_question(recorded_question(self.task, split(self.task.id)))
        response = _response(self.worker, self.sample, span, span.response)
        writer.add(self.task.id, response)
        writer.commit()
        return response

    async def grade(self, response: RecordedResponse, run_budget: RunBudget, writer: RecordingWriter) -> bool:
        """Grade a saved answer and save the verdict; one that cannot be graded stays without. Returns False if the
        budget refused it."""
        grade = await run_budget.grade(self.task, response.text)
        if grade is not None and grade.failure is None:
            writer.judge(self.task.id, replace(response, answer=grade.found), grade.score)
            writer.commit()
        return grade is not None


def _response(worker: str, sample: int, span: Span, text: str) -> RecordedResponse:
    return RecordedResponse(
        worker=worker,
        sample=sample,
        text=text,
        input_tokens=span.usage.input_tokens,
        output_tokens=span.usage.output_tokens,
        estimated=span.usage.estimated,
        seconds=span.seconds,
    )
