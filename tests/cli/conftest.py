from pathlib import Path

import pytest

from command_line import Outcome, Podium, enter, run_command
from installed_sums import install_sums

POOL = """
[[worker]]
name = "ada"
kind = "scripted"
profile = "Knows sums."
replies = { Add = "2 + 3 = 5\\nAnswer: 5", Double = "Answer: 10", Fail = { error = "protocol", message = "No text." } }
price = { input = 1.0, output = 2.0 }
latency = 1.5

[[worker]]
name = "bob"
kind = "scripted"
replies = { Check = "Right.\\nAnswer: 5" }
price = { input = 3.0, output = 6.0 }
latency = 2.0
limits = { max_tokens = 1000 }
"""
PLAN = """
model_id = [0, 0, 1]
subtasks = ["Add the numbers.", "Double the sum.", "Check the sum."]
access_list = [[], [0], [0]]
"""


@pytest.fixture(autouse=True)
def _own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    enter(tmp_path, monkeypatch)
    Path("pool.toml").write_text(POOL)
    Path("plan.txt").write_text(PLAN)


@pytest.fixture
def sums(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package is installed with the endless task set `sums` and the simulated workers `calculates`."""
    install_sums(monkeypatch, tmp_path_factory.mktemp("site"))


@pytest.fixture
def podium(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Podium:
    """Runs a command in this process."""

    def command(*tokens: str, stdin: str | bytes = "") -> Outcome:
        return run_command(tokens, capsys, monkeypatch, stdin=stdin)

    return command


@pytest.fixture
def ask(podium: Podium) -> Podium:
    """Asks over the scripted pool with the constant plan."""

    def command(question: str, *tokens: str, **options: str) -> Outcome:
        return podium(
            "ask", question, "--pool", "pool.toml", "--planner", "constant:plan.txt", *tokens, **options
        )

    return command
