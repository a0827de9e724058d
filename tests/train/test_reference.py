"""The reference says how far a policy has gone, in nats."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from podium.train.objective import kl_to_reference
from podium.train.runtime import named_generator
from podium.train.settings import GRPOSettings
from podium.train.shared_prefix.batch import TrainingRow
from podium.train.shared_prefix.policy_model import PolicyModel
from podium.train.shared_prefix.update import ReferencePolicy, accumulate, adamw, update
from tiny_run import SHAPE, draw_groups, make_group

PROMPT = [1, 5, 9, 7, 4]
SUFFIXES = ((),) * 30 + ((8, 10),) * 30 + ((8,),) * 4
"""Of so many rows that some completions come twice."""


def make(name: str) -> PolicyModel:
    made = PolicyModel(SHAPE)
    made.initialise(named_generator(f"tests/reference/{name}"), deviation=0.3)
    return made


def log_ratios(rows: list[TrainingRow], reference: ReferencePolicy) -> list[float]:
    """How much likelier each completion is under the policy that drew it, in nats."""
    return [sum(row.old_logprobs) - sum(own) for row, own in zip(rows, reference.logprobs(rows), strict=True)]


def draw(model: PolicyModel, temperature: float = 1.0) -> list[TrainingRow]:
    (rows,) = draw_groups(
        model, [PROMPT], [SUFFIXES], max_tokens=3, seed="reference", temperature=temperature
    )
    return rows


def draw_many(model: PolicyModel) -> list[TrainingRow]:
    """One token each."""
    (rows,) = draw_groups(model, [PROMPT], [[()] * 4000], max_tokens=1, seed="many")
    return rows


@torch.no_grad()
def logprob(model: PolicyModel, row: TrainingRow, temperature: float) -> float:
    """By the whole sequence through the whole model."""
    logprobs = (model(torch.tensor([[*row.prompt, *row.tokens]]))[0] / temperature).log_softmax(-1)
    return float(sum(logprobs[len(row.prompt) - 1 + at, token] for at, token in enumerate(row.tokens)))


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_the_log_ratios_of_a_policy_to_itself_are_zero(temperature: float) -> None:
    model = make("policy")
    ratios = log_ratios(draw(model, temperature), ReferencePolicy(model, temperature))
    assert ratios == pytest.approx([0.0] * len(SUFFIXES), abs=1e-4)


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_log_ratio_is_policy_logprob_minus_reference_logprob(
    temperature: float,
) -> None:
    policy, start = make("policy"), make("start")
    rows = draw(policy, temperature)
    assert len({(row.prompt, row.tokens) for row in rows}) < len(rows), "no completion came twice"
    found = log_ratios(rows, ReferencePolicy(start, temperature))
    expected = [logprob(policy, row, temperature) - logprob(start, row, temperature) for row in rows]
    assert found == pytest.approx(expected, abs=1e-4)
    assert max(map(abs, found)) > 0.5


def test_the_reference_stays_where_training_began() -> None:
    model = make("policy")
    reference, rows = ReferencePolicy(model), draw(model)
    before = log_ratios(rows, reference)
    group = make_group(PROMPT, ((5, 6, 2), (9, 2)), (1.0, -1.0))
    assert update(model, adamw(model), [group], GRPOSettings(max_tokens=4), rate=0.1)[1] > 0
    assert log_ratios(rows, reference) == before
    assert max(map(abs, log_ratios(draw(model), reference))) > 0.1


def test_the_kl_term_is_zero_at_the_reference_and_its_mean_the_divergence() -> None:
    policy, start = make("policy"), make("start")
    rows = draw_many(policy)
    drawn = torch.tensor([row.old_logprobs for row in rows]).squeeze(1)
    terms = kl_to_reference(drawn, torch.tensor(ReferencePolicy(start).logprobs(rows)).squeeze(1))
    ours, theirs = (
        model(torch.tensor([PROMPT]))[0, -1].detach().log_softmax(-1) for model in (policy, start)
    )
    exact = float((ours.exp() * (ours - theirs)).sum())
    assert float(terms.min()) >= 0
    assert float(terms.mean()) == pytest.approx(exact, abs=4 * float(terms.std()) / 4000**0.5)
    assert kl_to_reference(drawn, drawn).tolist() == [0.0] * 4000


def test_equal_rewards_keep_the_weight_of_the_kl_term() -> None:
    """As a part of the reward it cancelled there: every weight gave the same advantages."""
    model, start = make("policy"), make("start")
    rows = draw(model)
    group = [
        replace(row, advantage=0.0, old_logprobs=(), reference_logprobs=own)
        for row, own in zip(rows, ReferencePolicy(start).logprobs(rows), strict=True)
    ]
    norms = []
    for beta in (0.001, 0.01, 0.1):
        model.zero_grad()
        assert accumulate(model, [group], GRPOSettings(max_tokens=3, beta=beta)) is not None
        norms.append(float(torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])))
    assert norms[0] > 1e-6
    assert norms == pytest.approx([norms[0], 10 * norms[0], 100 * norms[0]], rel=1e-4)
