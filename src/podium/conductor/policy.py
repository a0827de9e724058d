"""The policy: the Conductor's language model, behind one small interface.

A policy writes text, and the Conductor parses it. `LocalPolicy` runs a checkpoint in this process. `WorkerPolicy` calls
a worker of the pool, or an endpoint outside the pool.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from podium.calls import AttemptLog, CallContext, WorkerCall
from podium.calls.worker_call import MakeListeners
from podium.conductor.plan_format import (
    CHOICES,
    MAX_PROBE_OUTPUT_TOKENS,
    ChosenFormat,
    FormatNegotiator,
    PlanFormat,
    format_options,
    plan_text,
)
from podium.errors import WorkerError
from podium.spending import Ledger, Reservation
from podium.trace import Reply
from podium.types import DEFAULT_OPTIONS, NO_USAGE, AnswerOptions, Message, Usage, sent_tokens
from podium.workers.base import Request, Worker, seed_number


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a completion is sampled."""

    temperature: float = 0.0
    """The sampling temperature. 0 always takes the most likely token."""
    max_tokens: int | None = None
    """The most tokens of a completion. Default: 384 for a checkpoint, and the worker's own limit for a
    `WorkerPolicy`."""
    seed: str = "0"
    """Seeds the sampling. The same seed, messages and checkpoint give the same completion."""
    stop: tuple[str, ...] = ()
    """Texts before which a local completion ends."""
    schema: Callable[..., dict[str, Any]] | None = field(default=None, compare=False, repr=False)
    """`plan_schema` for this plan, which takes a kind and `max_tokens`. A `WorkerPolicy` sends the schema to its
    endpoint. If it is None, no schema is sent."""
    attempt: int = 0
    """0 for the first try, and 1 for the second try after a completion that was no plan."""
    make_listeners: MakeListeners | None = field(default=None, compare=False, repr=False)
    """Makes the listeners to each request to the endpoint. Only a `WorkerPolicy` whose endpoint is known to obey the
    schema uses it. A reply from the response cache has no pieces."""


@dataclass(frozen=True, slots=True)
class Completion:
    """The text that a policy wrote. What it cost, with all tries, is counted in the question's ledger."""

    text: str
    usage: Usage = NO_USAGE
    """The tokens of the request that the text comes from."""
    truncated: bool = False
    """Whether the text was cut off at the limit of tokens."""
    reasoning: str = ""
    dropped: tuple[str, ...] = ()
    """Keys that were left out of the request, since the endpoint refuses them."""


class Policy(Protocol):
    """Writes completions. Concurrent calls are safe."""

    @property
    def name(self) -> str: ...

    @property
    def plan_format(self) -> PlanFormat | None:
        """The format in which the policy's endpoint is asked for plans. None if it is not known yet, or if there is no
        endpoint."""
        ...

    async def complete(
        self,
        messages: tuple[Message, ...],
        sampling: Sampling,
        context: CallContext | None = None,
        log: AttemptLog | None = None,
    ) -> Completion:
        """Write one completion.

        Args:
            context: the question. Its ledger counts what each try took, and a try that costs money is reserved there
                first. Default: no limits.
            log: each try is added to it.

        Raises:
            WorkerError: the worker did not answer, after all retries.
            BudgetExceededError: a limit refuses the first try.
            UsageError: the messages are longer than the policy can read.
        """
        ...


class WorkerPolicy:
    """A `Policy` that calls a worker within its limits, with retries and a circuit breaker.

    Args:
        worker: writes the plans. The caller closes it.
        negotiator: chooses the format of structured plans. If it is None, plans are asked for by text.
    """

    def __init__(self, worker: Worker, *, negotiator: FormatNegotiator | None = None) -> None:
        self.name = worker.profile.name
        self._worker = worker
        self._negotiator = negotiator

    @property
    def plan_format(self) -> PlanFormat | None:
        return None if self._negotiator is None else self._negotiator.known_format

    async def complete(
        self,
        messages: tuple[Message, ...],
        sampling: Sampling,
        context: CallContext | None = None,
        log: AttemptLog | None = None,
    ) -> Completion:
        """Write one completion, at the worker's own temperature and within its own `max_tokens`.

        The first completion with a schema also probes which plan format the endpoint obeys. The question's budget pays
        for the probe.
        """
        context, log = context or CallContext.unlimited(), AttemptLog() if log is None else log
        if sampling.schema is None or self._negotiator is None:
            return _completion(await self._call(context, log, messages, sampling))
        return await self._complete_structured(
            context, log, messages, sampling, schema=sampling.schema, negotiator=self._negotiator
        )

    async def _complete_structured(
        self,
        context: CallContext,
        log: AttemptLog,
        messages: tuple[Message, ...],
        sampling: Sampling,
        *,
        schema: Callable[..., dict[str, Any]],
        negotiator: FormatNegotiator,
    ) -> Completion:
        """A plan in the best format. If the endpoint refuses the format, a plan as text, if the endpoint obeyed the
        format before or the user allows text."""
        uncached = replace(context, call_state=context.call_state.with_cache(None))

        async def ask(question: tuple[Message, ...], options: AnswerOptions) -> Reply:
            seeded = replace(sampling, seed="probe")
            return await self._call(uncached, log, question, seeded, options)

        chosen = ChosenFormat("text")
        if negotiator.known_format is not None or self._affords_probe(context.ledger, messages):
            chosen = await negotiator.choose(ask)
        format, is_proven = negotiator.after(chosen) if sampling.attempt else chosen
        limit = self._worker.limits.max_tokens
        exact = schema("exact", max_tokens=min(limit, sampling.max_tokens or limit))
        options = format_options(format, exact, schema("portable"), url=negotiator.url)
        make_listeners = sampling.make_listeners if is_proven and format in CHOICES["schema"] else None
        try:
            completion = _completion(
                await self._call(context, log, messages, sampling, options, make_listeners=make_listeners)
            )
        except WorkerError as error:
            takes_text = is_proven or negotiator.allows("text")
            if format == "text" or not takes_text or error.retryable or error.kind != "status":
                raise
            if is_proven:
                negotiator.forget()
            return _completion(await self._call(context, log, messages, sampling))
        if is_proven and format != "text" and "{" not in completion.text and not completion.truncated:
            negotiator.forget()  # The server may obey another format now, as after an update.
        return completion

    def _affords_probe(self, ledger: Ledger, messages: tuple[Message, ...]) -> bool:
        """Whether the budget allows a probe and then a plan. If not, it may still allow a plan as text."""
        price = self._worker.profile.price
        plan = Reservation.most(self._worker.limits, price, input_tokens=sent_tokens(messages))
        probe_usd = MAX_PROBE_OUTPUT_TOKENS * price.output / 1e6
        both = Reservation(0, plan.tokens + MAX_PROBE_OUTPUT_TOKENS, plan.usd + probe_usd)
        return ledger.affords(both, asyncio.get_running_loop().time())

    async def _call(
        self,
        context: CallContext,
        log: AttemptLog,
        messages: tuple[Message, ...],
        sampling: Sampling,
        options: AnswerOptions = DEFAULT_OPTIONS,
        *,
        make_listeners: MakeListeners | None = None,
    ) -> Reply:
        """Call the worker once, with retries."""
        if sampling.max_tokens is not None and options.max_tokens is None:
            options = options.model_copy(update={"max_tokens": sampling.max_tokens})
        # The response cache keeps a plan for each seed, even if the worker gets no seed.
        request = Request(
            messages,
            seed=sampling.seed,
            duplicate_index=seed_number(sampling.seed),
            options=options,
            thoughts_suffice=True,
        )
        call = WorkerCall(
            context,
            self._worker,
            request,
            log,
            counts_as_call=False,
            waits_for_cooldown=True,
            make_listeners=make_listeners,
        )
        reply = await call.run()
        if reply.cached:
            context.ledger.record(reply.spent(self._worker.profile))
        return reply


def _completion(reply: Reply) -> Completion:
    """The completion. Some models write the whole plan inside a thought, so that is taken if there is no other text. A
    thought that was cut off has no plan."""
    truncated, text = reply.finish == "length", plan_text(reply)
    return Completion(
        text if text.strip() or truncated else reply.reasoning,
        reply.usage,
        truncated=truncated,
        reasoning=reply.reasoning,
        dropped=reply.dropped,
    )
