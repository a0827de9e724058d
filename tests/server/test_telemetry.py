"""Spans as a collector receives them from `podium serve`."""

import httpx
import pytest

pytest.importorskip("opentelemetry.sdk.trace", reason="needs the extra otel")

from collector import collecting, said
from podium_testing import Answer, FaultServer, Rule, Status
from scripted_team import write_team
from served_process import pool_file, served
from tiny_policy import write_policy

CHAT = "/v1/chat/completions"
SECRET = "The vault's number is 7431."


def ask(url, text, **more):
    body = {"model": "podium", "messages": [{"role": "user", "content": text}], **more}
    reply = httpx.post(url + CHAT, json=body, timeout=60)
    return reply.headers.get("x-podium-trace-id"), reply.status_code


def one_worker(folder, url, retries=0):
    path = pool_file(folder, url)
    path.write_text(path.read_text().replace("retries = 0", f"retries = {retries}"))
    return ["--pool", str(path), "--planner", "single:ada"]


def test_a_question_becomes_spans_with_its_own_times_and_no_texts(tmp_path):
    answer = Answer("Done.", input_tokens=90, output_tokens=10, model="m-1-2026", cached_tokens=40)
    with (
        collecting() as collector,
        FaultServer(answer, rules=[Rule(fault=Status(code=503), times=1)]).in_thread() as worker,
        served(
            tmp_path, *one_worker(tmp_path, worker.url, retries=1), OTEL_EXPORTER_OTLP_ENDPOINT=collector.url
        ) as server,
    ):
        trace_id, status = ask(server.url, SECRET)
        kept = httpx.get(f"{server.url}/api/traces/{trace_id}").json()
        assert (status, server.end()) == (200, (0, ""))
    assert collector.paths == {"/v1/traces"}
    assert collector.resources[0]["service.name"] == "podium"
    (question,) = collector.named("invoke_workflow single:ada")
    (plan,) = collector.named("plan single:ada")
    (chat,) = collector.named("chat m-1")
    first, second = collector.named("attempt ada")
    assert {span.trace_id.hex() for span in collector.spans} == {trace_id}
    assert question.parent_span_id == b""
    assert {plan.parent_span_id, chat.parent_span_id} == {question.span_id}
    assert {first.parent_span_id, second.parent_span_id} == {chat.span_id}
    assert said(question) | {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": "single:ada",
        "gen_ai.usage.input_tokens": 90,
        "gen_ai.usage.output_tokens": 10,
        "podium.status": "ok",
        "podium.calls": 1,
    } == said(question)
    assert said(chat) | {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "127.0.0.1",
        "gen_ai.request.model": "m-1",
        "gen_ai.response.model": "m-1-2026",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.input_tokens": 90,
        "gen_ai.usage.output_tokens": 10,
        "gen_ai.usage.cache_read.input_tokens": 40,
        "podium.worker": "ada",
        "podium.attempts": 2,
        "podium.cached": False,
    } == said(chat)
    assert said(plan)["gen_ai.operation.name"] == "plan"
    assert (said(first)["error.type"], "error.type" in said(second)) == ("status", False)
    assert (first.status.code, chat.status.code) == (2, 0)
    (span,) = kept["rounds"][0]["spans"]
    seconds = [(one.end_time_unix_nano - one.start_time_unix_nano) / 1e9 for one in (question, chat)]
    assert seconds == pytest.approx([kept["seconds"], span["ended_s"] - span["started_s"]], abs=1e-6)
    assert (chat.start_time_unix_nano - question.start_time_unix_nano) / 1e9 == pytest.approx(
        span["started_s"], abs=1e-6
    )
    assert SECRET not in str(collector.spans)
    assert "Done." not in str(collector.spans)


def test_failed_spans_have_an_error_type(tmp_path):
    with (
        collecting() as collector,
        FaultServer(rules=[Rule(fault=Status(code=400, message=SECRET))]).in_thread() as worker,
        served(
            tmp_path, *one_worker(tmp_path, worker.url), OTEL_EXPORTER_OTLP_ENDPOINT=collector.url
        ) as server,
    ):
        _, status = ask(server.url, "Hello?")
        assert (status, server.end()[0]) == (502, 0)
    (question,) = collector.named("invoke_workflow")
    (chat,) = collector.named("chat")
    assert said(question)["error.type"] == "failed"
    assert said(chat)["error.type"] == said(collector.named("attempt")[0])["error.type"]
    assert (question.status.code, chat.status.code) == (2, 2)
    assert SECRET not in str(collector.spans)


def test_texts_are_exported_only_on_request(tmp_path):
    plan = 'model_id = [0, 1]\nsubtasks = ["Find the date.", "Name its weekday."]\naccess_list = [[], [0]]'
    policy, team = write_policy(tmp_path / "policy", plan), write_team(tmp_path / "team.toml")
    with (
        collecting() as collector,
        served(
            tmp_path,
            "--team",
            str(team),
            "--conductor",
            str(policy),
            OTEL_EXPORTER_OTLP_ENDPOINT=collector.url,
            OTEL_SERVICE_NAME="mine",
            OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="true",
        ) as server,
    ):
        _, status = ask(server.url, "Find the date 60 days after 3 March 2024. Then name the weekday of it.")
        assert (status, server.end()) == (200, (0, ""))
    assert collector.resources[0]["service.name"] == "mine"
    (question,) = collector.named("invoke_workflow conductor")
    assert "60 days after" in said(question)["gen_ai.input.messages"]
    steps = collector.named("chat ")
    assert len(steps) > 1
    assert all("gen_ai.output.messages" in said(step) for step in steps)
    assert {said(step)["gen_ai.provider.name"] for step in steps} == {"podium"}


def test_an_unreachable_collector_delays_no_question(tmp_path):
    away = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
    team = write_team(tmp_path / "team.toml")
    with served(tmp_path, "--team", str(team), "--planner", "single:ada", **away) as server:
        _, status = ask(server.url, "What is 2 + 3?")
        ended, _ = server.end()
    assert (status, ended) == (200, 0)
