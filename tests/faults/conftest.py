"""A pool of endpoints that are all one fault server, asked through a runner as by any user."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from podium.team.team_file import open_pool
from podium.workers.pool import Pool
from podium_testing import FaultServer

PoolAt = Callable[..., Pool]
QUICK = "timeout = 1.0, connect_timeout = 1.0, probe_after = 0.1, retries = 2"


@pytest.fixture
def alone() -> Callable[[FaultServer], Awaitable[None]]:
    """`await alone(server)`: until it has no request and no socket left."""

    async def wait(server: FaultServer) -> None:
        async with asyncio.timeout(5):
            await server.wait_until_idle()
            while server.connections:  # noqa: ASYNC110 - a socket tells nobody that it is closed
                await asyncio.sleep(0.005)

    return wait


@pytest.fixture
def pool_at(tmp_path: Path) -> PoolAt:
    """`pool_at(server, "a", "b", limits="...", also="...")`: workers of these names, and a vote.

    `also` is put to each.
    """

    def make(
        server: FaultServer | str, *names: str, limits: str = QUICK, also: str = "", file: str = "pool.toml"
    ) -> Pool:
        url = server if isinstance(server, str) else server.url
        path = tmp_path / file
        path.write_text(
            "\n".join(
                f"""
[[worker]]
name = "{name}"
kind = "openai"
model = "{name}"
base_url = "{url}"
price = {{ input = 1.0, output = 2.0 }}
limits = {{ {limits} }}
{also}
"""
                for name in names
            )
            + '\n[[worker]]\nname = "vote"\nkind = "vote"\n'
        )
        return open_pool(path)

    return make
