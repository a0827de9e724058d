"""Checks a run before anything is paid, and collects all reasons to refuse it, not only the first.

A run opens its parts here and continues with them; a dry run lists the reasons. Neither calls a worker here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from trl.trainer.grpo_config import GRPOConfig

from podium.conductor.checkpoint import Checkpoint
from podium.errors import ConfigError, PodiumError, UsageError
from podium.executor import Dispatcher
from podium.rollout.run_folder import RunFolder
from podium.scoring import Client, RolloutRequest, Scoring, ScoringSession
from podium.scoring.training_tasks import open_training_tasks, open_validation_tasks
from podium.tasks import Task
from podium.team.opening import open_pool
from podium.trace.answers import PastAnswers, past_answers
from podium.trace.store import default_path
from podium.train.lm.grpo import GRPO_SETTINGS, lora_config, quantization, trl_arguments, trl_config
from podium.train.lm.model import find_start, open_codec, open_tokenizer
from podium.train.lm.rollouts import PromptCodec
from podium.train.lm.settings import CHANGEABLE_ON_RESUME, LMExperiment
from podium.train.lm.worker_estimate import WorkerEstimate, estimate_workers
from podium.types import estimate_tokens
from podium.workers.build import UnreadyWorker
from podium.workers.pool import Pool
from podium.workers.redaction import read_key

T = TypeVar("T")
_AT_ONCE = 64
"""Prompts that a scoring service is asked for at the same time."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The parts of a run that is not refused."""

    pool: Pool
    start: Checkpoint
    tokenizer: Any
    codec: PromptCodec
    config: GRPOConfig
    tasks: Mapping[str, Task]
    """Empty on a rank that does not call workers."""
    evaluated: Mapping[str, Task]
    """The tasks of evaluations; empty also where none is due."""


@dataclass(slots=True)
class Preflight:
    """The parts of a run that could be opened, and the reasons to refuse it."""

    refusals: list[PodiumError] = field(default_factory=list)
    pool: Pool | None = None
    """A worker that cannot be called is in it as an `UnreadyWorker`, and has a refusal."""
    start: Checkpoint | None = None
    tokenizer: Any = None
    codec: PromptCodec | None = None
    config: GRPOConfig | None = None
    tasks: Mapping[str, Task] = field(default_factory=dict)
    evaluated: Mapping[str, Task] = field(default_factory=dict)
    longest_prompt: int = 0
    """Tokens of the longest prompt of a first round; an estimate (four characters a token) without a tokenizer."""
    workers: WorkerEstimate | None = None
    """None: pool or tasks could not be opened."""

    def require(self) -> Ready:
        """The opened parts.

        Raises:
            PodiumError: the refusal; or a UsageError that lists them all.
        """
        if len(self.refusals) == 1:
            raise self.refusals[0]
        if self.refusals:
            listed = " ".join(f"({number}) {error}" for number, error in enumerate(self.refusals, start=1))
            raise UsageError(f"This run has {len(self.refusals)} problems: {listed}")
        assert self.pool is not None
        assert self.start is not None
        assert self.codec is not None
        assert self.config is not None
        return Ready(
            self.pool, self.start, self.tokenizer, self.codec, self.config, self.tasks, self.evaluated
        )

    def attempt(self, make: Callable[[], T]) -> T | None:
        """Call `make`. Returns its result; if it raises a PodiumError, adds that to the refusals and returns None."""
        try:
            return make()
        except PodiumError as error:
            self.refusals.append(error)
            return None


@asynccontextmanager
async def preflight(
    experiment: LMExperiment,
    folder: Path | None,
    *,
    ranks: int = 1,
    asks: bool = True,
    run_budget_usd: float | None = None,
    weights: bool = True,
    on_warning: Callable[[str], None] = lambda warning: None,
) -> AsyncIterator[Preflight]:
    """Open what a run needs, and collect all reasons to refuse it. Closes the pool at the end.

    Args:
        folder: of the run; None: it has none yet. It is not written to.
        ranks: processes that train together.
        asks: whether this rank calls workers, or the scoring service. Otherwise it needs neither the workers' keys nor
            the tasks.
        run_budget_usd: dollars that the run may cost. A new run is refused if its first batch alone is likely to cost
            more. A resumed run is not, since its folder may hold the answers.
        weights: whether to fetch the weights of a model on the hub; else only its tokenizer and configuration.
    """
    found = Preflight()
    if folder is not None:
        found.attempt(lambda: RunFolder.check(folder, experiment, changeable=CHANGEABLE_ON_RESUME))
    found.config = _check_trainer(found, experiment, folder or Path("run"), ranks)
    _open_model(found, experiment, weights=weights)
    found.pool = found.attempt(lambda: open_pool(experiment.pool, ready=False))
    try:
        if found.pool is not None and asks and experiment.scoring_url is not None:
            await _check_service(found, experiment)
        elif found.pool is not None and asks:
            await _check_questions(found, experiment, found.pool, on_warning)
            begun = folder is not None and (folder / "config.json").is_file()
            if run_budget_usd is not None and not begun:
                _check_budget(found, experiment, run_budget_usd)
        yield found
    finally:
        if found.pool is not None:
            await found.pool.close()


def _check_trainer(found: Preflight, experiment: LMExperiment, folder: Path, ranks: int) -> GRPOConfig | None:
    """The trainer's own settings and the packages that they need."""
    unknown = len(found.refusals)
    for key, value in experiment.trl.items():
        found.attempt(lambda key=key, value=value: trl_arguments({key: value}, GRPOConfig, GRPO_SETTINGS))  # type: ignore[misc]
    config = None
    if len(found.refusals) == unknown:
        config = found.attempt(lambda: trl_config(experiment, folder / "checkpoints", ranks))
    found.attempt(lambda: lora_config(experiment))
    found.attempt(lambda: quantization(experiment))
    found.refusals.extend(_missing_packages(experiment))
    return config


def _missing_packages(experiment: LMExperiment) -> Iterator[ConfigError]:
    if experiment.trl.get("use_vllm") and find_spec("vllm") is None:
        yield ConfigError(
            "trl.use_vllm needs vLLM; install it with: pip install 'trl[vllm]', or leave it out."
        )
    reports = experiment.trl.get("report_to", "none")
    if reports in ("none", ["none"], []):
        return
    from transformers.integrations.integration_utils import (  # noqa: PLC0415
        get_reporting_integration_callbacks,
    )

    try:
        get_reporting_integration_callbacks(reports)  # type: ignore[no-untyped-call]
    except (RuntimeError, ValueError, ImportError) as error:
        yield ConfigError(f"trl.report_to = {reports!r} cannot be used: {error}")


def _open_model(found: Preflight, experiment: LMExperiment, *, weights: bool) -> None:
    start = found.attempt(lambda: find_start(experiment, weights=weights))
    if start is None:
        return
    found.start = start
    found.tokenizer = found.attempt(lambda: open_tokenizer(experiment, start))
    if found.tokenizer is not None:
        found.codec = found.attempt(lambda: open_codec(experiment, start, found.tokenizer))


def open_client(experiment: LMExperiment) -> Client:
    """A client of the scoring service that the settings name; it refuses a service with other settings.

    Raises:
        ConfigError: the service's key is not in the environment.
        UsageError: the address is not an http or https URL.
    """
    assert experiment.scoring_url is not None
    key = experiment.scoring_key_env and read_key(experiment.scoring_key_env, "scoring_key_env")
    return Client(experiment.scoring_url, key=key, settings=experiment)


async def _check_service(found: Preflight, experiment: LMExperiment) -> None:
    """The prompts of a service that scores for this run; its pool, tasks and budget are its own to check."""
    if experiment.grpo.eval_every:
        found.refusals.append(
            ConfigError(
                "grpo.eval_every: a scoring service has the training questions alone; set grpo.eval_every = 0, or "
                "leave out scoring_url."
            )
        )
    try:
        async with open_client(experiment) as client:
            await _check_prompts(found, experiment, client, await client.task_ids())
    except PodiumError as error:
        found.refusals.append(error)


async def _check_questions(
    found: Preflight, experiment: LMExperiment, pool: Pool, on_warning: Callable[[str], None]
) -> None:
    """Workers, tasks, prompts, and what plans cost."""
    found.refusals += [
        ConfigError(f"{experiment.pool}: worker {worker.profile.name!r} cannot be called: {worker.reason}")
        for worker in pool
        if isinstance(worker, UnreadyWorker)
    ]
    found.tasks = found.attempt(lambda: open_training_tasks(experiment, pool, on_warning)) or {}
    if experiment.grpo.eval_every:
        size = experiment.grpo.eval_questions
        found.evaluated = found.attempt(lambda: open_validation_tasks(experiment, pool, size)) or {}
    session = found.attempt(
        lambda: ScoringSession(experiment, found.tasks, pool, Dispatcher(), evaluated=found.evaluated)
    )
    if session is None or not found.tasks:
        return
    await _check_prompts(found, experiment, session, [*found.tasks, *found.evaluated])
    found.workers = estimate_workers(
        experiment, pool, list(found.tasks.values()), past=found.attempt(_past) or {}
    )


async def _check_prompts(
    found: Preflight, experiment: LMExperiment, scoring: Scoring, tasks: Iterable[str]
) -> None:
    """Whether each prompt of a first round leaves room for a plan."""
    where = ""
    left = iter(tasks)
    while part := list(islice(left, _AT_ONCE)):
        lengths = await asyncio.gather(
            *(_prompt_tokens(scoring, task, found.codec) for task in part), return_exceptions=True
        )
        for task, length in zip(part, lengths, strict=True):
            if isinstance(length, BaseException):
                raise length
            if length > found.longest_prompt:
                found.longest_prompt, where = length, task
    room = experiment.grpo.max_tokens
    if found.codec is None or found.start is None or found.longest_prompt + room <= found.start.context:
        return
    found.refusals.append(
        ConfigError(
            f"The prompt of {where} has {found.longest_prompt:,} tokens; with grpo.max_tokens = {room:,} that exceeds "
            f"the {found.start.context:,} that the model can read. Show fewer examples (prompt.examples) or fewer "
            "workers (pool_draw), or take a model with a longer context."
        )
    )


async def _prompt_tokens(scoring: Scoring, task: str, codec: PromptCodec | None) -> int:
    messages = await scoring.prompt(RolloutRequest(task=task, seed="check")) or ()
    if codec is None:
        return sum(estimate_tokens(message.content) for message in messages)
    return len(codec.encode(messages))


def _past() -> Mapping[str, PastAnswers]:
    """How long workers' answers were, in the user's own store of traces, if there is one."""
    store = default_path()
    return past_answers(store) if store.is_file() else {}


def _check_budget(found: Preflight, experiment: LMExperiment, budget_usd: float) -> None:
    if found.workers is None:
        return
    first = found.workers.cost_usd.times(experiment.batch)
    if first.likely > budget_usd:
        found.refusals.append(
            ConfigError(
                f"The first batch of {experiment.batch} plans is likely to cost ${first.likely:,.2f} "
                f"(${first.low:,.2f} to ${first.high:,.2f}), and --run-budget-usd is ${budget_usd:,.2f}: give more, "
                "fewer rollouts (grpo.questions, grpo.group), or a cheaper pool."
            )
        )
