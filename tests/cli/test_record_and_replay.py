"""Recordings at the command line: made from live workers or from what others published, then shown and asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from refusal import one_sentence

from podium.recordings import Header, Recording, header_path

Podium = Callable[..., Any]
SIMULATED = """
[[worker]]
name = "able"
kind = "specialist"
profile = "Knows sums."
ability = { sums = 0.9, words = 0.9, lists = 0.9, dates = 0.9, units = 0.9, numerals = 0.9, facts = 0.9, logic = 0.9 }
price = { input = 1.0, output = 6.0 }

[[worker]]
name = "weak"
kind = "specialist"
ability = { sums = 0.5, words = 0.5 }
"""
RECORD = ("record", "made/r.parquet", "--pool", "simulated.toml", "--split", "test", "--questions", "5")
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
    Path("simulated.toml").write_text(SIMULATED)
    Path("columns.toml").write_text(TABLE)
    Path("rows.jsonl").write_text("\n".join(map(json.dumps, ROWS)))


# --- podium record -----------------------------------------------------------------------------------------


def test_what_was_recorded_is_shown_and_asked(podium: Podium) -> None:
    made = podium(*RECORD, "--samples", "2", "--name", "mine")
    assert made.status == 0
    assert made.out.startswith("20 responses to 5 questions are in made/r.parquet; this run spent $0.0")
    assert sorted(file.name for file in Path("made").iterdir()) == ["r.json", "r.parquet"]
    header = Recording.open(Path("made/r.parquet")).header
    assert (header.name, header.splits, header.left_out) == ("mine", {"test": 5}, ())
    assert (header.workers[0].description, header.workers[0].price.output) == ("Knows sums.", 6.0)
    shown = podium("replay", "show", "made/r.parquet")
    assert shown.status == 0
    for part in ("mine", "5 questions (5 test)", "20 recorded responses", "able", "weak", "$1.00 / $6.00"):
        assert part in shown.out
    assert Header.model_validate_json(podium("replay", "show", "made/r.parquet", "--json").out) == header
    asked = podium("tasks", "show", "made/r.parquet", "--split", "test", "--samples", "5", "--json")
    samples = {(sample["question"], sample["gold"]) for sample in json.loads(asked.out)}
    live = podium("tasks", "show", "embedded", "--split", "test", "--samples", "5", "--json")
    assert samples == {(sample["question"], sample["gold"]) for sample in json.loads(live.out)}


def test_without_a_terminal_nothing_is_drawn(podium: Podium) -> None:
    assert podium(*RECORD).err == ""


def test_a_recording_replays_at_the_command_line(podium: Podium) -> None:
    podium(*RECORD)
    Path("made/pool.toml").write_text('[[worker]]\nname = "able"\nkind = "replay"\nrecording = "r.parquet"\n')
    recording = Recording.open(Path("made/r.parquet"))
    question = recording.questions[0].text
    asked = podium("ask", question, "--pool", "made/pool.toml", "--planner", "single:able", "--json")
    assert json.loads(asked.out)["answer"] == recording.responses(question)["able"][0].text
    (span,) = json.loads(asked.out)["rounds"][0]["spans"]
    assert span["recorded"].startswith("r#embedded/test/0/")


def test_tasks_of_a_recording_end_where_it_ends(podium: Podium) -> None:
    podium(*RECORD)
    shown = podium("tasks", "show", "made/r.parquet", "--split", "test", "--samples", "50", "--json")
    assert shown.status == 0
    assert len(json.loads(shown.out)) == 5


def test_a_recording_that_its_budget_stopped_has_status_1_and_goes_on(podium: Podium) -> None:
    stopped = podium(*RECORD, "--budget-calls", "4")
    assert stopped.status == 1
    assert "4 responses to " in stopped.out
    assert "Stopped: The budget of 4 calls is used up. The same command goes on from here." in stopped.out
    assert (
        "Left out: responses that could not be had yet (6)" in podium("replay", "show", "made/r.parquet").out
    )
    again = podium(*RECORD, "--budget-calls", "4", "--json")
    assert (again.status, Header.model_validate_json(again.out).responses) == (1, 8)
    done = podium(*RECORD, "--budget-calls", "4")
    assert done.status == 0
    assert "10 responses to 5 questions" in done.out
    assert "Stopped" not in done.out
    parts = pq.read_table("made/r.parquet")
    whole = podium(*RECORD, "--json")
    assert Header.model_validate_json(whole.out).left_out == ()
    assert pq.read_table("made/r.parquet").equals(parts)


def test_a_recording_that_goes_on_may_grow_and_may_not_change(podium: Podium) -> None:
    assert podium(*RECORD, "--budget-calls", "4").status == 1
    before = Path("made/r.parquet").read_bytes()
    for change, key in (
        (("--seed", "1"), "seed"),
        (("--pool", "pool.toml"), "pool"),
        (("--split", "train"), "split"),
    ):
        tokens = [*RECORD]
        if change[0] in tokens:
            tokens[tokens.index(change[0]) + 1] = change[1]
        else:
            tokens += change
        assert f"asked with other settings ({key})" in one_sentence(podium(*tokens))
    assert Path("made/r.parquet").read_bytes() == before
    grown = podium(*RECORD[:-1], "7", "--samples", "2")
    assert (grown.status, grown.out.partition(" are")[0]) == (0, "28 responses to 7 questions")


def test_workers_that_do_not_answer_are_a_failure_and_not_a_wrong_question(podium: Podium) -> None:
    Path("ill.toml").write_text(
        '[[worker]]\nname = "ill"\nkind = "scripted"\n'
        'replies = { "" = { error = "status", message = "The server said 500." } }\n'
    )
    failed = podium("record", "r.parquet", "--pool", "ill.toml", "--questions", "2")
    assert failed.status == 1
    assert not Path("r.parquet").exists()


def test_calls_that_failed_are_told_and_made_again(podium: Podium) -> None:
    part = '[[worker]]\nname = "ill"\nkind = "scripted"\nreplies = [{}"x", "y"]\n'
    Path("ill.toml").write_text(part.format('{ error = "status" }, '))
    failed = podium("record", "r.parquet", "--pool", "ill.toml", "--questions", "2")
    assert failed.status == 1
    assert "1 call failed; the same command makes them again." in failed.out
    Path("ill.toml").write_text(part.format(""))
    assert podium("record", "r.parquet", "--pool", "ill.toml", "--questions", "2").status == 0


@pytest.mark.parametrize(
    ("tokens", "sentence"),
    [
        (("record", "r.json"), "r.json: a recording's file is called NAME.parquet."),
        (
            ("record", "r.parquet", "--samples", "0"),
            "--samples 0, --concurrency 16: give at least 1 of each.",
        ),
        (
            ("record", "r.parquet", "--concurrency", "0"),
            "--samples 1, --concurrency 0: give at least 1 of each.",
        ),
        (("record", "r.parquet", "--questions", "0"), "ask for at least 1"),
        (("record", "r.parquet", "--tasks", "embeded"), "did you mean 'embedded'?"),
        (("record", "r.parquet", "--split", "tests"), "did you mean 'test'?"),
        (("record", "r.parquet", "--tasks", "none.parquet"), "none.parquet: there is no such file"),
        (("record", "r.parquet", "--pool", "none.toml"), "none.toml: there is no such file"),
        (("record", "r.parquet", "--budget-calls", "-1"), "--budget-calls -1: it should be greater"),
        (
            ("replay", "show", "none.parquet"),
            "none.parquet: there is no such file; a recording is NAME.parquet",
        ),
        (("replay", "show", "pool.toml"), "pool.json: there is no such file"),
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
def test_what_was_asked_wrongly_is_one_sentence_and_writes_nothing(
    podium: Podium, tokens: tuple[str, ...], sentence: str
) -> None:
    before = {file.name for file in Path().rglob("*")}
    assert sentence in one_sentence(podium(*tokens))
    assert {file.name for file in Path().rglob("*")} == before


def test_a_budget_of_nothing_writes_nothing(podium: Podium) -> None:
    assert podium(*RECORD, "--budget-calls", "0").status == 1
    assert not Path("made/r.parquet").exists()


# --- podium replay import ----------------------------------------------------------------------------------


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
