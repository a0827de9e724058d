"""Reads from the error of an endpoint what it does not take: a parameter by its name, or so many tokens.

Each provider has words of its own; the tables here have those that were seen. `adaptation` decides what follows. A
value that is out of range (temperature 9) is the caller's fault, and no refusal.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from podium.workers.chat.failures import ProviderError

LIMITS = ("max_tokens", "max_completion_tokens")
"""The two keys for the most tokens of a reply. One may take the other's place, but neither is left out: a budget has
reserved what it allows."""
_HINTS = (
    "temperature top_p top_k top_a min_p typical_p seed stop repetition_penalty frequency_penalty presence_penalty "
    "logit_bias logprobs top_logprobs parallel_tool_calls tool_choice stream stream_options reasoning_effort verbosity "
    "reasoning thinking enable_thinking thinking_budget chat_template_kwargs user metadata safety_identifier "
    "prompt_cache_key prompt_cache_retention"
)
DROPPABLE = frozenset(_HINTS.split())
"""Keys that may be left out: hints about how to answer. Without others, such as tools, response_format, store or
provider, the answer would be another one, or would cost more, or be kept."""
_QUOTED_ONLY = frozenset({"user", "metadata", "thinking", "reasoning", "stream"})
"""Keys that are also words of the errors' own sentences."""
_ALIASES = {
    "stop": "stop|stop[_ ]?sequences?|stop words",
    "presence_penalty": "presence[_ ]?penalty|penalty",
    "frequency_penalty": "frequency[_ ]?penalty|penalty",
}
_REFUSES = re.compile(
    r"unsupported|(?:not|n['’]t|no longer) (?:currently |yet |be )?(?:supports?|supported|permit(?:ted)?|allow(?:ed)?"
    r"|accept(?:ed|s)?|take|enabled|applicable|available|compatible|configurable|recogni[sz]ed|implemented|used|set"
    r"|specified|valid for)|unknown|unrecogni[sz]ed|extraneous|extra inputs|unexpected (?:keyword|field|param|arg)"
    r"|was unexpected|incompatible|deprecated|must be unset|or unset|only (?:be set|allowed when|the default)"
    r"|only \S+ is allowed|not a (?:valid|known) (?:field|param|arg)\w*"
)
_ONE_OF = re.compile(
    r"cannot both|not both|both be|specify both|set both|mutually exclusive|only one of|either|same time|together"
)
_PLAINLY = re.compile(r"unsupported|not support|unexpected keyword")
"""What a status of 500 and above has to say: some gateways write one for everything, and it may also be a crash."""
_RANGE = re.compile(
    r"\brange\b|between|at (?:most|least)|maximum|minimum|(?:less|greater|more|larger|smaller) than|[<>]=|multiple of"
)
_UNSET = re.compile(r"\bunset\b|only the default")
_CODES = frozenset({"unsupported_parameter", "unsupported_value", "unknown_parameter", "extra_forbidden"})
_SENTENCE_END = re.compile(r"(?<=[.;!\n])\s+")
_DEPTH = 5


def unsupported_parameters(error: ProviderError, sent: Collection[str]) -> Iterator[tuple[str, str | None]]:
    """The parameters that the endpoint does not take, most certain first: each with the one beside which it is not
    taken, or None if it is never taken.

    Args:
        sent: the keys of the request; others are not looked for.
    """
    text = error.text.lower()
    names = [name for name in sent if name in DROPPABLE or name in LIMITS]
    for path in _refused_paths(error.body, 0):
        yield from ((name, None) for name in _keys_in_path(path) if name in names)
    if (error.status or 400) >= 500 and not _PLAINLY.search(text):
        return
    if _RANGE.search(text) and not _UNSET.search(text):
        return
    for sentence in _SENTENCE_END.split(text):
        named = sorted((match.start(), name) for name in names if (match := _pattern(name).search(sentence)))
        refusals = [match.start() for match in _REFUSES.finditer(sentence)]
        if len(named) > 1 and _ONE_OF.search(sentence):
            yield named[1][1], named[0][1]
        elif refusals:
            # "`top_p` is not supported", else "Argument not supported: stop".
            before = [name for at, name in named if at < refusals[-1]]
            after = [name for at, name in named if at >= refusals[-1]]
            yield from ((name, None) for name in (before[-1:] or after[:1]))
    if _REFUSES.search(text) and isinstance(error.body, dict):
        reported = error.body.get("error")
        param = (reported if isinstance(reported, dict) else error.body).get("param")
        yield from ((name, None) for name in _keys_in_path(str(param)) if name in names)


def _pattern(name: str) -> re.Pattern[str]:
    forms = _ALIASES.get(name, name.replace("_", "[_ ]?"))
    if name in _QUOTED_ONLY:
        return re.compile(rf"['\"`\[]{forms}['\"`\]]|: {forms}\b|\b{forms} (?:param|arg|field)")
    return re.compile(rf"(?<!\w)(?:{forms})(?!\w)")


def _keys_in_path(path: str) -> tuple[str, str]:
    """The keys that a path such as "body.temperature" or "thinking.type" may mean."""
    parts = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", path).lower().removeprefix("body.").split(".")
    return parts[-1], parts[0]


def _refused_paths(value: Any, depth: int) -> Iterator[str]:
    """The paths that a body says to be no part of a request: pydantic's, and `param` with a code that says so."""
    if depth > _DEPTH:
        return
    if isinstance(value, list):
        for item in value[:100]:
            yield from _refused_paths(item, depth + 1)
    elif isinstance(value, dict):
        loc = value.get("loc")
        if _CODES & {value.get(key) for key in ("type", "code") if isinstance(value.get(key), str)}:
            if isinstance(loc, list):
                yield ".".join(map(str, loc))
            elif isinstance(value.get("param"), str):
                yield value["param"]
        for item in value.values():
            yield from _refused_paths(item, depth + 1)


@dataclass(frozen=True, slots=True)
class TokenLimit:
    """The limits that an error of an endpoint names, in tokens; None for a limit that it does not name."""

    context: int | None = None
    """The most tokens of messages and reply together."""
    input: int | None = None
    """The tokens that it counts in the messages."""
    total: int | None = None
    """Messages and the reply's limit together, as it counts them."""
    output: int | None = None
    """The most that a reply may be limited to."""


_COUNT = r"[^\d\n]{0,40}?(\d{1,9})"
_CONTEXT = re.compile(
    rf"(?:maximum |max )?context (?:length|window|size|limit)(?: of)?(?: is)?{_COUNT} ?tokens?"
    r"|n_ctx\W{1,6}(\d{1,9})|`?max_new_tokens`? must be <= (\d{1,9})"
    r"|exceed context limit: \d+ \+ \d+ > (\d{1,9})|prompt is too long: \d+ tokens > (\d{1,9})"
)
_INPUT = re.compile(
    r"\(?(\d{1,9}) (?:tokens )?(?:in|from) the (?:messages|input|prompt)|(?:has|contains)(?: at least)? (\d{1,9}) input"
    r"|messages resulted in (\d{1,9})|(\d{1,9}) `inputs` tokens|exceed context limit: (\d{1,9}) \+"
    r"|prompt is too long: (\d{1,9})|n_prompt_tokens\W{1,6}(\d{1,9})"
)
_TOTAL = re.compile(r"requested (?:a total of )?(\d{1,9}) tokens")
_OUTPUT = re.compile(
    r"at most (\d{1,9}) completion tokens|> (\d{1,9}), which is the maximum allowed number of output tokens"
    r"|range of max_(?:completion_)?tokens is \[\d+, ?(\d{1,9})\]"
    r"|max_(?:completion_)?tokens`? must be less than or equal to `?(\d{1,9})"
)


def token_limit(error: ProviderError) -> TokenLimit | None:
    """The limits that the error names, if it is about too many tokens."""
    text = f"{error.text} {error.body if isinstance(error.body, dict) else ''}".lower().replace(",", "")
    context, output = _first(_CONTEXT, text), _first(_OUTPUT, f"{error.text}".lower())
    if context is None and output is None:
        return None
    return TokenLimit(context, _first(_INPUT, text), _first(_TOTAL, text), output)


def _first(pattern: re.Pattern[str], text: str) -> int | None:
    match = pattern.search(text)
    return None if match is None else next((int(number) for number in match.groups() if number), None)
