"""The questions of a recording as tasks, graded by the recorded verdicts.

The graders ran when the recording was made; they do not run again here.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from random import Random

from podium.errors import NoTasksError
from podium.recordings import RecordedQuestion, Recording
from podium.tasks.task import Grade, Task, TaskList
from podium.text.same_answer import answer_key
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
        workers = [worker for worker in pool if isinstance(worker, ReplayWorker)]
        listed = list(recording.questions_of(split))
        left_out: dict[str, list[Sequence[str]]] = defaultdict(list)
        questions = []
        for question in listed:
            reason, names = _why_left_out(question, recording, workers)
            if reason:
                left_out[reason].append(names)
            else:
                questions.append(question)
        warnings = [
            f"{len(by):,} of {len(listed):,} questions are left out, since {reason}{_most(chain.from_iterable(by))}"
            for reason, by in left_out.items()
        ]
        if not questions:
            why = f" ({'; '.join(warnings)})" if warnings else ""
            raise NoTasksError(
                f"{recording.path} has no question of the split {split!r} that every recorded worker of the pool "
                f"answered, and whose answers can be graded{why}; take workers of one recording, and import verdicts "
                "or gold answers."
            )
        Random(f"recorded/{seed}").shuffle(questions)
        tasks = [_task(recording, question) for question in questions[:size]]
        super().__init__(f"{recording.name}/{split}", tasks, seed=None, warnings=warnings)


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


def _why_left_out(
    question: RecordedQuestion, recording: Recording, workers: Sequence[ReplayWorker]
) -> tuple[str, Sequence[str]]:
    """Why a question cannot be answered or graded, or nothing, and the workers of which this is so."""
    if recording.find(question.text) is not question:
        return "another one has the same text", ()
    unknown = [worker.profile.name for worker in workers if not worker.knows(question.text)]
    if unknown or question.gold:
        return "a worker of the pool never answered them" if unknown else "", unknown
    verdicts = RecordedGrader(recording, question.text)
    ungradable = [
        worker.profile.name
        for worker in workers
        if any(verdicts.grade(with_answer(r), "").failure for r in worker.responses(question.text))
    ]
    return "they have no gold answer, and a response without a verdict" if ungradable else "", ungradable


def _most(names: Iterable[str]) -> str:
    """The names that occur most, with their numbers, in brackets. Nothing if there are none."""
    counts = Counter(names).most_common()
    named = ", ".join(f"{name}: {count:,}" for name, count in counts[:_NAMED_WORKERS])
    others = f", and {len(counts) - _NAMED_WORKERS} more" if len(counts) > _NAMED_WORKERS else ""
    return f" ({named}{others})" if counts else ""


def _task(recording: Recording, question: RecordedQuestion) -> Task:
    return Task(
        id=f"{recording.name}/{question.id}",
        question=Question(text=question.text),
        gold=question.gold or "",
        grader=RecordedGrader(recording, question.text),
        facts={} if question.family is None else {"family": question.family},
    )
