"""What a server does with keys, as OpenAI's client and bare HTTP see it."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sqlite3
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPResponse
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import httpx
import openai
import pytest
from openai import OpenAI

from key_storage import KeyStorage
from openai_client import client
from podium.server.keys import Keys
from podium.server.keys.keys import FILE
from podium.types import Limits, Price, Profile
from podium.workers.pool import Pool
from podium.workers.scripted import ScriptedWorker
from running_server import Serve

ASKED: list[Any] = [{"role": "user", "content": "What is 2 + 2?"}]
REPLY = "Answer: 4"
REPLY_USD = 0.03
"""Three tokens of a cent each; input is free."""
Start = Callable[..., str]


def worker(name: str, *, most_tokens: int = 10, **more: Any) -> ScriptedWorker:
    """Answers each call with `REPLY`; a call may cost at most a tenth of a dollar."""
    profile = Profile(name=name, price=Price(output=1e4))
    limits = Limits(max_tokens=most_tokens, retries=0, concurrency=64)
    return ScriptedWorker(name, {"": REPLY}, profile=profile, limits=limits, **more)


@pytest.fixture
def file(tmp_path: Path) -> KeyStorage:
    return KeyStorage(str(tmp_path / "traces.sqlite"))


@pytest.fixture
def start(serve: Serve, file: KeyStorage) -> Iterator[Start]:
    """Starts a server over `ada` and `bob` with the keys in `file`; `ada` plans alone."""
    key_stores = []

    def started(*workers: ScriptedWorker, storage: KeyStorage = file, **settings: Any) -> str:
        keys = Keys(storage.open())
        key_stores.append(keys.key_store)
        pool = Pool(workers or (worker("ada"), worker("bob")))
        return serve(pool, planner=f"single:{pool.names[0]}", keys=keys, **settings)

    yield started
    serve.stop_all()
    for key_store in key_stores:
        asyncio.run(key_store.close())


def ask(url: str, key: str, model: str = "podium", **more: Any) -> Any:
    with client(url, key) as asking:
        return asking.chat.completions.create(model=model, messages=ASKED, **more)


def answer(url: str, key: str | None = None, *, method: str = "GET") -> tuple[int, bytes, dict[str, str]]:
    """Status, body and headers of a bare request."""
    headers = {} if key is None else {"Authorization": key}
    try:
        got: HTTPResponse | HTTPError = urllib.request.urlopen(
            urllib.request.Request(url, headers=headers, method=method), timeout=30
        )
    except HTTPError as error:
        got = error
    with got:
        return got.status or 0, got.read(), dict(got.headers)


def eventually(true: Callable[[], bool]) -> float:
    """Seconds until it is so."""
    began = time.monotonic()
    while not true():
        assert time.monotonic() < began + 60
        time.sleep(0.02)
    return time.monotonic() - began


def test_the_official_client_sends_its_key(start: Start, file: KeyStorage) -> None:
    assert ask(start(), file.add()).choices[0].message.content == REPLY


def test_without_a_key_or_with_a_wrong_one_the_answer_is_the_same(start: Start, file: KeyStorage) -> None:
    key, url = file.add(), start()
    file.add("gone")
    wrong = [
        None,
        "",
        "Bearer",
        "Bearer none",
        f"Bearer {key[:-1]}{'A' if key[-1] != 'A' else 'B'}",
        f"Bearer {key[:11]}-{'A' * 43}",
        f"Bearer pk-00000000-{key[12:]}",
        f"Basic {key}",
        f"Bearer {key} {key}",
        "Bearer " + "x" * 5000,
    ]
    answers = {answer(f"{url}/v1/models", header)[:2] for header in wrong}
    ((status, body),) = answers
    assert status == 401
    assert json.loads(body) == {
        "error": {
            "message": "This server does not know your key; send one as 'Authorization: Bearer pk-...'. "
            "The operator of the server makes them with `podium keys add`.",
            "type": "authentication_error",
            "param": None,
            "code": "invalid_api_key",
        }
    }
    with pytest.raises(openai.AuthenticationError):
        ask(url, "sk-none")


OPEN = {"/healthz", "/readyz", "/openapi.json", "/", "/viewer/{path}"}
"""They hold nothing private."""


def test_every_other_route_refuses_a_request_without_a_key(
    start: Start, file: KeyStorage, tmp_path: Path
) -> None:
    file.add()
    url = start(store=tmp_path / "traces.sqlite")
    described = json.loads(answer(f"{url}/openapi.json")[1])["paths"]
    routes = [(method, path) for path, methods in described.items() for method in methods if path not in OPEN]
    assert len(routes) > 20
    for method, path in [*routes, ("get", "/metrics")]:
        address = url + re.sub(r"\{\w+(:path)?\}", "0" * 32, path)
        status, body, headers = answer(address, method=method.upper())
        assert (status, json.loads(body)["error"]["code"]) == (401, "invalid_api_key"), (method, path)
        assert headers["www-authenticate"] == "Bearer"


def test_every_route_takes_the_key_in_the_header_of_anthropic(start: Start, file: KeyStorage) -> None:
    key, url = file.add(admin=True), start()
    for path in ("/v1/models", "/v1/models/podium", "/api/traces", "/metrics"):
        assert httpx.get(url + path, headers={"x-api-key": key}).status_code == 200, path
        assert httpx.get(url + path, headers={"x-api-key": "pk-wrong"}).status_code == 401, path
    messages = {"model": "podium", "max_tokens": 9, "messages": ASKED}
    for path, body in (
        ("/v1/chat/completions", messages),
        ("/v1/messages", messages),
        ("/v1/responses", {"model": "podium", "input": "What is 2 + 2?"}),
    ):
        assert httpx.post(url + path, headers={"x-api-key": key}, json=body).status_code == 200, path


def test_server_requires_a_key_permanently_once_a_key_existed(start: Start, file: KeyStorage) -> None:
    url = start()
    assert answer(f"{url}/v1/models")[0] == 200
    key = file.add()
    took = eventually(lambda: answer(f"{url}/v1/models")[0] == 401)
    assert took < 30
    assert answer(f"{url}/v1/models", f"Bearer {key}")[0] == 200
    file.remove()
    eventually(lambda: answer(f"{url}/v1/models", f"Bearer {key}")[0] == 401)
    assert answer(f"{url}/v1/models")[0] == 401, "who removes the last key does not open the door"


@pytest.mark.parametrize("may", [{"deny": ("bob",)}, {"allow": ("ada",)}])
def test_a_request_for_a_forbidden_worker_is_refused_before_anything_runs(
    start: Start, file: KeyStorage, may: dict[str, Any]
) -> None:
    workers, key = (worker("ada"), worker("bob")), file.add(**may)
    url = start(*workers)
    for model, options, param in (
        ("bob", {}, "model"),
        ("podium", {"allow": ["ada", "bob"]}, "podium.allow"),
        ("podium", {"allow": ["bob"]}, "podium.allow"),
        ("podium/single:bob", {}, "model"),
        ("ada", {"allow": ["ada", "bob"]}, "podium.allow"),
    ):
        with pytest.raises(
            openai.PermissionDeniedError, match="This key may not use the worker 'bob'"
        ) as told:
            ask(url, key, model, extra_body={"podium": options})
        assert told.value.param == param
    with pytest.raises(openai.BadRequestError, match="nosuch"):
        ask(url, key, "ada", extra_body={"podium": {"deny": ["nosuch"]}})
    assert [len(each.requests) for each in workers] == [0, 0]
    assert ask(url, key).podium["steps"][0]["worker"] == "ada"
    for seed in range(4):
        assert {step["worker"] for step in ask(url, key, "podium/random", seed=seed).podium["plan"]} == {
            "ada"
        }
    with client(url, key) as asking:
        names = [model.id for model in asking.models.list()]
    assert "ada" in names
    assert "bob" not in names


def test_response_of_another_key_is_not_found(start: Start, file: KeyStorage, tmp_path: Path) -> None:
    keys = {name: file.add(name, admin=name == "boss") for name in ("ada", "bob", "boss")}
    url = start(store=tmp_path / "traces.sqlite")
    ada, bob, boss = (client(url, key).responses for key in keys.values())
    made = ada.create(model="podium", input="What is 6 x 7?")
    for more in (
        {"response_id": made.id},
        {"model": "podium", "input": "x", "previous_response_id": made.id},
    ):
        with pytest.raises(openai.NotFoundError):
            (bob.create if "model" in more else bob.retrieve)(**more)
    assert [one.retrieve(made.id).output_text for one in (ada, boss)] == [made.output_text] * 2


def test_requests_over_the_rate_limit_get_retry_after(start: Start, file: KeyStorage) -> None:
    key, other, url = file.add(rpm=3), file.add("other"), start()
    for _ in range(3):
        ask(url, key)
    with pytest.raises(openai.RateLimitError) as told:
        ask(url, key)
    error = told.value
    assert (error.type, error.code) == ("rate_limit_error", "rate_limit_exceeded")
    assert 1 <= int(error.response.headers["retry-after"]) <= 60
    assert "The key 'web' may make 3 requests a minute: try again in " in error.message
    ask(url, other)


def test_call_above_the_rest_of_the_key_budget_gets_402_with_amount_left(
    start: Start, file: KeyStorage, tmp_path: Path
) -> None:
    key, workers = file.add(budget="0.15/day"), (worker("ada"),)
    url = start(*workers, store=tmp_path / "traces.sqlite")
    for _ in range(2):
        assert ask(url, key).podium["cost_usd"] == pytest.approx(REPLY_USD)
    with pytest.raises(openai.APIStatusError) as told:
        ask(url, key)
    error: Any = told.value
    assert (error.status_code, error.type) == (402, "budget_exceeded")
    assert "The call could cost $0.100000, and $0.090000 of the key's $0.15/day are left" in error.message
    assert len(workers[0].requests) == 2
    trace = error.body["trace_id"]
    kept = json.loads(answer(f"{url}/api/traces/{trace}", f"Bearer {key}")[1])
    assert kept["rounds"][0]["spans"][0]["status"] == "refused"


def test_a_spent_budget_is_refused_at_once_and_no_client_tries_again(start: Start, file: KeyStorage) -> None:
    key, free, workers = file.add(budget="0.03"), file.add("free"), (worker("ada", most_tokens=3),)
    none, url = file.add("none", budget="0"), start(*workers)
    with pytest.raises(openai.APIStatusError) as broke:
        ask(url, none)
    assert (broke.value.status_code, broke.value.type) == (402, "budget_exceeded")
    assert ask(url, key).choices[0].message.content == REPLY
    requests: list[Any] = []
    with OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=3) as asking:
        asking._client.event_hooks["request"].append(requests.append)
        with pytest.raises(openai.APIStatusError) as told:
            asking.chat.completions.create(model="podium", messages=ASKED)
    error: Any = told.value
    assert (error.status_code, error.type, error.code) == (402, "budget_exceeded", "insufficient_quota")
    assert "The budget of the key 'web', $0.03, is spent" in error.message
    assert len(requests) == 1
    assert len(workers[0].requests) == 1
    assert ask(url, free).choices[0].message.content == REPLY
    with client(url, key) as asking:
        assert asking.models.list().data, "what costs nothing goes on"


def test_a_streamed_question_is_stopped_by_the_budget_too(start: Start, file: KeyStorage) -> None:
    key, url = file.add(budget="0.05"), start()
    with pytest.raises(openai.APIError, match="The call could cost") as told:
        list(ask(url, key, stream=True))
    assert told.value.type == "budget_exceeded"


def test_a_key_is_in_no_file_log_trace_or_figure(
    start: Start, file: KeyStorage, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    key, boss = file.add(rpm=4, budget="1/day"), file.add("boss", admin=True)
    wrong = key[:-4] + "AAAA"
    url = start(store=tmp_path / "traces.sqlite")
    said = [answer(f"{url}/v1/models", f"Bearer {wrong}")[1]]
    said += [ask(url, key, user="u").model_dump_json().encode() for _ in range(4)]
    said.append(answer(f"{url}/v1/models", f"Bearer {key}")[1])
    told = ("/metrics", "/api/traces", "/api/pool", "/openapi.json", "/readyz")
    said += [answer(url + path, f"Bearer {boss}")[1] for path in told]
    said += [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    said.append(" ".join(record.getMessage() for record in caplog.records if record.name != "httpx").encode())
    for secret in (key, boss, wrong):
        assert not [text for text in said if secret[12:40].encode() in text]


def test_a_server_that_cannot_read_its_keys_refuses_every_request(start: Start, file: KeyStorage) -> None:
    key, url = file.add(), start()
    assert answer(f"{url}/v1/models", f"Bearer {key}")[0] == 200
    with closing(sqlite3.connect(Path(file.store).with_name(FILE))) as kept:
        kept.execute("ALTER TABLE podium_keys RENAME TO away")
        eventually(lambda: answer(f"{url}/v1/models", f"Bearer {key}")[0] == 503)
        assert answer(f"{url}/v1/models")[0] == 503
        kept.execute("ALTER TABLE away RENAME TO podium_keys")
    eventually(lambda: answer(f"{url}/v1/models", f"Bearer {key}")[0] == 200)
