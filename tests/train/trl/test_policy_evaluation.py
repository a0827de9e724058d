"""The policy is evaluated while TRL trains it: what the figures are, and that training does not notice."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from podium.conductor import Checkpoint, Conductor, open_policy
from podium.conductor.policy import Sampling
from podium.errors import BudgetExceededError, ConfigError
from podium.evals import evaluate
from podium.scoring import ScoringSession
from podium.store import TraceStore
from podium.tasks import open_tasks
from podium.team import Runner
from podium.team.team_file import open_pool

Settings = dict[str, Any]
EACH: Settings = {"eval_every": 1, "eval_questions": 11}


def rows(run: Path) -> list[dict[str, Any]]:
    lines = (run / "metrics.jsonl").read_text().splitlines()
    return [{key: value for key, value in json.loads(line).items() if key != "seconds"} for line in lines]


def test_an_evaluation_has_the_saved_policys_figures_and_changes_nothing(
    plain_run: Path, evaluated_run: Path, ground: dict[str, str]
) -> None:
    found = rows(evaluated_run)
    assert [row["evaluation"]["questions"] for row in found] == [11, 11]
    assert [{k: v for k, v in row.items() if k != "evaluation"} for row in found] == rows(plain_run)
    questions = list(open_tasks(ground["tasks"], "validation", size=11))
    checkpoint = Checkpoint.read(evaluated_run / "policy")
    again = asyncio.run(
        evaluate(
            Runner(
                Conductor(open_policy(checkpoint), checkpoint.prompt, sampling=Sampling(max_tokens=64)),
                open_pool(ground["pool"]),
            ),
            questions,
        )
    )
    last = found[-1]["evaluation"]
    assert last["valid"] == pytest.approx(again.validity)
    assert last["steps"] * last["valid"] == pytest.approx(again.steps)  # Ours leaves out unreadable plans.
    assert last["cost_usd"] > 0
    with TraceStore(evaluated_run / "traces.sqlite", create=False) as store:
        asked = [trace.metadata["task"] for trace in store.iterate()]
    assert {f"validation/{task.id}" for task in questions} <= set(asked)


def test_resumed_run_makes_up_for_an_unpaid_evaluation(
    train: Any, settings: Settings, evaluated_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings |= {"grpo": settings["grpo"] | EACH}
    score = ScoringSession.score

    async def poor(self: ScoringSession, request: Any) -> Any:
        if request.group == "evaluation/42/7":
            raise BudgetExceededError("The budget is spent.")
        return await score(self, request)

    with monkeypatch.context() as patched:
        patched.setattr(ScoringSession, "score", poor)
        with pytest.raises(BudgetExceededError):
            train(settings, "halves")
    assert rows(tmp_path / "halves") == []

    train(settings, "halves")

    assert rows(tmp_path / "halves") == rows(evaluated_run)


def test_evaluation_without_validation_questions_is_refused(
    train: Any, settings: Settings, tmp_path: Path
) -> None:
    (tmp_path / "mine.jsonl").write_text('{"question": "What is 6 times 7?", "answer": "42"}\n')
    (tmp_path / "own.toml").write_text('[[part]]\nset = "own"\nfiles = { train = "mine.jsonl" }\n')

    with pytest.raises(ConfigError, match="validation"):
        train(settings | {"tasks": str(tmp_path / "own.toml"), "grpo": settings["grpo"] | EACH})


def test_a_run_ended_by_its_minutes_is_not_trained_again(
    train: Any, settings: Settings, tmp_path: Path
) -> None:
    settings |= {"grpo": settings["grpo"] | {"iterations": 5, "minutes": 0.001, "save_every": 20}}
    train(settings, "short")
    first = rows(tmp_path / "short")
    assert len(first) == 1
    assert [path.name for path in (tmp_path / "short").rglob("checkpoint-*")] == ["checkpoint-1"]
    weights = (tmp_path / "short" / "policy" / "model.safetensors").read_bytes()
    train(settings, "short")
    assert rows(tmp_path / "short") == first
    assert (tmp_path / "short" / "policy" / "model.safetensors").read_bytes() == weights
