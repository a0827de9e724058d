"""The batches of SFT examples.

Batches never run out, and the same name always gives the same ones. Examples are drawn for several batches at once and
sorted by length, so that a batch has little padding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

import torch
from tokenizers import Tokenizer
from torch import Tensor

from podium_lab.warmstart.examples import SFTExample
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
