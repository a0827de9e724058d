"""The course: lessons as batches of tokens, endless and the same for one name.

Lessons are drawn several batches at a time and sorted by length, so that little of a batch is padding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

import torch
from tokenizers import Tokenizer
from torch import Tensor

from podium.train.warmstart.lessons import Lesson, draw_lesson
from podium.train.warmstart.vocabulary import BEGIN_ID, END_ID, PAD_ID

_SORTED_TOGETHER = 8
"""Batches whose lessons are sorted by length together."""


@dataclass(frozen=True, slots=True)
class LessonBatch:
    """Whole texts, padded on the right."""

    tokens_BT: Tensor
    learned_BT: Tensor
    """True where the token is to be predicted from what stands before it."""


def batches(
    tokenizer: Tokenizer,
    draw: Callable[[str, int], Lesson] = draw_lesson,
    *,
    name: str,
    size: int,
    count: int,
) -> Iterator[LessonBatch]:
    """`count` batches of `size` lessons of the course called `name`; `draw` makes each by name and number."""
    index = 0
    while count > 0:
        drawn = [encode(draw(name, index + i), tokenizer) for i in range(size * _SORTED_TOGETHER)]
        index += len(drawn)
        drawn.sort(key=lambda lesson: len(lesson[0]))
        order = list(range(_SORTED_TOGETHER))
        Random(f"course/{name}/{index}").shuffle(order)
        for place in order[:count]:
            yield _padded(drawn[place * size : (place + 1) * size])
        count -= len(order)


def encode(lesson: Lesson, tokenizer: Tokenizer) -> tuple[list[int], list[bool]]:
    """Tokens of a lesson between BEGIN and END, and which of them are learned; END is."""
    tokens = [BEGIN_ID, *tokenizer.encode(lesson.prompt, add_special_tokens=False).ids]
    learned = [False] * len(tokens)
    for text, learn in lesson.pieces:
        piece = tokenizer.encode(text, add_special_tokens=False).ids
        tokens += piece
        learned += [learn] * len(piece)
    return [*tokens, END_ID], [*learned, True]


def _padded(lessons: list[tuple[list[int], list[bool]]]) -> LessonBatch:
    longest = max(len(tokens) for tokens, _ in lessons)
    tokens_BT = torch.full((len(lessons), longest), PAD_ID)
    learned_BT = torch.zeros(len(lessons), longest, dtype=torch.bool)
    for row, (tokens, learned) in enumerate(lessons):
        tokens_BT[row, : len(tokens)] = torch.tensor(tokens)
        learned_BT[row, : len(learned)] = torch.tensor(learned)
    return LessonBatch(tokens_BT, learned_BT)
