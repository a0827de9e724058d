"""The questions of a recording as tasks: an answer is graded by the verdict that the recording holds on it.

So graders of any kind, run once by the recording's source, serve here without being run again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random

from podium.errors import ConfigError
from podium.recordings import RecordedQuestion, Recording
from podium.tasks.task import Grade, Task, TaskList
from podium.types import Question
from podium.workers.answer import final_answer, normalise
from podium.workers.base import Worker
from podium.workers.replay import ReplayWorker, with_answer
from podium.workers.tool import is_result
from podium.workers.vote import NOTHING

UNJUDGED = "nobody judged this answer, and there is no gold answer to compare it with"
_NAMED = 3
"""Workers that a note names, at most."""


class RecordedTasks(TaskList):
    """Questions of one split, shuffled by the seed, so that the first few are a fair sample.

    Args:
        size: None: all of the split; it is never more than that.
        pool: questions are left out that one of its recorded workers never answered, or that have neither a gold
            answer nor a verdict on one of its responses; the notes count them.

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
        question_filter = _QuestionFilter(
            recording, [worker for worker in pool if isinstance(worker, ReplayWorker)]
        )
        questions = [question for question in recording.of_split(split) if question_filter.accepts(question)]
        if not questions:
            raise ConfigError(question_filter.refusal(split))
        Random(f"recorded/{seed}").shuffle(questions)
        tasks = [_task(recording, question) for question in questions[:size]]
        super().__init__(
            f"{recording.name}/{split}", tasks, seed=None, warnings=tuple(question_filter.warnings())
        )


@dataclass(frozen=True)
class RecordedGrader:
    """Grades responses to one question by those that the recording holds."""

    recording: Recording
    question: str

    async def __call__(self, response: str, gold: str) -> Grade:
        """The verdict on this very response; else on this answer, that of most; else whether it is the gold one.

        Without a gold answer what nobody judged cannot be graded.
        """
        return self.grade(response, gold)

    def grade(self, response: str, gold: str) -> Grade:
        """The same, at once."""
        found = final_answer(response)
        if response in self._on_responses:
            return Grade(self._on_responses[response], found)
        if found is None or response == NOTHING or not is_result(response):
            return Grade(0.0)
        answer = normalise(found)
        if answer in self._on_answers:
            return Grade(self._on_answers[answer], found)
        if not gold:
            return Grade(0.0, found, failure=UNJUDGED)
        return Grade(float(answer == normalise(gold)), found)

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


@dataclass
class _QuestionFilter:
    """Lets the questions through that can be asked and graded, and counts the others."""

    recording: Recording
    workers: Sequence[ReplayWorker]
    seen: int = 0
    repeated: int = 0
    unanswered: int = 0
    unjudged: int = 0
    lacking: Counter[str] = field(default_factory=Counter)
    """Of each worker, unanswered questions."""
    doubtful: Counter[str] = field(default_factory=Counter)
    """Of each worker, questions to which a response of its cannot be graded."""

    def accepts(self, question: RecordedQuestion) -> bool:
        """Whether it can; counted either way."""
        self.seen += 1
        if self.recording.find(question.text) is not question:
            self.repeated += 1
            return False
        lacking = [worker.profile.name for worker in self.workers if not worker.knows(question.text)]
        self.lacking.update(lacking)
        doubtful = [] if lacking else self._doubtful(question)
        self.doubtful.update(doubtful)
        self.unanswered += bool(lacking)
        self.unjudged += bool(doubtful)
        return not lacking and not doubtful

    def _doubtful(self, question: RecordedQuestion) -> list[str]:
        if question.gold:
            return []
        verdicts = RecordedGrader(self.recording, question.text)
        return [
            worker.profile.name
            for worker in self.workers
            if any(verdicts.grade(with_answer(r), "").failure for r in worker.responses(question.text))
        ]

    def warnings(self) -> Iterator[str]:
        """What was left out, and why."""
        reasons = (
            (self.repeated, "since another one has their wording", ""),
            (self.unanswered, "since a worker of the pool never answered them", _most(self.lacking)),
            (
                self.unjudged,
                "since they have no gold answer, and a response that nobody judged",
                _most(self.doubtful),
            ),
        )
        for count, reason, who in reasons:
            if count:
                yield f"{count:,} of {self.seen:,} questions are left out, {reason}{who}"

    def refusal(self, split: str) -> str:
        """Why nothing is left."""
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
    """Those that are counted most often, in brackets."""
    named = ", ".join(f"{name}: {count:,}" for name, count in counts.most_common(_NAMED))
    others = len(counts) - _NAMED
    return f" ({named}{f', and {others} more' if others > 0 else ''})"


def _task(recording: Recording, question: RecordedQuestion) -> Task:
    return Task(
        id=f"{recording.name}/{question.id}",
        question=Question(text=question.text),
        gold=question.gold or "",
        grader=RecordedGrader(recording, question.text),
        facts={} if question.family is None else {"family": question.family},
    )
