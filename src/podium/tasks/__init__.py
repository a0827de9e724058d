"""Questions that can be graded: tasks, graders, and the sets that tasks come from."""

from podium.tasks.open import ALL_TASKS, open_tasks
from podium.tasks.task import Grade, Grader, Task, TaskSet, warnings_of

__all__ = ["ALL_TASKS", "Grade", "Grader", "Task", "TaskSet", "open_tasks", "warnings_of"]
