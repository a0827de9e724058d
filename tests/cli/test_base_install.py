"""Podium without its extras. Their packages are blocked in a process of its own, as if they were not installed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from command_line import Outcome
from podium.cli.app import VERBS

EXTRAS = """
torch transformers accelerate datasets jinja2 peft trl pyarrow sklearn scipy sentence_transformers jsonschema
math_verify reasoning_gym regex cmaes psycopg opentelemetry.sdk inspect_ai litellm
fastapi starlette uvicorn prometheus_client uvloop httptools xllamacpp
"""
QUESTIONS = "question,answer\n" + "".join(f"What is {n} + {n % 7}?,{n + n % 7}\n" for n in range(12))
POOL = '[[worker]]\nname = "{}"\nkind = "scripted"\nreplies = {{ "" = "Answer: 3" }}\n'


LACKING = {
    "study --pool team.toml --tasks mine.csv --yes --run made": "scikit-learn",
    "record made.parquet --pool team.toml --tasks mine.csv": "pyarrow",
    "study --preset compose --pool team.toml --tasks mine.csv --run-budget-usd 1 --run made": "scikit-learn",
    "replay show mine.parquet": "pyarrow",
    "serve --team team.toml": "web framework",
    "train --run made": "torch",
}
"""Commands, and what is said to be missing."""
SCRIPT = """
import json, sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
for name in {extras}: sys.modules[name] = None
from podium.cli import run
ended = []
for tokens in {commands}:
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        status = run(tokens)
    ended.append([status, out.getvalue(), err.getvalue()])
print(json.dumps(ended))
"""


MISTYPED = {"serv": "serve", "studdy": "study", "traces lst": "list"}


@pytest.fixture(scope="module")
def base_install(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """How each of these commands and the help of each verb ends, in a folder that they leave as it was."""
    folder = tmp_path_factory.mktemp("base")
    (folder / "mine.csv").write_text(QUESTIONS)
    (folder / "team.toml").write_text(POOL.format("a") + POOL.format("b"))
    before = sorted(folder.iterdir())
    commands = [*(f"{verb.words} --help" for verb in VERBS), *MISTYPED, *LACKING]
    script = SCRIPT.format(extras=EXTRAS.split(), commands=[command.split() for command in commands])
    said = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=folder
    )
    assert said.stderr == ""
    assert sorted(folder.iterdir()) == before
    return {
        command: Outcome(*outcome) for command, outcome in zip(commands, json.loads(said.stdout), strict=True)
    }


def test_every_verb_explains_itself_without_the_extras(base_install: dict[str, Outcome]) -> None:
    helped = [ended for command, ended in base_install.items() if command.endswith("--help")]
    assert {ended.status for ended in helped} == {0}


def test_a_mistyped_command_is_told_without_the_extras(base_install: dict[str, Outcome]) -> None:
    for command, meant in MISTYPED.items():
        ended = base_install[command]
        assert ended.status == 2
        assert f'Did you mean "{meant}"?' in ended.err
        assert "Traceback" not in ended.err


def test_a_verb_says_which_extra_it_lacks_before_it_asks_a_worker(base_install: dict[str, Outcome]) -> None:
    for command, lacking in LACKING.items():
        ended = base_install[command]
        assert (ended.status, ended.out) == (2, "")
        assert lacking in ended.err
        assert "Traceback" not in ended.err
        assert "pip install 'podium-conductor[" in ended.err
