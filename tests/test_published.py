"""Every published policy can be opened, and plans for the pools that its card names, and for parts of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.conductor import Checkpoint, Conductor, open_policy
from podium.config import load
from podium.planner import PlanRequest
from podium.types import Profile, Question
from podium.workers.ratings import Ratings
from podium.workers.spec import PoolSpec
from podium.workers.vote import DESCRIPTION
from podium.workflow import Workflow

ROOT = Path(__file__).parent.parent
PUBLISHED = sorted(ROOT.glob("checkpoints/*"))
POOLS = {
    "recorded": (
        *("reasoning-gym-easy", "reasoning-gym-hard", "reasoning-gym-easy-six", "reasoning-gym-hard-six"),
        *("mmlu-pro", "math-l5"),
        *(f"reasoning-gym-{level}-calculator" for level in ("easy", "hard", "easy-six", "hard-six")),
    )
}


def profiles(pool: str, question: Question) -> tuple[Profile, ...]:
    """What planners are told; the recordings themselves are not needed for that."""
    path = ROOT / "configs" / "pools" / f"{pool}.toml"
    spec = load(path, PoolSpec)
    assert spec.ratings is not None
    ratings = Ratings.open(path.parent / spec.ratings)
    return tuple(
        ratings.rated(worker.to_profile(DESCRIPTION if worker.kind == "vote" else ""), question.text)
        for worker in spec.worker
    )


@pytest.mark.parametrize("folder", PUBLISHED, ids=lambda path: path.name)
async def test_it_plans_at_every_level_of_thrift(folder: Path) -> None:
    checkpoint = Checkpoint.read(folder / "policy")
    policy = open_policy(checkpoint)
    question = Question(text="What is the least common multiple of 12 and 18?")
    for name in POOLS[folder.name]:
        request = PlanRequest(question, profiles(name, question), max_steps=6)
        for cost_sensitivity in range(checkpoint.prompt.levels):
            prompt = checkpoint.prompt.model_copy(update={"cost_sensitivity": cost_sensitivity})
            plan = await Conductor(policy, prompt).plan(request)
            assert isinstance(plan.decision, Workflow), plan.text
            assert plan.text.startswith("#") == any(p.rating.kind for p in request.pool if p.rating), (
                plan.text
            )


@pytest.mark.parametrize("folder", PUBLISHED, ids=lambda path: path.name)
async def test_the_worker_with_the_ratings_is_called_whatever_its_name(folder: Path) -> None:
    checkpoint = Checkpoint.read(folder / "policy")
    conductor = Conductor(open_policy(checkpoint), checkpoint.prompt)
    question = Question(text="What is the least common multiple of 12 and 18?")
    known = profiles("reasoning-gym-hard", question)[:8]
    strangers = tuple(
        profile if profile.rating is None else profile.model_copy(update={"name": f"gpt-{place}.{place}"})
        for place, profile in enumerate(known)
    )
    plans = [await conductor.plan(PlanRequest(question, pool, max_steps=6)) for pool in (known, strangers)]
    assert plans[0].text == plans[1].text
    # The other way round, those who are best at such questions are still asked first.
    turned = (known[0], *known[:0:-1])
    plan = await conductor.plan(PlanRequest(question, turned, max_steps=6))
    assert isinstance(plan.decision, Workflow), plan.text
    rated = sorted((p for p in turned if p.rating), key=lambda p: p.rating.accuracy if p.rating else 0.0)
    assert turned[plan.decision.steps[0].worker] in rated[-2:], plan.text


@pytest.mark.parametrize(
    "pool", [f"{name}-calculator" for name in ("reasoning-gym-hard", "reasoning-gym-hard-six")]
)
@pytest.mark.parametrize("folder", PUBLISHED, ids=lambda path: path.name)
async def test_a_calculator_that_training_did_not_have_is_called_only_for_what_it_is_best_at(
    folder: Path, pool: str
) -> None:
    checkpoint = Checkpoint.read(folder / "policy")
    conductor = Conductor(open_policy(checkpoint), checkpoint.prompt)

    async def asked(text: str) -> set[str]:
        question = Question(text=text)
        team = profiles(pool, question)
        plan = await conductor.plan(PlanRequest(question, team, max_steps=6))
        assert isinstance(plan.decision, Workflow), plan.text
        return {team[step.worker].name for step in plan.decision.steps}

    sums = "Solve the following multiplication: 53316 * 215 * 439. Give only the result as your final answer."
    assert "calculator" in await asked(sums)
    assert "calculator" not in await asked("What is the least common multiple of 12 and 18?")


@pytest.mark.parametrize("folder", PUBLISHED, ids=lambda path: path.name)
def test_its_card_says_how_it_was_made_and_what_it_is_not_good_for(folder: Path) -> None:
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "## How it was made" in card
    assert "## What it is not good for" in card
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    assert size < 20e6
