import asyncio
import json
from pathlib import Path

import pytest
import tinker
from tinker_cookbook.tokenizer_utils import get_tokenizer
from tinker_cookbook.utils import cost_estimation

from conftest import ACCEPT, OTHER, PLAN
from fake_tinker import FakeSamplingClient, FakeServiceClient, FakeTrainingClient
from podium.calls import CallState
from podium.scoring import ScoringSettings, open_session
from podium.scoring.service import serve_session
from podium.spending.shared_spend_limit import SharedSpendLimit
from podium_tinker.train import Options, main


def fake_service(model: str, monkeypatch: pytest.MonkeyPatch) -> FakeTrainingClient:
    """The fake in place of Tinker; its model writes two plans in turn, and accepts every answer."""
    written = 0

    def write(prompt: str) -> str:
        nonlocal written
        if "Plan of round 1" in prompt:
            return ACCEPT
        written += 1
        return (PLAN, OTHER, "No plan.")[written % 3]

    training = FakeTrainingClient(FakeSamplingClient(get_tokenizer(model), write))
    monkeypatch.setattr(tinker, "ServiceClient", FakeServiceClient(training).open)
    monkeypatch.setattr(cost_estimation, "load_model_pricing", lambda **_: None)
    return training


def options(model: str, url: str, folder: Path) -> Options:
    return Options(
        model_name=model,
        renderer_name="role_colon",
        url=url,
        log_path=str(folder / "log"),
        groups_per_batch=2,
        group_size=3,
        max_steps=2,
    )


async def test_the_cookbooks_loop_trains_over_a_scoring_service(
    model: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ground: dict[str, str]
) -> None:
    training = fake_service(model, monkeypatch)
    settings = ScoringSettings(task_limit=4, rounds=2, **ground)
    async with (
        open_session(settings, CallState()) as session,
        serve_session(session) as url,
    ):
        await main(options(model, url, tmp_path))

    rows = [json.loads(line) for line in (tmp_path / "log" / "metrics.jsonl").read_text().splitlines()]
    steps = [row for row in rows if "env/all/reward/total" in row]
    assert len(steps) == training.updates == 2
    assert {"env/all/correct", "env/all/valid", "env/all/rounds"} <= steps[0].keys()
    # Three rollouts of a group are three first rounds, and two accepted answers.
    assert sum(map(len, training.batches)) % 5 == 0


def test_a_spent_budget_ends_the_run(
    model: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ground: dict[str, str]
) -> None:
    training = fake_service(model, monkeypatch)

    async def train() -> None:
        call_state = CallState(spend_limits=[SharedSpendLimit(None, "run", 1e-6)])
        async with (
            open_session(ScoringSettings(task_limit=4, **ground), call_state) as session,
            serve_session(session) as url,
        ):
            await main(options(model, url, tmp_path))

    with pytest.raises(SystemExit, match="budget"):
        asyncio.run(train())
    assert training.updates == 0
