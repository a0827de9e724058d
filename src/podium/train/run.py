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
from podium.conductor.checkpoint import Checkpoint
from podium.errors import PodiumError
from podium.rollout.run_data import RunData
from podium.rollout.run_folder import RunFolder
from podium.scoring import Client, Scoring
from podium.scoring.service import serve_session
from podium.scoring.session import Dispatch, open_run_session
from podium.train.engine import TrainingEngine, TrainingJob, choose_engine, open_engine
from podium.train.evaluation import PolicyEvaluation
from podium.train.metrics import check_gate
from podium.train.preflight import PreparedTraining, open_client, preflight
from podium.train.progress import Progress
from podium.train.ranks import Ranks
from podium.train.recorder import Recorder
from podium.train.rollouts import PromptCodec, Rollouts, TrainingInterruptedError
from podium.train.schedule import IterationSeeds, schedule
from podium.train.settings import CHANGEABLE_ON_RESUME, GateSettings, TrainSettings
from podium.train.trained_policy import write_policy


async def run_grpo(
    settings: TrainSettings,
    folder: Path,
    *,
    dispatch: Dispatch = lambda pool: nullcontext(Dispatcher()),
    run_budget_usd: float | None = None,
    on_warning: Callable[[str], None] = lambda warning: None,
    on_row: Callable[[Mapping[str, Any]], None] = lambda row: None,
    say: Callable[[str], None] = lambda line: None,
) -> Path:
    """Train in a run folder, or resume the run that it holds. Returns the folder of the trained policy.

    Refuses what `preflight` finds before it calls a worker.

    Args:
        on_row: called with the row of each iteration as soon as it is written.
        say: prints a line of progress; called from a thread too.
        run_budget_usd: the budget that `dispatch` keeps: a first batch that would break it is refused.

    Raises:
        UsageError: what `preflight` refuses: the error itself, or one that lists them all.
        BudgetError: the dollars of the run or the day are spent; the same call goes on from the newest checkpoint.
    """
    name = choose_engine(settings)
    settings = settings.model_copy(update={"engine": name})
    engine = open_engine(name)
    ranks = engine.open_ranks()
    warn = on_warning if ranks.first else lambda warning: None
    async with preflight(
        settings,
        folder,
        ranks=ranks.size,
        asks=ranks.first,
        run_budget_usd=run_budget_usd,
        on_warning=warn,
    ) as found:
        ranks.run_on_first(found.require)
        prepared = found.require()
        local = ranks.first and settings.scoring_url is None  # A scoring service has the questions elsewhere.
        run = ranks.run_on_first(
            lambda: RunFolder.open(
                folder,
                settings,
                changeable=CHANGEABLE_ON_RESUME,
                data=RunData.of(prepared.tasks.values(), prepared.pool) if local else None,
            )
        )
        async with open_scoring(settings, prepared, dispatch=dispatch, folder=folder, ranks=ranks) as (
            scoring,
            tasks,
            evaluated,
        ):
            await train_over(
                scoring,
                engine,
                settings,
                folder,
                tasks=tasks,
                evaluated=evaluated,
                workers=prepared.pool.names,
                start=prepared.start,
                tokenizer=prepared.tokenizer,
                codec=prepared.codec,
                ranks=ranks,
                run=run,
                on_warning=warn,
                on_row=on_row,
                say=say if ranks.first else lambda line: None,
            )
        if ranks.first:
            write_policy(folder, settings, prepared.start, prepared.pool)
        return folder / "policy"


async def train_over(
    scoring: Scoring,
    engine: TrainingEngine[TrainingJob],
    settings: TrainSettings,
    folder: Path,
    *,
    tasks: Sequence[str],
    evaluated: Sequence[str] = (),
    workers: Sequence[str] = (),
    start: Checkpoint,
    tokenizer: Any,
    codec: PromptCodec,
    ranks: Ranks,
    run: RunFolder | None,
    on_warning: Callable[[str], None] = lambda warning: None,
    on_row: Callable[[Mapping[str, Any]], None] = lambda row: None,
    say: Callable[[str], None] = lambda line: None,
) -> None:
    """Have the engine train on the tasks of a scoring session, on this rank, and leave the model in `trained`.

    Args:
        tasks, evaluated: ids of the questions of training and of evaluations.
        workers: names of the workers that the gate looks for.
        run: the run's folder; None: this rank writes no rows.
    """
    with Progress(say, noun="plans", total=settings.plans) as progress:
        progress.phase("loading the model")
        rollouts = Rollouts(
            scoring,
            asyncio.get_running_loop(),
            codec,
            rounds=settings.rounds,
            discount=settings.grpo.discount,
            room=start.context - settings.grpo.max_tokens,
            ranks=ranks,
            stop=threading.Event(),
            on_plan=lambda tokens: progress.advance(1, tokens),
            gate=None if settings.grpo.gate == GateSettings() else partial(check_gate, settings, workers),
        )
        at_once = settings.batch // ranks.size // settings.rounds
        job = TrainingJob(
            settings,
            folder,
            start=start,
            tokenizer=tokenizer,
            codec=codec,
            rows=schedule(settings, tasks),
            rollouts=rollouts,
            recorder=Recorder(settings, run=run, progress=progress, on_warning=on_warning, on_row=on_row),
            evaluation=PolicyEvaluation(evaluated, rollouts, seed=settings.seed, at_once=at_once)
            if evaluated
            else None,
        )
        await run_in_thread(engine, job)


@asynccontextmanager
async def open_scoring(
    settings: TrainSettings, prepared: PreparedTraining, *, dispatch: Dispatch, folder: Path, ranks: Ranks
) -> AsyncIterator[tuple[Scoring, Sequence[str], Sequence[str]]]:
    """What scores this rank's plans, and the ids of the tasks of training and of evaluations.

    If the configuration names a scoring service, all ranks use it. Else a single rank opens a session in its own
    process; of several ranks the first opens a session and serves it to the others.
    """
    tasks, evaluated = list(prepared.tasks), list(prepared.evaluated)
    open_session = partial(
        open_run_session,
        settings,
        prepared.tasks,
        prepared.pool,
        dispatch=dispatch,
        folder=folder,
        evaluated=prepared.evaluated,
        seeds=IterationSeeds(schedule(settings, tasks), settings.seed)
        if settings.engine == "small"
        else None,
    )
    if settings.scoring_url is not None:
        async with open_client(settings) as client:
            yield client, await client.task_ids(), ()
    elif ranks.size == 1:
        async with open_session() as (session, _):
            yield session, tasks, evaluated
    elif ranks.first:
        async with AsyncExitStack() as opened:
            told: object = None
            try:
                session, store = await opened.enter_async_context(open_session())
                key = secrets.token_urlsafe()
                url = await opened.enter_async_context(
                    serve_session(session, host=ranks.listening, key=key, flush=store.flush)
                )
                told = ranks.reachable(url), key, tasks, evaluated
            except PodiumError as error:
                told = error
                raise
            finally:
                ranks.broadcast(told)
            yield session, tasks, evaluated
    else:
        served: object = ranks.broadcast(None)
        if isinstance(served, PodiumError):
            raise served
        assert isinstance(served, tuple)
        url, key, tasks, evaluated = served
        async with Client(url, key=key, settings=settings) as client:
            yield client, tasks, evaluated


async def run_in_thread(engine: TrainingEngine[TrainingJob], job: TrainingJob) -> None:
    """Train in a thread, while this loop runs plans. If cancelled, tell the engine to stop, and wait until it has."""
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
