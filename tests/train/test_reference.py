"""The reference says how far a policy has gone, in nats."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev

import pytest
import torch
from tiny_run import SHAPE

from podium.train.objective import kl_to_reference
from podium.train.runtime import generator
from podium.train.settings import GRPOSettings
from podium.train.shared_prefix.batch import Group
from podium.train.shared_prefix.policy_model import PolicyModel
from podium.train.shared_prefix.sampler import Samples, sample
from podium.train.shared_prefix.update import ReferencePolicy, accumulate, adamw, update

PROMPT = [1, 5, 9, 7, 4]
SUFFIXES = ((),) * 30 + ((8, 10),) * 30 + ((8,),) * 4
"""Of so many rows that some completions come twice."""


def make(name: str) -> PolicyModel:
    made = PolicyModel(SHAPE)
    made.initialise(generator(f"tests/reference/{name}"), deviation=0.3)
    return made


def log_ratios(samples: Samples, reference: Sequence[Sequence[float]]) -> list[float]:
    """How much likelier each completion is under the policy that drew it, in nats."""
    return [sum(drawn) - sum(row) for drawn, row in zip(samples.logprobs, reference, strict=True)]


def draw(
    model: PolicyModel, suffixes: tuple[tuple[int, ...], ...] = SUFFIXES, temperature: float = 1.0
) -> Samples:
    (drawn,) = sample(
        model,
        [PROMPT],
        prompt_suffixes=[suffixes],
        max_tokens=3,
        eos_token_ids=(2,),
        seed="reference",
        temperature=temperature,
    )
    return drawn


@torch.no_grad()
def logprob(model: PolicyModel, before: list[int], completion: tuple[int, ...], temperature: float) -> float:
    """By the whole sequence through the whole model."""
    logprobs = (model(torch.tensor([[*before, *completion]]))[0] / temperature).log_softmax(-1)
    return float(sum(logprobs[len(before) - 1 + at, token] for at, token in enumerate(completion)))


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_the_log_ratios_of_a_policy_to_itself_are_zero(temperature: float) -> None:
    model = make("policy")
    samples = draw(model, temperature=temperature)
    reference = ReferencePolicy(model, temperature).logprobs(PROMPT, SUFFIXES, samples.tokens)
    assert log_ratios(samples, reference) == pytest.approx([0.0] * len(SUFFIXES), abs=1e-4)


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_log_ratio_is_policy_logprob_minus_reference_logprob(
    temperature: float,
) -> None:
    policy, start = make("policy"), make("start")
    samples = draw(policy, temperature=temperature)
    assert len(set(zip(SUFFIXES, samples.tokens, strict=True))) < len(SUFFIXES), "no completion came twice"
    reference = ReferencePolicy(start, temperature).logprobs(PROMPT, SUFFIXES, samples.tokens)
    found = log_ratios(samples, reference)
    expected = [
        logprob(policy, [*PROMPT, *before], completion, temperature)
        - logprob(start, [*PROMPT, *before], completion, temperature)
        for before, completion in zip(SUFFIXES, samples.tokens, strict=True)
    ]
    assert found == pytest.approx(expected, abs=1e-4)
    assert max(map(abs, found)) > 0.5


def test_the_mean_log_ratio_of_own_completions_is_the_kl_divergence() -> None:
    policy, start = make("policy"), make("start")
    (samples,) = sample(
        policy, [PROMPT], prompt_suffixes=[[()] * 4000], max_tokens=1, eos_token_ids=(2,), seed="many"
    )
    found = log_ratios(samples, ReferencePolicy(start).logprobs(PROMPT, ((),) * 4000, samples.tokens))
    ours, theirs = (
        model(torch.tensor([PROMPT]))[0, -1].detach().log_softmax(-1) for model in (policy, start)
    )
    exact = float((ours.exp() * (ours - theirs)).sum())
    assert exact > 0.5
    assert fmean(found) == pytest.approx(exact, abs=4 * stdev(found) / 4000**0.5)


def test_the_reference_stays_where_training_began() -> None:
    model = make("policy")
    reference, samples = ReferencePolicy(model), draw(model)
    before = log_ratios(samples, reference.logprobs(PROMPT, SUFFIXES, samples.tokens))
    group = Group(tuple(PROMPT), ((5, 6, 2), (9, 2)), (1.0, -1.0))
    assert update(model, adamw(model), [group], GRPOSettings(max_tokens=4), rate=0.1)[1] > 0
    assert log_ratios(samples, reference.logprobs(PROMPT, SUFFIXES, samples.tokens)) == before
    moved = draw(model)
    assert max(map(abs, log_ratios(moved, reference.logprobs(PROMPT, SUFFIXES, moved.tokens)))) > 0.1


def test_the_kl_term_is_zero_at_the_reference_and_its_mean_the_divergence() -> None:
    policy, start = make("policy"), make("start")
    (samples,) = sample(
        policy, [PROMPT], prompt_suffixes=[[()] * 4000], max_tokens=1, eos_token_ids=(2,), seed="many"
    )
    reference = ReferencePolicy(start).logprobs(PROMPT, ((),) * 4000, samples.tokens)
    drawn = torch.tensor([value for (value,) in samples.logprobs])
    terms = kl_to_reference(drawn, torch.tensor([value for (value,) in reference]))
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
    samples = draw(model)
    group = Group(
        tuple(PROMPT),
        samples.tokens,
        (0.0,) * len(SUFFIXES),
        prompt_suffixes=SUFFIXES,
        reference_logprobs=ReferencePolicy(start).logprobs(PROMPT, SUFFIXES, samples.tokens),
    )
    norms = []
    for beta in (0.001, 0.01, 0.1):
        model.zero_grad()
        assert accumulate(model, [group], GRPOSettings(max_tokens=3, beta=beta)) is not None
        norms.append(float(torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])))
    assert norms[0] > 1e-6
    assert norms == pytest.approx([norms[0], 10 * norms[0], 100 * norms[0]], rel=1e-4)
