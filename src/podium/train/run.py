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

from podium.calls import Dispatcher
from podium.errors import PodiumError
from podium.rollout.data_fingerprint import DataFingerprint
from podium.rollout.run_folder import TRACES
from podium.scoring import Client, ScoringBackend, ScoringSession
from podium.scoring.service import serve_session
from podium.store import TraceStore
from podium.train.engine import TrainingEngine, TrainingJob
from podium.train.metrics import check_gate
from podium.train.metrics_recorder import Recorder
from podium.train.opening import open_engine, open_ranks
from podium.train.policy_evaluation import evaluate_policy
from podium.train.preflight import PreparedTraining, open_client, preflight
from podium.train.progress import Progress
from podium.train.ranks import Ranks
from podium.train.rollouts import RolloutCollector, Sampler, TrainingInterruptedError
from podium.train.schedule import IterationSeeds, schedule
from podium.train.settings import GateSettings, TrainSettings
from podium.train.trained_policy import resolve, write_policy
from podium.train.training_folder import DispatcherFactory, hold_training_folder


async def run_grpo(
    settings: TrainSettings,
    folder: Path,
    *,
    make_dispatcher: DispatcherFactory = lambda pool: nullcontext(Dispatcher()),
    run_budget_usd: float | None = None,
    on_metrics: Callable[[Mapping[str, Any]], None] = lambda row: None,
    say: Callable[[str], None] = lambda line: None,
) -> Path:
    """Train in a run folder, or resume the run in it. Returns the folder of the trained policy.

    Args:
        on_metrics: called with the row of each iteration as soon as it is written.
        say: prints a warning or a line of progress. It is called from a thread too.
        run_budget_usd: the budget that `make_dispatcher` enforces. A first batch that would exceed it is refused.

    Raises:
        UsageError: `preflight` refuses the run. The error names all reasons, and no worker was called.
        BudgetError: the dollars of the run or the day are spent. The same call continues from the newest checkpoint.
    """
    settings = resolve(settings)
    engine = open_engine(settings.engine)
    ranks = open_ranks(settings)
    tell = say if ranks.is_first else lambda line: None
    async with (
        preflight(
            settings,
            folder,
            ranks=ranks.size,
            calls_workers=ranks.is_first,
            run_budget_usd=run_budget_usd,
            on_warning=tell,
        ) as checks,
        AsyncExitStack() as opened,
    ):
        ranks.run_on_first(checks.require)
        prepared = checks.require()
        local = ranks.is_first and settings.scoring_url is None  # A scoring service has its own questions.
        run = ranks.run_on_first(
            lambda: opened.enter_context(
                hold_training_folder(
                    folder,
                    settings,
                    data=DataFingerprint.of(prepared.tasks.values(), prepared.pool) if local else None,
                )
            )
        )
        dispatcher = None
        if settings.scoring_url is None:
            dispatcher = ranks.run_on_first(lambda: opened.enter_context(make_dispatcher(prepared.pool)))
        async with open_scoring(
            settings, prepared, dispatcher=dispatcher, folder=folder, ranks=ranks
        ) as scored:
            with Progress(
                tell, noun="plans", total=settings.plans_with(len(prepared.eval_tasks))
            ) as progress:
                progress.phase("loading the model")
                recorder = Recorder(settings, run=run, progress=progress, on_metrics=on_metrics)
                job = make_job(settings, folder, prepared, scored, ranks=ranks, recorder=recorder)
                await run_in_thread(engine, job)
        if ranks.is_first:
            write_policy(folder, settings, prepared.start, prepared.pool)
        tell(f"The trained policy is in {folder / 'policy'}")
        return folder / "policy"


ScoredTasks = tuple[ScoringBackend, Sequence[str], Sequence[str]]
"""A scoring session, and the ids of the training questions and of the validation questions that it can score."""


def make_job(
    settings: TrainSettings,
    folder: Path,
    prepared: PreparedTraining,
    scored: ScoredTasks,
    *,
    ranks: Ranks,
    recorder: Recorder,
) -> TrainingJob:
    """Make the job that an engine trains on this rank. Plans run in the event loop that runs now."""
    scoring, tasks, eval_tasks = scored
    offered = prepared.pool.subset(settings.pool_sampling.offered(prepared.pool))
    gate = partial(check_gate, settings, offered.names)
    rollouts = RolloutCollector(
        scoring,
        asyncio.get_running_loop(),
        prepared.codec,
        rounds=settings.rounds,
        discount=settings.grpo.discount,
        max_prompt_tokens=prepared.start.context - settings.grpo.max_tokens,
        ranks=ranks,
        stop=threading.Event(),
        on_plan=lambda tokens: recorder.progress.advance(1, tokens),
        gate=None if settings.grpo.gate == GateSettings() else gate,
    )
    batch_size = max(1, settings.batch // ranks.size // settings.rounds)

    def evaluate(sampler: Sampler) -> dict[str, Any]:
        return evaluate_policy(
            rollouts, eval_tasks, seed=settings.seed, batch_size=batch_size, sampler=sampler
        )

    return TrainingJob(
        settings,
        folder,
        initial_checkpoint=prepared.start,
        tokenizer=prepared.tokenizer,
        groups=schedule(settings, tasks),
        rollouts=rollouts,
        recorder=recorder,
        evaluate=evaluate if eval_tasks else None,
    )


@asynccontextmanager
async def open_scoring(
    settings: TrainSettings,
    prepared: PreparedTraining,
    *,
    dispatcher: Dispatcher | None,
    folder: Path,
    ranks: Ranks,
) -> AsyncIterator[ScoredTasks]:
    """Open the scoring session for the plans of this rank.

    If the configuration names a scoring service, all ranks use it. Otherwise the first rank opens a session in its own
    process, and serves it to other ranks if there are any.

    Args:
        dispatcher: calls the workers of the first rank's session. None on a rank that opens no session.
    """
    if settings.scoring_url is not None:
        async with open_client(settings) as client:
            yield client, await client.task_ids(), ()
    elif ranks.is_first:
        assert dispatcher is not None
        tasks, eval_tasks = list(prepared.tasks), list(prepared.eval_tasks)
        async with AsyncExitStack() as opened:
            invitation: object = None
            try:
                store = opened.enter_context(TraceStore(folder / TRACES))
                session = ScoringSession(
                    settings,
                    prepared.tasks,
                    prepared.pool,
                    dispatcher,
                    eval_tasks=prepared.eval_tasks,
                    seeds=IterationSeeds(schedule(settings, tasks), settings.seed),
                    on_trace=store.add,
                )
                if ranks.size > 1:
                    key = secrets.token_urlsafe()
                    url = await opened.enter_async_context(
                        serve_session(session, host=ranks.listen_address, key=key, flush=store.flush)
                    )
                    invitation = ranks.reachable(url), key, tasks, eval_tasks
            except PodiumError as error:
                invitation = error
                raise
            finally:
                ranks.broadcast(invitation)
            yield session, tasks, eval_tasks
    else:
        invitation = ranks.broadcast(None)
        if isinstance(invitation, PodiumError):
            raise invitation
        assert isinstance(invitation, tuple)
        url, key, tasks, eval_tasks = invitation
        async with Client(url, key=key, settings=settings) as client:
            yield client, tasks, eval_tasks


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
