"""Publishing the policy of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants
from pydantic import BaseModel

from model_server import ModelServer
from podium.conductor.checkpoint import Checkpoint
from podium.errors import UsageError
from podium.train.publish import model_card, publish
from podium.train.settings import GRPOSettings, SFTSettings, TrainSettings
from podium.train.trained_policy import POLICY_ROWS
from tiny_policy import BRIEF, write_policy


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run's folder as it is left, with a tiny policy."""
    folder = tmp_path / "run"
    folder.mkdir()
    write_policy(folder / "policy", podium={**BRIEF, "conducts": {"simulated": True}})
    settings = TrainSettings.model_validate(
        {"engine": "trl", "start": "someone/some-model", "lora": {"r": 8}}
    )
    (folder / "config.json").write_text(settings.model_dump_json())
    rows = [
        {"iteration": n, "reward": n / 20, "valid": 1.0, "accuracy": 0.5, "cost_usd": 0.001}
        for n in range(20)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_the_card_says_what_the_run_was(run: Path, tmp_path: Path) -> None:
    publish(run, str(tmp_path / "published"))

    card = (tmp_path / "published" / "README.md").read_text()
    assert "base_model: someone/some-model" in card
    assert "tags: [podium, conductor, trl]\n" in card
    assert "LoRA adapters, merged" in card
    assert "| reward | 0.225 | 0.725 |" in card
    assert "Its workers were scripted or recorded." in card
    assert "podium serve --conductor" in card
    assert Checkpoint.read(tmp_path / "published").scope.simulated


def card_of(run: Path, settings: BaseModel) -> str:
    (run / "config.json").write_text(settings.model_dump_json())
    return model_card(run, "mine")


def test_the_card_of_a_run_of_the_small_engine_says_how_many_rounds_it_had(run: Path) -> None:
    settings = TrainSettings(
        start="-", engine="shared_prefix", rounds=2, grpo=GRPOSettings(iterations=130, group=16)
    )
    card = card_of(run, settings)
    assert "20 iterations of 4 questions with 16 rollouts each, 2 round(s)," in card
    assert "tags: [podium, conductor]\n" in card


def test_a_folder_that_holds_something_is_refused(run: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds something already; give a new folder"):
        publish(run, str(tmp_path))
    with pytest.raises(UsageError, match="give a new folder"):
        publish(run, str(run / "config.json"))


def test_the_card_of_a_policy_on_the_hub_fetches_it_first(run: Path) -> None:
    card = model_card(run, "me/mine", on_hub=True)

    assert "hf download me/mine --local-dir mine\n" in card
    assert "podium serve --conductor mine --pool" in card


def test_a_run_that_has_not_ended_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no trained policy yet"):
        publish(tmp_path, "hub:me/mine")


def test_a_private_policy_goes_into_no_public_repository(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    routes: dict[str, Any] = {
        "/api/models/me/mine": {"id": "me/mine", "private": False, "siblings": [], "tags": []}
    }
    with ModelServer(routes) as hub:
        routes["/api/repos/create"] = (409, {"url": f"{hub.url}/me/mine"})
        monkeypatch.setattr(constants, "ENDPOINT", hub.url)
        with pytest.raises(UsageError, match="public"):
            publish(run, "hub:me/mine", private=True)
    assert hub.asked[-1] == "/api/models/me/mine"
    assert not any("upload" in path or "commit" in path for path in hub.asked)


def test_the_card_names_files_without_their_folders(run: Path, tmp_path: Path) -> None:
    (tmp_path / "start").mkdir()
    places = {name: str(tmp_path / name) for name in ("start", "clients.jsonl", "team2.toml", "store.sqlite")}
    settings = TrainSettings(
        start=places["start"], engine="trl", tasks=places["clients.jsonl"], pool=places["team2.toml"]
    )
    supervised = settings.model_copy(
        update={"stage": "sft", "sft": SFTSettings(examples=places["store.sqlite"])}
    )
    cards = card_of(run, settings) + card_of(run, supervised)
    assert all(name in cards for name in places)
    assert str(tmp_path) not in cards


def test_a_run_that_went_on_past_its_policy_is_refused(run: Path, tmp_path: Path) -> None:
    (run / POLICY_ROWS).write_text("15\n")
    with pytest.raises(UsageError, match="20 rows"):
        publish(run, str(tmp_path / "published"))
    (run / POLICY_ROWS).write_text("20\n")
    publish(run, str(tmp_path / "published"))
