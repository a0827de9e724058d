"""Proposals are tried beside the samples of a question, and train a policy as its own plans do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import fsum
from pathlib import Path
from random import Random
from statistics import fmean

import pytest
import torch
from tiny_run import END, PLANS, POOL, SETTINGS, draw, run, write_start

from podium.baselines.phrases import WHOLE
from podium.conductor.checkpoint import Checkpoint
from podium.conductor.codec import Codec
from podium.planner import Planner
from podium.rollout import Rollout, Scorer, Written
from podium.rollout.run_folder import RunFolder
from podium.tasks.task import Task
from podium.train.batch import Group, open_tokens
from podium.train.grpo import accumulate, update
from podium.train.loss import LossType
from podium.train.model import PolicyModel
from podium.train.optimizer import adamw
from podium.train.proposals import Tried, all_action_advantages
from podium.train.reference import Reference
from podium.train.sampler import Samples
from podium.train.trials import Trials
from podium.train.turns import Turn
from podium.train.weights import read_model
from podium.workers.pool import Pool
from podium.workflow import Step, Workflow, render

KIND, KINDLESS = (
    [
        f"{head}{worker}; steps 1\n{render(Workflow((Step(worker, f'1. {WHOLE}'),)))}"
        for worker in range(len(POOL.profiles))
    ]
    for head in ("#sums", "")
)
"""Each worker alone, under a kind and under none: all that can be proposed where nobody can vote."""
PROMPT = (1, 4, 9, 7)
SCORER = Scorer()
TASK = draw(0)[0][0]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    """A tiny policy that can write what is proposed, a token each."""
    return write_start(tmp_path_factory.mktemp("trials") / "start", also=[*KIND, *KINDLESS])


@pytest.fixture
def model(start: Checkpoint) -> PolicyModel:
    """The policy after a step of training: no longer where it began."""
    model = read_model(start)
    moved = Group(PROMPT, ((5, END), (9, END)), (1.0, -1.0))
    assert update(model, adamw(model), [moved], rate=0.02, max_tokens=3).stepped
    return model


def trials(start: Checkpoint, model: PolicyModel, *, count: int = 40, kl: float = 0.2) -> Trials:
    began = Reference(read_model(start))
    return Trials(Codec.of(start), END, count, 6, Reference(model), began, kl, sure=0.99, seed="trials")


def tokens_of(start: Checkpoint, *texts: str) -> tuple[tuple[int, ...], ...]:
    codec = Codec.of(start)
    return tuple((*codec.encode_completion(text), END) for text in texts)


def turn(start: Checkpoint, model: PolicyModel, *texts: str) -> Turn:
    """As if these completions had been sampled."""
    tokens, nothing = tokens_of(start, *texts), ((),) * len(texts)
    logprobs = tuple(map(tuple, Reference(model).logprobs(PROMPT, nothing, tokens)))
    return Turn(0, tuple(range(len(texts))), PROMPT, nothing, Samples(tokens, logprobs, (True,) * len(texts)))


@dataclass
class Runs:
    """Runs planners on one question and keeps what each text earned; some fail for no fault of a plan."""

    failing: Sequence[str] = ()
    earned: dict[str, list[float]] = field(default_factory=dict)

    async def __call__(self, planner: Planner, seed: str) -> Rollout | None:
        rollout = await SCORER.roll(planner, TASK, POOL, seed=seed)
        text = rollout.trace.rounds[0].plan_text
        if text in self.failing:
            return None
        self.earned.setdefault(text, []).append(rollout.reward.total)
        return rollout

    async def of(self, *texts: str) -> list[Rollout | None]:
        """Of samples."""
        return [await self(Written(text), f"sample {number}") for number, text in enumerate(texts)]


SAMPLED = (KIND[1], "no plan", PLANS[3], KIND[1], KIND[1])
"""One of them will be proposed as well."""


async def test_each_different_completion_of_samples_and_proposals_is_in_the_group_once(
    start: Checkpoint, model: PolicyModel
) -> None:
    runs, asked = Runs(), turn(start, model, *SAMPLED)
    group = await trials(start, model).group(asked, await runs.of(*SAMPLED), POOL.profiles, runs)
    assert group.prompt == PROMPT
    assert group.given == ((),) * len(group.completions)
    proposed = set(runs.earned) - {"no plan", PLANS[3]}
    assert KIND[1] in proposed
    assert len(proposed) >= 2
    assert proposed <= set(KIND), "a proposal does not name the kind that the policy wrote"
    assert len(set(group.completions)) == len(group.completions) == len(runs.earned)
    assert set(group.completions) == set(tokens_of(start, *runs.earned))
    assert [len(runs.earned[text]) for text in (*SAMPLED[:3], *proposed - {KIND[1]})] == [
        4,
        *[1] * (len(proposed) + 1),
    ]


async def test_each_completion_counts_by_its_probability_all_it_earned_and_how_far_it_has_come(
    start: Checkpoint, model: PolicyModel
) -> None:
    runs, asked = Runs(), turn(start, model, *SAMPLED)
    group = await trials(start, model, kl=0.2).group(asked, await runs.of(*SAMPLED), POOL.profiles, runs)
    assert len(runs.earned[KIND[1]]) == 4
    assert len({fmean(earned) for earned in runs.earned.values()}) > 2
    by_tokens = dict(zip(tokens_of(start, *runs.earned), runs.earned.values(), strict=True))
    nothing = ((),) * len(group.completions)
    now, before = (
        Reference(policy).logprobs(PROMPT, nothing, group.completions)
        for policy in (model, read_model(start))
    )
    distances = [fsum(here) - fsum(there) for here, there in zip(now, before, strict=True)]
    tried = [
        Tried(logprobs, by_tokens[tokens], distance)
        for tokens, logprobs, distance in zip(group.completions, now, distances, strict=True)
    ]
    assert max(map(abs, distances)) > 0.1
    assert group.advantages == pytest.approx(all_action_advantages(tried, 0.2), abs=1e-5)
    assert group.open == tuple(open_tokens(logprobs, 0.99) for logprobs in now)


async def test_at_the_start_a_distance_costs_nothing(start: Checkpoint) -> None:
    model = read_model(start)
    runs, asked = Runs(), turn(start, model, *SAMPLED)
    rollouts = await runs.of(*SAMPLED)
    dear, free = [
        await tries.group(asked, rollouts, POOL.profiles, runs)
        for tries in (
            trials(start, model, kl=9.0),
            replace(trials(start, model), start=None),
        )
    ]
    assert max(map(abs, free.advantages)) > 0.01
    assert dear.advantages == pytest.approx(free.advantages, abs=1e-4)


async def test_the_gradient_of_a_group_is_that_of_the_expected_reward_among_what_was_tried(
    start: Checkpoint,
) -> None:
    model = read_model(start)
    runs, asked = Runs(), turn(start, model, "no plan", PLANS[0])
    tries = replace(trials(start, model), start=None, sure=1.0)
    group = await tries.group(asked, await runs.of("no plan", PLANS[0]), POOL.profiles, runs)
    assert len(group.completions) >= 4
    assert None not in group.advantages

    model.zero_grad()
    accumulate(model, [group], loss_type="dr_grpo", max_tokens=1)
    found = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}

    earned = [fmean(runs.earned[tries.codec.decode(tokens)]) for tokens in group.completions]
    assert max(earned) > min(earned)
    sums = []
    for tokens in group.completions:
        logits = model(torch.tensor([[*PROMPT, *tokens]]))[0, len(PROMPT) - 1 : -1]
        sums.append(logits.log_softmax(-1).gather(1, torch.tensor(tokens)[:, None]).sum())
    expected = (torch.stack(sums).softmax(0) * torch.tensor(earned)).sum()
    model.zero_grad()
    (-expected / len(earned)).backward()
    assert max(float(value.abs().max()) for value in found.values()) > 1e-3
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(found[name], parameter.grad, atol=1e-6, rtol=1e-3, msg=name)


async def test_what_its_workers_failed_is_left_out_sampled_or_proposed(
    start: Checkpoint, model: PolicyModel
) -> None:
    runs, asked = Runs(failing=(PLANS[3], KIND[0], KIND[2])), turn(start, model, *SAMPLED)
    group = await trials(start, model).group(asked, await runs.of(*SAMPLED), POOL.profiles, runs)
    assert set(group.completions) == set(tokens_of(start, "no plan", KIND[1]))
    assert len(group.completions) == 2


async def test_a_sample_whose_workers_failed_counts_by_the_proposal_that_says_the_same(
    start: Checkpoint, model: PolicyModel
) -> None:
    asked, nobody = turn(start, model, KIND[1]), Runs(failing=(KIND[0], KIND[2]))
    group = await trials(start, model).group(asked, [None], POOL.profiles, nobody)
    assert group.completions == tokens_of(start, KIND[1])
    assert len(nobody.earned[KIND[1]]) == 1


@pytest.mark.parametrize("loss_type", ["bnpo", "grpo"])
async def test_where_all_failed_the_group_is_dead_and_an_update_goes_without_it(
    start: Checkpoint, model: PolicyModel, loss_type: LossType
) -> None:
    runs, asked = Runs(failing=(*SAMPLED, *KIND)), turn(start, model, *SAMPLED)
    group = await trials(start, model).group(asked, await runs.of(*SAMPLED), POOL.profiles, runs)
    assert not runs.earned
    assert group.completions == group.advantages == ()
    assert group.dead
    before = {name: value.clone() for name, value in model.state_dict().items()}
    assert not update(model, adamw(model), [group], rate=0.1, loss_type=loss_type, max_tokens=3).stepped
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())

    alive = Group(PROMPT, tokens_of(start, "no plan", PLANS[1]), (-1.0, 1.0))
    losses = [
        update(read_model(start), adamw(model), groups, rate=0.1, loss_type=loss_type, max_tokens=3)
        for groups in ([alive], [group, alive])
    ]
    assert losses[0].grad_norm == losses[1].grad_norm > 0


async def test_proposals_have_a_seed_for_each_question(start: Checkpoint, model: PolicyModel) -> None:
    """Asked for a single one, some questions get one that others do not."""
    one = trials(start, model, count=1)
    proposed = []
    for question in (0, 0, 1, 2, 3, 4, 5, 6):
        asked = replace(turn(start, model, "no plan"), question=question)
        group = await one.group(asked, [None], POOL.profiles, Runs())
        proposed += group.completions
    assert proposed[0] == proposed[1]
    assert 1 < len(set(proposed)) <= 3


async def outages(planner: Planner, task: Task, pool: Pool, *, seed: str, thrift: int = 0) -> Rollout | None:
    """The shipped scorer, but some plans fail for reasons that are not the policy's."""
    rollout = await SCORER.roll(planner, task, pool, seed=seed, thrift=thrift)
    return None if Random(f"outage/{seed}").random() < 0.1 else rollout


PROPOSING = SETTINGS.model_copy(update={"proposals": 4, "kl": 0.02, "sure": 0.99})


def rows(folder: Path) -> list[dict]:
    """Metrics without what the clock says."""
    return [{k: v for k, v in row.items() if k != "seconds"} for row in RunFolder(folder).rows().read()]


async def test_where_samples_are_few_a_policy_finds_the_best_worker_by_what_is_proposed(
    start: Checkpoint, tmp_path: Path
) -> None:
    good = {}
    for count in (0, 4):
        settings = SETTINGS.model_copy(update={"proposals": count, "group": 2, "iterations": 40, "seed": 8})
        await run(tmp_path / f"{count}", start, settings, score=outages)
        trained = rows(tmp_path / f"{count}")
        assert sum(row["dropped"] for row in trained) > 10
        assert fmean(row["reward"] for row in trained[:4]) < 0.65
        good[count] = fmean(row["workers"].get("good", 0.0) for row in trained[-8:])
    assert good[4] > 0.85
    assert good[4] > good[0] + 0.1


class OutageError(Exception):
    """What a test breaks a run off with."""


async def test_a_run_with_proposals_that_breaks_off_while_one_is_tried_and_is_resumed_goes_on_as_it_was(
    start: Checkpoint, tmp_path: Path
) -> None:
    whole = await run(tmp_path / "whole", start, PROPOSING, score=outages)

    async def breaks(
        planner: Planner, task: Task, pool: Pool, *, seed: str, thrift: int = 0
    ) -> Rollout | None:
        if isinstance(planner, Written) and task.id == "sums/6/2":
            raise OutageError
        return await outages(planner, task, pool, seed=seed, thrift=thrift)

    broken = tmp_path / "broken"
    with pytest.raises(OutageError):
        await run(broken, start, PROPOSING, score=breaks)
    assert rows(broken) == rows(tmp_path / "whole")[:6]
    resumed = await run(broken, start, PROPOSING, score=outages)

    assert rows(broken) == rows(tmp_path / "whole")
    assert len(rows(broken)) == PROPOSING.iterations
    for name, weight in read_model(Checkpoint.read(whole)).state_dict().items():
        assert torch.equal(weight, read_model(Checkpoint.read(resumed)).state_dict()[name]), name
