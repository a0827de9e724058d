"""Sets by name, as task files and command lines call them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from podium.config import build
from podium.errors import ConfigError
from podium.tasks.sets.base import TaskSetSpec
from podium.tasks.sets.registry import TASK_SETS
from podium.tasks.task_file import TaskFile


def kinds_of_set(base: type[TaskSetSpec] = TaskSetSpec) -> Iterator[type[TaskSetSpec]]:
    """The classes of ours that have a name."""
    for spec in base.__subclasses__():
        if isinstance(spec.model_fields["set"].default, str) and spec.__module__.startswith("podium."):
            yield spec
        yield from kinds_of_set(spec)


def test_every_set_can_stand_in_a_task_file() -> None:
    assert set(kinds_of_set()) <= set(TASK_SETS)


def test_unknown_task_set_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match="did you mean 'inspect'"):
        build({"name": "mine", "part": [{"set": "inspect_"}]}, TaskFile)
