"""What the importer of tables makes of single values: text and numbers as people write them, or a sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from importer_sources import imported, refused
from podium.errors import UsageError
from podium.recordings import Recording, RecordingWriter
from podium.recordings.importers import ImportReport
from podium.recordings.table_import import import_table, read_mapping

MAPPING = """
name = "sums"
[questions]
file = "{questions}"
id = "id"
text = "text"
gold = "gold"
family = "kind"
split = "fold"
[responses]
file = "{responses}"
question = "id"
worker = "who"
sample = "n"
text = "said"
answer = "found"
score = "ok"
input_tokens = "tin"
output_tokens = "tout"
seconds = "secs"
"""
ROW: dict[str, Any] = {
    "id": "q1",
    "text": "What is 2 + 2?",
    "gold": "4",
    "kind": "sums",
    "fold": "test",
    "who": "ada",
    "n": 0,
    "said": "It is 4.",
    "found": "4",
    "ok": 1,
    "tin": 9,
    "tout": 3,
    "secs": 0.5,
}


def mapped(folder: Path, *rows: dict[str, Any], kind: str = "jsonl", where: str = "") -> Path:
    """A mapping, and the one file of questions and responses that it names."""
    file = folder / f"rows.{kind}"
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(list(rows)), file)
    else:
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = folder / "columns.toml"
    path.write_text(MAPPING.format(questions=file.name, responses=file.name) + where)
    return path


def gather(path: Path, writer: RecordingWriter, report: Callable[[str], None]) -> ImportReport:
    return import_table(read_mapping(path), writer, report)


def of_rows(folder: Path, *rows: dict[str, Any], kind: str = "jsonl") -> Recording:
    return imported(gather, mapped(folder, *rows, kind=kind))[0]


def nothing_left(path: Path) -> str:
    with pytest.raises(UsageError) as caught:
        imported(gather, path)
    return str(caught.value)


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (66.0, "66"),
        (66, "66"),
        (0.5, "0.5"),
        (True, "true"),
        ([1, 2], "[1, 2]"),
        (["ä", "b"], '["ä", "b"]'),
        ({"x": 1}, '{"x": 1}'),
        ("3.0", "3.0"),
        (" ", None),
        (None, None),
    ],
)
def test_imported_gold_answers_are_written_in_plain_form(
    tmp_path: Path, kind: str, value: object, text: str | None
) -> None:
    (question,) = of_rows(tmp_path, ROW | {"gold": value}, kind=kind).questions
    assert question.gold == text


def test_a_column_of_whole_numbers_with_a_gap_gives_whole_numbers(tmp_path: Path) -> None:
    # As pandas writes it: one missing value makes them floats.
    rows = [ROW | {"gold": 66.0, "found": 66.0}, ROW | {"id": "q2", "text": "Who?", "gold": float("nan")}]
    recording = of_rows(tmp_path, *[row | {"found": row["gold"]} for row in rows], kind="parquet")
    assert [question.gold for question in recording.questions] == ["66", None]
    answers = [recording.responses(question.text)["ada"][0].answer for question in recording.questions]
    assert answers == ["66", None]


def test_integer_and_float_ids_match_each_other(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist([ROW | {"id": float(n), "text": f"{n}?"} for n in range(3)]),
                   tmp_path / "asked.parquet")  # fmt: skip
    path = mapped(tmp_path, *[ROW | {"id": n, "who": 7.0} for n in range(3)])
    path.write_text(MAPPING.format(questions="asked.parquet", responses="rows.jsonl"))
    recording, import_report, _ = imported(gather, path)
    assert [question.id for question in recording.questions] == ["0", "1", "2"]
    assert recording.workers == ("7",)
    assert recording.header.responses == 3
    assert import_report.sentences == ()


def test_if_no_response_matches_a_question_one_id_of_each_is_named(tmp_path: Path) -> None:
    (tmp_path / "asked.csv").write_text("id,text,gold,kind,fold\n0.0,What?,4,,\n1.0,Who?,5,,\n")
    path = mapped(tmp_path, *[ROW | {"id": n} for n in (0, 1, 1)])
    path.write_text(MAPPING.format(questions="asked.csv", responses="rows.jsonl"))
    assert nothing_left(path) == (
        "There is no response to write: left out are responses to questions that are not there, as to '0' where "
        "questions have '0.0' (3); questions that no worker answered (2); check what was given as the source."
    )


def test_a_where_that_matches_no_row_is_named_as_the_reason(tmp_path: Path) -> None:
    told = nothing_left(mapped(tmp_path, ROW, ROW, where='where = { who = "bob" }\n'))
    assert (
        "left out are responses that `where` does not name (2); questions that no worker answered (1);"
        in told
    )


@pytest.mark.parametrize(
    ("kind", "content"), [("jsonl", ""), ("jsonl", "\n\n"), ("json", "[]"), ("csv", ",".join(ROW))]
)
def test_an_empty_file_is_named(tmp_path: Path, kind: str, content: str) -> None:
    path = mapped(tmp_path)
    (tmp_path / f"rows.{kind}").write_text(content)
    path.write_text(path.read_text().replace("rows.jsonl", f"rows.{kind}"))
    assert refused(gather, path) == f"{tmp_path / f'rows.{kind}'} holds no rows; give a table that does."


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_samples_with_fractions_are_distinct_and_in_order(tmp_path: Path, kind: str) -> None:
    rows = [ROW | {"n": n, "said": f"{n}"} for n in (0.7, 2.0, 0.2, -0.5)]
    given = of_rows(tmp_path, *rows, kind=kind).responses(ROW["text"])["ada"]
    assert [(one.sample, one.text) for one in given] == [(0, "-0.5"), (1, "0.2"), (2, "0.7"), (3, "2.0")]


@pytest.mark.parametrize("as_text", [False, True])
def test_long_seeds_that_differ_in_their_last_digit_are_two_samples(tmp_path: Path, as_text: bool) -> None:
    seeds = [2**60 + 1, 2**60]
    rows = [ROW | {"n": str(seed) if as_text else seed, "said": f"{seed}"} for seed in seeds]
    given = of_rows(tmp_path, *rows).responses(ROW["text"])["ada"]
    assert [one.text for one in given] == [f"{2**60}", f"{2**60 + 1}"]


@pytest.mark.parametrize(
    ("column", "value", "fault"),
    [
        ("ok", 2, "its ok is 2, and scores are from 0 to 1"),
        ("ok", float("nan"), "its ok is nan, and scores are from 0 to 1"),
        ("ok", "right", "its ok is 'right', and scores are from 0 to 1"),
        ("ok", [1], "its ok is [1], and scores are from 0 to 1"),
        ("secs", float("inf"), "its secs is inf, and seconds are from 0 to 2**31"),
        ("secs", float("nan"), "its secs is nan, and seconds are from 0 to 2**31"),
        ("secs", -0.1, "its secs is -0.1, and seconds are from 0 to 2**31"),
        ("secs", 1e300, "its secs is 1e+300, and seconds are from 0 to 2**31"),
        ("tout", 3.7, "its tout is 3.7, and counts are whole numbers from 0, below 2**31"),
        ("tin", "3.7", "its tin is '3.7', and counts are whole numbers from 0, below 2**31"),
        ("tin", -1, "its tin is -1, and counts are whole numbers from 0, below 2**31"),
        ("tin", float("inf"), "its tin is inf, and counts are whole numbers from 0, below 2**31"),
        ("n", float("nan"), "its n is nan, and samples are numbers of 64 bits"),
        ("n", "first", "its n is 'first', and samples are numbers of 64 bits"),
        ("text", " ", "its text is empty"),
        ("fold", "holdout", "its fold 'holdout' is none of train, validation and test"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_its_place(
    tmp_path: Path, column: str, value: object, fault: str
) -> None:
    path = mapped(tmp_path, ROW, ROW | {"id": "q2", column: value})
    assert refused(gather, path) == f"{tmp_path / 'rows.jsonl'}, line 2: {fault}; correct it there."


def test_the_place_of_a_value_in_parquet_is_its_row(tmp_path: Path) -> None:
    path = mapped(tmp_path, ROW, ROW | {"n": 1, "secs": -1.0}, kind="parquet")
    path.write_text(MAPPING.format(questions="rows.parquet", responses="rows.parquet"))
    assert "rows.parquet, row 2: its secs is -1.0, and " in refused(gather, path)


@pytest.mark.parametrize("column", ["id", "who", "text", "gold", "said"])
def test_bytes_that_are_no_text_are_refused_with_row_and_column(tmp_path: Path, column: str) -> None:
    path = mapped(tmp_path, ROW | {column: b"\xff"}, kind="parquet")
    assert f"rows.parquet, row 1: its {column} is not UTF-8 text" in refused(gather, path)


def test_whole_numbers_may_be_written_as_floats_and_as_text(tmp_path: Path) -> None:
    row = ROW | {"tin": 9.0, "tout": "3.0", "secs": "1.5", "ok": " True "}
    (one,) = of_rows(tmp_path, row).responses(ROW["text"])["ada"]
    assert (one.input_tokens, one.output_tokens, one.seconds, one.score) == (9, 3, 1.5, 1.0)


@pytest.mark.parametrize("column", ["gold", "kind", "fold", "n", "found", "ok", "tin", "tout", "secs"])
def test_missing_key_of_a_jsonl_line_is_read_as_null(tmp_path: Path, column: str) -> None:
    lacking = {key: value for key, value in (ROW | {"id": "q2", "text": "Why?"}).items() if key != column}
    short = of_rows(tmp_path, lacking, ROW)
    whole = of_rows(tmp_path, lacking | {column: None}, ROW)
    assert short.questions == whole.questions
    assert len(short.questions) == 2
    assert short.responses("Why?") == whole.responses("Why?") != {}
