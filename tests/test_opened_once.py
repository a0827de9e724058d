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


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.toml").write_text(LED + WORKERS)
    Path("plan.txt").write_text("model_id = [1]\nsubtasks = ['Add.']\naccess_list = [[]]")
    Path("shared.toml").write_text('pool = "own.toml"\n[budget]\nusd = 1.0\n')
    Path("outer.toml").write_text(
        '[[worker]]\nname = "team"\nkind = "podium"\npool = "own.toml"\nplan.planner = "single:ada"\n'
    )
    Path("sums.csv").write_text(
        "question,answer\n" + "".join(f"What is {n} + 1?,{n + 1}\n" for n in range(8))
    )


def opened(*tokens: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(COUNTS), *tokens], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stderr.splitlines()[-1])
    return found


@pytest.mark.parametrize(
    ("tokens", "files", "validations"),
    [
        (("ask", "2 + 3?", "--team", "own.toml", "--no-store"), {"own.toml": 1}, 1),
        (("ask", "2 + 3?", "--team", "shared.toml", "--no-store"), {"own.toml": 1, "shared.toml": 1}, 1),
        (
            ("ask", "2 + 3?", "--team", "outer.toml", "--planner", "single:team", "--no-store"),
            {"own.toml": 1, "outer.toml": 1},
            2,
        ),
        (
            ("ask", "2 + 3?", "--team", "own.toml", "--planner", "constant:plan.txt", "--no-store"),
            {"own.toml": 1, "plan.txt": 1},
            1,
        ),
        (("plan", "2 + 3?", "--team", "own.toml"), {"own.toml": 1}, 1),
        (
            ("eval", "--team", "own.toml", "--tasks", "sums.csv", "--questions", "2", "eval.tuning=0"),
            {"own.toml": 2},  # Once more for the digest in the ledger of looks.
            1,
        ),
    ],
    ids=["ask", "another team's workers", "a team in a team", "a plan in a file", "plan", "eval"],
)
def test_each_file_is_read_once_and_each_team_validated_once(
    tokens: tuple[str, ...], files: dict[str, int], validations: int
) -> None:
    found = opened(*tokens)
    assert {name: found["reads"].get(name, 0) for name in files} == files
    assert found["validations"] == validations


def test_few_frames_lead_to_a_policy_and_to_a_worker() -> None:
    planned = opened("ask", "2 + 3?", "--team", "own.toml", "--no-store")["frames"]
    assert len(planned["policy"]) <= 9, planned["policy"]
    answered = opened("ask", "2 + 3?", "--team", "own.toml", "--planner", "single:ada", "--no-store")[
        "frames"
    ]
    assert len(answered["worker"]) <= 10, answered["worker"]
