"""A team is opened once: each file is read once, its tables are validated once, and few calls lead to a model."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

COUNTS = Path(__file__).parent / "opening_counts.py"
WORKERS = """
[[worker]]
name = "lead"
kind = "scripted"
replies = { "" = "model_id = [1]\\nsubtasks = ['Add.']\\naccess_list = [[]]" }
[[worker]]
name = "ada"
kind = "scripted"
replies = { "" = "Answer: 5" }
"""
LED = '[conductor]\nworker = "lead"\n[plan]\nearly_stop = true\n'


OWN = ("--team", "own.toml", "--no-store")
COMMANDS: dict[str, tuple[str, ...]] = {
    "ask": ("ask", "2 + 3?", *OWN),
    "another team's workers": ("ask", "2 + 3?", "--team", "shared.toml", "--no-store"),
    "a team in a team": ("ask", "2 + 3?", "--team", "outer.toml", "--planner", "single:team", "--no-store"),
    "a plan in a file": ("ask", "2 + 3?", *OWN, "--planner", "constant:plan.txt"),
    "one worker": ("ask", "2 + 3?", *OWN, "--planner", "single:ada"),
    "plan": ("plan", "2 + 3?", "--team", "own.toml"),
    "eval": ("eval", "--team", "own.toml", "--tasks", "sums.csv", "--questions", "2", "eval.tuning=0"),
}


FRAMED = ("ask", "one worker")
"""Those whose frames are counted too."""


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each command opened."""
    here = tmp_path_factory.mktemp("opened")
    (here / "own.toml").write_text(LED + WORKERS)
    (here / "plan.txt").write_text("model_id = [1]\nsubtasks = ['Add.']\naccess_list = [[]]")
    (here / "shared.toml").write_text('pool = "own.toml"\n[budget]\nusd = 1.0\n')
    (here / "outer.toml").write_text(
        '[[worker]]\nname = "team"\nkind = "podium"\npool = "own.toml"\nplan.planner = "single:ada"\n'
    )
    (here / "sums.csv").write_text(
        "question,answer\n" + "".join(f"What is {n} + 1?,{n + 1}\n" for n in range(8))
    )
    commands = [list(COMMANDS.values()), [COMMANDS[name] for name in FRAMED]]
    program = [sys.executable, str(COUNTS), json.dumps(commands)]
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=300, cwd=here)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stderr.splitlines() if line.startswith('{"reads"')]
    return dict(zip(COMMANDS, found, strict=True))


@pytest.mark.parametrize(
    ("name", "files", "validations"),
    [
        ("ask", {"own.toml": 1}, 1),
        ("another team's workers", {"own.toml": 1, "shared.toml": 1}, 1),
        ("a team in a team", {"own.toml": 1, "outer.toml": 1}, 2),
        ("a plan in a file", {"own.toml": 1, "plan.txt": 1}, 1),
        ("plan", {"own.toml": 1}, 1),
        ("eval", {"own.toml": 2}, 1),  # Once more for the digest in the log of looks.
    ],
)
def test_each_file_is_read_once_and_each_team_validated_once(
    opened: dict[str, Any], name: str, files: dict[str, int], validations: int
) -> None:
    found = opened[name]
    assert {file: found["reads"].get(file, 0) for file in files} == files
    assert found["validations"] == validations


def test_call_stack_to_a_policy_or_worker_is_short(opened: dict[str, Any]) -> None:
    planned = opened["ask"]["frames"]
    assert len(planned["policy"]) <= 9, planned["policy"]
    answered = opened["one worker"]["frames"]
    assert len(answered["worker"]) <= 10, "\n".join(answered["worker"])
