"""What a reply says of how it came about, and who may not have part in it: refusals, fallbacks, denied workers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from podium_testing import FaultServer, RefusedParameters, Rule, Status, StrictTemplate, Verbatim
from podium_testing.exchange import Fault
from running_server import Serve

HI = [{"role": "user", "content": "What is 2 + 2?"}]
Start = Callable[..., FaultServer]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts an endpoint with these faults; it ends with the test."""
    with ExitStack() as running:

        def starting(*faults: Fault, answer: Any = "4") -> FaultServer:
            server = FaultServer(answer, rules=[Rule(fault=fault) for fault in faults])
            return running.enter_context(server.in_thread())

        yield starting


def written(path: Path, **workers: str) -> str:
    """A team file: name = its TOML keys."""
    path.write_text("".join(f'[[worker]]\nname = "{name}"\n{keys}\n' for name, keys in workers.items()))
    return str(path)


def model(server: FaultServer, more: str = "") -> str:
    return f'kind = "openai"\nmodel = "m"\nbase_url = "{server.url}"\nlimits = {{ retries = 0 }}\n{more}'


def ask(url: str, model: str = "podium", *, status: int = 200, **body: Any) -> dict[str, Any]:
    reply = httpx.post(f"{url}/v1/chat/completions", json={"model": model, "messages": HI} | body, timeout=30)
    assert reply.status_code == status, reply.text
    told: dict[str, Any] = reply.json()
    return told


@pytest.mark.parametrize("model_name", ["podium", "a"])
def test_reply_reports_dropped_parameters_and_folded_messages(
    serve: Serve, start: Start, tmp_path: Path, model_name: str
) -> None:
    for fault, body, dropped, folded in (
        (RefusedParameters(names=("temperature",)), {"temperature": 0.7}, ["temperature"], False),
        (StrictTemplate(), {"messages": HI * 2}, [], True),
    ):
        pool = written(tmp_path / "pool.toml", a=model(start(fault)))
        url = serve(pool, planner="single:a", store=tmp_path / "t.sqlite")
        for _ in range(2):
            podium = ask(url, model_name, **body)["podium"]
            (step,) = podium["steps"]
            assert (podium.get("dropped", []), step["dropped"], step["folded"]) == (dropped, dropped, folded)
            trace = httpx.get(f"{url}/api/traces/{podium['trace_id']}").json()
            assert trace["rounds"][0]["spans"][0]["reply"]["dropped"] == dropped


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("chat/completions", {"messages": HI}),
        ("responses", {"input": "What is 2 + 2?"}),
        ("messages", {"messages": HI, "max_tokens": 50}),
    ],
)
@pytest.mark.parametrize("name", ["podium", "a", "team"])
def test_every_api_reports_dropped_parameters_of_nested_teams(  # noqa: PLR0917
    serve: Serve, start: Start, tmp_path: Path, route: str, body: dict[str, Any], name: str
) -> None:
    keys = model(start(RefusedParameters(names=("temperature", "max_tokens"))))
    written(tmp_path / "inner.toml", b=keys)
    team = 'kind = "podium"\npool = "inner.toml"\nplan.planner = "single:b"'
    url = serve(written(tmp_path / "pool.toml", a=keys, team=team), planner="single:a")
    reply = httpx.post(f"{url}/v1/{route}", json={"model": name, "temperature": 0.5} | body, timeout=30)
    assert (reply.status_code, reply.json()["podium"]["dropped"]) == (200, ["temperature"])


def test_a_conductor_without_a_system_role_gets_its_second_try(
    serve: Serve, start: Start, tmp_path: Path
) -> None:
    plans = iter(["No plan.", 'model_id = [0]\nsubtasks = ["Answer it."]\naccess_list = [[]]', "4"])
    strict = start(StrictTemplate(system=False), answer=lambda messages, body: next(plans))
    pool = tmp_path / "pool.toml"
    written(pool, a=model(strict))
    pool.write_text('[conductor]\nplans = "text"\n\n' + pool.read_text())
    told = ask(serve(str(pool), planner="conductor:a"))
    assert (told["choices"][0]["message"]["content"], told["podium"]["status"]) == ("4", "ok")
    assert [request.status for request in strict.requests] == [400, 200, 200, 200]


def test_stream_reports_dropped_parameters(serve: Serve, start: Start, tmp_path: Path) -> None:
    refuses = RefusedParameters(names=("top_p", "stream_options"))
    url = serve(written(tmp_path / "pool.toml", a=model(start(refuses))), planner="single:a")
    body = {"model": "podium", "messages": HI, "top_p": 0.5, "stream": True}
    reply = httpx.post(f"{url}/v1/chat/completions", json=body, timeout=30)
    events = [json.loads(line[6:]) for line in reply.text.splitlines() if line.startswith("data: {")]
    told = [event["podium"]["dropped"] for event in events if "dropped" in event.get("podium", {})]
    assert told == [["stream_options", "top_p"]] * 2  # When the step ends, and at the end.


def test_the_model_its_fingerprint_and_its_context_are_told(
    serve: Serve, start: Start, tmp_path: Path
) -> None:
    body = {
        "model": "m-2026-11-01",
        "system_fingerprint": "fp_44709d6fcb",
        "choices": [{"message": {"content": "4"}, "finish_reason": "stop"}],
    }
    keys = model(start(Verbatim(body=json.dumps(body))), "context_tokens = 8192")
    url = serve(written(tmp_path / "pool.toml", a=keys), planner="single:a")
    (step,) = ask(url)["podium"]["steps"]
    told = step["model"], step["fingerprint"], step["context_tokens"]
    assert told == ("m-2026-11-01", "fp_44709d6fcb", 8192)


def test_reply_reports_failed_attempts_with_their_reasons(serve: Serve, start: Start, tmp_path: Path) -> None:
    pool = written(
        tmp_path / "pool.toml",
        free=model(start(Status(code=400, message="No such luck.")), 'fallback = "paid"'),
        paid=model(start(), "price = { input = 3, output = 20 }"),
    )
    (step,) = ask(serve(pool, planner="single:free"))["podium"]["steps"]
    assert (step["worker"], step["answered_by"]) == ("free", "paid")
    assert [(tried["worker"], tried["error_kind"]) for tried in step["attempts"]] == [
        ("free", "status"),
        ("paid", None),
    ]
    assert "No such luck" in step["attempts"][0]["error"]
    assert step["cost_usd"] > 0


def test_a_question_too_long_for_a_worker_goes_to_its_fallback(
    serve: Serve, start: Start, tmp_path: Path
) -> None:
    small = start()
    pool = written(
        tmp_path / "pool.toml",
        small=model(small, 'context_tokens = 100\nfallback = "large"'),
        large=model(start()),
    )
    url = serve(pool, planner="single:small")
    long = [{"role": "user", "content": "word " * 500}]
    (step,) = ask(url, messages=long)["podium"]["steps"]
    assert (step["answered_by"], step["attempts"][0]["error_kind"]) == ("large", "context")
    assert not small.requests


@pytest.mark.parametrize("lists", [{"deny": ["b"]}, {"allow": ["a"]}])
@pytest.mark.parametrize("name", ["podium", "a"])
def test_a_fallback_that_the_request_denies_is_not_called(
    serve: Serve, start: Start, tmp_path: Path, name: str, lists: dict[str, Any]
) -> None:
    b = start()
    pool = written(tmp_path / "pool.toml", a=model(start(Status(code=400)), 'fallback = "b"'), b=model(b))
    url = serve(pool, planner="single:a")
    assert ask(url, name)["podium"]["steps"][0]["answered_by"] == "b"
    before = len(b.requests)
    error = ask(url, name, status=502, podium=lists)["error"]
    assert (error["code"], len(b.requests)) == ("workers_failed", before)


@pytest.mark.parametrize("name", ["podium", "team", "outer"])
@pytest.mark.parametrize("planner", ["single:a", "conductor:a"])
def test_a_denied_worker_is_not_called_in_a_nested_team_either(
    serve: Serve, start: Start, tmp_path: Path, name: str, planner: str
) -> None:
    b = start()
    plan = 'model_id = [0]\nsubtasks = ["Answer the whole question."]\naccess_list = [[]]'
    fails = start(Status(code=400)) if planner == "single:a" else start(answer=plan)
    inner = {"a": model(fails, 'fallback = "b"'), "b": model(b)}
    if planner == "conductor:a":
        inner = {"b": inner["b"], "a": inner["a"]}  # Its plan calls the first, which is left out.
    written(tmp_path / "inner.toml", **inner)
    team = f'kind = "podium"\npool = "inner.toml"\nplan.planner = "{planner}"'
    written(tmp_path / "middle.toml", team=team)
    outer = 'kind = "podium"\npool = "middle.toml"\nplan.planner = "single:team"'
    pool = written(tmp_path / "pool.toml", team=team, outer=outer)
    url = serve(pool, planner="single:team")
    ask(url, name)
    before = len(b.requests)
    assert before
    denied = httpx.post(
        f"{url}/v1/chat/completions",
        json={"model": name, "messages": HI, "podium": {"deny": ["b"]}},
        timeout=30,
    )
    assert denied.status_code == (502 if planner == "single:a" else 200)
    assert len(b.requests) == before
    ask(url, name)
    assert len(b.requests) > before


def test_nested_team_without_allowed_workers_is_refused(serve: Serve, start: Start, tmp_path: Path) -> None:
    written(tmp_path / "inner.toml", b=model(start()))
    team = 'kind = "podium"\npool = "inner.toml"\nplan.planner = "single:b"'
    url = serve(written(tmp_path / "pool.toml", team=team), planner="single:team")
    for name in ("podium", "team"):
        assert ask(url, name, status=400, podium={"deny": ["b"]})["error"]["param"].startswith("podium.")
    assert ask(url, status=400, podium={"deny": ["c"]})["error"]["code"] == "unknown_worker"
    assert ask(url, status=400, podium={"allow": ["b"]})["error"]["code"] == "unknown_worker"
