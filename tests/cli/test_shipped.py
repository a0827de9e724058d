"""What comes with the package: a Conductor that answers at once, and the policy that it was trained from."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from podium.conductor.checkpoint import Checkpoint, checkpoint_folder
from podium.shipped import shipped_checkpoints
from podium.tasks.embedded import EmbeddedTasks

QUESTION = "First add 17 to 25; next turn the result into a Roman numeral; last, count the letters in it."


def ask(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "podium", "ask", *arguments, "--pool", "embedded", "--no-store"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_shipped_conductor_answers_and_shows_plan_money_and_time() -> None:
    done = ask(QUESTION, "--seed", "0")
    assert done.returncode == 0, done.stderr
    for shown in ("Plan: ", "sees the question", "tokens, $", "by the clock", "simulated"):
        assert shown in " ".join(done.stdout.split())


def test_json_is_the_trace_with_who_said_what() -> None:
    trace = json.loads(ask(QUESTION, "--seed", "0", "--json").stdout)
    assert trace["status"] == "ok"
    (round_,) = trace["rounds"]
    spans = round_["spans"]
    assert trace["answer"] == spans[-1]["response"]
    assert all(span["messages"] and span["cost_usd"] > 0 for span in spans if span["status"] == "done")


def test_the_untrained_policy_conducts_too() -> None:
    done = ask(EmbeddedTasks("test")[1].question.text, "--conductor", "warmstart", "--seed", "1")
    assert done.returncode in (0, 1)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", shipped_checkpoints())
def test_a_shipped_checkpoint_is_small_and_says_how_it_was_made(name: str) -> None:
    folder = checkpoint_folder(name)
    checkpoint = Checkpoint.read(name)
    assert checkpoint.prompt.style == "brief"
    assert 1_000_000 <= (checkpoint.parameters() or 0) <= 5_000_000
    assert sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) <= 8 * 2**20
    run = folder / "run"
    assert json.loads((run / "config.json").read_text())
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert len(rows) > 10


@pytest.mark.parametrize("prefix", ["", "world-"])
def test_a_shipped_conductor_and_its_start_read_the_same_tokens(prefix: str) -> None:
    first, second = (
        checkpoint_folder(f"{prefix}{name}") / "tokenizer.json" for name in ("warmstart", "conductor")
    )
    assert Path(first).read_bytes() == Path(second).read_bytes()
