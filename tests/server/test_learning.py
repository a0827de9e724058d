"""Outcomes of stored traces teach the server's planner, also over a restart and from another server."""

from __future__ import annotations

from pathlib import Path

import httpx

from podium.types import Profile, Rating
from podium.workers.pool import Pool
from podium.workers.scripted import ScriptedWorker
from running_server import Serve

FIRST = """\
model_id = [0]
subtasks = ["Answer the whole question."]
access_list = [[]]"""


def team() -> Pool:
    ratings = {"ada": 0.9, "bob": 0.6}
    return Pool(
        [
            *(
                ScriptedWorker(
                    name,
                    {"": name},
                    profile=Profile(
                        name=name,
                        rating=Rating(cluster="sums", accuracy=accuracy, cost_usd=0.01, questions=40),
                    ),
                )
                for name, accuracy in ratings.items()
            ),
            ScriptedWorker("first", {"": FIRST}),
        ]
    )


def ask(client: httpx.Client) -> tuple[str, str]:
    """Who answered, and the id of the trace."""
    body = {"model": "podium", "messages": [{"role": "user", "content": "What is 6 x 7?"}]}
    reply = client.post("/v1/chat/completions", json=body)
    return reply.json()["choices"][0]["message"]["content"], reply.headers["x-podium-trace-id"]


def say(client: httpx.Client, id_: str, *, right: bool | None) -> None:
    assert client.post(f"/api/traces/{id_}/outcome", json={"right": right}).status_code == 200


def test_conductor_avoids_a_failing_worker_even_after_a_restart(serve: Serve, tmp_path: Path) -> None:
    planner = "conductor:first"
    store = tmp_path / "traces.sqlite"
    first = serve(team(), planner=planner, store=store, quarantine_failing=True)
    with httpx.Client(base_url=first) as client:
        for right in (True, False):
            asked = [ask(client) for _ in range(12)]
            assert {name for name, _ in asked} == {"ada"}
            for _, id_ in asked:
                say(client, id_, right=right)
        assert ask(client)[0] == "bob"
    serve.stop(first)
    with httpx.Client(
        base_url=serve(team(), planner=planner, store=store, quarantine_failing=True)
    ) as client:
        assert ask(client)[0] == "bob"
        for _, id_ in asked:
            say(client, id_, right=True)
        assert ask(client)[0] == "ada"
