"""The formats of a structured plan: the fields of a request by which an untrained Conductor is asked for a plan.

The formats are a ladder, from the strictest down to plain text. A probe finds the first that an endpoint really obeys,
and its verdict is kept in a file for a day. Status 200 proves nothing, since some servers accept a schema and ignore
it. So the probe's schema demands an object with an odd key, whose only allowed value is a random word that is not in
the prompt. The endpoint obeys if its answer has the word.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from podium.concurrency.event_loops import PerLoop
from podium.errors import BudgetExceededError, StoreError, WorkerError
from podium.files.atomic import replace_file
from podium.spending.shared_spend_limit import default_state_path
from podium.trace import Reply
from podium.types import AnswerOptions, Message
from podium.workers.base import Worker

PlanFormat = Literal["exact", "portable", "own", "tool", "json", "text"]
"""The formats: response_format with the exact or the portable schema, the schema in the server's own field, a forced
tool call, response_format json_object, and no field at all."""
FORMATS_STRICTEST_FIRST: tuple[PlanFormat, ...] = ("exact", "portable", "own", "tool", "json", "text")
PlanChoice = Literal["auto", "schema", "tool", "json", "text"]
CHOICES: Mapping[PlanChoice, tuple[PlanFormat, ...]] = {
    "auto": FORMATS_STRICTEST_FIRST,
    "schema": ("exact", "portable", "own"),
    "tool": ("tool",),
    "json": ("json",),
    "text": ("text",),
}
"""The formats that each value of `[conductor] plans` allows. The best format comes first."""
FORMAT_WORDS: Mapping[PlanFormat, str] = {
    "exact": "by an exact JSON schema",
    "portable": "by a JSON schema",
    "own": "by a JSON schema in the server's own field",
    "tool": "by a tool call",
    "json": "in JSON mode",
    "text": "as text",
}
PLAN_TOOL = "write_plan"
"""The name of the tool whose arguments are the plan."""
MAX_VERDICT_AGE_S = 86_400.0
"""How long a verdict holds, in seconds."""
PROBE_TOKENS = 64
"""The most tokens of a probe's answer. A model that used them up for reasoning gets `_THINKING_TOKENS` once."""
_THINKING_TOKENS = 1024
MAX_PROBE_OUTPUT_TOKENS = 6 * PROBE_TOKENS + _THINKING_TOKENS
"""The most output tokens of all requests of one probe."""
_PROBE_S = 120.0
"""Seconds after which a probe is given up. A later plan may probe again."""
_QUESTION = "Say hello."


def format_options(
    format: PlanFormat, exact: dict[str, Any], portable: dict[str, Any], *, url: str
) -> AnswerOptions:
    """The fields of a request for an object in `format` from an endpoint at `url`. The two schemas describe the
    object."""
    match format:
        case "exact" | "portable":
            schema = exact if format == "exact" else portable
            described = {"name": PLAN_TOOL, "schema": schema, "strict": True}
            return AnswerOptions(response_format={"type": "json_schema", "json_schema": described})
        case "own":
            return AnswerOptions(extra=_own_field(url, exact, portable))
        case "tool":
            function = {"name": PLAN_TOOL, "description": "Write the reply.", "parameters": portable}
            choice = {"type": "function", "function": {"name": PLAN_TOOL}}
            return AnswerOptions(tools=({"type": "function", "function": function},), tool_choice=choice)
        case "json":
            return AnswerOptions(response_format={"type": "json_object"})
        case "text":
            return AnswerOptions()


def _own_field(url: str, exact: dict[str, Any], portable: dict[str, Any]) -> dict[str, Any]:
    """The field for a schema of Anthropic or Ollama, or of vLLM for all other addresses."""
    address = urlsplit(url)
    if "anthropic" in address.netloc:
        return {"output_config": {"format": {"type": "json_schema", "schema": portable}}}
    if "ollama" in address.netloc or address.netloc.endswith(":11434"):
        return {"format": exact}
    return {"structured_outputs": {"json": exact}}


def plan_text(reply: Reply) -> str:
    """The plan that the model wrote: its text, or the arguments of its tool call."""
    calls = [call.arguments for call in reply.tool_calls if call.name == PLAN_TOOL]
    return calls[-1] if calls else reply.text


def endpoint_of(worker: Worker) -> Mapping[str, Any] | None:
    """The parts of a worker's identity that decide which formats its endpoint obeys.

    None if the worker is no endpoint. Its plans are then asked for by text.
    """
    identity = worker.identity or {}
    if identity.get("kind") not in ("openai", "gguf", "litellm"):
        return None
    return {key: identity.get(key) for key in ("kind", "url", "query", "model", "extra")}


Ask = Callable[[tuple[Message, ...], AnswerOptions], Awaitable[Reply]]
"""Calls the endpoint once, in the shape in which plans are asked for. Raises `WorkerError`."""


class ProbeCache:
    """Verdicts by endpoint, shared by processes, each in a small file. If it cannot be used, verdicts are not kept, and
    nothing fails.

    Args:
        folder: where the files are. Default: `plan_formats` beside the state file.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or default_state_path().with_name("plan_formats")

    def get(self, worker: Worker) -> PlanFormat | None:
        """The verdict on the endpoint of `worker`. None if there is none from the last day."""
        file = self._file(worker)
        with suppress(OSError, ValueError):
            if time.time() - MAX_VERDICT_AGE_S < file.stat().st_mtime <= time.time() + 1:
                kept = file.read_text()
                return next((format for format in FORMATS_STRICTEST_FIRST if format == kept), None)
        return None

    def put(self, worker: Worker, format: PlanFormat) -> None:
        with suppress(OSError, StoreError):
            self._folder.mkdir(parents=True, exist_ok=True)
            replace_file(self._file(worker), format.encode())

    def forget(self, worker: Worker) -> None:
        with suppress(OSError):
            self._file(worker).unlink()

    def _file(self, worker: Worker) -> Path:
        endpoint = json.dumps(endpoint_of(worker), sort_keys=True)
        return self._folder / sha256(endpoint.encode()).hexdigest()


class ChosenFormat(NamedTuple):
    """The format by which an endpoint is asked for one plan."""

    format: PlanFormat
    is_proven: bool = False
    """Whether the endpoint was seen to obey the format."""


class FormatNegotiator:
    """Chooses the format by which one endpoint is asked for plans.

    Args:
        worker: an endpoint.
        choice: the formats that the user allows.
    """

    def __init__(self, worker: Worker, choice: PlanChoice) -> None:
        self._worker = worker
        self._allowed = CHOICES[choice]
        self._verdicts = ProbeCache()
        self._probing = PerLoop(_lock)

    @property
    def url(self) -> str:
        """The endpoint's address."""
        return str((endpoint_of(self._worker) or {}).get("url") or "")

    @property
    def known_format(self) -> PlanFormat | None:
        """The format of the next plan. None if a probe must find it."""
        if len(self._allowed) == 1:
            return self._allowed[0]
        obeyed = self._verdicts.get(self._worker)
        return None if obeyed is None else self._best(obeyed)

    def _best(self, obeyed: PlanFormat) -> PlanFormat:
        """The best format that the user allows, if `obeyed` is the best format that the endpoint obeys."""
        return obeyed if obeyed in self._allowed else "portable"

    async def choose(self, ask: Ask) -> ChosenFormat:
        """Choose the best format that the user allows. Concurrent first calls share one probe.

        If a budget or an infrastructure failure stopped the probe, the format of this plan is text.
        """
        if len(self._allowed) == 1:
            return ChosenFormat(self._allowed[0])
        async with await self._probing.get():
            obeyed = self._verdicts.get(self._worker)
            if obeyed is None:
                with suppress(TimeoutError, BudgetExceededError):
                    async with asyncio.timeout(_PROBE_S):
                        obeyed = await _probe(ask, self.url)
                if obeyed is None:
                    return ChosenFormat("text")
                self._verdicts.put(self._worker, obeyed)
        return ChosenFormat(self._best(obeyed), is_proven=obeyed in self._allowed)

    def allows(self, format: PlanFormat) -> bool:
        return format in self._allowed

    def after(self, chosen: ChosenFormat) -> ChosenFormat:
        """The format for a second try after a bad plan: the next format of the ladder, if the user allows it."""
        format = chosen.format
        rungs = [rung for rung in self._allowed if rung not in ("portable", "own") or rung == format]
        index = rungs.index(format) if format in rungs else len(rungs)
        following = rungs[min(index + 1, len(rungs) - 1)]
        return chosen if following == format else ChosenFormat(following)

    def forget(self) -> None:
        """Forget the verdict, so that a probe comes before the next plan."""
        self._verdicts.forget(self._worker)


async def _lock() -> AsyncGenerator[asyncio.Lock]:
    yield asyncio.Lock()


async def _probe(ask: Ask, url: str) -> PlanFormat | None:
    """Try the formats in order. Returns None after a failure that says nothing about formats, such as a timeout."""
    thinking_tokens = _THINKING_TOKENS
    for format in FORMATS_STRICTEST_FIRST:
        key, word = f"zq{secrets.token_hex(2)}", "".join(secrets.choice("bdfgklmnprstvz") for _ in range(8))
        question, options = _question(format, key, word, url)
        try:
            reply = await ask(question, options.model_copy(update={"max_tokens": PROBE_TOKENS}))
        except WorkerError as error:
            if error.retryable or error.kind not in ("status", "protocol", "content_filter"):
                return None
            if not thinking_tokens or "max_tokens" not in str(error):
                continue
            thinking_tokens, most = 0, thinking_tokens
            try:
                reply = await ask(question, options.model_copy(update={"max_tokens": most}))
            except WorkerError:
                return None
        if _obeys(plan_text(reply), format, key, word):
            return format
    return None


def _question(format: PlanFormat, key: str, word: str, url: str) -> tuple[tuple[Message, ...], AnswerOptions]:
    """A question in whose answer `key` can only have the value `word`, and the fields that say so."""
    only = {"type": "string", "enum": [word]}
    exact = {"type": "array", "prefixItems": [only], "minItems": 1, "maxItems": 1}
    options = format_options(format, _object(key, {"anyOf": [exact]}), _object(key, only), url=url)
    question = f"{_QUESTION} Reply with a JSON object." if format == "json" else _QUESTION
    return (Message(role="user", content=question),), options


def _obeys(text: str, format: PlanFormat, key: str, word: str) -> bool:
    if format == "text":
        return True
    if format == "json":
        with suppress(ValueError, RecursionError):
            return isinstance(json.loads(text), dict)
        return False
    return re.search(rf'"{key}"\s*:\s*(\[\s*)?"{word}"', text) is not None


def _object(key: str, value: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {key: value}, "required": [key], "additionalProperties": False}
