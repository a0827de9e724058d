"""A recorded model as a worker: it gives the response that it once gave to the question.

It reads the question alone, however many messages of ours that is wrapped in. What a subtask says or other workers
wrote does not change a recording, so a plan that relies on either learns nothing of what it would do to the model
(`podium.evals.evaluation` counts such steps).
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
        samples: which of several responses comes first: the first, or one at random by the question's seed. The
            others follow each time that the same question asks again, and after the last the first comes again.
        assumed_output_tokens: of every response, in place of what the recording knows.

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
        """The most responses that it has to one question."""
        return self._recording.samples(self._worker)

    @property
    def simulated(self) -> bool:
        """Whether a simulation gave the responses: then figures over them are a simulation's too."""
        return any(one.name == self._worker and one.simulated for one in self._recording.header.workers)

    def responses(self, question: str) -> tuple[Response, ...]:
        """All that it has to the question of this wording, in order."""
        return self._recording.responses(question).get(self._worker, ())

    def count(self, question: str) -> int:
        """How many responses it has to the question of this wording."""
        return len(self.responses(question))

    def knows(self, question: str) -> bool:
        """Whether there is a response to the question of this wording."""
        return self.count(question) > 0

    def charges_blindly(self, question: str) -> bool:
        """Whether a response to the question has a price of which nothing tells how long it was."""
        if self._assumed is not None or not self.profile.price.output:
            return False
        return any(_length(response) is None for response in self.responses(question))

    async def answer(self, request: Request) -> Reply:
        """The recorded response, with its tokens and seconds as far as they are known.

        Raises:
            WorkerError: the recording does not hold the question.
        """
        asked = self._asked(request.messages)
        given = () if asked is None else self.responses(asked.text)
        if not given or asked is None:
            start = " ".join(read_view(request.messages).question.split())[:60]
            raise WorkerError(
                f"{self._recording.name} holds no response of {self._worker} to the question {start!r}.",
                kind="unrecorded",
            )
        order = list(range(len(given)))
        if self._random:
            Random(f"replay/{request.question_seed}/{asked.id}/{self._worker}").shuffle(order)
        response = given[order[request.repeat % len(given)]]
        return Reply(
            with_answer(response),
            self._usage(response, asked.text),
            latency_s=(self.profile.latency_s or 0.0) if response.seconds is None else response.seconds,
            recorded=f"{self._recording.name}#{asked.id}/{self._worker}/{response.sample}",
        )

    async def close(self) -> None:
        """Nothing to give back."""

    def _asked(self, messages: Sequence[Message]) -> RecordedQuestion | None:
        """The question as it stands there, or in a message of the executor's, or of the team's that is asked by one.

        As it stands first: a recorded question may look like such a message.
        """
        text = next((message.content for message in reversed(messages) if message.role == "user"), "")
        while (found := self._recording.find(text)) is None:
            inner = read_view((Message(role="user", content=text),)).question
            if inner == text:
                return None
            text = inner
        return found

    def _usage(self, response: Response, question: str) -> Usage:
        """Of the bare question and the response: what the recorded call cost, not what it was shown here."""
        given, made = response.input_tokens, response.output_tokens
        length = _length(response) if self._assumed is None else self._assumed
        return Usage(
            input_tokens=estimate_tokens(question) if given is None else given,
            output_tokens=length or 0,
            estimated=given is None or made is None or response.estimated or self._assumed is not None,
        )


def blind_charges(workers: Iterable[ReplayWorker], questions: Sequence[str]) -> str | None:
    """A sentence on the workers whose dollars lack what responses to these questions were long; None: nobody's do."""
    names = [
        worker.profile.name for worker in workers if any(worker.charges_blindly(text) for text in questions)
    ]
    if not names:
        return None
    return (
        f"The recording does not tell how long responses of {', '.join(names)} are: their dollars count the input "
        "alone. assumed_output_tokens in the pool file gives them a length."
    )


def _length(response: Response) -> int | None:
    """Tokens of the response; None: the source has its answer alone, and nothing tells."""
    if response.output_tokens is not None:
        return response.output_tokens
    if response.text in ("", f"<answer>{response.answer}</answer>"):
        return None
    return estimate_tokens(response.text)


def with_answer(response: Response) -> str:
    """The response's text, in which its recorded answer is found; where it would not be, it is added at the end."""
    if response.answer is None or not response.answer.strip():
        return response.text
    found = final_answer(response.text)
    if found is not None and normalise(found) == normalise(response.answer):
        return response.text
    return f"{response.text}\n<answer>{response.answer}</answer>".lstrip()
