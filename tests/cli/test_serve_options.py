"""What `podium serve` refuses before it serves anything."""

import socket
import sys

import pytest

from refused_commands import one_sentence


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        (["--pool", "missing.toml"], "missing.toml"),
        (["--planner", "single:nobody"], "nobody"),
        (["--planner", "random", "--conductor", "x"], "--conductor"),
        (["--conductor", "nowhere"], "nowhere"),
        (["--port", "70000"], "serve.port is 70000"),
        (["--host", "no such host"], "no such host"),
        (["--host", "192.0.2.1"], "192.0.2.1"),
        (["--host", "0.0.0.0"], "podium keys add"),
        (["--max-steps", "0"], "plan.max_steps is 0"),
        (["--rounds", "0"], "budget.rounds is 0"),
        (["--budget-usd", "-1"], "budget.usd is -1"),
        (["serve.max_body_mib=0"], "serve.max_body_mib is 0"),
        (["serve.timeout=nan"], "serve.timeout is"),
        (["--drain", "-1"], "serve.drain is -1"),
        (["serve.prompt_cache_minutes=-1"], "serve.prompt_cache_minutes is -1"),
        (['serve.cors=["chat.example.com"]'], "chat.example.com"),
        (['serve.cors=["https://chat.example.com/page"]'], "serve.cors"),
        (["store=false"], "store"),
        (["--store", "mysql://here/there"], "mysql"),
        (["replay=true"], "cache"),
    ],
)
def test_it_is_refused_in_one_sentence(podium, tokens, said):
    assert said in one_sentence(
        podium(
            "serve",
            *([] if "--port" in tokens else ["--port", "0"]),
            *([] if "--pool" in tokens else ["--pool", "pool.toml"]),
            *tokens,
        )
    )


def test_a_port_that_is_taken_is_refused(podium):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        said = one_sentence(podium("serve", "--pool", "pool.toml", "--port", port))
    assert f"--port {port}" in said
    assert "in use" in said


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, "podium-conductor[otel]"),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "http/protobuf",
        ),
    ],
)
def test_a_collector_that_cannot_be_sent_to_is_refused(podium, monkeypatch, variables, said):
    # As where the extra is not installed.
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    asked = podium("serve", "--pool", "pool.toml", "--port", "0")
    assert (asked.status, asked.out) == (2, "")
    assert said in asked.err
    assert asked.err.count("\n") == 1
