"""`replay`: a worker that returns the recorded response of a model to the question.

It looks up the question, and ignores subtasks and other workers' responses: they cannot change a recording. So a replay
does not show what a plan that relies on them would do with the real model; `podium.evals.evaluation` counts such steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import Literal

from podium.config import suggestion
from podium.errors import ConfigError, WorkerError
from podium.recordings import RecordedQuestion, Recording, Response
from podium.types import Limits, Message, Profile, Usage, estimate_tokens
from podium.workers.answer import final_answer, normalise
from podium.workers.base import Reply, Request
from podium.workers.view import read_view


class ReplayWorker:
    """One worker of a recording.

    Args:
        worker: its name in the recording.
        samples: the order of several responses to a question: as recorded, or shuffled by the question's seed. Each
            further call for the same question gets the next one; after the last comes the first.
        assumed_output_tokens: output tokens of every response, instead of the recorded number.

    Raises:
        ConfigError: the recording has no such worker.
    """

    identity = None

    def __init__(
        self,
        profile: Profile,
        recording: Recording,
        worker: str,
        *,
        samples: Literal["in turn", "random"] = "in turn",
        assumed_output_tokens: int | None = None,
        limits: Limits | None = None,
        fallback: str | None = None,
    ) -> None:
        if worker not in recording.workers:
            raise ConfigError(
                f"{recording.path} has no responses of {worker!r}; {suggestion(worker, recording.workers)}"
            )
        self.profile = profile
        self.limits = limits or Limits(retries=0)
        self.fallback = fallback
        self._recording = recording
        self._worker = worker
        self._random = samples == "random"
        self._assumed = assumed_output_tokens

    @property
    def samples(self) -> int:
        """The highest number of responses to one question."""
        return self._recording.samples(self._worker)

    @property
    def simulated(self) -> bool:
        """Whether the recorded worker was simulated; then figures from its responses are simulated too."""
        return any(one.name == self._worker and one.simulated for one in self._recording.header.workers)

    def responses(self, question: str) -> tuple[Response, ...]:
        """All recorded responses to the question with this text, in order."""
        return self._recording.responses(question).get(self._worker, ())

    def count(self, question: str) -> int:
        """The number of recorded responses to the question with this text."""
        return len(self.responses(question))

    def knows(self, question: str) -> bool:
        """Whether a response to the question with this text is recorded."""
        return self.count(question) > 0

    def has_unknown_length(self, question: str) -> bool:
        """Whether the output tokens of a response to the question are unknown, though output has a price."""
        if self._assumed is not None or not self.profile.price.output:
            return False
        return any(_length(response) is None for response in self.responses(question))

    async def answer(self, request: Request) -> Reply:
        """The recorded response, with its tokens and seconds as far as they are known.

        Raises:
            WorkerError: "unrecorded": the recording has no response to the question.
        """
        recorded = self._question(request)
        responses = () if recorded is None else self.responses(recorded.text)
        if not responses or recorded is None:
            start = " ".join(request.view.question.split())[:60]
            raise WorkerError(
                f"{self._recording.name} holds no response of {self._worker} to the question {start!r}.",
                kind="unrecorded",
            )
        order = list(range(len(responses)))
        if self._random:
            Random(f"replay/{request.question_seed}/{recorded.id}/{self._worker}").shuffle(order)
        response = responses[order[request.repeat % len(responses)]]
        return Reply(
            with_answer(response),
            self._usage(response, recorded.text),
            latency_s=(self.profile.latency_s or 0.0) if response.seconds is None else response.seconds,
            recorded=f"{self._recording.name}#{recorded.id}/{self._worker}/{response.sample}",
        )

    async def close(self) -> None:
        """Nothing to close."""

    def _question(self, request: Request) -> RecordedQuestion | None:
        """Find the recorded question: the last user message itself, else the question in it, else the one in that.

        The message itself comes first, since a recorded question may look like a message of the executor. Questions
        are nested where the worker is in a team that is itself a worker: the team's question is a whole message.
        """
        text = next((message.content for message in reversed(request.messages) if message.role == "user"), "")
        inner = request.view.question
        while (found := self._recording.find(text)) is None:
            if inner == text:
                return None
            text = inner
            inner = read_view((Message(role="user", content=text),)).question
        return found

    def _usage(self, response: Response, question: str) -> Usage:
        """Tokens of the bare question and the response, as in the recorded call, not of the messages of this call."""
        sent, made = response.input_tokens, response.output_tokens
        length = _length(response) if self._assumed is None else self._assumed
        return Usage(
            input_tokens=estimate_tokens(question) if sent is None else sent,
            output_tokens=length or 0,
            estimated=sent is None or made is None or response.estimated or self._assumed is not None,
        )


def unknown_length_warning(workers: Iterable[ReplayWorker], questions: Sequence[str]) -> str | None:
    """A sentence that names the workers whose output tokens, and so costs, the recording lacks; None: no worker."""
    names = [
        worker.profile.name
        for worker in workers
        if any(worker.has_unknown_length(text) for text in questions)
    ]
    if not names:
        return None
    return (
        f"The recording does not have the output tokens of {', '.join(names)}, so their cost counts input tokens "
        "alone; set assumed_output_tokens in the pool file."
    )


def _length(response: Response) -> int | None:
    """Output tokens of the response; None: unknown, since the source has only its answer."""
    if response.output_tokens is not None:
        return response.output_tokens
    if response.text in ("", f"<answer>{response.answer}</answer>"):
        return None
    return estimate_tokens(response.text)


def with_answer(response: Response) -> str:
    """The response's text. If its final answer is not the recorded answer, that is added at the end."""
    if response.answer is None or not response.answer.strip():
        return response.text
    found = final_answer(response.text)
    if found is not None and normalise(found) == normalise(response.answer):
        return response.text
    return f"{response.text}\n<answer>{response.answer}</answer>".lstrip()
