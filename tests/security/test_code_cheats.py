"""Programs that are wrong and try to pass: none does, in any form of tests."""

from __future__ import annotations

import asyncio
import json
import warnings
from functools import cache
from textwrap import dedent
from typing import Any

import pytest

from cheats import APART
from podium.errors import GraderError
from podium.tasks.graders.code_grader import Code
from suite_cheats import TOGETHER

# Short, since some of them never end; what is wrong here in time would be wrong later.
GRADER = Code(allow_weak_sandbox=True, seconds=1, total_seconds=2, memory_mb=512)

CHEATS = {**APART, **TOGETHER}
HALVES = (tuple(CHEATS)[::2], tuple(CHEATS)[1::2])
"""Neighbours try much the same: one of two is for the night."""


@cache
def scores(names: tuple[str, ...]) -> dict[str, float | str]:
    """All of them, graded at once."""
    return asyncio.run(_scores(names))


async def _scores(names: tuple[str, ...]) -> dict[str, float | str]:
    with warnings.catch_warnings(action="ignore"):
        return dict(zip(names, await asyncio.gather(*(_score(*CHEATS[name]) for name in names)), strict=True))


async def _score(gold: dict[str, Any], source: str) -> float | str:
    try:
        return (await GRADER(dedent(source), json.dumps(gold))).score
    except GraderError as error:
        return str(error)


@pytest.mark.parametrize("name", HALVES[0])
def test_no_cheat_passes(name: str) -> None:
    assert scores(HALVES[0])[name] == 0


@pytest.mark.nightly
@pytest.mark.parametrize("name", HALVES[1])
def test_no_other_cheat_passes(name: str) -> None:
    assert scores(HALVES[1])[name] == 0
