"""Levels of cost sensitivity: each question of a run has one, in its prompt and in its reward."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, stdev

import pytest
from tiny_run import SETTINGS, Adder, run, write_start

from podium.conductor.codec import Codec
from podium.conductor.prompt import build_prompt
from podium.errors import ConfigError
from podium.planner import Planner, PlanRequest
from podium.rollout import Rollout, Scorer
from podium.rollout.run_folder import RunFolder
from podium.tasks.task import Task
from podium.train.checkpoints import read_model
from podium.train.grpo import ReferencePolicy
from podium.types import Price, Profile
from podium.workers.pool import Pool


@dataclass(frozen=True)
class Dear(Adder):
    """Is right more often than others, at a price that shows."""

    @property
    def profile(self) -> Profile:
        return Profile(name=self.name, description="adds", price=Price(input=160, output=160))


TEAM = Pool([Adder("poor", 0.1), Dear("good", 1.0), Adder("fair", 0.6)])
WEIGHTS = (0.0, 50.0)
"""At the second level a call of the dear worker, 55 tokens at $160 a million, costs 0.44 of the reward."""
LEVELS = SETTINGS.model_copy(update={"cost_weights": WEIGHTS})


@dataclass(frozen=True)
class Scored:
    """One rollout of a run, and the level of its question."""

    task: str
    level: int
    rollout: Rollout


@dataclass
class RecordingScore:
    """The shipped scorer over a team in which one is dear; it keeps the rollouts."""

    scored: list[Scored] = field(default_factory=list)

    async def __call__(
        self, planner: Planner, task: Task, pool: Pool, *, seed: str, cost_sensitivity: int = 0
    ) -> Rollout | None:
        rollout = await Scorer(cost_weights=WEIGHTS).roll(
            planner, task, TEAM, seed=seed, cost_sensitivity=cost_sensitivity
        )
        assert rollout is not None
        self.scored.append(Scored(task.id, cost_sensitivity, rollout))
        return rollout


async def test_what_a_policy_writes_is_likelier_where_its_prompt_names_the_level_than_at_another(
    tmp_path: Path,
) -> None:
    """Of each rollout the one token that it may write, under prompts of both levels; nothing is learned."""
    start = write_start(tmp_path / "start", levels=2, deviation=0.4)
    score = RecordingScore()
    settings = LEVELS.model_copy(update={"iterations": 8, "max_tokens": 1, "lr": 1e-12})
    await run(tmp_path / "run", start, settings, score=score)
    codec, reference = Codec.of(start), ReferencePolicy(read_model(start))
    ratios: dict[int, list[float]] = {0: [], 1: []}
    for one in score.scored:
        written = codec.encode_completion(one.rollout.plan_text)
        request = PlanRequest(one.rollout.trace.question, TEAM.profiles)
        prompts = [
            codec.encode(build_prompt(request, start.prompt.model_copy(update={"cost_sensitivity": level})))
            for level in (one.level, 1 - one.level)
        ]
        if written:  # An end alone is no text.
            named, other = (reference.logprobs(prompt, [()], [tuple(written)])[0] for prompt in prompts)
            ratios[one.level].append(sum(named) - sum(other))
    for level, found in ratios.items():
        assert len(found) > 50
        assert fmean(found) > 3 * stdev(found) / len(found) ** 0.5, f"not at level {level}"


async def test_a_rollout_loses_for_each_dollar_the_weight_of_its_level(tmp_path: Path) -> None:
    score, settings = RecordingScore(), LEVELS.model_copy(update={"iterations": 4})
    await run(tmp_path / "run", write_start(tmp_path / "start", levels=2), settings, score=score)
    for level, weight in enumerate(WEIGHTS):
        rollouts = [one.rollout for one in score.scored if one.level == level and one.rollout.valid]
        assert max(rollout.trace.cost_usd for rollout in rollouts) > 0.0088
        for rollout in rollouts:
            assert rollout.reward.cost == pytest.approx(weight * rollout.trace.cost_usd)
    totals = [one.rollout.reward.total for one in score.scored]
    rewards = [row["reward"] for row in RunFolder(tmp_path / "run").rows().read()]
    size = settings.questions * settings.group
    assert rewards == pytest.approx([fmean(totals[at : at + size]) for at in range(0, len(totals), size)])


async def test_all_rollouts_of_a_question_are_at_one_level_and_questions_are_at_either(
    tmp_path: Path,
) -> None:
    score, settings = RecordingScore(), LEVELS.model_copy(update={"iterations": 8})
    await run(tmp_path / "run", write_start(tmp_path / "start", levels=2), settings, score=score)
    levels: dict[str, set[int]] = {}
    for one in score.scored:
        levels.setdefault(one.task, set()).add(one.level)
    assert len(levels) == 8 * settings.questions
    assert all(len(level) == 1 for level in levels.values())
    sensitive = sum(level == {1} for level in levels.values())
    assert 8 < sensitive < 24


@pytest.mark.parametrize(
    ("levels", "cost_weights"), [(0, (0.0, 50.0)), (3, (0.0, 50.0)), (2, ()), (2, (1.0,))]
)
async def test_a_start_that_knows_other_levels_is_refused_in_one_sentence(
    tmp_path: Path, levels: int, cost_weights: tuple[float, ...]
) -> None:
    start = write_start(tmp_path / "start", levels=levels)
    with pytest.raises(ConfigError) as refused:
        await run(tmp_path / "run", start, SETTINGS.model_copy(update={"cost_weights": cost_weights}))
    assert str(refused.value) == (
        f"{start.path} has {levels} levels of cost sensitivity, and grpo.cost_weights has {len(cost_weights)}: "
        "give one weight for each level."
    )
    assert not (tmp_path / "run" / "metrics.jsonl").exists()
