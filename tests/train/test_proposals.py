"""Proposals are plans of the policy's own form, and each counts by the policy's own probability of it."""

from __future__ import annotations

import re
from math import log
from statistics import fmean

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from podium.baselines.plans import VOTE
from podium.train.proposals import Tried, all_action_advantages, propose
from podium.train.settings import GRPOSettings
from podium.train.warmstart.recorded_lessons import MOST_STEPS, thought
from podium.types import Profile
from podium.workflow import Workflow, parse, render

VOTERS = tuple(Profile(name=name) for name in ("ada", "bob", VOTE, "cy"))
ALONE = VOTERS[:2]
"""A pool that cannot vote: its committees are one worker each."""
WRITTEN = '#sums0; steps 1\nmodel_id = [0]\nsubtasks = ["Add."]\naccess_list = [[]]'


@pytest.mark.parametrize("profiles", [VOTERS, ALONE])
def test_every_proposal_is_a_plan_for_the_pool_under_the_thought_that_belongs_to_it(
    profiles: tuple[Profile, ...],
) -> None:
    texts = propose(WRITTEN, profiles, max_steps=6, count=40, seed="0")
    for text in texts:
        plan = parse(text, workers=len(profiles), max_steps=MOST_STEPS)
        assert isinstance(plan, Workflow), text
        assert text == f"{thought('#sums', plan, profiles)}\n{render(plan)}"
    sizes = {text.partition("\n")[0].partition("; ")[2] for text in texts}
    assert sizes == {f"steps {steps}" for steps in ((1, 3, 4, 6) if profiles == VOTERS else (1,))}


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        (WRITTEN, "#sums"),
        ("#of-two-words120; steps 9\nno plan", "#of-two-words"),
        ("#cut-off; steps ", "#cut-off"),
        (WRITTEN.removeprefix("#sums"), ""),
        ('model_id = [0]\nsubtasks = ["#sums; steps 2"]\naccess_list = [[]]', ""),
        ("no plan", ""),
        ("", ""),
    ],
)
def test_proposals_name_the_kind_that_the_policy_wrote_and_none_where_it_wrote_none(
    written: str, kind: str
) -> None:
    texts = propose(written, VOTERS, max_steps=6, count=10, seed="0")
    assert texts
    assert all(re.match(rf"{kind}\d+; steps \d\n", text) for text in texts)


def test_proposals_differ_from_each_other_and_are_at_most_as_many_as_asked_for() -> None:
    many = propose(WRITTEN, VOTERS, max_steps=6, count=60, seed="0")
    assert 10 < len(set(many)) == len(many) < 60
    few = propose(WRITTEN, VOTERS, max_steps=6, count=5, seed="0")
    assert 1 < len(few) <= 5
    assert few == many[: len(few)]
    alone = propose(WRITTEN, ALONE, max_steps=6, count=60, seed="0")
    assert len(alone) == len(set(alone)) == 2, "there is one committee for each worker"


def test_one_seed_proposes_one_list_and_another_seed_another() -> None:
    first, again, other = (
        propose(WRITTEN, VOTERS, max_steps=6, count=8, seed=seed) for seed in ("a", "a", "b")
    )
    assert first == again
    assert first != other


REWARD = st.floats(0, 1)
TRIED = st.builds(
    Tried,
    logprobs=st.lists(st.floats(-2, 0), min_size=1, max_size=3),
    rewards=st.lists(REWARD, min_size=1, max_size=3),
    distance=st.floats(-3, 3),
)


@given(st.lists(TRIED, min_size=1, max_size=6), st.floats(0, 0.5))
def test_advantages_are_the_gradient_of_what_the_policy_earns_among_the_tried(
    tried: list[Tried], kl: float
) -> None:
    """Reward less distance from the start, under the policy restricted to what was tried."""
    sums = torch.tensor([sum(one.logprobs) for one in tried], dtype=torch.float64, requires_grad=True)
    start = sums.detach() - torch.tensor([one.distance for one in tried], dtype=torch.float64)
    rewards = torch.tensor([fmean(one.rewards) for one in tried], dtype=torch.float64)
    logshares = sums.log_softmax(0)
    (logshares.exp() * (rewards - kl * (logshares - start))).sum().backward()
    assert all_action_advantages(tried, kl) == pytest.approx(sums.grad.tolist(), abs=1e-9)


@pytest.mark.parametrize(
    ("tried", "kl", "advantages"),
    [
        # Of a fair coin, and of one that falls on one side three times of four.
        ([Tried([log(0.5)], [1.0]), Tried([log(0.5)], [0.0])], 0.0, [0.25, -0.25]),
        ([Tried([log(0.5), log(0.3)], [1.0]), Tried([log(0.05)], [0.2])], 0.0, [0.15, -0.15]),
        # Rewards of one completion count by their mean, however many they are.
        ([Tried([log(0.5)], [1.0, 0.0, 0.5, 0.5]), Tried([log(0.5)], [0.1])], 0.0, [0.1, -0.1]),
        # What has come a nat nearer pays for it; what all have come does not count.
        ([Tried([log(0.5)], [0.5], 1.0), Tried([log(0.5)], [0.5], 0.0)], 0.2, [-0.05, 0.05]),
        ([Tried([log(0.5)], [0.5], 3.0), Tried([log(0.5)], [0.5], 3.0)], 0.2, [0.0, 0.0]),
        ([Tried([-3.0], [0.7], 2.0)], 0.5, [0.0]),
        # However unlikely both are.
        ([Tried([-900.0] * 3, [1.0]), Tried([-1350.0] * 2, [0.0])], 0.0, [0.25, -0.25]),
    ],
)
def test_advantages_of_a_few(tried: list[Tried], kl: float, advantages: list[float]) -> None:
    assert all_action_advantages(tried, kl) == pytest.approx(advantages)


def test_what_the_policy_would_hardly_ever_write_has_no_advantage() -> None:
    likely = [Tried([log(0.5)], [1.0]), Tried([log(0.5)], [0.0])]
    rare, seldom = Tried([log(5e-5)], [1.0]), Tried([log(5e-4)], [1.0])
    first, second, none = all_action_advantages([*likely, rare], 0.0)
    assert none is None
    assert [first, second] == pytest.approx([0.25, -0.25], rel=1e-3)
    assert all_action_advantages([*likely, seldom], 0.0)[2] == pytest.approx(5e-4 * 0.5, rel=0.01)


def test_proposals_are_for_one_round() -> None:
    assert GRPOSettings(proposals=4, rounds=1).proposals == 4
    with pytest.raises(
        ValidationError, match=r"proposals are tried for one round: set rounds = 1, or proposals = 0"
    ):
        GRPOSettings(proposals=4, rounds=2)
    with pytest.raises(ValidationError, match=r"^1 validation error for GRPOSettings\nproposals\n"):
        GRPOSettings(proposals=-1)
