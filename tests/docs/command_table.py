"""The one table of what is not run as it is written: commands that are checked instead, and commands that are changed.

Each row has its reason, and a row that no document needs any more fails a test. What is not here is run word for word.
"""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from collections.abc import Callable
from dataclasses import dataclass

from shown_commands import ROOT, Command

QUESTION = "Find the date 60 days after 3 March 2024. Then name the weekday of it."
"""What a reader asks where a document has three dots: shipped workers, recordings and endpoints here can answer it."""
SLOW = "Take your time."
"""A question that is not answered before somebody cancels it."""
_LAST_ID = r"""$(sed -n 's/.*"id": *"\\([0-9a-f]*\\)".*/\\1/p' said/*.out | tail -n 1)"""


@dataclass(frozen=True, slots=True)
class Checked:
    """A command that no suite can run."""

    pattern: str
    """Of the whole command."""
    reason: str
    check: Callable[[re.Match[str]], None]
    """Of what can be held without running it; fails with an AssertionError."""


@dataclass(frozen=True, slots=True)
class Changed:
    """A command of which a part is replaced before it is run."""

    pattern: str
    """Of the part."""
    by: str
    """As in `re.sub`."""
    reason: str


def _target(found: re.Match[str]) -> None:
    done = subprocess.run(
        ["make", "-n", found["target"]], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def _script(found: re.Match[str]) -> None:
    script = ROOT / found["script"]
    assert script.exists(), f"there is no {found['script']}"
    if script.suffix == ".py":
        compile(script.read_text(encoding="utf-8"), str(script), "exec")
        return
    assert os.access(script, os.X_OK), f"{found['script']} cannot be executed"
    done = subprocess.run(["bash", "-n", str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    text = script.read_text(encoding="utf-8")
    for argument in found["arguments"].split():
        assert re.search(rf"^  (?:.* \| )?{re.escape(argument)}\)", text, re.MULTILINE), (
            f"{found['script']} takes no {argument}"
        )
    for config in re.findall(r"(?<![\w/$}])configs/[\w./-]+\.(?:toml|json)", text):
        assert (ROOT / config).exists(), f"{found['script']} names {config}, which is not there"


def _extra(found: re.Match[str]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == found["name"]
    assert found["extra"] in project["optional-dependencies"], f"there is no extra {found['extra']}"


def _path(found: re.Match[str]) -> None:
    assert (ROOT / found["path"]).exists(), f"there is no {found['path']}"


def _nothing(found: re.Match[str]) -> None:
    """There is nothing to hold: the rest is the reader's, or another program's."""


CHECKED = (
    Checked(
        r"git clone <this repository> \w+ && cd \w+",
        "the repository's address is the reader's",
        _nothing,
    ),
    Checked(
        r"(?:PIP_EXTRA_INDEX_URL=\S+ )?make (?P<target>[\w-]+)",
        "builds an environment from a package index, runs the whole suite, or trains for minutes",
        _target,
    ),
    Checked(r"(?:PYTHON|PIP_EXTRA_INDEX_URL)=\S+ make \.\.\.", "a form, with any target", _nothing),
    Checked(
        r"(?:[A-Z_]+=\S+ )*(?P<script>(?:lab/|research/)?runs/[\w-]+\.sh)(?P<arguments>(?: [\w-]+)*)",
        "needs what others have published, or trains for minutes",
        _script,
    ),
    Checked(
        r"(?:[A-Z]+=\S+ )*(?:python )?(?P<script>(?:benchmarks|(?:lab/|research/)?runs)/[\w-]+\.py)(?: [\w./-]+)*",
        "measures for minutes, or needs what others have published",
        _script,
    ),
    Checked(
        r"pip install '(?P<name>podium[\w-]+)\[(?P<extra>\w+)\]'",
        "needs a package index",
        _extra,
    ),
    Checked(r"(?:DATA=\S+ )?(?:\.venv/bin/)?pytest (?P<path>\S+)(?: -[qv])?", "a part of this suite", _path),
    Checked(
        r"\.venv/bin/python runs/reference\.py (?P<path>\S+)",
        "a test of the verbs makes the page so, and holds it against the one that is there",
        _path,
    ),
    Checked(
        r"podium train(?= .*--config (?P<path>configs/train/\S+)) .*",
        "needs a GPU, keys, and a model of the hub; a test loads every recipe",
        _path,
    ),
    Checked(
        r"accelerate launch --config_file (?P<path>configs/accelerate/\S+) .*",
        "needs the GPUs that the file names; a test reads every such file",
        _path,
    ),
    Checked(
        r"podium train --run \S+ --config conductor\.toml.*|podium (?:train push|serve) .*published/mine.*",
        "trains and serves a model of the hub; runs/smoke-train.sh runs the same verbs on random models",
        _nothing,
    ),
    Checked(
        r"trl vllm-serve .*|vllm serve .*|pip install (?:vllm|'trl\[vllm\]')",
        "another program, on a GPU",
        _nothing,
    ),
    Checked(
        r"podium study --preset compose .*",
        "needs models that know the questions; tests/cli/test_compose.py runs it over forty",
        _nothing,
    ),
    Checked(
        r"(?:ollama|lms|llama-server) .*",
        "another program, with models of its own",
        _nothing,
    ),
    Checked(r"inspect eval|python -c", "the name of a program, not a command to type", _nothing),
)

_SMALL = "grpo.iterations=1 grpo.questions=1 grpo.group=2 grpo.max_tokens=16"
CHANGED = (
    Changed(r'"\.\.\."', f'"{QUESTION}"', "a question of the reader's"),
    Changed(
        r"(curl -X DELETE (\S+/api/ask)/)ID\b",
        rf"""curl -s \2 -H 'Content-Type: application/json' -d '{{"question": "{SLOW}"}}'; \1{_LAST_ID}""",
        "the question of the line before has its answer by now, so another one is cancelled",
    ),
    Changed(r"(?<=/)ID\b", _LAST_ID, "the id that the command before it has printed"),
    Changed(
        r"(\S*\bpodium train --run (\S+)) ?(.*)",
        rf"rm -rf \2; \1 \3 {_SMALL}",
        "minutes to hours; and what a document trains in one folder are alternatives, which the folder would refuse",
    ),
    Changed(r"(podium eval --(?:run|tasks \w+\.toml) .*)$", r"\1 --questions 2 eval.tuning=0", "minutes"),
    Changed(r"(podium eval \S+\.toml .*)$", r"\1 questions=2 training=4 seeds=1 processes=1", "minutes"),
    Changed(r"(podium record .*)--questions \d+", r"\1--questions 60", "minutes"),
    Changed(r"(podium study .*--yes)$", r"\1 --questions 20", "minutes"),
    Changed(r" --url http://\S+", "", "servers of the reader's"),
    Changed(r"(podium study --preset shadow .*)--share 0\.1", r"\1--share 1", "the store has few questions"),
    Changed(r"--host 0\.0\.0\.0", "--host 127.0.0.2", "a suite is not to be reached from other machines"),
)


def checked(command: Command) -> tuple[Checked, re.Match[str]] | None:
    """The row of a command that is not run, or None if it is run."""
    for row in CHECKED:
        if (found := re.fullmatch(row.pattern, command.text)) is not None:
            return row, found
    return None


def changed(text: str) -> str:
    """A command as it is run."""
    for row in CHANGED:
        text = re.sub(row.pattern, row.by, text)
    return text
