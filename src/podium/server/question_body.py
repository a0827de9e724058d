"""What the bodies of all APIs that ask a question have in common, and the question that a body asks.

The methods of a body say what its API writes in its own way: conversation, tools and sampling settings.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from secrets import token_hex
from typing import Any, ClassVar

from pydantic import Field

from podium.server.conversation import stay_with_worker, to_question
from podium.server.keys import Caller
from podium.server.prepared_question import PreparedQuestion
from podium.server.requests import NO_OPTIONS, Body, BodyPart, ChatRequest, Name, PodiumOptions
from podium.server.service import Service
from podium.server.unsupported_fields import UnsupportedFields, handle_unsupported, ignore_names
from podium.server.worker_selection import resolve_model
from podium.store import TraceStore
from podium.types import AnswerOptions, Message


class ContentPart(BodyPart):
    """A part of the content of a message."""

    @property
    def words(self) -> str:
        """What planners and workers read of the part. It is "" if there is nothing to read."""
        return ""

    @property
    def images(self) -> tuple[str, ...]:
        """The addresses of the images that the part shows."""
        return ()


class TextPart(ContentPart):
    """A text, under each API's own type."""

    text: str

    @property
    def words(self) -> str:
        return self.text


def text_of(content: str | Sequence[ContentPart] | None) -> str:
    """The text of a content. Parts without text are left out."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(filter(None, (part.words for part in content)))


def images_of(content: str | Sequence[ContentPart] | None) -> tuple[str, ...]:
    """The addresses of the images in a content."""
    if content is None or isinstance(content, str):
        return ()
    return tuple(image for part in content for image in part.images)


def text_and_images(content: str | Sequence[ContentPart]) -> tuple[str, tuple[str, ...]]:
    """The text and the images of a content. The text of images alone says so to planners and workers."""
    text, images = text_of(content), images_of(content)
    if text.strip() or not images:
        return text, images
    if len(images) == 1:
        return "This image was sent without words: answer what it asks, or say what it shows.", images
    what = "answer what they ask, or say what they show"
    return f"These {len(images)} images were sent without words: {what}.", images


class QuestionBody(Body, ABC):
    """The body of a request for an answer. It has the fields of all APIs."""

    conversation_field: ClassVar[str] = "messages"
    """The field with the conversation, for error messages."""

    model: Name
    """podium, podium/PLANNER or a worker's name."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    stream: bool | None = None
    podium: PodiumOptions | None = None

    @abstractmethod
    async def read_messages(
        self, worker: str | None, store: TraceStore, caller: Caller
    ) -> tuple[Message, ...]:
        """The conversation, of which the store may have the earlier part. `worker` is the worker that is called
        directly."""

    @abstractmethod
    def answer_options(self, extra: dict[str, Any]) -> AnswerOptions:
        """The settings and tools of the answer, with `extra` fields for the endpoint of the one worker.

        Raises:
            APIError: 400, the choice refers to a tool that the request does not have.
        """

    def for_endpoint(self, fields: UnsupportedFields) -> UnsupportedFields:
        """The unsupported fields, with those for the endpoint of the one worker as a chat completion has them."""
        return fields

    def complete(self, request: ChatRequest) -> ChatRequest:
        """The request, with what only this API says of it: seed, metadata, end user, whether the trace is kept."""
        return request


async def open_question(
    body: QuestionBody, service: Service, caller: Caller, *, ignores_unknown: bool = False
) -> PreparedQuestion:
    """The question that `body` asks.

    Args:
        ignores_unknown: whether unknown fields of the body are ignored.

    Raises:
        APIError: the request cannot be honoured as it is.
    """
    options = body.podium or NO_OPTIONS
    choice = resolve_model(body.model, service.pool, caller)
    worker = choice.worker
    takes_extra = worker is not None and service.pool.named(worker).traits.takes_extra
    unsupported = handle_unsupported(body, passes=takes_extra, ignores_unknown=ignores_unknown)
    messages = await body.read_messages(worker, service.store, caller)
    unsupported = body.for_endpoint(unsupported) if takes_extra else ignore_names(messages, unsupported)
    answer_options = body.answer_options(unsupported.extra)
    request = ChatRequest(
        question=to_question(
            messages, answer_options, direct=worker is not None, param=body.conversation_field
        ),
        messages=None if worker is None else messages,
        options=options,
        model=body.model,
        planner=choice.planner,
        worker=worker,
        seed=token_hex(8),
        ignored=unsupported.ignored,
    )
    request = await stay_with_worker(body.complete(request), service, caller)
    return await PreparedQuestion.open(service, request, caller)
