"""The caller's options reach the steps whose responses a vote copies; what no tool can give is refused in words."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from chat_model import ChatModel, Say, chat_model
from podium.workers.calculator import CalculatorWorker
from podium.workers.pool import Pool
from podium.workers.vote import VoteWorker
from running_server import Serve

SCHEMA = {"name": "answer", "schema": {"type": "object", "properties": {"n": {"type": "integer"}}}}
FORMAT = {"type": "json_schema", "json_schema": SCHEMA}
ASKED: list[Any] = [{"role": "user", "content": "What is 6 x 7?"}]
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}


def ask(url: str, **more: Any) -> Any:
    body = {"model": "podium", "messages": ASKED, **more}
    return httpx.post(f"{url}/v1/chat/completions", json=body, timeout=20)


def answers(*texts: str) -> Any:
    """A model that says one after the other."""
    left = list(texts)
    return chat_model(lambda body: Say(left.pop(0)))


def served(serve: Serve, model: ChatModel, planner: str = "self-consistency:wren:3", **told: Any) -> str:
    pool = Pool([model.worker(calls_tools=True), VoteWorker(), CalculatorWorker()])
    return serve(pool, planner=planner, **told)


@pytest.mark.parametrize("early", [False, True])
def test_a_vote_counts_structured_answers_and_returns_the_winner_alone(serve: Serve, early: bool) -> None:
    written = ['{\n "n": 41,\n "unit": ""\n}', '{"n": 42, "unit": ""}', '{"unit": "", "n": 42}']
    with answers(*written) as model:
        reply = ask(
            served(serve, model, early_stop=early), response_format=FORMAT, max_tokens=77, temperature=0.5
        )
    assert json.loads(reply.json()["choices"][0]["message"]["content"]) == {"n": 42, "unit": ""}
    assert [body["response_format"] for body in model.bodies] == [FORMAT] * 3
    assert [body["max_tokens"] for body in model.bodies] == [77] * 3


def plan(*steps: tuple[int, list[int]]) -> str:
    ids, access = zip(*steps, strict=True)
    subtasks = json.dumps(["Work out 6 * 7"] * len(steps))
    return f"model_id = {list(ids)}\nsubtasks = {subtasks}\naccess_list = {[list(a) for a in access]}"


def run(url: str, text: str, **more: Any) -> Any:
    """Run this plan, as one that its caller has edited."""
    made = ask(url, podium={"dry_run": True})
    return ask(url, podium={"plan_id": made.json()["podium"]["plan_id"], "workflow": text}, **more)


def test_steps_before_those_that_a_vote_counts_get_no_options(serve: Serve) -> None:
    with chat_model('{"n": 42}') as model:
        url = served(serve, model)
        reply = run(url, plan((0, []), (0, [0]), (0, [0]), (1, [1, 2])), response_format=FORMAT)
    assert reply.status_code == 200, reply.text
    assert sum("response_format" in body for body in model.bodies) == 2


def test_a_tool_at_the_end_is_refused_in_words_before_anything_is_paid(serve: Serve) -> None:
    with chat_model('{"n": 42}') as model:
        url = served(serve, model)
        reply = run(url, plan((0, []), (2, [0])), response_format=FORMAT)
        assert model.bodies == []
    assert reply.status_code == 400, reply.text
    assert "'calculator' runs no model" in reply.json()["error"]["message"]


def test_vote_with_tools_is_refused_with_its_name(serve: Serve) -> None:
    with chat_model("42") as model:
        reply = ask(served(serve, model), tools=[TOOL])
        assert model.bodies == []
    assert reply.status_code == 400
    assert "'vote'" in reply.json()["error"]["message"]
