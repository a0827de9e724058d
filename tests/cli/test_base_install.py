"""Podium without its extras. Their packages are blocked in a process of its own, as if they were not installed."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

EXTRAS = """
torch transformers accelerate datasets jinja2 peft trl pyarrow sklearn scipy sentence_transformers jsonschema
math_verify reasoning_gym regex cmaes ray psycopg opentelemetry.sdk inspect_ai litellm
fastapi starlette uvicorn prometheus_client uvloop httptools xllamacpp
"""
QUESTIONS = "question,answer\n" + "".join(f"What is {n} + {n % 7}?,{n + n % 7}\n" for n in range(12))
POOL = '[[worker]]\nname = "{}"\nkind = "scripted"\nreplies = {{ "" = "Answer: 3" }}\n'


def base_install(code: str) -> subprocess.CompletedProcess[str]:
    script = f"import sys\nfor name in {EXTRAS.split()}: sys.modules[name] = None\n" + textwrap.dedent(code)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)


def test_every_verb_explains_itself_without_the_extras():
    said = base_install("""
        from contextlib import redirect_stdout
        from io import StringIO
        from podium.cli import run
        from podium.cli.app import VERBS
        with redirect_stdout(StringIO()):
            failed = [verb.words for verb in VERBS if run([*verb.words.split(), "--help"]) != 0]
        print(failed)
    """)
    assert (said.stdout.strip(), said.stderr) == ("[]", "")


@pytest.mark.parametrize(("typed", "meant"), [("serv", "serve"), ("studdy", "study"), ("traces lst", "list")])
def test_a_mistyped_command_is_told_without_the_extras(typed: str, meant: str):
    said = base_install(f"from podium.cli import run\nsys.exit(run({typed.split()!r}))")
    assert said.returncode == 2
    assert f'Did you mean "{meant}"?' in said.stderr
    assert "Traceback" not in said.stderr


@pytest.mark.parametrize(
    ("command", "lacking"),
    [
        ("study --pool team.toml --tasks mine.csv --yes --out made", "scikit-learn"),
        ("record made.parquet --pool team.toml --tasks mine.csv", "pyarrow"),
        ("pool compose team.toml mine.csv --budget 1 --kinds 4 --out made.toml", "scikit-learn"),
        ("replay show mine.parquet", "pyarrow"),
        ("serve --team team.toml", "web framework"),
        ("train --run made", "torch"),
    ],
)
def test_a_verb_says_which_extra_it_lacks_before_it_asks_a_worker(
    command: str, lacking: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    Path("mine.csv").write_text(QUESTIONS)
    Path("team.toml").write_text(POOL.format("a") + POOL.format("b"))
    before = sorted(Path().iterdir())
    said = base_install(f"from podium.cli import run\nsys.exit(run({command.split()!r}))")
    assert (said.returncode, said.stdout) == (2, "")
    assert lacking in said.stderr
    assert "Traceback" not in said.stderr
    assert "pip install 'podium-conductor[" in said.stderr
    assert sorted(Path().iterdir()) == before
