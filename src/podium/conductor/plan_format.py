"""The formats of a structured plan: the fields of a request by which an untrained Conductor is asked for a plan.

The formats are a ladder, from the strictest down to plain text. `format_probe` finds the first format that an endpoint
obeys. Whatever the model returns is parsed and checked. Nothing here calls a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

from podium.trace import Reply
from podium.types import AnswerOptions
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
"""The formats in words, for messages."""
TOOL = "write_plan"
"""The name of the tool whose arguments are the plan."""


def format_options(
    format: PlanFormat, exact: dict[str, Any], portable: dict[str, Any], *, url: str
) -> AnswerOptions:
    """The fields of a request for an object in `format` from an endpoint at `url`. The two schemas describe the
    object."""
    match format:
        case "exact" | "portable":
            schema = exact if format == "exact" else portable
            described = {"name": TOOL, "schema": schema, "strict": True}
            return AnswerOptions(response_format={"type": "json_schema", "json_schema": described})
        case "own":
            return AnswerOptions(extra=_own_field(url, exact, portable))
        case "tool":
            function = {"name": TOOL, "description": "Write the reply.", "parameters": portable}
            choice = {"type": "function", "function": {"name": TOOL}}
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
    calls = [call.arguments for call in reply.tool_calls if call.name == TOOL]
    return calls[-1] if calls else reply.text


def endpoint_of(worker: Worker) -> Mapping[str, Any] | None:
    """The parts of a worker's identity that decide which formats its endpoint obeys.

    None if the worker is no endpoint. Its plans are then asked for by text.
    """
    identity = worker.identity or {}
    if identity.get("kind") not in ("openai", "gguf", "litellm"):
        return None
    return {key: identity.get(key) for key in ("kind", "url", "query", "model", "extra")}
