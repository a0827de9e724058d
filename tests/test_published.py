"""Every published policy can be opened, and plans for the pool that its card names."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.conductor import Checkpoint, Conductor, open_policy
from podium.config import load
from podium.planner import Situation
from podium.types import Profile, Question
from podium.workers.spec import PoolSpec
from podium.workflow import Workflow

ROOT = Path(__file__).parent.parent
PUBLISHED = sorted(ROOT.glob("checkpoints/*"))
POOLS = {"reasoning-gym": ("reasoning-gym-easy", "reasoning-gym-hard")}


@pytest.mark.parametrize("folder", PUBLISHED, ids=lambda path: path.name)
async def test_it_plans_at_every_level_of_thrift(folder: Path) -> None:
    checkpoint = Checkpoint.read(folder / "policy")
    policy = open_policy(checkpoint)
    question = Question(text="What is the least common multiple of 12 and 18?")
    for name in POOLS[folder.name]:
        workers = load(ROOT / "configs" / "pools" / f"{name}.toml", PoolSpec).worker
        profiles = tuple(Profile(name=worker.name) for worker in workers)
        for thrift in range(checkpoint.prompt.levels):
            prompt = checkpoint.prompt.model_copy(update={"thrift": thrift})
            plan = await Conductor(policy, prompt).plan(Situation(question, profiles, max_steps=6))
            assert isinstance(plan.decision, Workflow), plan.text
            assert plan.text.startswith("#")


@pytest.mark.parametrize("folder", PUBLISHED, ids=lambda path: path.name)
def test_its_card_says_how_it_was_made_and_what_it_is_not_good_for(folder: Path) -> None:
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "## How it was made" in card
    assert "## What it is not good for" in card
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    assert size < 20e6
