"""A user's program, whose types `make check` has mypy find."""

from __future__ import annotations

from typing import assert_type

import podium


async def main() -> None:
    async with podium.Team.open("my.toml", budget=podium.Budget(usd=0.1)) as team:
        assert_type((await team.ask("2 + 3?")).answer, str | None)
