"""Makes the requests of a workflow's steps, from the responses of the steps that each step reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from podium.executor.early_stopping import answering_steps
from podium.executor.question_context import QuestionContext
from podium.executor.schedule import Schedule
from podium.executor.step_input import StepInput, build_messages
from podium.types import DEFAULT_OPTIONS, AnswerOptions, Message
from podium.workers.base import Request, Worker
from podium.workers.view import EarlierStep
from podium.workflow import Workflow


@dataclass(frozen=True, slots=True)
class RoundContext:
    """What the steps of a round know of earlier rounds."""

    count: int = 0
    """How many earlier rounds there were. A step's request has the seed "{seed of the question}/{count}/{position}"."""
    response: str | None = None
    """The final response of the latest round. None if it has none."""
    calls: Mapping[int, int] = field(default_factory=dict)
    """How many steps each worker had, by the worker's number in the pool."""
    requests: tuple[tuple[str, tuple[Message, ...]], ...] = ()
    """For each step that was called, the worker's name and the messages that the worker got."""


class StepRequestBuilder:
    """Makes the request of each step that starts.

    Args:
        schedule: the workflow, and how its steps have ended.
    """

    def __init__(self, context: QuestionContext, schedule: Schedule, round_context: RoundContext) -> None:
        self._context = context
        self._schedule = schedule
        self._round_context = round_context
        self._previous = round_context.response
        self._shown: tuple[EarlierStep, ...] = ()
        self._sent = [*round_context.requests]
        self._answering: frozenset[int] = frozenset()
        self.max_tokens: tuple[int | None, ...] = ()
        """For each step, the plan's limit of output tokens. None sets no limit."""

    def set_workflow(
        self, workflow: Workflow, max_tokens: Sequence[int | None], shown: tuple[EarlierStep, ...]
    ) -> None:
        """Set the whole workflow. The arguments are those of `Execution`."""
        workers = {p: self._context.pool[step.worker] for p, step in enumerate(workflow.steps)}
        self._answering = answering_steps(workflow, workers)
        self.max_tokens = (*max_tokens, *(None,) * len(workflow.steps))
        if shown:
            self._previous, self._shown = None, shown

    @property
    def earlier_responses(self) -> list[str]:
        """The responses of earlier rounds that are shown to each step with access to earlier rounds."""
        return [step.response for step in self._shown] if self._previous is None else [self._previous]

    def make(self, position: int, worker: Worker) -> Request:
        """The request of a step that starts now."""
        context, schedule = self._context, self._schedule
        step, reads = schedule.workflow.steps[position], schedule.reads[position]
        previous, shown = (self._previous, self._shown) if step.access.sees_previous else (None, ())
        earlier, missing = list(shown), list[int]()
        for index, j in enumerate(reads, start=int(previous is not None) + len(shown)):
            response = schedule.response(j)
            if response is None:
                missing.append(index)
            else:
                earlier.append(EarlierStep(j, schedule.spans[j].subtask, response))
        step_input = StepInput(
            context.question, step.subtask, tuple(earlier), previous, context.settings.messages
        )
        messages = build_messages(
            step_input, context.settings.layout, context.fence_mark, sees=worker.profile.sees
        )
        sent = (worker.profile.name, messages)
        duplicates = self._sent.count(sent)
        self._sent.append(sent)
        return Request(
            messages,
            seed=f"{context.seed}/{self._round_context.count}/{position}",
            question_seed=context.seed,
            earlier_calls=self._earlier_steps(position),
            earlier_duplicates=duplicates,
            sample=context.sample,
            fence_mark=context.fence_mark,
            missing=tuple(missing),
            executor_view=step_input.view(context.settings.layout),
            options=self._options(position),
        )

    def _earlier_steps(self, position: int) -> int:
        """How many steps before this one go to the same worker."""
        steps = self._schedule.workflow.steps
        worker = steps[position].worker
        count = self._round_context.calls.get(worker, 0)
        for earlier in self._schedule.planned_steps:
            count += earlier < position and steps[earlier].worker == worker
        return count

    def _options(self, position: int) -> AnswerOptions:
        """The caller's options if the step may give the answer. Of the caller's and the plan's limit, the lower
        holds."""
        answers = position in self._answering
        options = self._context.question.options if answers else DEFAULT_OPTIONS
        planned = self.max_tokens[position]
        if planned is None or (options.max_tokens is not None and options.max_tokens <= planned):
            return options
        return options.model_copy(update={"max_tokens": planned})
