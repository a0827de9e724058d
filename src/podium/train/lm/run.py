"""Runs the training that a configuration describes: the one place that wires session, trainer and folders together.

The trainer works in a thread; this event loop runs the plans. With several ranks (accelerate launch), the first one
holds the session and serves it to the others.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import warnings
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
    nullcontext,
)
from pathlib import Path
from typing import Any, Protocol, TypeVar

from accelerate import PartialState
from accelerate.utils import broadcast_object_list
from transformers.utils import logging

from podium.errors import ConfigError, PodiumError
from podium.executor import Dispatcher
from podium.orchestrator.team import open_pool
from podium.rollout.run_folder import RunFolder
from podium.scoring import Client, RolloutRequest, Scoring, ScoringSession, open_session
from podium.scoring.service import serve_session
from podium.trace.store import TraceStore
from podium.train.display import Display, NoDisplay
from podium.train.lm.grpo import PodiumGRPO, trl_config
from podium.train.lm.model import find_start, open_codec, open_tokenizer, podium_file, write_policy
from podium.train.lm.rollouts import PromptCodec, TrainingInterruptedError
from podium.train.lm.schedule import schedule
from podium.train.lm.settings import CHANGEABLE_ON_RESUME, LMExperiment
from podium.workers.pool import Pool
from podium.workers.redaction import read_key

T = TypeVar("T")
Dispatch = Callable[[Pool], AbstractAsyncContextManager[Dispatcher]]
"""Opens the dispatcher of a pool's workers. It is called once the run's folder is there."""

TRACES = "traces.sqlite"
"""In the run's folder: every rollout."""


class Trainer(Protocol):
    """A stage, ready to run in a thread."""

    def train(self, saved: Path) -> None: ...

    def stop(self) -> None: ...


def quiet_libraries() -> None:
    """TRL and transformers draw bars of their own, and warn of what they will rename: Podium's display is enough."""
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"(transformers|trl|peft)\.")
    warnings.filterwarnings("ignore", message=".*rollout_func.*experimental.*")
    warnings.filterwarnings("ignore", message=".*pin_memory.*")


async def run_grpo(
    experiment: LMExperiment,
    folder: Path,
    *,
    dispatch: Dispatch = lambda pool: nullcontext(Dispatcher()),
    display: AbstractContextManager[Display] | None = None,
    on_warning: Callable[[str], None] = lambda warning: None,
) -> Path:
    """Train in a run folder, or resume the run that it holds. Returns the folder of the trained policy.

    Everything that can be refused is refused before the first worker is asked.

    Raises:
        CheckpointError: the start is no checkpoint that can be trained.
        ConfigError: pool, tasks, prompts or a trainer's setting cannot be used.
        RunMismatchError: the folder belongs to another configuration.
        BudgetError: the dollars of the run or the day are spent; the same call goes on from the newest checkpoint.
    """
    state = PartialState()
    first: bool = state.is_main_process
    pool = open_pool(experiment.pool)
    try:
        start = find_start(experiment)
        tokenizer = open_tokenizer(experiment, start)
        codec = open_codec(experiment, start, tokenizer)
        config = trl_config(experiment, folder / "checkpoints", state.num_processes)
        run = on_first_rank(
            state, lambda: RunFolder.open(folder, experiment, changeable=CHANGEABLE_ON_RESUME)
        )
        async with open_scoring(
            experiment, pool, dispatch=dispatch, folder=folder, state=state, on_warning=on_warning
        ) as (scoring, tasks):
            await check_prompts(experiment, scoring, tasks, codec, start.context)
            rows = schedule(
                tasks,
                iterations=experiment.grpo.iterations,
                questions=experiment.grpo.questions,
                rounds=experiment.rounds,
                seed=experiment.seed,
            )
            with display if display is not None and first else NoDisplay() as shown:
                trainer = PodiumGRPO(
                    experiment,
                    config,
                    rows=rows,
                    start=start,
                    tokenizer=tokenizer,
                    codec=codec,
                    scoring=scoring,
                    loop=asyncio.get_running_loop(),
                    run=run if first else None,
                    display=shown,
                    on_warning=on_warning if first else lambda warning: None,
                )
                await run_in_thread(trainer, folder / "trained")
        if first:
            write_policy(
                folder / "policy",
                folder / "trained",
                start,
                podium_file(experiment, pool),
                experiment.chat_template,
            )
        return folder / "policy"
    finally:
        await pool.close()


@asynccontextmanager
async def open_scoring(
    experiment: LMExperiment,
    pool: Pool,
    *,
    dispatch: Dispatch,
    folder: Path,
    state: PartialState,
    on_warning: Callable[[str], None],
) -> AsyncIterator[tuple[Scoring, Sequence[str]]]:
    """What scores this rank's plans, and the ids of the tasks.

    A service that the configuration names scores for all ranks. Else one rank alone scores in its own process; of
    several, the first opens the session and serves it to the others.
    """
    if experiment.scoring_url is not None:
        key = experiment.scoring_key_env and read_key(experiment.scoring_key_env, "scoring_key_env")
        async with Client(experiment.scoring_url, key=key, settings=experiment) as client:
            yield client, await client.task_ids()
    elif state.num_processes == 1:
        async with _open_session(experiment, pool, dispatch, folder, on_warning) as (session, _):
            yield session, list(session.tasks)
    elif state.is_main_process:
        async with AsyncExitStack() as opened:
            told: list[Any] = []
            try:
                session, store = await opened.enter_async_context(
                    _open_session(experiment, pool, dispatch, folder, on_warning)
                )
                key = secrets.token_urlsafe()
                url = await opened.enter_async_context(
                    serve_session(session, host=_listening(), key=key, flush=store.flush)
                )
                told = [_reachable(url), key, list(session.tasks)]
            except PodiumError as error:
                told = [error, None, None]
                raise
            finally:
                broadcast_object_list(told)
            yield session, list(session.tasks)
    else:
        served: list[Any] = [None, None, None]
        broadcast_object_list(served)
        url, key, tasks = served
        if isinstance(url, PodiumError):
            raise url
        async with Client(url, key=key, settings=experiment) as client:
            yield client, tasks


@asynccontextmanager
async def _open_session(
    experiment: LMExperiment,
    pool: Pool,
    dispatch: Dispatch,
    folder: Path,
    on_warning: Callable[[str], None],
) -> AsyncIterator[tuple[ScoringSession, TraceStore]]:
    async with dispatch(pool) as dispatcher:
        with TraceStore(folder / TRACES) as store:
            async with open_session(
                experiment, dispatcher, pool=pool, keep=store.add, on_warning=on_warning
            ) as session:
                yield session, store


def _listening() -> str:
    """This machine alone, if all ranks are on it."""
    alone = os.environ.get("LOCAL_WORLD_SIZE") == os.environ.get("WORLD_SIZE")
    return "127.0.0.1" if alone else "0.0.0.0"


def _reachable(url: str) -> str:
    """The service's address as ranks on other machines reach it."""
    return url if _listening() == "127.0.0.1" else url.replace("0.0.0.0", os.environ["MASTER_ADDR"])


async def check_prompts(
    experiment: LMExperiment, scoring: Scoring, tasks: Sequence[str], codec: PromptCodec, context: int
) -> None:
    """Refuse a run whose first prompts leave no room for a plan.

    Raises:
        ConfigError: with the longest prompt.
    """
    longest, where = 0, ""
    for task in tasks:
        messages = await scoring.prompt(RolloutRequest(task=task, seed="check"))
        length = 0 if messages is None else len(codec.encode(messages))
        if length > longest:
            longest, where = length, task
    room = experiment.grpo.max_tokens
    if longest + room > context:
        raise ConfigError(
            f"The prompt of {where} has {longest:,} tokens; with grpo.max_tokens = {room:,} that exceeds the "
            f"{context:,} that the model can read. Show fewer examples (prompt.examples) or fewer workers (pool_draw), "
            "or take a model with a longer context."
        )


async def run_in_thread(trainer: Trainer, saved: Path) -> None:
    """Train in a thread, while this loop runs plans. Cancelled, it tells the trainer to stop, and waits for it."""
    training = asyncio.ensure_future(asyncio.to_thread(trainer.train, saved))
    try:
        await asyncio.shield(training)
    except asyncio.CancelledError:
        trainer.stop()
        await asyncio.wait([training])
        if (
            not training.cancelled()
            and (error := training.exception())
            and not isinstance(error, TrainingInterruptedError)
        ):
            raise error from None
        raise


def on_first_rank(state: PartialState, make: Callable[[], T]) -> T | None:
    """What `make` returns, made by the first rank alone; None on the others.

    Raises:
        PodiumError: what `make` raised, on every rank.
    """
    made: T | None = None
    failure: list[Any] = [None]
    if state.is_main_process:
        try:
            made = make()
        except PodiumError as error:
            failure = [error]
    if state.num_processes > 1:
        broadcast_object_list(failure)
    if failure[0] is not None:
        raise failure[0]
    return made
