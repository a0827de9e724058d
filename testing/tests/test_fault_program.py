"""The server as a program, and its files; and that the example of the documentation runs."""

import asyncio
import inspect
import re
import signal
import subprocess
import sys
import typing
import urllib.request
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from podium.config import load
from podium.errors import ConfigError
from podium_testing import Answer, Hang, Rule, Status
from podium_testing.__main__ import AnswerSettings, ServerSettings, main
from podium_testing.faults import AnyFault

DOCUMENT = Path(__file__).parents[2] / "docs" / "testing.md"
FILE = """\
keys = ["secret"]
rpm = 60
seed = "mine"

[models]
small = "Four."
large = { text = "4", output_tokens = 100 }

[[rule]]
fault = { kind = "status", code = 503 }
model = "small"
times = 2

[[rule]]
fault = "hang"
contains = "for ever"
share = 0.5
"""


def test_settings_file_configures_models_and_fault_rules(tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text(FILE)
    settings = load(tmp_path / "rules.toml", ServerSettings)
    assert settings.rule == (
        Rule(fault=Status(code=503), model="small", times=2),
        Rule(fault=Hang(), contains="for ever", share=0.5),
    )
    assert settings.to_server().rules == settings.rule
    assert settings.models == {
        "small": AnswerSettings(text="Four."),
        "large": AnswerSettings(text="4", output_tokens=100),
    }


@pytest.mark.parametrize(
    ("line", "way_out"),
    [
        ('rule = [{ fault = "hagn" }]', "did you mean 'hang'"),
        ('rule = [{ fault = "hang", tims = 3 }]', "did you mean 'times'"),
        ('rule = [{ fault = { kind = "status" } }]', "code"),
        ('rule = [{ fault = { kind = "status", code = 200 } }]', "code"),
        ('rule = [{ fault = { kind = "poison", name = "plam" } }]', "did you mean 'plan'"),
        ("rpm = 0", "rpm"),
        ("kyes = []", "did you mean 'keys'"),
        ('models = { a = { txt = "x" } }', "did you mean 'text'"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_the_way_out(
    tmp_path: Path, line: str, way_out: str
) -> None:
    (tmp_path / "rules.toml").write_text(line)
    with pytest.raises(ConfigError, match=re.escape(way_out)):
        load(tmp_path / "rules.toml", ServerSettings)


def test_answer_table_in_settings_file_has_the_fields_of_answer() -> None:
    assert set(AnswerSettings.model_fields) == {field.name for field in fields(Answer)}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_program_prints_its_address_and_ends_on_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "rules.toml").write_text(FILE)
    command = [sys.executable, "-m", "podium_testing", str(tmp_path / "rules.toml"), "--port", "0", "rpm=30"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        url = process.stdout.readline().strip()
        asked = urllib.request.Request(f"{url}/models", headers={"Authorization": "Bearer secret"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(asked, timeout=30) as reply:
            assert b'"small"' in reply.read()
        process.send_signal(number)
        assert process.wait(30) == 0
        assert process.stderr.read() == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [(["missing.toml"], "no such file"), (["rpm=-1"], "rpm"), (["a.toml", "b.toml"], "one file")],
)
def test_the_program_reports_wrong_usage(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1


# --- the documentation -----------------------------------------------------------------------------------


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)


@pytest.mark.parametrize("block", _blocks("python"))
def test_the_examples_of_the_documentation_pass(block: str, tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    exec(compile(block, str(DOCUMENT), "exec"), names)
    tests = [value for name, value in names.items() if name.startswith("test_")]
    assert tests
    for test in tests:
        asyncio.run(test(tmp_path) if inspect.signature(test).parameters else test())


def test_documented_fault_settings_file_loads(tmp_path: Path) -> None:
    (block,) = (block for block in _blocks("toml") if "[[rule]]" in block)
    (tmp_path / "rules.toml").write_text(block)
    assert len(load(tmp_path / "rules.toml", ServerSettings).to_server().rules) == 2


def test_the_documentation_lists_every_fault_once() -> None:
    union, *_ = typing.get_args(AnyFault)
    known = {(fault.__name__, fault.model_fields["kind"].default) for fault in typing.get_args(union)}
    listed = re.findall(r"^\| `([A-Z]\w+)` \| `([a-z0-9-]+)` \|", DOCUMENT.read_text(), re.MULTILINE)
    assert len(listed) == len(known)
    assert set(listed) == known
