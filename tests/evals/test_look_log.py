"""The log counts each configuration's look at a split once, and keeps declarations apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.errors import ConfigError
from podium.evals.look_log import Look, LookLog, describe_looks, looks_file


def look(split: str, config: str, note: str = "") -> Look:
    planners = ("Conductor", "ada alone")
    return Look(tasks="mine.parquet", split=split, config=config, planners=planners, note=note)


def test_each_configuration_is_one_look_at_its_split(tmp_path: Path) -> None:
    log = LookLog(tmp_path / "mine.looks.jsonl")
    log.add(look("validation", "a"))
    log.add(look("test", "a"))
    looks = log.add(look("validation", "b"))
    assert log.add(look("validation", "a")) == looks
    assert [each.config for each in looks] == ["a", "b"]
    assert describe_looks(looks, "b") == "Look 2 at the validation split of mine.parquet."


def test_a_note_declares_a_configuration_on_its_split(tmp_path: Path) -> None:
    log = LookLog(tmp_path / "mine.looks.jsonl")
    log.add(look("test", "b"))
    looks = log.add(look("test", "a", "The one run on test."))
    assert log.is_declared("test", "a")
    assert not log.is_declared("test", "b")
    assert not log.is_declared("validation", "a")
    assert (
        describe_looks(looks, "a")
        == "Look 2 at the test split of mine.parquet, declared: The one run on test."
    )


def test_declaring_a_configuration_again_counts_another_look(tmp_path: Path) -> None:
    log = LookLog(tmp_path / "mine.looks.jsonl")
    for note in ("Before the change.", "After it."):
        looks = log.add(look("test", "a", note))
        assert log.add(look("test", "a", note)) == log.add(look("test", "a")) == looks  # As after a kill.
    assert [each.note for each in looks] == ["Before the change.", "After it."]
    assert describe_looks(looks, "a") == "Look 2 at the test split of mine.parquet, declared: After it."


def test_look_log_lies_next_to_the_question_file_or_the_run(tmp_path: Path) -> None:
    recording = tmp_path / "data" / "mine.parquet"
    recording.parent.mkdir()
    recording.touch()
    assert looks_file(str(recording), tmp_path / "runs" / "r") == recording.with_name("mine.looks.jsonl")
    assert looks_file("sums", tmp_path / "runs" / "r") == tmp_path / "runs" / "sums.looks.jsonl"


def test_a_damaged_ledger_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.looks.jsonl"
    file.write_text('{"split": "test"}\n')
    with pytest.raises(ConfigError, match="is no log of looks"):
        LookLog(file).read()
