"""What an engine is, and the job that it gets for a run of either stage.

An engine is a module with the functions `train(job)` and `find_problems`, one module for GRPO and one for the
supervised stage. The engine writes completions (`RolloutCollector.run` asks for them through a `Sampler`), computes the
loss, and keeps checkpoints from which it continues. Prompts, plans, examples, rewards, evaluations and rows are made
outside, in the same way for both engines.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from podium.conductor.checkpoint import Checkpoint
from podium.conductor.codec import PromptCodec
from podium.errors import PodiumError
from podium.tasks import Task
from podium.train.metrics import EVALUATION_FIGURES, batch_figures
from podium.train.metrics_recorder import IterationRecorder, StepRecorder
from podium.train.ranks import Ranks
from podium.train.rollouts import RolloutCollector, RolloutSample, Sampler
from podium.train.run_estimate import WorkerEstimate
from podium.train.schedule import ScheduledGroup
from podium.train.settings import TrainSettings
from podium.workers.pool import Pool


@dataclass(frozen=True, slots=True)
class OpenedQuestions:
    """The questions of GRPO, and what plans for them need. There are none on a rank that does not call workers."""

    tasks: Mapping[str, Task] = field(default_factory=dict)
    """The training questions by id."""
    eval_tasks: Mapping[str, Task] = field(default_factory=dict)
    """The validation questions by id. There are none if there are no evaluations."""
    longest_prompt: int = 0
    """Tokens of the longest prompt of a first round. Without a tokenizer, an estimate of four characters per token."""
    workers: WorkerEstimate | None = None
    """What workers would do and cost. None if the pool or the tasks could not be opened."""


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """What a run of either stage has opened on this rank before it begins."""

    settings: TrainSettings
    """The settings, with what their file leaves to the start (`resolve`)."""
    ranks: Ranks
    folder: Path
    """The run's folder. A dry run, which writes nothing, may have none, and then this is the working folder."""
    pool: Pool
    start: Checkpoint
    tokenizer: Any
    """The tokenizer of transformers. None in GRPO if the codec needs no chat template."""
    codec: PromptCodec
    questions: OpenedQuestions = OpenedQuestions()

    @property
    def checkpoints(self) -> Path:
        """The folder in which an engine keeps its state."""
        return self.folder / "checkpoints"

    @property
    def trained(self) -> Path:
        """The folder in which an engine leaves the trained weights."""
        return self.folder / "trained"


@dataclass(frozen=True, slots=True)
class TrainingJob:
    """One run of GRPO, on this rank."""

    run: TrainingRun
    groups: Sequence[ScheduledGroup]
    rollouts: RolloutCollector
    recorder: IterationRecorder
    eval_tasks: Sequence[str] = ()
    """The ids of the validation questions. There are none if there are no evaluations."""

    def evaluate(self, sampler: Sampler) -> dict[str, Any] | None:
        """Make one greedy rollout of each validation question, if an evaluation is due after this iteration.

        The ranks divide the questions among themselves, and must call this together. Every evaluation of a run uses the
        same pools, and the same seeds for the workers.

        Returns:
            "questions", `EVALUATION_FIGURES` and "seconds". "accuracy", "calls" and "cost_usd" (dollars) are means over
            the questions whose workers did not fail, other figures are about plans. None if no evaluation is due.

        Raises:
            PodiumError: a rank could not get a prompt or a score. Every rank raises the error.
        """
        if not (self.eval_tasks and self.recorder.is_evaluation_due):
            return None
        began = time.perf_counter()
        ranks, settings = self.run.ranks, self.run.settings
        at_once = max(1, settings.batch // ranks.size // settings.rounds)
        own = list(enumerate(self.eval_tasks))[ranks.index :: ranks.size]
        samples: list[RolloutSample] = []
        # Each rank loops equally often, because ranks that hold parts of one model must generate together.
        for first in range(0, len(self.eval_tasks[:: ranks.size]), at_once):
            part = [
                RolloutSample(
                    ScheduledGroup(0, number, round_, task, f"evaluation/{settings.seed}/{number}"), 0
                )
                for number, task in own[first : first + at_once]
                for round_ in range(settings.rounds)
            ]
            samples += self.rollouts.run(part, sampler, max_samples=at_once, greedy=True)[0]
        figures = batch_figures(ranks.gather(samples))
        return {
            "questions": len(self.eval_tasks),
            **{key: figures[key] for key in EVALUATION_FIGURES},
            "seconds": time.perf_counter() - began,
        }


@dataclass(frozen=True, slots=True)
class EncodedExample:
    """A prompt and the completion to learn, as token ids."""

    prompt: tuple[int, ...]
    completion: tuple[int, ...]
    """The tokens to learn, including the token that ends the completion."""

    @property
    def length(self) -> int:
        """The number of tokens of prompt and completion."""
        return len(self.prompt) + len(self.completion)


@dataclass(frozen=True, slots=True)
class SupervisedJob:
    """One run of the supervised stage, on this rank."""

    run: TrainingRun
    examples: Sequence[EncodedExample]
    """The examples, at least one."""
    recorder: StepRecorder


Job_contra = TypeVar("Job_contra", contravariant=True)


class TrainingEngine(Protocol[Job_contra]):
    """The module of an engine, for one stage."""

    def find_problems(
        self, settings: TrainSettings, start: Checkpoint | None, ranks: int
    ) -> list[PodiumError]:
        """The reasons why the engine cannot train this run. `start` is None if it could not be found."""
        ...

    def train(self, job: Job_contra) -> None:
        """Train, or continue from the newest checkpoint. For GRPO this runs in a separate thread.

        Raises:
            BudgetExceededError: the run's or day's dollars are spent. The same call continues from the last checkpoint.
            ConfigError, CheckpointError: the start or the saved state cannot be used.
            TrainingInterruptedError: `RolloutCollector.stop` was set.
        """
        ...
