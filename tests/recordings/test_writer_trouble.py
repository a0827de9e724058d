"""Recordings in trouble: a disk that is full, questions that do not fit together, long texts."""

from __future__ import annotations

from pathlib import Path
from subprocess import PIPE, run

import pyarrow.parquet as pq
import pytest

from loaded_programs import loaded_python
from podium.errors import StoreError
from podium.recordings import RecordedQuestion, RecordedResponse, Recording, RecordingWriter, header_path

WRITES_TO_A_FULL_DISK = """
import os, resource, sys
from pathlib import Path
from podium.errors import StoreError
from podium.recordings import RecordingWriter, RecordedQuestion, RecordedResponse
with RecordingWriter() as writer:
    for number in range(100):
        writer.add_question(RecordedQuestion(f"{number:04}", f"What is {number}?"))
        writer.add(f"{number:04}", RecordedResponse("ada", 0, os.urandom(2500).hex()))
    resource.setrlimit(resource.RLIMIT_FSIZE, (10**5, 10**5))
    try:
        writer.write(Path("r.parquet"), name="r")
    except StoreError as error:
        print(error, file=sys.stderr)
"""


def test_recording_on_a_full_disk_leaves_no_partial_file(tmp_path: Path) -> None:
    made = run([loaded_python(), "-c", WRITES_TO_A_FULL_DISK], check=True, stderr=PIPE, cwd=tmp_path)
    assert made.stderr == (
        b"r.parquet cannot be written (File too large); fix that, and run the same command again.\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_reported_and_its_files_stay(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    with RecordingWriter() as writer:
        writer.add_question(RecordedQuestion("a", "What is a?"))
        writer.add("a", RecordedResponse("ada", 0, "Answer: 4"))
        header_path(path).write_text("ratings")
        path.mkdir()
        with pytest.raises(StoreError, match=r"r\.parquet cannot be written \(Is a directory\)"):
            writer.write(path, name="r")
    assert header_path(path).read_text() == "ratings"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["r.json", "r.parquet"]


def test_an_id_with_another_wording_is_distinguished_from_a_repeated_id() -> None:
    with RecordingWriter() as writer:
        assert writer.add_question(RecordedQuestion("a", "one?"))
        assert writer.add_question(RecordedQuestion("a", "one?", "gold"))
        assert writer.add_question(RecordedQuestion("a", " one?\n"))
        assert not writer.add_question(RecordedQuestion("a", "two?"))
        assert writer.add_question(RecordedQuestion("b", "half a letter: \ud83d"))
        assert writer.add_question(RecordedQuestion("b", "half a letter: \ud83d"))


def test_wordings_that_differ_only_in_outer_space_are_equal(tmp_path: Path) -> None:
    with RecordingWriter() as writer:
        for id_, text in (("a", "What?"), ("b", "What?\n"), ("c", "What ?")):
            writer.add_question(RecordedQuestion(id_, text))
            writer.add(id_, RecordedResponse("ada", 0, f"to {id_}"))
        header = writer.write(tmp_path / "r.parquet", name="r")
    assert header.left_out == ("questions whose wording another one has too (1)",)
    recording = Recording.open(tmp_path / "r.parquet")
    assert [question.id for question in recording.questions] == ["a", "c"]
    assert [response.text for response in recording.responses("What?")["ada"]] == ["to a"]


def test_long_texts_are_written_in_groups_that_fit_the_memory(tmp_path: Path) -> None:
    with RecordingWriter() as writer:
        writer.add_question(RecordedQuestion("a", "What?"))
        for sample in range(20):
            writer.add("a", RecordedResponse("ada", sample, f"{sample}" * 2**21))
        writer.write(tmp_path / "r.parquet", name="r")
    assert pq.ParquetFile(tmp_path / "r.parquet").num_row_groups == 2
    (samples,) = Recording.open(tmp_path / "r.parquet").responses("What?").values()
    assert [response.text[:2] for response in samples] == [f"{sample}{sample}"[:2] for sample in range(20)]
