"""`podium trust` shows what a settings file would do, asks, and keeps the answer for this content alone."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest

from command_line import Podium
from loaded_programs import loaded_podium
from podium.cli.found_files import FoundFiles
from refused_commands import one_sentence

SETTINGS = """
pool = "pool.toml"
store = "own/traces.sqlite"

[conductor]
base_url = "https://conductor.example/v1"
model = "m"
api_key_env = "OPENAI_API_KEY"
podium_file = "led"

[budget]
day_usd = 500

[eval]
tasks = "tasks.toml"
"""
TEAM = """
ratings = "ratings.json"

[[worker]]
name = "endpoint"
kind = "openai"
model = "m"
base_url = "https://workers.example/v1"
api_key_env = "WORKER_KEY"
headers_env = { x-org = "ORG_SECRET" }

[[worker]]
name = "program"
kind = "command"
command = ["sh", "tool.sh", "\\u001b[2J"]
folder = "tools"
env = ["TOOL_TOKEN"]

[[worker]]
name = "function"
kind = "python"
callable = "package.module:run"
path = "code"

[[worker]]
name = "any"
kind = "litellm"
model = "bedrock/large"

[[worker]]
name = "code"
kind = "code"
allow_weak_sandbox = true

[[worker]]
name = "recorded"
kind = "replay"
recording = "answers.parquet"
"""
FILES = {
    "team.toml": SETTINGS,
    "pool.toml": TEAM,
    "tools/tool.sh": "",
    "code/package/__init__.py": "",
    "code/package/module.py": "",
    "led/podium.json": "{}",
    "tasks.toml": '[[part]]\nset = "inspect"\ntask = "quiz.py@quiz"\n'
    '[[part]]\nset = "own"\nfile = "mine.jsonl"\n',
    "quiz.py": "",
    # Data:
    "ratings.json": "{}",
    "answers.parquet": "",
    "mine.jsonl": "",
    "own/traces.sqlite": "",
}
ACTING = list(FILES)[: list(FILES).index("ratings.json")]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_trust_covers_files_that_can_act_and_no_data_files(folder: Path) -> None:
    found = FoundFiles(Path("team.toml"))
    assert sorted(found.digests) == sorted(os.path.realpath(folder / name) for name in ACTING)


def test_trust_shows_every_action_of_the_files(podium: Podium) -> None:
    shown = podium("trust", "--yes").out
    for text in (
        "store = own/traces.sqlite",
        "budget.day_usd = 500",
        "calls https://conductor.example/v1 with $OPENAI_API_KEY",
        "calls https://workers.example/v1 with $WORKER_KEY and $ORG_SECRET",
        "runs sh tool.sh '␛[2J' with $TOOL_TOKEN",
        "imports package.module:run",
        "imports the Inspect task quiz.py@quiz",
        "calls bedrock/large by litellm",
        "without isolation",
        "tools/tool.sh",
    ):
        assert text in shown, text
    assert "\x1b" not in shown


def test_untrusted_folder_refusal_names_actions_and_podium_trust(podium: Podium) -> None:
    said = one_sentence(podium("ask", "Hm?"))
    for text in ("$OPENAI_API_KEY", "runs sh tool.sh", "more", "`podium trust ./team.toml`", "--no-team"):
        assert text in said
    shown = podium("config", "show")
    assert (shown.status, "is not trusted" in shown.err) == (0, True)


def test_trust_is_stored_listed_and_revoked(podium: Podium, tmp_path: Path) -> None:
    assert podium("trust", "--list").out == ""
    assert podium("trust", "./team.toml", "--yes").status == 0
    kept = tmp_path / "data" / "podium" / "trusted.json"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert podium("trust", "--list").out.rstrip().endswith(os.path.realpath("team.toml"))
    assert "has been trusted since" in podium("trust").out
    assert "was trusted on" in podium("config", "show").err
    Path("team.toml").unlink()  # What is gone can be revoked too.
    assert podium("trust", "--revoke", "team.toml").status == 0
    assert podium("trust", "--list").out == ""
    assert "is not trusted" in one_sentence(podium("trust", "team.toml", "--revoke"))


@pytest.mark.parametrize(("answer", "trusted"), [("yes", True), ("", False)])
def test_trust_asks_for_confirmation_on_a_terminal(answer: str, trusted: bool, podium: Podium) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, f"{answer}\n".encode())
    asked = subprocess.run(
        [loaded_podium(), "trust"], stdin=theirs, capture_output=True, text=True, check=False
    )
    os.close(ours)
    os.close(theirs)
    assert "Trust it? [y/N]" in asked.stderr
    assert asked.returncode == (0 if trusted else 2)
    assert bool(podium("trust", "--list").out) == trusted


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        (["none.toml"], "there is no such file"),
        (["tasks.toml", "--yes"], "unknown key"),
        (["tools", "--yes"], "cannot be read"),
        ([], "--yes"),
    ],
)
def test_unreadable_or_unconfirmed_files_are_not_trusted(
    tokens: list[str], said: str, podium: Podium
) -> None:
    refused = podium("trust", *tokens)
    assert (refused.status, said in refused.err) == (2, True)
    assert podium("trust", "--list").out == ""


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_trust_record_writable_by_others_is_refused(mode: int, podium: Podium, tmp_path: Path) -> None:
    podium("trust", "--yes")
    (tmp_path / "data" / "podium" / "trusted.json").chmod(mode)
    assert "Others can write" in one_sentence(podium("ask", "Hm?"))


def test_trust_record_in_a_relative_data_folder_is_refused(
    podium: Podium, monkeypatch: pytest.MonkeyPatch
) -> None:
    podium("trust", "--yes")
    monkeypatch.setenv("XDG_DATA_HOME", "data")
    assert "absolute" in one_sentence(podium("ask", "Hm?"))


def test_files_that_others_can_change_are_told(podium: Podium, tmp_path: Path) -> None:
    (tmp_path / "pool.toml").chmod(0o666)
    assert f"Other users of this machine can change {os.path.realpath('pool.toml')}" in podium("trust").out


def test_trusting_more_than_256_files_is_refused(podium: Podium) -> None:
    names = [f"{i}.toml" for i in range(300)]
    for name in names:
        Path(name).write_text("")
    Path("pool.toml").write_text(f"files = {json.dumps(names)}")
    assert "more than 256 files" in one_sentence(podium("ask", "Hm?"))
