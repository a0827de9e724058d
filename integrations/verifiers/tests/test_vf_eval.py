"""The real `vf-eval`, in a process of its own, over a policy behind an OpenAI-compatible endpoint."""

from pathlib import Path
from typing import Any

import pytest

from eval_run import ACCEPT, LATER, PLANS, lay, options_of, run_vf_eval
from podium.calls import CallState
from podium.scoring import RolloutRequest, ScoringSettings, open_session
from podium.scoring.service import serve_session
from podium_testing import Answer, FaultServer


@pytest.fixture
def settings(tmp_path: Path) -> ScoringSettings:
    return lay(tmp_path, rounds=2)


def write(messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
    """A policy: some questions get a plan of one worker, some of another, one no plan; every answer is accepted."""
    question = messages[-1]["content"]
    if LATER in question:
        return ACCEPT
    return (*PLANS, "No plan.")[len(question.partition("Your team")[0]) % 3]


async def vf_eval(folder: Path, *options: str, rollouts: int = 2) -> tuple[list[dict[str, Any]], str]:
    """`run_vf_eval` with `write` as the policy."""
    async with FaultServer(write) as policy:
        return await run_vf_eval(folder, "--client.base-url", policy.url, "-r", str(rollouts), *options)


async def rewards(settings: ScoringSettings, traces: list[dict[str, Any]]) -> list[tuple[str, float | None]]:
    """What a session of its own gives for the plans of each trace, in order."""
    found = []
    numbers: dict[str, int] = {}
    async with open_session(settings, CallState()) as session:
        for trace in traces:
            task = trace["task"]["data"]["id"]
            plans = tuple(node["message"]["content"] for node in trace["nodes"] if node.get("sampled"))
            number = numbers[task] = numbers.get(task, -1) + 1
            request = RolloutRequest(task=task, group="verifiers", rollout=number, plans=plans)
            found.append((task, (await session.score(request)).reward))
    return found


def rewards_of(traces: list[dict[str, Any]]) -> list[tuple[str, float]]:
    return [(trace["task"]["data"]["id"], trace["rewards"]["podium"]["score"]) for trace in traces]


async def test_vf_eval_gives_the_rewards_of_a_scoring_session(
    tmp_path: Path, settings: ScoringSettings
) -> None:
    traces, printed = await vf_eval(tmp_path, *options_of(settings))
    assert len(traces) == 6, printed
    assert sorted(rewards_of(traces)) == sorted(await rewards(settings, traces))
    assert len({reward for _, reward in rewards_of(traces)}) > 1
    for trace in traces:
        sampled = [node for node in trace["nodes"] if node.get("sampled")]
        assert trace["metrics"]["rounds"] == len(sampled) == (2 if trace["metrics"]["valid"] else 1)


async def test_a_draft_in_a_thought_that_was_cut_off_is_no_plan(
    tmp_path: Path, settings: ScoringSettings
) -> None:
    draft = Answer(f"<think>\n{PLANS[0]}", finish_reason="length")
    async with FaultServer(lambda messages, body: draft) as policy:
        traces, printed = await run_vf_eval(tmp_path, "--client.base-url", policy.url, *options_of(settings))
    assert traces, printed
    assert not any(trace["metrics"]["valid"] for trace in traces)


async def test_each_round_is_a_branch_with_its_own_prompt(tmp_path: Path, settings: ScoringSettings) -> None:
    traces, printed = await vf_eval(tmp_path, *options_of(settings), rollouts=1)
    nodes = next(trace["nodes"] for trace in traces if trace["metrics"]["rounds"] == 2)
    replies = [node for node in nodes if node.get("sampled")]
    prompts = [nodes[node["parent"]] for node in replies]
    assert [prompt["message"]["role"] for prompt in prompts] == ["user", "user"], printed
    assert LATER not in prompts[0]["message"]["content"]
    assert LATER in prompts[1]["message"]["content"]
    assert all(nodes[prompt["parent"]]["message"]["role"] == "system" for prompt in prompts)


async def test_rewards_of_a_scoring_service_equal_those_of_a_session(
    tmp_path: Path, settings: ScoringSettings
) -> None:
    async with open_session(settings, CallState()) as session, serve_session(session) as url:
        traces, printed = await vf_eval(tmp_path, "--env.taskset.url", url)
    assert len(traces) == 6, printed
    assert sorted(rewards_of(traces)) == sorted(await rewards(settings, traces))


async def test_failed_workers_are_an_error_and_no_reward(tmp_path: Path, settings: ScoringSettings) -> None:
    pool = tmp_path / "broken.toml"
    pool.write_text(
        "\n".join(
            f'[[worker]]\nname = "broken {number}"\nkind = "command"\ncommand = ["false"]\nlimits = {{ retries = 0 }}'
            for number in range(6)
        )
    )
    async with (
        open_session(settings.model_copy(update={"pool": str(pool)}), CallState()) as session,
        serve_session(session) as url,
    ):
        traces, printed = await vf_eval(tmp_path, "--env.taskset.url", url, rollouts=1)
    failed = [trace for trace in traces if trace.get("errors")]
    assert failed, printed
    assert all("WorkersFailed" in error["type"] for trace in failed for error in trace["errors"])
    assert not any(trace["rewards"] for trace in failed)


async def test_a_paid_pool_needs_the_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-none")
    traces, printed = await vf_eval(
        tmp_path, *options_of(lay(tmp_path)), "--env.taskset.scoring.pool", "openrouter"
    )
    assert not traces
    assert "start `podium score-server` and set env.taskset.url" in printed
