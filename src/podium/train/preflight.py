"""Checks a run of either stage before anything is paid, and collects all reasons to refuse it, not only the first.

A run opens its parts here and continues with them. A dry run lists the reasons. No worker is called here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from podium.calls import Dispatcher
from podium.conductor.checkpoint import Checkpoint
from podium.conductor.codec import PromptCodec
from podium.conductor.prompt import policy_pool
from podium.errors import CheckpointError, ConfigError, PodiumError, StoreError, UsageError
from podium.files import lock_folder
from podium.rollout.data_fingerprint import DataFingerprint
from podium.rollout.run_folder import RunFolder
from podium.scoring import RolloutRequest, ScoringSession
from podium.scoring.training_tasks import open_training_tasks, open_validation_tasks, without_held_out
from podium.sqlite_files import default_store
from podium.store.past_answers import read_past_answers
from podium.tasks import Task
from podium.team.team_file import open_pool
from podium.train.engine import PreparedTraining, TrainingEngine
from podium.train.estimate import WorkerEstimate, estimate_workers
from podium.train.ranks import Ranks
from podium.train.schedule import generate_tasks, has_generated_tasks
from podium.train.settings import (
    CHANGEABLE_ON_RESUME,
    TrainSettings,
    settings_of_other_engine,
    unequal_levels,
)
from podium.train.start import find_start, open_codec, open_tokenizer, resolve
from podium.types import estimate_tokens
from podium.workers.build import UnavailableWorker
from podium.workers.pool import Pool

T = TypeVar("T")
DispatcherFactory = Callable[[Pool], AbstractContextManager[Dispatcher]]
"""A function that opens the dispatcher of a pool's workers. It is called once, after the run's folder was made."""


def open_engine(settings: TrainSettings) -> TrainingEngine[Any]:
    """The engine of resolved settings, for their stage. This loads torch, and TRL for trl."""
    if settings.engine == "trl":
        from podium.train.trl import grpo as trl_grpo  # noqa: PLC0415 - loads TRL
        from podium.train.trl import sft as trl_sft  # noqa: PLC0415

        return trl_sft if settings.stage == "sft" else trl_grpo
    from podium.train.shared_prefix import grpo, sft  # noqa: PLC0415 - loads torch

    return sft if settings.stage == "sft" else grpo


def _open_ranks(settings: TrainSettings) -> Ranks:
    if settings.engine != "trl":
        return Ranks()
    from podium.train.trl.accelerated_ranks import WAIT_S, AcceleratedRanks  # noqa: PLC0415 - loads accelerate

    return AcceleratedRanks(settings.trl.get("ddp_timeout", WAIT_S))


def check_training_folder(folder: Path, settings: TrainSettings) -> None:
    """Check, without writing, that a training with these settings may begin or go on in the folder.

    Raises:
        RunMismatchError: see `RunFolder.open`.
    """
    RunFolder.check(folder, settings, changeable=CHANGEABLE_ON_RESUME, begun=has_results(folder))


@contextmanager
def hold_training_folder(
    folder: Path, settings: TrainSettings, *, data: DataFingerprint | None = None
) -> Iterator[RunFolder]:
    """Begin or resume the run in the folder, which no other process can train in until the block ends.

    Raises:
        RunMismatchError: see `RunFolder.open`.
        UsageError: another process trains in the folder.
    """
    check_training_folder(folder, settings)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError.of_file(folder, error) from None
    with lock_folder(folder):
        begun = has_results(folder)
        yield RunFolder.open(folder, settings, changeable=CHANGEABLE_ON_RESUME, data=data, begun=begun)


def has_results(folder: Path) -> bool:
    """Whether the run has a row or a checkpoint."""
    return any((folder / "checkpoints").glob("*[0-9]")) or bool(RunFolder(folder).rows().read())


@dataclass(slots=True)
class Preflight:
    """The parts of a run that could be opened, and the reasons to refuse it."""

    settings: TrainSettings
    """The settings, with what their file leaves to the start (`resolve`)."""
    ranks: Ranks
    problems: list[PodiumError] = field(default_factory=list)
    pool: Pool | None = None
    """The workers. A worker that cannot be called is an `UnavailableWorker`, and `problems` says why."""
    start: Checkpoint | None = None
    tokenizer: Any = None
    codec: PromptCodec | None = None
    tasks: Mapping[str, Task] = field(default_factory=dict)
    eval_tasks: Mapping[str, Task] = field(default_factory=dict)
    longest_prompt: int = 0
    """Tokens of the longest prompt of a first round. Without a tokenizer, an estimate of four characters per token."""
    workers: WorkerEstimate | None = None
    """What workers would do and cost. None if the pool or the tasks could not be opened."""

    def require(self) -> PreparedTraining:
        """The opened parts. All ranks call this together.

        Raises:
            PodiumError: the only problem, or a UsageError that lists all. Every rank raises what the first one found.
        """
        self.ranks.run_on_first(self._refuse)
        self._refuse()
        assert self.pool is not None
        assert self.start is not None
        assert self.codec is not None
        return PreparedTraining(
            self.settings,
            self.ranks,
            self.pool,
            self.start,
            self.tokenizer,
            self.codec,
            self.tasks,
            self.eval_tasks,
        )

    def _refuse(self) -> None:
        if len(self.problems) == 1:
            raise self.problems[0]
        if self.problems:
            listed = " ".join(f"({number}) {error}" for number, error in enumerate(self.problems, start=1))
            raise UsageError(f"This run has {len(self.problems)} problems: {listed}")

    def attempt(self, make: Callable[[], T]) -> T | None:
        """Call `make`, and return its result. If it raises a PodiumError, add that to the problems and return None."""
        try:
            return make()
        except PodiumError as error:
            self.problems.append(error)
            return None


@asynccontextmanager
async def preflight(
    settings: TrainSettings,
    folder: Path | None,
    *,
    ranks: Ranks | None = None,
    run_budget_usd: float | None = None,
    weights: bool = True,
    on_warning: Callable[[str], None] = lambda warning: None,
) -> AsyncIterator[Preflight]:
    """Open what a run needs, and collect all reasons to refuse it. Closes the pool at the end.

    Only GRPO calls workers, and only from its first rank. Elsewhere neither their keys nor the tasks are needed.

    Args:
        folder: the folder of the run. None if there is none yet. Nothing is written to it.
        ranks: the processes that train together. Default: this process, or with TRL those of `accelerate launch`.
        run_budget_usd: dollars that the run may cost. A new run is refused if its first batch alone is likely to cost
            more. A resumed run is not, since its folder may hold the answers.
        weights: whether to fetch the weights of a model on the hub. If not, only its tokenizer and configuration are
            fetched.

    Raises:
        ConfigError: a setting of the ranks cannot be used.
    """
    problems: list[PodiumError] = []
    try:
        settings = resolve(settings)
    except CheckpointError as error:
        problems.append(error)
        engine = "trl" if settings.engine == "auto" else settings.engine
        settings = settings.model_copy(update={"engine": engine})
    checks = Preflight(settings, ranks or _open_ranks(settings), problems)
    if not problems:
        _open_model(checks, weights=weights)
    if folder is not None:
        checks.attempt(lambda: check_training_folder(folder, settings))
    problems += unequal_levels(settings)
    problems += settings_of_other_engine(settings)
    problems += open_engine(settings).find_problems(settings, checks.start, checks.ranks.size)
    checks.pool = checks.attempt(lambda: policy_pool(open_pool(settings.pool, ready=False), settings.prompt))
    try:
        if checks.pool is not None and settings.stage == "grpo" and checks.ranks.is_first:
            await _check_questions(checks, checks.pool, on_warning)
            begun = folder is not None and (folder / "config.json").is_file()
            if run_budget_usd is not None and not begun:
                _check_budget(checks, run_budget_usd)
        yield checks
    finally:
        if checks.pool is not None:
            await checks.pool.close()


def _open_model(checks: Preflight, *, weights: bool) -> None:
    settings = checks.settings
    checks.start = start = checks.attempt(lambda: find_start(settings, weights=weights))
    if start is None:
        return
    needs_tokenizer = settings.prompt.style != "brief" or settings.engine == "trl" or settings.stage == "sft"
    if needs_tokenizer:
        checks.tokenizer = checks.attempt(lambda: open_tokenizer(start))
    if checks.tokenizer is not None or not needs_tokenizer:
        checks.codec = checks.attempt(lambda: open_codec(settings, start, checks.tokenizer))


async def _check_questions(checks: Preflight, pool: Pool, on_warning: Callable[[str], None]) -> None:
    """Check the workers, tasks and prompts, and estimate what plans cost."""
    settings = checks.settings
    checks.problems += [
        ConfigError(f"{settings.pool}: worker {worker.profile.name!r} cannot be called: {worker.reason}")
        for worker in pool
        if isinstance(worker, UnavailableWorker)
    ]
    checks.tasks = checks.attempt(lambda: _open_tasks(settings, pool, on_warning)) or {}
    if settings.grpo.eval_every:
        size = settings.grpo.eval_questions
        checks.eval_tasks = checks.attempt(lambda: open_validation_tasks(settings, pool, size)) or {}
    session = checks.attempt(
        lambda: ScoringSession(settings, checks.tasks, pool, Dispatcher(), eval_tasks=checks.eval_tasks)
    )
    if session is None or not checks.tasks:
        return
    await _check_prompts(checks, session)
    store = Path(default_store())  # The user's earlier traces have the lengths of workers' answers.
    past = checks.attempt(lambda: read_past_answers(store) if store.is_file() else {})
    checks.workers = estimate_workers(
        settings,
        pool,
        list(checks.tasks.values()),
        plans=settings.plans_with(len(checks.eval_tasks)),
        batch=settings.batch,
        past=past or {},
    )


def _open_tasks(settings: TrainSettings, pool: Pool, on_warning: Callable[[str], None]) -> Mapping[str, Task]:
    if has_generated_tasks(settings):
        return _generated_tasks(settings, on_warning)
    if settings.curriculum:
        raise ConfigError(
            f"curriculum: {settings.tasks} has a list of questions, which has no settings; leave it out.",
            ("curriculum",),
        )
    return open_training_tasks(settings, pool, on_warning)


def _generated_tasks(settings: TrainSettings, on_warning: Callable[[str], None]) -> Mapping[str, Task]:
    """The questions of all iterations. Others are drawn in place of those that are held out."""
    left_out: set[str] = set()
    while True:
        drawn = generate_tasks(settings, left_out)
        kept = without_held_out(settings, list(drawn.values()), on_warning)
        if len(kept) == len(drawn):
            return kept
        left_out |= drawn.keys() - kept.keys()


async def _check_prompts(checks: Preflight, session: ScoringSession) -> None:
    """Refuse a run in which a prompt of a first round leaves no room for a plan."""
    where = ""
    for task in (*checks.tasks, *checks.eval_tasks):
        messages = await session.prompt(RolloutRequest(task=task, group="check")) or ()
        if checks.codec is None:
            length = sum(estimate_tokens(message.content) for message in messages)
        else:
            length = len(checks.codec.encode(messages))
        if length > checks.longest_prompt:
            checks.longest_prompt, where = length, task
    room = checks.settings.grpo.max_tokens
    if checks.codec is None or checks.start is None or checks.longest_prompt + room <= checks.start.context:
        return
    checks.problems.append(
        ConfigError(
            f"The prompt of {where} has {checks.longest_prompt:,} tokens; with grpo.max_tokens = {room:,} that "
            f"exceeds the {checks.start.context:,} that the model can read. Show fewer examples (prompt.examples) or "
            "fewer workers (pool_sampling), or take a model with a longer context."
        )
    )


def _check_budget(checks: Preflight, budget_usd: float) -> None:
    if checks.workers is None:
        return
    batch = checks.settings.batch
    first = checks.workers.cost_usd.times(batch / checks.workers.plans)
    if first.likely > budget_usd:
        checks.problems.append(
            ConfigError(
                f"The first batch of {batch} plans is likely to cost ${first.likely:,.2f} "
                f"(${first.low:,.2f} to ${first.high:,.2f}), and --run-budget-usd is ${budget_usd:,.2f}: give more, "
                "fewer rollouts (grpo.questions, grpo.group), or a cheaper pool."
            )
        )
