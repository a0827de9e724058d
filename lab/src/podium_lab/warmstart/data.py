"""The sources of SFT examples, and the batches made of them.

A source is a laboratory with its teams. It draws the examples of a stage, defines the policy's
prompt, and runs the acceptance check at the end. A source never runs out of batches, and the same name always gives the
same ones. Examples are drawn for several batches at once and sorted by length, so that a batch has little padding.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Generic, Protocol

import torch
from tokenizers import Tokenizer
from torch import Tensor

from podium.conductor.checkpoint import TrainingScope
from podium.conductor.prompt import PromptSettings
from podium.train.shared_prefix.policy_model import PolicyModel
from podium_lab.warmstart.acceptance import AcceptanceReport, measure
from podium_lab.warmstart.examples import (
    ExampleTeam,
    Laboratory,
    P,
    SFTExample,
    Shares,
    TeamSource,
    draw_example,
)
from podium_lab.warmstart.tokenizer import BEGIN_ID, END_ID, PAD_ID

_BATCHES_SORTED_TOGETHER = 8
"""The examples of this many batches are sorted by length together."""


@dataclass(frozen=True, slots=True)
class ExampleBatch:
    """Whole texts as tokens, padded on the right."""

    tokens_BT: Tensor
    learned_BT: Tensor
    """True for the tokens whose prediction counts in the loss (the completion mask)."""


def batches(
    tokenizer: Tokenizer,
    draw: Callable[[str, int], SFTExample],
    *,
    name: str,
    size: int,
    count: int,
) -> Iterator[ExampleBatch]:
    """`count` batches of `size` examples each. `draw` makes an example from `name` and its number."""
    index = 0
    while count > 0:
        drawn = [encode(draw(name, index + i), tokenizer) for i in range(size * _BATCHES_SORTED_TOGETHER)]
        index += len(drawn)
        drawn.sort(key=lambda example: len(example[0]))
        order = list(range(_BATCHES_SORTED_TOGETHER))
        Random(f"course/{name}/{index}").shuffle(order)
        for number in order[:count]:
            yield _padded(drawn[number * size : (number + 1) * size])
        count -= len(order)


def encode(example: SFTExample, tokenizer: Tokenizer) -> tuple[list[int], list[bool]]:
    """The tokens of an example between BEGIN and END, and for each whether it counts in the loss; END does."""
    tokens = [BEGIN_ID, *tokenizer.encode(example.prompt, add_special_tokens=False).ids]
    learned = [False] * len(tokens)
    for text, learn in example.pieces:
        piece = tokenizer.encode(text, add_special_tokens=False).ids
        tokens += piece
        learned += [learn] * len(piece)
    return [*tokens, END_ID], [*learned, True]


def _padded(examples: list[tuple[list[int], list[bool]]]) -> ExampleBatch:
    longest = max(len(tokens) for tokens, _ in examples)
    tokens_BT = [tokens + [PAD_ID] * (longest - len(tokens)) for tokens, _ in examples]
    learned_BT = [learned + [False] * (longest - len(learned)) for _, learned in examples]
    # One tensor each, since a GPU, if it is torch's default device, gets each tensor by itself.
    return ExampleBatch(torch.tensor(tokens_BT), torch.tensor(learned_BT))


DrawExample = Callable[[str, int], SFTExample]
"""Makes an example from a name and a number; the same arguments always give the same example."""

Reports = Mapping[str, AcceptanceReport]
"""Reports of the acceptance check, by the pool or teams that were used."""


@dataclass(frozen=True, slots=True)
class CheckExtent:
    """What the acceptance check covers."""

    pool: bool
    """Whether examples had the fixed pool."""
    synthetic_teams: bool
    """Whether examples had synthetic teams."""
    saves: bool
    """Whether plans of the examples had fewer steps at a higher level of cost sensitivity."""
    cases: int
    """The number of cases in each test."""
    seed: int


class DataSource(Protocol):
    """A source of examples."""

    @property
    def prompt(self) -> PromptSettings: ...

    @property
    def scope(self) -> TrainingScope | None:
        """What the policy can conduct. None if its prompt style and its tokenizer decide that."""
        ...

    @property
    def words(self) -> Sequence[str]:
        """Texts that the tokenizer keeps as one token each."""
        ...

    @property
    def spelled(self) -> Collection[str]:
        """Words, in small letters, that the tokenizer spells in pieces (`Laboratory.spelled`)."""
        ...

    def draw(self, shares: Shares, synthetic_teams: float) -> DrawExample:
        """The function that draws a stage's examples. `synthetic_teams` is the share that has a synthetic team."""
        ...

    def run_check(self, model: PolicyModel, tokenizer: Tokenizer, extent: CheckExtent) -> Reports:
        """Run the acceptance check."""
        ...


class LaboratoryData(Generic[P]):
    """Examples about the questions of a laboratory, over one fixed pool and synthetic teams.

    Args:
        pool: the name of the fixed pool.
        known: the fixed pool as a team.
    """

    words = ()

    def __init__(self, laboratory: Laboratory[P], pool: str, known: ExampleTeam) -> None:
        self.prompt, self.scope = laboratory.prompt, laboratory.scope
        self.spelled = laboratory.spelled
        self._laboratory, self._pool, self.known = laboratory, pool, known

    def draw(self, shares: Shares, synthetic_teams: float) -> DrawExample:
        """Draws plans, lookups, teams and readings."""
        teams = TeamSource(self._laboratory.draw_team, self.known, synthetic_teams)
        return partial(draw_example, self._laboratory, teams=teams, shares=shares)

    def run_check(self, model: PolicyModel, tokenizer: Tokenizer, extent: CheckExtent) -> Reports:
        """Run the acceptance check over the fixed pool and over synthetic teams, if the examples had them."""
        teams: dict[str, ExampleTeam | None] = {}
        if extent.pool:
            teams[self._pool] = self.known
        if extent.synthetic_teams:
            teams["made-up teams"] = None
        return measure(
            model,
            tokenizer,
            self._laboratory,
            teams,
            cases=extent.cases,
            seed=extent.seed,
            saves=extent.saves,
        )
