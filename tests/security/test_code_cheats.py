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
from suite_cheats import TOGETHER

from podium.errors import GraderError
from podium.tasks.graders.code_grader import Code

# Short, since some of them never end; what is wrong here in time would be wrong later.
GRADER = Code(allow_weak_sandbox=True, seconds=1, total_seconds=2, memory_mb=512)

CHEATS = {**APART, **TOGETHER}


@cache
def scores() -> dict[str, float | str]:
    """All of them, graded at once."""
    return asyncio.run(_scores())


async def _scores() -> dict[str, float | str]:
    with warnings.catch_warnings(action="ignore"):
        return dict(
            zip(CHEATS, await asyncio.gather(*(_score(*cheat) for cheat in CHEATS.values())), strict=True)
        )


async def _score(gold: dict[str, Any], source: str) -> float | str:
    try:
        return (await GRADER(dedent(source), json.dumps(gold))).score
    except GraderError as error:
        return str(error)


@pytest.mark.parametrize("name", CHEATS)
def test_no_cheat_passes(name: str) -> None:
    assert scores()[name] == 0
