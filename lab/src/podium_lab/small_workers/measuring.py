"""What a worker of the orchestra knows: how often it answers rightly, by relation and by the form of the subtask."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import torch

from podium.conductor.checkpoint import Checkpoint
from podium.conductor.codec import PlainTextCodec
from podium.conductor.local_worker import view_prompt
from podium.conductor.open import open_policy
from podium.conductor.policy import Sampling
from podium.text.answer import final_answer, normalise
from podium.train.runtime import resolve_device
from podium.types import Message
from podium_lab.exercises.abilities import Ability
from podium_lab.small_workers.lessons import fact_subtasks, skill_lessons
from podium_lab.world import RELATIONS, world

_FACTS_PER_RELATION = 100
"""Facts of each relation that a worker is asked for; of each of its skills it gets twice as many lessons."""
_GPU_BATCH = 512
"""Prompts that a GPU reads in one batch."""


def measure_worker(folder: Path, ability: Ability) -> dict[str, Any]:
    """How often a worker answers rightly, by form of the subtask and by relation, for what it was taught; and
    how often it joins and mends rightly, where it was taught to.

    Returns:
        The worker's name; the device on which it answered, "cpu" or a torch device such as "cuda" (see `complete`);
        the shares of right answers, by form and relation.
    """
    prompts: list[str] = []
    cases: list[tuple[str, str, str]] = []
    facts = world()
    rng = Random(f"measure/{ability.name}")
    for relation in RELATIONS.values():
        known = [
            thing for thing in facts.things[relation.field] if ability.knows_about(relation.field, thing)
        ]
        for thing in rng.sample(known, min(_FACTS_PER_RELATION, len(known))):
            for form, view in fact_subtasks(relation, thing, facts, rng):
                prompts.append(view_prompt(view))
                cases.append((form, relation.name, facts.value(relation.name, thing)))
    for skill, lesson in skill_lessons(ability, rng, 2 * _FACTS_PER_RELATION):
        view, answer = lesson
        prompts.append(view_prompt(view))
        cases.append((skill, "all", final_answer(answer) or ""))
    answers = complete(folder, prompts)
    right: dict[str, dict[str, list[bool]]] = {}
    for (form, name, value), answer in zip(cases, answers, strict=True):
        is_right = normalise(final_answer(answer) or "") == normalise(value)
        right.setdefault(form, {}).setdefault(name, []).append(is_right)
    return {
        "worker": ability.name,
        "device": resolve_device().type,
        "right": {
            form: {name: round(sum(is_right) / len(is_right), 3) for name, is_right in by_name.items()}
            for form, by_name in right.items()
        },
    }


def complete(folder: Path, prompts: Sequence[str], max_tokens: int = 96) -> list[str]:
    """The answers of the model in `folder` to prompts, the most likely tokens, written in batches: by transformers on a
    GPU where there is one, else by the model that the worker has loaded."""
    checkpoint = Checkpoint.read(folder)
    device = resolve_device().type
    if device != "cpu":
        return generate(checkpoint, prompts, max_tokens, device)
    policy = open_policy(checkpoint)

    async def complete_all() -> list[str]:
        sampling = Sampling(max_tokens=max_tokens)
        messages = [(Message(role="user", content=prompt),) for prompt in prompts]
        return [
            done.text
            for done in await asyncio.gather(
                *(policy.complete(conversation, sampling) for conversation in messages)
            )
        ]

    return asyncio.run(complete_all())


def generate(checkpoint: Checkpoint, prompts: Sequence[str], max_tokens: int, device: str) -> list[str]:
    """Nearly the same answers by transformers, in large batches on a device of torch: in the precision of the saved
    model, and not in fp32."""
    from transformers import AutoModelForCausalLM  # noqa: PLC0415 - slow to import, and needed on a GPU alone

    codec, (end,) = PlainTextCodec.of(checkpoint), checkpoint.eos_token_ids
    model: Any = AutoModelForCausalLM.from_pretrained(checkpoint.path, dtype="auto")
    model.eval().to(device)
    encoded = [codec.encode((Message(role="user", content=prompt),)) for prompt in prompts]
    answers = [""] * len(prompts)
    by_length = sorted(range(len(prompts)), key=lambda number: len(encoded[number]))
    for first in range(0, len(by_length), _GPU_BATCH):
        batch = by_length[first : first + _GPU_BATCH]
        longest = len(encoded[batch[-1]])
        tokens = [[end] * (longest - len(encoded[n])) + encoded[n] for n in batch]
        seen = [[0] * (longest - len(encoded[n])) + [1] * len(encoded[n]) for n in batch]
        written = model.generate(
            torch.tensor(tokens, device=device),
            attention_mask=torch.tensor(seen, device=device),
            max_new_tokens=max_tokens,
            do_sample=False,
            pad_token_id=end,
        )
        for number, row in zip(batch, written[:, longest:].tolist(), strict=True):
            answers[number] = codec.decode(row[: row.index(end)] if end in row else row)
    return answers
