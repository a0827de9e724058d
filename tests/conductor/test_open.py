"""How a Conductor that a user names is asked."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from podium.conductor import Checkpoint, Conductor, open_policy
from podium.conductor.open import open_conductor
from podium.planners.planner import PlanRequest
from podium.types import Question
from podium.workers.pool import Pool
from podium.workers.scripted import ScriptedWorker
from podium.workflow import PlanError
from tiny_models import CHAT

POOL = Pool([ScriptedWorker("a", []), ScriptedWorker("b", [])])
SITUATION = PlanRequest(Question(text="3 + 4?"), POOL.profiles)


async def test_a_small_conductor_too_has_a_second_try(make_checkpoint: Callable[..., Path]) -> None:
    folder = make_checkpoint(podium={"prompt": {"style": "brief"}})
    checkpoint = Checkpoint.read(folder)
    once = await Conductor(open_policy(checkpoint), checkpoint.prompt).plan(SITUATION)
    twice = await open_conductor(checkpoint, POOL).plan(SITUATION)
    assert isinstance(once.decision, PlanError)
    assert isinstance(twice.decision, PlanError)
    assert twice.spent.usage.input_tokens == 2 * once.spent.usage.input_tokens
    assert twice.text != once.text


@pytest.mark.parametrize(("temperature", "texts"), [(0.0, 1), (5.0, 2)])
async def test_conductor_uses_the_max_tokens_and_temperature_of_its_training(
    make_checkpoint: Callable[..., Path], temperature: float, texts: int
) -> None:
    podium = {"prompt": {"examples": 0}, "plan": {"max_plan_tokens": 7, "temperature": temperature}}
    folder = make_checkpoint(podium=podium, chat=CHAT, max_position_embeddings=8192, eos_token_id=[2])
    conductor = open_conductor(Checkpoint.read(folder), POOL)
    plans = [await conductor.plan(replace(SITUATION, seed=seed)) for seed in ("1", "2")]
    assert all(0 < plan.spent.usage.output_tokens <= 2 * 7 for plan in plans), "of two tries"
    assert len({plan.text for plan in plans}) == texts
