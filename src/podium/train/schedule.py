"""Assigns a task and a round to each group of samples, before the run starts, and names what the groups draw.

The engines take the groups in order, so a resumed run continues with the same groups.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random

from podium.errors import ConfigError
from podium.scoring import RolloutRequest
from podium.scoring.session import RolloutSeeds
from podium.tasks import Task
from podium.tasks.open import ALL_TASKS, generated_names, generated_set
from podium.train.settings import TrainSettings


@dataclass(frozen=True, slots=True)
class ScheduledGroup:
    """One group of samples: a task in one round of one iteration."""

    iteration: int
    question: int
    """The number of the question in its iteration."""
    round: int
    task: str
    """The id of the task."""
    name: str
    """The name of the group for the scoring session. The rounds of one question share it."""

    @property
    def label(self) -> str:
        """The text that TRL's trainer has as the prompt. No two groups of a run have the same."""
        return f"iteration {self.iteration}, question {self.question}: {self.task}, round {self.round}"


def schedule(settings: TrainSettings, tasks: Sequence[str]) -> list[ScheduledGroup]:
    """All groups of a run, in order. The rounds of a question are consecutive groups, so that one rank has them all.

    Each task comes once before any task comes again, in a new order in each pass. Generated tasks come in the order of
    `generate_tasks`.
    """
    drawn = has_generated_tasks(settings)

    @cache
    def order(epoch: int) -> list[str]:
        shuffled = list(tasks)
        if not drawn:
            Random(f"tasks/{settings.seed}/turn {epoch}").shuffle(shuffled)
        return shuffled

    groups = []
    for iteration in range(settings.grpo.iterations):
        for question in range(settings.grpo.questions):
            epoch, index = divmod(iteration * settings.grpo.questions + question, len(tasks))
            name = f"train/{settings.seed}/{iteration}/{question}"
            groups += [
                ScheduledGroup(iteration, question, round_, order(epoch)[index], name)
                for round_ in range(settings.rounds)
            ]
    return groups


def has_generated_tasks(settings: TrainSettings) -> bool:
    """Whether each iteration draws new questions from a generated task set without a limit."""
    return settings.tasks in generated_names() and settings.task_limit is None


def generate_tasks(settings: TrainSettings, without: Container[str] = ()) -> dict[str, Task]:
    """The questions of all iterations by id, in order. The curriculum gives the task set's settings in each iteration.

    Args:
        without: ids of questions that are not drawn.

    Raises:
        ConfigError: the curriculum does not fit the task set.
    """
    generated = generated_set(settings.tasks)
    assert generated is not None
    tasks: dict[str, Task] = {}
    for iteration in range(settings.grpo.iterations):
        begun = [stage.settings for stage in settings.curriculum if stage.start <= iteration]
        try:
            source = generated("train", size=ALL_TASKS, **(begun[-1] if begun else {}))
        except (TypeError, ValueError) as error:
            raise ConfigError(f"curriculum: {settings.tasks} refuses it: {error}", ("curriculum",)) from None
        rng = Random(f"tasks/{settings.seed}/{iteration}")
        task_count = len(tasks) + settings.grpo.questions
        while len(tasks) < task_count:
            task = source[rng.randrange(ALL_TASKS)]
            if task.id not in without:
                tasks.setdefault(task.id, task)
    return tasks


def iteration_seeds(groups: Sequence[ScheduledGroup], seed: int) -> Callable[[RolloutRequest], RolloutSeeds]:
    """Seeds that are named by a run's seed and the iteration. Rollouts of evaluations have those of `RolloutSeeds.of`.

    Args:
        groups: the schedule of the run.
        seed: the seed of the run.
    """
    scheduled = {group.name: group for group in groups}

    def seeds_of(request: RolloutRequest) -> RolloutSeeds:
        group = scheduled.get(request.group)
        if group is None:
            return RolloutSeeds.of(request)
        iteration = f"train/{seed}/{group.iteration}"
        return RolloutSeeds(
            pool=f"{seed}/{group.iteration}/{request.task}",
            # "thrift" was the name of cost sensitivity. Another word would draw other levels than published runs had.
            level=f"{iteration}/thrift",
            calls=f"{iteration}/{request.task}/{group.question}/{request.rollout}",
            earlier_levels=group.question,
        )

    return seeds_of
