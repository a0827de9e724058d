"""`podium tasks overlap`: what is looked for, where, and what it says of what it found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from refusal import one_sentence

LONG = "How many ways are there to put eleven different letters into six equal boxes so that none is empty?"
TASKS = '[[part]]\nset = "own"\nfile = "rows.jsonl"\nsplit = "split"\n'


@pytest.fixture(autouse=True)
def _rows() -> None:
    rows = [
        ("What is 2 + 2?", "train"),
        (LONG, "train"),
        ("What is 3 + 3?", "train"),
        ("Never seen?", "test"),
    ]
    Path("rows.jsonl").write_text(
        "".join(json.dumps({"question": q, "answer": 1, "split": split}) + "\n" for q, split in rows)
    )
    Path("mine.toml").write_text(TASKS)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "other.jsonl",
            json.dumps({"id": 1, "chat": [{"role": "user", "content": "what is 2+2"}, {"content": LONG}]}),
        ),
        ("other.json", json.dumps([{"text": "WHAT IS 2 + 2"}, {"text": f"Answer this: {LONG}\nOr not."}])),
        ("other.csv", f'nr,question\n1,What is 2 + 2?\n2,"Try: {LONG} Now."\n'),
        ("other.txt", f"Prose.\n\nWhat is\n2 + 2?\n\nMore of it: {LONG}\n"),
        ("other.md", f"# 1\n\nWhat is 2 + 2?\n\n{LONG}"),
    ],
)
def test_questions_are_found_in_a_file_of_any_kind(podium, name, content):
    Path(name).write_text(content)
    outcome = podium("tasks", "overlap", "mine.toml", "--against", name, "--json")
    assert outcome.status == 1
    said = json.loads(outcome.out)
    assert (said["set"], said["split"], said["against"], said["questions"]) == (
        "mine.toml",
        "train",
        [name],
        3,
    )
    found = {one["question"]: one for one in said["overlaps"]}
    assert set(found) == {"What is 2 + 2?", LONG}
    assert found["What is 2 + 2?"]["same"]
    assert found[LONG]["shared"] == 1.0
    assert found[LONG]["where"].startswith(f"{name}, ")


def test_a_question_is_found_that_a_table_holds_in_several_cells(podium):
    row = {
        "question": "Which is heavier?",
        "answer": "(A)",
        "options": ["a ton of feathers", "a pound of lead"],
    }
    Path("rows.jsonl").write_text(json.dumps(row | {"split": "train"}))
    Path("mine.toml").write_text(TASKS + 'question = "{question}\\n{options}"\n')
    Path("other.jsonl").write_text(json.dumps({"stem": row["question"], "choices": row["options"]}))
    outcome = podium("tasks", "overlap", "mine.toml", "--against", "other.jsonl", "--json")
    assert json.loads(outcome.out)["overlaps"][0]["same"]


def test_a_table_shows_examples_with_their_places(podium):
    Path("other.jsonl").write_text(
        json.dumps({"q": "what is 2+2"}) + "\n" + json.dumps({"q": f"So: {LONG}"}) + "\n"
    )
    outcome = podium("tasks", "overlap", "mine.toml", "--against", "other.jsonl")
    assert outcome.status == 1
    assert outcome.out.startswith("2 questions of 3 found: 1 whole, 1 by words that they share.\n")
    (whole,) = [line for line in outcome.out.splitlines() if "What is 2 + 2?" in line]
    assert "whole" in whole
    assert "other.jsonl, line 1" in whole
    assert "100%" in outcome.out
    shown = podium("tasks", "overlap", "mine.toml", "--against", "other.jsonl", "--examples", "1")
    assert "other.jsonl, line 2" not in shown.out


def test_a_clean_set_is_status_0(podium):
    Path("other.txt").write_text("Nothing of it.")
    outcome = podium("tasks", "overlap", "mine.toml", "--against", "other.txt")
    assert (outcome.status, outcome.out) == (
        0,
        "0 questions of 3 found: 0 whole, 0 by words that they share.\n",
    )


def test_a_set_may_be_held_against_itself_and_others_by_split(podium):
    clean = podium("tasks", "overlap", "mine.toml", "--against", "mine.toml:test", "--against", "mine.toml")
    assert clean.status == 0
    outcome = podium(
        "tasks", "overlap", "mine.toml", "--split", "test", "--against", "mine.toml:test", "--json"
    )
    assert [one["where"] for one in json.loads(outcome.out)["overlaps"]] == [
        "rows/" + json.loads(outcome.out)["overlaps"][0]["id"].removeprefix("rows/")
    ]


def test_a_share_leaves_out_what_only_sounds_alike(podium):
    words = LONG.split()
    Path("other.txt").write_text(" ".join(words[:13]))
    found = podium("tasks", "overlap", "mine.toml", "--against", "other.txt", "--json")
    assert 0 < json.loads(found.out)["overlaps"][0]["shared"] < 0.5
    assert podium("tasks", "overlap", "mine.toml", "--against", "other.txt", "--share", "0.5").status == 0


def test_rows_that_could_not_be_read_are_reported(podium):
    Path("other.jsonl").write_text('broken\n{"q": "fine"}\n')
    outcome = podium("tasks", "overlap", "mine.toml", "--against", "other.jsonl")
    assert "1 row could not be read or searched." in outcome.out
    assert (
        json.loads(podium("tasks", "overlap", "mine.toml", "--against", "other.jsonl", "--json").out)[
            "unread"
        ]
        == 1
    )


@pytest.mark.usefixtures("sums")
def test_sets_that_are_made_on_the_spot_are_looked_at_as_far_as_is_said(podium):
    tokens = ("tasks", "overlap", "sums", "--split", "test", "--against", "sums:train")
    assert "sums has no end; say how many of its questions to take" in one_sentence(podium(*tokens))
    assert podium(*tokens, "--questions", "30", "--share", "0.9").status == 0
    assert podium(*tokens[:-1], "sums:test", "--questions", "3").status == 1


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (["mine.toml", "--against", "none.jsonl"], "none.jsonl: there is no such file; check the path."),
        (
            ["mine.toml", "--against", "summs:test"],
            "There is no task set 'summs';",
        ),
        (["mine.toml", "--against", "mine.toml:tset"], "There is no split 'tset'; did you mean 'test'?"),
        (["mine.toml", "--against", "pool"], "There is no task set 'pool';"),
        (["mine.toml", "--against", "rows.jsonl", "--share", "2"], "--share 2: a share is from 0 to 1."),
        (["mine.toml", "--against", "rows.jsonl", "--questions", "0"], "--questions 0: give at least 1."),
    ],
)
def test_what_there_is_not_is_refused(podium, tokens, message):
    assert message in one_sentence(podium("tasks", "overlap", *tokens))


def test_a_file_that_is_no_text_is_refused(podium):
    Path("other.bin").write_bytes(b"\xff\xfe\x00")
    assert "other.bin cannot be read as text" in one_sentence(
        podium("tasks", "overlap", "mine.toml", "--against", "other.bin")
    )
