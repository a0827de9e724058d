"""Podium without the other distributions and torch: an endpoint is found, asked, served and studied."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

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

Run = Callable[..., subprocess.CompletedProcess[str]]


def reply(messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
    """Ada is always right, bob on every second question."""
    found = re.search(r"What is (\d+) plus 1000\?", " ".join(str(message["content"]) for message in messages))
    number = int(found[1]) if found else 0
    return f"Answer: {number + 1000 + (body['model'] == 'bob') * (number % 2)}"


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[FaultServer]:
    with FaultServer(reply).in_thread() as server:
        workers = (WORKER.format(name=name, url=server.url) for name in ("ada", "bob"))
        (tmp_path / "pool.toml").write_text("\n".join(workers))
        yield server


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(ALONE)
    path = os.pathsep.join([str(tmp_path / "site"), *filter(None, sys.path)])
    return {**os.environ, "PYTHONPATH": path, "HOME": str(tmp_path), "OLLAMA_HOST": "127.0.0.1:9"}


@pytest.fixture
def podium(tmp_path: Path, environment: dict[str, str]) -> Run:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "podium", *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_core_alone_lacks_commands_and_sets_of_other_distributions(podium: Run) -> None:
    assert "search" not in podium("--help").stdout
    assert podium("tasks", "list", "--json").stdout.strip() == "[]"
    refused = podium("train", "--stage", "warmstart", "--run", "made")
    assert (refused.returncode, "Traceback" in refused.stderr) == (2, False)


def test_core_alone_finds_an_endpoint_with_podium_init(podium: Run) -> None:
    with ModelServer(LLAMA_CPP) as server:
        found = podium("init", "--url", f"{server.url}/v1")
    assert found.returncode == 0, found.stderr


def test_core_alone_answers_with_a_team(podium: Run, endpoint: FaultServer) -> None:
    planner = "mixture-of-agents:ada+bob>ada"
    asked = podium("ask", "What is 7 plus 1000?", "--pool", "pool.toml", "--planner", planner)
    assert (asked.returncode, "1007" in asked.stdout) == (0, True), asked.stderr
    assert endpoint.requests


def test_core_alone_serves_a_team(tmp_path: Path, environment: dict[str, str], endpoint: FaultServer) -> None:
    command = ("serve", "--pool", "pool.toml", "--planner", "single:ada", "--port", "0")
    with subprocess.Popen(
        [sys.executable, "-m", "podium", *command],
        cwd=tmp_path,
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


def test_core_alone_runs_a_study(tmp_path: Path, podium: Run, endpoint: FaultServer) -> None:
    rows = (f"What is {number} plus 1000?,{number + 1000}\n" for number in range(12))
    (tmp_path / "mine.csv").write_text("question,answer\n" + "".join(rows))
    studied = podium("study", "--pool", "pool.toml", "--tasks", "mine.csv", "--run", "found", "--yes")
    assert studied.returncode == 0, studied.stderr
    assert "ada" in studied.stdout
    assert (tmp_path / "found" / "study.json").is_file()
