"""A table of questions as a task of Inspect's, graded by a scorer of Inspect's."""

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import answer

from podium.tasks import open_tasks


@task
def sums(table: str, size: int = 20) -> Task:
    tasks = open_tasks(table, "test", size=size, seed=0)
    samples = [Sample(input=one.question.text, target=one.gold, id=one.id) for one in tasks]
    return Task(dataset=samples, scorer=answer("line"))
