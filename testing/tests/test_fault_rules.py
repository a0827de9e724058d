"""Which request gets which fault: order, counts, conditions, draws; and limits a minute."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import ValidationError

from podium_testing import FaultServer, RateLimited, Rule, Status
from raw_client import ask, question


async def _statuses(rules: Sequence[Rule], asked: int, **settings: Any) -> list[int | None]:
    async with FaultServer("Four.", rules=rules, **settings) as server:
        return [(await ask(server)).status for _ in range(asked)]


BAD = Status(code=503)


@pytest.mark.parametrize(
    ("rules", "statuses"),
    [
        ([], [200, 200]),
        ([Rule(fault=BAD)], [503, 503, 503]),
        ([Rule(fault=BAD, times=2)], [503, 503, 200, 200]),
        ([Rule(fault=BAD, after=1)], [200, 503, 503]),
        ([Rule(fault=BAD, after=1, times=1)], [200, 503, 200]),
        ([Rule(fault=BAD, every=3)], [503, 200, 200, 503, 200]),
        ([Rule(fault=BAD, every=2, after=1, times=2)], [200, 503, 200, 503, 200, 200]),
        ([Rule(fault=BAD, times=1), Rule(fault=RateLimited(), times=2)], [503, 429, 429, 200]),
        ([Rule(fault=BAD, share=0.0)], [200, 200]),
        ([Rule(fault=BAD, model="other")], [200, 200]),
        ([Rule(fault=BAD, contains="2 + 2"), Rule(fault=RateLimited())], [503, 503]),
        ([Rule(fault=BAD, contains="3 + 3"), Rule(fault=RateLimited())], [429, 429]),
    ],
)
async def test_the_first_rule_that_gives_its_fault_decides(rules: list[Rule], statuses: list[int]) -> None:
    assert await _statuses(rules, len(statuses)) == statuses


async def test_rule_share_is_random_but_repeatable_with_the_same_seed() -> None:
    rules = [Rule(fault=BAD, share=0.5)]
    first = await _statuses(rules, 60, seed="one")
    assert first == await _statuses(rules, 60, seed="one")
    assert first != await _statuses(rules, 60, seed="two")
    assert 10 < first.count(503) < 50


async def test_rules_count_their_own_model_alone() -> None:
    rules = [Rule(fault=BAD, model="small", after=1)]
    async with FaultServer(models=["small", "large"], rules=rules) as server:
        statuses = [(await ask(server, question(model=name))).status for name in ["large", "small"] * 2]
    assert statuses == [200, 200, 200, 503]


async def test_rule_text_is_also_searched_in_multipart_messages() -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": "find me"}]}]}
    async with FaultServer(rules=[Rule(fault=BAD, contains="find")]) as server:
        assert (await ask(server, body)).status == 503


async def test_newly_set_rules_restart_their_counts() -> None:
    rules = (Rule(fault=BAD, times=1),)
    async with FaultServer("Four.", rules=rules) as server:
        assert [(await ask(server)).status for _ in range(2)] == [503, 200]
        server.rules = rules
        assert server.rules == rules
        assert [(await ask(server)).status for _ in range(2)] == [503, 200]


@pytest.mark.parametrize("wrong", [{"share": 1.5}, {"times": -1}, {"every": 0}, {"after": -1}, {"model": 3}])
def test_impossible_rule_condition_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Rule(fault=BAD, **wrong)


# --- limits ----------------------------------------------------------------------------------------------


async def test_more_requests_than_a_minute_has_are_refused_until_it_is_over() -> None:
    async with FaultServer(models=["a", "b"], rpm=3, minute=0.6) as server:
        seen = [await ask(server, question(model="a")) for _ in range(4)]
        other = await ask(server, question(model="b"))
        assert [each.status for each in seen] == [200, 200, 200, 429]
        assert other.good
        await asyncio.sleep(float(seen[-1].headers["retry-after"]) + 0.01)
        assert (await ask(server, question(model="a"))).good
    assert [request.fault for request in server.requests] == [None, None, None, "limit", None, None]


async def test_tokens_of_a_minute_are_those_that_replies_report() -> None:
    async with FaultServer(lambda messages, body: "a" * 4 * 40, tpm=100, minute=60) as server:
        statuses = [(await ask(server, question("a" * 40))).status for _ in range(3)]
    # 10 and 40 tokens each: the third would be over a hundred with its input alone.
    assert statuses == [200, 200, 429]
    assert [request.tokens for request in server.requests] == [50, 50, 0]
