"""The trace: everything that is needed to show how a question was answered, to grade the answer again and to run the
question again.

Values are frozen, and totals are properties. Times are in seconds since the trace began.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from podium.trace.plan import Attempt, Plan
from podium.types import (
    NO_USAGE,
    Budget,
    FrozenModel,
    Message,
    MessageLayout,
    Profile,
    ProviderState,
    Question,
    Spent,
    ToolCall,
    Usage,
    total_usage,
)
from podium.workflow import Acceptance, PlanError, Workflow

TraceStatus = Literal["ok", "degraded", "failed", "cancelled", "planned"]
"""The status of a question. "planned" means that there is a plan which was not run."""
SpanStatus = Literal["done", "failed", "skipped", "refused", "cancelled"]
OutcomeVerdict = Literal["right", "wrong", "note"]
"""An outcome in one word. "note" is a note without a verdict."""


class VoteCount(FrozenModel):
    """The result of a vote, in numbers."""

    agreeing: int
    """Responses that gave the winning answer."""
    of: int
    """Responses that gave any answer."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a worker answered. It stands here, and not with the workers, since the reply of a team holds a trace."""

    text: str
    usage: Usage
    latency_s: float | None = None
    """Seconds that a cached or recorded answer once took, or 0 for a tool. None if the executor measures them."""
    recorded: str | None = None
    """The reference to a recorded response, as recording#question/worker/sample. None if it is not recorded."""
    finish: str | None = None
    """Why the reply ended, in the words of `read_finish` of the chat workers. "length": max_tokens cut it off."""
    model: str | None = None
    """The model that answered, according to the provider."""
    fingerprint: str | None = None
    """The provider's name for the model's weights and set-up (`system_fingerprint`)."""
    context_tokens: int | None = None
    """The context of the model, as its server said in an error or else as the profile has it."""
    dropped: tuple[str, ...] = ()
    """Keys that were left out of the request, since the endpoint refuses them."""
    folded: bool = False
    """Whether messages were joined or moved, since the endpoint's chat template needs another form."""
    first_token_s: float | None = None
    """Seconds until a streamed reply began. None if the reply was not streamed."""
    cost_usd: float | None = None
    """Dollars of the call. If it is None, they are computed from usage and price."""
    cached: bool = False
    """Whether the reply comes from the response cache, or an identical call in flight, and so costs nothing now."""
    tool_calls: tuple[ToolCall, ...] = ()
    """Calls of the caller's tools that the worker requests. Then the text may be empty."""
    reasoning: str = ""
    """The model's visible reasoning."""
    provider_state: str = ""
    """What the provider wants back with this message (`ProviderState.fields`). Each tool call has its own state."""
    parameters: dict[str, Any] | None = None
    """The request that was sent to the endpoint, without messages and secrets: model, sampling, tools. `system` is the
    worker's own system prompt. None if the worker does not say, or if the reply is from the response cache."""
    logprobs: dict[str, Any] | None = None
    """Log probabilities of the tokens, in OpenAI's form. None unless the caller asked for them."""
    votes: VoteCount | None = None
    """The count of votes. None unless the worker held a vote that has a winner."""
    nested: Trace | None = None
    """The trace of the nested team. None unless the worker is a team."""

    def cost(self, profile: Profile) -> float:
        """Dollars that the call cost, at the prices of `profile`."""
        return profile.price.cost(self.usage) if self.cost_usd is None else self.cost_usd

    def spent(self, profile: Profile) -> Spent:
        """Tokens and dollars of the call, at the prices of `profile`. A reply from the response cache costs nothing,
        and saves what it had cost."""
        if self.cached:
            return Spent(self.usage, saved_usd=self.cost(profile))
        if self.nested is not None:
            return Spent(self.usage, self.cost(profile), unpriced=self.nested.unpriced)
        if self.recorded is not None or self.cost_usd is not None:
            return Spent(self.usage, self.cost(profile))
        return profile.price.spent(self.usage)


class Span(FrozenModel):
    """One step as it was run."""

    position: int
    """Position of the step in its workflow, from 0."""
    worker: str
    """Name of the worker that the plan chose."""
    subtask: str
    reads: tuple[int, ...] = ()
    """Earlier steps that the worker was allowed to see."""
    waited: tuple[int, ...] = ()
    """Steps that had to end before a vote could decide whether it needs this step (`early_stop`)."""
    max_tokens: int | None = None
    """The most output tokens that the plan allowed. None if it set no limit besides the worker's own."""
    status: SpanStatus
    """How the step ended. "skipped": no step needs it, or a vote was certain without it. "refused": the budget refused
    it. "cancelled": it was in flight when the time was up or the caller went away."""
    messages: tuple[Message, ...] = ()
    """The exact messages that the worker got. `Reply.folded` says whether its endpoint needed another form."""
    reply: Reply | None = None
    """The worker's reply. None if no worker answered."""
    answered_by: str | None = None
    """Name of the worker that answered: the chosen worker or a fallback. None if no worker answered."""
    spent: Spent = Spent()
    """What the answer and tries without an answer took. An answer from the response cache costs nothing."""
    started_s: float = 0.0
    ended_s: float = 0.0
    attempts: tuple[Attempt, ...] = ()
    error: str | None = None
    """One sentence: why the step failed or was refused, or why a vote did not need it."""

    @property
    def response(self) -> str | None:
        """The text of the reply. None if no worker answered."""
        return None if self.reply is None else self.reply.text

    @property
    def usage(self) -> Usage:
        """The tokens of the call that answered."""
        return NO_USAGE if self.reply is None else self.reply.usage

    @property
    def cached(self) -> bool:
        """Whether the answer was in the response cache, or an identical call in flight gave it."""
        return self.reply is not None and self.reply.cached

    @property
    def recorded(self) -> str | None:
        """The reference to the recorded response. None if the answer is not from a recording."""
        return None if self.reply is None else self.reply.recorded

    @property
    def nested(self) -> Trace | None:
        """The trace of the nested team. None unless the worker that answered is a team."""
        return None if self.reply is None else self.reply.nested

    @property
    def claimed_s(self) -> float | None:
        """Seconds that a tool's, cached or recorded reply claims. They count in place of measured seconds."""
        return None if self.reply is None else self.reply.latency_s

    @property
    def seconds(self) -> float:
        """Seconds of the step: those that its reply claims, else the measured ones with waiting and retries."""
        return self.claimed_s if self.claimed_s is not None else self.ended_s - self.started_s

    @property
    def working_s(self) -> float:
        """How long the worker took, without waiting for limits, cooldowns and retries: the time of the attempt that was
        answered, or else of the last attempt. For a team, the critical path of the team's trace."""
        if self.claimed_s is not None or not self.attempts:
            return self.seconds
        if self.nested is not None:
            return self.nested.critical_path_s + sum(round_.plan.seconds for round_ in self.nested.rounds)
        answered = (attempt for attempt in reversed(self.attempts) if attempt.error_kind is None)
        attempt = next(answered, self.attempts[-1])
        return attempt.ended_s - attempt.started_s

    @property
    def called(self) -> bool:
        """Whether a worker was called at all, now or when a cached answer was made."""
        return bool(self.attempts) or self.cached


class RoundTrace(FrozenModel):
    """One plan and its execution."""

    plan: Plan
    fallback: Workflow | None = None
    """The workflow that ran in place of a plan with an error: one worker got the question."""
    spans: tuple[Span, ...] = ()
    abandoned: tuple[Span, ...] = ()
    """Steps that were started while the plan was being written, and that the plan does not need. They were paid for."""
    response: str | None = None
    """The response of the last step that succeeded. None if no step succeeded."""

    @property
    def all_spans(self) -> tuple[Span, ...]:
        """The steps that were abandoned, then the steps of the plan."""
        return (*self.abandoned, *self.spans) if self.abandoned else self.spans

    @property
    def workflow(self) -> Workflow | None:
        """The workflow that was run. None after an acceptance, or an error if no worker took the question."""
        decision = self.plan.decision
        return decision if isinstance(decision, Workflow) else self.fallback

    @property
    def max_tokens(self) -> tuple[int | None, ...]:
        """The plan's limit of output tokens for each step. It is empty if a fallback ran in place of the plan."""
        return self.plan.max_tokens if self.error is None else ()

    @property
    def accepted(self) -> bool:
        """Whether the planner accepted an answer of the rounds before."""
        return isinstance(self.plan.decision, Acceptance)

    @property
    def error(self) -> PlanError | None:
        """Why the plan could not be run. None if it could."""
        return self.plan.decision if isinstance(self.plan.decision, PlanError) else None

    @property
    def error_kind(self) -> str | None:
        """The kind of `error`. None if there is no error."""
        return None if self.error is None else self.error.kind

    @property
    def called_workers(self) -> tuple[int, ...]:
        """The number of the worker of each step that was not skipped."""
        workflow = self.workflow
        if workflow is None:
            return ()
        steps = workflow.steps
        return tuple(steps[span.position].worker for span in self.spans if span.status != "skipped")

    @property
    def critical_path_s(self) -> float:
        """Seconds along the slowest chain of steps that read, or waited for, each other, as if all workers were idle:
        waiting for limits and retries is left out."""
        finish: dict[int, float] = {}
        # A step may have waited for a step that comes later in the plan.
        for span in sorted(self.spans, key=lambda span: span.started_s):
            if span.called:
                finish[span.position] = span.working_s + max(
                    (finish.get(j, 0.0) for j in (*span.reads, *span.waited)), default=0.0
                )
        return max(finish.values(), default=0.0)


class Outcome(FrozenModel):
    """Whether the answer was right, as a user said afterwards."""

    right: bool | None = None
    """Whether the answer was right. None if there is only a note."""
    note: str = ""
    by: str | None = None
    """Name of the key that the user's request had. None if no key was needed."""
    at: str
    """The time in ISO 8601 and UTC."""

    @property
    def verdict(self) -> OutcomeVerdict:
        """The outcome in one word: "right", "wrong", or "note" if it says neither."""
        return "note" if self.right is None else "right" if self.right else "wrong"


class Trace(FrozenModel):
    """The record of one question."""

    id: str
    question: Question
    pool: tuple[Profile, ...]
    planner: str
    seed: str
    budget: Budget = Budget()
    max_steps: int = 5
    layout: MessageLayout | Literal["plain"] = "packed"
    """How a step's input was written into messages: in fenced blocks, as a chat, or exactly as the caller wrote it."""
    early_stop: bool = False
    """Whether votes stopped early, once their result was certain."""
    rounds: tuple[RoundTrace, ...] = ()
    answer: str | None = None
    status: TraceStatus
    error: str | None = None
    """One sentence that says what failed. None if the status is "ok"."""
    error_kind: Literal["timeout"] | None = None
    """"timeout": the server's time limit ended the question. None for other errors, which rounds and steps explain."""
    started_at: str
    """The time in ISO 8601 and UTC."""
    seconds: float
    """The wall time in seconds, planning included."""
    versions: dict[str, str] = Field(default_factory=dict)
    owner: str | None = None
    """Name of the key that the request used. None if no key was needed."""
    user: str | None = None
    """The end user that the caller named."""
    metadata: dict[str, str] = Field(default_factory=dict)
    """Keys and values that the caller sent with the question."""
    outcome: Outcome | None = None
    """How the answer was judged. None if it was not judged."""

    @property
    def spans(self) -> tuple[Span, ...]:
        """The steps of all rounds, in order. In each round, abandoned steps come first."""
        if len(self.rounds) == 1:
            return self.rounds[0].all_spans
        return tuple(span for round_ in self.rounds for span in round_.all_spans)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """Tool calls that the answering worker wants its caller to make. It is empty if the answer is final."""
        spans = self.rounds[-1].spans if self.rounds else ()
        return spans[-1].reply.tool_calls if spans and spans[-1].reply is not None else ()

    @property
    def answer_state(self) -> ProviderState | None:
        """What the provider wants back with the answer. None if no worker wrote the answer."""
        span = next((span for span in reversed(self.spans) if span.reply is not None), None)
        if span is None or span.reply is None or span.reply.text != self.answer:
            return None
        return ProviderState(worker=span.answered_by or span.worker, fields=span.reply.provider_state)

    @property
    def calls(self) -> int:
        """Worker calls that were answered or failed for good."""
        return sum(span.called for span in self.spans)

    @property
    def usage(self) -> Usage:
        """Tokens of workers and planner."""
        planned = [round_.plan.spent.usage for round_ in self.rounds]
        return total_usage([*planned, *(span.spent.usage for span in self.spans)])

    @property
    def cost_usd(self) -> float:
        """Dollars of workers and planner."""
        return sum(s.spent.cost_usd for s in self.spans) + sum(r.plan.spent.cost_usd for r in self.rounds)

    @property
    def unpriced(self) -> bool:
        """Whether the price of some tokens is unknown, so that `cost_usd` leaves them out."""
        return any(span.spent.unpriced for span in self.spans) or any(
            round_.plan.spent.unpriced for round_ in self.rounds
        )

    @property
    def uncached_usd(self) -> float:
        """Dollars that the question would have cost without the response cache. Comparisons use this."""
        # Add span by span, since sums of floats depend on the order, and the same question must cost the same.
        return sum(s.spent.cost_usd + s.spent.saved_usd for s in self.spans) + sum(
            r.plan.spent.cost_usd + r.plan.spent.saved_usd for r in self.rounds
        )

    @property
    def critical_path_s(self) -> float:
        """Seconds along the slowest chain with idle workers, rounds in sequence, planning left out."""
        return sum(round_.critical_path_s for round_ in self.rounds)


Span.model_rebuild()
RoundTrace.model_rebuild()
Trace.model_rebuild()
