"""Planner, pool and budget together: answers a question by planning, running and planning again.

Bad plans and failed workers are data in the trace; the caller's going away and our own bugs propagate. Does not
grade, store or print.
"""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable, Sequence
from uuid import uuid4

from podium import __version__
from podium.errors import StoreError, UsageError, leaves
from podium.executor import Dispatcher, ExecutionSettings
from podium.executor.ledger import SpendLimit
from podium.orchestrator.answering import Answering
from podium.orchestrator.events import Event
from podium.planner import Planner
from podium.trace import Trace
from podium.types import Budget, Question
from podium.workers.pool import Pool


class Orchestrator:
    """Answers questions, any number at a time.

    Args:
        planner: decides.
        pool: the workers on offer. Stays the caller's to close.
        budget: limits for each question.
        max_steps: told to the planner. What bounds the calls is the budget.
        settings: how workflows are run.
        dispatcher: shared with other orchestrators over the same workers; None: this one's own.
        accounts: dollars that these questions share with others, beside those of the dispatcher.
        plan_fallback: the worker that takes a question whose first planning failed for good. None, or one that is not
            in the pool: such a question fails, as training and evaluation need it.
    """

    def __init__(
        self,
        planner: Planner,
        pool: Pool,
        *,
        budget: Budget = Budget(),
        max_steps: int = 5,
        settings: ExecutionSettings | None = None,
        dispatcher: Dispatcher | None = None,
        accounts: Sequence[SpendLimit] = (),
        plan_fallback: str | None = None,
    ) -> None:
        self.planner = planner
        self.pool = pool
        self.budget = budget
        self.max_steps = max_steps
        self.settings = settings or ExecutionSettings()
        self.dispatcher = dispatcher or Dispatcher()
        self.plan_fallback = plan_fallback
        self.accounts = (*self.dispatcher.accounts, *accounts)
        self.versions = {"podium": __version__, "python": platform.python_version()}

    async def answer(
        self,
        question: Question,
        *,
        seed: str = "0",
        sample: int = 0,
        trace_id: str | None = None,
        on_event: Callable[[Event], None] | None = None,
        streams: bool = False,
    ) -> Trace:
        """Answer `question`; what fails on the way is in the trace, not raised.

        Args:
            question: its text must not be blank.
            seed: names all randomness. Give live questions a random one: it also marks the fences between
                workers' texts, which nobody should be able to guess.
            sample: which independent answering of the question this is; a response cache gives each its own answers.
            trace_id: 32 hexadecimal digits; None: new ones.
            on_event: told of progress as it is made. Must be quick.
            streams: whether it is also told the text of the answer while it is written, by workers that can, in the
                last round that the budget allows; an earlier one may not be the last.

        Raises:
            UsageError: the question is empty.
            asyncio.CancelledError: the caller went away; every call in flight was cancelled.
            StoreError: an account or the response cache cannot be written; what was paid for is in the trace that
                `on_event` was told.
        """
        if not question.text.strip():
            raise UsageError("The question is empty: write what you want answered.")
        answering = Answering(
            self,
            question,
            seed=seed,
            sample=sample,
            trace_id=trace_id or uuid4().hex,
            on_event=on_event,
            streams=streams,
        )
        try:
            await answering.run()
        except asyncio.CancelledError:
            answering.end(cancelled=True)
            raise
        except BaseExceptionGroup as errors:
            trouble, others = errors.split(StoreError)
            if trouble is None or others is not None:
                raise
            error = next(leaves(trouble))
            answering.end(trouble=str(error))
            raise error from None
        return answering.end()
