"""The pool that `podium init` proposes: who conducts, who works, and the tables of the file.

Models are compared by their number of parameters, and a provider's with its own list. Nothing here measures anybody:
`podium study` does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any
from urllib.parse import urlsplit

from podium.team.settings import ServeSettings
from podium.workers.discovery.models import FoundModel, FoundServer

_MAX_WORKERS = 5
"""Workers of a first pool: a plan chooses better among few, and models on one machine push each other out of memory."""
_ANSWER, _THOUGHTFUL_ANSWER = 4096, 8192
"""Most tokens of an answer, and of one that is thought about first."""
_SMALLEST_CONTEXT = 4096
"""Tokens that a plan takes with its prompt and the answers that a last step sees."""
_SMALL = 4 * 10**9
"""A model of fewer parameters plans badly untrained: docs/results/real-models.md."""
_GOOD_AT = (
    (re.compile(r"coder|code|codestral|devstral|starcoder"), "made for code"),
    (re.compile(r"math"), "made for maths"),
)
USUAL_PORT = ServeSettings().port
"""Where `podium serve` listens unless it is told otherwise."""
_TOOLS = ("calculator", "code", "vote")


@dataclass(frozen=True, slots=True)
class Proposal:
    """A pool, the strongest model first."""

    models: tuple[FoundModel, ...]
    names: tuple[str, ...]
    """Those of the workers, in the same order."""
    tools: tuple[str, ...]
    left_out: tuple[FoundModel, ...]
    """Models beyond the most workers."""

    @property
    def conductor(self) -> str:
        """The worker that also writes the plans."""
        return self.names[0]

    @property
    def is_paid(self) -> bool:
        """Whether a call of any worker costs money."""
        return any(model.price is not None for model in self.models)

    @property
    def tables(self) -> dict[str, Any]:
        """The team file's tables."""
        workers = [self._worker(position) for position in range(len(self.models))]
        tools = [{"name": tool, "kind": tool} for tool in self.tools]
        conductor: dict[str, Any] = {"worker": self.conductor}
        if self.models[0].price is None:
            # A model on one's own machine takes half a minute to read the long prompt, and plans as well without it.
            conductor["prompt"] = {"style": "short"}
        return {"conductor": conductor, "worker": [*workers, *tools]}

    @property
    def notes(self) -> list[str]:
        """What the user should know of the models, in sentences."""
        first, notes = self.models[0], []
        if first.context_tokens is not None and first.context_tokens < _SMALLEST_CONTEXT:
            notes.append(
                f"{self.conductor} conducts with a context of {first.context_tokens:,} tokens; start its server with "
                f"{_SMALLEST_CONTEXT:,} or more, or plans and long answers may not fit."
            )
        if first.parameters is not None and first.parameters < _SMALL:
            notes.append(
                f"{self.conductor} has {describe_size(first.parameters)} parameters, and so small a model conducts "
                f"badly untrained: it may be right more often alone, with --planner single:{self.conductor}. podium "
                "study tells on your own questions."
            )
        assumed = [name for name, model in zip(self.names, self.models, strict=True) if model.assumed]
        if assumed:
            notes.append(
                f"Not loaded, so the context is the server's default: {', '.join(assumed)}; run podium init --output "
                "another.toml when it is loaded, or set it at the server."
            )
        if self.is_paid:
            notes.append(
                "Prices are list prices as of this version, not looked up now; compare them with the provider's, since "
                "budgets count by them."
            )
        return notes

    def _worker(self, position: int) -> dict[str, Any]:
        model = self.models[position]
        limits: dict[str, Any] = {"concurrency": model.concurrency, "timeout": 600, "retries": 1}
        answer = _THOUGHTFUL_ANSWER if model.thinks else _ANSWER
        # Half of the context is for what is asked.
        limits["max_tokens"] = min(answer, (model.context_tokens or 2 * answer) // 2)
        neighbours = sum(other.base_url == model.base_url for other in self.models)
        if model.loaded_at_once is not None and model.loaded_at_once < neighbours:
            limits |= {"host": urlsplit(model.base_url).netloc, "loaded_at_once": model.loaded_at_once}
        table = model.worker_table(self.names[position], self._profile(position)) | {"limits": limits}
        # A free call never becomes a paid one.
        if position and (self.models[0].price is None) == (model.price is None):
            table["fallback"] = self.conductor
        return table

    def _profile(self, position: int) -> str:
        """What planners read of a model: what its maker says or its name tells, and its place among these."""
        model = self.models[position]
        if model.about:
            return model.about
        facts = [] if model.parameters is None else [f"{describe_size(model.parameters)} parameters"]
        facts += [what for name, what in _GOOD_AT if name.search(model.name.casefold())]
        if model.thinks:
            facts.append("thinks first")
        last = len(self.models) - 1
        compared = all(other.parameters is not None or other.price is not None for other in self.models)
        differ = _strength(self.models[0]) != _strength(self.models[last])
        if compared and differ and position in (0, last):
            facts.append("the strongest here" if position == 0 else "the weakest here, and quick")
        return f"{', '.join(facts) or 'A general model'}."


def propose(
    models: Sequence[FoundModel], *, isolates: bool, preferred: Sequence[FoundModel] = ()
) -> Proposal:
    """The pool of the strongest of these models; the preferred ones come first, however strong they are. Without
    isolation here, there is no tool `code`."""
    ordered = sorted(models, key=lambda model: (model not in preferred, _strength(model)))
    chosen = tuple(sorted(ordered[:_MAX_WORKERS], key=_strength))
    tools = tuple(tool for tool in _TOOLS if tool != "code" or isolates)
    return Proposal(chosen, _names(chosen, tools), tools, tuple(ordered[_MAX_WORKERS:]))


def free_port(servers: Sequence[FoundServer]) -> int:
    """The port for `podium serve`: the usual one, which is llama.cpp's too, or the next that none of these has."""
    addresses = [urlsplit(server.url) for server in servers if server.answers]
    taken = {address.port for address in addresses if address.hostname in ("127.0.0.1", "localhost", "::1")}
    return next(port for port in count(USUAL_PORT) if port not in taken)


def describe_size(parameters: int) -> str:
    """A number of parameters, as "1.5 B"."""
    unit, name = (10**9, "B") if parameters >= 10**9 else (10**6, "M")
    return f"{round(parameters / unit, 1 if parameters < 10**10 and unit == 10**9 else 0):g} {name}"


def _strength(model: FoundModel) -> tuple[bool, int]:
    """Sorts the strongest first: a provider's models in the order of its list, then by parameters."""
    return (model.price is None, 0 if model.price is not None else -(model.parameters or 0))


def _names(models: Sequence[FoundModel], taken: Sequence[str]) -> tuple[str, ...]:
    """A short name for each, without the characters that names of planners are split at."""
    names: list[str] = []
    for model in models:
        short = model.id.rpartition("/")[2].removesuffix(":latest").removesuffix(".gguf")
        name = re.sub(r"[^\w.-]+", "-", short).strip("-") or "model"
        if re.match(r"\d+x", name):  # As "2xA", which planners read as A twice.
            name = f"model-{name}"
        plain, number = name, 2
        while name in (*names, *taken):
            name, number = f"{plain}-{number}", number + 1
        names.append(name)
    return tuple(names)
