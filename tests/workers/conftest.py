"""A chat endpoint on loopback, and a client of it."""

from collections.abc import AsyncIterator

import pytest

from chat_endpoint import KEY, Endpoint, started
from chat_worker import ChatClient


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    endpoint = Endpoint()
    runner = await started(endpoint)
    yield endpoint
    await runner.cleanup()


@pytest.fixture
async def client(endpoint: Endpoint) -> AsyncIterator[ChatClient]:
    client = ChatClient(endpoint.url, KEY)
    yield client
    await client.close()
