"""`podium score-server` as a process of its own over paid endpoints: killed and restarted, it pays nothing twice."""

import asyncio
import os
import re
import signal
from collections import Counter
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from loaded_programs import loaded_podium
from podium.cli import run
from podium.cli.run_settings import read_run_settings
from podium.cli.score_server import scoring_settings
from podium.errors import BudgetExceededError, ConfigError
from podium.scoring import RolloutRequest, ScoringClient
from podium.spending.shared_spend_limit import SharedSpendLimit
from podium.store import TraceStore
from podium.train.settings import TrainSettings
from podium.types import MAX_USD
from podium_testing import FaultServer

CONFIG = """
start = "some/model"
tasks = "own.toml"
pool = "pool.toml"
rounds = 2

[grpo]
iterations = 3
"""
POOL = """
[[worker]]
name = "ada"
kind = "openai"
model = "m-1"
base_url = "{url}"
price = {{ input = 1000.0, output = 2000.0 }}
limits = {{ concurrency = 64, retries = 0, timeout = 90, max_tokens = 100 }}
"""
TASKS = """
[[part]]
set = "own"
files = {{ train = "train.jsonl" }}

[part.grader]
kind = "judge"

[part.grader.worker]
name = "judy"
kind = "openai"
model = "j-1"
base_url = "{url}"
price = {{ input = 1000.0, output = 2000.0 }}
limits = {{ concurrency = 64, retries = 0, max_tokens = 100 }}
"""
USD = {"input": 1000.0 / 1e6, "output": 2000.0 / 1e6}
"""Dollars a token, of worker and judge."""


class Endpoint:
    """Answers as a worker and as its judge; what holds one of `held` waits until `release`."""

    def __init__(self, *held):
        self.held = held
        self.release = asyncio.Event()

    async def __call__(self, messages, body):
        text = messages[-1]["content"]
        if any(re.search(pattern, text, re.DOTALL) for pattern in self.held):
            await self.release.wait()
        if body["model"] == "j-1":
            return "It says the same.\nRIGHT"
        return f"Done {re.search('way [0-9]+', text)[0]}.\nAnswer: 42"


def rollout(number, *, task):
    plan = f'model_id = [0]\nsubtasks = ["Go way {number}."]\naccess_list = [[]]'
    return RolloutRequest(task=task, group="0", rollout=number, plans=(plan,))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    Path("run.toml").write_text(CONFIG)
    Path("train.jsonl").write_text('{"id": "a", "question": "What is 6 times 7?", "answer": "42"}\n')
    return tmp_path


def lay(url):
    Path("pool.toml").write_text(POOL.format(url=url))
    Path("own.toml").write_text(TASKS.format(url=url))


@asynccontextmanager
async def score_server(*tokens, **variables):
    """The process, and its address; killed in the end if it still runs."""
    process = await asyncio.create_subprocess_exec(
        *(loaded_podium(), "score-server", "--config", "run.toml", "--run", "kept", *tokens),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | variables,
    )
    try:
        line = (await process.stdout.readline()).decode()
        found = re.search(r"http://[^ ]+", line)
        assert found, (line, await process.communicate())
        yield process, found[0]
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


def paid(endpoint):
    """The requests that were answered and whose answer was waited for."""
    return [request for request in endpoint.requests if request.status == 200 and not request.went_away]


def dollars(requests):
    return sum(
        request.input_tokens * USD["input"] + request.output_tokens * USD["output"] for request in requests
    )


async def test_score_server_killed_during_a_batch_repeats_no_paid_call(folder, unused_tcp_port):
    port = ("--port", str(unused_tcp_port))
    # At the kill, the worker still answers ways 1 and 2, and the judge still says its second word on way 3.
    endpoint = Endpoint(r"way [12]\.", r"<<<response .*Done way 3.*<<<reference answer")
    async with FaultServer(endpoint) as provider:
        lay(provider.url)
        async with score_server(*port) as (process, url), ScoringClient(url) as client:
            (task,) = (await client.info()).tasks
            rollouts = [rollout(number, task=task) for number in range(8)]
            asking = [asyncio.create_task(client.score(each)) for each in rollouts]
            await asyncio.gather(*(asking[number] for number in (0, 4, 5, 6, 7)))
            await provider.wait_for_requests(8 + 2 * 6)
            before = dollars(paid(provider))
            with closing(SharedSpendLimit(Path("kept/spending.sqlite"), "run", MAX_USD)) as spend_limit:
                assert spend_limit.spent_usd == pytest.approx(before, abs=1e-9)
                held = spend_limit.reserved_usd
            process.kill()
            await process.wait()
            endpoint.release.set()
            async with score_server(*port):
                scores = await asyncio.gather(*asking)
                assert [score.reward for score in scores] == [1.0] * 8
                made = len(provider.requests)
                assert await asyncio.gather(*map(client.score, rollouts)) == scores
        assert len(provider.requests) == made, "what was scored is not asked again"
        times = Counter(request.text for request in paid(provider))
        assert set(times.values()) == {1}
        assert len(times) == 8 + 2 * 8, "one answer and two words of the judge for each rollout"
        with closing(SharedSpendLimit(Path("kept/spending.sqlite"), "run", MAX_USD)) as spend_limit:
            assert spend_limit.spent_usd == pytest.approx(dollars(paid(provider)), abs=1e-9)
            assert spend_limit.reserved_usd == pytest.approx(held), (
                "the provider may bill the calls that were cut off"
            )
    with TraceStore(Path("kept/traces.sqlite"), create=False) as store:
        assert {trace.id for trace in store.iterate()} == {score.trace_id for score in scores}


async def test_the_run_stops_before_its_budget_is_passed_and_goes_on_with_more(folder):
    async with FaultServer(Endpoint()) as provider:
        lay(provider.url)
        async with score_server("--run-budget-usd", "2.5") as (_, url), ScoringClient(url) as client:
            (task,) = (await client.info()).tasks
            rollouts = [rollout(number, task=task) for number in range(8)]
            ended = await asyncio.gather(*map(client.score, rollouts), return_exceptions=True)
            stopped = [error for error in ended if isinstance(error, Exception)]
            assert stopped
            assert {type(error) for error in stopped} == {BudgetExceededError}
            assert re.search(r"of the run's \$2\.5 are (left|spent)", str(stopped[0]))
        assert dollars(paid(provider)) <= 2.5
        async with score_server("--run-budget-usd", "1000") as (_, url), ScoringClient(url) as client:
            scores = await asyncio.gather(*map(client.score, rollouts))
        assert {score.reward for score in scores} == {1.0}
        assert set(Counter(request.text for request in paid(provider)).values()) == {1}
        with closing(SharedSpendLimit(Path("kept/spending.sqlite"), "run", MAX_USD)) as spend_limit:
            assert spend_limit.spent_usd == pytest.approx(dollars(paid(provider)), abs=1e-9)


async def test_rollout_continues_after_its_client_left_and_after_sigterm(folder):
    endpoint = Endpoint("way [12]")
    async with FaultServer(endpoint) as provider:
        lay(provider.url)
        async with (
            score_server("--key-env", "MY_KEY", MY_KEY="s3cret") as (process, url),
            ScoringClient(url, key="s3cret") as client,
        ):
            (task,) = (await client.info()).tasks
            first, second = rollout(1, task=task), rollout(2, task=task)
            asking = asyncio.create_task(client.score(first))
            await provider.wait_for_requests(1)
            asking.cancel()
            endpoint.release.set()
            assert (await client.score(first)).reward == 1.0
            endpoint.release.clear()
            asking = asyncio.create_task(client.score(second))
            await provider.wait_for_requests(4)
            process.send_signal(signal.SIGTERM)
            endpoint.release.set()
            assert (await asking).reward == 1.0
            assert (await process.communicate())[1] == b""
            assert process.returncode == 0
        assert len(provider.requests) == 2 * 3
        assert not any(request.went_away for request in provider.requests)


def test_score_server_ignores_training_keys_of_a_run_file(folder):
    settings = scoring_settings(Path("run.toml"), ["grpo.lr=1e-5", "rounds=3", "lora.r=16"])
    assert (settings.tasks, settings.pool, settings.rounds) == ("own.toml", "pool.toml", 3)
    with pytest.raises(ConfigError, match="did you mean 'rounds'"):
        scoring_settings(Path("run.toml"), ["round=3"])


def test_the_service_and_its_trainer_may_start_in_different_folders(folder, monkeypatch):
    lay("http://127.0.0.1:9/v1")
    own = scoring_settings(Path("run.toml"), ["held_out=['train.jsonl:train']"])
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    overrides = ["engine=trl", f"held_out=['{folder}/train.jsonl:train']"]
    service = scoring_settings(Path("../run.toml"), overrides)
    trainer = read_run_settings(Path("../run.toml"), TrainSettings, overrides)
    assert service.tasks == trainer.tasks == str(Path("../own.toml").absolute())
    assert Path(service.pool).is_file()
    assert own.digest == service.digest == trainer.digest
    assert own.digest != own.model_copy(update={"pool": "team2.toml"}).digest


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        (("--port", "70000"), "--port 70000: give a number from 0 to 65535."),
        (("--key-env", "NO_SUCH_KEY"), "--key-env NO_SUCH_KEY: there is nothing in this variable"),
        (("--host", "0.0.0.0"), "give it a key"),
        (("tasks=none.toml",), "none.toml"),
        (("pool=none.toml",), "none.toml"),
        (("--drain", "-1"), "--drain -1"),
    ],
)
def test_score_server_refuses_invalid_options_in_one_sentence(folder, capsys, tokens, said):
    lay("http://127.0.0.1:9/v1")
    assert run(["score-server", "--config", "run.toml", "--run", "kept", *tokens]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("podium: ")
    assert err.count("\n") == 1
    assert said in err
