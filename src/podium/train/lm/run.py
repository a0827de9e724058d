"""Trains with GRPO: opens the scoring session, runs the trainer, and writes the policy into the run's folder.

The trainer runs in a thread, and the event loop runs the plans. With several ranks (accelerate launch), the first rank
opens the session and serves it to the others over HTTP.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import warnings
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import (
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
    nullcontext,
)
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from accelerate import PartialState
from accelerate.utils import broadcast_object_list
from datasets import disable_progress_bars
from transformers.utils import logging

from podium.errors import PodiumError
from podium.executor import Dispatcher
from podium.rollout.run_data import RunData
from podium.rollout.run_folder import RunFolder
from podium.scoring import Client, Scoring
from podium.scoring.service import serve_session
from podium.scoring.session import Dispatch, open_run_session
from podium.train.display import Display, NoDisplay
from podium.train.lm.grpo import PodiumGRPO
from podium.train.lm.model import write_policy
from podium.train.lm.preflight import Ready, open_client, preflight
from podium.train.lm.progress import Progress
from podium.train.lm.rollouts import TrainingInterruptedError
from podium.train.lm.schedule import schedule
from podium.train.lm.settings import CHANGEABLE_ON_RESUME, LMExperiment

T = TypeVar("T")


def quiet_libraries() -> None:
    """Turn off the progress bars of TRL, datasets and transformers, and their warnings of renamed arguments."""
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    disable_progress_bars()
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"(transformers|trl|peft)\.")
    warnings.filterwarnings("ignore", message=".*rollout_func.*experimental.*")
    warnings.filterwarnings("ignore", message=".*pin_memory.*")


async def run_grpo(
    experiment: LMExperiment,
    folder: Path,
    *,
    dispatch: Dispatch = lambda pool: nullcontext(Dispatcher()),
    display: AbstractContextManager[Display] | None = None,
    run_budget_usd: float | None = None,
    on_warning: Callable[[str], None] = lambda warning: None,
    say: Callable[[str], None] = lambda line: None,
) -> Path:
    """Train in a run folder, or resume the run that it holds. Returns the folder of the trained policy.

    Refuses what `preflight` finds before it calls a worker.

    Args:
        say: prints a line of progress; called from a thread too.
        run_budget_usd: the budget that `dispatch` keeps: a first batch that would break it is refused.

    Raises:
        UsageError: what `preflight` refuses: the error itself, or one that lists them all.
        BudgetError: the dollars of the run or the day are spent; the same call goes on from the newest checkpoint.
    """
    state = PartialState()
    first: bool = state.is_main_process
    async with preflight(
        experiment,
        folder,
        ranks=state.num_processes,
        asks=first,
        run_budget_usd=run_budget_usd,
        on_warning=on_warning if first else lambda warning: None,
    ) as found:
        on_first_rank(state, found.require)
        ready = found.require()
        local = first and experiment.scoring_url is None  # A scoring service has the questions elsewhere.
        run = on_first_rank(
            state,
            lambda: RunFolder.open(
                folder,
                experiment,
                changeable=CHANGEABLE_ON_RESUME,
                data=RunData.of(ready.tasks.values(), ready.pool) if local else None,
            ),
        )
        async with open_scoring(experiment, ready, dispatch=dispatch, folder=folder, state=state) as (
            scoring,
            tasks,
            evaluated,
        ):
            rows = schedule(
                tasks,
                iterations=experiment.grpo.iterations,
                questions=experiment.grpo.questions,
                rounds=experiment.rounds,
                seed=experiment.seed,
            )
            progress = Progress(
                say if first else lambda line: None,
                noun="plans",
                total=experiment.plans,
            )
            with progress, display if display is not None and first else NoDisplay() as shown:
                progress.phase("loading the model")
                trainer = PodiumGRPO(
                    experiment,
                    ready.config,
                    rows=rows,
                    evaluated=evaluated,
                    start=ready.start,
                    tokenizer=ready.tokenizer,
                    codec=ready.codec,
                    scoring=scoring,
                    loop=asyncio.get_running_loop(),
                    run=run if first else None,
                    display=shown,
                    progress=progress,
                    on_warning=on_warning if first else lambda warning: None,
                )
                await run_in_thread(trainer, folder / "trained")
        if first:
            write_policy(folder, experiment, ready.start, ready.pool)
        return folder / "policy"


@asynccontextmanager
async def open_scoring(
    experiment: LMExperiment,
    ready: Ready,
    *,
    dispatch: Dispatch,
    folder: Path,
    state: PartialState,
) -> AsyncIterator[tuple[Scoring, Sequence[str], Sequence[str]]]:
    """What scores this rank's plans, and the ids of the tasks of training and of evaluations.

    If the configuration names a scoring service, all ranks use it. Else a single rank opens a session in its own
    process; of several ranks the first opens a session and serves it to the others.
    """
    open_session = partial(
        open_run_session,
        experiment,
        ready.tasks,
        ready.pool,
        dispatch=dispatch,
        folder=folder,
        evaluated=ready.evaluated,
    )
    if experiment.scoring_url is not None:
        async with open_client(experiment) as client:
            yield client, await client.task_ids(), ()
    elif state.num_processes == 1:
        async with open_session() as (session, _):
            yield session, list(ready.tasks), list(ready.evaluated)
    elif state.is_main_process:
        async with AsyncExitStack() as opened:
            told: list[Any] = []
            try:
                session, store = await opened.enter_async_context(open_session())
                key = secrets.token_urlsafe()
                url = await opened.enter_async_context(
                    serve_session(session, host=_listening(), key=key, flush=store.flush)
                )
                told = [_reachable(url), key, list(ready.tasks), list(ready.evaluated)]
            except PodiumError as error:
                told = [error, None, None, None]
                raise
            finally:
                broadcast_object_list(told)
            yield session, list(ready.tasks), list(ready.evaluated)
    else:
        served: list[Any] = [None] * 4
        broadcast_object_list(served)
        url, key, tasks, evaluated = served
        if isinstance(url, PodiumError):
            raise url
        async with Client(url, key=key, settings=experiment) as client:
            yield client, tasks, evaluated


def _listening() -> str:
    """The address to listen on: this machine's own if all ranks are on it, else all addresses."""
    alone = os.environ.get("LOCAL_WORLD_SIZE") == os.environ.get("WORLD_SIZE")
    return "127.0.0.1" if alone else "0.0.0.0"


def _reachable(url: str) -> str:
    """The service's address as ranks on other machines reach it."""
    return url if _listening() == "127.0.0.1" else url.replace("0.0.0.0", os.environ["MASTER_ADDR"])


async def run_in_thread(trainer: PodiumGRPO, saved: Path) -> None:
    """Train in a thread, while this loop runs plans. If cancelled, tell the trainer to stop, and wait until it has."""
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
    """Call `make` on the first rank only. Returns its result there, and None on the other ranks.

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


def of_first_rank(state: PartialState, make: Callable[[], T]) -> T:
    """Call `make` on the first rank only. Returns its result on every rank.

    Raises:
        PodiumError: as `on_first_rank`.
    """
    made: list[Any] = [on_first_rank(state, make)]
    if state.num_processes > 1:
        broadcast_object_list(made)
    return made[0]  # type: ignore[no-any-return]
