"""`replay`: a worker that returns the recorded response of a model to the question.

A conditioned response was recorded together with what the step showed the model. If the recording has conditioned
responses, the worker looks up what the present step shows, and fails if no response to that was recorded. If not, the
worker ignores subtasks and other workers' responses, so it does not show what the real model would do with them.
`podium.evals.evaluation` counts steps of both sorts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

from podium.config import suggestion
from podium.errors import ConfigError, WorkerError
from podium.recordings import RecordedQuestion, RecordedResponse, Recording, ShownContext, reference
from podium.text.answer import final_answer, normalise
from podium.text.thoughts import split_thoughts, without_thoughts
from podium.trace import Reply
from podium.types import Message, Usage, estimate_tokens
from podium.workers.base import COSTLESS, Request, Worker
from podium.workers.spec import ReplaySpec
from podium.workers.view import WorkerView, read_view


class ReplayWorker(Worker):
    """One worker of a recording, which is the one at the spec's path.

    Of several responses to a question, each further call gets the next, and after the last the first. If they are in
    turn, each further sample of a question begins with the next response too.

    Raises:
        ConfigError: the recording has no such worker.
    """

    traits = COSTLESS

    def __init__(self, spec: ReplaySpec, recording: Recording) -> None:
        self.profile, self.limits, self.fallback = spec.to_profile(), spec.limits, spec.fallback
        self.recording = recording
        self._worker = spec.worker or spec.name
        if self._worker not in recording.workers:
            raise ConfigError(
                f"{recording.path} has no responses of {self._worker!r}; "
                f"{suggestion(self._worker, recording.workers)}"
            )
        self._random = spec.samples == "random"
        self._assumed = spec.assumed_output_tokens

    @property
    def samples(self) -> int:
        """The highest number of responses to one bare question. 0 if there are only conditioned responses."""
        return self.recording.samples(self._worker)

    def responses(self, question: str) -> tuple[RecordedResponse, ...]:
        """All recorded responses to the bare question with this text, in order."""
        return self.recording.responses(question).get(self._worker, ())

    def count(self, question: str) -> int:
        """The number of recorded responses to the question with this text."""
        return len(self.responses(question))

    def knows(self, question: str) -> bool:
        """Whether a response to the question with this text is recorded.

        If the worker was never asked a bare question, as a judge, a conditioned response counts.
        """
        if self.samples:
            return self.count(question) > 0
        return any(response.worker == self._worker for response in self.recording.all_responses(question))

    def has_unknown_length(self, question: str) -> bool:
        """Whether the output tokens of a response to the question are unknown, though output has a price."""
        if self._assumed is not None or not self.profile.price.output:
            return False
        return any(_length(response) is None for response in self.responses(question))

    async def answer(self, request: Request) -> Reply:
        """The recorded response, with its tokens and seconds as far as they are known.

        Raises:
            WorkerError: of kind "unrecorded" if the recording has no response to the question, or none to what the step
                shows.
        """
        recorded = self._find_question(request)
        responses: tuple[RecordedResponse, ...] = ()
        # A further sample begins with the next response, unless the seed draws which response is first.
        seen, number = None, request.earlier_calls + (0 if self._random else request.sample)
        if recorded is not None and self.recording.conditioned:
            # When the recording was made, a worker was asked again only if it got the same messages again.
            number = request.duplicate_index
            seen = context_shown(request.view, recorded.text)
            responses = (
                self.responses(recorded.text)
                if seen is None
                else self.recording.conditioned_responses(recorded.text, self._worker, seen)
            )
        elif recorded is not None:
            responses = self.responses(recorded.text)
        if not responses or recorded is None:
            start = " ".join(request.view.question.split())[:60]
            shown = "" if seen is None else " with this subtask and these earlier responses"
            raise WorkerError(
                f"{self.recording.name} holds no response of {self._worker} to the question {start!r}{shown}.",
                kind="unrecorded",
            )
        order = list(range(len(responses)))
        if self._random:
            Random(f"replay/{request.question_seed}/{recorded.id}/{self._worker}").shuffle(order)
        response = responses[order[number % len(responses)]]
        return Reply(
            with_answer(response),
            self._usage(response, recorded.text if seen is None else f"{recorded.text}\n{seen.document}"),
            latency_s=(self.profile.latency_s or 0.0) if response.seconds is None else response.seconds,
            recorded=reference(self.recording.name, recorded.id, response, seen),
            reasoning=split_thoughts(response.text)[0],
        )

    def _find_question(self, request: Request) -> RecordedQuestion | None:
        """Find the recorded question: the last user message, else the question in it, else the question in that, and so
        on.

        The whole message comes first, since a recorded question may look like a message of the executor. Questions are
        nested if the worker is in a team that is itself a worker, since the team's question is a whole message.
        """
        text = next((message.content for message in reversed(request.messages) if message.role == "user"), "")
        inner = request.view.question
        if inner == text:  # The message is the question alone.
            inner = read_view((Message(role="user", content=text),)).question
        while (row := self.recording.find(text)) is None:
            if inner == text:
                return None
            text = inner
            inner = read_view((Message(role="user", content=text),)).question
        return row

    def _usage(self, response: RecordedResponse, asked: str) -> Usage:
        """The tokens of the recorded call's question and response. The messages of the present call do not count."""
        sent, made = response.input_tokens, response.output_tokens
        length = _length(response) if self._assumed is None else self._assumed
        return Usage(
            input_tokens=estimate_tokens(asked) if sent is None else sent,
            output_tokens=length or 0,
            estimated=sent is None or made is None or response.estimated or self._assumed is not None,
        )


def context_shown(view: WorkerView, question: str) -> ShownContext | None:
    """The context that a step shows besides the recorded question, in the form of a recording's key. None if there is
    none.

    In a team that is itself a worker, the question of a step is a whole message. What that message shows counts too.
    """
    outer = None
    if view.question.strip() != question.strip():
        inner = read_view((Message(role="user", content=view.question),))
        outer = None if inner.question == view.question else context_shown(inner, question)
    if view.is_bare:
        return outer
    shown = tuple((step.subtask, step.response) for step in view.earlier)
    subtask = view.subtask if outer is None else f"{view.subtask}\n{outer.document}"
    return ShownContext(subtask, shown, view.previous)


def replays_bare_questions(workers: Iterable[Worker]) -> bool:
    """Whether any worker gives recorded answers to the bare question, whatever it is shown."""
    return any(isinstance(w, ReplayWorker) and not w.recording.conditioned for w in workers)


def replays_conditioned(workers: Iterable[Worker]) -> bool:
    """Whether a recording of the workers has responses to other answers."""
    return any(isinstance(worker, ReplayWorker) and worker.recording.conditioned for worker in workers)


def unknown_length_warning(workers: Iterable[ReplayWorker], questions: Sequence[str]) -> str | None:
    """A sentence that names the workers whose output tokens, and so costs, the recording lacks. None if there are
    none."""
    names = [
        worker.profile.name
        for worker in workers
        if any(worker.has_unknown_length(text) for text in questions)
    ]
    if not names:
        return None
    return (
        f"The recording does not have the output tokens of {', '.join(names)}, so their cost counts input tokens "
        "alone; set assumed_output_tokens in the team file."
    )


def _length(response: RecordedResponse) -> int | None:
    """The output tokens of the response. None if they are unknown, since the source has only the answer."""
    if response.output_tokens is not None:
        return response.output_tokens
    if response.text in ("", f"<answer>{response.answer}</answer>"):
        return None
    return estimate_tokens(response.text)


def with_answer(response: RecordedResponse) -> str:
    """The response's text without thoughts. If its final answer differs from the recorded answer, that is added at the
    end."""
    text = without_thoughts(response.text)
    if response.answer is None or not response.answer.strip():
        return text
    stated = final_answer(text)
    if stated is not None and normalise(stated) == normalise(response.answer):
        return text
    return f"{text}\n<answer>{response.answer}</answer>".lstrip()
