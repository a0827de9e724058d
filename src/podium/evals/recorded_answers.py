"""Reads and grades the answers of recorded workers, for ratings and for planners that are selected on recordings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from podium.planners.answers import MAX_ANSWERS, AnswerMatrix, MeasuredAnswer
from podium.tasks.task import Task
from podium.types import Message
from podium.workers.base import Request, Worker
from podium.workers.calculator import CalculatorWorker
from podium.workers.replay import ReplayWorker
from podium.workers.vote import announce, voted_answer


def measurable_workers(
    workers: Iterable[Worker], tasks: Iterable[Task]
) -> list[ReplayWorker | CalculatorWorker]:
    """The workers whose answers can be graded: recorded workers, and calculators if all tasks have gold answers.

    A recorded worker that was never asked a bare question, such as a judge, is left out.
    """
    known = ReplayWorker | CalculatorWorker if all(task.gold for task in tasks) else ReplayWorker
    measured = [worker for worker in workers if isinstance(worker, known)]
    return [worker for worker in measured if not isinstance(worker, ReplayWorker) or worker.samples]


async def read_answers(
    tasks: Sequence[Task], workers: Sequence[ReplayWorker | CalculatorWorker]
) -> AnswerMatrix:
    """Read every worker's answers to every question. R is the largest number of samples, but at least `MAX_ANSWERS`.

    Args:
        tasks: `RecordedTasks` of these workers, each of whose responses can be graded.
    """
    samples = {worker.profile.name: [await _samples(worker, task) for task in tasks] for worker in workers}
    return AnswerMatrix.of([task.question.text for task in tasks], samples, least=MAX_ANSWERS)


async def _samples(worker: ReplayWorker | CalculatorWorker, task: Task) -> list[MeasuredAnswer]:
    count = worker.count(task.question.text) if isinstance(worker, ReplayWorker) else 1
    samples = []
    for r in range(count):
        messages = (Message(role="user", content=task.question.text),)
        reply = await worker.answer(Request(messages, seed="", earlier_calls=r, repeat=r))
        answer = voted_answer(reply.text)
        samples.append(
            MeasuredAnswer(
                answer,
                float((await task.grade(reply.text)).correct),
                worker.profile.price.cost(reply.usage),
                # The counts are arbitrary, since they are not part of the answer.
                None if answer is None else float((await task.grade(announce(answer, 1, 1))).correct),
            )
        )
    return samples
