"""Makes a recording from planners: runs their plans over live workers, and saves every distinct call as a response.

A call is distinct by its question, its worker, what the step shows, and how often the plan made it before. Another plan
that comes to the same call gets the saved response, so plans that a replay runs again find every response. Tools are
not recorded: a replay runs them. `recorder` records only bare questions.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence

from podium.errors import WorkerError
from podium.executor import Dispatcher
from podium.planner import Planner, rounds_of, tools_of
from podium.ratings.recorder import (
    RecordingProgress,
    RunBudget,
    bare_tasks,
    recorded_question,
    refuse_other_wordings,
)
from podium.recordings import RecordingWriter, Response, ShownContext, reference, split_by_hash
from podium.tasks.task import Task
from podium.team import Runner
from podium.trace import Trace
from podium.types import Budget, Limits, Profile, Usage
from podium.workers.answer import final_answer
from podium.workers.base import Reply, Request, Worker
from podium.workers.pool import Pool
from podium.workers.replay import seen_in
from podium.workers.traits import is_tool, traits_of
from podium.workers.vote import VOTE, VoteWorker


async def record_plans(
    planners: Sequence[Planner],
    pool: Pool,
    tasks: Iterable[Task],
    writer: RecordingWriter,
    *,
    seed_of: Callable[[Task], str],
    split: Callable[[str], str] = split_by_hash,
    max_steps: int = 5,
    concurrency: int = 16,
    budget: Budget = Budget(),
    dispatcher: Dispatcher | None = None,
    on_progress: Callable[[RecordingProgress], None] = lambda progress: None,
) -> RecordingProgress:
    """Run every planner on every question, and save what workers answer that is not saved yet.

    Every response is graded as an answer to the question, so that a replay can grade whatever a plan ends with.

    Args:
        seed_of: the seed of a question's rollout; a replay with this seed makes the same random plans.
        split: the split of a question, by its id.
        budget: of this run, grading included, as in `recorder.record`.
        dispatcher: with accounts, but without a response cache: the recording keeps the responses.

    Returns:
        The progress, counted in plans.

    Raises:
        RunMismatchError: a question with the same id was saved with another wording.
        StoreError: the file cannot be written. What was saved before stays.
    """
    bare, left_out = bare_tasks(tasks)
    refuse_other_wordings(bare, writer)
    progress = RecordingProgress(wanted=len(bare) * len(planners), kept=0, left_out=left_out)
    jobs = iter([(task, planner) for task in bare for planner in planners])

    async def work() -> None:
        for task, planner in jobs:
            if run_budget.refusal is not None:
                return
            writer.add_question(recorded_question(task, split(task.id)))
            runner = Runner(
                planner,
                with_vote if VOTE in tools_of(planner) else recorded,
                budget=Budget(rounds=rounds_of(planner)),
                max_steps=max_steps,
                dispatcher=run_budget.dispatcher,
                accounts=run_budget.accounts,
            )
            trace = await runner.answer(task.question, seed=seed_of(task))
            run_budget.refused()
            await calls.grade(task)
            progress.usd = run_budget.spent_usd
            writer.commit()
            if _is_whole(trace):
                progress.kept += 1
            elif run_budget.refusal is None:
                failed = {span.worker: span.error or "" for span in trace.spans if span.status == "failed"}
                progress.failed += sum(span.status == "failed" for span in trace.spans)
                progress.errors |= failed or {planner.name: trace.error or "It has no steps."}
            on_progress(progress)

    with RunBudget(budget, dispatcher or Dispatcher()) as run_budget:
        calls = _Calls(writer, {task.question.text.strip(): task for task in bare}, run_budget)
        recorded = pool.replaced(
            {worker.profile.name: _Recorded(worker, calls) for worker in pool if not is_tool(worker)}
        )
        with_vote = recorded if VOTE in pool.names else recorded.joined([VoteWorker(VOTE)])
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(work())
        progress.refusal = run_budget.refusal
    return progress


def _is_whole(trace: Trace) -> bool:
    """Whether every step that was to run has a response."""
    return bool(trace.spans) and all(span.status in ("done", "skipped") for span in trace.spans)


class _Calls:
    """The calls of all plans: those that are saved, those in flight, and those that have no score yet."""

    def __init__(self, writer: RecordingWriter, tasks: dict[str, Task], budget: RunBudget) -> None:
        self._writer = writer
        self._tasks = tasks
        self._budget = budget
        self._locks: defaultdict[tuple[str, ...], asyncio.Lock] = defaultdict(asyncio.Lock)
        self._ungraded: defaultdict[str, dict[tuple[str, ...], tuple[Response, ShownContext | None]]] = (
            defaultdict(dict)
        )

    async def answer(self, worker: Worker, request: Request, call: Callable[[], Awaitable[Reply]]) -> Reply:
        """The saved response to this call; if there is none, that of `call`, which is saved before it is returned."""
        name = worker.profile.name
        task = self._tasks[request.view.question.strip()]
        seen = seen_in(request.view, task.question.text)
        sample = request.duplicate
        # Two plans that make the same call at once share one response.
        place = task.id, name, seen.key if seen else "", str(sample)
        async with self._locks[place]:
            saved = self._writer.find(task.id, name, sample, seen)
            if saved is None:
                if not self._budget.take_call():
                    raise WorkerError(str(self._budget.refusal), kind="refused")
                clock = asyncio.get_running_loop().time
                started = clock()
                reply = await call()
                seconds = clock() - started if reply.latency_s is None else reply.latency_s
                saved = _response(name, sample, reply, seconds)
                self._writer.add(task.id, saved, seen=seen)
                self._writer.commit()
            else:
                reply = _reply(saved, reference("saved", task.id, saved, seen))
            if saved.score is None:
                self._ungraded[task.id][place] = saved, seen
        return reply

    async def grade(self, task: Task) -> None:
        """Give the responses to a question their scores; one that the grader cannot judge stays without."""
        for response, seen in self._ungraded.pop(task.id, {}).values():
            grade = await self._budget.grade(task, response.text)
            if grade is not None and grade.failure is None:
                self._writer.judge(task.id, response, grade.score, seen)


class _Recorded:
    """A live worker whose calls are saved. It has no fallback: a fallback's answer is not the worker's own."""

    identity = None
    fallback = None

    def __init__(self, worker: Worker, calls: _Calls) -> None:
        self.traits = traits_of(worker)
        self._worker = worker
        self._calls = calls

    @property
    def profile(self) -> Profile:
        return self._worker.profile

    @property
    def limits(self) -> Limits:
        return self._worker.limits

    async def answer(self, request: Request) -> Reply:
        return await self._calls.answer(self._worker, request, lambda: self._worker.answer(request))

    async def close(self) -> None:
        await self._worker.close()


def _response(worker: str, sample: int, reply: Reply, seconds: float) -> Response:
    """The reply as it is saved. A replay gives its text unchanged, since later steps were shown this text."""
    return Response(
        worker,
        sample,
        reply.text,
        answer=final_answer(reply.text),
        input_tokens=reply.usage.input_tokens,
        output_tokens=reply.usage.output_tokens,
        estimated=reply.usage.estimated,
        seconds=seconds,
    )


def _reply(saved: Response, name: str) -> Reply:
    usage = Usage(
        input_tokens=saved.input_tokens or 0,
        output_tokens=saved.output_tokens or 0,
        estimated=saved.estimated,
    )
    return Reply(saved.text, usage, latency_s=saved.seconds, recorded=name, cost_usd=0.0)
