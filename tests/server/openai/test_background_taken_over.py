"""Responses in the background whose server is killed, or ends: another goes on, and nothing is paid for twice."""

from __future__ import annotations

import asyncio
import signal
import threading
from pathlib import Path
from typing import Any

import openai
import pytest
from background import (
    CALL_USD,
    QUESTION,
    Answers,
    add_key,
    calls,
    client,
    ended,
    pool_file,
    until,
)
from chat_model import ChatModel
from openai import OpenAI
from served_process import served

from podium.executor.accounts import Account
from podium.trace import Trace
from podium.trace.store import TraceStore
from postgres_server import DATABASES, PostgresServer

LEASE = ("serve.lease=3",)


def start(asking: OpenAI, model: ChatModel, *, reach: str) -> str:
    """Begin a response and wait until its call `reach` is in flight. Returns its id."""
    made = asking.responses.create(model="podium", input=QUESTION, background=True)
    until(lambda: calls(model)[reach])
    return made.id


def trace_of(folder: Path, id_: str) -> Trace:
    with TraceStore(folder / "traces.sqlite", create=False) as store:
        return store.get(id_.removeprefix("resp_"))


@pytest.mark.parametrize("reach", ["plan", "beta"])
def test_a_killed_server_goes_on_after_restart_and_calls_no_step_again(
    tmp_path: Path, answers: Answers, model: ChatModel, reach: str
) -> None:
    answers.waits = {reach}
    pool = str(pool_file(tmp_path, model.url))
    given = ("--pool", pool, *LEASE, "--day-budget-usd", "1")
    with served(tmp_path, *given) as server:
        id_ = start(client(server.url), model, reach=reach)
        before = []
        with client(server.url).responses.retrieve(id_, stream=True) as stream:
            for event in stream:
                before.append(event)
                if reach == "plan" or "Step 1: ada is called" in getattr(event, "delta", ""):
                    break
        server.tell(signal.SIGKILL)
        server.ended()
    answers.waits = set()
    with served(tmp_path, *given) as server:
        after = before[-1].sequence_number
        rest = list(client(server.url).responses.retrieve(id_, stream=True, starting_after=after))
        assert list(client(server.url).responses.retrieve(id_, stream=True)) == [*before, *rest]
        done: Any = ended(client(server.url), id_)
        assert (done.status, done.output_text) == ("completed", "GAMMA")
        assert server.end() == (0, "")
    made = {"plan": 1, "alpha": 1, "beta": 1, "gamma": 1}
    assert calls(model) == made | {reach: 2}
    trace = trace_of(tmp_path, id_)
    assert done.usage.cost == trace.cost_usd == pytest.approx(4 * CALL_USD)
    interrupted = [attempt.error_kind for span in trace.spans for attempt in span.attempts[:-1]]
    if reach == "plan":
        assert (trace.rounds[0].plan_unpriced, interrupted) == (True, [])
    else:
        assert (trace.rounds[0].plan_unpriced, interrupted) == (False, ["interrupted"])
        assert "may have been paid for" in str(trace.spans[1].attempts[0].error)
    account = Account(tmp_path / "state.sqlite", "day", 1)
    checks = (account.spent_usd - done.usage.cost) / CALL_USD  # Each start of a server asks for a plan.
    assert round(checks, 6) in (0, 1, 2)
    assert 0 < account.reserved_usd < 1  # Of the call that was in flight: its provider may bill it.
    account.close()


def test_a_server_that_ends_waits_for_its_call_and_leaves_the_rest(
    tmp_path: Path, answers: Answers, model: ChatModel
) -> None:
    answers.waits = {"beta"}
    given = ("--pool", str(pool_file(tmp_path, model.url)), "serve.lease=600")
    with served(tmp_path, *given) as server:
        asking = client(server.url)
        id_ = start(asking, model, reach="beta")
        server.tell(signal.SIGTERM)
        assert asking.responses.retrieve(id_).status == "in_progress"
        with pytest.raises(openai.InternalServerError, match="shutting down"):
            asking.responses.create(model="podium", input=QUESTION, background=True)
        threading.Timer(0.3, answers.waits.clear).start()
        assert server.ended() == (0, "")
    assert calls(model) == {"plan": 1, "alpha": 1, "beta": 1}
    with served(tmp_path, *given) as server:
        done: Any = ended(client(server.url), id_)
        assert done.status == "completed"
        assert server.end() == (0, "")
    assert calls(model) == {"plan": 1, "alpha": 1, "beta": 1, "gamma": 1}
    assert done.usage.cost == pytest.approx(4 * CALL_USD)
    assert all(len(span.attempts) == 1 for span in trace_of(tmp_path, id_).spans)


def test_a_call_that_outlasts_the_drain_is_cancelled_and_made_again(
    tmp_path: Path, answers: Answers, model: ChatModel
) -> None:
    answers.waits = {"beta"}
    given = ("--pool", str(pool_file(tmp_path, model.url)), "serve.lease=600", "--drain", "0")
    with served(tmp_path, *given) as server:
        id_ = start(client(server.url), model, reach="beta")
        assert server.end() == (0, "")
    answers.waits = set()
    with served(tmp_path, *given) as server:
        assert ended(client(server.url), id_).status == "completed"
        server.end()
    assert calls(model) == {"plan": 1, "alpha": 1, "beta": 2, "gamma": 1}
    kinds = [attempt.error_kind for attempt in trace_of(tmp_path, id_).spans[1].attempts]
    assert kinds == ["cancelled", None]


def test_a_response_whose_worker_is_gone_fails_with_its_costs(
    tmp_path: Path, answers: Answers, model: ChatModel
) -> None:
    answers.waits = {"beta"}
    pool = str(pool_file(tmp_path, model.url))
    with served(tmp_path, "--pool", pool, *LEASE) as server:
        id_ = start(client(server.url), model, reach="beta")
        server.tell(signal.SIGKILL)
        server.ended()
    pool_file(tmp_path, model.url, name="bob")
    with served(tmp_path, "--pool", pool, *LEASE) as server:
        failed: Any = ended(client(server.url), id_)
        assert failed.status == "failed"
        assert "'ada' of its plan is no longer among those that it may use" in failed.error.message
        assert failed.usage.cost == pytest.approx(2 * CALL_USD)
        server.end()
    assert calls(model) == {"plan": 1, "alpha": 1, "beta": 1}


@pytest.mark.parametrize("database", DATABASES)
def test_of_two_servers_on_one_store_one_goes_on_with_what_the_other_left(
    tmp_path: Path,
    answers: Answers,
    model: ChatModel,
    database: str,
    request: pytest.FixtureRequest,
) -> None:
    """With a key, whose spending and visibility both servers know."""
    store = str(tmp_path / "traces.sqlite")
    if database == "postgresql":
        postgres: PostgresServer = request.getfixturevalue("postgres_server")
        store = postgres.new_database()
    pool = str(pool_file(tmp_path, model.url))
    key, stranger = (asyncio.run(add_key(store, name)) for name in ("ann", "eve"))
    answers.waits = {"beta"}
    given = ("--pool", pool, "serve.lease=5", "--store", store)
    with served(tmp_path, *given) as one, served(tmp_path, *given) as two:
        id_ = start(client(one.url, key), model, reach="beta")
        assert client(two.url, key).responses.retrieve(id_).status == "in_progress"
        with pytest.raises(openai.NotFoundError):
            client(two.url, stranger).responses.retrieve(id_)
        one.tell(signal.SIGKILL)
        one.ended()
        until(lambda: calls(model)["beta"] == 2)
        answers.waits = set()
        done: Any = ended(client(two.url, key), id_)
        assert (done.status, done.output_text) == ("completed", "GAMMA")
        assert calls(model) == {"plan": 1, "alpha": 1, "beta": 2, "gamma": 1}
        assert two.end() == (0, "")


def test_a_response_is_cancelled_at_another_server_than_its_own(
    tmp_path: Path, answers: Answers, model: ChatModel
) -> None:
    answers.waits = {"beta"}
    given = ("--pool", str(pool_file(tmp_path, model.url)), "serve.lease=30")
    with served(tmp_path, *given) as one, served(tmp_path, *given) as two:
        id_ = start(client(one.url), model, reach="beta")
        assert client(two.url).responses.cancel(id_).status == "cancelled"
        assert client(one.url).responses.retrieve(id_).status == "cancelled"
        until(lambda: model.gone == 1)
        assert (one.end(), two.end()) == ((0, ""), (0, ""))
