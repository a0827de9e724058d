"""Two ranks that train together, as real processes over a paid endpoint, beside one rank alone, in this process."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from contextlib import closing, redirect_stderr, redirect_stdout
from io import StringIO
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from accelerate.state import AcceleratorState

from free_port import free_port
from podium.cli import run
from podium.errors import ConfigError
from podium.spending.shared_spend_limit import SharedSpendLimit
from podium.store import TraceStore
from podium.train.trl.accelerated_ranks import AcceleratedRanks
from podium.types import MAX_USD
from podium_testing import FaultServer
from scripted_team import write_sums
from tiny_policy import write_policy

POOL = """
[[worker]]
name = "ada"
kind = "openai"
model = "a-1"
base_url = "{url}"
price = {{ input = 10.0, output = 100.0 }}
limits = {{ max_tokens = 50 }}
[[worker]]
name = "bram"
kind = "openai"
model = "b-1"
base_url = "{url}"
price = {{ input = 1.0, output = 10.0 }}
limits = {{ max_tokens = 50 }}
"""
RUN = """
engine = "trl"
start = "start"
tasks = "sums.jsonl"
task_limit = 4
pool = "pool.toml"
[prompt]
style = "brief"
examples = 0
[grpo]
iterations = 2
questions = 2
group = 4
max_tokens = 48
micro_batch = 4
eval_every = 2
eval_questions = 3
temperature = 0.01    # next to greedy: processes draw from random streams of their own
[trl]
gradient_checkpointing = false
use_cpu = true
"""


def _train_here(*words: str) -> str:
    with redirect_stdout(StringIO()) as said:
        assert run(words) == 0
    return said.getvalue()


def _train_by_two_ranks(*words: str) -> str:
    """In forks of this process, which has loaded what they need, told what `accelerate launch` tells a rank."""
    forks, said, port = get_context("fork"), [Path(f"said-{rank}") for rank in range(2)], free_port()
    ranks = [forks.Process(target=_train_as, args=(rank, port, said[rank], words)) for rank in range(2)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
    text = "".join(file.read_text() for file in said)
    assert [process.exitcode for process in ranks] == [0, 0], text
    return text


def _become(rank: int, port: int) -> None:
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    os.environ |= {"ACCELERATE_USE_CPU": "true", "ACCELERATE_MIXED_PRECISION": "no"}
    AcceleratorState._reset_state(reset_partial_state=True)  # It knows the one rank that trained here before.


def _train_as(rank: int, port: int, said: Path, words: tuple[str, ...]) -> None:
    _become(rank, port)
    with said.open("w") as out, redirect_stdout(out), redirect_stderr(out):
        status = run(words)
    sys.exit(status)


def _wait_as(rank: int, port: int, opened: Any, other_ended: Any) -> None:
    _become(rank, port)
    ranks = AcceleratedRanks(4)
    if ranks.is_first:
        other_ended.wait()
    else:
        opened.set()
        ranks.gather([rank])


def _figures(run: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


@pytest.mark.timeout(300)
def test_two_ranks_make_the_calls_of_one_pay_each_once_and_report_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.toml").write_text(RUN)
    write_policy(tmp_path / "start")
    write_sums(tmp_path / "sums.jsonl", 4, ("train", "validation"))
    requests = {}
    for name, train in {"one": _train_here, "two": _train_by_two_ranks}.items():
        with FaultServer("Answer: 42").in_thread() as provider:
            (tmp_path / "pool.toml").write_text(POOL.format(url=provider.url))
            said = train("train", "--config", "run.toml", "--run", name)
            assert said.count(f"The trained policy is in {name}/policy") == 1
            requests[name] = Counter((request.model, request.text) for request in provider.requests)

    assert requests["one"], "workers were asked"
    assert requests["one"] == requests["two"]
    assert set(requests["two"].values()) == {1}
    one, two = _figures(tmp_path / "one"), _figures(tmp_path / "two")
    assert [row.keys() for row in one] == [row.keys() for row in two]
    for ours, theirs in zip(one, two, strict=True):
        numbers = {key: value for key, value in ours.items() if isinstance(value, float)}
        assert {key: theirs[key] for key in numbers} == pytest.approx(numbers, rel=1e-3, abs=1e-6)
    assert two[1]["evaluation"] == pytest.approx(one[1]["evaluation"], rel=1e-3)
    spent = []
    for name in ("one", "two"):
        with closing(SharedSpendLimit(tmp_path / name / "spending.sqlite", "run", MAX_USD)) as spend_limit:
            spent.append(spend_limit.spent_usd)
        with TraceStore(tmp_path / name / "traces.sqlite", create=False) as store:
            assert len(store.list()) == 16 + 3
    assert spent[0] == pytest.approx(spent[1], abs=1e-9)
    assert spent[0] > 0


@pytest.mark.nightly
def test_two_ranks_learn_the_same_from_examples_as_one_rank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    examples = '[sft]\nexamples = "random"\ncount = 8\nbatch = 4\nmicro_batch = 2\nepochs = 1\n'
    (tmp_path / "run.toml").write_text(RUN + examples)
    (tmp_path / "pool.toml").write_text(POOL.format(url="http://127.0.0.1:9/v1"))
    write_policy(tmp_path / "start")
    write_sums(tmp_path / "sums.jsonl", 4, ("train", "validation"))
    for name, train in {"one": _train_here, "two": _train_by_two_ranks}.items():
        said = train("train", "--stage", "sft", "--config", "run.toml", "--run", name)
        assert said.count(f"The trained policy is in {name}/policy") == 1
    one, two = _figures(tmp_path / "one"), _figures(tmp_path / "two")
    assert len(one) == 2
    assert two == [pytest.approx(row, rel=1e-3) for row in one]


def test_a_rank_waits_for_another_as_long_as_ddp_timeout_says() -> None:
    forks, port = get_context("fork"), free_port()
    opened, other_ended = forks.Event(), forks.Event()
    late, waiting = (
        forks.Process(target=_wait_as, args=(rank, port, opened, other_ended)) for rank in range(2)
    )
    late.start()
    waiting.start()
    waiting.join(60)
    other_ended.set()
    late.join()
    assert opened.is_set()
    assert waiting.exitcode == 1

    with pytest.raises(ConfigError, match=r"trl\.ddp_timeout = 'soon' is no number"):
        AcceleratedRanks("soon")
