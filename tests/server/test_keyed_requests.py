from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import openai
import openai_client
import pytest
from chat_model import chat_model
from openai import OpenAI
from running_server import Serve

from podium.server.keys import Caller, Keys, open_register
from podium.server.keys.caller import KeyAllowance
from podium.server.keys.register import Secret, StoredKey
from podium.workers.pool import Pool

ASKED: list[Any] = [{"role": "user", "content": "What is 6 x 7?"}]


class Ring:
    """A server with keys, and clients that have them."""

    def __init__(
        self, serve: Serve, folder: Path, pool: Pool | str | None = None, **keys: dict[str, Any]
    ) -> None:
        register = open_register(folder / "traces.sqlite")
        self._secrets = {}
        for name, told in keys.items():
            secret = self._secrets[name] = Secret.new()
            caller = Caller(name=name, id=secret.id, **told)
            asyncio.run(register.add(StoredKey(caller, secret.digest, datetime.now(UTC))))
        self.url = serve(pool, keys=Keys(register), store=folder / "traces.sqlite", planner="random")

    def client(self, name: str | None) -> OpenAI:
        key = "pk-nothing" if name is None else self._secrets[name].text
        return OpenAI(base_url=f"{self.url}/v1", api_key=key, max_retries=0)


def test_without_a_key_nothing_is_answered(serve: Serve, tmp_path: Path) -> None:
    ring = Ring(serve, tmp_path, eve={})
    for ask in (
        lambda c: c.chat.completions.create(model="podium", messages=ASKED),
        lambda c: c.responses.create(model="podium", input="x"),
        lambda c: c.models.list(),
        lambda c: c.post("/../api/ask", body={"question": "x"}, cast_to=object),
    ):
        with pytest.raises(openai.AuthenticationError) as refused:
            ask(ring.client(None))
        assert refused.value.code == "invalid_api_key"
    assert ring.client("eve").chat.completions.create(model="podium", messages=ASKED).choices


def test_a_request_for_a_forbidden_worker_is_refused_before_anything_runs(
    serve: Serve, tmp_path: Path
) -> None:
    with chat_model("42.") as model, chat_model("43.") as other:
        pool = Pool([model.worker(), other.worker("lark")])
        ring = Ring(serve, tmp_path, pool, eve={"deny": ("lark",)})
        asking = ring.client("eve")
        for wanted, param in (
            ({"model": "lark"}, "model"),
            ({"model": "podium", "extra_body": {"podium": {"allow": ["lark"]}}}, "podium.allow"),
            ({"model": "podium/single:lark"}, "model"),
        ):
            with pytest.raises(openai.PermissionDeniedError) as refused:
                asking.chat.completions.create(messages=ASKED, **wanted)  # type: ignore[call-overload]
            assert refused.value.param == param
        assert model.bodies == other.bodies == []
        for seed in range(4):
            reply = asking.chat.completions.create(model="podium", messages=ASKED, seed=seed)
            assert {step["worker"] for step in reply.podium["plan"]} == {"wren"}
        assert "lark" not in {each.id for each in asking.models.list()}


def test_a_key_with_a_spent_budget_gets_402(serve: Serve, tmp_path: Path) -> None:
    with chat_model("42.") as model:
        pool = Pool([model.worker()])
        ring = Ring(serve, tmp_path, pool, eve={"allowance": KeyAllowance(0, "day")}, adam={})
        with pytest.raises(openai.APIStatusError) as refused:
            ring.client("eve").chat.completions.create(model="wren", messages=ASKED)
        assert refused.value.status_code == 402
        assert refused.value.type == "budget_exceeded"
        assert model.bodies == []
        assert ring.client("adam").chat.completions.create(model="wren", messages=ASKED).choices


def test_a_key_over_its_rate_limit_gets_429_with_retry_after(serve: Serve, tmp_path: Path) -> None:
    ring = Ring(serve, tmp_path, eve={"rpm": 1})
    ring.client("eve").models.list()
    with pytest.raises(openai.RateLimitError) as refused:
        ring.client("eve").models.list()
    assert int(refused.value.response.headers["retry-after"]) > 0


def test_another_keys_response_is_not_there(serve: Serve, tmp_path: Path) -> None:
    ring = Ring(serve, tmp_path, eve={}, adam={}, root={"admin": True})
    made = ring.client("eve").responses.create(model="podium", input="What is 6 x 7?")
    for ask in (
        lambda: ring.client("adam").responses.retrieve(made.id),
        lambda: ring.client("adam").responses.create(model="podium", input="x", previous_response_id=made.id),
    ):
        with pytest.raises(openai.NotFoundError):
            ask()
    assert ring.client("eve").responses.retrieve(made.id).output_text == made.output_text
    assert ring.client("root").responses.retrieve(made.id).output_text == made.output_text


def test_allow_and_deny_lists_are_checked_also_where_the_model_is_a_worker(
    serve: Serve, tmp_path: Path
) -> None:
    with chat_model("42.") as model, chat_model("43.") as other:
        pool = Pool([model.worker(), other.worker("lark")])
        ring = Ring(serve, tmp_path, pool, eve={"allow": ("wren",)})
        ask = ring.client("eve").chat.completions.create
        with pytest.raises(openai.PermissionDeniedError):
            ask(model="wren", messages=ASKED, extra_body={"podium": {"allow": ["wren", "lark"]}})
        with pytest.raises(openai.BadRequestError, match="nosuch"):
            ask(model="wren", messages=ASKED, extra_body={"podium": {"deny": ["nosuch"]}})
        assert not other.bodies
        assert not model.bodies


def test_a_planner_without_its_worker_is_refused_with_the_field_named(serve: Serve) -> None:
    url = serve()
    eve = openai_client.client(url)
    for planner, field in (("single:ada", "podium.deny"), ("self-consistency:ada:3", "podium.deny")):
        with pytest.raises(openai.BadRequestError) as refused:
            eve.chat.completions.create(
                model=f"podium/{planner}", messages=ASKED, extra_body={"podium": {"deny": ["ada"]}}
            )
        assert refused.value.param == "model", field


@pytest.mark.parametrize("samples", ["33", "000000001300", "-1", "x", ""])
def test_more_samples_than_are_given_are_no_planner(serve: Serve, samples: str) -> None:
    eve = openai_client.client(serve())
    with pytest.raises(openai.NotFoundError):
        eve.chat.completions.create(model=f"podium/self-consistency:ada:{samples}", messages=ASKED)


OPEN = {"/healthz", "/readyz", "/openapi.json", "/", "/viewer/{path}"}
"""They hold nothing private."""


def test_every_other_route_of_the_server_refuses_a_request_without_a_key(
    serve: Serve, tmp_path: Path
) -> None:
    ring = Ring(serve, tmp_path, eve={})
    described = httpx.get(f"{ring.url}/openapi.json").json()["paths"]
    routes = [(method, path) for path, methods in described.items() for method in methods if path not in OPEN]
    assert len(routes) > 25
    for method, path in [*routes, ("get", "/metrics")]:
        address = ring.url + re.sub(r"\{\w+(:path)?\}", "0" * 32, path)
        reply = httpx.request(method.upper(), address, content=b"{}" if method in {"post", "put"} else None)
        assert (reply.status_code, reply.json()["error"]["type"]) == (401, "authentication_error"), (
            method,
            path,
        )
