"""Responses in the background, with the official client: made without it, cancelled, deleted, streamed."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from openai import OpenAI

from background_team import CALL_USD, QUESTION, Answers, calls, ended, pool_file
from chat_model import ChatModel
from installed_package import install_package
from openai_client import client
from podium.server import background
from running_server import Serve, until


@pytest.fixture
def asking(serve: Serve, model: ChatModel, tmp_path: Path) -> OpenAI:
    return client(serve(str(pool_file(tmp_path, model.url)), store=tmp_path / "traces.sqlite"))


def test_a_response_is_made_after_its_caller_has_left(
    asking: OpenAI, answers: Answers, model: ChatModel
) -> None:
    answers.waits = {"gamma"}
    made = asking.responses.create(
        model="podium", input=QUESTION, background=True, metadata={"a": "b"}, prompt_cache_key="k"
    )
    assert (made.status, made.background, made.output, made.usage) == ("queued", True, [], None)
    until(lambda: calls(model)["gamma"])
    seen = asking.responses.retrieve(made.id)
    assert (seen.status, seen.output, seen.completed_at) == ("in_progress", [], None)
    with pytest.raises(openai.BadRequestError, match="still being made"):
        asking.responses.create(model="podium", input="And?", previous_response_id=made.id)
    answers.waits = set()
    done = ended(asking, made.id)
    assert (done.status, done.output_text, done.background) == ("completed", "GAMMA", True)
    assert (done.metadata, done.prompt_cache_key, done.model) == ({"a": "b"}, "k", "podium")
    assert (done.id, done.created_at) == (made.id, made.created_at)
    assert calls(model) == {"plan": 1, "alpha": 1, "beta": 1, "gamma": 1}
    assert done.usage.cost == pytest.approx(4 * CALL_USD)
    following = asking.responses.create(model="ada", input="Say beta.", previous_response_id=made.id)
    assert following.output_text == "BETA"


def test_running_response_can_be_cancelled_and_cancelling_is_idempotent(
    asking: OpenAI, answers: Answers, model: ChatModel
) -> None:
    answers.waits = {"beta"}
    made = asking.responses.create(model="podium", input=QUESTION, background=True)
    until(lambda: calls(model)["beta"])
    cancelled: Any = asking.responses.cancel(made.id)
    assert (cancelled.status, cancelled.background, cancelled.error) == ("cancelled", True, None)
    # Two calls that ended, and what was sent for the one in flight.
    assert 2 * CALL_USD < cancelled.usage.cost < 3 * CALL_USD
    until(lambda: model.gone == 1)
    assert asking.responses.cancel(made.id) == asking.responses.retrieve(made.id) == cancelled
    assert calls(model) == {"plan": 1, "alpha": 1, "beta": 1}


def test_only_a_response_in_the_background_can_be_cancelled(asking: OpenAI) -> None:
    made = asking.responses.create(model="ada", input="Say alpha.")
    with pytest.raises(openai.BadRequestError, match="Only a response in the background"):
        asking.responses.cancel(made.id)
    with pytest.raises(openai.NotFoundError):
        asking.responses.cancel("resp_" + "0" * 32)


def test_a_response_deleted_while_it_is_made_stops_and_leaves_nothing(
    asking: OpenAI, answers: Answers, model: ChatModel
) -> None:
    answers.waits = {"beta"}
    made = asking.responses.create(model="podium", input=QUESTION, background=True)
    until(lambda: calls(model)["beta"])
    asking.responses.delete(made.id)
    until(lambda: model.gone == 1)
    for read in (asking.responses.retrieve, asking.responses.delete, asking.responses.cancel):
        with pytest.raises(openai.NotFoundError):
            read(made.id)
    assert httpx.get(f"{asking.base_url}../api/traces").json()["traces"] == []


def test_a_stream_goes_on_where_it_broke_off(asking: OpenAI, answers: Answers, model: ChatModel) -> None:
    answers.waits = {"beta"}
    first = []
    with asking.responses.create(model="podium", input=QUESTION, background=True, stream=True) as stream:
        for event in stream:
            first.append(event)
            if getattr(event, "delta", "").startswith("Step 1: ada is called"):
                break
    made: Any = first[0]
    assert [event.type for event in first[:3]] == [
        "response.created",
        "response.queued",
        "response.in_progress",
    ]
    assert made.response.status == "queued"
    answers.waits = set()
    rest = list(
        asking.responses.retrieve(made.response.id, stream=True, starting_after=first[-1].sequence_number)
    )
    whole = list(asking.responses.retrieve(made.response.id, stream=True))
    assert [*first, *rest] == whole
    assert [event.sequence_number for event in whole] == list(range(len(whole)))
    last: Any = whole[-1]
    assert (last.type, last.response.output_text) == ("response.completed", "GAMMA")


def test_stream_of_failed_or_cancelled_response_ends_in_response_failed(
    asking: OpenAI, answers: Answers, model: ChatModel
) -> None:
    answers.waits = {"beta"}
    made = asking.responses.create(model="podium", input=QUESTION, background=True)
    until(lambda: calls(model)["beta"])
    asking.responses.cancel(made.id)
    *_, last = asking.responses.retrieve(made.id, stream=True)
    assert (last.type, last.response.status) == ("response.failed", "cancelled")
    poor: Any = {"podium": {"budget": {"usd": 0}}}
    failed = asking.responses.create(model="podium", input=QUESTION, background=True, extra_body=poor)
    done = ended(asking, failed.id)
    assert (done.status, done.error.code) == ("failed", "budget_exceeded")
    *_, last = asking.responses.retrieve(failed.id, stream=True)
    assert last.response.error == done.error
    foreground = asking.responses.create(model="ada", input="Say alpha.")
    with pytest.raises(openai.BadRequestError, match="only a response in the background has events"):
        asking.responses.retrieve(foreground.id, stream=True)


def test_a_server_makes_so_many_at_a_time_and_the_next_one_is_queued(
    serve: Serve, answers: Answers, model: ChatModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "MAX_RUNNING", 1)
    monkeypatch.setattr(background, "_MAX_QUEUED", 1)
    asking = client(serve(str(pool_file(tmp_path, model.url)), store=tmp_path / "traces.sqlite"))
    answers.waits = {"alpha"}
    first, second = (
        asking.responses.create(model="ada", input=f"Say {word}.", background=True)
        for word in ("alpha", "beta")
    )
    until(lambda: calls(model)["alpha"])
    assert asking.responses.retrieve(second.id).status == "queued"
    with pytest.raises(openai.RateLimitError, match="Too many questions wait"):
        asking.responses.create(model="ada", input="Say gamma.", background=True)
    answers.waits = set()
    assert [ended(asking, made.id).output_text for made in (first, second)] == ["ALPHA", "BETA"]


def test_response_beyond_the_servers_time_limit_fails(
    serve: Serve, answers: Answers, model: ChatModel, tmp_path: Path
) -> None:
    answers.waits = {"beta"}
    pool = str(pool_file(tmp_path, model.url))
    asking = client(serve(pool, store=tmp_path / "traces.sqlite", timeout=1.0))
    made = asking.responses.create(model="podium", input=QUESTION, background=True)
    done = ended(asking, made.id)
    assert (done.status, done.error.code) == ("failed", "request_timeout")
    assert "no answer within 1 s" in done.error.message
    assert done.usage.cost > 0
    *_, last = asking.responses.retrieve(made.id, stream=True)
    assert (last.type, last.response.error) == ("response.failed", done.error)


BUGGY = """
from podium.planners import PlannerSpec
from podium.plugin_api.planners import Planner


class Buggy(Planner):
    name = "buggy"
    asked = []

    async def plan(self, request):
        self.asked.append(request.question.text)
        raise RuntimeError("a bug")


SPEC = PlannerSpec("buggy:ANYTHING", lambda context: Buggy())
"""


def test_a_bug_ends_a_response_without_another_try(
    serve: Serve, model: ChatModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = "[podium.planners]\nbuggy = buggy_planners:SPEC\n"
    install_package(monkeypatch, tmp_path / "site", "buggy_planners", entries, BUGGY)
    pool = str(pool_file(tmp_path, model.url))
    asking = client(serve(pool, planner="buggy:x", store=tmp_path / "traces.sqlite"))
    made = asking.responses.create(model="podium", input=QUESTION, background=True)
    done: Any = ended(asking, made.id)
    assert (done.status, "internal error" in done.error.message) == ("failed", True)
    assert import_module("buggy_planners").Buggy.asked == [QUESTION]


def test_unsupported_background_request_is_refused_with_a_remedy(asking: OpenAI) -> None:
    for more, said in (
        ({"store": False}, "leave store out"),
        ({"extra_body": {"podium": {"dry_run": True}}}, "leave background out"),
        ({"metadata": {"podium.response": "x"}}, "Podium's own"),
        ({"model": "nobody"}, "nobody"),
    ):
        given: Any = {"model": "podium", "input": QUESTION, "background": True} | more
        with pytest.raises((openai.BadRequestError, openai.NotFoundError), match=said):
            asking.responses.create(**given)
