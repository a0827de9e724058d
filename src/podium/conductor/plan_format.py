"""How a model that conducts untrained is asked for a structured plan: by which fields of the request.

The formats are a ladder, from the one that holds the model to the form most strictly to plain text. `format_probe`
finds the first that an endpoint obeys. Nothing here calls a model; what comes back is parsed and checked in any case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from podium.trace import Reply
from podium.types import AnswerOptions
from podium.workers.base import Worker
from podium.workflow import AccessRule, SchemaKind, plan_schema

PlanFormat = Literal["exact", "portable", "own", "tool", "json", "text"]
"""response_format with the exact or the portable schema; the schema in the server's own field; a forced tool call;
response_format json_object; no field at all."""
FORMATS_STRICTEST_FIRST: tuple[PlanFormat, ...] = ("exact", "portable", "own", "tool", "json", "text")
PlanChoice = Literal["auto", "schema", "tool", "json", "text"]
CHOICES: Mapping[PlanChoice, tuple[PlanFormat, ...]] = {
    "auto": FORMATS_STRICTEST_FIRST,
    "schema": ("exact", "portable", "own"),
    "tool": ("tool",),
    "json": ("json",),
    "text": ("text",),
}
"""The formats that each value of `[conductor] plans` allows, the best first."""
FORMAT_WORDS: Mapping[PlanFormat, str] = {
    "exact": "by an exact JSON schema",
    "portable": "by a JSON schema",
    "own": "by a JSON schema in the server's own field",
    "tool": "by a tool call",
    "json": "in JSON mode",
    "text": "as text",
}
"""How plans are asked for, in words."""
TOOL = "write_plan"
"""The name of the tool whose arguments are the plan."""


@dataclass(frozen=True, slots=True)
class PlanConstraints:
    """The limits of the plan for one request: the arguments of `plan_schema`."""

    workers: int
    names: tuple[str, ...]
    max_steps: int
    later_round: bool
    access: AccessRule
    need_responses: tuple[int, ...] = ()

    def schema(self, kind: SchemaKind, max_tokens: int | None = None) -> dict[str, Any]:
        """The schema of one kind, for a plan of at most `max_tokens` tokens."""
        return plan_schema(
            kind,
            workers=self.workers,
            names=self.names,
            max_steps=self.max_steps,
            later_round=self.later_round,
            access=self.access,
            max_tokens=max_tokens,
            need_responses=self.need_responses,
        )


def format_options(
    format: PlanFormat, exact: dict[str, Any], portable: dict[str, Any], *, url: str
) -> AnswerOptions:
    """The fields that ask an endpoint at `url` for an object by `format`; the two schemas describe the object."""
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
    """The field in which Anthropic, Ollama or, for all other addresses, vLLM takes a schema."""
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
    """The parts of a worker's identity on which it depends which formats its endpoint obeys.

    Returns None if the worker is no endpoint, and so is asked by text.
    """
    identity = worker.identity or {}
    if identity.get("kind") not in ("openai", "gguf", "litellm"):
        return None
    return {key: identity.get(key) for key in ("kind", "url", "query", "model", "extra")}
