"""The importer of tables: whatever their kind, a mapping names the columns."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from importer_sources import imported, refused
from podium.errors import ConfigError
from podium.recordings import RecordedResponse, RecordingWriter
from podium.recordings.importers import ImportReport
from podium.recordings.table_import import import_table, read_mapping

QUESTIONS = [
    {"qid": 1, "body": "Which?", "options": ["no", "yes"], "gold": "B", "level": "hard", "fold": "dev"},
    {"qid": 2, "body": "Who?", "options": ["me", "you"], "gold": "A", "level": "hard", "fold": None},
    {"qid": 3, "body": "Why?", "options": ["so", "or"], "gold": "A", "level": "easy", "fold": None},
]
ANSWERS = [
    {
        "q": 1,
        "model": "wise",
        "n": 0,
        "said": "It is B.",
        "letter": "B",
        "ok": True,
        "chars": 41,
        "out": None,
        "s": 1.5,
    },
    {
        "q": 1,
        "model": "wise",
        "n": 1,
        "said": "It is A.",
        "letter": "A",
        "ok": False,
        "chars": 8,
        "out": 70,
        "s": None,
    },
    {
        "q": 2,
        "model": "quick",
        "n": 0,
        "said": "",
        "letter": None,
        "ok": None,
        "chars": None,
        "out": None,
        "s": 0.25,
    },
    {
        "q": 2,
        "model": "quick",
        "n": 0,
        "said": "again",
        "letter": "A",
        "ok": True,
        "chars": 5,
        "out": 2,
        "s": 0.25,
    },
    {
        "q": 3,
        "model": "wise",
        "n": 0,
        "said": "to easy",
        "letter": "A",
        "ok": True,
        "chars": 7,
        "out": 2,
        "s": 0.25,
    },
]
MAPPING = """
name = "letters"
source = "here"
licence = "MIT"
[questions]
file = "questions.{kind}"
id = "qid"
text = "{text}"
gold = "gold"
family = "level"
split = "fold"
where = {{ level = "hard" }}
[responses]
file = "answers.{kind}"
question = "q"
worker = "model"
sample = "n"
text = "said"
answer = "letter"
score = "ok"
output_tokens = "out"
chars = "chars"
seconds = "s"
"""
TEMPLATE = "{body}\\n{options}"


def write_table(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(list(rows)), path)
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(json.dumps(row) for row in rows) + "\n\n")
    else:
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)


def write_tables(folder: Path, kind: str, text: str = TEMPLATE) -> Path:
    write_table(folder / f"questions.{kind}", QUESTIONS)
    write_table(folder / f"answers.{kind}", ANSWERS)
    mapping = folder / "columns.toml"
    mapping.write_text(MAPPING.format(kind=kind, text=text))
    return mapping


def gather_mapped(path: Path, writer: RecordingWriter, report: Callable[[str], None]) -> ImportReport:
    return import_table(read_mapping(path), writer, report)


@pytest.mark.parametrize(("kind", "text"), [("parquet", TEMPLATE), ("jsonl", TEMPLATE), ("csv", "body")])
def test_a_table_becomes_the_recording_that_its_mapping_describes(
    tmp_path: Path, kind: str, text: str
) -> None:
    recording, import_report, told = imported(gather_mapped, write_tables(tmp_path, kind, text))
    assert told == [f"questions.{kind}", f"answers.{kind}"]
    assert (import_report.source, import_report.licence) == ("here", "MIT")
    shown = "Which?" if text == "body" else "Which?\n(A) no\n(B) yes"
    which = recording.find(shown)
    assert which is not None
    assert (which.id, which.gold, which.family, which.split) == ("1", "B", "hard", "validation")
    assert recording.questions[1].split == "test"  # By the hash of its id.
    right, wrong = recording.responses(shown)["wise"]
    assert right == RecordedResponse("wise", 0, "It is B.", "B", 1.0, None, 11, True, 1.5)
    assert wrong == RecordedResponse("wise", 1, "It is A.", "A", 0.0, None, 70, False, None)
    (quick,) = recording.responses(recording.questions[1].text)["quick"]
    assert (quick.text, quick.answer or None, quick.score, quick.seconds) == ("", None, None, 0.25)
    assert set(import_report.sentences) == {
        "questions that `where` does not name (1)",
        "responses to questions that are not there (1)",
        "responses whose question, worker and sample came before (1)",
    }


@pytest.mark.parametrize("numbers", [(41, 42, 43), (1, 2, 3), (170_000_002, 170_000_003, 2**62), (-1, 0, 5)])
def test_samples_are_counted_from_0_in_the_order_of_the_numbers_given(
    tmp_path: Path, numbers: tuple[int, ...]
) -> None:
    mapping = write_tables(tmp_path, "jsonl")
    rows = [ANSWERS[0] | {"q": q, "n": n, "said": f"{n}"} for q in (1, 2) for n in reversed(numbers)]
    write_table(tmp_path / "answers.jsonl", rows)
    recording, _, _ = imported(gather_mapped, mapping)
    for question in recording.questions:
        given = recording.responses(question.text)["wise"]
        assert [(one.sample, one.text) for one in given] == list(enumerate(map(str, numbers)))
    assert recording.samples("wise") == 3


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "csv"])
def test_where_filters_responses_by_value_in_every_file_format(tmp_path: Path, kind: str) -> None:
    mapping = write_tables(tmp_path, kind, "body")
    mapping.write_text(mapping.read_text() + "where = { n = 1 }\n")
    recording, import_report, _ = imported(gather_mapped, mapping)
    assert recording.header.responses == 1
    assert "responses that `where` does not name (4)" in import_report.sentences


def test_a_table_of_answers_alone_gives_responses_in_which_they_are_found(tmp_path: Path) -> None:
    mapping = write_tables(tmp_path, "jsonl")
    kept = [
        line
        for line in mapping.read_text().splitlines()
        if not line.startswith(('text = "said"', "chars", "out"))
    ]
    mapping.write_text("\n".join(kept))
    recording, _, _ = imported(gather_mapped, mapping)
    right, _ = recording.responses("Which?\n(A) no\n(B) yes")["wise"]
    assert (right.text, right.answer, right.output_tokens, right.estimated) == (
        "<answer>B</answer>",
        "B",
        None,
        False,
    )


def test_one_file_may_hold_questions_and_responses(tmp_path: Path) -> None:
    rows = [
        {"id": number, "text": f"Q{number}?", "who": who, "ok": 0.5} for number in range(2) for who in "ab"
    ]
    write_table(tmp_path / "all.jsonl", rows)
    mapping = tmp_path / "columns.toml"
    mapping.write_text(
        'name = "all"\n[questions]\nfile = "all.jsonl"\nid = "id"\ntext = "text"\n'
        '[responses]\nfile = "all.jsonl"\nquestion = "id"\nworker = "who"\nscore = "ok"\n'
    )
    recording, import_report, _ = imported(gather_mapped, mapping)
    assert (recording.header.questions, recording.header.responses) == (2, 4)
    assert import_report.sentences == ()


ONE_FILE = """
name = "all"
[questions]
file = "all.jsonl"
id = "id"
text = "text"
{where}
[responses]
file = "{answers}.jsonl"
question = "id"
worker = "who"
text = "said"
score = "ok"
"""


def answered(id_: object, text: str, who: str | None, said: str = "Answer: 2") -> dict[str, Any]:
    return {"id": id_, "text": text, "who": who, "said": said, "ok": 1, "kind": "asked"}


def test_answers_to_an_id_with_two_wordings_are_left_out_and_counted(tmp_path: Path) -> None:
    rows = [
        answered("1", "What is 1 + 1?", "x"),
        answered("1", "What is 5 + 5?", "y", "Answer: 10"),
        answered("1", " What is 1 + 1?\n", "z"),
        answered("2", "What is 6 + 5?", "y", "Answer: 11"),
    ]
    write_table(tmp_path / "all.jsonl", rows)
    mapping = tmp_path / "columns.toml"
    mapping.write_text(ONE_FILE.format(where="", answers="all"))
    recording, import_report, _ = imported(gather_mapped, mapping)
    assert [question.text for question in recording.questions] == ["What is 6 + 5?"]
    assert recording.responses("What is 6 + 5?").keys() == {"y"}
    assert import_report.sentences == ("responses to questions whose id has several wordings (3)",)


def test_questions_and_answers_may_share_a_column_in_rows_of_their_own(tmp_path: Path) -> None:
    rows = [
        answered("1", "What is 1 + 1?", None),
        answered("1", "It is 2.", "x") | {"kind": "said"},
    ]
    write_table(tmp_path / "all.jsonl", rows)
    mapping = tmp_path / "columns.toml"
    mapping.write_text(
        ONE_FILE.format(where='where = { kind = "asked" }', answers="all").replace('"said"', '"text"')
        + 'where = { kind = "said" }\n'
    )
    recording, _, _ = imported(gather_mapped, mapping)
    assert [response.text for response in recording.responses("What is 1 + 1?")["x"]] == ["It is 2."]


@pytest.mark.parametrize("nothing", [None, "", "  ", float("nan")])
def test_rows_without_an_id_or_a_worker_are_left_out_and_counted(tmp_path: Path, nothing: object) -> None:
    rows = [
        answered("1", "What is 1 + 1?", "x"),
        answered("1", "What is 1 + 1?", nothing),  # type: ignore[arg-type]
        answered(nothing, "What is 7?", "x"),
    ]
    write_table(tmp_path / "all.jsonl", rows)
    mapping = tmp_path / "columns.toml"
    mapping.write_text(ONE_FILE.format(where="", answers="all"))
    recording, import_report, _ = imported(gather_mapped, mapping)
    assert [question.id for question in recording.questions] == ["1"]
    assert recording.workers == ("x",)
    assert set(import_report.sentences) == {
        "questions without an id (1)",
        "responses without a worker (1)",
        "responses to questions that are not there (1)",
    }


def test_a_column_that_only_the_template_or_where_names_must_be_there_too(tmp_path: Path) -> None:
    mapping = write_tables(tmp_path, "parquet", "{boddy}")
    assert "has no column 'boddy'; did you mean 'body'?" in refused(gather_mapped, mapping)
    mapping = write_tables(tmp_path, "parquet")
    mapping.write_text(mapping.read_text().replace("{ level", "{ levle"))
    assert "has no column 'levle'; did you mean 'level'?" in refused(gather_mapped, mapping)


def test_a_table_of_an_unknown_kind_and_a_missing_mapping_are_refused(tmp_path: Path) -> None:
    mapping = write_tables(tmp_path, "jsonl")
    (tmp_path / "answers.xlsx").write_bytes(b"")
    mapping.write_text(mapping.read_text().replace("answers.jsonl", "answers.xlsx"))
    assert "a table is .parquet, .jsonl, .json or .csv; convert it" in refused(gather_mapped, mapping)
    with pytest.raises(ConfigError, match="there is no such file"):
        read_mapping(tmp_path / "none.toml")
    mapping.write_text(mapping.read_text().replace("worker =", "wroker ="))
    with pytest.raises(ConfigError, match=r"unknown key 'responses.wroker'; did you mean 'worker'\?"):
        read_mapping(mapping)


def test_importer_replaces_a_lone_surrogate(tmp_path: Path) -> None:
    # json.dumps writes an emoji as two halves; a text cut between them leaves the first alone.
    mapping = write_tables(tmp_path, "jsonl")
    write_table(tmp_path / "answers.jsonl", [ANSWERS[0] | {"said": "It is B. \ud83d"}])
    recording, _, _ = imported(gather_mapped, mapping)
    assert recording.responses("Which?\n(A) no\n(B) yes")["wise"][0].text.startswith("It is B. ")
