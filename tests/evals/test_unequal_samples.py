"""Workers with different numbers of samples: whichever is first, each gives all of its own before it repeats one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from podium.evals.rating import read_answers
from podium.planners.answer_matrix import AnswerMatrix, committee_accuracy, committee_cost
from podium.recordings import RecordedQuestion, RecordedResponse
from recorded_world import random_rows, replayed, tasks_of, write_recording

Given = Sequence[Mapping[str, str]]
"""Of each question what each worker says in turn, a letter a sample; capitals are right."""


async def answers_of(folder: Path, given: Given) -> AnswerMatrix:
    rows = []
    for number, by_worker in enumerate(given):
        said = [
            RecordedResponse(
                worker, sample, f"Answer: {letter}", score=float(letter.isupper()), output_tokens=100
            )
            for worker, letters in by_worker.items()
            for sample, letter in enumerate(letters)
        ]
        rows.append((RecordedQuestion(f"q{number}", f"Question {number}?", None, None, "train"), said))
    recording = write_recording(folder / "r.parquet", rows)
    return await read_answers(tasks_of(recording, "train"), replayed(recording))


def random_given(random: Random, most: int = 4) -> Given:
    """As many samples as it happens, for each worker and question anew."""
    return [
        {
            worker: "".join(random.choices("Abcd", k=random.randint(1, most)))
            for worker in ("ada", "bob", "cy")
        }
        for _ in range(12)
    ]


async def test_worker_with_two_samples_uses_both_beside_workers_with_three(tmp_path: Path) -> None:
    answers = await answers_of(tmp_path, [{"ada": "Abc", "bob": "Ab"}])
    bob = answers.workers.index("bob")
    for turn in answers.rotations:
        first, second = turn.answers_of((bob, bob))[0]
        assert first != second
    assert committee_accuracy(answers, (bob,)).tolist() == answers.score_QW[:, bob].tolist() == [0.5]
    # Of two that differ the first wins, and each is first as often as the other.
    assert committee_accuracy(answers, (bob, bob)).tolist() == [0.5]


@pytest.mark.parametrize("seed", range(5))
async def test_mean_accuracy_over_rotations_equals_the_sample_accuracy(tmp_path: Path, seed: int) -> None:
    answers = await answers_of(tmp_path, random_given(Random(f"alone/{seed}")))
    for worker in range(3):
        assert committee_accuracy(answers, (worker,)).tolist() == answers.score_QW[:, worker].tolist()


@pytest.mark.parametrize("seed", range(3))
async def test_rotation_equals_reading_a_recording_with_rotated_samples(tmp_path: Path, seed: int) -> None:
    given = random_given(Random(f"turned/{seed}"))
    answers = await answers_of(tmp_path, given)
    for first in range(1, 7):
        later = [
            {worker: said[first % len(said) :] + said[: first % len(said)] for worker, said in row.items()}
            for row in given
        ]
        turned, read = answers.rotated(first), await answers_of(tmp_path, later)
        assert (turned.alone_QWR == read.alone_QWR).all()
        for members in ((0, 0), (1, 1, 1, 2), (2, 0, 1), (0, 0, 0, 2, 2)):
            assert turned.vote_scores(members).tolist() == read.vote_scores(members).tolist()
            assert turned.agreement(members).tolist() == read.agreement(members).tolist()


async def test_committee_cost_is_the_mean_over_rotations(tmp_path: Path) -> None:
    """bob says one thing twice, or never: with two samples that differ, a third answer is always needed."""
    answers = await answers_of(tmp_path, [{"ada": "Abc", "bob": "Ab"}, {"ada": "Abc", "bob": "AA"}])
    bob = answers.workers.index("bob")
    one = answers.cost_QW[0, bob]
    by_text = dict(zip(answers.texts, committee_cost(answers, (bob, bob, bob), early_stop=True), strict=True))
    assert by_text == pytest.approx({"Question 0?": 3 * one, "Question 1?": 2 * one})


async def test_rotations_are_capped_and_nearly_uniform_for_many_sample_counts(tmp_path: Path) -> None:
    answers = await answers_of(tmp_path, [{"ada": "A" * 3 + "b" * 4, "bob": "Abbbbbbb", "cy": "AAbbbbbbb"}])
    assert len([*answers.rotations]) == 18
    for worker in range(3):
        assert committee_accuracy(answers, (worker,)) == pytest.approx(
            answers.score_QW[:, worker], abs=1 / 12
        )


@pytest.mark.parametrize("samples", [1, 2, 3, 7])
async def test_equal_sample_counts_rotate_in_sample_order(tmp_path: Path, samples: int) -> None:
    rows = random_rows(Random("equal"), dict.fromkeys(("ada", "bob"), samples), questions=8)
    recording = write_recording(tmp_path / "r.parquet", rows)
    answers = await read_answers(tasks_of(recording, "train"), replayed(recording))
    assert len([*answers.rotations]) == samples
    assert answers.own_samples_QW is None
    counted = replace(answers, own_samples_QW=np.full((8, 2), samples))
    for first, turn in enumerate(answers.rotations):
        order = [(first + repeat) % samples for repeat in range(answers.alone_QWR.shape[2])]
        for turned in (turn, counted.rotated(first)):
            assert (turned.answer_QWR == answers.answer_QWR[:, :, order]).all()
            assert (turned.alone_QWR == answers.alone_QWR[:, :, order]).all()
            assert (turned.voted_QWR == answers.voted_QWR[:, :, order]).all()


async def test_repeated_committee_member_agrees_only_if_its_next_sample_does(tmp_path: Path) -> None:
    given = [{"ada": "Abc", "bob": "bbA"}, {"ada": "AAb", "bob": "ccc"}]
    answers = await answers_of(tmp_path, given)
    agreed = [
        dict(zip(answers.texts, answers.agreement(members).tolist(), strict=True))
        for members in ((0, 0, 0), (1, 1, 1), (0, 0, 1))
    ]
    assert [counts["Question 0?"] for counts in agreed] == [1, 2, 2]
    assert [counts["Question 1?"] for counts in agreed] == [2, 3, 2]
    assert answers.unanimous((0, 0)).tolist() == [text == "Question 1?" for text in answers.texts]


async def test_uncached_rotations_give_the_same_accuracy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = await answers_of(tmp_path, random_given(Random("kept")))
    kept = [committee_accuracy(answers, plan).tolist() for plan in ((0,), (0, 1), (1, 1, 2))]
    monkeypatch.setattr("podium.planners.answer_matrix._MAX_KEPT_ANSWERS", 0)
    assert [committee_accuracy(answers, plan).tolist() for plan in ((0,), (0, 1), (1, 1, 2))] == kept
