"""For the groups `podium.task_sets`, `podium.generated_tasks` and `podium.graders`."""

from podium.tasks.graders.base import GraderSettings, PureGrader
from podium.tasks.graders.extraction import extract
from podium.tasks.sets.base import Sample, TaskSetSpec
from podium.tasks.task import GeneratedTasks, Grade, Task

__all__ = [
    "GeneratedTasks",
    "Grade",
    "GraderSettings",
    "PureGrader",
    "Sample",
    "Task",
    "TaskSetSpec",
    "extract",
]
