"""For the group `podium.workers`: a kind of worker."""

from podium.trace import Reply
from podium.workers.base import Request, Worker, WorkerTraits
from podium.workers.build import BuildContext, WorkerKind
from podium.workers.spec import WorkerSpec

__all__ = ["BuildContext", "Reply", "Request", "Worker", "WorkerKind", "WorkerSpec", "WorkerTraits"]
