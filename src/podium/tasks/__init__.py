"""Questions that can be graded: tasks, graders, and the sets that tasks come from."""

from podium.tasks.open import open_tasks
from podium.tasks.task import Grade, Grader, Task, TaskSet

__all__ = ["Grade", "Grader", "Task", "TaskSet", "open_tasks"]
