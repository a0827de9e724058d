"""Every client of the table with its own package, over a served team.

`runs/clients.sh` makes the environments and runs these tests; they are not collected with the others.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from client_table import ANSWERS, CLIENTS, Client
from client_team import MADE, endpoint, team

PROGRAMS = Path(__file__).parent / "programs"


def found(client: Client, url: str) -> dict[str, str]:
    """What the client's program prints."""
    if client.environment == "node":
        link = PROGRAMS / "node_modules"
        if not link.exists():
            link.symlink_to(MADE / "node" / "node_modules")
        command = ["node", str(PROGRAMS / client.program)]
    else:
        command = [str(MADE / client.environment / "bin" / "python"), str(PROGRAMS / client.program)]
    done = subprocess.run(
        command,
        env=os.environ | {"PODIUM_URL": url, "PODIUM_FACE": client.face},
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return answers


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_client_supports_the_features_of_its_table_row(client: Client, server: str) -> None:
    answers = found(client, server)
    expected = {name: ANSWERS[name] for name in answers} | client.says
    wrong = {name: text for name, text in answers.items() if expected[name] not in text}
    assert not wrong
    assert {name for name in answers if name not in client.says} >= set(client.features)


CODEX = """
model = "podium"
model_provider = "podium"
[model_providers.podium]
name = "podium"
base_url = "{url}/v1"
wire_api = "responses"
"""
OPENCODE = {
    "npm": "@ai-sdk/openai-compatible",
    "name": "podium",
    "models": {"podium": {"name": "podium"}},
}
PLACES = {"aider": "aider/bin"}
TASK = "Write calc.py with a function add so that test_calc.py passes, and run it."


def codex(home: Path, url: str) -> tuple[list[str], dict[str, str]]:
    (home / "config.toml").write_text(CODEX.format(url=url))
    options = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    return ["codex", "exec", *options, TASK], {"CODEX_HOME": str(home)}


def claude(home: Path, url: str) -> tuple[list[str], dict[str, str]]:
    models = {"ANTHROPIC_MODEL": "podium", "ANTHROPIC_DEFAULT_HAIKU_MODEL": "podium"}
    options = ["--allowedTools", "Write", "Bash", "--permission-mode", "acceptEdits"]
    variables = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "x", "HOME": str(home)}
    return ["claude", "-p", TASK, *options], models | variables


def opencode(home: Path, url: str) -> tuple[list[str], dict[str, str]]:
    provider = OPENCODE | {"options": {"baseURL": f"{url}/v1", "apiKey": "x"}}
    settings = {"provider": {"podium": provider}, "permission": {"*": "allow"}, "autoupdate": False}
    variables = {"OPENCODE_CONFIG_CONTENT": json.dumps(settings), "HOME": str(home)}
    return ["opencode", "run", "--model", "podium/podium", TASK], variables


def aider(home: Path, url: str) -> tuple[list[str], dict[str, str]]:
    options = [
        "--openai-api-base",
        f"{url}/v1",
        "--openai-api-key",
        "x",
        "--edit-format",
        "whole",
        "--yes-always",
    ]
    options += ["--no-git", "--no-show-model-warnings", "--no-check-update", "--analytics-disable"]
    options += ["--auto-test", "--test-cmd", "python3 test_calc.py", "--message", TASK, "calc.py"]
    return ["aider", "--model", "openai/podium", *options], {"HOME": str(home), "TERM": "dumb"}


@pytest.mark.parametrize("agent", [codex, claude, opencode, aider], ids=lambda agent: agent.__name__)
def test_a_coding_agent_ends_a_task_with_a_passing_test(agent: Any, tmp_path: Path) -> None:
    home, work, place = tmp_path / "home", tmp_path / "work", tmp_path / "team"
    for folder in (home, work, place):
        folder.mkdir()
    (work / "test_calc.py").write_text('from calc import add\n\nassert add(1, 2) == 3\nprint("1 passed")\n')
    with (
        endpoint(str(Path(__file__).with_name("scripted_coder.py")), str(work)) as workers,
        team(place, workers) as url,
    ):
        (program, *words), variables = agent(home, url)
        done = subprocess.run(
            [str(MADE / PLACES.get(program, "node/node_modules/.bin") / program), *words],
            env=os.environ | {"PWD": str(work)} | variables,
            cwd=work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )
    assert (work / "calc.py").exists(), done.stdout + done.stderr
    assert " passed" in done.stdout, done.stdout + done.stderr
