"""A spend limit that cannot be written ends a question; what it has paid for until then is still its answer."""

from pathlib import Path

import httpx
import pytest

from full_disk_limit import full_disk_limit
from podium.types import Price, Profile
from podium.workers.pool import Pool
from podium.workers.scripted import ScriptedWorker
from running_server import Serve


@pytest.mark.parametrize(("after_first", "status"), [(False, 503), (True, 200)])
def test_paid_answer_is_returned_although_the_spend_limit_fails(
    serve: Serve, tmp_path: Path, after_first: bool, status: int
) -> None:
    ada = Profile(name="ada", price=Price(output=1.0))
    pool = Pool([ScriptedWorker("ada", ["Answer: 4", "It holds.", "Answer: 5"], profile=ada)])
    asked = {"model": "podium", "messages": [{"role": "user", "content": "What is 2 + 2?"}]}
    with full_disk_limit(tmp_path / "state.sqlite", after_first=after_first) as limit:
        url = serve(pool, planner="self-reflection:ada:2", spend_limits=[limit])
        reply = httpx.post(f"{url}/v1/chat/completions", json=asked)
    assert reply.status_code == status
    if status == 200:
        assert reply.json()["choices"][0]["message"]["content"] == "Answer: 4"
