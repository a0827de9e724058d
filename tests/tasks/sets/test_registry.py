"""Sets by name, as task files and command lines call them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from pydantic import TypeAdapter

from podium.config import build
from podium.errors import ConfigError
from podium.tasks.mixture import TaskFile
from podium.tasks.sets.base import TaskSetSpec
from podium.tasks.sets.registry import NAMED_SETS, AnyTaskSet

HEAVY = ("huggingface_hub", "inspect_ai", "math_verify", "pyarrow", "reasoning_gym", "sympy", "torch")


def kinds_of_set(base: type[TaskSetSpec] = TaskSetSpec) -> Iterator[type[TaskSetSpec]]:
    """The classes of ours that have a name."""
    for spec in base.__subclasses__():
        if isinstance(spec.model_fields["set"].default, str) and spec.__module__.startswith("podium."):
            yield spec
        yield from kinds_of_set(spec)


@pytest.mark.parametrize("name", NAMED_SETS)
def test_a_named_set_needs_no_settings(name: str) -> None:
    (part,) = build({"name": "mine", "part": [{"set": name}]}, TaskFile).part
    assert part == NAMED_SETS[name]()
    assert part.set == name
    assert part.splits


def test_every_set_can_stand_in_a_task_file() -> None:
    schema = TypeAdapter(AnyTaskSet).json_schema()
    known = set(schema["discriminator"]["mapping"])
    assert {spec.model_fields["set"].default for spec in kinds_of_set()} == known
    assert known >= set(NAMED_SETS)


def test_names_in_a_mixture_tell_sets_and_their_settings_apart() -> None:
    parts = [
        {"set": "aime", "year": 2024},
        {"set": "aime"},
        {"set": "bigcodebench"},
        {"set": "bigcodebench", "hard": False},
        {"set": "gpqa"},
        {"set": "gpqa", "subset": "main"},
        {"set": "humaneval"},
        {"set": "humaneval", "plus": True},
        {"set": "livecodebench", "release": "release_v5"},
        {"set": "livecodebench"},
        {"set": "mbpp"},
        {"set": "mbpp", "form": "plus"},
    ]
    labels = [part.label for part in build({"name": "mine", "part": parts}, TaskFile).part]
    assert len(set(labels)) == len(parts)


def test_a_set_that_there_is_not_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'mmlu-pro'"):
        build({"name": "mine", "part": [{"set": "mmlu_pro"}]}, TaskFile)


def test_knowing_the_sets_loads_nothing_heavy() -> None:
    loaded = f"[m for m in {HEAVY!r} if m in sys.modules]"
    asked = f"import sys, json, podium.tasks.sets.registry; print(json.dumps({loaded}))"
    run = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, check=True, timeout=120
    )
    assert json.loads(run.stdout) == []
