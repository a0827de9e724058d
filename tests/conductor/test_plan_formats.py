"""The ladder of plan formats and its probe, against real HTTP servers that obey, ignore, refuse and fail."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from podium.calls import CallContext
from podium.conductor.open import build_endpoint, make_worker_conductor
from podium.conductor.plan_format import MAX_VERDICT_AGE_S, PlanChoice, PlanFormat, ProbeCache
from podium.conductor.settings import ConductorSettings
from podium.planners.planner import PlanRequest
from podium.spending import Ledger
from podium.trace import Plan
from podium.types import Budget, Limits, Price, Profile, Question, ToolCall
from podium.workers import Pool, ScriptedWorker
from podium.workflow import PlanError, Workflow
from podium_testing import Answer, Fault, FaultServer, RefusedParameters, Rule, Status, WrongFormat

POOL = Pool([ScriptedWorker("coder", []), ScriptedWorker("writer", [])])
REQUEST = PlanRequest(Question(text="3 + 4?"), (Profile(name="coder"), Profile(name="writer")))
STEPS = {"steps": [{"worker": "writer", "subtask": "Add them.", "sees": []}]}


def obedient(messages: list[dict[str, Any]], body: dict[str, Any]) -> Answer:
    """Obeys whatever asks for a form, as llama.cpp does, and otherwise writes a plan as text."""
    form = body.get("response_format") or {}
    schema = form.get("json_schema", {}).get("schema") or body.get("structured_outputs", {}).get("json")
    if "tools" in body:
        tool = body["tools"][0]["function"]
        written = json.dumps(instance(tool["parameters"]))
        return Answer("", tool_calls=(ToolCall(id="c", name=tool["name"], arguments=written),))
    return Answer(json.dumps(STEPS if schema is None else instance(schema)))


def instance(schema: Mapping[str, Any], root: Mapping[str, Any] | None = None) -> Any:
    root = root or schema
    if "$ref" in schema:
        return instance(root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    if "anyOf" in schema:
        return instance(schema["anyOf"][0], root)
    if "enum" in schema:
        return schema["enum"][-1]
    if "properties" in schema:
        return {key: instance(value, root) for key, value in schema["properties"].items()}
    if schema.get("type") == "array":
        items = schema.get("prefixItems") or ([schema["items"]] if "properties" in schema["items"] else [])
        return [instance(item, root) for item in items]
    return "x"


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podium.calls.worker_call._LONGEST_WAIT_S", 0.0)


async def plans(
    server: FaultServer, count: int = 1, *, request: PlanRequest = REQUEST, **table: Any
) -> list[Plan]:
    """The plans of `count` Conductors over one endpoint, one after the other."""
    made = []
    for _ in range(count):
        settings = ConductorSettings(base_url=server.url, model="m", **table)
        endpoint = build_endpoint(settings, POOL)
        try:
            made.append(await make_worker_conductor(endpoint, settings).plan(request))
        finally:
            await endpoint.close()
    return made


def paid_from(ledger: Ledger) -> PlanRequest:
    return replace(REQUEST, call_context=replace(CallContext.unlimited(), ledger=ledger))


def asked(server: FaultServer) -> list[str]:
    """By which format each request asked, in order; probes are marked."""
    formats = []
    for received in server.requests:
        body = received.body
        form = body.get("response_format") or {}
        schema = form.get("json_schema", {}).get("schema")
        name = "own" if "structured_outputs" in body else "tool" if "tools" in body else "text"
        if schema is not None:
            exact = "prefixItems" in json.dumps(schema)
            name = "exact" if exact else "portable"
        elif form:
            name = "json"
        formats.append(f"probe {name}" if "Say hello." in str(body["messages"]) else name)
    return formats


LADDER = ["exact", "portable", "own", "tool", "json", "text"]
CASES: list[tuple[Fault | None, PlanFormat]] = [
    (None, "exact"),
    *[
        (WrongFormat(how=how, obeyed=obeyed), format)
        for how in ("text", "refused", "garbage")
        for obeyed, format in (
            (("structured_outputs",), "own"),
            (("tool_choice",), "tool"),
            (("json_object",), "json"),
            ((), "text"),
        )
    ],
]


@pytest.mark.parametrize(("fault", "format"), CASES, ids=repr)
async def test_the_probe_finds_the_first_format_that_is_obeyed(
    fault: Fault | None, format: PlanFormat
) -> None:
    async with FaultServer(obedient, rules=[Rule(fault=fault)] if fault else []) as server:
        first, second = await plans(server, 2)
    tried = LADDER[: LADDER.index(format) + 1]
    assert asked(server) == [*(f"probe {each}" for each in tried), format, format]
    for plan in (first, second):
        assert isinstance(plan.decision, Workflow)
        assert plan.decision.steps[0].worker == 1
    assert first.spent.usage.tokens > second.spent.usage.tokens > 0


def test_probe_result_is_kept_for_one_day_per_endpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def worker(**table: Any) -> Any:
        settings = ConductorSettings(**{"base_url": "http://127.0.0.1:9/v1", "model": "m"} | table)
        return build_endpoint(settings, POOL)

    file = ProbeCache(tmp_path / "formats")
    assert file.get(worker()) is None
    file.put(worker(), "tool")
    assert ProbeCache(tmp_path / "formats").get(worker(temperature=0.5)) == "tool"
    assert file.get(worker(model="other")) is None
    assert file.get(worker(extra={"thinking": False})) is None
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + MAX_VERDICT_AGE_S + 1)
    assert file.get(worker()) is None
    file.put(worker(), "tool")
    file.forget(worker())
    assert file.get(worker()) is None


async def test_concurrent_first_questions_share_one_probe() -> None:
    async with FaultServer(obedient) as server:
        settings = ConductorSettings(base_url=server.url, model="m")
        endpoint = build_endpoint(settings, POOL)
        conductor = make_worker_conductor(endpoint, settings)
        made = await asyncio.gather(*(conductor.plan(REQUEST) for _ in range(8)))
        await endpoint.close()
    assert all(isinstance(plan.decision, Workflow) for plan in made)
    assert sorted(asked(server)) == ["exact"] * 8 + ["probe exact"]


async def test_after_an_infrastructure_failure_it_plans_by_text_and_probes_again() -> None:
    broken = Rule(fault=Status(code=503), times=4)
    async with FaultServer(obedient, rules=[broken]) as server:
        first, second = await plans(server, 2)
    assert asked(server) == ["probe exact"] * 4 + ["text", "probe exact", "exact"]
    assert isinstance(first.decision, Workflow)
    assert isinstance(second.decision, Workflow)


async def test_the_probe_is_paid_from_the_budget_of_the_question() -> None:
    price = Price(input=1.0, output=10.0)
    async with FaultServer(obedient) as server:
        ledger = Ledger(Budget(usd=1.0))
        (plan,) = await plans(server, request=paid_from(ledger), price=price)
        sent = [(one.input_tokens, one.output_tokens) for one in server.requests]
    usd = sum(taken + 10 * given for taken, given in sent) / 1e6
    assert len(sent) == 2
    assert plan.spent.cost_usd == pytest.approx(usd)
    assert ledger.spent.cost_usd == pytest.approx(usd)


async def test_a_budget_that_forbids_the_probe_gets_a_plan_as_text() -> None:
    table = {"price": Price(output=10.0), "limits": Limits(max_tokens=100)}
    async with FaultServer(obedient) as server:
        (plan,) = await plans(server, request=paid_from(Ledger(Budget(usd=0.005))), **table)
    assert asked(server) == ["text"]
    assert isinstance(plan.decision, Workflow)


async def test_format_the_server_now_refuses_falls_back_to_text_and_a_new_probe() -> None:
    later = Rule(fault=WrongFormat(how="refused"), after=2)
    async with FaultServer(obedient, rules=[later]) as server:
        _, second, third = await plans(server, 3)
    assert isinstance(second.decision, Workflow)
    assert isinstance(third.decision, Workflow)
    assert asked(server) == ["probe exact", "exact", "exact", "text", *(f"probe {f}" for f in LADDER), "text"]


async def test_a_server_that_obeys_no_more_is_probed_again() -> None:
    later = Rule(fault=WrongFormat(), after=2, times=1)
    async with FaultServer(obedient, rules=[later]) as server:
        made = await plans(server, 3)
    assert asked(server) == ["probe exact", "exact", "exact", "probe exact", "tool", "exact"]
    assert all(isinstance(plan.decision, Workflow) for plan in made)


async def test_invalid_plan_is_retried_with_the_next_plan_format() -> None:
    def first_bad(messages: list[dict[str, Any]], body: dict[str, Any]) -> Answer:
        plans = "tools" not in body and "Say hello." not in str(messages)
        return Answer('{"thought": "I repeat I repeat') if plans else obedient(messages, body)

    async with FaultServer(first_bad) as server:
        (plan,) = await plans(server)
    assert asked(server) == ["probe exact", "exact", "tool"]
    assert isinstance(plan.decision, Workflow)
    assert [rejected.decision.kind for rejected in plan.rejected] == ["unclosed_text"]


@pytest.mark.parametrize(("how", "second"), [("refused", ["tool", "text"]), ("text", ["tool"])])
async def test_an_endpoint_that_knows_no_tools_keeps_its_proven_format(
    how: Literal["refused", "text"], second: list[str]
) -> None:
    def bad(messages: list[dict[str, Any]], body: dict[str, Any]) -> Answer:
        schema = "response_format" in body and "Say hello." not in str(messages)
        return Answer('{"thought": "I repeat I repeat') if schema else obedient(messages, body)

    without_tools = Rule(fault=WrongFormat(how=how, obeyed=("response_format",)))
    async with FaultServer(bad, rules=[without_tools]) as server:
        made = await plans(server, 2)
    assert asked(server) == ["probe exact", *(["exact", *second] * 2)]
    assert [isinstance(plan.decision, Workflow) for plan in made] == [how == "refused"] * 2


@pytest.mark.parametrize(
    ("choice", "formats"),
    [
        ("text", ["text"]),
        ("json", ["json"]),
        ("tool", ["tool"]),
        ("schema", ["probe exact", "exact"]),
    ],
)
async def test_the_pool_file_can_choose_the_format(choice: PlanChoice, formats: list[str]) -> None:
    async with FaultServer(obedient) as server:
        (plan,) = await plans(server, plans=choice)
    assert asked(server) == formats
    assert isinstance(plan.decision, Workflow)


async def test_schema_format_is_forced_by_settings_even_if_disobeyed() -> None:
    async with FaultServer(obedient, rules=[Rule(fault=WrongFormat())]) as server:
        (plan,) = await plans(server, plans="schema")
    assert asked(server) == [*(f"probe {each}" for each in LADDER), "portable", "portable"]
    assert isinstance(plan.decision, PlanError)


async def test_worker_without_an_endpoint_is_prompted_for_three_lists() -> None:
    lists = 'model_id = [1]\nsubtasks = ["Add them."]\naccess_list = [[]]'
    chief = ScriptedWorker("chief", [lists])
    plan = await make_worker_conductor(chief, ConductorSettings()).plan(REQUEST)
    assert isinstance(plan.decision, Workflow)
    assert "model_id" in plan.messages[0].content


async def test_a_thought_comes_before_the_schema_where_the_user_says_so() -> None:
    async with FaultServer(obedient) as server:
        (plan,) = await plans(server, prompt={"think": True})
    assert asked(server) == ["text", "probe exact", "exact"]
    assert server.requests[0].body["max_tokens"] == 150
    assert [message.role for message in plan.messages] == ["system", "user", "assistant", "user"]
    assert plan.spent.usage.input_tokens == sum(one.input_tokens for one in server.requests)


def test_plans_setting_is_refused_for_a_trained_conductor() -> None:
    with pytest.raises(ValueError, match="plans is for a model that conducts untrained"):
        ConductorSettings(checkpoint="x", plans="schema")


async def test_plan_lists_the_parameters_its_endpoint_refused() -> None:
    refuses = Rule(fault=RefusedParameters(names=("temperature",)))
    async with FaultServer(obedient, rules=[refuses]) as server:
        (plan,) = await plans(server, temperature=0.5)
    assert plan.dropped == ("temperature",)
    assert isinstance(plan.decision, Workflow)
