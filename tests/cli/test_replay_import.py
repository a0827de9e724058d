"""Recordings made at the command line from what others published."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusal import one_sentence

from podium.recordings import Recording, RecordingHeader, header_path
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


@pytest.fixture(autouse=True)
def _sources() -> None:
    Path("columns.toml").write_text(TABLE)
    Path("rows.jsonl").write_text("\n".join(map(json.dumps, ROWS)))


def test_a_table_is_imported_and_shown(podium: Podium) -> None:
    made = podium("replay", "import", "table", "columns.toml", "kept/tiny.parquet")
    assert made.status == 0
    assert "Reading rows.jsonl" in made.err
    for part in ("tiny  here; MIT", "3 questions (3 test), 6 recorded responses", "100.0%", "33.3%"):
        assert part in made.out
    again = podium(
        "replay", "import", "table", "columns.toml", "kept/again.parquet", "--name", "again", "--json"
    )
    header = RecordingHeader.model_validate_json(again.out)
    assert again.out.count("\n") == 1
    assert (header.name, header.questions, header.responses) == ("again", 3, 6)
    assert header == Recording.open(Path("kept/again.parquet")).header
    assert sorted(file.name for file in Path("kept").iterdir()) == [
        "again.json",
        "again.parquet",
        "tiny.json",
        "tiny.parquet",
    ]


def test_the_files_of_a_table_may_lie_in_another_folder(podium: Podium) -> None:
    Path("data").mkdir()
    Path("rows.jsonl").rename("data/rows.jsonl")
    refused = podium("replay", "import", "table", "columns.toml", "t.parquet", "--json")
    assert (
        "rows.jsonl: there is no such file; check the path. Paths in a mapping are read from its folder."
        in refused.err
    )
    assert podium("replay", "import", "table", "columns.toml", "t.parquet", "--folder", "data").status == 0


def test_an_import_that_fails_leaves_what_was_there(podium: Podium) -> None:
    assert podium("replay", "import", "table", "columns.toml", "t.parquet").status == 0
    before = Path("t.parquet").read_bytes(), Path("t.json").read_bytes()
    Path("columns.toml").write_text(TABLE.replace('score = "ok"', 'score = "okay"'))
    refused = podium("replay", "import", "table", "columns.toml", "t.parquet", "--replace")
    assert (refused.status, refused.out) == (2, "")
    assert "rows.jsonl has no column 'okay'; did you mean 'ok'?" in refused.err
    assert (Path("t.parquet").read_bytes(), Path("t.json").read_bytes()) == before


def test_an_import_that_leaves_nothing_says_what_became_of_the_rows(podium: Podium) -> None:
    Path("columns.toml").write_text(TABLE + 'where = { who = "eve" }\n')
    refused = podium("replay", "import", "table", "columns.toml", "t.parquet")
    assert (refused.status, refused.out) == (2, "")
    told = refused.err.splitlines()[-1]
    assert (
        "left out are responses that `where` does not name (6); questions that no worker answered (3); "
        in told
    )
    assert not Path("t.parquet").exists()


def test_shown_the_header_it_names_the_file_that_is_wanted(podium: Podium) -> None:
    assert podium("replay", "import", "table", "columns.toml", "t.parquet").status == 0
    told = one_sentence(podium("replay", "show", "t.json"))
    assert "t.json is a header's name; give the recording itself, t.parquet." in told


def test_traces_are_imported_with_the_right_answers_given_besides(podium: Podium) -> None:
    Path("plain.toml").write_text(
        '[[worker]]\nname = "cat"\nkind = "scripted"\nreplies = { "" = "Answer: 5" }\n'
    )
    for question in ("What is 2 + 3?", "What is 2 + 4?", "What is 9?"):
        assert podium("ask", question, "--pool", "plain.toml", "--planner", "single:cat").status == 0
    Path("golds.csv").write_text("question,gold\nWhat is 2 + 3?,5\nWhat is 2 + 4?,6\n")
    store = "kept/traces.sqlite"
    made = podium("replay", "import", "traces", store, "t.parquet", "--golds", "golds.csv", "--json")
    assert made.status == 0
    (worker,) = RecordingHeader.model_validate_json(made.out).workers
    assert (worker.name, worker.responses, worker.judged, worker.accuracy) == ("cat", 3, 2, 0.5)
    bare = podium("replay", "import", "traces", store, "t.parquet", "--json", "--replace")
    assert RecordingHeader.model_validate_json(bare.out).workers[0].judged == 0
    assert header_path(Path("t.parquet")).is_file()


def test_names_in_a_recording_cannot_command_the_terminal(podium: Podium) -> None:
    Path("rows.jsonl").write_text("\n".join(json.dumps(row | {"who": "a\x1b[31mb"}) for row in ROWS))
    podium("replay", "import", "table", "columns.toml", "t.parquet", "--name", "n\x1b[0m")
    shown = podium("replay", "show", "t.parquet")
    assert shown.status == 0
    assert "\x1b" not in shown.out


@pytest.mark.parametrize(
    ("tokens", "sentence"),
    [
        (
            ("replay", "import", "table", "columns.toml", "out.json"),
            "a recording's file is called NAME.parquet.",
        ),
        (
            ("replay", "import", "table", "none.toml", "o.parquet"),
            "none.toml: there is no such file or folder",
        ),
        (("replay", "import", "tables", "columns.toml", "o.parquet"), "tables"),
        (
            ("replay", "import", "table", "columns.toml", "o.parquet", "--golds", "rows.jsonl"),
            "--golds is only for traces; the other sources have verdicts. Leave it out.",
        ),
        (
            ("replay", "import", "traces", ".", "o.parquet", "--folder", "."),
            "--folder is only for a table; the other sources are one folder or file. Leave it out.",
        ),
        (("replay", "import", "traces", "pool.toml", "o.parquet"), "pool.toml"),
    ],
)
def test_a_wrong_import_is_one_sentence_and_writes_nothing(
    podium: Podium, tokens: tuple[str, ...], sentence: str
) -> None:
    before = {file.name for file in Path().rglob("*")}
    assert sentence in one_sentence(podium(*tokens))
    assert {file.name for file in Path().rglob("*")} == before


IMPORT = ("replay", "import", "table", "columns.toml")


def files() -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in sorted(Path().rglob("*")) if file.is_file()}


def test_a_recording_is_replaced_only_on_request(podium: Podium) -> None:
    assert podium(*IMPORT, "tiny.parquet").status == 0
    before = files()
    assert (
        "tiny.parquet and tiny.json exist already; give another name, or add --replace to replace them."
    ) in one_sentence(podium(*IMPORT, "tiny.parquet"))
    assert files() == before
    assert podium(*IMPORT, "tiny.parquet", "--replace", "--name", "new").status == 0
    assert Recording.open(Path("tiny.parquet")).name == "new"


@pytest.mark.parametrize("there", ["tiny.json", "tiny.parquet", "tiny.partial"])
@pytest.mark.parametrize("replace", [(), ("--replace",)])
def test_what_is_no_recording_is_never_replaced(podium: Podium, there: str, replace: tuple[str, ...]) -> None:
    Path(there).write_text("ratings")
    before = files()
    assert f"{there} exists already" in one_sentence(podium(*IMPORT, "tiny.parquet", *replace))
    assert files() == before


@pytest.mark.parametrize("out", ["rows.parquet", "kept/../rows.parquet"])
@pytest.mark.parametrize("replace", [(), ("--replace",)])
@pytest.mark.parametrize("source", ["rows.parquet", "rows.json"])
def test_a_file_that_is_read_is_never_written_over(
    podium: Podium, out: str, replace: tuple[str, ...], source: str
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
    assert f"{Path(source).name} and would overwrite it; give the recording another name." in refused
    assert files() == before


def test_right_answers_and_stores_are_never_written_over(podium: Podium) -> None:
    assert podium("ask", "What?", "--pool", "pool.toml", "--planner", "single:ada").status == 1
    Path("golds.json").write_text('[{"question": "What?", "gold": "5"}]')
    Path("kept/traces.sqlite").rename("kept/traces.parquet")
    for out, more in (("golds.parquet", ("--golds", "golds.json")), ("kept/traces.parquet", ())):
        told = one_sentence(podium("replay", "import", "traces", "kept/traces.parquet", out, *more))
        assert "and would overwrite it; give the recording another name." in told


@pytest.mark.parametrize(
    ("out", "sentence"),
    [
        ("folder.parquet", "folder.parquet is a folder; give another name."),
        ("beside.parquet", "beside.json is a folder; give another name."),
        ("pool.toml/x.parquet", "pool.toml: this folder cannot be made: File exists."),
        ("/proc/none/x.parquet", "/proc/none: this folder cannot be made: No such file or directory."),
        ("x" * 300 + ".parquet", "this path cannot be used: File name too long."),
    ],
)
@pytest.mark.parametrize("verb", ["import", "record"])
def test_an_unwritable_place_is_reported_before_anything_is_done(
    podium: Podium, verb: str, out: str, sentence: str
) -> None:
    Path("folder.parquet").mkdir()
    Path("beside.json").mkdir()
    tasks = str(write_sums(Path("sums.jsonl")))
    record = ("record", out, "--pool", "pool.toml", "--tasks", tasks, "--questions", "1")
    before = sorted(Path().rglob("*"))
    tokens = (*IMPORT, out) if verb == "import" else record
    assert sentence in one_sentence(podium(*tokens))
    assert sorted(Path().rglob("*")) == before


def test_folders_that_were_made_for_an_import_that_failed_are_gone(podium: Podium) -> None:
    Path("rows.jsonl").write_text("no JSON")
    refused = podium(*IMPORT, "one/two/tiny.parquet")
    assert (refused.status, Path("one").exists()) == (2, False)


def test_an_import_onto_a_full_disk_is_one_sentence_and_leaves_nothing() -> None:
    program = (
        "import resource, sys; from podium.cli import run; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)); sys.exit(run(sys.argv[1:]))"
    )
    rows = [row | {"said": os.urandom(30_000).hex()} for row in ROWS]
    Path("rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    before = files()
    made = subprocess.run(
        [sys.executable, "-c", program, *IMPORT, "new/tiny.parquet"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 1
    assert made.stderr.splitlines()[-1].startswith("podium: ")
    assert " cannot be written (" in made.stderr
    assert "Traceback" not in made.stderr
    assert files() == before


@pytest.mark.parametrize("nothing", ["null", '""', '" "'])
def test_a_right_answer_that_is_empty_judges_nothing(podium: Podium, nothing: str) -> None:
    Path("plain.toml").write_text(
        '[[worker]]\nname = "cat"\nkind = "scripted"\nreplies = { "" = "Answer: None" }\n'
    )
    for question in ("What is 2 + 3?", "What is 2 + 4?"):
        assert podium("ask", question, "--pool", "plain.toml", "--planner", "single:cat").status == 0
    Path("golds.jsonl").write_text(
        f'{{"question": "What is 2 + 3?", "gold": {nothing}}}\n{{"question": "What is 2 + 4?", "gold": "6"}}\n'
        '{"question": null, "gold": "7"}\n'
    )
    made = podium(
        "replay", "import", "traces", "kept/traces.sqlite", "t.parquet", "--golds", "golds.jsonl", "--json"
    )
    (worker,) = RecordingHeader.model_validate_json(made.out).workers
    assert (worker.responses, worker.judged, worker.accuracy) == (2, 1, 0.0)


def test_a_right_answer_that_is_a_number_is_read_as_people_write_it(podium: Podium) -> None:
    Path("plain.toml").write_text(
        '[[worker]]\nname = "cat"\nkind = "scripted"\nreplies = { "" = "Answer: 5" }\n'
    )
    assert podium("ask", "What is 2 + 3?", "--pool", "plain.toml", "--planner", "single:cat").status == 0
    Path("golds.jsonl").write_text('{"question": "What is 2 + 3?", "gold": 5.0}\n')
    made = podium(
        "replay", "import", "traces", "kept/traces.sqlite", "t.parquet", "--golds", "golds.jsonl", "--json"
    )
    (worker,) = RecordingHeader.model_validate_json(made.out).workers
    assert (worker.judged, worker.accuracy) == (1, 1.0)


def test_numbered_steps_of_a_store_are_answers_to_the_question(podium: Podium) -> None:
    Path("plan.txt").write_text(
        'model_id = [0, 1]\nsubtasks = ["1. Answer the whole question.", "2. Answer the whole question."]\n'
        "access_list = [[], [0]]\n"
    )
    Path("plain.toml").write_text(
        "".join(
            f'[[worker]]\nname = "{name}"\nkind = "scripted"\nreplies = {{ "" = "Answer: 5" }}\n'
            for name in ("cat", "dog")
        )
    )
    assert podium("ask", "What?", "--pool", "plain.toml", "--planner", "constant:plan.txt").status == 0
    made = podium("replay", "import", "traces", "kept/traces.sqlite", "t.parquet", "--json")
    header = RecordingHeader.model_validate_json(made.out)
    assert [worker.name for worker in header.workers] == ["cat"]
    assert header.left_out == ("responses to a part of the question, or to others' work (1)",)


def test_an_empty_store_is_refused_and_left_as_it_was(podium: Podium) -> None:
    Path("empty.sqlite").touch()
    assert "empty.sqlite" in one_sentence(podium("replay", "import", "traces", "empty.sqlite", "t.parquet"))
    assert Path("empty.sqlite").read_bytes() == b""


def test_what_has_a_recordings_name_and_holds_something_else_is_not_shown(podium: Podium) -> None:
    assert podium(*IMPORT, "tiny.parquet").status == 0
    pq.write_table(pa.table({"x": [1]}), "tiny.parquet")
    header = json.loads(Path("tiny.json").read_text())
    header["sha256"] = hashlib.sha256(Path("tiny.parquet").read_bytes()).hexdigest()
    Path("tiny.json").write_text(json.dumps(header))
    assert "tiny.parquet does not have the columns of a recording; import the source again." in one_sentence(
        podium("replay", "show", "tiny.parquet")
    )
    assert ".: there is no such file" in one_sentence(podium("replay", "show", "."))
