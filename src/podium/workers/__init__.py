"""Who answers: the worker protocol, its kinds, and the pool they stand in.

Endpoints (`openai`) are imported from their own module, since it brings more with it.
"""

from podium.trace import Reply
from podium.workers.base import Request, Worker
from podium.workers.pool import Pool, load_pool
from podium.workers.scripted import ScriptedWorker
from podium.workers.vote import VoteWorker

__all__ = ["Pool", "Reply", "Request", "ScriptedWorker", "VoteWorker", "Worker", "load_pool"]
