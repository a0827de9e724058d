"""A policy behind any OpenAI-compatible endpoint: any strong LLM can conduct untrained.

Asks, and asks again what may pass. Whether a temperature and a seed are sent is a setting, because several
models refuse them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from podium.conductor.policy import Completion, Sampling
from podium.executor import Reservation
from podium.types import Limits, Message, Price, estimate_tokens
from podium.workers.chat.request_body import seed_number
from podium.workers.retry import attempts

if TYPE_CHECKING:
    from podium.workers.chat.client import ChatClient

_LONGEST_WAIT_S = 30.0
"""Who is asked to wait longer than this is told so instead."""


class ServedPolicy:
    """A `Policy` over an endpoint.

    Args:
        client: posts to the endpoint.
        model: the endpoint's name for the model; also this policy's name.
        price: dollars per million tokens; None: what a completion costs is not known.
        limits: time limit, retries, and the tokens written where the sampling does not say.
        sampled: whether temperature and seed are sent. Off: the endpoint's own are used.
        extra: further keys of the request's body.
    """

    def __init__(
        self,
        client: ChatClient,
        model: str,
        *,
        price: Price | None = None,
        limits: Limits | None = None,
        sampled: bool = False,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        self._client = client
        self._model = model
        self._price = price
        self._limits = limits or Limits()
        self._sampled = sampled
        self._extra = dict(extra or {})

    def __repr__(self) -> str:
        return f"ServedPolicy({self._client!r}, {self._model!r})"

    @property
    def name(self) -> str:
        return self._model

    def reservation(self, messages: tuple[Message, ...], sampling: Sampling) -> Reservation:
        """See `PaidPolicy`."""
        return Reservation.most(
            input_tokens=sum(estimate_tokens(message.content) for message in messages),
            output_tokens=sampling.max_tokens or self._limits.max_tokens,
            price=self._price or Price(),
            calls=0,
        )

    async def complete(self, messages: tuple[Message, ...], sampling: Sampling) -> Completion:
        """Write one completion.

        Raises:
            WorkerError: the endpoint did not answer, after all retries.
        """
        async for attempt in attempts(self._limits.retries, longest_s=_LONGEST_WAIT_S):
            with attempt:
                reply = await self._client.chat(
                    messages,
                    model=self._model,
                    timeout=self._limits.timeout,
                    max_tokens=sampling.max_tokens or self._limits.max_tokens,
                    temperature=sampling.temperature if self._sampled else None,
                    seed=seed_number(sampling.seed) if self._sampled else None,
                    extra=self._extra,
                )
        if self._price is None:
            return Completion(reply.text, reply.usage, reply.cost_usd or 0.0, unpriced=reply.cost_usd is None)
        return Completion(reply.text, reply.usage, self._price.cost(reply.usage))

    async def close(self) -> None:
        """Give back the connections."""
        await self._client.close()
