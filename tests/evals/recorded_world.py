"""Recordings made for evaluations: a random one, and one whose every figure can be worked out by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from random import Random

from podium.recordings import RecordedQuestion, RecordedResponse, Recording, RecordingWriter
from podium.tasks.recorded import RecordedTasks
from podium.tasks.task import Task
from podium.types import Price
from podium.workers import Pool, VoteWorker, Worker
from podium.workers.replay import ReplayWorker
from podium.workers.spec import ReplaySpec

TOKENS = 100
"""Of every response in the world made by hand."""
PRICES = {"ada": 1.0, "bob": 1.0, "cy": 4.0}
"""Dollars per million of them: so `UNIT` is what an answer of ada or bob costs."""
UNIT = TOKENS / 1e6
FAMILIES = ("sums", "words")
SAMPLES = 3
TRAIN, TEST = range(12), range(12, 20)
"""Numbers of the questions, in each family."""
Right = Callable[[str, str, int, int], bool]
Row = tuple[RecordedQuestion, Sequence[RecordedResponse]]


def write_recording(path: Path, rows: Iterable[Row], *, name: str = "made") -> Recording:
    """The rows as a recording's file, opened."""
    with RecordingWriter() as writer:
        for question, responses in rows:
            writer.add_question(question)
            for response in responses:
                writer.add(question.id, response)
        writer.write(path, name=name)
    return Recording.open(path)


def replayed(recording: Recording, prices: Mapping[str, float] = PRICES) -> list[ReplayWorker]:
    """Every worker of the recording."""
    return [
        ReplayWorker(
            ReplaySpec(name=name, price=Price(output=prices.get(name, 1.0)), recording=recording.path),
            recording,
        )
        for name in recording.workers
    ]


def pool_of(recording: Recording, *others: Worker, prices: Mapping[str, float] = PRICES) -> Pool:
    """Every worker of the recording, the vote, and others."""
    return Pool([*replayed(recording, prices), VoteWorker(), *others])


def tasks_of(recording: Recording, split: str) -> list[Task]:
    """All questions of a split, in the order of the seed 0."""
    return list(RecordedTasks(recording, split))


def right(worker: str, family: str, number: int, sample: int) -> bool:
    """ada knows sums, bob words (and says otherwise at times), cy is right by halves."""
    if worker == "cy":
        return (number + sample) % 2 == 0
    if (worker, family) == ("ada", "sums"):
        return number % 5 != 4
    if (worker, family) == ("ada", "words"):
        return number % 3 == 0
    usual = number % 5 != 3 if family == "words" else number % 4 == 0
    return usual != (sample == 1 and number % 6 == 0)


def world(is_right: Right = right, *, flipped: Sequence[str] = (), train_tokens: int = TOKENS) -> list[Row]:
    """The questions of the world made by hand.

    Args:
        is_right: (worker, family, number, sample) -> whether that answer is "yes" and not "no WORKER".
        flipped: splits in which every verdict is the other one, of the same answers.
        train_tokens: of every response to a training question.
    """
    rows = []
    for split, numbers in (("train", TRAIN), ("test", TEST)):
        for family in FAMILIES:
            for number in numbers:
                text = f"Add {number} and {number + 7} apples." if family == "sums" else spelled(number)
                responses = []
                for worker in PRICES:
                    for sample in range(SAMPLES):
                        good = is_right(worker, family, number, sample)
                        responses.append(
                            RecordedResponse(
                                worker,
                                sample,
                                f"Answer: {'yes' if good else f'no {worker}'}",
                                score=float(good != (split in flipped)),
                                input_tokens=50,
                                output_tokens=TOKENS if split == "test" else train_tokens,
                            )
                        )
                question = RecordedQuestion(f"{family}{number}", text, "yes", family, split)
                rows.append((question, responses))
    return rows


def spelled(number: int) -> str:
    """A question of the family of words."""
    return f"Spell the word of {number} backwards, letter by letter."


def random_rows(random: Random, samples: Mapping[str, int], *, questions: int) -> list[Row]:
    """Answers in every dress, equal ones often, some empty; equal answers have equal verdicts.

    Args:
        samples: of each worker, by name.
    """
    rows = []
    for number in range(questions):
        verdicts = {answer: random.random() < 0.5 for answer in ("a", "b", "1 2\n3 4")}
        responses = []
        for worker, count in samples.items():
            tokens = random.randint(10, 200)
            for sample in range(count):
                answer = random.choice([*verdicts, ""])
                text, found = _dressed(random, answer)
                score = float(verdicts.get(answer, False))
                responses.append(RecordedResponse(worker, sample, text, found, score, 0, tokens))
        rows.append((RecordedQuestion(f"q{number}", f"Question {number}?", None, None, "train"), responses))
    return rows


def _dressed(random: Random, answer: str) -> tuple[str, str | None]:
    """A response that says the answer, and what the recording knows of it."""
    if not answer:
        return random.choice([("", None), (" \n", None)])
    dresses: list[tuple[str, str | None]] = [
        (f"Let me see.\n<answer>{answer}</answer>", None),
        (f"Let me see.\n<answer> {answer.upper()}. </answer>", answer),
        ("It must be what I think.", answer),
        ("Answer: what I thought.", f"{answer}."),
        (answer, answer),
    ]
    if "\n" not in answer:
        dresses += [(f"Well.\n**Answer:** {answer.upper()}.\nSo it is.", None), (f"answer: {answer}", answer)]
    return random.choice(dresses)
