"""Recordings made at the command line from what others published."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from refusal import one_sentence

from podium.recordings import Header, Recording, header_path

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
    header = Header.model_validate_json(again.out)
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
    assert "rows.jsonl: there is no such file; its path is read from the mapping's folder." in refused.err
    assert podium("replay", "import", "table", "columns.toml", "t.parquet", "--folder", "data").status == 0


def test_an_import_that_fails_leaves_what_was_there(podium: Podium) -> None:
    assert podium("replay", "import", "table", "columns.toml", "t.parquet").status == 0
    before = Path("t.parquet").read_bytes(), Path("t.json").read_bytes()
    Path("columns.toml").write_text(TABLE.replace('score = "ok"', 'score = "okay"'))
    refused = podium("replay", "import", "table", "columns.toml", "t.parquet")
    assert (refused.status, refused.out) == (2, "")
    assert "rows.jsonl has no column 'okay'; did you mean 'ok'?" in refused.err
    assert (Path("t.parquet").read_bytes(), Path("t.json").read_bytes()) == before


def test_a_published_figure_that_the_rows_do_not_give_is_told(podium: Podium) -> None:
    folder = Path("gsm")
    folder.mkdir()
    record = {"id": "1", "question": "2 + 2?", "answer": "4", "output": ['{"answer": "4"}']}
    (folder / "wise.json").write_text(json.dumps([record]))
    Path("gsm.summary.json").write_text(json.dumps([{"Model": "wise", "Acc": "93.5"}]))
    made = podium("replay", "import", "zeroeval", "gsm", "z.parquet")
    assert made.status == 0
    assert "wise: the source publishes 93.5%, and its rows give 100.0%." in made.err
    assert "93.5%" in made.out


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
    (worker,) = Header.model_validate_json(made.out).workers
    assert (worker.name, worker.responses, worker.judged, worker.accuracy) == ("cat", 3, 2, 0.5)
    bare = podium("replay", "import", "traces", store, "t.parquet", "--json")
    assert Header.model_validate_json(bare.out).workers[0].judged == 0
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
            "--golds belongs to traces; the other sources hold their verdicts.",
        ),
        (
            ("replay", "import", "zeroeval", ".", "o.parquet", "--folder", "."),
            "--folder belongs to a table; the other sources are one folder or file.",
        ),
        (("replay", "import", "mmlu-pro", ".", "o.parquet"), "holds no *.zip; give its folder eval_results."),
        (
            ("replay", "import", "reasoning-gym", "pool.toml", "o.parquet"),
            "pool.toml holds no folders; give one of",
        ),
        (("replay", "import", "traces", "pool.toml", "o.parquet"), "pool.toml"),
    ],
)
def test_an_import_that_was_asked_wrongly_is_one_sentence_and_writes_nothing(
    podium: Podium, tokens: tuple[str, ...], sentence: str
) -> None:
    before = {file.name for file in Path().rglob("*")}
    assert sentence in one_sentence(podium(*tokens))
    assert {file.name for file in Path().rglob("*")} == before


def test_what_lies_where_the_header_would_be_is_not_replaced(podium: Podium) -> None:
    Path("tiny.json").write_text("ratings")
    made = podium("replay", "import", "table", "columns.toml", "tiny.parquet")
    assert made.status == 2
    assert "tiny.json is there already" in one_sentence(made)
    assert Path("tiny.json").read_text() == "ratings"
    assert not Path("tiny.parquet").exists()
