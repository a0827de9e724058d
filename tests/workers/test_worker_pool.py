"""The pool: its order and names, what it refuses, and how it is read from a file."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.errors import ConfigError, WorkerError
from podium.team.team_file import open_pool
from podium.types import Limits, Message, Price
from podium.workers import Pool, Request, ScriptedWorker, VoteWorker, Worker
from podium.workers.base import costly_workers

HELLO = Request((Message(role="user", content="Hello"),), seed="0")

FILE = """
[[worker]]
name = "gpt-4.1"
kind = "openai"
model = "gpt-4.1-mini"
base_url = "https://models.invalid/v1"
profile = "Strong at code and maths; dear."
price = { input = 1.25, output = 10.0 }
limits = { concurrency = 32, rpm = 500, timeout = 120, max_tokens = 4096 }
fallback = "parrot"

[[worker]]
name = "parrot"
kind = "scripted"
replies = ["one", { error = "timeout", retryable = true, retry_after_s = 2 }]

[[worker]]
name = "echo"
kind = "scripted"
replies = { Hell = "found", x = { error = "status", message = "No." } }

[[worker]]
name = "count"
kind = "vote"

[[worker]]
name = "clerk"
kind = "calculator"
"""


KEYED = """
[[worker]]
name = "a"
kind = "openai"
model = "m"
base_url = "https://x/v1"
api_key_env = "{}"
"""


CIRCLE = """
[[worker]]
name = "a"
kind = "vote"
fallback = "b"
[[worker]]
name = "b"
fallback = "a"
kind = "vote"
"""


def _pool(*names: str, **fallbacks: str) -> Pool:
    return Pool([ScriptedWorker(name, [], fallback=fallbacks.get(name)) for name in names])


def _write(folder: Path, text: str) -> Path:
    path = folder / "pool.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_pool_keeps_its_order() -> None:
    pool = _pool("c", "a", "b")
    assert pool.names == ("c", "a", "b")
    assert [profile.name for profile in pool.profiles] == ["c", "a", "b"]
    assert pool[1] is pool.named("a")
    assert len(pool) == 3
    assert [worker.profile.name for worker in pool] == ["c", "a", "b"]


@given(st.permutations(range(4)), st.integers(1, 4))
def test_a_subset_has_the_chosen_workers_in_the_chosen_order(order: list[int], size: int) -> None:
    pool = _pool("a", "b", "c", "d")
    part = pool.subset(order[:size])
    assert [part[i] for i in range(len(part))] == [pool[i] for i in order[:size]]
    assert pool.names == ("a", "b", "c", "d")


def test_fallback_is_used_only_if_present_in_the_pool() -> None:
    pool = _pool("a", "b", "c", a="b")
    assert pool.fallback(pool[0]) is pool[1]
    assert pool.fallback(pool[1]) is None
    part = pool.subset([2, 0])
    assert part.fallback(part[1]) is None


@pytest.mark.parametrize(
    ("fallbacks", "circle"), [({"a": "a"}, "a -> a"), ({"a": "b", "b": "c", "c": "b"}, "b -> c -> b")]
)
def test_a_circle_of_fallbacks_is_refused_without_what_leads_to_it(
    fallbacks: dict[str, str], circle: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        _pool("a", "b", "c", **fallbacks)
    assert str(caught.value) == f"The fallbacks go in a circle: {circle}; leave one of them out."


def test_a_subset_of_none_or_with_repeats_is_refused() -> None:
    with pytest.raises(ConfigError, match="A pool of none"):
        _pool("a").subset([])
    with pytest.raises(ConfigError, match="Two workers are named"):
        _pool("a", "b").subset([1, 1])


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"no worker named 'clark'; did you mean 'clerk'\?"):
        _pool("clerk", "poet").named("clark")


def test_a_file_becomes_a_pool_of_all_kinds(tmp_path: Path) -> None:
    pool = open_pool(_write(tmp_path, FILE))
    assert pool.names == ("gpt-4.1", "parrot", "echo", "count", "clerk")
    assert all(isinstance(worker, Worker) for worker in pool)
    assert pool.profiles[0].description == "Strong at code and maths; dear."
    assert pool.profiles[0].price == Price(input=1.25, output=10.0)
    assert pool[0].limits == Limits(concurrency=32, rpm=500, timeout=120, max_tokens=4096)
    assert pool.fallback(pool[0]) is pool[1]
    assert pool.profiles[3].description == VoteWorker().profile.description


async def test_a_scripted_worker_of_a_file_follows_its_script(tmp_path: Path) -> None:
    pool = open_pool(_write(tmp_path, FILE))
    assert (await pool.named("parrot").answer(HELLO)).text == "one"
    with pytest.raises(WorkerError) as caught:
        await pool.named("parrot").answer(HELLO)
    assert (caught.value.kind, caught.value.retryable, caught.value.retry_after_s) == ("timeout", True, 2.0)
    assert (await pool.named("echo").answer(HELLO)).text == "found"


def test_overrides_address_workers_by_name(tmp_path: Path) -> None:
    pool = open_pool(_write(tmp_path, FILE), ["worker.gpt-4.1.limits.timeout=10", "worker.count.name=tally"])
    assert pool[0].limits.timeout == 10
    assert pool.names[3] == "tally"


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        ("# Nobody.", None, "A pool of none: it needs at least one [[worker]]."),
        (
            FILE.replace("input = 1.25", "input = -1"),
            8,
            "worker.gpt-4.1.price.input is -1, but it should be greater than or equal to 0.",
        ),
        (
            FILE.replace("input = 1.25", "input = inf"),
            8,
            "worker.gpt-4.1.price.input is Infinity, but it should be a finite number.",
        ),
        (FILE.replace('"clerk"', '""'), 27, 'worker..name is "", but it should be text that is not empty.'),
        (FILE.replace('"echo"', '"parrot"'), 18, "Two workers are named 'parrot'; give each its own name."),
        (
            FILE.replace('fallback = "parrot"', 'fallback = "carrot"'),
            10,
            "Worker 'gpt-4.1' falls back to 'carrot', which is not in the pool; did you mean 'parrot'?",
        ),
        (CIRCLE, 8, "The fallbacks go in a circle: a -> b -> a; leave one of them out."),
        (
            KEYED.format("sk-hush"),
            7,
            "Worker 'a': api_key_env must be the name of an environment variable, not a key.",
        ),
        (
            KEYED.format("PODIUM_TEST_NO_KEY"),
            7,
            "Worker 'a': the environment variable PODIUM_TEST_NO_KEY is not set; put the key there, or leave "
            "api_key_env out if none is needed.",
        ),
        (
            KEYED.replace("api_key_env", "key_header").format("api-key"),
            7,
            "worker.a: key_header needs api_key_env; add it, or leave key_header out.",
        ),
        (
            KEYED.replace("api_key_env", "limits.max_tokens = 9\nlimits.first_token_timeout = 3 #"),
            8,
            "worker.a: limits.first_token_timeout needs stream = true; add it, or leave the limit out.",
        ),
        (
            KEYED.replace("api_key_env", "[worker.extra]\ntop_p = 1\nmodel"),
            9,
            "worker.a.extra: model has a setting of its own; use that instead of extra.",
        ),
        (KEYED.replace("_env", ""), 7, "unknown key 'worker.a.api_key'; did you mean 'api_key_env'?"),
        (
            KEYED.replace("api_key_env", "profile").replace("https", "htps"),
            6,
            "Worker 'a': base_url 'htps://x/v1' is not an address such as https://api.openai.com/v1.",
        ),
        (
            KEYED.replace("api_key_env", "profile").replace("x/v1", "me:hush@x/v1"),
            6,
            "Worker 'a': base_url has a user name or an @; name a variable with the key in api_key_env instead.",
        ),
    ],
)
def test_a_bad_file_is_one_sentence_that_names_file_and_line(
    tmp_path: Path, text: str, line: int | None, sentence: str
) -> None:
    path = _write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        open_pool(path)
    place = path if line is None else f"{path}, line {line}"
    assert str(caught.value) == f"{place}: {sentence}"
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        (
            "worker.gpt-4.1.fallback=carrot",
            "Override 'worker.gpt-4.1.fallback': Worker 'gpt-4.1' falls back to 'carrot', which is not in the pool; "
            "did you mean 'parrot'?",
        ),
        (
            "worker.gpt-4.1.api_key_env=PODIUM_TEST_NO_KEY",
            "Override 'worker.gpt-4.1.api_key_env': Worker 'gpt-4.1': the environment variable PODIUM_TEST_NO_KEY is "
            "not set; put the key there, or leave api_key_env out if none is needed.",
        ),
    ],
)
def test_a_pool_that_an_override_spoils_names_the_override(
    tmp_path: Path, override: str, sentence: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        open_pool(_write(tmp_path, FILE), [override])
    assert str(caught.value) == sentence


async def test_pool_opened_for_listing_needs_no_keys(tmp_path: Path) -> None:
    path = _write(tmp_path, KEYED.format("PODIUM_TEST_NO_KEY") + "price = { input = 2 }\n" + FILE)
    pool = open_pool(path, ready=False)
    assert pool.names == ("a", "gpt-4.1", "parrot", "echo", "count", "clerk")
    assert pool.profiles[0].price == Price(input=2)
    with pytest.raises(WorkerError, match="the environment variable PODIUM_TEST_NO_KEY is not set") as caught:
        await pool[0].answer(HELLO)
    assert (caught.value.kind, caught.value.retryable) == ("unready", False)
    await pool.close()


@pytest.mark.parametrize("spoiled", ['name = "count"', 'fallback = "carrot"', "rpm = 0"])
def test_invalid_pool_opened_for_listing_is_refused(tmp_path: Path, spoiled: str) -> None:
    text = (KEYED.format("PODIUM_TEST_NO_KEY") + FILE).replace(
        'name = "clerk"', spoiled.replace("rpm", "limits.rpm")
    )
    if spoiled != 'name = "count"':
        text += 'name = "clerk"\n'
    with pytest.raises(ConfigError):
        open_pool(_write(tmp_path, text), ready=False)


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "schlüssel"])
def test_a_key_that_no_header_can_hold_is_refused_unseen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("PODIUM_TEST_KEY", key)
    path = _write(tmp_path, KEYED.format("PODIUM_TEST_KEY"))
    with pytest.raises(ConfigError, match="PODIUM_TEST_KEY does not hold a usable key") as caught:
        open_pool(path)
    assert key not in str(caught.value)


async def test_a_script_in_order_runs_out_loudly() -> None:
    worker = ScriptedWorker("parrot", ["a", WorkerError("Busy.", kind="status", retryable=True), "b"])
    assert (await worker.answer(HELLO)).text == "a"
    with pytest.raises(WorkerError, match=r"^Busy\.$"):
        await worker.answer(HELLO)
    reply = await worker.answer(HELLO)
    assert (reply.text, reply.usage.estimated, reply.usage.input_tokens) == ("b", True, 2)
    with pytest.raises(
        WorkerError, match="parrot: the script has only 3 replies, and this is call 4"
    ) as caught:
        await worker.answer(HELLO)
    assert (caught.value.kind, caught.value.retryable) == ("exhausted", False)
    assert worker.requests == [HELLO] * 4


async def test_subtask_script_is_reusable_and_refuses_unknown_subtasks() -> None:
    worker = ScriptedWorker("parrot", {"Hel": "a", "": "never reached", "x": "b"})
    assert [(await worker.answer(HELLO)).text for _ in range(2)] == ["a", "a"]
    with pytest.raises(WorkerError, match="no reply for the subtask 'Hello'"):
        await ScriptedWorker("parrot", {"x": "b"}).answer(HELLO)


async def test_calls_in_flight_together_take_replies_in_the_order_they_came() -> None:
    worker = ScriptedWorker("parrot", ["a", "b", "c"], delay=0.01)
    replies = await asyncio.gather(*(worker.answer(HELLO) for _ in range(3)))
    assert [reply.text for reply in replies] == ["a", "b", "c"]


def test_pool_refuses_an_object_that_is_no_worker() -> None:
    with pytest.raises(ConfigError, match=r"str is no podium\.workers\.Worker; derive its class from it"):
        Pool(["gpt-4.1"])  # type: ignore[list-item]


def test_only_paid_workers_are_costly_when_the_pool_is_not_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    replay = '[[worker]]\nname = "b"\nkind = "replay"\nrecording = "none.parquet"\n'
    pool = open_pool(_write(tmp_path, KEYED.format("NO_SUCH_KEY") + replay), ready=False)
    assert [worker.profile.name for worker in costly_workers(pool)] == ["a"]
