"""The command as its own process: pipes, signals, a served Conductor."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from loaded_programs import loaded_podium
from podium.store import TraceStore
from podium.trace import Trace
from podium_testing import Answer, FaultServer, Hang, Rule

COMMAND = [sys.executable, "-m", "podium"]
PLAN = 'model_id = [0, 1]\nsubtasks = ["Add the numbers.", "Check the sum."]\naccess_list = [[], [0]]'
PROBES = 6
"""Requests that find out that a server obeys no plan format."""
OVER_SCRIPT = ["--pool", "pool.toml", "--planner", "constant:plan.txt"]


async def process(*tokens, **variables):
    return await asyncio.create_subprocess_exec(
        loaded_podium(),
        *tokens,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | variables,
    )


def test_ask_reads_question_from_stdin_and_prints_answer():
    asked = subprocess.run(
        [*COMMAND, "ask", "-", *OVER_SCRIPT],
        input="What is 2 + 3?",
        capture_output=True,
        text=True,
        check=False,
    )
    assert (asked.returncode, asked.stderr) == (0, "")
    assert asked.stdout.endswith("Answer: 5\n")
    assert "\x1b" not in asked.stdout


def test_a_terminal_that_knows_ascii_alone_is_no_reason_to_stop():
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    asked = subprocess.run(
        [*COMMAND, "ask", "Was ist 2 + 3 für dich?", *OVER_SCRIPT],
        capture_output=True,
        env=environment,
        check=False,
    )
    assert asked.returncode == 0
    assert b"f\\xfcr dich?" in asked.stdout


def test_json_is_utf_8_whatever_the_encoding_of_the_terminal(ask):
    ask("Was ist 2 + 3 für dich?")
    environment = os.environ | {"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    written = subprocess.run(
        [*COMMAND, "traces", "export"], capture_output=True, env=environment, check=True
    ).stdout
    assert Trace.model_validate_json(written).question.text == "Was ist 2 + 3 für dich?"


def test_a_program_that_reads_the_output_may_stop_reading(ask):
    trace = Trace.model_validate_json(ask("What is 2 + 3?", "--json").out)
    with TraceStore("kept/traces.sqlite") as store:
        store.add_all(trace.model_copy(update={"id": f"{number}"}) for number in range(100))
    piped = subprocess.run(
        f"{loaded_podium()} traces export | head -c 10", shell=True, capture_output=True, check=False
    )
    assert (piped.returncode, piped.stderr) == (0, b"")


async def test_a_served_model_conducts(tmp_path):
    price = ("conductor.price.input=1", "conductor.price.output=10")
    async with FaultServer(Answer(f"I would add.\n{PLAN}", input_tokens=1000, output_tokens=100)) as server:
        command = await process(
            *("ask", "What is 2 + 3?", "--pool", "pool.toml", "--json", *price),
            *(f"conductor.base_url={server.url}", "conductor.model=wise", "conductor.api_key_env=MY_KEY"),
            MY_KEY="s3cret-key",
        )
        out, err = await command.communicate()
        seen = server.requests
    assert (command.returncode, err) == (0, b"")
    trace = Trace.model_validate_json(out)
    assert (trace.planner, trace.answer) == ("conductor:wise", "Right.\nAnswer: 5")
    assert len(seen) == PROBES + 1
    assert trace.rounds[0].plan.spent.usage.tokens == 1100 * len(seen)
    assert trace.rounds[0].plan.spent.cost_usd == pytest.approx(0.002 * len(seen))
    assert {request.headers["authorization"] for request in seen} == {"Bearer s3cret-key"}
    assert {request.model for request in seen} == {"wise"}
    assert ["What is 2 + 3?" in str(request.body["messages"]) for request in seen] == [False] * PROBES + [
        True
    ]
    assert b"s3cret-key" not in out + b"".join(
        file.read_bytes() for file in (tmp_path / "kept").rglob("*") if file.is_file()
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_cancels_every_call_and_keeps_the_trace(tmp_path, number):
    slow = tmp_path / "slow.toml"
    async with FaultServer(rules=[Rule(fault=Hang())]) as server:
        slow.write_text(
            f'[[worker]]\nname = "slow"\nkind = "openai"\nmodel = "m"\nbase_url = "{server.url}"\n'
        )
        command = await process("ask", "Q?", "--pool", str(slow), "--planner", "single:slow")
        await asyncio.wait_for(server.wait_for_requests(1), 30)
        command.send_signal(number)
        out, err = await command.communicate()
        await asyncio.wait_for(server.wait_until_idle(), 30)
        assert server.requests[0].gone_at is not None
    assert (command.returncode, out, err) == (130, b"", b"podium: Interrupted.\n")
    with TraceStore(Path("kept/traces.sqlite"), create=False) as store:
        (trace,) = store.iterate()
    assert trace.status == "cancelled"
    assert [span.status for span in trace.spans] == ["cancelled"]
