"""Every command of every document is run, as a reader would, or stands in the one table that says why not.

What a shell block shows is run with bash (document_reader.py) where a reader's files are (document_files.py); what a
Python block shows, with Python, the blocks of a document after one another. What a sentence names is held against the
parser.
"""

from __future__ import annotations

import ast
import builtins
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cyclopts import App, CoercionError, CycloptsError, MissingArgumentError

from command_table import CHANGED, CHECKED, changed, checked
from document_files import GROUND, Ground, lay
from document_reader import DEFAULT, SERVE, Reader, conduct
from loaded_programs import loaded_programs
from model_server import OLLAMA, ModelServer
from podium.cli.app import build_app
from podium_testing import FaultServer
from postgres_server import DATABASES
from shown_commands import DOCUMENTS, ROOT, SHELL, Block, Command, blocks, loose, named


def fault(app: App, text: str) -> str | None:
    """What is wrong with the `podium` commands of a line: with a verb, an option or a value; or None.

    What is required may be missing, for a sentence often names a verb with one option alone, and words in capitals
    stand for any value.
    """
    for tokens in _calls(text):
        try:
            app.parse_args(tokens, exit_on_error=False, print_error=False)
        except MissingArgumentError:
            continue
        except CoercionError as error:
            if error.token is None or not error.token.value.isupper():
                return str(error)
        except CycloptsError as error:
            return str(error)
    return None


def _calls(text: str) -> Iterator[list[str]]:
    """The words behind each `podium` of a line: of a pipe's parts, without redirections."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    parts: list[list[str]] = [[]]
    for word in lexer:
        if set(word) <= set("|;&<>()"):
            parts.append([])
        else:
            parts[-1].append(word)
    for words in parts:
        if words and re.fullmatch(r"(?:\S*/)?podium", words[0]):
            # As the command line does, a lone "-" is told from an option by a space before it.
            yield [" -" if word == "-" else word for word in words[1:] if not word.startswith("[")]


BLOCKS = [block for path in DOCUMENTS for block in blocks(path) if block.language in SHELL]
NAMED = [command for path in DOCUMENTS for command in named(path)]
PYTHON = [
    [block for block in blocks(path) if block.language == "python"]
    for path in DOCUMENTS
    if any(block.language == "python" for block in blocks(path))
]
"""Blocks by document."""
GIVEN = {
    "text": "text = 'model_id = [0]\\nsubtasks = [\"Add.\"]\\naccess_list = [[]]'",
}
"""Names that the Python of a document takes as given, with what a reader would have them be."""
INSTALLED = Path(sys.prefix) / "bin"
"""Where the programs are that load what they need themselves, as those of a reader do: the first ones are run so."""
PYTEST = "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 python -m pytest"
LONG = ("training.md", "study.md", "inspect.md", "recordings.md", "scoring.md", "real-models.md")
"""Documents whose commands train, study and evaluate: they are run at night."""
WRITTEN = "docs/reference.md"
"""Made from the verbs, with their forms and examples, which are held against the parser."""


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    with FaultServer(conduct).in_thread() as server:
        yield server.url


@pytest.fixture(scope="module")
def ollama() -> Iterator[str]:
    with ModelServer(OLLAMA) as server:
        yield server.url


@pytest.fixture
def reader(tmp_path: Path, provider: str, ollama: str) -> Reader:
    folder = tmp_path / "podium"
    folder.mkdir()
    return Reader(folder, provider, ollama, loaded_programs())


def _id(block: Block) -> str:
    of = [one for one in BLOCKS if one.path == block.path]
    return f"{block.path.relative_to(ROOT)}-{of.index(block) + 1}"


def _at_night(block: Block) -> Any:
    return pytest.param(block, marks=pytest.mark.nightly) if block.path.name in LONG else block


@pytest.mark.parametrize("block", [_at_night(block) for block in BLOCKS], ids=_id)
def test_commands_of_each_shell_block_run(
    block: Block, reader: Reader, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if "postgresql://" in block.text:
        server = "postgresql" in DATABASES
        reader.database = request.getfixturevalue("postgres_url") if server else str(tmp_path / "db.sqlite")
    commands = _with_a_server(block, [one for one in block.commands if checked(one) is None])
    if block.path.name == "README.md" and "podium init" in block.text:
        reader.programs = INSTALLED
    lay(Ground(reader, block))
    told = reader.follow(commands, [changed(command.text) for command in commands])
    assert told is None, told


@pytest.mark.parametrize("shown", PYTHON, ids=lambda shown: str(shown[0].path.relative_to(ROOT)))
def test_code_of_each_python_block_runs(shown: list[Block], reader: Reader) -> None:
    texts = [block.text for block in shown]
    tests = [text for text in texts if re.search(r"^(?:async )?def test_", text, re.MULTILINE)]
    plain = "\n".join(text for text in texts if text not in tests)
    taken = [code for name, code in GIVEN.items() if name in _free_names(plain)]
    whole = Block(shown[0].path, "python", "\n".join([*taken, *texts]), shown[0].line)
    ground = Ground(reader, whole)
    lay(ground)
    commands = []
    for number, text in enumerate(tests):
        ground.write(f"test_shown_{number}.py", text)
    if tests:
        commands.append(Command(f"{PYTEST} -q -p pytest_asyncio.plugin -o asyncio_mode=auto", whole.place))
    if plain:
        ground.write("shown.py", "\n".join([*taken, plain]))
        commands += _with_a_server(whole, [Command("python shown.py", whole.place)])
    told = reader.follow(commands, [changed(command.text) for command in commands])
    assert told is None, told


@pytest.mark.parametrize("block", BLOCKS, ids=_id)
def test_unrunnable_shown_commands_exist_with_valid_options(block: Block) -> None:
    for command in block.commands:
        if (found := checked(command)) is not None:
            row, match = found
            row.check(match)
            assert fault(build_app(), command.text) is None, command


def test_commands_named_in_sentences_exist() -> None:
    app = build_app()
    wrong = []
    for command in NAMED:
        if (found := checked(command)) is not None:
            row, match = found
            row.check(match)
        elif "podium" not in command.text:
            wrong.append(f"{command}\n  is in no row of command_table.py: what can be held of it?")
        elif (problem := fault(app, command.text)) is not None:
            wrong.append(f"{command}\n  {problem}")
    assert not wrong, "\n".join(wrong)


def test_commands_stand_in_shell_blocks() -> None:
    """Where they are run."""
    found = [str(one) for path in DOCUMENTS if path != ROOT / WRITTEN for one in loose(path)]
    assert not found, "put these into fenced blocks of the language sh:\n" + "\n".join(found)


def test_every_row_is_needed() -> None:
    """A row that matches nothing is to go."""
    commands = [command for block in BLOCKS for command in block.commands]
    texts = [block.text for block in BLOCKS] + ["\n".join(block.text for block in shown) for shown in PYTHON]
    run = [command.text for command in commands if checked(command) is None]
    names = {name for shown in PYTHON for block in shown for name in _free_names(block.text)}
    idle = [
        *(
            row.pattern
            for row in CHECKED
            if not any(_is_row(row.pattern, one) for one in [*commands, *NAMED])
        ),
        *(row.pattern for row in CHANGED if not any(re.search(row.pattern, text) for text in run)),
        *(row.name for row in GROUND if not any(map(row.is_needed, texts))),
        *(name for name in GIVEN if name not in names),
    ]
    assert not idle, f"these match no command any more: {idle}"


def test_documents_contain_shell_and_python_blocks() -> None:
    assert len(BLOCKS) >= 20
    assert len(PYTHON) >= 3
    assert sum(len(block.commands) for block in BLOCKS) >= 60


def _with_a_server(block: Block, commands: list[Command]) -> list[Command]:
    """The commands; before them, where they ask a server that is not among them, the document's own."""
    if DEFAULT not in block.text or any(SERVE.search(command.text) for command in commands):
        return commands
    serves = [
        command
        for other in blocks(block.path)
        if other.language in SHELL
        for command in other.commands
        if SERVE.search(command.text)
    ]
    return [*(serves or [Command("podium serve --team my.toml", block.place)])[:1], *commands]


def _is_row(pattern: str, command: Command) -> bool:
    return re.fullmatch(pattern, command.text) is not None


def _free_names(code: str) -> set[str]:
    """Names that are read and nowhere given."""
    names = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)]
    given = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            given |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    return {node.id for node in names} - given - set(dir(builtins))
