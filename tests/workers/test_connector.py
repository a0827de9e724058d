import asyncio
from types import SimpleNamespace

import aiohttp

from chat_endpoint import ask
from chat_worker import ChatClient
from podium.workers.connections import OPENING, Connections
from podium_testing import FaultServer

CALLS = 3 * OPENING


async def test_a_burst_of_calls_opens_only_so_many_connections_at_the_same_time() -> None:
    opening = most = 0

    async def start(*_: object) -> None:
        nonlocal opening, most
        opening += 1
        most = max(most, opening)

    async def end(*_: object) -> None:
        nonlocal opening
        opening -= 1

    watch = aiohttp.TraceConfig(trace_config_ctx_factory=SimpleNamespace)
    watch.on_connection_create_start.append(start)
    watch.on_connection_create_end.append(end)
    watch.freeze()
    connections = Connections()
    async with FaultServer("Yes.") as server:
        client = ChatClient(server.url, connections=connections)
        (await connections.session()).trace_configs.append(watch)
        try:
            replies = await asyncio.gather(*(ask(client) for _ in range(CALLS)))
        finally:
            await client.close()
    assert [reply.text for reply in replies] == ["Yes."] * CALLS
    assert most == OPENING
    assert opening == 0
