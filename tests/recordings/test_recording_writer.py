"""RecordingWriter responses: what is written is read back, and nothing is written by halves."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.errors import StoreError, UsageError
from podium.recordings import (
    RecordedQuestion,
    RecordedResponse,
    RecordedWorker,
    Recording,
    RecordingHeader,
    RecordingWriter,
    header_path,
    split_by_hash,
)
from podium.types import Price

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
COUNTS = st.none() | st.integers(0, 2**31 - 1)
QUESTIONS = st.lists(
    st.builds(
        RecordedQuestion,
        TEXTS,
        TEXTS,
        st.none() | TEXTS,
        st.none() | TEXTS,
        st.sampled_from([None, "train", "ü"]),
    ),
    min_size=1,
    max_size=4,
    unique_by=(lambda question: question.id, lambda question: question.text.strip()),
)
RESPONSES = st.lists(
    st.builds(
        RecordedResponse,
        worker=st.sampled_from(["a", "b/c", "ß \U0001f600", ""]),
        sample=st.integers(0, 3),
        text=TEXTS,
        answer=st.none() | TEXTS,
        score=st.none() | st.sampled_from([0.0, 0.5, 1.0]) | st.floats(0, 1, width=32),
        input_tokens=COUNTS,
        output_tokens=COUNTS,
        estimated=st.booleans(),
        seconds=st.none() | st.floats(0, 1e6, width=32),
    ),
    min_size=1,
    max_size=6,
    unique_by=lambda response: (response.worker, response.sample),
)


def question(id_: str, text: str | None = None) -> RecordedQuestion:
    return RecordedQuestion(id_, f"What is {id_}?" if text is None else text, "4", "sums", "test")


def numbered(responses: Sequence[RecordedResponse]) -> list[RecordedResponse]:
    """With samples counted from 0 for each worker, in the order of the numbers that they have."""
    count: Counter[str] = Counter()
    after = []
    for response in sorted(responses, key=lambda one: one.sample):
        after.append(replace(response, sample=count[response.worker]))
        count[response.worker] += 1
    return after


def gather(writer: RecordingWriter, *ids: str, text: str = "Answer: 4") -> None:
    for id_ in ids:
        writer.add_question(question(id_))
        writer.add(id_, RecordedResponse("ada", 0, text, "4", 1.0))


@given(QUESTIONS, st.data())
def test_written_recording_is_read_back_unchanged(asked: list[RecordedQuestion], data: st.DataObject) -> None:
    kept = {each.id: data.draw(RESPONSES) for each in asked}
    with TemporaryDirectory() as folder, RecordingWriter() as writer:
        for each in asked:
            writer.add_question(each)
            for response in data.draw(st.permutations(kept[each.id])):
                assert writer.add(each.id, response)
        header = writer.write(Path(folder) / "made.parquet", name="ö")
        recording = Recording.open(Path(folder) / "made.parquet")
    everything = [response for responses in kept.values() for response in responses]
    kept = {id_: numbered(responses) for id_, responses in kept.items()}
    assert recording.header == header
    assert set(recording.questions) == set(asked)
    assert len(recording.questions) == len(asked)
    for each in asked:
        assert recording.find(each.text) == each
        read = recording.responses(each.text)
        assert all(list(samples) == sorted(samples, key=lambda one: one.sample) for samples in read.values())
        assert {one for samples in read.values() for one in samples} == set(kept[each.id])
        assert all(one.worker == worker for worker, samples in read.items() for one in samples)
    assert (header.name, header.questions, header.responses) == ("ö", len(asked), len(everything))
    assert header.splits == Counter(each.split for each in asked if each.split is not None)
    assert {worker.name: worker.responses for worker in header.workers} == Counter(
        r.worker for r in everything
    )
    for worker in header.workers:
        judged = [r for r in everything if r.worker == worker.name and r.score is not None]
        right = fmean(r.correct for r in judged) if judged else None
        assert worker.judged == len(judged)
        assert worker.accuracy == (None if right is None else pytest.approx(right))


def test_many_more_rows_than_one_batch_are_read_back(tmp_path: Path) -> None:
    with RecordingWriter() as writer:
        for number in range(900):
            writer.add_question(question(f"{number:04}"))
            for sample in range(5):
                writer.add(f"{number:04}", RecordedResponse("ada", sample, f"{number}/{sample}"))
        writer.write(tmp_path / "many.parquet", name="many")
    recording = Recording.open(tmp_path / "many.parquet")
    assert len(recording.questions) == 900
    for number in (0, 818, 819, 820, 899):  # Rows of one question lie on both sides of the batch's end.
        (samples,) = recording.responses(f"What is {number:04}?").values()
        assert [response.text for response in samples] == [f"{number}/{sample}" for sample in range(5)]


def test_the_first_question_of_an_id_and_response_of_a_sample_stay(tmp_path: Path) -> None:
    with RecordingWriter() as writer:
        writer.add_question(question("a", "one?"))
        writer.add_question(question("a", "two?"))
        assert writer.add("a", RecordedResponse("ada", 0, "first"))
        assert not writer.add("a", RecordedResponse("ada", 0, "second"))
        assert writer.find("a", "ada", 0)
        assert not writer.find("a", "ada", 1)
        writer.write(tmp_path / "r.parquet", name="r")
    (samples,) = Recording.open(tmp_path / "r.parquet").responses("one?").values()
    assert [response.text for response in samples] == ["first"]


def test_repeated_wordings_and_unanswered_questions_are_left_out_counted(tmp_path: Path) -> None:
    with RecordingWriter() as writer:
        gather(writer, "a", "b")
        for id_ in ("x", "y"):
            writer.add_question(question(id_, "What is a?"))
            writer.add(id_, RecordedResponse("ada", 0, "Answer: 9", "9", 0.0))
        writer.add_question(question("z"))
        header = writer.write(tmp_path / "r.parquet", name="r", left_out=["3 rows of old."])
    assert (header.questions, header.responses, header.workers[0].accuracy) == (2, 2, 1.0)
    assert header.left_out == (
        "3 rows of old.",
        "questions whose wording another one has too (2)",
        "questions that no worker answered (1)",
    )
    assert [each.id for each in Recording.open(tmp_path / "r.parquet").questions] == ["a", "b"]


def test_writer_keeps_the_answered_question_of_two_equal_questions(tmp_path: Path) -> None:
    with RecordingWriter() as writer:
        gather(writer, "b")
        writer.add_question(question("a", "What is b?"))
        header = writer.write(tmp_path / "r.parquet", name="r")
    assert (header.questions, header.responses) == (1, 1)


@pytest.mark.parametrize("asked", [[], ["a"]])
def test_writer_without_responses_is_refused_and_writes_no_file(tmp_path: Path, asked: list[str]) -> None:
    with RecordingWriter() as writer:
        for id_ in asked:
            writer.add_question(question(id_))
        with pytest.raises(UsageError, match="There is no response to write"):
            writer.write(tmp_path / "r.parquet", name="r")
    assert list(tmp_path.iterdir()) == []


def test_if_no_answer_is_left_the_reasons_are_reported(tmp_path: Path) -> None:
    with RecordingWriter() as writer:
        writer.add_question(question("a"))
        with pytest.raises(UsageError) as caught:
            writer.write(tmp_path / "r.parquet", name="r", left_out=["rows of nobody (3)"])
    assert str(caught.value) == (
        "There is no response to write: left out are rows of nobody (3); questions that no worker answered (1); "
        "check what was given as the source."
    )


def test_written_header_has_the_file_hash_and_known_worker_facts(tmp_path: Path) -> None:
    known = {
        "ada": RecordedWorker(
            name="ada", description="Sums.", price=Price(input=1.0), published=0.5, responses=9
        )
    }
    path = tmp_path / "r.parquet"
    with RecordingWriter() as writer:
        gather(writer, "a")
        writer.add("a", RecordedResponse("bob", 0, "", None, None))
        header = writer.write(path, name="r", source="here", licence="MIT", known=known)
    ada, bob = header.workers
    assert ada == known["ada"].model_copy(update={"responses": 1, "judged": 1, "accuracy": 1.0})
    assert bob == RecordedWorker(name="bob", responses=1)
    assert RecordingHeader.model_validate_json(header_path(path).read_bytes()) == header
    assert header.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["r.json", "r.parquet"]


def test_failed_write_keeps_the_previous_recording(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    with RecordingWriter() as writer:
        gather(writer, "a")
        header = writer.write(path, name="r")
        before = path.read_bytes()
        writer.add(
            "a", RecordedResponse("ada", 1, "more tokens than the file's column can hold", input_tokens=2**40)
        )
        with pytest.raises((ValueError, OverflowError)):
            writer.write(path, name="r")
        assert path.read_bytes() == before
        assert Recording.open(path).header == header


def test_failed_header_write_leaves_no_parquet_file(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    (tmp_path / f".r.json.{os.getpid()}.part").mkdir()
    with RecordingWriter() as writer:
        gather(writer, "a")
        with pytest.raises(StoreError, match="directory"):
            writer.write(path, name="r")
    assert not path.exists()
    assert not header_path(path).exists()


def test_the_header_is_json_that_people_can_read(tmp_path: Path) -> None:
    with RecordingWriter() as writer:
        gather(writer, "a")
        writer.write(tmp_path / "r.parquet", name="größer")
    text = (tmp_path / "r.json").read_text(encoding="utf-8")
    assert '"name": "größer"' in text
    assert json.loads(text)["questions"] > 0


def test_splits_by_hash_are_for_ever_and_about_70_15_and_15_percent() -> None:
    first = ["train", "test", "train", "train", "train", "train", "test", "train"]
    assert [split_by_hash(f"q{number}") for number in range(8)] == first
    counts = Counter(split_by_hash(f"question {number}") for number in range(10_000))
    assert counts["train"] / 10_000 == pytest.approx(0.70, abs=0.02)
    assert counts["validation"] / 10_000 == pytest.approx(0.15, abs=0.02)
    assert counts["test"] / 10_000 == pytest.approx(0.15, abs=0.02)
