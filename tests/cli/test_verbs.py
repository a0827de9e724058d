import runpy
import shlex
import sys
from pathlib import Path

import pytest

from podium.cli.app import VERBS, build_app


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.words)
def test_every_verb_explains_itself_with_an_example(podium, verb):
    explained = podium(*verb.words.split(), "--help")
    assert explained.status == 0
    assert verb.help in " ".join(explained.out.split())
    assert "podium " in explained.out.partition("For example:")[2]


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.words)
def test_every_example_is_a_command_that_parses(verb):
    app = build_app()
    commands = [part for line in joined(verb.example) for part in line.split(" | ")]
    commands = [command.partition(" > ")[0] for command in commands if command.startswith("podium ")]
    assert commands
    for command in commands:
        tokens = [" -" if token == "-" else token for token in shlex.split(command, comments=True)]
        app.parse_args(tokens[1:], exit_on_error=False, print_error=False)


def joined(example):
    return example.replace("\\\n", " ").splitlines()


def test_documented_reference_matches_the_help_of_the_verbs(tmp_path, monkeypatch):
    root, made = Path(__file__).parents[2], tmp_path / "reference.md"
    monkeypatch.setattr(sys, "argv", ["reference.py", str(made)])
    runpy.run_path(str(root / "runs" / "reference.py"), run_name="__main__")
    page = (root / "docs" / "reference.md").read_text()
    assert page == made.read_text(), "run: python runs/reference.py docs/reference.md"


def test_without_a_verb_the_verbs_are_shown(podium):
    shown = podium()
    assert shown.status == 0
    for verb in VERBS:
        assert verb.words.split()[0] in shown.out


@pytest.mark.parametrize("tokens", [("asc",), ("traces", "lst"), ("--nope",), ("traces", "show", "a", "b")])
def test_a_command_that_does_not_parse_is_status_2(podium, tokens):
    refused = podium(*tokens)
    assert (refused.status, refused.out) == (2, "")
    assert refused.err.startswith("podium: ")
