"""Writes the completions of a round with the engine shared_prefix, which reads the prompt of a group once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from podium.conductor.loaded_model import Guide
from podium.train.rollouts import OnEnd, RolloutSample
from podium.train.shared_prefix.policy_model import PolicyModel
from podium.train.shared_prefix.sampler import sample


@dataclass(frozen=True, eq=False)
class GroupSampler:
    """A `Sampler` for one batch."""

    model: PolicyModel
    eos_token_ids: Collection[int]
    """The tokens that end a completion."""
    max_tokens: int
    temperature: float
    seed: str
    """The name of the random generator."""
    guide: Guide | None
    """Names the tokens that must not be drawn. If it is None, every token may be drawn."""

    def draw(
        self,
        samples: Sequence[RolloutSample],
        on_end: OnEnd,
        *,
        round_number: int,
        max_samples: int,
        greedy: bool,
    ) -> None:
        """Draw all completions of the round, question by question, and call `on_end` when a completion ends."""
        groups = grouped_samples(samples)
        if not groups:
            return
        prompts = [common_prefix([completion.prompt for completion in group]) for group in groups]
        sample(
            self.model,
            prompts,
            prompt_suffixes=[
                [completion.prompt[len(prompt) :] for completion in group]
                for prompt, group in zip(prompts, groups, strict=True)
            ],
            max_tokens=self.max_tokens,
            eos_token_ids=self.eos_token_ids,
            seed=f"{self.seed}/{round_number}" if round_number else self.seed,
            temperature=self.temperature,
            greedy=greedy,
            guide=self.guide,
            on_end=lambda question, row, tokens, logprobs: on_end(groups[question][row], tokens, logprobs),
        )


def grouped_samples(samples: Sequence[RolloutSample]) -> list[list[RolloutSample]]:
    """The samples that have a prompt, in order, grouped by question and round."""
    groups: dict[object, list[RolloutSample]] = {}
    for completion in samples:
        if completion.prompt:
            groups.setdefault(completion.group, []).append(completion)
    return list(groups.values())


def common_prefix(prompts: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The tokens with which all prompts begin."""
    # All prompts lie between the first and the last in sorted order, so they begin with what these two share.
    first, last = min(prompts), max(prompts)
    shared = (i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b)
    return first[: next(shared, len(first))]
