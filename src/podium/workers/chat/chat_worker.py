"""A language model behind a chat API. One call is one attempt: it does not retry, and runs no tools.

If the API refuses a parameter or the form of the messages, the worker asks again at once without them, and remembers
that (`adaptation`). `OpenAIWorker` and `LiteLLMWorker` say how a request is sent.
"""

from __future__ import annotations

import asyncio
import json
import re
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import aiohttp

from podium.errors import WorkerError
from podium.trace import Reply
from podium.types import Message, Usage, sent_tokens
from podium.workers.base import Request, Worker
from podium.workers.chat.adaptation import Adaptation, AdaptedRequest, too_long
from podium.workers.chat.failures import Failures, RequestRejectedError
from podium.workers.chat.request_body import MaxTokensKey, chat_body, sent_limit
from podium.workers.chat.response_reader import ResponseReader, StreamScrubber
from podium.workers.chat.text_tool_calls import TextToolCallParser
from podium.workers.chat.tool_calls import is_cut
from podium.workers.chat.usage import read_usage
from podium.workers.redaction import Secrets
from podium.workers.spec import ChatSpec

_NAME_CHARS = 200
"""Characters kept of a model name or finish_reason."""
_THINKING_MODELS = re.compile(
    r"(?<![a-z0-9])(?:r1|z1|qwq|reason(?:er|ing)?|think(?:er|ing)?)(?![a-z0-9])", re.IGNORECASE
)
"""Names of models whose chat template may open their thought, so that their text begins inside it."""


class ChatWorker(Worker):
    """A model that is sent chats.

    Args:
        spec: the worker's settings. Its name says which messages' `provider_state` belongs to this API.
        model: the API's name for the model.
        shown: the API, as messages name it.
        secrets: secrets that are removed from replies and errors.
        max_tokens_key: the request key for the limit.
    """

    def __init__(
        self,
        spec: ChatSpec,
        model: str,
        shown: str,
        secrets: Secrets,
        max_tokens_key: MaxTokensKey = "max_tokens",
    ) -> None:
        self.profile, self.limits, self.fallback = spec.to_profile(), spec.limits, spec.fallback
        self._spec = spec
        self._model = model
        self._system = (Message(role="system", content=spec.system),) if spec.system else ()
        self._secrets = secrets
        self._failures = Failures(shown, secrets)
        self._max_tokens_key = max_tokens_key
        self._begins_inside_thought = True if _THINKING_MODELS.search(model) else None
        """Whether a text of the model was seen to begin inside a thought, or its name says so. None if neither is
        known."""
        self._adaptation = Adaptation()
        self.identity = {
            "model": model,
            "system": [message.content for message in self._system],
            "max_tokens": self.limits.max_tokens,
            "temperature": spec.temperature,
            "seed": spec.send_seed,
            "extra": spec.extra,
        }

    @abstractmethod
    async def _send(self, body: Mapping[str, Any], reader: ResponseReader) -> None:
        """Send one request, set `reader.request_sent` with it, and read the response.

        Raises:
            WorkerError: the response is not a reply. A `RequestRejectedError` says what the API reported.
            TimeoutError, aiohttp.ClientError, OSError: a time limit passed, or the connection failed.
        """

    async def answer(self, request: Request) -> Reply:
        """Call the model once. `earlier_calls` and `sample` are not sent, since the seed already depends on them.

        What a call without a reply took is added to its receipt: the provider's count, else an estimate of what was
        sent and received, where the provider may bill it.

        Raises:
            WorkerError: no text or tool call came back; or, of kind "context", the messages do not fit in it.
        """
        if self._system:
            request = replace(request, messages=self._system + request.messages)
        message_tokens = sent_tokens(request.messages, request.options)
        if reason := too_long(message_tokens, self._spec.context_tokens):
            raise self._failures.error(reason, "context")
        stream = self._spec.stream or request.on_text is not None
        adapted = self._adapted(request, message_tokens, stream=stream)
        reader = self._new_reader(request, stream=stream)
        try:
            await self._exchange(adapted, reader)
            reply = self._reply(reader, request, adapted)
        except (WorkerError, asyncio.CancelledError) as error:
            ended = isinstance(error, WorkerError) and error.kind != "timeout"
            if reader.may_be_billed or (reader.request_sent and not ended):
                usage = self._usage(reader, request, adapted.body)
                request.receipt.add(self._spec.price.spent(usage))
            raise
        builder = reader.builder
        if builder.opened_by_template or builder.finish == "stop":
            known = self._begins_inside_thought or False
            self._begins_inside_thought = known or builder.opened_by_template
        if adapted.changes:
            self._adaptation |= adapted.known  # Only now: what did not help shall not be remembered.
        reader.end()
        return reply

    def _adapted(self, request: Request, message_tokens: int, *, stream: bool) -> AdaptedRequest:
        """The request without what the API is known not to take."""
        build = partial(
            chat_body,
            spec=self._spec,
            model=self._model,
            max_tokens_key=self._max_tokens_key,
            options=request.options,
            seed=request.seed,
            stream=stream,
        )
        context_tokens = self._spec.context_tokens
        return AdaptedRequest(request.messages, build, self._adaptation, message_tokens, context_tokens)

    def _new_reader(self, request: Request, *, stream: bool) -> ResponseReader:
        return ResponseReader(
            self._failures,
            streamed=stream,
            timeout=self.limits.timeout,
            first_token_timeout=self.limits.first_token_timeout if stream else None,
            hold=self._begins_inside_thought,
            call_parser=TextToolCallParser.of(request.options),
            listeners=tuple(
                None if listener is None else StreamScrubber(listener, self._secrets)
                for listener in (request.on_text, request.on_reasoning)
            ),
        )

    async def _exchange(self, request: AdaptedRequest, reader: ResponseReader) -> None:
        """Send the request and read the response, within all time limits; again without what the API refuses. A
        response that is not a reply, or not whole, is a `WorkerError`."""
        try:
            async with reader.deadline:
                while True:
                    try:
                        await self._send(request.body, reader)
                        break
                    except RequestRejectedError as error:
                        if reader.builder.length or not request.change(error.reported):
                            raise
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            # An error after the end of the answer is no reason to pay for it again.
            if reader.complete:
                return
            if isinstance(error, aiohttp.ConnectionTimeoutError):
                limit = ("connect_timeout", self.limits.connect_timeout)
                raise self._failures.timed_out(*limit, reader.builder) from None
            if reader.deadline.expired():
                raise self._failures.timed_out(*reader.limit, reader.builder) from None
            raise self._failures.transport(error) from None

    def _reply(self, reader: ResponseReader, request: Request, sent: AdaptedRequest) -> Reply:
        builder, options, body = reader.builder, request.options, sent.body
        (reasoning, text), finish = builder.split(), builder.finish
        calls, text = builder.read_calls() if options.tools else ((), text)
        cut_call = bool(builder.calls and calls) and (finish == "length" or any(map(is_cut, calls)))
        if cut_call:
            # The part that was written may look like a whole call, and would then be run.
            finish, calls = "length", ()
        limit = sent_limit(body)
        # What the caller's own limit cuts off is what the caller wants, even if nothing is left.
        wanted = finish == "length" and limit is not None and limit == options.max_tokens
        wanted = wanted or (request.thoughts_suffice and bool(reasoning.strip()))
        if not (text.strip() or calls or wanted) or finish == "content_filter":
            raise self._failures.no_text(builder, cut_call=cut_call)
        if finish == "error":
            raise self._failures.error("it broke off with an error", "status", retryable=True)
        parameters = {"system": self._spec.system} if self._system else {}
        parameters |= {key: value for key, value in body.items() if key != "messages"}
        state = builder.state.read(calls_tools=bool(calls))
        reply = Reply(
            text,
            self._usage(reader, request, body),
            finish="tool_calls" if calls and finish in ("stop", "length") else _short(finish),
            model=_short(builder.model),
            fingerprint=_short(builder.fingerprint),
            context_tokens=sent.context_tokens,
            dropped=sent.dropped,
            folded=sent.folded,
            first_token_s=reader.first_token_s,
            reasoning=reasoning,
            parameters=parameters,
            logprobs=builder.logprobs,
            tool_calls=calls,
            provider_state=json.dumps(state) if state else "",
        )
        return self._secrets.scrub_reply(reply)

    def _usage(self, reader: ResponseReader, request: Request, body: Mapping[str, Any]) -> Usage:
        builder = reader.builder
        reasoning, text = builder.split()
        calls = "".join(call.name + call.arguments for call in builder.calls.read())
        return read_usage(
            builder.usage,
            request.messages,
            text + builder.refusal + calls + reader.unread.decode("utf-8", "replace"),
            reasoning,
            options=request.options,
            max_tokens=sent_limit(body),
        )


def _short(name: str | None) -> str | None:
    return None if name is None else name[:_NAME_CHARS]
