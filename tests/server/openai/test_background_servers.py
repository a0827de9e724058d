"""Responses in the background of a server that ends, or is killed, and of two servers on one store."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from openai import OpenAI

from background_team import CALL_USD, QUESTION, Answers, calls, pool_file, pronounce_dead
from chat_model import ChatModel
from key_storage import KeyStorage
from openai_client import client
from podium.spending.shared_spend_limit import SharedSpendLimit
from podium.store import TraceStore
from podium.trace import Trace
from postgres_server import DATABASES, PostgresServer
from running_server import until
from served_process import served


def start(asking: OpenAI, model: ChatModel, *, reach: str) -> str:
    """Begin a response and wait until its call `reach` is in flight. Returns its id."""
    made = asking.responses.create(model="podium", input=QUESTION, background=True)
    until(lambda: calls(model)[reach])
    return made.id


def trace_of(folder: Path, id_: str) -> Trace:
    with TraceStore(folder / "traces.sqlite", create=False) as store:
        return store.get(id_.removeprefix("resp_"))


def test_a_response_of_a_killed_server_fails_and_its_costs_stay_booked(
    tmp_path: Path, answers: Answers, model: ChatModel
) -> None:
    answers.waits = {"beta"}
    given = ("--pool", str(pool_file(tmp_path, model.url)), "--day-budget-usd", "1")
    with served(tmp_path, *given) as server:
        id_ = start(client(server.url), model, reach="beta")
        server.tell(signal.SIGKILL)
        server.ended()
    with served(tmp_path, *given) as server:
        asking = client(server.url)
        assert asking.responses.retrieve(id_).status == "in_progress"
        pronounce_dead(tmp_path / "traces.sqlite")
        failed: Any = asking.responses.retrieve(id_)
        assert (failed.status, failed.background) == ("failed", True)
        assert "server that worked on this response ended" in failed.error.message
        assert "response cache" in failed.error.message
        with pytest.raises(openai.BadRequestError, match="at the server that makes it"):
            asking.responses.retrieve(id_, stream=True)
        assert server.end() == (0, "")
    assert calls(model) == {"plan": 1, "alpha": 1, "beta": 1}
    assert trace_of(tmp_path, id_).status == "failed"
    spend_limit = SharedSpendLimit(tmp_path / "state.sqlite", "day", 1)
    assert spend_limit.spent_usd > 1.99 * CALL_USD
    assert 0 < spend_limit.reserved_usd < 1  # Of the call that was in flight: its provider may bill it.
    spend_limit.close()


def test_a_server_that_ends_waits_for_its_responses(
    tmp_path: Path, answers: Answers, model: ChatModel
) -> None:
    answers.waits = {"beta"}
    with served(tmp_path, "--pool", str(pool_file(tmp_path, model.url))) as server:
        asking = client(server.url)
        id_ = start(asking, model, reach="beta")
        server.tell(signal.SIGTERM)
        assert asking.responses.retrieve(id_).status == "in_progress"
        with pytest.raises(openai.InternalServerError, match="shutting down"):
            asking.responses.create(model="podium", input=QUESTION, background=True)
        threading.Timer(0.3, answers.waits.clear).start()
        assert server.ended() == (0, "")
    done = trace_of(tmp_path, id_)
    assert (done.status, done.answer) == ("ok", "GAMMA")
    assert calls(model) == {"plan": 1, "alpha": 1, "beta": 1, "gamma": 1}


def test_a_response_that_outlasts_the_drain_is_cancelled(
    tmp_path: Path, answers: Answers, model: ChatModel
) -> None:
    answers.waits = {"beta"}
    with served(tmp_path, "--pool", str(pool_file(tmp_path, model.url)), "--drain", "0") as server:
        id_ = start(client(server.url), model, reach="beta")
        assert server.end()[0] == 0
    cancelled = trace_of(tmp_path, id_)
    assert [span.status for span in cancelled.spans] == ["done", "cancelled", "cancelled"]
    assert (cancelled.status, cancelled.spans[0].response) == ("cancelled", "ALPHA")


@pytest.mark.parametrize("database", DATABASES)
def test_another_server_on_the_store_reads_and_cancels_a_response(
    tmp_path: Path,
    answers: Answers,
    model: ChatModel,
    database: str,
    request: pytest.FixtureRequest,
) -> None:
    """With a key, which both servers know."""
    store = str(tmp_path / "traces.sqlite")
    if database == "postgresql":
        postgres: PostgresServer = request.getfixturevalue("postgres_server")
        store = postgres.new_database()
    key, stranger = (KeyStorage(store).add(name, budget="1/day") for name in ("ann", "eve"))
    answers.waits = {"beta"}
    given = ("--pool", str(pool_file(tmp_path, model.url)), "--store", store)
    with served(tmp_path, *given) as one, served(tmp_path, *given) as two:
        asking = client(two.url, key)
        id_ = start(client(one.url, key), model, reach="beta")
        assert asking.responses.retrieve(id_).status == "in_progress"
        with pytest.raises(openai.NotFoundError):
            client(two.url, stranger).responses.retrieve(id_)
        with pytest.raises(openai.BadRequestError, match="at the server that makes it"):
            asking.responses.retrieve(id_, stream=True)
        assert asking.responses.cancel(id_).status == "cancelled"
        assert client(one.url, key).responses.retrieve(id_).status == "cancelled"
        until(lambda: model.gone == 1)
        deleted = client(one.url, key).responses.create(model="ada", input="Say beta.", background=True).id
        until(lambda: calls(model)["beta"] == 2)
        asking.responses.delete(deleted)
        until(lambda: model.gone == 2)
        with pytest.raises(openai.NotFoundError):
            client(one.url, key).responses.retrieve(deleted)
        asking_at: Any = {"headers": {"authorization": f"Bearer {key}"}, "timeout": 60}
        body = {"question": "Say beta.", "planner": "single:ada"}
        id_ = httpx.post(f"{one.url}/api/ask", json=body, **asking_at).json()["id"]
        until(lambda: calls(model)["beta"] == 3)
        assert httpx.delete(f"{two.url}/api/ask/{id_}", **asking_at).status_code == 204
        trace = httpx.get(f"{two.url}/api/traces/{id_}", **asking_at).json()
        assert (trace["status"], trace["owner"]) == ("cancelled", "ann")
        assert (one.end(), two.end()) == ((0, ""), (0, ""))
