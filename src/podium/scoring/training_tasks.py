"""The questions of a training run: the train split of a task set, without questions that the policy is measured on.

A task set never has the same question in two splits. This file also finds training questions that share most of their
words with a held-out question, or are in a set that the run names as held out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from podium.errors import ConfigError, NoTasksError
from podium.recordings import Recording
from podium.scoring.settings import ScoringSettings
from podium.tasks import ALL_TASKS, Task, TaskSet, open_tasks, warnings_of
from podium.tasks.open import generated_names, is_mixture, open_splits, splits_of
from podium.tasks.overlap import Overlap, overlaps
from podium.tasks.sets.base import task_key
from podium.tasks.task import SPLITS
from podium.workers.base import Worker

_GENERATED_TASKS = 1000
"""How many generated tasks to use by default, since a generated set is infinite."""
_MAX_SHARED_NGRAMS = 0.5
"""A question counts as held out if held-out texts contain more than this share of its n-grams."""
_SHOWN_CHARS = 60
"""Characters of a question that a message shows."""


def open_training_tasks(
    settings: ScoringSettings,
    pool: Iterable[Worker],
    on_warning: Callable[[str], None] = lambda warning: None,
) -> dict[str, Task]:
    """The tasks of the train split by id, in the set's order.

    Raises:
        ConfigError: the set is unknown or empty, a held-out set is unknown, or they share questions and `on_overlap`
            does not allow it; or `solved_in` is no recording, or no question of it was answered right.
    """
    generated = settings.tasks in generated_names()
    size = settings.task_limit or (_GENERATED_TASKS if generated else ALL_TASKS)
    own = _open_whole(settings.tasks)
    opened = own.pop("train", None) or open_tasks(
        settings.tasks, "train", size=size if generated else ALL_TASKS, pool=pool
    )
    for warning in warnings_of(opened):
        on_warning(warning)
    tasks = _solved(settings, list(opened), on_warning) if settings.solved_in else list(opened)
    return without_held_out(settings, tasks[:size], on_warning, own=own)


def _solved(settings: ScoringSettings, tasks: list[Task], on_warning: Callable[[str], None]) -> list[Task]:
    """The tasks without those to which the recording `solved_in` has scored responses, all of them wrong."""
    recording = Recording.open(Path(settings.solved_in))
    solved = []
    for task in tasks:
        scored = [one for one in recording.all_responses(task.question.text) if one.score is not None]
        if not scored or any(one.correct for one in scored):
            solved.append(task)
    if not solved:
        raise ConfigError(
            f"No training question of {settings.tasks} was answered right in {settings.solved_in}; record better "
            "workers, or leave solved_in out.",
            ("solved_in",),
        )
    on_warning(
        f"{len(tasks) - len(solved):,} of {len(tasks):,} training questions are left out, since no worker in "
        f"{settings.solved_in} answered them right."
    )
    return solved


def without_held_out(
    settings: ScoringSettings,
    tasks: list[Task],
    on_warning: Callable[[str], None] = lambda warning: None,
    *,
    own: Mapping[str, TaskSet] | None = None,
) -> dict[str, Task]:
    """Training questions by id, in the same order, without those that are held-out questions too.

    Args:
        own: the other splits of the same set, if they are open.

    Raises:
        ConfigError: a held-out set is unknown, or they share questions and `on_overlap` does not allow it.
    """
    overlapping = overlaps([task_key(task) for task in tasks], _held_out(settings, own or {}))
    overlapping = [
        overlap for overlap in overlapping if overlap.is_equal or overlap.shared > _MAX_SHARED_NGRAMS
    ]
    if overlapping:
        sentence = _overlap_sentence(settings.tasks, tasks, overlapping)
        left_out = {overlap.index for overlap in overlapping}
        if settings.on_overlap == "refuse" or len(left_out) == len(tasks):
            raise ConfigError(sentence)
        on_warning(sentence)
        tasks = [task for index, task in enumerate(tasks) if index not in left_out]
    return {task.id: task for task in tasks}


def open_validation_tasks(settings: ScoringSettings, pool: Iterable[Worker], size: int) -> dict[str, Task]:
    """At most `size` tasks of the validation split by id.

    The ids begin with "validation/", so that they differ from those of training tasks in the same session.

    Raises:
        ConfigError: the set has no validation split, or it is empty.
    """
    tasks = open_tasks(settings.tasks, "validation", size=size, pool=pool)
    return {f"validation/{task.id}": task for task in tasks}


def _open_whole(name: str) -> dict[str, TaskSet]:
    """All splits of a task set that is read from files. Of others each split is opened when it is needed."""
    return open_splits(name, splits_of(name)) if is_mixture(name) else {}


def _held_out(settings: ScoringSettings, own: Mapping[str, TaskSet]) -> Iterator[tuple[str, str]]:
    """The questions that the policy is measured on: (task id, text).

    The splits of generated tasks are not compared with each other, since they have no question in common but share
    short wordings.
    """
    if settings.tasks not in generated_names():
        for split in splits_of(settings.tasks):
            if split != "train":
                yield from _texts(settings.tasks, split, own)
    for entry in settings.held_out:
        named, _, split = entry.rpartition(":")
        has_split = bool(named) and split in SPLITS
        name = named if has_split else entry
        if settings.tasks == name and name in generated_names():
            continue
        opened = {} if has_split else _open_whole(name)
        for held_out in (split,) if has_split else splits_of(entry):
            yield from _texts(name, held_out, opened)


def _texts(name: str, split: str, opened: Mapping[str, TaskSet]) -> Iterator[tuple[str, str]]:
    try:
        tasks = opened.get(split) or open_tasks(
            name, split, size=_GENERATED_TASKS if name in generated_names() else ALL_TASKS
        )
    except NoTasksError:
        return
    for task in tasks:
        yield task.id, task_key(task)


def _overlap_sentence(name: str, tasks: list[Task], overlapping: list[Overlap]) -> str:
    first = overlapping[0]
    task = tasks[first.index]
    text = " ".join(task.question.text.split())
    text = text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}..."
    much = "as a whole" if first.is_equal else f"with {first.shared:.0%} of its n-grams"
    return (
        f"{len(overlapping):,} of {len(tasks):,} training questions of {name} are held-out questions too; {task.id} "
        f'("{text}") is in {first.location} {much}. Remove them from the train split, remove the set from held_out, '
        'or set on_overlap = "leave_out" to train without them.'
    )
