from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tinker_cookbook.completers import TinkerTokenCompleter
from tinker_cookbook.renderers import Renderer
from tinker_cookbook.rl.data_processing import assemble_training_data, compute_advantages
from tinker_cookbook.rl.rollout_strategy import MinViableGroup
from tinker_cookbook.rl.rollouts import do_group_rollout

from conftest import ACCEPT, OTHER, PLAN
from fake_tinker import FakeSamplingClient
from podium.calls import CallState
from podium.scoring import RolloutRequest, ScoringSession, ScoringSettings, open_session
from podium_tinker import PodiumDataset, PodiumGroupBuilder

LATER = "Plan of round 1"


@pytest.fixture
async def session(ground: dict[str, str]) -> AsyncIterator[ScoringSession]:
    async with open_session(ScoringSettings(task_limit=3, rounds=2, **ground), CallState()) as opened:
        yield opened


def sampler(renderer: Renderer, first: list[str], later: str) -> FakeSamplingClient:
    """Writes the texts of `first` in turn, and `later` in every later round."""
    texts = iter(first)
    return FakeSamplingClient(renderer.tokenizer, lambda prompt: later if LATER in prompt else next(texts))


def group(session: ScoringSession, renderer: Renderer, size: int) -> PodiumGroupBuilder:
    return PodiumGroupBuilder(session, renderer, next(iter(session.tasks)), group="42/0", size=size)


async def test_trajectory_has_one_transition_per_round_and_the_session_reward(
    session: ScoringSession, renderer: Renderer
) -> None:
    firsts = [PLAN, OTHER, "No plan."]
    client = sampler(renderer, firsts, later=ACCEPT)
    found = await do_group_rollout(group(session, renderer, 3), TinkerTokenCompleter(client, max_tokens=256))

    async with open_session(session.settings, CallState()) as fresh:
        requests = [
            RolloutRequest(task=next(iter(fresh.tasks)), seed="42/0", rollout=rollout, plans=plans)
            for rollout, plans in enumerate([(PLAN, ACCEPT), (OTHER, ACCEPT), ("No plan.",)])
        ]
        expected = [(await fresh.score(request)).reward for request in requests]
    assert found.get_total_rewards() == expected
    assert len(set(expected)) > 1
    assert [len(trajectory.transitions) for trajectory in found.trajectories_G] == [2, 2, 1]
    assert [transition.reward for transition in found.trajectories_G[0].transitions[:-1]] == [0.0]


async def test_training_data_pairs_each_completion_with_the_prompt_of_its_round(
    session: ScoringSession, renderer: Renderer
) -> None:
    client = sampler(renderer, [PLAN, "No plan."], later=ACCEPT)
    found = await do_group_rollout(group(session, renderer, 2), TinkerTokenCompleter(client, max_tokens=256))
    (advantages,) = compute_advantages([found])
    data, places = assemble_training_data([found], [advantages])

    assert [place["traj_idx"] for place in places] == [0, 0, 1]
    rewards = found.get_total_rewards()
    texts = []
    for datum, place in zip(data, places, strict=True):
        mask = datum.loss_fn_inputs["mask"].to_torch().bool()
        targets = datum.loss_fn_inputs["target_tokens"].to_torch()[mask].tolist()
        texts.append(renderer.tokenizer.decode(targets, skip_special_tokens=True))
        advantage = datum.loss_fn_inputs["advantages"].to_torch()[mask]
        assert advantage.tolist() == pytest.approx(
            [rewards[place["traj_idx"]] - sum(rewards) / 2] * len(targets)
        )
    assert texts == [PLAN, ACCEPT, "No plan."]


async def test_a_rollout_whose_workers_failed_is_left_out_of_its_group(
    renderer: Renderer, tmp_path: Path, ground: dict[str, str]
) -> None:
    pool = tmp_path / "pool.toml"
    pool.write_text(
        '[[worker]]\nname = "broken"\nkind = "command"\ncommand = ["false"]\nlimits = { retries = 0 }\n'
        '[[worker]]\nname = "fine"\nkind = "command"\ncommand = ["echo", "Answer: 4"]\n'
    )
    async with open_session(
        ScoringSettings(task_limit=1, tasks=ground["tasks"], pool=str(pool)), CallState()
    ) as session:
        found = await do_group_rollout(
            group(session, renderer, 3),
            TinkerTokenCompleter(sampler(renderer, [PLAN, OTHER, OTHER], later=""), max_tokens=256),
            MinViableGroup(min_successful=2, max_retries=0),
        )
    assert len(found.trajectories_G) == 2
    assert [error.error_type for error in found.rollout_errors] == ["WorkersFailedError"]


def test_epochs_have_orders_of_their_own_and_groups_their_own_names(
    session: ScoringSession, renderer: Renderer
) -> None:
    tasks = tuple(f"task {number}" for number in range(7))
    dataset = PodiumDataset(session, renderer, tasks, groups_per_batch=2, group_size=4, epochs=2)
    batches = [dataset.get_batch(index) for index in range(len(dataset))]
    assert len(batches) == 6
    orders = [[builder.task for batch in half for builder in batch] for half in (batches[:3], batches[3:])]
    assert orders[0] != orders[1]
    assert all(len(set(order)) == 6 for order in orders)
    assert len({builder.group for batch in batches for builder in batch}) == 6
