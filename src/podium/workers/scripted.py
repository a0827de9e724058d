"""`scripted`: a worker whose replies are written beforehand, for tests and dry runs.

If no reply is left, a call raises a `WorkerError` of kind "exhausted". A reply depends only on the subtask and the
question. `replay` is the worker that gives recorded answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from podium.errors import WorkerError
from podium.trace import Reply
from podium.types import Limits, Profile, Spent, Usage, estimate_tokens
from podium.workers.base import COSTLESS, Request, Worker


class ScriptedWorker(Worker):
    """Answers from a script.

    Args:
        replies: replies in the order of the calls, or a mapping from texts to replies. In a mapping, the first text
            that the subtask or the question contains chooses the reply, any number of times. A `WorkerError` among the
            replies is raised.
        delay: seconds that each call takes.
        failures_spend: the tokens and dollars of each scripted failure.
        profile: what planners see. It overrides `name`.
    """

    traits = COSTLESS

    def __init__(
        self,
        name: str,
        replies: Sequence[str | WorkerError] | Mapping[str, str | WorkerError],
        *,
        delay: float = 0.0,
        failures_spend: Spent = Spent(),
        profile: Profile | None = None,
        limits: Limits | None = None,
        fallback: str | None = None,
    ) -> None:
        self.profile = profile or Profile(name=name)
        self.limits = limits or Limits()
        self.fallback = fallback
        self.requests: list[Request] = []
        """Every request so far, in order."""
        self._replies = replies
        self._delay = delay
        self._failures_spend = failures_spend

    async def answer(self, request: Request) -> Reply:
        """The next reply of the script, after the delay."""
        self.requests.append(request)
        reply = self._next_reply(request)
        if self._delay > 0:
            await asyncio.sleep(self._delay)
        if isinstance(reply, WorkerError):
            request.receipt.add(self._failures_spend)
            # Raise a copy, since raising writes a traceback into the exception, and a mapping may raise it many times.
            raise WorkerError(
                str(reply),
                kind=reply.kind,
                retryable=reply.retryable,
                retry_after_s=reply.retry_after_s,
            )
        sent = sum(estimate_tokens(message.content) for message in request.messages)
        return Reply(reply, Usage(input_tokens=sent, output_tokens=estimate_tokens(reply), estimated=True))

    def _next_reply(self, request: Request) -> str | WorkerError:
        if isinstance(self._replies, Mapping):
            subtask, question = request.view.subtask, request.view.question
            for part, reply in self._replies.items():
                if part in subtask or part in question:
                    return reply
            found = f"no reply for the subtask {subtask[:80]!r}"
        else:
            call = len(self.requests) - 1
            if call < len(self._replies):
                return self._replies[call]
            found = f"only {len(self._replies)} replies, and this is call {call + 1}"
        return WorkerError(f"{self.profile.name}: the script has {found}.", kind="exhausted")
