"""Tools that run live beside recorded models: a workflow asks three of these, and a tool decides."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podium.recordings import RecordedQuestion, RecordedResponse, RecordingWriter
from podium.trace import Trace
from scripted_team import write_sums

Podium = Callable[..., Any]
pytestmark = pytest.mark.filterwarnings("ignore:Programs run")
QUESTION = "Make 24 from 4, 7, 8 and 8."
SAID = {"ada": "Answer: 4 * 7 - 8 / 8", "bob": "Answer: (7 - 8 / 8) * 4", "cy": "Answer: 4 + 7 + 8 + 8"}
TOOLS = """
[[worker]]
name = "calculator"
kind = "calculator"

[[worker]]
name = "code"
kind = "code"
seconds = 20
allow_weak_sandbox = true

[[worker]]
name = "vote"
kind = "vote"
"""
DECIDES = """
import json, sys
for shown in json.load(sys.stdin):
    if eval(shown["answer"]) == 24:
        print(shown["answer"])
        break
"""


@pytest.fixture(autouse=True)
def _pool() -> None:
    """Three recorded models, and the tools behind them."""
    with RecordingWriter() as writer:
        writer.add_question(RecordedQuestion("q0", QUESTION, None, None, "test"))
        for worker, text in SAID.items():
            writer.add("q0", RecordedResponse(worker, 0, text, output_tokens=40))
        writer.write(Path("rec.parquet"), name="rec")
    replayed = (f'[[worker]]\nname = "{name}"\nkind = "replay"\nrecording = "rec.parquet"\n' for name in SAID)
    Path("tools.toml").write_text("\n".join(replayed) + TOOLS)


def ask(podium: Podium, workers: list[int], subtask: str, access: list[object]) -> Trace:
    subtasks = ["Answer the whole question."] * (len(workers) - 1) + [subtask]
    Path("plan.txt").write_text(f"model_id = {workers}\nsubtasks = {subtasks}\naccess_list = {access}\n")
    asked = podium(
        "ask", QUESTION, "--pool", "tools.toml", "--planner", "constant:plan.txt", "--no-store", "--json"
    )
    assert (asked.status, asked.err) == (0, "")
    return Trace.model_validate_json(asked.out)


def test_live_code_worker_decides_between_three_recorded_models(podium: Podium) -> None:
    trace = ask(podium, [0, 1, 2, 4], f"```python{DECIDES}```", [[], [], [], "all"])
    assert (trace.status, trace.answer) == ("ok", "Answer: (7 - 8 / 8) * 4")
    assert [span.recorded is not None for span in trace.spans] == [True, True, True, False]
    assert trace.cost_usd == 0


def test_every_tool_is_checked(podium: Podium) -> None:
    Path("plan.txt").write_text('model_id = [0]\nsubtasks = ["Answer."]\naccess_list = [[]]\n')
    checked = podium("pool", "check", "--pool", "tools.toml", "plan.planner=constant:plan.txt", "--json")
    assert checked.status == 0
    assert [(found["worker"], found["answered"]) for found in json.loads(checked.out)[3:]] == [
        ("calculator", True),
        ("code", True),
        ("vote", True),
        ("constant:plan.txt", True),
    ]


def test_code_without_isolation_is_found_by_the_check(
    podium: Podium, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("tools.toml").write_text('[[worker]]\nname = "code"\nkind = "code"\n')
    monkeypatch.setenv("PATH", "/nowhere")
    checked = podium("pool", "check", "--pool", "tools.toml")
    assert checked.status == 1
    assert "code: Programs would run without isolation here (there is no bwrap on the PATH)" in checked.out
    asked = podium("ask", "print(1)", "--pool", "tools.toml", "--planner", "single:code", "--no-store")
    assert asked.status == 1
    assert asked.err.startswith(
        "podium: No step succeeded. Step 0: code: Programs would run without isolation"
    )


def test_tools_are_not_recorded(podium: Podium) -> None:
    scripted = '[[worker]]\nname = "eve"\nkind = "scripted"\nreplies = { "" = "Answer: 1" }\n'
    Path("mixed.toml").write_text(scripted + TOOLS)
    tasks = str(write_sums(Path("sums.jsonl")))
    recorded = ("new.parquet", "--tasks", tasks, "--questions", "4")
    made = podium("record", *recorded, "--pool", "mixed.toml", "--json")
    assert made.status == 0
    assert [worker["name"] for worker in json.loads(made.out)["workers"]] == ["eve"]
