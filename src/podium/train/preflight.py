"""Checks a run of either stage before anything is paid, and collects all reasons to refuse it, not only the first.

A run opens its parts here and continues with them. A dry run lists the reasons. No worker is called here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podium.calls import CallState
from podium.conductor.checkpoint import Checkpoint
from podium.conductor.codec import PromptCodec
from podium.conductor.prompt import policy_pool
from podium.errors import CheckpointError, ConfigError, PodiumError, StoreError, UsageError, collecting_errors
from podium.executor.plan_estimate import NEWEST_TRACES, PastAnswers, past_answers_in
from podium.files.atomic import lock_folder
from podium.files.locations import default_store
from podium.rollout.data_fingerprint import DataFingerprint
from podium.rollout.run_folder import RunFolder
from podium.scoring import RolloutRequest, ScoringSession
from podium.scoring.training_tasks import open_training_tasks, open_validation_tasks, without_held_out
from podium.store import TraceStore
from podium.tasks import Task
from podium.team.team_file import open_pool
from podium.train.engine import OpenedQuestions, TrainingEngine, TrainingRun
from podium.train.ranks import Ranks
from podium.train.run_estimate import WorkerEstimate, estimate_workers
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

OpenCallState = Callable[[Pool], AbstractContextManager[CallState]]
"""A function that opens the call state of a pool's workers. It is called once, after the run's folder was made."""


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
def locked_training_folder(
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


@dataclass(frozen=True, slots=True)
class Preflight:
    """What was found out about a run before it begins, and the reasons to refuse it."""

    settings: TrainSettings
    """The settings, with what their file leaves to the start (`resolve`)."""
    ranks: Ranks
    problems: Sequence[PodiumError]
    start: Checkpoint | None
    """The checkpoint that the run starts from. None if it could not be found."""
    questions: OpenedQuestions
    """The questions, as far as they could be opened."""
    run: TrainingRun | None
    """The opened parts. None if there are problems."""

    def require(self) -> TrainingRun:
        """The opened parts. All ranks call this together.

        Raises:
            PodiumError: the only problem, or a UsageError that lists all. Every rank raises what the first one found.
        """
        self.ranks.run_on_first(self._refuse)
        self._refuse()
        assert self.run is not None
        return self.run

    def _refuse(self) -> None:
        if len(self.problems) == 1:
            raise self.problems[0]
        if self.problems:
            listed = " ".join(f"({number}) {error}" for number, error in enumerate(self.problems, start=1))
            raise UsageError(f"This run has {len(self.problems)} problems: {listed}")


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
    start: Checkpoint | None = None
    tokenizer: Any = None
    codec: PromptCodec | None = None
    pool: Pool | None = None
    questions, run = OpenedQuestions(), None
    problems: list[PodiumError] = []
    try:
        settings = resolve(settings)
    except CheckpointError as error:
        problems.append(error)
        engine = "trl" if settings.engine == "auto" else settings.engine
        settings = settings.model_copy(update={"engine": engine})
    ranks = ranks or _open_ranks(settings)
    if not problems:
        with collecting_errors(problems):
            start = find_start(settings, weights=weights)
            if settings.prompt.style != "brief" or settings.engine == "trl" or settings.stage == "sft":
                tokenizer = open_tokenizer(start)
            codec = open_codec(settings, start, tokenizer)
    if folder is not None:
        with collecting_errors(problems):
            check_training_folder(folder, settings)
    problems += unequal_levels(settings)
    problems += settings_of_other_engine(settings)
    problems += open_engine(settings).find_problems(settings, start, ranks.size)
    with collecting_errors(problems):
        pool = policy_pool(open_pool(settings.pool, ready=False), settings.prompt)
    try:
        if pool is not None and settings.stage == "grpo" and ranks.is_first:
            questions = await _open_questions(
                settings, pool, start, codec, problems=problems, on_warning=on_warning
            )
            is_new = folder is None or not (folder / "config.json").is_file()
            if is_new and run_budget_usd is not None and questions.workers is not None:
                problems += _unaffordable_batch(settings.batch, questions.workers, run_budget_usd)
        if not problems and start is not None and codec is not None and pool is not None:
            run = TrainingRun(settings, ranks, folder or Path(), pool, start, tokenizer, codec, questions)
        yield Preflight(settings, ranks, problems, start, questions, run)
    finally:
        if pool is not None:
            await pool.close()


async def _open_questions(
    settings: TrainSettings,
    pool: Pool,
    start: Checkpoint | None,
    codec: PromptCodec | None,
    *,
    problems: list[PodiumError],
    on_warning: Callable[[str], None],
) -> OpenedQuestions:
    """Check the workers, open the tasks, write all prompts of first rounds, and estimate what plans cost."""
    problems += [
        ConfigError(f"{settings.pool}: worker {worker.profile.name!r} cannot be called: {worker.reason}")
        for worker in pool
        if isinstance(worker, UnavailableWorker)
    ]
    tasks: Mapping[str, Task] = {}
    eval_tasks: Mapping[str, Task] = {}
    session: ScoringSession | None = None
    past: Mapping[str, PastAnswers] = {}
    with collecting_errors(problems):
        tasks = _open_tasks(settings, pool, on_warning)
    if settings.grpo.eval_every:
        with collecting_errors(problems):
            eval_tasks = open_validation_tasks(settings, pool, settings.grpo.eval_questions)
    with collecting_errors(problems):
        session = ScoringSession(settings, tasks, pool, CallState(), eval_tasks=eval_tasks)
    if session is None or not tasks:
        return OpenedQuestions(tasks, eval_tasks)
    lengths = {task: await _prompt_tokens(session, task, codec) for task in (*tasks, *eval_tasks)}
    longest = max(lengths, key=lengths.__getitem__)
    room = settings.grpo.max_tokens
    if codec is not None and start is not None and lengths[longest] + room > start.context:
        problems.append(
            ConfigError(
                f"The prompt of {longest} has {lengths[longest]:,} tokens; with grpo.max_tokens = {room:,} that "
                f"exceeds the {start.context:,} that the model can read. Show fewer examples (prompt.examples) or "
                "fewer workers (pool_sampling), or take a model with a longer context."
            )
        )
    with collecting_errors(problems):
        past = _read_past_answers()
    workers = estimate_workers(
        settings,
        pool,
        list(tasks.values()),
        plans=settings.plans_with(len(eval_tasks)),
        batch=settings.batch,
        past=past,
    )
    return OpenedQuestions(tasks, eval_tasks, lengths[longest], workers)


def _open_tasks(settings: TrainSettings, pool: Pool, on_warning: Callable[[str], None]) -> Mapping[str, Task]:
    if has_generated_tasks(settings):
        if settings.solved_in:
            raise ConfigError(
                f"solved_in: {settings.tasks} draws questions that no recording has; leave it out.",
                ("solved_in",),
            )
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


async def _prompt_tokens(session: ScoringSession, task: str, codec: PromptCodec | None) -> int:
    messages = await session.prompt(RolloutRequest(task=task, group="check")) or ()
    if codec is None:
        return sum(estimate_tokens(message.content) for message in messages)
    return len(codec.encode(messages))


def _read_past_answers() -> Mapping[str, PastAnswers]:
    """The lengths of workers' answers, from the user's earlier traces."""
    store = Path(default_store())
    if not store.is_file():
        return {}
    with TraceStore(store, read_only=True) as traces:
        return past_answers_in(traces.newest(NEWEST_TRACES))


def _unaffordable_batch(batch: int, workers: WorkerEstimate, budget_usd: float) -> Iterator[ConfigError]:
    """A refusal if the first batch alone is likely to exceed the run's budget."""
    first = workers.cost_usd.times(batch / workers.plans)
    if first.likely > budget_usd:
        yield ConfigError(
            f"The first batch of {batch} plans is likely to cost ${first.likely:,.2f} "
            f"(${first.low:,.2f} to ${first.high:,.2f}), and --run-budget-usd is ${budget_usd:,.2f}: give more, "
            "fewer rollouts (grpo.questions, grpo.group), or a cheaper pool."
        )
