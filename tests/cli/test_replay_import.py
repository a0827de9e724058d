"""Recordings made at the command line from what others published."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podium.recordings import Recording, RecordingHeader
from refused_commands import one_sentence
from scripted_team import write_sums

Podium = Callable[..., Any]
TABLE = """
name = "tiny"
source = "here"
licence = "MIT"
[questions]
file = "rows.jsonl"
id = "id"
text = "text"
split = "fold"
[responses]
file = "rows.jsonl"
question = "id"
worker = "who"
text = "said"
score = "ok"
"""
ROWS = [
    {
        "id": number,
        "text": f"Question {number}?",
        "fold": "test",
        "who": who,
        "said": f"Answer: {number}",
        "ok": right,
    }
    for number in range(3)
    for who, right in (("ada", 1.0), ("bob", float(number == 0)))
]
IMPORT = ("replay", "import", "table", "columns.toml")


@pytest.fixture(autouse=True)
def _sources() -> None:
    """A table with its columns, and columns that do not fit it; a pool that always answers 5; odd files and folders."""
    files = {
        "columns.toml": TABLE,
        "rows.jsonl": "\n".join(map(json.dumps, ROWS)),
        "misspelt.toml": TABLE.replace('score = "ok"', 'score = "okay"'),
        "nobody.toml": TABLE + 'where = { who = "eve" }\n',
    }
    for name, text in files.items():
        Path(name).write_text(text)
    for folder in ("folder.parquet", "beside.json"):
        Path(folder).mkdir()


def files() -> dict[str, bytes | None]:
    """What there is: each path with its content, or None of a folder."""
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(Path().rglob("*"))}


def refusal(outcome: Any) -> str:
    """The sentence of a refused import, after the names of the files that it has read."""
    assert (outcome.status, outcome.out) == (2, ""), outcome
    *read, sentence = outcome.err.splitlines()
    assert all(line.startswith("Reading ") for line in read)
    assert sentence.startswith("podium: ")
    return str(sentence)


def header_of(podium: Podium, *tokens: str) -> RecordingHeader:
    """The header that an import prints as JSON."""
    made = podium(*tokens, "--json")
    assert (made.status, made.out.count("\n")) == (0, 1), made.err
    return RecordingHeader.model_validate_json(made.out)


def test_a_table_is_imported_and_shown(podium: Podium) -> None:
    made = podium(*IMPORT, "kept/tiny.parquet")
    assert made.status == 0
    assert all(part in made.out for part in ("tiny", "MIT", "100.0%", "33.3%"))
    header = header_of(podium, *IMPORT, "kept/again.parquet", "--name", "again")
    assert (header.name, header.questions, header.responses) == ("again", 3, 6)
    assert header == Recording.open(Path("kept/again.parquet")).header
    names = {file.name for file in Path("kept").iterdir()}
    assert names == {"again.json", "again.parquet", "tiny.json", "tiny.parquet"}


def test_the_files_of_a_table_may_lie_in_another_folder(podium: Podium) -> None:
    Path("data").mkdir()
    Path("rows.jsonl").rename("data/rows.jsonl")
    assert "rows.jsonl" in refusal(podium(*IMPORT, "t.parquet"))
    assert podium(*IMPORT, "t.parquet", "--folder", "data").status == 0


@pytest.mark.parametrize(
    ("tokens", "named"),
    [
        ((*IMPORT, "out.json"), ".parquet"),
        (("replay", "import", "table", "none.toml", "o.parquet"), "none.toml"),
        (("replay", "import", "tables", "columns.toml", "o.parquet"), "tables"),
        (("replay", "import", "table", "misspelt.toml", "new/o.parquet"), "'ok'"),
        (("replay", "import", "table", "nobody.toml", "new/o.parquet"), "`where`"),
        (("replay", "show", "."), "no such file"),
    ],
)
def test_a_wrong_import_is_one_sentence_and_writes_nothing(
    podium: Podium, tokens: tuple[str, ...], named: str
) -> None:
    before = files()
    assert named in refusal(podium(*tokens))
    assert files() == before


def test_an_import_that_fails_leaves_what_was_there(podium: Podium) -> None:
    assert podium(*IMPORT, "t.parquet").status == 0
    before = files()
    refusal(podium("replay", "import", "table", "misspelt.toml", "t.parquet", "--replace"))
    assert files() == before


def test_names_in_a_recording_cannot_command_the_terminal(podium: Podium) -> None:
    Path("rows.jsonl").write_text("\n".join(json.dumps(row | {"who": "a\x1b[31mb"}) for row in ROWS))
    podium(*IMPORT, "t.parquet", "--name", "n\x1b[0m")
    shown = podium("replay", "show", "t.parquet")
    assert shown.status == 0
    assert "\x1b" not in shown.out


def test_a_recording_is_replaced_only_on_request(podium: Podium) -> None:
    assert podium(*IMPORT, "tiny.parquet").status == 0
    before = files()
    assert "--replace" in one_sentence(podium(*IMPORT, "tiny.parquet"))
    assert files() == before
    assert podium(*IMPORT, "tiny.parquet", "--replace", "--name", "new").status == 0
    assert Recording.open(Path("tiny.parquet")).name == "new"


@pytest.mark.parametrize("there", ["tiny.json", "tiny.parquet", "tiny.partial"])
@pytest.mark.parametrize("replace", [(), ("--replace",)])
def test_import_never_replaces_files_that_are_no_recording(
    podium: Podium, there: str, replace: tuple[str, ...]
) -> None:
    Path(there).write_text("ratings")
    before = files()
    assert there in one_sentence(podium(*IMPORT, "tiny.parquet", *replace))
    assert files() == before


@pytest.mark.parametrize(
    ("source", "out", "replace"),
    [("rows.parquet", "kept/../rows.parquet", ()), ("rows.json", "rows.parquet", ("--replace",))],
)
def test_a_file_that_is_read_is_never_written_over(
    podium: Podium, source: str, out: str, replace: tuple[str, ...]
) -> None:
    Path("kept").mkdir()
    assert podium(*IMPORT, "rows.parquet").status == 0
    Path("own.toml").write_text(
        TABLE.replace("rows.jsonl", source)
        .replace('"id"', '"question_id"')
        .replace('"text"', '"question"')
        .replace('"who"', '"worker"')
    )
    before = files()
    refused = one_sentence(podium("replay", "import", "table", "own.toml", out, *replace))
    assert "overwrite" in refused
    assert source in refused
    assert files() == before


@pytest.mark.parametrize(
    ("out", "named"),
    [
        ("folder.parquet", "folder.parquet"),
        ("beside.parquet", "beside.json"),
        ("pool.toml/x.parquet", "pool.toml"),
        ("/proc/none/x.parquet", "/proc/none"),
        ("x" * 300 + ".parquet", "too long"),
    ],
)
@pytest.mark.parametrize("verb", ["import", "record"])
def test_an_unwritable_place_is_reported_before_anything_is_done(
    podium: Podium, verb: str, out: str, named: str
) -> None:
    tasks = str(write_sums(Path("sums.jsonl")))
    record = ("record", out, "--pool", "pool.toml", "--tasks", tasks, "--questions", "1")
    before = files()
    assert named in one_sentence(podium(*((*IMPORT, out) if verb == "import" else record)))
    assert files() == before


def test_folders_that_were_made_for_an_import_that_failed_are_gone(podium: Podium) -> None:
    Path("rows.jsonl").write_text("no JSON")
    refused = podium(*IMPORT, "one/two/tiny.parquet")
    assert (refused.status, Path("one").exists()) == (2, False)
