"""`podium search trinity`, `masrouter` and `workflows` over a paid endpoint: priced, in a budget, continued."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.refused_commands import one_sentence
from podium.planners import open_baseline
from podium.team.team_file import open_pool
from podium.workers.vote import VoteWorker
from podium.workflow import Step, Workflow, render
from podium_testing import Answer, FaultServer

Podium = Callable[..., Any]
CALL_USD = 0.001
HEAD = (
    *("search", "trinity", "pool=paid.toml", "tasks=sums.csv", "generations=3", "population=4"),
    *("replications=3", "workers=['small', 'large']"),
)
WORKFLOWS = (
    *("search", "workflows", "pool=paid.toml", "tasks=sums.csv", "writer=large", "proposals=2"),
    *("tried_on=6", "max_steps=2"),
)
CONTROLLER = (
    *("search", "masrouter", "pool=paid.toml", "tasks=sums.csv", "epochs=3"),
    "workers=['small', 'large']",
)
PROPOSED = Workflow((Step(0, "Use the abacus."),))


def small(messages: list[dict[str, Any]], body: dict[str, Any]) -> Answer:
    return Answer("Answer: 7" if "abacus" in str(messages[-1]) else "Answer: 1", 0, 1000)


def large(messages: list[dict[str, Any]], body: dict[str, Any]) -> Answer:
    text = str(messages[-1])
    if "Propose the next workflow" in text:
        return Answer(render(PROPOSED) if "abacus" not in text else "Nothing is left.", 0, 1000)
    return Answer("ACCEPT" if "Check the latest answer" in text else "Answer: 2", 0, 1000)


@pytest.fixture
def endpoint(podium: Podium) -> Iterator[FaultServer]:
    """Two models; each call costs `CALL_USD`, and no more than that is reserved."""
    Path("sums.csv").write_text(
        "question,answer\n" + "".join(f"What is 7 times {n} by {n}?,7\n" for n in range(1, 13))
    )
    with FaultServer(models={"small": small, "large": large}).in_thread() as server:
        Path("paid.toml").write_text(
            "".join(
                f'[[worker]]\nname = "{name}"\nkind = "openai"\nmodel = "{name}"\nbase_url = "{server.url}"\n'
                "price = { output = 1.0 }\nlimits = { max_tokens = 1000 }\n"
                for name in ("small", "large")
            )
        )
        yield server


def spent(server: FaultServer) -> float:
    return CALL_USD * len(server.requests)


def test_a_budget_below_one_generation_is_refused_after_a_dry_question(
    podium: Podium, endpoint: FaultServer
) -> None:
    dry = json.loads(podium(*HEAD, "--dry-run", "--json").out)
    assert dry["whole_usd"] == pytest.approx(3 * dry["first_usd"])
    calls = len(endpoint.requests)
    refused = podium(*HEAD, "--run", "r", "--run-budget-usd", "0.02")
    assert refused.status == 2
    assert "--run-budget-usd is $0.020, and by a dry question one generation costs about" in refused.err
    assert "set population or replications lower" in refused.err
    assert len(endpoint.requests) == 2 * calls
    assert (
        podium(*HEAD, "--run", "r", "--run-budget-usd", "0.02", "population=2", "replications=1").status == 0
    )
    low = podium(*WORKFLOWS, "--run", "w", "--run-budget-usd", "0.02")
    assert low.status == 2
    assert "one archive and its first proposal costs about" in low.err


def test_a_head_that_the_budget_stopped_continues_and_pays_no_call_twice(
    podium: Podium, endpoint: FaultServer
) -> None:
    assert podium(*HEAD, "--run", "whole").status == 0
    whole = spent(endpoint)
    assert open_baseline("trinity:whole/head.json", open_pool("paid.toml").profiles).head.workers == (
        "small",
        "large",
    )
    stopped = podium(*HEAD, "--run", "r", "--run-budget-usd", f"{0.75 * whole}")
    assert stopped.status == 0, stopped.err
    assert "The budget ended after generation" in stopped.out
    assert Path("r/head.json").read_bytes() != Path("whole/head.json").read_bytes()
    assert podium(*HEAD, "--run", "r", "--run-budget-usd", "9").status == 0
    assert Path("r/head.json").read_bytes() == Path("whole/head.json").read_bytes()
    assert spent(endpoint) == pytest.approx(2 * whole)
    other = podium(*HEAD, "--run", "r", "population=8")
    assert "population was 4 and is now 8" in one_sentence(other)


def test_a_controller_that_the_budget_stopped_pays_no_call_twice(
    podium: Podium, endpoint: FaultServer
) -> None:
    dry = json.loads(podium(*CONTROLLER, "--dry-run", "--json").out)
    assert dry["whole_usd"] == pytest.approx(3 * dry["first_usd"])
    low = podium(*CONTROLLER, "--run", "r", "--run-budget-usd", "0.01")
    assert "one epoch costs about" in low.err
    assert "or set questions lower" in low.err
    before = spent(endpoint)
    assert podium(*CONTROLLER, "--run", "whole").status == 0
    whole = spent(endpoint) - before
    found = open_baseline(
        "masrouter:whole/controller.json", open_pool("paid.toml").joined([VoteWorker()]).profiles
    )
    assert found.controller.workers == ("small", "large")
    stopped = podium(*CONTROLLER, "--run", "r", "--run-budget-usd", f"{0.9 * whole}")
    assert stopped.status == 0, stopped.err
    assert "The budget ended after epoch" in stopped.out
    assert podium(*CONTROLLER, "--run", "r", "--run-budget-usd", "9").status == 0
    assert Path("r/controller.json").read_bytes() == Path("whole/controller.json").read_bytes()
    assert spent(endpoint) - before <= 2 * whole


def test_workflows_are_searched_and_a_larger_budget_continues(podium: Podium, endpoint: FaultServer) -> None:
    done = podium(*WORKFLOWS, "--run", "whole")
    assert done.status == 0, done.err
    assert "proposal 1/2  100.0% right" in done.out
    assert "proposal 2/2  no new workflow was written in three tries" in done.out
    whole = spent(endpoint)
    plan = Path("whole/plan.txt").read_text()
    assert plan.strip() == render(PROPOSED)
    constant = open_baseline("constant:whole/plan.txt", open_pool("paid.toml").profiles)
    assert constant.workflow == PROPOSED
    stopped = podium(*WORKFLOWS, "--run", "r", "--run-budget-usd", f"{whole - 0.0005}")
    assert stopped.status == 0, stopped.err
    assert "The budget ended after" in stopped.out
    assert podium(*WORKFLOWS, "--run", "r", "--run-budget-usd", "9").status == 0
    for file in ("plan.txt", "plans.json", "metrics.jsonl"):
        assert Path("r", file).read_bytes() == Path("whole", file).read_bytes()
    assert spent(endpoint) == pytest.approx(2 * whole)


def test_resumed_search_after_a_kill_finds_the_same_head(podium: Podium, endpoint: FaultServer) -> None:
    command = HEAD
    assert podium(*command, "--run", "whole").status == 0
    rows = Path("r/metrics.jsonl")
    with subprocess.Popen(
        [sys.executable, "-m", "podium", *command, "--run", "r"], stdout=subprocess.DEVNULL, env=os.environ
    ) as killed:
        while not rows.exists() and killed.poll() is None:
            time.sleep(0.01)
        killed.send_signal(signal.SIGKILL)
    assert podium(*command, "--run", "r").status == 0
    for file in ("head.json", "metrics.jsonl"):
        assert Path("r", file).read_bytes() == Path("whole", file).read_bytes()


def test_invalid_search_settings_are_refused_in_one_sentence(podium: Podium, endpoint: FaultServer) -> None:
    assert "writer=NAME" in one_sentence(podium(*WORKFLOWS, "--run", "r", "writer="))
    assert "no worker named 'larg'" in one_sentence(podium(*WORKFLOWS, "--run", "r", "writer=larg"))
    assert "did you mean 'small'" in one_sentence(podium(*HEAD, "--run", "r", "workers=['smal']"))
    for seed in (-1, 2**32):
        assert "seed" in one_sentence(podium(*HEAD, "--run", "r", f"seed={seed}"))
    with Path("paid.toml").open("a") as pool:
        pool.write('[[worker]]\nname = "vote"\nkind = "vote"\n')
    assert "'vote', which is a tool" in one_sentence(podium(*WORKFLOWS, "--run", "r", "writer=vote"))
    assert not endpoint.requests
