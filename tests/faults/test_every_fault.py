"""Every fault of an endpoint: the question ends in an answer or one clear sentence, in time, and its trace says why."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from podium.executor import ExecutionSettings
from podium.planners import Single
from podium.team import Runner
from podium.team.team_file import open_pool
from podium.trace import Span
from podium.types import Question
from podium_testing import (
    BadCompression,
    ContentFilter,
    DeepJson,
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
    RateLimited,
    Redirect,
    Reset,
    Rule,
    SlowDrip,
    SlowFirstByte,
    SlowFirstToken,
    Status,
    TruncatedJson,
    UnfinishedStream,
    WrongContentType,
    WrongModel,
    WrongUsage,
)

ANSWER = "The sum is easy to find.\nAnswer: 4"
QUESTION = Question(text="What is 2 + 2?")
QUICK = ExecutionSettings(first_wait_s=0.01)


@dataclass(frozen=True)
class Case:
    """A fault, and what becomes of a question whose every call has it."""

    fault: Fault
    kinds: tuple[str | None, ...]
    """Of its attempts. None if it was answered."""
    says: str = ""
    """In the error of the step."""
    streamed: tuple[str | None, ...] | None = None
    """Where it is otherwise in a stream."""

    def expected(self, *, streamed: bool) -> tuple[str | None, ...]:
        """Of the attempts."""
        return self.streamed if streamed and self.streamed is not None else self.kinds


GONE = ("connection",) * 3
CASES = [
    Case(RateLimited(), ("rate_limited",) * 3, "status 429"),
    Case(RateLimited(retry_after=0.05), ("rate_limited",) * 3, "status 429"),
    Case(RateLimited(retry_after=1, as_date=True), ("rate_limited",) * 3, "status 429"),
    Case(RateLimited(retry_after=3600), ("rate_limited",), "status 429"),
    Case(RateLimited(retry_after="soon"), ("rate_limited",) * 3, "status 429"),
    Case(Status(code=500), ("status",) * 3, "status 500"),
    Case(Status(code=502, form="html"), ("status",) * 3, "status 502"),
    Case(Status(code=503, form="empty"), ("status",) * 3, "status 503"),
    Case(Status(code=400), ("status",), "status 400"),
    Case(Status(code=401), ("status",), "is the key right?"),
    Case(Status(code=404), ("status",), "model"),
    Case(Hang(), ("timeout",), "within 0.6 s"),
    Case(Hang(when="middle"), ("timeout",), "within 0.6 s"),
    Case(SlowFirstByte(seconds=30), ("timeout",), "within 0.6 s"),
    Case(SlowFirstByte(seconds=0.1), (None,)),
    Case(SlowFirstToken(seconds=30), ("timeout",), "within 0.6 s"),
    Case(SlowFirstToken(seconds=0.1), (None,)),
    Case(SlowDrip(seconds=5, size=1), ("timeout",), "within 0.6 s"),
    Case(SlowDrip(seconds=0.002), (None,)),
    Case(Reset(), GONE, "connection"),
    Case(Reset(when="middle"), GONE, "connection"),
    Case(HangUp(), GONE, "connection"),
    Case(HangUp(when="middle"), GONE, "connection"),
    Case(UnfinishedStream(), (None,), streamed=GONE),
    Case(TruncatedJson(), ("protocol",) * 3),
    Case(InvalidUtf8(), ("protocol",) * 3, "garbled"),
    Case(DeepJson(), ("protocol",) * 3),
    Case(BadCompression(), ("protocol",) * 3),
    Case(WrongContentType(), ("protocol",) * 3, "is base_url right?"),
    Case(EmptyChoices(), ("protocol",) * 3, "no choices"),
    Case(NullContent(), ("protocol",) * 3, "no text"),
    Case(GiantBody(size=10 * 2**20), ("protocol",), "the reply is over"),
    Case(GiantBody(size=12 * 2**20, compressed=True), ("protocol",), "the reply is over"),
    Case(GiantBody(size=10 * 2**20, one_event=True), ("protocol",), "the reply is over 8 MiB"),
    Case(ContentFilter(), ("content_filter",), "refused"),
    Case(ContentFilter(as_error=True), ("content_filter",)),
    Case(ErrorInside(), ("status",) * 3, "overloaded"),
    Case(Redirect(to="/v2/elsewhere"), ("status",), "/v2/elsewhere"),
    Case(Length(), (None,)),
    Case(MissingUsage(), (None,)),
    Case(WrongUsage(), (None,)),
    Case(WrongModel(), (None,)),
    Case(OddEvents(), (None,)),
]


async def ask(pool, server: FaultServer, alone) -> Span:
    """The one step of a question; afterwards nothing is left of it."""
    before = asyncio.all_tasks()
    async with asyncio.timeout(20):
        trace = await Runner(Single("a"), pool, settings=QUICK).answer(QUESTION)
        await pool.close()
        await alone(server)
    assert {task for task in asyncio.all_tasks() - before if "RequestHandler" not in repr(task)} == set()
    assert (trace.status, trace.answer is None) in {("ok", False), ("failed", True)}
    return trace.spans[0]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case.fault))
async def test_question_ends_when_every_call_meets_the_fault(pool_at, alone, case, streamed):
    async with FaultServer(ANSWER, rules=[Rule(fault=case.fault)]) as server:
        expected = case.expected(streamed=streamed)
        # A busy machine alone must make no timeout, and 8 MiB have to come first.
        seconds = 0.6 if "timeout" in expected else 60 if isinstance(case.fault, GiantBody) else 10
        limits = f"timeout = {seconds}, connect_timeout = {seconds}, retries = 2, probe_after = 0.02, max_tokens = 100"
        span = await ask(
            pool_at(server, "a", limits=limits, also=f"stream = {streamed}".lower()), server, alone
        )
        kinds = tuple(attempt.error_kind for attempt in span.attempts)
        if expected[0] == "timeout":  # How often it is probed within the patience of a call is the clock's.
            assert set(kinds) == {"timeout"}
        else:
            assert kinds == expected
        if expected[-1] is None:
            assert span.status == "done"
            assert span.error is None
        else:
            assert span.status == "failed"
            assert span.response is None
            assert span.error is not None
            assert span.error.startswith("a: ")
            assert case.says in span.error
            assert len(span.error) < 1000
        assert all(attempt.error for attempt in span.attempts if attempt.error_kind)


ONE_OF_EACH_KIND = {case.kinds[0]: case for case in reversed(CASES) if case.kinds[-1]}
"""What becomes of a call is decided by the kind of its error."""
PASSING = [case for case in ONE_OF_EACH_KIND.values() if len(case.kinds) > 1 or case.kinds[0] == "timeout"]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("case", PASSING, ids=lambda case: repr(case.fault))
async def test_retry_overcomes_a_transient_fault(pool_at, alone, case, streamed):
    async with FaultServer(ANSWER, rules=[Rule(fault=case.fault, times=1)]) as server:
        expected = case.expected(streamed=streamed)
        # A busy machine alone must make no timeout.
        seconds = 1 if "timeout" in expected else 5
        limits = f"timeout = {seconds}, connect_timeout = {seconds}, retries = 2, probe_after = 0.02"
        span = await ask(
            pool_at(server, "a", limits=limits, also=f"stream = {streamed}".lower()), server, alone
        )
        assert (span.status, span.response) == ("done", ANSWER)
        assert [attempt.error_kind for attempt in span.attempts] == [expected[0], None]


@pytest.mark.parametrize("case", ONE_OF_EACH_KIND.values(), ids=lambda case: repr(case.fault))
async def test_fallback_answers_when_its_worker_fails(pool_at, alone, case, tmp_path):
    async with FaultServer(ANSWER, rules=[Rule(fault=case.fault, model="a")]) as server:
        seconds = 1 if "timeout" in case.kinds else 5
        limits = f"timeout = {seconds}, connect_timeout = {seconds}, retries = 1, probe_after = 5"
        pool_at(server, "a", "b", limits=limits)
        path = tmp_path / "pool.toml"
        path.write_text(path.read_text().replace('model = "a"\n', 'model = "a"\nfallback = "b"\n'))
        span = await ask(open_pool(path), server, alone)
        assert (span.status, span.response, span.worker, span.answered_by) == ("done", ANSWER, "a", "b")
        assert [attempt.worker for attempt in span.attempts][-1] == "b"
        assert {attempt.worker for attempt in span.attempts[:-1]} == {"a"}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_span_records_odd_but_usable_replies(pool_at, alone, streamed):
    async with FaultServer(ANSWER) as server:
        for fault, check in (
            (Length(), lambda span: span.reply.finish == "length" and ANSWER.startswith(span.response)),
            (MissingUsage(), lambda span: span.usage.estimated and span.usage.output_tokens > 0),
            (WrongUsage(), lambda span: span.usage.estimated and 0 < span.usage.tokens < 1000),
            (WrongModel(), lambda span: span.reply.model == "another-model" and span.response == ANSWER),
        ):
            server.rules = [Rule(fault=fault)]
            span = await ask(pool_at(server, "a", also=f"stream = {streamed}".lower()), server, alone)
            assert check(span), fault


async def test_unreachable_endpoint_is_a_connection_error(pool_at, alone):
    async with FaultServer(ANSWER) as server:
        pool = pool_at(server, "a", limits="timeout = 2, retries = 1, probe_after = 0.02")
        server.down()
        span = await ask(pool, server, alone)
        assert [attempt.error_kind for attempt in span.attempts] == ["connection"] * 2


async def test_endpoint_without_tls_is_a_connection_error(pool_at, alone):
    async with FaultServer(ANSWER) as server:
        span = await ask(pool_at(server.url.replace("http:", "https:"), "a"), server, alone)
        assert {attempt.error_kind for attempt in span.attempts} == {"connection"}
        assert span.status == "failed"
