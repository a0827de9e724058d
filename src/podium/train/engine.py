"""What an engine is and gets for a run of either stage; `opening` opens an engine by its name.

An engine is a module with the functions `train(job)` and `find_problems`, one module for GRPO and one for the
supervised stage. The engine writes completions (`RolloutCollector.run` asks for them through a `Sampler`), computes the
loss, and keeps checkpoints from which it continues. Prompts, plans, examples, rewards, evaluations and rows are made
outside, in the same way for both engines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from podium.conductor.checkpoint import Checkpoint
from podium.errors import PodiumError
from podium.rollout.run_folder import RunFolder
from podium.train.metrics_recorder import Recorder
from podium.train.progress import Progress
from podium.train.ranks import Ranks
from podium.train.rollouts import RolloutCollector, Sampler
from podium.train.schedule import ScheduledGroup
from podium.train.settings import TrainSettings


@dataclass(frozen=True, slots=True)
class _Job:
    """The settings, folder and initial checkpoint that both stages need on each rank."""

    settings: TrainSettings
    folder: Path
    """The run's folder. An engine keeps its state in `checkpoints` and leaves the trained weights in `trained`."""
    initial_checkpoint: Checkpoint
    tokenizer: Any
    """The tokenizer of transformers. None in GRPO if the codec needs no chat template."""

    @property
    def trained_folder(self) -> Path:
        return self.folder / "trained"

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"


@dataclass(frozen=True, slots=True)
class TrainingJob(_Job):
    """One run of GRPO, on this rank."""

    groups: Sequence[ScheduledGroup]
    rollouts: RolloutCollector
    recorder: Recorder
    evaluate: Callable[[Sampler], dict[str, Any]] | None
    """Evaluates the policy that a sampler samples from. None if there are no evaluations."""


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
class SupervisedJob(_Job):
    """One run of the supervised stage, on this rank."""

    examples: Sequence[EncodedExample]
    """The examples, at least one."""
    run: RunFolder | None
    """The run's folder, for the rows. None on a rank that writes no rows."""
    progress: Progress
    ranks: Ranks


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
            BudgetError: the dollars of the run or the day are spent. The same call continues from the last checkpoint.
            ConfigError, CheckpointError: the start or the saved state cannot be used.
            TrainingInterruptedError: `RolloutCollector.stop` was set.
        """
        ...
