"""The questions of a recording as tasks: an answer is graded by the verdict that the recording holds on it.

So graders of any kind, run once by the recording's source, serve here without being run again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from random import Random

from podium.errors import ConfigError
from podium.recordings import RecordedQuestion, Recording
from podium.tasks.listed import ListedTasks
from podium.tasks.task import Grade, Task
from podium.types import Question
from podium.workers.answer import final_answer, normalise
from podium.workers.base import Worker
from podium.workers.replay import ReplayWorker, with_answer


class RecordedTasks(ListedTasks):
    """Questions of one split, shuffled by the seed, so that the first few are a fair sample.

    Args:
        size: None: all of the split; it is never more than that.
        pool: questions that one of its recorded workers never answered are left out.

    Raises:
        ConfigError: nothing is left to ask.
    """

    def __init__(
        self,
        recording: Recording,
        split: str,
        *,
        size: int | None = None,
        seed: int = 0,
        pool: Iterable[Worker] = (),
    ) -> None:
        replayed = [worker for worker in pool if isinstance(worker, ReplayWorker)]
        questions = [
            question
            for question in recording.of_split(split)
            if all(worker.knows(question.text) for worker in replayed)
        ]
        if not questions:
            raise ConfigError(
                f"{recording.path} has no question of the split {split!r} that every recorded worker of the pool "
                "answered; take workers of one recording."
            )
        Random(f"recorded/{seed}").shuffle(questions)
        tasks = [_task(recording, question) for question in questions[:size]]
        super().__init__(f"{recording.name}/{split}", tasks, seed=None)


@dataclass(frozen=True)
class Verdicts:
    """Grades responses to one question by those that the recording holds."""

    recording: Recording
    question: str

    async def __call__(self, response: str, gold: str) -> Grade:
        """The verdict on this very response; else on this answer, that of most; else whether it is the gold one."""
        found = final_answer(response)
        if response in self._on_responses:
            return Grade(self._on_responses[response], found)
        if found is None:
            return Grade(0.0)
        answer = normalise(found)
        return Grade(self._on_answers.get(answer, float(bool(gold) and answer == normalise(gold))), found)

    @cached_property
    def _judged(self) -> tuple[tuple[str, float], ...]:
        given = self.recording.responses(self.question).values()
        return tuple((with_answer(r), r.score) for samples in given for r in samples if r.score is not None)

    @cached_property
    def _on_responses(self) -> Mapping[str, float]:
        return dict(self._judged)

    @cached_property
    def _on_answers(self) -> Mapping[str, float]:
        scores: dict[str, Counter[float]] = {}
        for text, score in self._judged:
            answer = final_answer(text)
            if answer is not None:
                scores.setdefault(normalise(answer), Counter())[score] += 1
        # Of verdicts that are equally frequent the lowest: an answer is not right by half.
        return {answer: max(sorted(seen), key=lambda score: seen[score]) for answer, seen in scores.items()}


def _task(recording: Recording, question: RecordedQuestion) -> Task:
    return Task(
        id=f"{recording.name}/{question.id}",
        question=Question(text=question.text),
        gold=question.gold or "",
        grader=Verdicts(recording, question.text),
        facts={} if question.family is None else {"family": question.family},
    )
