"""Every option that a message, a docstring or a document names is one that a verb has, or another program."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from cyclopts import App

from podium.cli.app import build_app, verbs_for
from shown_commands import ROOT
from test_documents import PROSE, tracked

CODE = (
    "src/podium/*.py",
    "src/podium/server/viewer/*.js",
    "src/podium/assets/*.toml",
    "lab/src/*.py",
    "lab/src/*.toml",
    "research/src/*.py",
    "research/runs/*.py",
    "configs/*.toml",
)
BUBBLEWRAP = ROOT / "src/podium/sandbox/isolation.py"
"""Makes the command line of another program, and names no option to a user."""
VERBS = {
    "src/podium/server/viewer": (),
    "src/podium/server": ("serve", "keys"),
    "src/podium/scoring": ("score-server", "train"),
    "src/podium/store": ("traces", "serve", "ask"),
    "src/podium/evals/study": ("study", "serve"),
    "src/podium/train": ("train", "serve", "ask"),
    "docs/serving.md": ("serve", "keys"),
}
"""The first words of the verbs of which a folder or a document speaks; the first row that fits counts. A text without
words may speak of all verbs."""
OTHERS = {
    "accelerate": {"--config_file", "--machine_rank", "--main_process_ip", "--num_processes"},
    "aider": {"--model", "--openai-api-base"},
    "benchmarks/soak.py": {"--minutes", "--page"},
    "hf download": {"--local-dir", "--repo-type"},
    "inspect": {
        "--cost-limit",
        "--max-connections",
        "--model",
        "--model-base-url",
        "--no-fail-on-error",
        "--score-on-error",
    },
    "llama.cpp": {"--jinja", "--parallel", "--reasoning-format"},
    "lms load": {"--context-length", "--parallel"},
    "trl vllm-serve": {"--model", "--tensor_parallel_size"},
    "vLLM": {
        "--api-key",
        "--enable-auto-tool-choice",
        "--max-model-len",
        "--reasoning-parser",
        "--tool-call-parser",
    },
}
"""Options of other programs, which a text may name that names the program."""
_OPTION = re.compile(r"(?<![\w-])--[a-z]+(?:[-_][a-z]+)*(?![\w-])")


def test_every_option_that_a_text_names_exists() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {option}"
        for path in tracked(*CODE, *PROSE)
        for line, option in _named(path)
        if option not in _known(path) | _of_others(path)
    ]
    assert not wrong, "\n".join(wrong)


def test_every_option_of_another_program_is_named() -> None:
    named = {
        (program, option)
        for path in tracked(*CODE, *PROSE)
        for _, option in _named(path)
        for program, options in OTHERS.items()
        if option in options and program in path.read_text(encoding="utf-8")
    }
    assert named == {(program, option) for program, options in OTHERS.items() for option in options}


def _named(path: Path) -> Iterator[tuple[int, str]]:
    """The options that a file names, each with its line: of a module its strings, of a script its commands."""
    text = path.read_text(encoding="utf-8")
    if path == BUBBLEWRAP or "--" not in text:
        return
    if path.suffix == ".js":  # Names of colours in CSS look like options.
        texts = [(number, line) for number, line in enumerate(text.splitlines(), 1) if "podium " in line]
    elif path.suffix == ".py":
        texts = [
            (node.lineno, node.value)
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
    else:
        texts = list(enumerate(text.splitlines(), 1))
    for line, part in texts:
        for option in _OPTION.findall(part):
            yield line, option


def _known(path: Path) -> frozenset[str]:
    """The options of the verbs of which the text speaks."""
    place = path.relative_to(ROOT).as_posix()
    return _options(next((words for start, words in VERBS.items() if place.startswith(start)), ()))


def _of_others(path: Path) -> set[str]:
    """The options of other programs that the text names, and those of the script that it is."""
    text = path.read_text(encoding="utf-8")
    own = set(re.findall(r'add_argument\(\s*"(--[\w-]+)"', text))
    return own.union(*(options for program, options in OTHERS.items() if program in text))


@cache
def _options(words: tuple[str, ...]) -> frozenset[str]:
    """The options of the verbs that begin with these words, installed ones too; without words, of all."""
    app = build_app(verbs_for(()))
    verbs = [app[word] for word in words] or [app]
    return frozenset({"--help", "--version"}.union(*map(_of_verb, verbs)))


def _of_verb(app: App) -> set[str]:
    own = app.assemble_argument_collection() if app.default_command else ()
    options = {name for argument in own for name in argument.names}
    return options.union(*(_of_verb(app[name]) for name in app if not name.startswith("-")))
