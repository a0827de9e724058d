"""Questions that can be graded: tasks, graders, and the sets that tasks come from."""

from podium.tasks.open import ALL, open_tasks
from podium.tasks.task import Grade, Grader, Task, TaskSet, told

__all__ = ["ALL", "Grade", "Grader", "Task", "TaskSet", "open_tasks", "told"]
