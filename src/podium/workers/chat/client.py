"""The client: sends one chat to one endpoint, once, and returns the reply or raises a `WorkerError`.

It does not retry, and runs no tools. `on_text` gets the text of a streamed reply piece by piece; the return value is
the whole reply.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import aiohttp
from aiohttp.abc import AbstractStreamWriter

from podium.errors import WorkerError
from podium.types import AnswerOptions, Message, ToolCall, Usage
from podium.workers.base import Reply
from podium.workers.chat.endpoint import Endpoint
from podium.workers.chat.failures import Failures, filtered
from podium.workers.chat.request_body import MaxTokensKey, chat_body, sent_limit
from podium.workers.chat.response_reader import ResponseReader, StreamScrubber
from podium.workers.chat.usage import read_usage
from podium.workers.connections import Connections

_NAME = 200
"""Characters kept of a model name or finish_reason."""


@cache
def _time_limits(connect_timeout: float) -> aiohttp.ClientTimeout:
    # By default aiohttp rounds limits over 5 s up to whole seconds.
    return aiohttp.ClientTimeout(total=None, connect=connect_timeout, ceil_threshold=float("inf"))


class _Body(aiohttp.BytesPayload):
    """The body of a request, which knows whether the connection was opened and the body sent."""

    sent = False

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        self.sent = True
        await super().write_with_length(writer, content_length)


class ChatClient:
    """Posts to one endpoint's /chat/completions.

    Args:
        base_url: up to and without /chat/completions, as in "https://api.openai.com/v1".
        key: sent in `key_header`; None: no such header.
        connections: shared with other clients, as are their secrets; None: its own.
        key_header, query, headers, secret_headers: as `Endpoint`.
        max_tokens_key: the request key for the limit; None: chosen by the address.

    Raises:
        ConfigError: `base_url` is not an http or https address.
    """

    def __init__(
        self,
        base_url: str,
        key: str | None = None,
        *,
        connections: Connections | None = None,
        key_header: str | None = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        secret_headers: Mapping[str, str] | None = None,
        max_tokens_key: MaxTokensKey | None = None,
    ) -> None:
        self._connections = connections or Connections()
        self._secrets = self._connections.secrets
        self.endpoint = Endpoint(
            base_url,
            key,
            self._secrets,
            key_header=key_header,
            query=query,
            headers=headers,
            secret_headers=secret_headers,
        )
        self._failures = Failures(self.endpoint.base_url, self._secrets)
        # OpenAI's newer models refuse max_tokens, which every other server accepts.
        is_openai = self.endpoint.host == "api.openai.com"
        self._max_tokens_key = max_tokens_key or ("max_completion_tokens" if is_openai else "max_tokens")

    def __repr__(self) -> str:
        return f"ChatClient({self.endpoint.base_url!r})"

    async def chat(
        self,
        messages: Sequence[Message],
        *,
        model: str,
        timeout: float = 120.0,  # noqa: ASYNC109 - a limit of the worker's, named in messages
        connect_timeout: float = 10.0,
        first_token_timeout: float | None = None,
        stream: bool = False,
        max_tokens: int | None = None,
        temperature: float | None = None,
        seed: int | None = None,
        extra: Mapping[str, Any] | None = None,
        options: AnswerOptions = AnswerOptions(),
        on_text: Callable[[str], None] | None = None,
        on_reasoning: Callable[[str], None] | None = None,
    ) -> Reply:
        """One attempt at one completion.

        Args:
            messages: what is sent, oldest first.
            model: the endpoint's name for the model.
            timeout: seconds for the whole call.
            connect_timeout: seconds until the connection is open, DNS and TLS included.
            first_token_timeout: seconds until a streamed reply must have begun; None: no limit.
            stream: whether to ask for a streamed reply.
            max_tokens, temperature, seed: None: not sent, so the endpoint's default holds.
            extra: further keys of the body; they win over the others.
            options: the caller's settings; with tools, the reply may be tool calls.
            on_text, on_reasoning: called with each piece of the text and of the visible reasoning as it comes; the
                first implies `stream`.

        Raises:
            WorkerError: no text or tool call came back. Its `usage` is what that took, as that of a cancellation is:
                the provider's count, else an estimate of what was sent and received, where the provider may bill it.
        """
        settings = {"max_tokens": max_tokens, "temperature": temperature, "seed": seed}
        stream = stream or on_text is not None
        body = chat_body(
            messages,
            model=model,
            max_tokens_key=self._max_tokens_key,
            settings=settings,
            options=options,
            extra=extra or {},
            stream=stream,
        )
        listeners = [
            None if each is None else StreamScrubber(each, self._secrets) for each in (on_text, on_reasoning)
        ]
        reader = ResponseReader(
            self._failures,
            streamed=stream,
            timeout=timeout,
            first_token_timeout=first_token_timeout if stream else None,
            listeners=tuple(None if each is None else each.add for each in listeners),
        )
        content = _Body(json.dumps(body).encode())
        try:
            await self._exchange(content, connect_timeout, reader)
            reply = self._reply(reader, messages, body, options)
        except (WorkerError, asyncio.CancelledError) as error:
            ended = isinstance(error, WorkerError) and error.kind != "timeout"
            if reader.may_be_billed or (content.sent and not ended):
                vars(error)["usage"] = self._usage(reader, messages, body, options)
            raise
        for listener in listeners:
            if listener is not None:
                listener.end()
        return reply

    async def close(self) -> None:
        """Close the connections, also those shared with other clients; a later call opens new ones."""
        await self._connections.close()

    async def _exchange(self, content: _Body, connect_timeout: float, reader: ResponseReader) -> None:
        """Send the request and read the response, within all time limits.

        Raises:
            WorkerError: the response is not a reply, or not whole.
        """
        try:
            async with reader.deadline:
                await self._post(content, connect_timeout, reader)
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            # An error after the end of the answer is no reason to pay for it again.
            if not reader.complete:
                if isinstance(error, aiohttp.ConnectionTimeoutError):
                    raise self._failures.timed_out(
                        "connect_timeout", connect_timeout, reader.builder
                    ) from None
                if reader.deadline.expired():
                    raise self._failures.timed_out(*reader.limit, reader.builder) from None
                raise self._failures.transport(error) from None

    async def _post(self, content: _Body, connect_timeout: float, reader: ResponseReader) -> None:
        session = await self._connections.session()
        async with session.post(
            self.endpoint.url,
            params=self.endpoint.query or None,
            data=content,
            headers=self.endpoint.all_headers(),
            allow_redirects=False,
            proxy=self.endpoint.proxy,
            timeout=_time_limits(connect_timeout),
        ) as response:
            await reader.read(response)

    def _reply(
        self,
        reader: ResponseReader,
        messages: Sequence[Message],
        body: Mapping[str, Any],
        options: AnswerOptions,
    ) -> Reply:
        builder = reader.builder
        text = builder.text
        calls = builder.tool_calls if options.tools else ()
        if not (text.strip() or calls) or filtered(builder.finish):
            raise self._failures.no_text(builder)
        if builder.finish == "error":
            raise self._failures.error("it broke off with an error", "status", retryable=True)
        return Reply(
            self._secrets.scrub(text),
            self._usage(reader, messages, body, options),
            finish=self._name(builder.finish),
            model=self._name(builder.model),
            first_token_s=reader.first_token_s,
            reasoning=self._secrets.scrub(builder.reasoning),
            parameters=self._secrets.scrub_values({k: v for k, v in body.items() if k != "messages"}),
            logprobs=builder.logprobs,
            tool_calls=tuple(
                ToolCall(**{field: self._secrets.scrub(value) for field, value in call}) for call in calls
            ),
        )

    def _usage(
        self,
        reader: ResponseReader,
        messages: Sequence[Message],
        body: Mapping[str, Any],
        options: AnswerOptions,
    ) -> Usage:
        """What was taken so far."""
        builder = reader.builder
        calls = "".join(call.name + call.arguments for call in builder.tool_calls)
        return read_usage(
            builder.usage,
            messages,
            builder.text + builder.refusal + calls + reader.unread.decode("utf-8", "replace"),
            builder.reasoning,
            options=options,
            max_tokens=sent_limit(body),
        )

    def _name(self, value: str | None) -> str | None:
        return None if value is None else self._secrets.scrub(value)[:_NAME]
