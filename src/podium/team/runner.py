"""Answers a question: the planner writes a plan, the executor runs it, and the planner may plan again, within a budget.

The result is a trace, in which bad plans, failed planners and failed workers are data. Cancellation, storage
errors and bugs are raised. Nothing here grades, stores or prints.
"""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Self

from podium import __version__
from podium.calls import Dispatcher, Ledger
from podium.errors import UsageError
from podium.executor import ExecutionSettings, QuestionContext, make_fence_mark
from podium.planner import Planner
from podium.planners.voting import Single
from podium.team.events import Event
from podium.team.question_run import QuestionRun
from podium.trace import Plan, Trace
from podium.types import Budget, Question, Receipt
from podium.workers.pool import Pool

_PYTHON = platform.python_version()


@dataclass(frozen=True, eq=False)
class Runner:
    """Answers questions, any number at a time. `dataclasses.replace` makes a runner that differs in some parts."""

    planner: Planner
    """Writes the plans."""
    pool: Pool
    """The workers that plans may use. The caller closes it."""
    _: KW_ONLY
    budget: Budget = Budget()
    """Limits for each question."""
    max_steps: int = 5
    """The most steps that the planner may use; the budget limits calls."""
    settings: ExecutionSettings = field(default_factory=ExecutionSettings)
    """How workflows are run."""
    dispatcher: Dispatcher = field(default_factory=Dispatcher)
    """Shared by all runners over the same workers. Its spend limits are charged for these questions."""
    overlap: bool = False
    """Whether steps start while the rest of the plan is being written, by planners that stream their steps
    (`streams_steps`). A step that nothing turns out to need is cancelled, and paid as far as it came."""
    tells_must_load: bool = False
    """Whether planners are told which models would first have to be loaded (`PlanRequest.must_load`). Plans then depend
    on the moment, which is for users' questions only."""
    plan_fallback: str | None = None
    """The worker that answers a question when planning fails in the first round. None, or a name that the pool lacks:
    such a question fails, which is what training and evaluation need."""

    @classmethod
    def alone(cls, worker: str, pool: Pool, dispatcher: Dispatcher) -> Self:
        """One worker of `pool` that answers each question alone, also without its fallback, which is another worker."""
        return cls(Single(worker), pool.subset([pool.names.index(worker)]), dispatcher=dispatcher)

    @property
    def versions(self) -> dict[str, str]:
        """The versions of the programs, for its traces."""
        return {"podium": __version__, "python": _PYTHON}

    async def answer(
        self,
        question: Question,
        *,
        seed: str = "0",
        sample: int = 0,
        trace_id: str | None = None,
        on_event: Callable[[Event], None] | None = None,
        streams: bool = False,
    ) -> Trace:
        """Answer `question`; what fails on the way is in the trace, not raised.

        Args:
            question: its text must not be blank.
            seed: seeds all randomness. Give users' questions a random seed: it also makes the marks that fence workers'
                texts, which must not be predictable.
            sample: the number of this answer among independent answers to the question; a response cache keeps the
                answers of each number apart.
            trace_id: 32 hexadecimal digits; None: a new id.
            on_event: called with each event. Must be quick.
            streams: whether `StepText` events carry the answer while it is written, by workers that stream. Only the
                last round that the budget allows is streamed, since after any other the planner may plan again.

        Raises:
            UsageError: the question is empty.
            asyncio.CancelledError: the caller cancelled it; every call in flight was cancelled.
            TraceStoreError: a spend limit or the response cache cannot be used, so no further call was made. Its
                `trace`, which `on_event` was sent too, has what was answered and paid until then.
        """
        context = replace(self._context(question, seed), sample=sample, streams=streams, observe=on_event)
        run = self._run(context, on_event, trace_id)
        with run.traced():
            for number in range(self.budget.rounds):
                if run.out_of_budget:
                    break
                async with run.overlapped(number) as overlapped:
                    plan = await run.plan_round(number, overlapped=overlapped)
                    round_ = await run.begin_round(number, plan, overlapped)
                    if round_.workflow is None:
                        break
                    with run.recorded(number, round_, round_.workflow, overlapped) as execution:
                        await (execution.run() if overlapped is None else overlapped.ended)
                if run.is_over:
                    break
        return run.trace

    async def dry_run(self, question: Question, *, seed: str = "0", trace_id: str | None = None) -> Trace:
        """Write the first plan for `question` and run nothing: a trace with the status "planned", or "failed".

        Raises:
            UsageError, asyncio.CancelledError, TraceStoreError: as `answer`.
        """
        run = self._run(self._context(question, seed), trace_id=trace_id)
        with run.traced():
            run.only_planned(await run.plan_round(0))
        return run.trace

    async def write_plan(
        self, question: Question, *, seed: str = "0", receipt: Receipt | None = None
    ) -> Plan:
        """Write the first plan for `question`, run nothing, and make no trace.

        Args:
            receipt: gets what the plan cost, also if there is none.

        Raises:
            UsageError: the question is empty.
            StoreError: a spend limit cannot be used.
            WorkerError: the planner's model did not answer, or the budget refuses the plan (kind "budget").
        """
        context = self._context(question, seed)
        with context.ledger.receipt(receipt):
            return await self._run(context).plan_round(0, strict=True)

    def _context(self, question: Question, seed: str) -> QuestionContext:
        if not question.text.strip():
            raise UsageError("The question is empty: write what you want answered.")
        now, seconds = asyncio.get_running_loop().time(), self.budget.seconds
        fence_mark = make_fence_mark(seed, question)
        return QuestionContext(
            question=question,
            pool=self.pool,
            seed=seed,
            fence_mark=fence_mark,
            queue_key=fence_mark,
            ledger=Ledger(
                self.budget, None if seconds is None else now + seconds, self.dispatcher.spend_limits
            ),
            dispatcher=self.dispatcher,
            settings=self.settings,
            started=now,
        )

    def _run(
        self,
        context: QuestionContext,
        on_event: Callable[[Event], None] | None = None,
        trace_id: str | None = None,
    ) -> QuestionRun:
        return QuestionRun(
            self.planner,
            context,
            max_steps=self.max_steps,
            overlap=self.overlap,
            tells_must_load=self.tells_must_load,
            plan_fallback=self.plan_fallback,
            versions=self.versions,
            on_event=on_event,
            trace_id=trace_id,
        )
