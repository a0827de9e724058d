"""What a package that extends Podium derives its classes from, and what it makes: one module to import all of it from.

Each name is loaded when it is first used, so an extension loads no more than it names. docs/architecture.md has the
groups of entry points, AGENTS.md what each extension brings.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from podium.conductor.loaded_model import LoadedModel, ModelLoader
    from podium.planner import Planner, PlanRequest
    from podium.planners.baseline import BaselineContext, BaselineSpec
    from podium.recordings.importers import ImportReport
    from podium.recordings.writer import RecordingWriter
    from podium.scoring import ScoringSession
    from podium.tasks.graders.base import GraderSettings, PureGrader
    from podium.tasks.graders.extraction import extract
    from podium.tasks.sets.base import Sample, TaskSetSpec
    from podium.tasks.task import GeneratedTasks, Grade, Task
    from podium.trace import Plan, Reply
    from podium.workers.base import Request, Worker, WorkerTraits
    from podium.workers.build import BuildContext, WorkerKind
    from podium.workers.spec import WorkerSpec

__all__ = ["BuildContext", "Reply", "Request", "Worker", "WorkerKind", "WorkerSpec", "WorkerTraits"]
__all__ += ["BaselineContext", "BaselineSpec", "LoadedModel", "ModelLoader", "Plan", "PlanRequest", "Planner"]
__all__ += ["GeneratedTasks", "Grade", "GraderSettings", "PureGrader", "Sample", "Task", "TaskSetSpec"]
__all__ += ["ImportReport", "RecordingWriter", "ScoringSession", "extract"]

_NAMES = {
    "podium.conductor.loaded_model": ("LoadedModel", "ModelLoader"),
    "podium.planner": ("PlanRequest", "Planner"),
    "podium.planners.baseline": ("BaselineContext", "BaselineSpec"),
    "podium.recordings.importers": ("ImportReport",),
    "podium.recordings.writer": ("RecordingWriter",),
    "podium.scoring": ("ScoringSession",),
    "podium.tasks.graders.base": ("GraderSettings", "PureGrader"),
    "podium.tasks.graders.extraction": ("extract",),
    "podium.tasks.sets.base": ("Sample", "TaskSetSpec"),
    "podium.tasks.task": ("GeneratedTasks", "Grade", "Task"),
    "podium.trace": ("Plan", "Reply"),
    "podium.workers.base": ("Request", "Worker", "WorkerTraits"),
    "podium.workers.build": ("BuildContext", "WorkerKind"),
    "podium.workers.spec": ("WorkerSpec",),
}


def __getattr__(name: str) -> Any:
    module = next((module for module, names in _NAMES.items() if name in names), None)
    if module is None:
        raise AttributeError(f"module 'podium.extending' has no attribute {name!r}")
    return getattr(importlib.import_module(module), name)
