"""Trains with GRPO: opens the scoring session, has an engine train, and writes the policy into the run's folder.

The engine runs in a thread, and the event loop runs the plans. With several ranks (accelerate launch), the first rank
opens the session and serves it to the others over HTTP.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from podium.calls import CallState
from podium.errors import PodiumError
from podium.rollout.data_fingerprint import DataFingerprint
from podium.rollout.run_folder import TRACES
from podium.scoring import ScoringBackend, ScoringClient, ScoringSession
from podium.scoring.service import serve_session
from podium.scoring.session import KEPT_ROLLOUTS
from podium.store import TraceStore
from podium.train.engine import TrainingEngine, TrainingJob, TrainingRun
from podium.train.metrics import check_gate
from podium.train.metrics_recorder import IterationRecorder
from podium.train.preflight import OpenCallState, locked_training_folder, open_engine, preflight
from podium.train.progress import Progress
from podium.train.rollouts import RolloutCollector, TrainingInterruptedError
from podium.train.schedule import ScheduledGroup, iteration_seeds, schedule
from podium.train.settings import GateSettings, TrainSettings
from podium.train.trained_policy import write_policy


async def run_grpo(
    settings: TrainSettings,
    folder: Path,
    *,
    make_call_state: OpenCallState = lambda pool: nullcontext(CallState()),
    run_budget_usd: float | None = None,
    on_metrics: Callable[[Mapping[str, Any]], None] = lambda row: None,
    say: Callable[[str], None] = lambda line: None,
) -> Path:
    """Train in a run folder, or resume the run in it. Returns the folder of the trained policy.

    Args:
        on_metrics: called with the row of each iteration as soon as it is written.
        say: prints a warning or a line of progress. It is called from a thread too.
        run_budget_usd: the budget that `make_call_state` enforces. A first batch that would exceed it is refused.

    Raises:
        UsageError: `preflight` refuses the run. The error names all reasons, and no worker was called.
        BudgetExceededError: the run's or day's dollars are spent. The same call continues from the newest checkpoint.
    """
    async with (
        preflight(settings, folder, run_budget_usd=run_budget_usd, on_warning=say) as checks,
        AsyncExitStack() as opened,
    ):
        run = checks.require()
        settings, ranks, questions = run.settings, run.ranks, run.questions
        say = say if ranks.is_first else lambda line: None
        data = DataFingerprint.of(questions.tasks.values(), run.pool) if ranks.is_first else None
        run_folder = ranks.run_on_first(
            lambda: opened.enter_context(locked_training_folder(folder, settings, data=data))
        )
        tasks, eval_tasks = ranks.broadcast((list(questions.tasks), list(questions.eval_tasks)))
        groups = schedule(settings, tasks)
        async with open_scoring(run, groups, make_call_state) as scoring:
            with Progress(say, noun="plans", total=settings.plans_with(len(eval_tasks))) as progress:
                progress.phase("loading the model")
                recorder = IterationRecorder(
                    settings, run=run_folder, progress=progress, on_metrics=on_metrics
                )
                job = make_job(run, scoring, groups, eval_tasks, recorder)
                await run_in_thread(open_engine(settings), job)
        if ranks.is_first:
            write_policy(folder, settings, run.start, run.pool)
        say(f"The trained policy is in {folder / 'policy'}")
        return folder / "policy"


def make_job(
    run: TrainingRun,
    scoring: ScoringBackend,
    groups: Sequence[ScheduledGroup],
    eval_tasks: Sequence[str],
    recorder: IterationRecorder,
) -> TrainingJob:
    """Make the job that an engine trains on this rank. Plans run in the event loop that runs now."""
    settings, grpo = run.settings, run.settings.grpo
    offered = run.pool.subset(settings.pool_sampling.offered(run.pool))
    rollouts = RolloutCollector(
        scoring,
        asyncio.get_running_loop(),
        run.codec,
        rounds=settings.rounds,
        discount=grpo.discount,
        max_prompt_tokens=run.start.context - grpo.max_tokens,
        ranks=run.ranks,
        stop=threading.Event(),
        workers_here=any(worker.computes_here for worker in offered),
        on_plan=lambda tokens: recorder.progress.advance(1, tokens),
        gate=None if grpo.gate == GateSettings() else partial(check_gate, settings, offered.names),
    )
    return TrainingJob(run, groups, rollouts, recorder, eval_tasks)


@asynccontextmanager
async def open_scoring(
    run: TrainingRun, groups: Sequence[ScheduledGroup], make_call_state: OpenCallState
) -> AsyncIterator[ScoringBackend]:
    """Open what scores the plans of this rank: on the first one a session, which it serves to others if there are any.

    Raises:
        PodiumError: the first rank could not open it. Every rank raises the error.
    """
    settings, ranks = run.settings, run.ranks
    if not ranks.is_first:
        invitation: tuple[str, str] | PodiumError | None = ranks.broadcast(None)
        if isinstance(invitation, PodiumError):
            raise invitation
        assert invitation is not None
        url, key = invitation
        async with ScoringClient(url, key=key, settings=settings) as client:
            yield client
        return
    async with AsyncExitStack() as opened:
        invitation = None
        try:
            store = opened.enter_context(TraceStore(run.folder / TRACES))
            session = ScoringSession(
                settings,
                run.questions.tasks,
                run.pool,
                opened.enter_context(make_call_state(run.pool)),
                eval_tasks=run.questions.eval_tasks,
                kept_rollouts=max(settings.batch, KEPT_ROLLOUTS),
                seeds=iteration_seeds(groups, settings.seed),
                on_trace=store.add,
            )
            if ranks.size > 1:
                key = secrets.token_urlsafe()
                url = await opened.enter_async_context(
                    serve_session(session, host=ranks.listen_address, key=key, flush=store.flush)
                )
                invitation = ranks.reachable(url), key
        except PodiumError as error:
            invitation = error
            raise
        finally:
            ranks.broadcast(invitation)
        yield session


async def run_in_thread(engine: TrainingEngine[TrainingJob], job: TrainingJob) -> None:
    """Train in a thread while this loop runs plans. On cancellation, tell the engine to stop, and wait for it."""
    training = asyncio.ensure_future(asyncio.to_thread(engine.train, job))
    try:
        await asyncio.shield(training)
    except asyncio.CancelledError:
        job.rollouts.stop.set()
        await asyncio.wait([training])
        if (
            not training.cancelled()
            and (error := training.exception())
            and not isinstance(error, TrainingInterruptedError)
        ):
            raise error from None
        raise
