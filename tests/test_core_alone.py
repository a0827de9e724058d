"""Podium without the other distributions and torch: an endpoint is found, asked, served and studied."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from command_line import Outcome
from model_server import LLAMA_CPP, ModelServer
from podium_testing import FaultServer

ALONE = """
import importlib.metadata as metadata
import sys
from importlib.machinery import PathFinder

BUILT_ON_IT = ("podium_lab", "podium_research", "podium_testing")


class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] in (*BUILT_ON_IT, "safetensors", "tokenizers", "torch", "transformers"):
            return None
        return super().find_spec(name, path, target)


sys.meta_path[sys.meta_path.index(PathFinder)] = Without
installed = metadata.entry_points
metadata.entry_points = lambda **group: [
    entry for entry in installed(**group) if not entry.value.startswith(BUILT_ON_IT)
]
"""
"""Python runs it at the start of each process, so that these packages are as good as not installed."""
WORKER = (
    '[[worker]]\nname = "{name}"\nkind = "openai"\nmodel = "{name}"\nbase_url = "{url}"\n'
    "limits = {{ retries = 0 }}\nprice = {{ input = 0, output = 0 }}\n"
)

COMMANDS = """
import json, sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from podium.cli import run
ended = {}
for name, tokens in json.loads(sys.argv[1]).items():
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        status = run(tokens)
    ended[name] = [status, out.getvalue(), err.getvalue()]
print(json.dumps(ended))
"""


def reply(messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
    """Ada is always right, bob on every second question."""
    found = re.search(r"What is (\d+) plus 1000\?", " ".join(str(message["content"]) for message in messages))
    number = int(found[1]) if found else 0
    return f"Answer: {number + 1000 + (body['model'] == 'bob') * (number % 2)}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("alone")


@pytest.fixture(scope="module")
def endpoint(folder: Path) -> Iterator[FaultServer]:
    with FaultServer(reply).in_thread() as server:
        workers = (WORKER.format(name=name, url=server.url) for name in ("ada", "bob"))
        (folder / "pool.toml").write_text("\n".join(workers))
        yield server


@pytest.fixture(scope="module")
def environment(folder: Path) -> dict[str, str]:
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(ALONE)
    path = os.pathsep.join([str(folder / "site"), *filter(None, sys.path)])
    return {**os.environ, "PYTHONPATH": path, "HOME": str(folder), "OLLAMA_HOST": "127.0.0.1:9"}


@pytest.fixture(scope="module")
def ended(folder: Path, environment: dict[str, str], endpoint: FaultServer) -> dict[str, Outcome]:
    """How commands ended, one after the other in one process."""
    rows = (f"What is {number} plus 1000?,{number + 1000}\n" for number in range(12))
    (folder / "mine.csv").write_text("question,answer\n" + "".join(rows))
    team, planner = ("--pool", "pool.toml"), "mixture-of-agents:ada+bob>ada"
    with ModelServer(LLAMA_CPP) as server:
        commands = {
            "help": ["--help"],
            "tasks": ["tasks", "list", "--json"],
            "train": ["train", "--stage", "warmstart", "--run", "made"],
            "init": ["init", "--url", f"{server.url}/v1"],
            "ask": ["ask", "What is 7 plus 1000?", *team, "--planner", planner],
            "study": ["study", *team, "--tasks", "mine.csv", "--run", "found", "--yes"],
        }
        done = subprocess.run(
            [sys.executable, "-c", COMMANDS, json.dumps(commands)],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return {name: Outcome(*outcome) for name, outcome in json.loads(done.stdout).items()}


def test_core_alone_lacks_commands_and_sets_of_other_distributions(ended: dict[str, Outcome]) -> None:
    assert "search" not in ended["help"].out
    assert ended["tasks"].out.strip() == "[]"
    assert (ended["train"].status, "Traceback" in ended["train"].err) == (2, False)


def test_core_alone_finds_an_endpoint_with_podium_init(ended: dict[str, Outcome]) -> None:
    assert ended["init"].status == 0, ended["init"].err


def test_core_alone_answers_with_a_team(ended: dict[str, Outcome], endpoint: FaultServer) -> None:
    assert (ended["ask"].status, "1007" in ended["ask"].out) == (0, True), ended["ask"].err
    assert endpoint.requests


@pytest.mark.usefixtures("endpoint")
def test_core_alone_serves_a_team(folder: Path, environment: dict[str, str]) -> None:
    command = ("serve", "--pool", "pool.toml", "--planner", "single:ada", "--port", "0")
    with subprocess.Popen(
        [sys.executable, "-m", "podium", *command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as server:
        assert server.stdout is not None
        try:
            url = next(found[0] for line in server.stdout if (found := re.search(r"http://[\d.:]+\d", line)))
            body = {"model": "podium", "messages": [{"role": "user", "content": "What is 8 plus 1000?"}]}
            request = urllib.request.Request(
                f"{url}/v1/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
            )
            with urllib.request.urlopen(request, timeout=60) as response:
                said = json.load(response)["choices"][0]["message"]["content"]
        finally:
            server.terminate()
    assert "1008" in said


def test_core_alone_runs_a_study(ended: dict[str, Outcome], folder: Path) -> None:
    assert ended["study"].status == 0, ended["study"].err
    assert "ada" in ended["study"].out
    assert (folder / "found" / "study.json").is_file()
