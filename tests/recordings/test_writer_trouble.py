"""Gatherings in trouble: a disk that is full, a file that another process has, questions that do not fit together."""

from __future__ import annotations

import json
import sqlite3
import sys
from pathlib import Path
from subprocess import PIPE, Popen, run

import pyarrow.parquet as pq
import pytest

from podium.errors import StoreError, UsageError
from podium.recordings import RecordedQuestion, RecordedResponse, Recording, RecordingWriter, header_path

PREAMBLE = """
import json, os, resource, sys, time
from pathlib import Path
from podium.errors import StoreError
from podium.recordings import RecordingWriter, RecordedQuestion, RecordedResponse
def add(writer, number, letters=5000):
    writer.add_question(RecordedQuestion(f"{number:04}", f"What is {number}?"))
    writer.add(f"{number:04}", RecordedResponse("ada", 0, os.urandom(letters // 2).hex()))
"""
HOLDS = """
with RecordingWriter(Path("r.partial")) as writer:
    add(writer, 0)
    writer.commit()
    print("open", flush=True)
    time.sleep(60)
"""
FILLS_THE_DISK = """
number = 0
resource.setrlimit(resource.RLIMIT_FSIZE, (10**6, 10**6))
try:
    with RecordingWriter(Path("r.partial")) as writer:
        while True:
            add(writer, number)
            writer.commit()
            number += 1
except StoreError as error:
    print(json.dumps([number, str(error)]))
"""
OPENS_ON_A_FULL_DISK = """
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
try:
    RecordingWriter(Path("r.partial"))
except StoreError as error:
    print(error, file=sys.stderr)
"""
WRITES_TO_A_FULL_DISK = """
with RecordingWriter(Path("r.partial")) as writer:
    for number in range(100):
        add(writer, number)
    writer.commit()
    resource.setrlimit(resource.RLIMIT_FSIZE, (10**5, 10**5))
    try:
        writer.write(Path("r.parquet"), name="r")
    except StoreError as error:
        print(error, file=sys.stderr)
"""


def test_what_another_process_gathers_is_refused_until_it_has_ended(tmp_path: Path) -> None:
    file = tmp_path / "r.partial"
    with Popen([sys.executable, "-c", PREAMBLE + HOLDS], stdout=PIPE, cwd=tmp_path) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"open\n"
        with pytest.raises(UsageError) as caught:
            RecordingWriter(file)
        assert str(caught.value) == (
            f"Another podium records into {file} at the moment; wait for it, or give another name."
        )
        other.kill()
    with RecordingWriter(file) as writer:
        assert writer.find("0000", "ada", 0)


def test_of_many_that_open_a_new_file_at_once_one_alone_has_it(tmp_path: Path) -> None:
    program = (
        PREAMBLE
        + """
from podium.errors import UsageError
while not Path("go").exists():
    pass
try:
    with RecordingWriter(Path("r.partial")):
        print("mine")
        time.sleep(2)
except UsageError:
    print("another's")
"""
    )
    asking = [Popen([sys.executable, "-c", program], stdout=PIPE, text=True, cwd=tmp_path) for _ in range(3)]
    (tmp_path / "go").touch()
    assert sorted(one.communicate(timeout=60)[0].strip() for one in asking) == [
        "another's",
        "another's",
        "mine",
    ]


def test_on_a_full_disk_what_was_committed_stays_and_the_rest_is_reported(tmp_path: Path) -> None:
    made = run(
        [sys.executable, "-c", PREAMBLE + FILLS_THE_DISK],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    number, sentence = json.loads(made.stdout)
    assert number > 10
    assert sentence.startswith("r.partial cannot be written (")
    assert sentence.endswith("); make room there, and give the same command again.")
    with RecordingWriter(tmp_path / "r.partial") as writer:
        assert all(writer.find(f"{kept:04}", "ada", 0) for kept in range(number))
        assert writer.write(tmp_path / "r.parquet", name="r").responses == number


def test_an_unfinished_recording_that_cannot_be_begun_leaves_no_file(tmp_path: Path) -> None:
    made = run([sys.executable, "-c", PREAMBLE + OPENS_ON_A_FULL_DISK], check=True, stderr=PIPE, cwd=tmp_path)
    assert made.stderr.startswith(b"r.partial cannot be written (")
    assert list(tmp_path.iterdir()) == []


def test_a_recording_that_does_not_fit_on_the_disk_leaves_no_part_of_it(tmp_path: Path) -> None:
    made = run(
        [sys.executable, "-c", PREAMBLE + WRITES_TO_A_FULL_DISK], check=True, stderr=PIPE, cwd=tmp_path
    )
    assert made.stderr == (
        b"r.parquet cannot be written (File too large); fix that, and run the same command again.\n"
    )
    assert all(file.name.startswith("r.partial") for file in tmp_path.iterdir())


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


def test_an_unfinished_recording_that_was_damaged_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "r.partial"
    with RecordingWriter(file) as writer:
        for number in range(200):
            writer.add_question(RecordedQuestion(f"{number}", "What is it? " * 20))
        writer.commit()
    content = file.read_bytes()
    file.write_bytes(content[:8192] + bytes(255 - byte for byte in content[8192:]))

    def read() -> None:
        with RecordingWriter(file) as writer:
            for number in range(200):
                writer.has_other_wording(f"{number}", "What is it?")

    with pytest.raises(UsageError, match="is not an unfinished recording"):
        read()


def test_an_id_with_another_wording_is_distinguished_from_a_repeated_id() -> None:
    with RecordingWriter() as writer:
        assert writer.add_question(RecordedQuestion("a", "one?"))
        assert writer.add_question(RecordedQuestion("a", "one?", "gold"))
        assert writer.add_question(RecordedQuestion("a", " one?\n"))
        assert not writer.add_question(RecordedQuestion("a", "two?"))
        assert writer.add_question(RecordedQuestion("b", "half a letter: \ud83d"))
        assert writer.add_question(RecordedQuestion("b", "half a letter: \ud83d"))
        assert writer.has_other_wording("a", "two?")
        assert not writer.has_other_wording("a", "one?")
        assert not writer.has_other_wording("c", "one?")


def test_wordings_that_differ_in_the_space_around_them_alone_are_one(tmp_path: Path) -> None:
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


def test_a_database_of_something_else_that_is_in_use_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "traces.sqlite"
    with sqlite3.connect(file) as database:
        database.execute("create table traces (id text)")
        database.commit()
        database.execute("begin exclusive")
        with pytest.raises(UsageError, match=r"traces\.sqlite"):
            RecordingWriter(file)
    database.close()
