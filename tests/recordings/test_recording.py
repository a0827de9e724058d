"""Opening a recording: what is found in it, and what is refused in one clear sentence."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from podium.errors import ConfigError
from podium.recordings import RecordedResponse, Recording, header_path
from podium.recordings.recording_model import COLUMNS
from podium.workers.replay import ReplayWorker
from podium.workers.spec import ReplaySpec

MakeRecording = Callable[..., Recording]
GIVEN = {
    "What is 2 + 2?": [
        RecordedResponse("ada", 0, "Answer: 4", "4", 1.0),
        RecordedResponse("bob", 0, "Answer: 5", "5", 0.0),
    ],
    "What is 3 + 3?": [RecordedResponse("ada", 0, "Answer: 6"), RecordedResponse("ada", 1, "Answer: 7")],
}


@pytest.fixture
def small(make_recording: MakeRecording) -> Recording:
    return make_recording(GIVEN, splits={"What is 3 + 3?": "train"})


def test_questions_are_found_by_wording_whatever_the_space_around(small: Recording) -> None:
    for text in ("What is 3 + 3?", "  What is 3 + 3?\n"):
        found = small.find(text)
        assert found is not None
        assert (found.id, found.gold, found.family, found.split) == ("q1", None, "sums", "train")
        assert small.responses(text) == small.responses("What is 3 + 3?") != {}
    for other in ("What is 3 + 3", "what is 3 + 3?", "What is  3 + 3?", ""):
        assert small.find(other) is None
        assert small.responses(other) == {}


def test_responses_stand_by_worker_and_in_the_order_of_samples(small: Recording) -> None:
    assert small.workers == ("ada", "bob")
    assert small.responses("What is 2 + 2?") == {
        "ada": (GIVEN["What is 2 + 2?"][0],),
        "bob": (GIVEN["What is 2 + 2?"][1],),
    }
    assert small.responses("What is 3 + 3?") == {"ada": tuple(GIVEN["What is 3 + 3?"])}


def mend_digest(recording: Recording) -> None:
    """Of a file that was changed."""
    digest, beside = hashlib.sha256(recording.path.read_bytes()).hexdigest(), header_path(recording.path)
    beside.write_text(json.dumps(json.loads(beside.read_text()) | {"sha256": digest}))


def test_sample_count_of_a_question_ignores_sample_numbers(small: Recording) -> None:
    # As importers once wrote them: numbers from 1, and seeds.
    table = pq.read_table(small.path)
    seeds = pa.array([41, 170_000_000, 1, 2], pa.int32())
    pq.write_table(table.set_column(table.schema.get_field_index("sample"), "sample", seeds), small.path)
    mend_digest(small)
    old = Recording.open(small.path)
    assert [old.samples(worker) for worker in ("ada", "bob", "nobody")] == [2, 1, 0]
    worker = ReplayWorker(ReplaySpec(name="ada", recording=old.path), old)
    assert (worker.samples, worker.count("What is 2 + 2?"), worker.count("What is 3 + 3?")) == (2, 1, 2)


def test_a_split_holds_its_own_questions(small: Recording) -> None:
    assert [question.id for question in small.questions_of("test")] == ["q0"]
    assert [question.id for question in small.questions_of("train")] == ["q1"]
    assert list(small.questions_of("validation")) == []


@pytest.mark.parametrize("missing", ["small.parquet", "small.json"])
def test_error_of_a_missing_recording_file_names_both_needed_files(small: Recording, missing: str) -> None:
    gone = small.path.with_name(missing)
    gone.unlink()
    with pytest.raises(ConfigError) as caught:
        Recording.open(small.path)
    assert str(caught.value) == f"{gone}: there is no such file; a recording is NAME.parquet and NAME.json."


@pytest.mark.parametrize(
    "text", ["", "not JSON", "[]", "{}", '{"name": 2}', '"\\ud800"', pytest.param(None, id="a key more")]
)
def test_invalid_recording_header_is_refused(small: Recording, text: str | None) -> None:
    beside = header_path(small.path)
    beside.write_text(json.dumps(json.loads(beside.read_text()) | {"later": 3}) if text is None else text)
    with pytest.raises(
        ConfigError, match=r"small\.json is not the header of a recording; import the source again"
    ):
        Recording.open(small.path)


def _cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def _scrambled(content: bytes) -> bytes:
    """The footer is whole, and what it points to is not."""
    return content[:4] + bytes(255 - byte for byte in content[4:400]) + content[400:]


@pytest.mark.parametrize(
    "spoil", [lambda content: b"", lambda content: b"PAR1 and no more", _cut, _scrambled]
)
def test_a_file_that_is_not_parquet_or_broken_is_refused(
    small: Recording, spoil: Callable[[bytes], bytes]
) -> None:
    small.path.write_bytes(spoil(small.path.read_bytes()))
    with pytest.raises(ConfigError, match=r"small\.parquet .*; import the source again\."):
        Recording.open(small.path)


@pytest.mark.parametrize(
    "columns", [{"x": ["a"] * 4}, {"question_id": ["a"] * 3}, {"question_id": ["a"] * 4}, {"question_id": []}]
)
def test_a_table_of_something_else_does_not_fit_its_header(
    small: Recording, columns: dict[str, list[str]]
) -> None:
    pq.write_table(pa.table(columns), small.path)
    with pytest.raises(ConfigError, match=r"does not fit its header .*; import the source again\."):
        Recording.open(small.path)


@pytest.mark.parametrize(
    "columns",
    [{"x": ["a"]}, {"question_id": ["a"]}, {name: ["no number"] for name in COLUMNS}],
)
def test_a_table_of_other_columns_is_refused_though_its_header_fits(
    small: Recording, columns: dict[str, list[str]]
) -> None:
    pq.write_table(pa.table(columns), small.path)
    mend_digest(small)
    with pytest.raises(ConfigError) as caught:
        Recording.open(small.path)
    assert (
        str(caught.value)
        == f"{small.path} does not have the columns of a recording; import the source again."
    )


@pytest.mark.parametrize("path", [".", "..", "/", ""])
def test_a_path_that_names_no_file_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match="there is no such file; a recording is NAME"):
        Recording.open(Path(path))


def test_the_header_alone_is_answered_with_the_file_that_is_wanted(
    small: Recording,
) -> None:
    with pytest.raises(ConfigError) as caught:
        Recording.open(header_path(small.path))
    header = header_path(small.path)
    assert str(caught.value) == f"{header} is a header's name; give the recording itself, {small.path}."


def test_opening_and_counting_leave_no_threads_of_arrows(small: Recording) -> None:
    # At the end of a short process such threads have aborted it, now and then.
    program = (
        "import os, sys, pyarrow.parquet; from pathlib import Path; from podium.recordings import Recording\n"
        "before = len(os.listdir('/proc/self/task')); assert Recording.open(Path(sys.argv[1])).samples('ada') == 2\n"
        "print(len(os.listdir('/proc/self/task')) - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(small.path)],
        env={**os.environ, "OMP_NUM_THREADS": "4"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "0\n"


def test_rows_whose_hash_differs_from_the_header_are_refused(
    small: Recording, make_recording: MakeRecording
) -> None:
    # As a kill between the two replacements at the end of a writing leaves them.
    other = make_recording(
        {
            text: [*reversed(responses)]
            for text, responses in zip(reversed(GIVEN), GIVEN.values(), strict=True)
        },
        name="other",
    )
    shutil.copy(other.path, small.path)
    with pytest.raises(ConfigError, match="does not fit its header"):
        Recording.open(small.path)


def test_a_recording_in_use_is_opened_once_while_its_files_stay(small: Recording) -> None:
    assert Recording.open(small.path) is Recording.open(small.path.parent / "." / small.path.name)
    first = Recording.open(small.path)
    beside = header_path(small.path)
    beside.write_text(json.dumps(json.loads(beside.read_text()) | {"name": "renamed"}))
    second = Recording.open(small.path)
    assert (first.name, second.name) == (small.name, "renamed")
    small.path.write_bytes(b"something else")
    with pytest.raises(ConfigError, match="does not fit its header"):
        Recording.open(small.path)
