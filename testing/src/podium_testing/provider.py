"""The fault server's provider: checks key, model and rate limits, then lets a rule's fault or the model answer."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from podium_testing.completion import AnswerFunction, AnswerLike, count_input, error
from podium_testing.exchange import Exchange
from podium_testing.faults.refusals import refuse_limited
from podium_testing.rule import ActiveRules, Rule


@dataclass(slots=True)
class Admission:
    """A request that the rate limits accepted."""

    at: float
    tokens: int
    """At first the input's; the output's are added once the reply is complete."""
    over: bool = False
    """Whether its minute is past."""


class Quota:
    """The rate limits of one model: requests and tokens in `minute` seconds. None sets no limit."""

    def __init__(self, rpm: int | None, tpm: int | None, minute: float) -> None:
        self._rpm = rpm
        self._tpm = tpm
        self._minute = minute
        self._window: deque[Admission] = deque()
        self._tokens = 0

    def admit(self, tokens: int) -> Admission | float:
        """Accept a request with this many tokens, or return the seconds until it would be accepted."""
        now = time.monotonic()
        while self._window and now - self._window[0].at >= self._minute:
            past = self._window.popleft()
            past.over = True
            self._tokens -= past.tokens
        requests_over = 0 if self._rpm is None else len(self._window) + 1 - self._rpm
        tokens_over = 0 if self._tpm is None else self._tokens + tokens - self._tpm
        if requests_over <= 0 and tokens_over <= 0:
            admission = Admission(now, tokens)
            self._window.append(admission)
            self._tokens += tokens
            return admission
        for each in self._window:
            requests_over -= 1
            tokens_over -= each.tokens
            if requests_over <= 0 and tokens_over <= 0:
                return each.at + self._minute - now
        return self._minute

    def settle(self, admission: Admission, tokens: int) -> None:
        """Correct the tokens of an accepted request to those that it used."""
        if not admission.over:
            self._tokens += tokens - admission.tokens
            admission.tokens = tokens


class FakeProvider:
    """Answers the requests to a `FaultServer`, which explains the arguments."""

    def __init__(
        self,
        answer: AnswerLike | AnswerFunction,
        *,
        models: Mapping[str, AnswerLike | AnswerFunction] | Collection[str] | None,
        prices: Mapping[str, tuple[float, float]],
        rules: Sequence[Rule],
        keys: Collection[str] | None,
        limits: tuple[int | None, int | None, float],
        seed: str,
    ) -> None:
        self._answer = answer
        self._answers = (
            models if models is None or isinstance(models, Mapping) else dict.fromkeys(models, answer)
        )
        self._prices = prices
        # A str is a collection of its letters; without this, every key would be wrong.
        self._keys = {keys} if isinstance(keys, str) else keys
        self._limits = limits
        self._quotas: dict[str, Quota] = {}
        self._seed = seed
        self.active = ActiveRules(rules, seed)

    def set_rules(self, rules: Sequence[Rule]) -> None:
        """Replace the rules. Counts and draws begin anew."""
        self.active = ActiveRules(rules, self._seed)

    async def serve(self, exchange: Exchange) -> None:
        """Refuse the request, or serve the fault of the first rule that applies, or send a good reply."""
        route = (exchange.request.method, exchange.request.path)
        if not self._knows_key(exchange):
            message = "Incorrect API key provided."
            await _refuse(exchange, "key", 401, message, "invalid_api_key")
        elif route == ("GET", "/v1/models"):
            data = [
                {"id": name, "object": "model", "created": 0, "owned_by": "podium", **self._pricing(name)}
                for name in self._answers or ()
            ]
            await exchange.send_json({"object": "list", "data": data})
        elif route == ("POST", "/v1/chat/completions"):
            await self._complete(exchange)
        else:
            await _refuse(exchange, "path", 404, f"Invalid URL ({' '.join(route)})")

    def _pricing(self, model: str) -> dict[str, dict[str, str]]:
        """The price of a model as OpenRouter writes it: dollars per token, as texts."""
        if model not in self._prices:
            return {}
        sent, written = (f"{price / 1e6:.12f}" for price in self._prices[model])
        return {"pricing": {"prompt": sent, "completion": written}}

    async def _complete(self, exchange: Exchange) -> None:
        if problem := await _read(exchange):
            await _refuse(exchange, "body", 400, problem)
            return
        model = exchange.body["model"]
        if self._answers is not None and model not in self._answers:
            message = f"The model `{model}` does not exist or you do not have access to it."
            await _refuse(exchange, "model", 404, message, "model_not_found")
            return
        exchange.answer_source = self._answer if self._answers is None else self._answers[model]
        admission = self._admit(exchange, model)
        if isinstance(admission, float):
            exchange.fault = "limit"
            await refuse_limited(exchange, f"Rate limit reached for {model}.", f"{admission:.3f}")
            return
        try:
            fault = self.active.fault(exchange)
            if fault is None:
                await exchange.reply(await exchange.answer())
            else:
                exchange.fault = fault.kind
                await fault.serve(exchange)
        finally:
            if admission is not None and exchange.answered:
                self._quotas[model].settle(admission, exchange.input_tokens + exchange.output_tokens)

    def _admit(self, exchange: Exchange, model: str) -> Admission | float | None:
        rpm, tpm, minute = self._limits
        if rpm is None and tpm is None:
            return None
        quota = self._quotas.setdefault(model, Quota(rpm, tpm, minute))
        return quota.admit(count_input(exchange.body["messages"]))

    def _knows_key(self, exchange: Exchange) -> bool:
        if self._keys is None:
            return True
        # Providers use different headers for the key, and Azure's has no "Bearer".
        return any(value.removeprefix("Bearer ") in self._keys for value in exchange.request.headers.values())


async def _refuse(exchange: Exchange, fault: str, code: int, message: str, word: str | None = None) -> None:
    exchange.fault = fault
    await exchange.send_json(error(message, "invalid_request_error", word), code=code)


async def _read(exchange: Exchange) -> str | None:
    """Read the body into `exchange`; returns a sentence if it is wrong."""
    try:
        body = json.loads(await exchange.request.read())
    except (ValueError, RecursionError):
        return "We could not parse the JSON body of your request."
    if not isinstance(body, dict):
        return "The body of your request is not a JSON object."
    exchange.body = body
    if not isinstance(body.get("model"), str):
        return "You must provide a model parameter."
    messages = body.get("messages")
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        return "Missing required parameter: 'messages'."
    return None
