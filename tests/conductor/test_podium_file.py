"""Where the podium.json of a served Conductor is found, and what is said where it is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from huggingface_hub import constants

from podium.conductor.checkpoint import PodiumFile, find_podium_file
from podium.errors import CheckpointError, ConfigError

FILE = {"prompt": {"pool": "anonymous"}, "plan": {"max_plan_tokens": 7}}


@pytest.fixture(autouse=True)
def _own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


def test_a_folder_a_file_and_a_shipped_name_are_read() -> None:
    Path("mine").mkdir()
    Path("mine/podium.json").write_text(json.dumps(FILE))
    assert find_podium_file("mine") == find_podium_file("mine/podium.json") == PodiumFile.model_validate(FILE)
    assert find_podium_file("world-conductor").prompt.levels == 4


def test_a_model_on_the_hub_is_taken_from_its_cache() -> None:
    snapshot = Path("hub/models--ann--conductor/snapshots/abc")
    snapshot.mkdir(parents=True)
    (snapshot / "podium.json").write_text(json.dumps(FILE))
    refs = Path("hub/models--ann--conductor/refs")
    refs.mkdir()
    (refs / "main").write_text("abc")
    assert find_podium_file("ann/conductor") == PodiumFile.model_validate(FILE)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("empty", "empty has no podium.json; give the folder that training wrote, or leave it out."),
        (
            "gone",
            "gone does not exist; give a checkpoint's folder, its podium.json, or OWNER/NAME on the hub.",
        ),
        ("./ann/conductor", "./ann/conductor does not exist; "),
        ("ann/podium.json", "ann/podium.json does not exist; "),
        ("ann/conductor", "ann/conductor is no folder here, and cannot be fetched from the hub: "),
    ],
)
def test_missing_podium_file_is_refused_with_advice(source: str, message: str) -> None:
    Path("empty").mkdir()
    with pytest.raises(CheckpointError) as error:
        find_podium_file(source)
    assert str(error.value).startswith(message)


def test_a_key_that_is_not_known_is_refused() -> None:
    Path("podium.json").write_text('{"plan": {"max_tokens": 7}}')
    with pytest.raises(ConfigError, match=r"podium\.json: unknown key 'plan\.max_tokens'"):
        find_podium_file("podium.json")
