"""Recordings at the command line: made from live workers, then shown, asked and compared."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podium.recordings import RecordedQuestion, RecordedResponse, Recording, RecordingHeader, RecordingWriter
from refused_commands import one_sentence

Podium = Callable[..., Any]
SIMULATED = """
[[worker]]
name = "able"
kind = "calculates"
profile = "Knows sums."
right = 0.9
price = { input = 1.0, output = 6.0 }

[[worker]]
name = "weak"
kind = "calculates"
"""
TASKS = ("--tasks", "sums")
POOL = ("--pool", "simulated.toml")
RECORD = ("record", "made/r.parquet", *TASKS, *POOL, "--split", "test", "--questions", "5")
RECORD_TINY = ("record", "own.parquet", "--pool", "ada.toml", "--tasks", "tiny.toml")


@pytest.fixture(autouse=True)
def _pool(sums: None) -> None:
    Path("simulated.toml").write_text(SIMULATED)


def test_recording_is_shown_and_replayed(podium: Podium) -> None:
    made = podium(*RECORD, "--repeats", "2", "--name", "mine")
    assert made.status == 0
    assert made.out.startswith("20 responses to 5 questions")
    assert sorted(file.name for file in Path("made").iterdir()) == ["r.json", "r.parquet"]
    header = Recording.open(Path("made/r.parquet")).header
    assert (header.name, header.splits, header.left_out) == ("mine", {"test": 5}, ())
    assert (header.workers[0].description, header.workers[0].price.output) == ("Knows sums.", 6.0)
    shown = podium("replay", "show", "made/r.parquet")
    assert shown.status == 0
    assert all(
        part in shown.out for part in ("mine", "5 test", "20 recorded", "able", "weak", "$1.00 / $6.00")
    )
    assert (
        RecordingHeader.model_validate_json(podium("replay", "show", "made/r.parquet", "--json").out)
        == header
    )
    asked = podium("tasks", "show", "made/r.parquet", "--split", "test", "--samples", "5", "--json")
    samples = {(sample["question"], sample["gold"]) for sample in json.loads(asked.out)}
    live = podium("tasks", "show", "sums", "--split", "test", "--samples", "5", "--json")
    assert samples == {(sample["question"], sample["gold"]) for sample in json.loads(live.out)}


def test_without_a_terminal_nothing_is_drawn(podium: Podium) -> None:
    assert podium(*RECORD).err == ""


def test_a_finished_recording_is_not_recorded_over(podium: Podium) -> None:
    assert podium(*RECORD).status == 0
    before = {file: file.read_bytes() for file in Path("made").iterdir()}
    assert "made/r.parquet and made/r.json" in one_sentence(podium(*RECORD[:-1], "2"))
    assert {file: file.read_bytes() for file in Path("made").iterdir()} == before


def test_record_does_not_overwrite_a_foreign_file_at_the_header_path(podium: Podium) -> None:
    Path("made").mkdir()
    Path("made/r.json").write_text("ratings")
    assert "made/r.json" in one_sentence(podium(*RECORD))
    assert [(file.name, file.read_text()) for file in Path("made").iterdir()] == [("r.json", "ratings")]


def test_recording_without_split_option_takes_questions_of_every_split(podium: Podium) -> None:
    made = podium("record", "r.parquet", *TASKS, *POOL, "--questions", "20", "--json")
    header = RecordingHeader.model_validate_json(made.out)
    assert header.splits == {"train": 14, "validation": 3, "test": 3}
    assert "tasks: sums/train, sums/validation, sums/test" in header.source
    for question in Recording.open(Path("r.parquet")).questions:
        assert question.id.startswith(f"sums/{question.split}/")


def uneven(*splits: str) -> None:
    """Recordings are task sets: uneven.parquet has a question for each split that is named."""
    with RecordingWriter() as writer:
        for number, split in enumerate(splits):
            writer.add_question(RecordedQuestion(f"q{number}", f"Is {number} even?", "yes", None, split))
            writer.add(f"q{number}", RecordedResponse("ada", 0, "Answer: yes", score=1.0))
        writer.write(Path("uneven.parquet"), name="uneven")
    Path("echo.toml").write_text(
        '[[worker]]\nname = "echo"\nkind = "scripted"\nreplies = { "" = "Answer: yes" }\n'
    )


UNEVEN = ("record", "r.parquet", "--tasks", "uneven.parquet", "--pool", "echo.toml", "--json")


@pytest.mark.parametrize(
    ("lengths", "questions", "asked"),
    [
        ((23, 9, 8), "40", {"train": 23, "validation": 9, "test": 8}),
        ((23, 20, 20), "40", {"train": 23, "validation": 8, "test": 9}),
        ((40, 2, 20), "40", {"train": 31, "validation": 2, "test": 7}),
        ((40, 2, 0), "40", {"train": 38, "validation": 2}),
        ((40, 20, 20), "40", {"train": 28, "validation": 6, "test": 6}),
    ],
)
def test_questions_that_one_split_lacks_come_from_the_other_splits(
    podium: Podium, lengths: tuple[int, ...], questions: str, asked: dict[str, int]
) -> None:
    splits = zip(("train", "validation", "test"), lengths, strict=True)
    uneven(*(split for split, length in splits for _ in range(length)))
    made = podium(*UNEVEN, "--questions", questions)
    assert (made.status, made.err) == (0, "")
    assert RecordingHeader.model_validate_json(made.out).splits == asked


def test_record_reports_when_all_splits_have_too_few_questions(podium: Podium) -> None:
    uneven(*["train"] * 5, "test")
    made = podium(*UNEVEN, "--questions", "20")
    assert made.status == 0
    assert RecordingHeader.model_validate_json(made.out).splits == {"train": 5, "test": 1}
    assert "train, test have only 6" in made.err
    named = podium(*UNEVEN[:1], "named.parquet", *UNEVEN[2:], "--questions", "20", "--split", "train")
    assert "train has only 5" in named.err


def test_a_recording_that_stopped_early_has_questions_of_every_split(podium: Podium) -> None:
    limits = ("--questions", "40", "--budget-calls", "30", "--concurrency", "1")
    stopped = podium("record", "r.parquet", *TASKS, *POOL, *limits, "--json")
    assert stopped.status == 1
    assert RecordingHeader.model_validate_json(stopped.out).splits.keys() == {"train", "validation", "test"}


def test_recording_tasks_with_foreign_split_names_needs_the_split_option(podium: Podium) -> None:
    with RecordingWriter() as writer:
        writer.add_question(RecordedQuestion("q", "Is it?", "yes", None, "dev"))
        writer.add("q", RecordedResponse("ada", 0, "Answer: yes", score=1.0))
        writer.write(Path("dev.parquet"), name="dev")
    record = ("record", "r.parquet", "--tasks", "dev.parquet", "--pool", "simulated.toml")
    assert "such as dev" in one_sentence(podium(*record))
    assert podium(*record, "--split", "dev").status == 0


def test_a_recording_is_not_made_of_recorded_workers(podium: Podium) -> None:
    podium(*RECORD)
    Path("made/pool.toml").write_text('[[worker]]\nname = "able"\nkind = "replay"\nrecording = "r.parquet"\n')
    before = sorted(Path().rglob("*"))
    record = ("record", "again.parquet", *TASKS, "--pool", "made/pool.toml", "--split", "test")
    assert "'able'" in one_sentence(podium(*record))
    assert sorted(Path().rglob("*")) == before


def test_a_recording_that_goes_on_may_grow_and_may_not_change(podium: Podium) -> None:
    assert podium(*RECORD, "--budget-calls", "4").status == 1
    before = Path("made/r.parquet").read_bytes()
    for change, key in (
        (("--seed", "1"), "seed"),
        (("--pool", "pool.toml"), "workers."),
        (("--split", "train"), "split"),
    ):
        tokens = [*RECORD]
        if change[0] in tokens:
            tokens[tokens.index(change[0]) + 1] = change[1]
        else:
            tokens += change
        assert f"{key}" in one_sentence(podium(*tokens))
    assert Path("made/r.parquet").read_bytes() == before
    grown = podium(*RECORD[:-1], "7", "--repeats", "2")
    assert (grown.status, grown.out.partition(" are")[0]) == (0, "28 responses to 7 questions")


@pytest.mark.parametrize(
    ("questions", "repeats", "named"), [("20", "2", "40 questions"), ("40", "1", "2 repeats")]
)
def test_a_recording_that_goes_on_may_not_shrink(
    podium: Podium, questions: str, repeats: str, named: str
) -> None:
    record = ("record", "r.parquet", *TASKS, *POOL)
    begun = ("--questions", "40", "--repeats", "2")
    assert podium(*record, *begun, "--budget-calls", "130").status == 1
    before = Path("r.parquet").read_bytes()
    assert named in one_sentence(podium(*record, "--questions", questions, "--repeats", repeats))
    assert Path("r.parquet").read_bytes() == before
    done = podium(*record, *begun)
    assert (done.status, done.out.partition(" are")[0]) == (0, "160 responses to 40 questions")


def test_a_recording_goes_on_with_more_questions_and_a_rated_pool(podium: Podium) -> None:
    pool = '[[worker]]\nname = "ada"\nkind = "scripted"\nreplies = { "" = "Answer: 5" }\n'
    Path("ada.toml").write_text(pool + '[[worker]]\nname = "vote"\nkind = "vote"\n')
    rows = [f'{{"q": "What is {n} + 1?", "a": "{n + 1}"}}' for n in range(30)]
    Path("rows.jsonl").write_text("\n".join(rows[:12]))
    Path("tiny.toml").write_text('[[part]]\nset = "own"\nfile = "rows.jsonl"\nquestion = "q"\ngold = "a"\n')
    record = (*RECORD_TINY, "--questions", "5")
    assert podium(*record, "--budget-calls", "2").status == 1
    Path("rows.jsonl").write_text("\n".join(rows))
    Path("ratings.json").write_text(
        '{"format": 1, "clusters": {}, "workers": {"ada": {"": {"right": 1, "questions": 2, "cost_usd": 0.1}}}}'
    )
    Path("ada.toml").write_text('ratings = "ratings.json"\n' + Path("ada.toml").read_text())
    assert podium(*record).status == 0


def test_a_split_without_a_question_is_passed_over_unless_it_is_named(podium: Podium) -> None:
    Path("ada.toml").write_text(
        '[[worker]]\nname = "ada"\nkind = "scripted"\nreplies = { "" = "Answer: 5" }\n'
    )
    Path("rows.jsonl").write_text('{"q": "What is 2 + 3?", "a": "5", "s": "train"}\n')
    Path("tiny.toml").write_text(
        '[[part]]\nset = "own"\nfile = "rows.jsonl"\nquestion = "q"\ngold = "a"\nsplit = "s"\n'
    )
    record = (*RECORD_TINY, "--questions", "1")
    assert "has no tasks" in one_sentence(podium(*record, "--split", "test"))
    assert podium(*record).out.startswith("1 response to 1 question")


@pytest.mark.parametrize(
    ("tokens", "named"),
    [
        (("record", "r.json", *TASKS), "r.json"),
        (("record", "r.parquet", *TASKS, "--repeats", "0"), "--repeats 0"),
        (("record", "r.parquet", *TASKS, "--concurrency", "0"), "--concurrency 0"),
        (("record", "r.parquet", *TASKS, "--questions", "-4"), "--questions -4"),
        (("record", "r.parquet", "--tasks", "gsm9k"), "'gsm9k'"),
        (("record", "r.parquet", *TASKS, "--split", "tests"), "'test'"),
        (("record", "r.parquet", "--tasks", "none.parquet"), "none.parquet"),
        (("record", "r.parquet", *TASKS, "--pool", "none.toml"), "none.toml"),
        (("record", "r.parquet", *TASKS, "--budget-calls", "-1"), "--budget-calls -1"),
        (("replay", "show", "none.parquet"), "none.parquet"),
        (("replay", "show", "pool.toml"), "pool.json"),
    ],
)
def test_a_wrong_command_is_one_sentence_and_writes_nothing(
    podium: Podium, tokens: tuple[str, ...], named: str
) -> None:
    before = {file.name for file in Path().rglob("*")}
    assert named in one_sentence(podium(*tokens))
    assert {file.name for file in Path().rglob("*")} == before


def test_a_budget_of_nothing_writes_nothing(podium: Podium) -> None:
    assert podium(*RECORD, "--budget-calls", "0").status == 1
    assert not Path("made/r.parquet").exists()
