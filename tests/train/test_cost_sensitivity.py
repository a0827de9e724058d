"""Levels of cost sensitivity: each question of a run has one, in its prompt and in its reward."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from podium.errors import UsageError
from podium.rollout import RewardSettings
from podium.scoring import RolloutRequest, Score
from podium.train.preflight import preflight
from podium.train.sft_run import run_sft
from podium.types import Message
from tiny_run import PLANS, SETTINGS, Unreliable, make_session, make_settings, run, write_start

WEIGHTS = (0.0, 5000.0)


async def test_policy_learns_fewer_steps_at_the_cost_sensitive_level(tmp_path: Path) -> None:
    """Two calls of a worker cost 0.6 of a right answer at the second level, and nothing at the first."""
    start = write_start(tmp_path / "start", levels=2, deviation=0.4)
    seen: dict[str, set[Sequence[Message]]] = {}
    scored: list[tuple[str, Score]] = []

    class Kept(Unreliable):
        async def prompt(self, request: RolloutRequest) -> tuple[Message, ...] | None:
            messages = await super().prompt(request)
            seen.setdefault(request.group, set()).add(messages or ())
            return messages

        async def score(self, request: RolloutRequest) -> Score:
            score = await self._session.score(request)
            scored.append((request.group, score))
            return score

    settings = SETTINGS.model_copy(update={"iterations": 4})
    await run(tmp_path / "run", start, settings, scoring=Kept, cost_weights=WEIGHTS, reward=RewardSettings())
    assert all(len(prompts) == 1 for prompts in seen.values()), "a group has one prompt"
    penalised = {
        seed: {bool(one.parts and one.parts.cost) for of, one in scored if of == seed and one.valid}
        for seed in seen
    }
    assert {True} in penalised.values()
    assert {False} in penalised.values()
    assert {True, False} not in penalised.values()


@pytest.mark.parametrize(
    ("levels", "cost_weights"), [(0, (0.0, 50.0)), (3, (0.0, 50.0)), (2, ()), (2, (1.0,))]
)
async def test_a_start_that_knows_other_levels_is_refused(
    tmp_path: Path, levels: int, cost_weights: tuple[float, ...]
) -> None:
    settings = make_settings(write_start(tmp_path / "start", levels=levels), cost_weights=cost_weights)
    async with preflight(settings, None) as found:
        (refusal,) = (str(one) for one in found.problems if "levels" in str(one))
    assert f"knows {levels} levels" in refusal
    assert f"has {len(cost_weights)};" in refusal


def test_the_supervised_stage_refuses_levels_without_weights(tmp_path: Path) -> None:
    settings = make_settings(write_start(tmp_path / "start", levels=3), stage="sft")
    with pytest.raises(UsageError, match="knows 3 levels"):
        run_sft(settings, tmp_path / "run")
    assert not (tmp_path / "run").exists()


async def test_the_prompt_of_a_run_is_that_of_its_start(tmp_path: Path) -> None:
    start = write_start(tmp_path / "start", levels=2)
    settings = make_settings(start, cost_weights=WEIGHTS)
    assert settings.prompt == start.prompt
    session = make_session(settings)
    score = await session.score(RolloutRequest(task="sums/0", group="s", plans=(PLANS[0],)))
    assert score.valid
