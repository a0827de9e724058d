"""The questions of a recording as tasks, graded by the recorded verdicts.

The graders ran when the recording was made; they do not run again here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random

from podium.errors import NoTasksError
from podium.reading.same_answer import answer_key
from podium.recordings import RecordedQuestion, Recording
from podium.tasks.task import Grade, Task, TaskList
from podium.types import Question
from podium.workers.base import Worker
from podium.workers.replay import ReplayWorker, with_answer
from podium.workers.vote import vote_key, voted_answer

UNJUDGED = "the recording has no verdict on this answer, and no gold answer to compare it with"
_NAMED_WORKERS = 3
"""The most workers that a warning names."""


class RecordedTasks(TaskList):
    """Questions of one split, shuffled by the seed, so that the first few are a fair sample.

    Args:
        size: the most questions; all of the split by default.
        pool: a question is left out if a recorded worker of the pool never answered it, or if one of their responses
            has no verdict and the question no gold answer. The warnings count these questions.

    Raises:
        NoTasksError: no question is left.
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
        question_filter = _QuestionFilter(
            recording, [worker for worker in pool if isinstance(worker, ReplayWorker)]
        )
        questions = list(filter(question_filter.accepts, recording.questions_of(split)))
        if not questions:
            raise NoTasksError(question_filter.error(split))
        Random(f"recorded/{seed}").shuffle(questions)
        tasks = [_task(recording, question) for question in questions[:size]]
        super().__init__(
            f"{recording.name}/{split}", tasks, seed=None, warnings=tuple(question_filter.warnings())
        )


@dataclass(frozen=True)
class RecordedGrader:
    """Grades responses to one question by the recorded verdicts."""

    recording: Recording
    question: str

    @property
    def identity(self) -> str:
        """What tells its verdicts from those of another recording."""
        return self.recording.header.sha256

    async def __call__(self, response: str, gold: str) -> Grade:
        """Grade a response: by the verdict on the same response, else by the most frequent one on the same answer.

        Without either it is compared with the gold answer; without a gold answer the grade is a failure.
        """
        return self.grade(response, gold)

    def grade(self, response: str, gold: str) -> Grade:
        """Grade a response, without awaiting."""
        stated = voted_answer(response)
        if response in self._score_of_response:
            return Grade(self._score_of_response[response], stated)
        if stated is None:
            return Grade(0.0)
        answer = answer_key(stated)
        if answer in self._score_of_answer:
            return Grade(self._score_of_answer[answer], stated)
        if not gold:
            return Grade(0.0, stated, failure=UNJUDGED)
        return Grade(float(answer == answer_key(gold)), stated)

    @cached_property
    def _verdicts(self) -> tuple[tuple[str, float], ...]:
        responses = self.recording.all_responses(self.question)
        return tuple((with_answer(r), r.score) for r in responses if r.score is not None)

    @cached_property
    def _score_of_response(self) -> Mapping[str, float]:
        return dict(self._verdicts)

    @cached_property
    def _score_of_answer(self) -> Mapping[str, float]:
        scores: dict[str, Counter[float]] = {}
        for text, score in self._verdicts:
            answer = vote_key(text)
            if answer is not None:
                scores.setdefault(answer, Counter())[score] += 1
        # In a tie, the lowest score counts.
        return {answer: max(sorted(seen), key=lambda score: seen[score]) for answer, seen in scores.items()}


@dataclass
class _QuestionFilter:
    """Accepts the questions that can be answered and graded, and counts the others."""

    recording: Recording
    workers: Sequence[ReplayWorker]
    seen: int = 0
    repeated: int = 0
    unanswered: int = 0
    unjudged: int = 0
    unanswered_by: Counter[str] = field(default_factory=Counter)
    """Unanswered questions by worker."""
    ungradable: Counter[str] = field(default_factory=Counter)
    """Questions by worker where one of its responses cannot be graded."""

    def accepts(self, question: RecordedQuestion) -> bool:
        """Whether a question can be answered and graded; counts it either way."""
        self.seen += 1
        if self.recording.find(question.text) is not question:
            self.repeated += 1
            return False
        unanswered_by = [worker.profile.name for worker in self.workers if not worker.knows(question.text)]
        self.unanswered_by.update(unanswered_by)
        ungradable = [] if unanswered_by else self._ungradable(question)
        self.ungradable.update(ungradable)
        self.unanswered += bool(unanswered_by)
        self.unjudged += bool(ungradable)
        return not unanswered_by and not ungradable

    def _ungradable(self, question: RecordedQuestion) -> list[str]:
        if question.gold:
            return []
        verdicts = RecordedGrader(self.recording, question.text)
        return [
            worker.profile.name
            for worker in self.workers
            if any(verdicts.grade(with_answer(r), "").failure for r in worker.responses(question.text))
        ]

    def warnings(self) -> Iterator[str]:
        """What was left out, and why, half a sentence each."""
        reasons = (
            (self.repeated, "since another one has the same text", ""),
            (self.unanswered, "since a worker of the pool never answered them", _most(self.unanswered_by)),
            (
                self.unjudged,
                "since they have no gold answer, and a response without a verdict",
                _most(self.ungradable),
            ),
        )
        for count, reason, who in reasons:
            if count:
                yield f"{count:,} of {self.seen:,} questions are left out, {reason}{who}"

    def error(self, split: str) -> str:
        """Why no question is left."""
        if self.unjudged:
            return (
                f"{self.recording.path} has no question of the split {split!r} whose answers can be graded: it has "
                "neither verdicts nor gold answers for them; import it again with one of the two."
            )
        return (
            f"{self.recording.path} has no question of the split {split!r} that every recorded worker of the pool "
            "answered; take workers of one recording."
        )


def _most(counts: Counter[str]) -> str:
    """The largest counts, in brackets."""
    named = ", ".join(f"{name}: {count:,}" for name, count in counts.most_common(_NAMED_WORKERS))
    others = len(counts) - _NAMED_WORKERS
    return f" ({named}{f', and {others} more' if others > 0 else ''})"


def _task(recording: Recording, question: RecordedQuestion) -> Task:
    return Task(
        id=f"{recording.name}/{question.id}",
        question=Question(text=question.text),
        gold=question.gold or "",
        grader=RecordedGrader(recording, question.text),
        facts={} if question.family is None else {"family": question.family},
    )
