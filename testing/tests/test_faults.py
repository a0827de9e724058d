"""Every fault is really what it says, as a client of plain sockets sees it, streamed and not."""

import asyncio
import gzip
import json
import time
import typing
from collections.abc import Callable
from email.utils import parsedate_to_datetime

import pytest

from podium_testing import (
    POISONS,
    BadCompression,
    ContentFilter,
    DeepJson,
    EchoHeaders,
    EmptyChoices,
    ErrorInside,
    Fault,
    FaultServer,
    GiantBody,
    Hang,
    HangUp,
    InvalidUtf8,
    Length,
    MissingUsage,
    NullContent,
    OddEvents,
    Poison,
    RateLimited,
    Redirect,
    RefusedParameters,
    Reset,
    Rule,
    SlowDrip,
    SlowFirstByte,
    SlowFirstToken,
    Status,
    StrictTemplate,
    TruncatedJson,
    UnfinishedStream,
    Verbatim,
    WrongContentType,
    WrongFormat,
    WrongModel,
    WrongUsage,
)
from podium_testing.faults import AnyFault
from raw_client import Seen, ask, question

TEXT = "The answer is four, as everybody who has ever counted to four would say."
Claim = Callable[[Seen], object]


def _broken(content: bytes) -> bool:
    """Whether it is the beginning of JSON and not the end."""
    try:
        json.loads(content)
    except ValueError:
        return content.startswith(b"{")
    return False


def _not_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return True
    return False


def _well(seen: Seen) -> bool:
    return seen.good and seen.text == TEXT and seen.finish == "stop" and seen.usage["completion_tokens"] == 18


def _date(seen: Seen) -> float:
    return parsedate_to_datetime(seen.headers["retry-after"]).timestamp() - time.time()


LATE = 0.15
"""Seconds that slow faults take here; a slower machine makes them longer, never shorter."""

# A fault, what is seen where nothing is streamed, and what where it is, or None for the same.
CASES: list[tuple[Fault, Claim, Claim | None]] = [
    (Status(code=503), lambda s: s.status == 503 and s.json["error"]["code"] == 503 and s.whole, None),
    (
        Status(code=500, message="Oh."),
        lambda s: s.status == 500 and s.json["error"]["message"] == "Oh.",
        None,
    ),
    (Status(code=502, form="html"), lambda s: s.status == 502 and s.body.startswith(b"<html>"), None),
    (Status(code=529, form="text"), lambda s: s.status == 529 and s.body == b"Error 529", None),
    (Status(code=504, form="empty"), lambda s: s.status == 504 and s.body == b"" and s.whole, None),
    (RateLimited(), lambda s: s.status == 429 and "retry-after" not in s.headers, None),
    (RateLimited(retry_after=0.5), lambda s: s.status == 429 and s.headers["retry-after"] == "0.5", None),
    (RateLimited(retry_after=30, as_date=True), lambda s: s.status == 429 and 20 < _date(s) <= 31, None),
    (RateLimited(retry_after="soon"), lambda s: s.headers["retry-after"] == "soon", None),
    (
        Redirect(to="http://127.0.0.1:9/"),
        lambda s: (s.status, s.headers["location"]) == (307, "http://127.0.0.1:9/"),
        None,
    ),
    (
        EchoHeaders(),
        lambda s: "a-key" in s.json["error"]["message"] and "a-key" in s.headers["x-echo-authorization"],
        None,
    ),
    (Hang(), lambda s: s.status is None and s.body == b"" and s.ended == "open", None),
    (Hang(when="middle"), lambda s: s.status == 200 and not s.whole and s.body and s.ended == "open", None),
    (SlowFirstByte(seconds=LATE), lambda s: _well(s) and s.first_byte >= LATE, None),
    (
        SlowFirstToken(seconds=LATE, every=LATE / 3),
        lambda s: _well(s) and s.seconds >= LATE and s.reads > 1 and s.body.startswith(b" "),
        lambda s: _well(s) and s.seconds >= LATE and s.reads > 1 and s.body.startswith(b": "),
    ),
    (SlowDrip(seconds=0.01), lambda s: _well(s) and s.reads >= 5 and s.seconds >= 0.05, None),
    (Reset(), lambda s: s.status is None and s.ended == "reset", None),
    (Reset(when="middle"), lambda s: s.status == 200 and not s.whole and s.body and s.ended == "reset", None),
    (HangUp(), lambda s: s.status is None and s.ended == "closed", None),
    (
        HangUp(when="middle"),
        lambda s: s.status == 200 and not s.whole and s.body and s.ended == "closed",
        None,
    ),
    (
        TruncatedJson(),
        lambda s: s.good and _broken(s.body),
        lambda s: s.good and not s.done and _broken(s.body.rstrip().rpartition(b"data: ")[2]),
    ),
    (
        UnfinishedStream(),
        _well,
        lambda s: s.good and s.finish is None and not s.done and TEXT.startswith(s.text) and s.text,
    ),
    (
        InvalidUtf8(),
        lambda s: s.good and _not_utf8(s.body) and json.loads(s.body.decode(errors="replace")),
        lambda s: s.good and _not_utf8(s.body) and s.done,
    ),
    (
        WrongContentType(),
        lambda s: s.good and s.headers["content-type"].startswith("text/html") and b"<h1>" in s.body,
        None,
    ),
    (
        DeepJson(levels=2000),
        lambda s: s.good and s.body == b"[" * 2000 + b"]" * 2000,
        lambda s: s.good and b"[" * 2000 in s.body,
    ),
    (
        BadCompression(),
        lambda s: s.good and s.headers["content-encoding"] == "gzip" and s.body.startswith(b"{"),
        None,
    ),
    (
        GiantBody(size=10**6),
        lambda s: s.good and s.text == "a" * 10**6 and "content-length" not in s.headers,
        lambda s: s.good and s.text == "a" * 10**6 and len(s.events) > 15 and s.done,
    ),
    (
        GiantBody(size=10**6, one_event=True),
        lambda s: s.good and s.text == "a" * 10**6,
        lambda s: s.good and s.text == "a" * 10**6 and len(s.events) == 4,
    ),
    (
        GiantBody(size=10**6, compressed=True),
        lambda s: s.good and len(s.body) < 10**4 and len(gzip.decompress(s.body)) > 10**6,
        None,
    ),
    (
        Verbatim(body="null", code=201, headers={"X-A": "b"}),
        lambda s: (s.status, s.json, s.headers["x-a"]) == (201, None, "b"),
        None,
    ),
    (
        EmptyChoices(),
        lambda s: s.good and s.json["choices"] == [],
        lambda s: s.good and s.done and not any(e["choices"] for e in s.events),
    ),
    (
        NullContent(),
        lambda s: s.good and s.json["choices"][0]["message"]["content"] is None,
        lambda s: s.good and s.text == "" and s.finish == "stop",
    ),
    (
        MissingUsage(),
        lambda s: s.good and s.text == TEXT and s.usage is None,
        lambda s: s.good and s.text == TEXT and s.usage is None and s.done,
    ),
    (WrongUsage(), lambda s: s.good and s.text == TEXT and s.usage["prompt_tokens"] == -1000, None),
    (WrongUsage(usage="none"), lambda s: s.good and s.text == TEXT and s.usage == "none", None),
    (ContentFilter(), lambda s: s.good and s.text == "" and s.finish == "content_filter", None),
    (
        ContentFilter(as_error=True),
        lambda s: s.status == 400 and s.json["error"]["code"] == "content_filter",
        None,
    ),
    (Length(), lambda s: s.good and s.text == TEXT[: len(TEXT) // 2] and s.finish == "length", None),
    (
        WrongModel(),
        lambda s: s.good and s.text == TEXT and s.json["model"] == "another-model",
        lambda s: s.good and {e["model"] for e in s.events} == {"another-model"},
    ),
    (
        ErrorInside(),
        lambda s: s.good and s.json["error"]["code"] == 502,
        lambda s: s.good and s.events[-1]["error"]["code"] == 502 and not s.done and s.events[0]["choices"],
    ),
    (
        RefusedParameters(names=("stream",)),
        _well,
        lambda s: s.status == 400 and "'stream' is not supported" in s.json["error"]["message"],
    ),
    (StrictTemplate(code=500), _well, None),
    (WrongFormat(), lambda s: s.good and s.text == TEXT, None),
    (OddEvents(), _well, lambda s: _well(s) and s.done and s.body.count(b"\r\n: still here\r\n") > 3),
    (Poison(text="\x1b[2J\ud800"), lambda s: s.good and s.text == "\x1b[2J\ud800", None),
]


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("case", CASES, ids=[repr(fault) for fault, _, _ in CASES])
async def test_each_fault_produces_the_documented_reply(
    case: tuple[Fault, Claim, Claim | None], stream: bool
) -> None:
    fault, plain, streamed = case
    async with FaultServer(TEXT, rules=[Rule(fault=fault)]) as server:
        seen = await ask(server, question(stream=stream), wait=1 if isinstance(fault, Hang) else 10)
        assert (streamed if stream and streamed else plain)(seen), seen
        await server.wait_until_idle()
        (request,) = server.requests
    assert request.fault == fault.kind
    assert request.status == seen.status
    assert request.went_away == isinstance(fault, Hang)
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.parametrize(
    ("roles", "fault", "said"),
    [
        (["system", "user"], StrictTemplate(), None),
        (["user", "assistant", "user"], StrictTemplate(), None),
        (["system", "user"], StrictTemplate(system=False), "System role not supported"),
        (["system", "system", "user"], StrictTemplate(), "at the beginning"),
        (["user", "system"], StrictTemplate(), "at the beginning"),
        (["user", "user"], StrictTemplate(), "must alternate"),
        (["assistant", "user"], StrictTemplate(), "must alternate"),
        (["user", "assistant"], StrictTemplate(), None),
        (["user", "assistant"], StrictTemplate(ends_with_user=True), "must end with a user message"),
        (["user", "user"], StrictTemplate(message="TemplateError", code=500), "TemplateError"),
    ],
)
async def test_strict_template_fault_accepts_only_its_role_order(
    roles: list[str], fault: StrictTemplate, said: str | None
) -> None:
    body = question() | {"messages": [{"role": role, "content": "Hm."} for role in roles]}
    async with FaultServer(TEXT, rules=[Rule(fault=fault)]) as server:
        seen = await ask(server, body)
    assert seen.text == TEXT if said is None else said in seen.json["error"]["message"]
    assert seen.status == (200 if said is None else fault.code)


def test_every_fault_has_a_case() -> None:
    union, *_ = typing.get_args(AnyFault)
    assert {type(fault) for fault, _, _ in CASES} == set(typing.get_args(union))


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("name", POISONS)
async def test_poison_text_arrives_unchanged(name: str, stream: bool) -> None:
    async with FaultServer(rules=[Rule(fault=Poison(name=name))]) as server:
        seen = await ask(server, question(stream=stream))
    assert seen.good
    assert seen.text == POISONS[name]


async def test_client_disconnect_stops_the_giant_body() -> None:
    async with FaultServer(rules=[Rule(fault=GiantBody(size=10**12))]) as server:
        await ask(server, wait=0.2)
        async with asyncio.timeout(20):
            await server.wait_until_idle()
        (request,) = server.requests
    assert request.went_away


def test_a_poison_without_a_text_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ValueError, match="did you mean 'terminal'"):
        Poison(name="terminl")
