from __future__ import annotations

import pytest

from podium.workers.response_cache import ResponseCache


@pytest.fixture
def cache(tmp_path):
    with ResponseCache(tmp_path / "deep" / "cache.sqlite") as opened:
        yield opened


@pytest.fixture
def ask(cache):
    """`await ask(worker, request)`: the cache's reply, with the worker asked where there is none."""

    async def asked(worker, request):
        return await cache.get_or_call(worker, request, lambda: worker.answer(request))

    return asked
