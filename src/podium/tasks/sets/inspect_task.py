"""Inspect tasks as task sets: any task that has a scorer, from a package or a file.

Source, licence and prompt come from the task: its solver asks the question, and its scorer grades the answer
(`inspect_samples`). The only split is test, because an Inspect dataset has no splits. Loading a task runs its code.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from podium.config import suggestion
from podium.errors import ConfigError, GraderError, UsageError
from podium.tasks.overlap import question_key
from podium.tasks.sets.base import BadRow, LoadedSplit, TaskSetSpec
from podium.tasks.task import Task

if TYPE_CHECKING:
    import inspect_ai


class InspectTask(TaskSetSpec):
    """An Inspect task, `set = "inspect"` in task files."""

    set: Literal["inspect"] = "inspect"
    task: str
    """The task's name in Inspect: package/task, or file.py@task."""
    args: Mapping[str, Any] = {}
    """Arguments of the task, as `inspect eval` takes them with -T."""
    solver: Literal["task", "plain"] = "task"
    """`task`: the task's solver writes the prompt. `plain`: the prompt is the input, with lettered choices."""
    on_bad_row: BadRow = "refuse"

    @property
    def label(self) -> str:
        return self.task.rpartition("@")[2]

    @property
    def source_splits(self) -> tuple[str, ...]:
        return ("test",)

    def with_base_dir(self, folder: Path) -> Self:
        file, at, name = self.task.rpartition("@")
        return self.model_copy(update={"task": f"{folder / file}@{name}"}) if at else self

    def read_splits(self, splits: Collection[str]) -> Mapping[str, LoadedSplit]:
        if find_spec("inspect_ai") is None:
            raise ConfigError(
                "Inspect's tasks need inspect-ai; install it with: pip install 'podium-conductor[inspect]'."
            )
        loaded = self._load()
        # In a thread, because solvers need an event loop, and the caller may be running one.
        with ThreadPoolExecutor(1) as thread:
            return {"test": thread.submit(asyncio.run, self._read(loaded)).result()}

    async def _read(self, loaded: inspect_ai.Task) -> LoadedSplit:
        from podium.tasks.sets.inspect_samples import InspectGrader, samples_of  # noqa: PLC0415 - loads Inspect

        tasks: dict[str, Task] = {}
        skipped: Counter[str] = Counter()
        for sample in samples_of(loaded, self.task, plain=self.solver == "plain"):
            try:
                if sample.id in tasks:
                    raise UsageError(f"the id {sample.id!r} came before; give each sample its own.")
                question = await sample.question()
            except (UsageError, GraderError) as error:
                if self.on_bad_row == "refuse":
                    reason = str(error).removesuffix(".")
                    raise ConfigError(
                        f'{sample.location}: {reason}; on_bad_row = "skip" leaves such samples out.'
                    ) from None
                skipped[str(error)] += 1
            else:
                grader = InspectGrader(sample, question)
                tasks[sample.id] = Task(
                    sample.id, question, sample.gold, grader, key=question_key(sample.text)
                )
        return LoadedSplit(tuple(tasks.values()), dict(skipped))

    def _load(self) -> inspect_ai.Task:
        """Make the task with its arguments."""
        try:  # Inspect has no public function that makes a task of its name.
            from inspect_ai._eval.loader import load_tasks  # noqa: PLC0415
            from inspect_ai.util import registry_info  # noqa: PLC0415
        except ImportError as error:
            raise ConfigError(
                f"Inspect's tasks cannot be read with inspect-ai {version('inspect-ai')} ({error}); install a release "
                "that Podium was tried with: pip install inspect-ai==0.3.285."
            ) from error
        try:
            loaded = load_tasks([self.task], dict(self.args))
        except Exception as error:  # a task is its author's code, and may raise anything
            reason = getattr(error, "message", error)
            raise ConfigError(f"The Inspect task {self.task!r} cannot be made: {reason}") from error
        if len(loaded) != 1:
            many = f"{len(loaded)} tasks" if loaded else "no task"
            raise ConfigError(
                f"The Inspect task {self.task!r} names {many}; write package/task or file.py@task."
            )
        # Inspect only warns of unknown arguments and ignores them.
        known = registry_info(loaded[0]).metadata["params"]
        for name in self.args:
            if name not in known and "kwargs" not in known:
                raise ConfigError(
                    f"The Inspect task {self.task!r} takes no argument {name!r}; {suggestion(name, known)}"
                )
        return loaded[0]
