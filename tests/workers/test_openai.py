"""The worker behind an endpoint: what it asks, how it is told apart, and what its table in a team file may say."""

import json
from pathlib import Path

import pytest

from chat_endpoint import KEY, MESSAGES, Endpoint
from chat_worker import ChatClient, chat_worker
from podium.errors import ConfigError
from podium.team.team_file import open_pool
from podium.types import Limits, Profile
from podium.workers import Pool, Request
from podium.workers.connections import Connections

FILE = """
[[worker]]
name = "a"
kind = "openai"
model = "m"
base_url = "{url}"
{more}
"""


def _load(folder: Path, more: str, url: str = "https://models.invalid/v1") -> Pool:
    path = folder / "pool.toml"
    path.write_text(FILE.format(url=url, more=more), encoding="utf-8")
    return open_pool(path)


async def test_a_worker_puts_its_system_prompt_first_and_keeps_to_its_limits(endpoint: Endpoint) -> None:
    worker = chat_worker(
        Profile(name="w"),
        ChatClient(endpoint.url, KEY),
        "m",
        limits=Limits(max_tokens=99),
        system="Be brief.",
        temperature=0.7,
        extra={"top_k": 1},
    )
    reply = await worker.answer(Request(MESSAGES, seed="0"))
    await worker.close()
    assert (reply.text, reply.latency_s) == ("4", None)
    body = endpoint.bodies[0]
    assert body["messages"][0] == {"role": "system", "content": "Be brief."}
    assert {key: body[key] for key in ("max_tokens", "temperature", "top_k")} == {
        "max_tokens": 99,
        "temperature": 0.7,
        "top_k": 1,
    }
    assert "seed" not in body
    shown = [worker, vars(worker), vars(worker._endpoint)]
    assert KEY not in "".join(map(repr, shown))


async def test_a_seed_is_sent_if_the_pool_file_says_so_and_differs_between_calls(endpoint: Endpoint) -> None:
    worker = chat_worker(Profile(name="w"), ChatClient(endpoint.url), "m", send_seed=True)
    for seed in ("7/0/0", "7/0/1", "7/0/0"):
        await worker.answer(Request(MESSAGES, seed=seed))
    await worker.close()
    first, second, again = (body["seed"] for body in endpoint.bodies)
    assert first == again != second
    assert all(0 <= seed < 2**31 for seed in (first, second))


async def test_the_workers_of_a_pool_share_their_connections(endpoint: Endpoint) -> None:
    shared = Connections()
    pool = Pool(
        [
            chat_worker(Profile(name=name), ChatClient(endpoint.url, KEY, connections=shared), name)
            for name in ("a", "b")
        ]
    )
    for _ in range(3):
        for worker in pool:
            await worker.answer(Request(MESSAGES, seed="0"))
    assert len(endpoint.connections) == 1
    await pool.close()
    await pool.close()
    assert (await pool[0].answer(Request(MESSAGES, seed="0"))).text == "4"
    await pool.close()


async def test_a_table_of_a_pool_file_describes_an_endpoint(
    endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PODIUM_TEST_KEY", KEY)
    monkeypatch.setenv("PODIUM_TEST_GATE", "Bearer gate-0123456789")
    pool = _load(
        tmp_path,
        """
        api_key_env = "PODIUM_TEST_KEY"
        key_header = "api-key"
        query = { api-version = "2024-10-21" }
        headers = { X-Title = "Podium" }
        headers_env = { X-Gate = "PODIUM_TEST_GATE" }
        max_tokens_key = "max_completion_tokens"
        stream = true
        send_seed = true
        limits = { max_tokens = 5, first_token_timeout = 5 }
        extra = { reasoning_effort = "low", thinking = { budget_tokens = 1024 } }
        """,
        endpoint.url,
    )
    assert (await pool[0].answer(Request(MESSAGES, seed="0"))).text == "4"
    await pool.close()
    headers, body = endpoint.headers[0], endpoint.bodies[0]
    assert (headers["api-key"], headers["X-Title"]) == (KEY, "Podium")
    assert headers["X-Gate"] == "Bearer gate-0123456789"
    assert "Authorization" not in headers
    assert endpoint.queries == [{"api-version": "2024-10-21"}]
    assert (body["max_completion_tokens"], body["stream"]) == (5, True)
    assert (body["reasoning_effort"], body["thinking"]) == ("low", {"budget_tokens": 1024})
    assert isinstance(body["seed"], int)


async def test_the_workers_of_a_pool_keep_one_anothers_secrets(
    endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PODIUM_TEST_KEY", KEY)
    other = 'name = "b"\nkind = "openai"\nmodel = "m"\nbase_url = "https://models.invalid/v1"'
    pool = _load(tmp_path, f'[[worker]]\n{other}\napi_key_env = "PODIUM_TEST_KEY"', endpoint.url)
    endpoint.answer({"choices": [{"message": {"content": f"I know {KEY}."}}]})
    assert (await pool[0].answer(Request(MESSAGES, seed="0"))).text == "I know ***."
    await pool.close()


@pytest.mark.parametrize(
    "more",
    [
        'query = { api-version = "1" }',
        'headers = { X-Beta = "long" }',
        'system = "Be brief."',
        "limits = { max_tokens = 7 }",
        "temperature = 0",
        "send_seed = true",
        "extra = { top_p = 0.5 }",
    ],
)
def test_settings_that_can_change_an_answer_change_the_identity(tmp_path: Path, more: str) -> None:
    assert _load(tmp_path, more)[0].identity != _load(tmp_path, "")[0].identity


def test_secrets_are_not_part_of_the_identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODIUM_TEST_KEY", KEY)
    more = 'api_key_env = "PODIUM_TEST_KEY"\nheaders_env = { X-Gate = "PODIUM_TEST_KEY" }'
    identity = _load(tmp_path, more)[0].identity
    assert identity == _load(tmp_path, "")[0].identity
    assert KEY not in json.dumps(identity)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (
            'headers = { X-Api-Key = "hush" }',
            "the header X-Api-Key looks like a secret; put its value into an environment variable",
        ),
        ('headers = { "X Y" = "1" }', "'X Y' is no valid header name"),
        ('headers = { X-Y = "a\\nb" }', "the value of the header X-Y cannot be sent"),
        ('headers = { Host = "x" }', "the client sets the header Host itself; leave it out."),
        (
            'headers = { X-Y = "1" }\nheaders_env = { x-y = "PATH" }',
            "the header x-y is given twice; leave one out.",
        ),
        ('query = { key = "hush" }', "'key' looks like a secret; send it as a header"),
        ("extra = { messages = [] }", "messages are made for each question; leave them out."),
        ('extra = { api_key = "hush" }', "'api_key' looks like a secret"),
        ('max_tokens_key = "max_token"', "did you mean 'max_tokens'?"),
        (
            'headers_env = { X-Gate = "hush-0" }',
            "headers_env.X-Gate must be the name of an environment variable, not a key.",
        ),
        (
            'api_key_env = "sk_hush0123456789abcdef"',
            "api_key_env must be the name of an environment variable, not a key.",
        ),
        (
            'headers_env = { X-Gate = "PODIUM_TEST_NO_KEY" }',
            "the environment variable PODIUM_TEST_NO_KEY is not set; put the key there, or leave headers_env.X-Gate",
        ),
    ],
)
def test_a_table_that_cannot_work_is_refused_with_the_way_out(
    tmp_path: Path, more: str, sentence: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        _load(tmp_path, more)
    assert sentence in str(caught.value)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://localhost:8080/v1", True),
        ("http://127.0.0.1:8080/v1", True),
        ("http://[::1]:8080/v1", True),
        ("http://192.168.0.7:8080/v1", False),
        ("https://models.invalid/v1", False),
    ],
)
def test_a_model_at_this_machines_own_address_computes_here(url: str, here: bool, tmp_path: Path) -> None:
    assert _load(tmp_path, "", url)[0].computes_here == here
