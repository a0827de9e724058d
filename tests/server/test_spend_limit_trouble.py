"""A spend limit that cannot be written ends a question; what it has paid for until then is still its answer."""

import httpx
import pytest

from podium.workers.pool import Pool
from podium.workers.scripted import ScriptedWorker
from running_server import Serve
from unavailable_spend_limit import Away


@pytest.mark.parametrize(("calls", "status"), [(0, 503), (1, 200)])
def test_paid_answer_is_returned_although_the_spend_limit_fails(
    serve: Serve, calls: int, status: int
) -> None:
    pool = Pool([ScriptedWorker("ada", ["Answer: 4", "It holds.", "Answer: 5"])])
    url = serve(pool, planner="self-reflection:ada:2", spend_limits=[Away(calls)])
    asked = {"model": "podium", "messages": [{"role": "user", "content": "What is 2 + 2?"}]}
    reply = httpx.post(f"{url}/v1/chat/completions", json=asked)
    assert reply.status_code == status
    if status == 200:
        assert reply.json()["choices"][0]["message"]["content"] == "Answer: 4"
