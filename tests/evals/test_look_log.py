"""The log counts each configuration's look at a split once, and keeps declarations apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.errors import ConfigError
from podium.evals.look_log import LookLog, SplitLook, describe_looks, looks_file


def look(split: str, config: str, note: str = "") -> SplitLook:
    planners = ("Conductor", "ada alone")
    return SplitLook(tasks="mine.parquet", split=split, config=config, planners=planners, note=note)


def test_each_configuration_is_one_look_at_its_split(tmp_path: Path) -> None:
    log = LookLog(tmp_path / "mine.looks.jsonl")
    log.count(look("validation", "a"))
    log.count(look("test", "a"))
    looks = log.count(look("validation", "b"))
    assert log.count(look("validation", "a")) == looks
    assert [each.config for each in looks] == ["a", "b"]
    assert describe_looks(looks, "b") == "Look 2 at the validation split of mine.parquet."


def test_declaration_is_not_a_look_but_its_note_is_kept(tmp_path: Path) -> None:
    log = LookLog(tmp_path / "mine.looks.jsonl")
    log.declare(look("test", "a", "The one run on test."))
    assert log.looks("test") == ()
    assert log.declarations("test", "a")
    assert not log.declarations("test", "b")
    assert not log.declarations("validation", "a")
    looks = log.count(look("test", "a"))
    assert (
        describe_looks(looks, "a")
        == "Look 1 at the test split of mine.parquet, declared: The one run on test."
    )


def test_declaring_a_configuration_again_counts_another_look(tmp_path: Path) -> None:
    log = LookLog(tmp_path / "mine.looks.jsonl")
    for note in ("Before the change.", "After it."):
        assert note not in log.declarations("test", "a")
        log.declare(look("test", "a", note))
        assert note in log.declarations("test", "a")
        looks = log.count(look("test", "a"))
        assert log.count(look("test", "a")) == looks  # As if continued after a kill.
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
