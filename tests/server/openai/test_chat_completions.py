from __future__ import annotations

import json
from typing import Any

import openai
import pytest

from chat_model import Say, chat_model
from openai_client import client
from podium.types import Budget
from podium.workers.pool import Pool
from running_server import Serve, until

ASKED: list[Any] = [{"role": "user", "content": "What is 6 x 7?"}]


def test_the_official_client_gets_an_answer_and_its_details(serve) -> None:
    made = client(serve()).chat.completions.with_raw_response.create(model="podium", messages=ASKED)
    reply = made.parse()
    told = reply.podium
    assert reply.choices[0].message.content
    assert reply.choices[0].finish_reason == "stop"
    assert reply.model == "podium"
    assert made.headers["x-podium-trace-id"] == told["trace_id"]
    assert float(made.headers["x-podium-cost-usd"]) == pytest.approx(told["cost_usd"], abs=1e-6)
    assert [step["worker"] for step in told["plan"]] == [step["worker"] for step in told["steps"]]
    assert {step["status"] for step in told["steps"]} == {"done"}


def test_usage_counts_the_planner_and_every_worker(serve) -> None:
    reply = client(serve()).chat.completions.create(model="podium", messages=ASKED)
    apart = reply.podium["usage"]
    parts = [apart["conductor"], *apart["workers"].values()]
    assert apart["conductor"]["output_tokens"] > 0
    assert reply.usage.prompt_tokens == sum(part["input_tokens"] for part in parts)
    assert reply.usage.completion_tokens == sum(part["output_tokens"] for part in parts)
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens


def test_cached_and_reasoning_tokens_are_counted_apart(serve) -> None:
    with chat_model("42.") as model:
        reply = client(serve(Pool([model.worker()]))).chat.completions.create(model="wren", messages=ASKED)
    assert reply.usage.prompt_tokens_details.cached_tokens == 4
    assert reply.usage.completion_tokens_details.reasoning_tokens == 3


def test_model_named_after_a_worker_makes_one_call_with_unchanged_messages(serve) -> None:
    messages: list[Any] = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Hello."}, {"type": "text", "text": "You."}]},
        {"role": "assistant", "content": "Hi."},
        *ASKED,
    ]
    with chat_model("42.") as model:
        reply = client(serve(Pool([model.worker()]))).chat.completions.create(model="wren", messages=messages)
    assert reply.choices[0].message.content == "42."
    assert reply.podium["planner"] == "single:wren"
    [body] = model.bodies
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello.\nYou."},
        {"role": "assistant", "content": "Hi."},
        {"role": "user", "content": "What is 6 x 7?"},
    ]


def test_answer_options_of_the_request_reach_the_worker(serve) -> None:
    schema = {
        "type": "json_schema",
        "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": True},
    }
    with chat_model('{"a": 1}') as model:
        client(serve(Pool([model.worker()]), planner="single:wren")).chat.completions.create(
            model="podium",
            messages=ASKED,
            max_completion_tokens=77,
            temperature=0.25,
            top_p=0.5,
            stop=["END"],
            response_format=schema,  # type: ignore[call-overload]
        )
    [body] = model.bodies
    assert body["max_tokens"] == 77
    assert body["temperature"] == 0.25
    assert body["top_p"] == 0.5
    assert body["stop"] == ["END"]
    assert body["response_format"] == schema


def test_the_same_seed_gives_the_same_answer_and_another_may_not(serve) -> None:
    asking = client(serve(planner="random"))

    def plan(seed: int) -> str:
        reply = asking.chat.completions.create(model="podium", messages=ASKED, seed=seed)
        return json.dumps([reply.podium["plan"], reply.choices[0].message.content])

    assert plan(1) == plan(1)
    assert len({plan(seed) for seed in range(8)}) > 1


def test_an_answer_that_was_cut_says_so(serve) -> None:
    with chat_model(lambda body: Say("It is", finish="length")) as model:
        reply = client(serve(Pool([model.worker()]))).chat.completions.create(model="wren", messages=ASKED)
    assert reply.choices[0].finish_reason == "length"


def test_a_dry_run_gives_plan_and_estimate_and_calls_no_worker(serve) -> None:
    with chat_model("42.") as model:
        url = serve(Pool([model.worker()]), planner="single:wren")
        reply = client(url).chat.completions.create(
            model="podium", messages=ASKED, extra_body={"podium": {"dry_run": True}}
        )
    assert reply.choices[0].message.content.startswith("model_id = [0]")
    assert reply.podium["status"] == "dry_run"
    assert 0 < reply.podium["estimate"]["cost_usd"]["likely"] < reply.podium["estimate"]["most_usd"]
    assert model.bodies == []


def test_a_planner_is_named_by_the_model(serve) -> None:
    asking = client(serve())
    single = asking.chat.completions.create(model="podium/single:ada", messages=ASKED)
    voting = asking.chat.completions.create(model="podium/self-consistency:ada:3", messages=ASKED)
    assert single.podium["planner"] == "single:ada"
    assert [step["worker"] for step in voting.podium["steps"]] == ["ada", "ada", "ada", "vote"]


@pytest.mark.parametrize(
    ("usual", "wanted", "stops"),
    [(False, None, False), (False, True, True), (True, None, True), (True, False, False)],
)
def test_votes_stop_early_when_server_or_request_says_so(
    serve, usual: bool, wanted: bool | None, stops: bool
) -> None:
    reply = client(serve(planner="self-consistency:ada:3", early_stop=usual)).chat.completions.create(
        model="podium", messages=ASKED, extra_body={"podium": {"early_stop": wanted}}
    )
    skipped = [step["worker"] for step in reply.podium["steps"] if step["status"] == "skipped"]
    assert skipped == (["ada"] if stops else [])


def test_only_allowed_workers_are_called(serve) -> None:
    asking = client(serve(planner="random"))
    for seed in range(5):
        wanted = {"allow": ["ada", "bram", "cleo"], "deny": ["bram"]}
        reply = asking.chat.completions.create(
            model="podium", messages=ASKED, seed=seed, extra_body={"podium": wanted}
        )
        assert {step["worker"] for step in reply.podium["plan"]} <= {"ada", "cleo"}


def test_exhausted_budget_is_an_error_only_without_an_answer(serve) -> None:
    asking = client(serve(planner="self-consistency:ada:3"))
    cut = asking.chat.completions.create(
        model="podium", messages=ASKED, extra_body={"podium": {"budget": {"calls": 2}}}
    )
    assert cut.choices[0].message.content
    assert cut.podium["status"] == "degraded"
    assert "budget of 2 calls" in cut.podium["error"]
    with pytest.raises(openai.APIStatusError) as refused:
        asking.chat.completions.create(
            model="podium", messages=ASKED, extra_body={"podium": {"budget": {"calls": 0}}}
        )
    assert refused.value.status_code == 402
    assert refused.value.type == "budget_exceeded"
    assert len(refused.value.body["trace_id"]) == 32  # type: ignore[index]


@pytest.mark.parametrize("model_name", ["podium", "wren"])
def test_question_whose_seconds_are_spent_in_a_step_exceeds_its_budget(serve: Serve, model_name: str) -> None:
    with chat_model(lambda body: Say("Never.", wait=lambda piece: False)) as model:
        asking = client(serve(Pool([model.worker()]), planner="single:wren"))
        with pytest.raises(openai.APIStatusError) as refused:
            asking.chat.completions.create(
                model=model_name, messages=ASKED, extra_body={"podium": {"budget": {"seconds": 0.2}}}
            )
    assert (refused.value.status_code, refused.value.type) == (402, "budget_exceeded")
    assert "0.2" in refused.value.message


def test_request_budget_cannot_exceed_the_server_budget(serve) -> None:
    asking = client(serve(budget=Budget(calls=0)))
    with pytest.raises(openai.APIStatusError) as refused:
        asking.chat.completions.create(
            model="podium", messages=ASKED, extra_body={"podium": {"budget": {"calls": 10}}}
        )
    assert refused.value.status_code == 402


def test_error_names_all_failed_workers_when_no_worker_answers(serve) -> None:
    with chat_model(lambda body: Say(status=400)) as model:
        pool = Pool([model.worker("wren", fallback="lark"), model.worker("lark")])
        with pytest.raises(openai.APIStatusError) as refused:
            client(serve(pool)).chat.completions.create(model="wren", messages=ASKED)
    assert refused.value.status_code == 502
    assert refused.value.type == "workers_failed"
    assert "wren" in refused.value.message
    assert "lark" in refused.value.message
    assert refused.value.response.headers["x-should-retry"] == "false"


def test_a_caller_who_goes_away_cancels_the_call(serve) -> None:
    with chat_model(lambda body: Say("Never.", wait=lambda piece: False)) as model:
        url = serve(Pool([model.worker()]))
        with pytest.raises(openai.APITimeoutError):
            client(url).with_options(timeout=0.5).chat.completions.create(model="wren", messages=ASKED)
        until(lambda: model.gone == 1)
        assert serve.service(url).event_logs.running == set()


def parts(*content: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(content)}


def image(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


REFUSED: list[tuple[dict[str, Any], int, str | None]] = [
    ({"model": "gpt-9"}, 404, "model"),
    ({"model": "podium/nobody"}, 404, "model"),
    ({"model": "podium/constant:/etc/passwd"}, 404, "model"),
    *(
        ({"model": f"podium/self-consistency:ada:{samples}"}, 404, "model")
        for samples in ("33", "000000001300", "-1", "x")
    ),
    ({"model": "podium/single:ada", "podium": {"deny": ["ada"]}}, 400, "model"),
    ({"model": "podium/self-consistency:ada:3", "podium": {"deny": ["ada"]}}, 400, "model"),
    ({"model": 5}, 400, "model"),
    ({"messages": []}, 400, "messages"),
    ({"messages": "hello"}, 400, "messages"),
    ({"messages": [{"role": "system", "content": "x"}]}, 400, "messages"),
    ({"messages": [{"role": "user", "content": "  "}]}, 400, "messages.0.content"),
    ({"messages": [{"role": "user", "content": 5}]}, 400, "messages.0.content"),
    ({"messages": [{"role": "wizard", "content": "x"}]}, 400, "messages.0"),
    ({"messages": [*ASKED, {"role": "assistant", "content": "It is"}]}, 400, "messages.1"),
    ({"messages": [*ASKED, {"role": "tool", "content": "x", "tool_call_id": "c"}]}, 400, "messages.1.tool_call_id"),
    ({"messages": [parts({"type": "input_audio", "input_audio": {}})]}, 400, "messages.0.content.0"),
    ({"messages": [parts(image("file:///etc"))]}, 400, "messages.0.content.0.image_url.url"),
    ({"messages": [parts({"type": "text", "text": "x"}, image("https://e.org/a.png"))]}, 400, "messages"),
    ({"tools": [{"type": "function", "function": {"name": "f"}}]}, 400, "tools"),
    ({"logprobs": True}, 400, "logprobs"),
    ({"audio": {"voice": "x"}}, 400, "audio"),
    ({"n": 2}, 400, "n"),
    ({"temperature": 3}, 400, "temperature"),
    ({"max_tokens": 0}, 400, "max_tokens"),
    ({"stop": ["a", "b", "c", "d", "e"]}, 400, "stop"),
    ({"stop": ["a", ""]}, 400, "stop.1"),
    ({"response_format": {}}, 400, "response_format.type"),
    ({"metadata": {"a": 1}}, 400, "metadata.a"),
    ({"stream": "yes"}, 400, "stream"),
    ({"colour": "red"}, 400, "colour"),
    ({"podium": {"budgt": {}}}, 400, "podium.budgt"),
    ({"podium": {"budget": {"usd": -1}}}, 400, "podium.budget.usd"),
    ({"podium": {"max_rounds": 99}}, 400, "podium.max_rounds"),
    ({"podium": {"allow": ["nobody"]}}, 400, "podium.allow"),
    ({"podium": {"deny": ["nobody"]}}, 400, "podium.deny"),
    ({"podium": {"allow": []}}, 400, "podium.allow"),
    ({"model": "podium/"}, 404, "model"),
    ({"podium": {"planner": "random"}}, 400, "podium.planner"),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "status", "param"), REFUSED, ids=lambda value: json.dumps(value)[:60])
def test_unsupported_chat_request_is_refused_with_its_field(
    plain_url: str, changed: dict[str, Any], status: int, param: str | None
) -> None:
    body = {"model": "podium", "messages": ASKED} | changed
    with pytest.raises(openai.APIStatusError) as refused:
        client(plain_url).post("/chat/completions", body=body, cast_to=object)
    assert refused.value.status_code == status, refused.value.message
    assert refused.value.param == param, refused.value.message
    assert refused.value.type in ("invalid_request_error", "not_found_error")


def test_a_body_that_is_not_json_is_refused(plain_url: str) -> None:
    with pytest.raises(openai.APIStatusError) as refused:
        client(plain_url).post("/chat/completions", content=b"{", cast_to=object)
    assert refused.value.status_code == 400
    assert refused.value.code == "invalid_json"


def test_name_shared_by_worker_and_planner_is_listed_as_the_worker(serve: Serve) -> None:
    with chat_model("42") as model:
        asking = client(serve(Pool([model.worker("podium/random")])))
        listed: Any = {each.id: each for each in asking.models.list()}
        reply: Any = asking.chat.completions.create(model="podium/random", messages=ASKED)
    assert reply.podium["planner"] == "single:podium/random"
    assert listed["podium/random"].podium["kind"] == "worker"


def test_models_lists_planners_and_workers_with_profile_and_price(serve) -> None:
    with chat_model("42.") as model:
        asking = client(serve(Pool([model.worker(description="Sings.")])))
    models = {each.id: each.podium for each in asking.models.list()}
    assert {"podium", "podium/conductor", "podium/random", "wren"} == set(models) - {"podium/warmstart"}
    assert models["wren"]["profile"]["description"] == "Sings."
    assert models["wren"]["profile"]["price"]["output"] == 2.0
    assert asking.models.retrieve("podium/conductor").podium["planner"] == "conductor"
    with pytest.raises(openai.NotFoundError):
        asking.models.retrieve("gpt-9")
