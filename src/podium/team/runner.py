"""Answers a question: the planner writes a plan, the executor runs it, and the planner may plan again, within a budget.

The result is a trace, in which bad plans, failed planners and failed workers are data. Cancellation, storage
errors and bugs are raised. Nothing here grades, stores or prints.
"""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import UTC, datetime
from secrets import token_hex
from typing import Self

from podium import __version__
from podium.calls import CallState
from podium.errors import BudgetExceededError, StoreError, UsageError, WorkerError, flatten_group
from podium.executor import (
    EarlyStart,
    Execution,
    ExecutionSettings,
    QuestionContext,
    make_fence_mark,
    may_start_early,
)
from podium.planners.planner import Planner, PlanRequest, visible_steps
from podium.planners.voting import Single
from podium.spending import Ledger, SpendLimit
from podium.team.events import Event, PlanReady, QuestionEnded, RoundEnded, TraceStoreError
from podium.team.plan_check import check_plan, fallback_workflow
from podium.team.round_history import OpenRound, RoundHistory
from podium.trace import Plan, RoundTrace, Trace
from podium.types import Budget, Message, Question, Receipt, Spent, fast_replace
from podium.workers.pool import Pool
from podium.workflow import PlanError, Step, Workflow


@dataclass(frozen=True, eq=False)
class Runner:
    """Answers questions, any number at a time. `dataclasses.replace` makes a runner that differs in some parts."""

    planner: Planner
    pool: Pool
    """The workers that plans may use. The caller closes it."""
    _: KW_ONLY
    budget: Budget = Budget()
    """Limits for each question."""
    max_steps: int = 5
    """The most steps that the planner may use; the budget limits calls."""
    settings: ExecutionSettings = field(default_factory=ExecutionSettings)
    call_state: CallState = field(default_factory=CallState)
    """The call state that all runners over the same workers share. Its spend limits pay for the questions."""
    overlap: bool = False
    """Whether steps start while a planner that streams its steps (`streams_steps`) still writes the rest of the plan. A
    step that turns out to be unneeded is cancelled, and paid so far."""
    shows_unloaded_models: bool = False
    """Whether planners are told which models would first have to be loaded (`PlanRequest.unloaded_models`)."""
    plan_fallback: str | None = None
    """The worker that answers a question when planning fails in the first round. If the pool lacks it, such a question
    fails."""

    @classmethod
    def for_single_worker(cls, worker: str, pool: Pool, call_state: CallState) -> Self:
        """A runner in which one worker of `pool` answers each question alone, without its fallback."""
        return cls(Single(worker), pool.subset([pool.names.index(worker)]), call_state=call_state)

    def for_evaluation(self) -> Self:
        """This runner for answers that are compared: no plan begins early, depends on the moment or is replaced."""
        return replace(self, overlap=False, shows_unloaded_models=False, plan_fallback=None)

    def for_one_plan(self, planner: Planner, pool: Pool | None = None, budget: Budget | None = None) -> Self:
        """This runner for a plan that `planner` has ready: one round, and no worker answers in place of the plan."""
        return replace(
            self,
            planner=planner,
            pool=self.pool if pool is None else pool,
            budget=(budget or self.budget).model_copy(update={"rounds": 1}),
            plan_fallback=None,
        )

    def with_spend_limits(self, *spend_limits: SpendLimit) -> Self:
        """This runner with further spend limits, which every question is paid from too."""
        return replace(self, call_state=self.call_state.with_spend_limits(*spend_limits))

    @property
    def versions(self) -> dict[str, str]:
        """The versions of Podium and Python, for traces."""
        return {"podium": __version__, "python": platform.python_version()}

    async def answer(
        self,
        question: Question,
        *,
        seed: str = "0",
        sample: int = 0,
        trace_id: str | None = None,
        on_event: Callable[[Event], None] | None = None,
        streams: bool = False,
        after: Trace | None = None,
        conversation: tuple[Message, ...] | None = None,
    ) -> Trace:
        """Answer `question`. Failed plans and workers are in the trace and are not raised.

        Args:
            question: its text must not be blank.
            seed: seeds all randomness. Give users' questions a random seed: it also makes the marks that fence workers'
                texts, which must not be predictable.
            sample: the number of this answer among independent answers to the question; a response cache keeps the
                answers of each number apart.
            trace_id: 32 hexadecimal digits. Default: a new id.
            on_event: called with each event. It must be quick.
            streams: whether `StepText` events carry the answer while it is written, by workers that stream. Only the
                last round that the budget allows is streamed, since after any other the planner may plan again.
            after: an answer by this pool to go on from. Its rounds count against `budget.rounds`; its calls, tokens,
                dollars and seconds do not count.
            conversation: messages in place of the question and its history, for a worker that is called directly.

        Raises:
            UsageError: the question is empty.
            asyncio.CancelledError: the caller cancelled it; every call in flight was cancelled.
            TraceStoreError: a spend limit or the response cache cannot be used, so no further call was made. Its
                `trace`, which `on_event` was sent too, has what was answered and paid until then.
        """
        run = _QuestionInProgress(
            self,
            question,
            seed,
            after,
            sample=sample,
            trace_id=trace_id,
            on_event=on_event,
            streams=streams,
            conversation=conversation,
        )
        with run.tracing():
            for number in range(0 if after is None else len(after.rounds), self.budget.rounds):
                if not run.may_plan:
                    break
                round_ = run.begin_round(number)
                if run.overlaps:
                    await run.run_while_planning(round_)
                else:
                    execution = run.take_plan(round_, await run.plan(round_))
                    run.emit_plan(round_)
                    await execution.run()
                run.record_round()
        return run.trace

    async def dry_run(
        self,
        question: Question,
        *,
        seed: str = "0",
        trace_id: str | None = None,
        on_event: Callable[[Event], None] | None = None,
    ) -> Trace:
        """Write the first plan for `question` and run nothing: a trace with the status "planned", or "failed".
        Arguments and errors are those of `answer`."""
        run = _QuestionInProgress(self, question, seed, trace_id=trace_id, on_event=on_event, is_dry=True)
        with run.tracing():
            round_ = run.begin_round(0)
            round_.planned = RoundTrace(plan=await run.plan(round_))
        return run.trace

    async def write_plan(
        self, question: Question, *, seed: str = "0", receipt: Receipt | None = None
    ) -> Plan:
        """Write the first plan for `question`, run nothing, and make no trace. The receipt gets what planning cost,
        also if planning failed.

        Raises:
            WorkerError: the planner's model did not answer.
            BudgetExceededError: a limit refuses the plan.
        """
        run = _QuestionInProgress(self, question, seed)
        round_ = run.begin_round(0)
        try:
            return await run.plan(round_, strict=True)
        finally:
            if receipt is not None:
                receipt.add(round_.planning.spent)


class _QuestionInProgress:
    """One question while `Runner.answer` answers it: its arguments, the rounds so far, and in the end the trace."""

    def __init__(
        self,
        runner: Runner,
        question: Question,
        seed: str,
        after: Trace | None = None,
        *,
        sample: int = 0,
        trace_id: str | None = None,
        on_event: Callable[[Event], None] | None = None,
        streams: bool = False,
        conversation: tuple[Message, ...] | None = None,
        is_dry: bool = False,
    ) -> None:
        if not question.text.strip():
            raise UsageError("The question is empty: write what you want answered.")
        now, seconds = asyncio.get_running_loop().time(), runner.budget.seconds
        deadline = None if seconds is None else now + seconds
        self._runner = runner
        overlaps = runner.overlap and runner.planner.streams_steps
        self.overlaps = overlaps and may_start_early(runner.pool, runner.settings, question)
        fence_mark = make_fence_mark(seed, question)
        self._on_event = on_event or (lambda event: None)
        self._context = QuestionContext(
            question=question,
            conversation=conversation,
            pool=runner.pool,
            seed=seed,
            sample=sample,
            fence_mark=fence_mark,
            queue_key=fence_mark,
            ledger=Ledger(runner.budget, deadline, runner.call_state.spend_limits),
            call_state=runner.call_state,
            settings=runner.settings,
            started=now if after is None else now - after.seconds,
            streams=streams and on_event is not None,
            on_event=self._on_event,
            requests=[] if after is None else [(span.worker, span.messages) for span in after.spans],
        )
        self._trace_id = trace_id or token_hex(16)
        self._began = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._history = RoundHistory(runner.pool, () if after is None else after.rounds)
        self._round: OpenRound | None = None
        self._is_dry = is_dry
        self.trace: Trace

    async def plan(
        self,
        round_: OpenRound,
        on_steps: Callable[[tuple[Step, ...]], None] | None = None,
        *,
        strict: bool = False,
    ) -> Plan:
        """The plan of a round. If planning fails or the plan cannot run, its decision is a `PlanError`. Where it is
        `strict`, the planner's `WorkerError` or `BudgetExceededError` is raised."""
        context, planner, ledger = self._context, self._runner.planner, round_.planning
        tells_unloaded = self._runner.shows_unloaded_models
        request = PlanRequest(
            question=context.question,
            pool=context.profiles,
            earlier_rounds=round_.earlier_rounds,
            max_steps=self._runner.max_steps,
            rounds_left=self._runner.budget.rounds - round_.number,
            seed=f"{context.seed}/{round_.number}/plan",
            unloaded_models=context.call_state.unloaded_models(context.pool) if tells_unloaded else (),
            call_context=fast_replace(context, ledger=ledger),
            attempts=round_.attempts,
            on_steps=on_steps,
        )
        limit = asyncio.timeout_at(ledger.deadline)
        try:
            async with limit:
                plan = await planner.plan(request)
        except TimeoutError:
            if not limit.expired():
                raise
            plan = Plan("", PlanError("time_is_up", ledger.time_is_up))
        except (WorkerError, BudgetExceededError) as error:
            if strict:
                raise
            kind = "budget_exceeded" if isinstance(error, BudgetExceededError) else "planner_failed"
            plan = Plan("", PlanError(kind, f"{planner.name}: {error}"))
        else:
            if plan.spent != Spent() and ledger.spent == Spent():
                raise RuntimeError(f"{planner.name} paid without the ledger.")
            options, later_round = context.question.options, round_.number > 0
            invalid = check_plan(plan.decision, context.pool, options, later_round=later_round)
            plan = plan if invalid is None else replace(plan, decision=invalid)
        return round_.measured(plan, context.elapsed())

    @contextmanager
    def tracing(self) -> Iterator[None]:
        """Make the trace of what the block does, also if the block is cancelled or storage fails."""
        try:
            yield
        except asyncio.CancelledError:
            self._end(cancelled=True)
            raise
        except StoreError as failure:
            raise TraceStoreError(failure, self._end(storage_error=str(failure))) from failure
        except BaseExceptionGroup as errors:
            first, *others = flatten_group(errors)
            if isinstance(first, StoreError) and all(isinstance(error, StoreError) for error in others):
                raise TraceStoreError(first, self._end(storage_error=str(first))) from None
            if others:
                raise
            raise first from first.__cause__
        self._end()

    @property
    def may_plan(self) -> bool:
        """Whether there is another round, if the budget has one left."""
        history = self._history
        if history.is_over:
            return False
        # Planners of several rounds may still choose an answer, which costs nothing.
        return not history.rounds or not self._context.ledger.exhausted or self._runner.planner.rounds > 1

    def begin_round(self, number: int) -> OpenRound:
        """The next round, whose plan is not written yet."""
        began, planning = self._context.elapsed(), self._context.ledger.part()
        self._round = OpenRound(number, self._history.earlier_rounds, began, planning)
        return self._round

    def take_plan(self, round_: OpenRound, plan: Plan) -> Execution:
        """Record the plan, and make its execution, which has no steps if there is no workflow to run."""
        runner, early_start = self._runner, round_.early_start
        fallback = fallback_workflow(plan.decision, runner.pool, runner.plan_fallback)
        trace = round_.planned = RoundTrace(plan=plan, fallback=None if round_.number else fallback)
        workflow = trace.workflow or Workflow(())
        round_.execution = Execution(
            self._context,
            workflow,
            self._history.round_context,
            max_tokens=trace.max_tokens,
            shown=visible_steps(plan, round_.earlier_rounds),
            started_steps={} if early_start is None else early_start.keep(workflow),
        )
        return round_.execution

    def emit_plan(self, round_: OpenRound) -> None:
        """Send the event of the plan, before those of its steps."""
        assert round_.planned is not None
        self._on_event(PlanReady(round_.number, round_.with_abandoned(round_.planned)))

    async def run_while_planning(self, round_: OpenRound) -> None:
        """Run the first steps of a plan while the rest is being written, and then the others."""
        early_start = round_.early_start = EarlyStart(self._context, self._history.round_context)
        async with early_start:
            execution = self.take_plan(round_, await self.plan(round_, early_start.extend))
            await early_start.wait_until_cancelled()
            self.emit_plan(round_)
            early_start.release_events()
            await execution.run()

    def record_round(self) -> None:
        """Record the round under way as far as it came."""
        round_, self._round = self._round, None
        if round_ is None or round_.is_untouched:
            return
        history, execution, trace = self._history, round_.execution, round_.planned
        if trace is None:  # The round was cancelled, or storage failed, while its plan was being written.
            plan = Plan("", PlanError("cancelled", "The question was cancelled."))
            trace = RoundTrace(plan=round_.measured(plan, self._context.elapsed()))
        trace = round_.with_abandoned(trace)
        if trace.workflow is None or execution is None:
            trace = history.add(trace)
        else:
            trace = history.add_run(trace, trace.workflow, execution.spans)
        self._on_event(RoundEnded(round_.number, trace))

    def _end(self, *, cancelled: bool = False, storage_error: str | None = None) -> Trace:
        """Make the trace of the question as far as it came. `storage_error` is why storage stopped it."""
        self.record_round()
        context, runner = self._context, self._runner
        status, error = self._history.status(storage_error)
        if cancelled:
            status, error = "cancelled", "The question was cancelled."
        elif self._is_dry and error is None:
            status, error = "planned", "The plan was not run."
        self.trace = Trace(
            id=self._trace_id,
            question=context.question,
            pool=context.profiles,
            planner=runner.planner.name,
            seed=context.seed,
            budget=runner.budget,
            max_steps=runner.max_steps,
            layout=context.settings.layout,
            early_stop=context.settings.early_stop,
            rounds=tuple(self._history.rounds),
            answer=self._history.answer,
            status=status,
            error=error,
            started_at=self._began,
            seconds=context.elapsed(),
            versions=dict(runner.versions),
        )
        self._on_event(QuestionEnded(self.trace))
        return self.trace
