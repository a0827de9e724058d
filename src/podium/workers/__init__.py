"""The worker protocol, the kinds of workers, and the pool of workers.

Endpoints (`openai`) are imported from their own module, which loads an HTTP client.
"""

from podium.trace import Reply
from podium.workers.base import Request, Worker
from podium.workers.pool import Pool
from podium.workers.scripted import ScriptedWorker
from podium.workers.vote import VoteWorker

__all__ = ["Pool", "Reply", "Request", "ScriptedWorker", "VoteWorker", "Worker"]
