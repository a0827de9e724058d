"""What sets with options do that other sets do not; what they share with all is in `test_hub_sets`."""

from __future__ import annotations

from pathlib import Path

import pytest

from choice_cases import CANARY, CASES, GPQA_COLUMNS, gpqa_row
from hub_files import opened
from podium.config import build
from podium.errors import ConfigError


def test_mmlu_with_chosen_subjects_has_no_train_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = opened(CASES["mmlu"](), tmp_path, monkeypatch)
    assert spec.splits == ("train", "validation", "test")
    anatomy = build({"subjects": ["anatomy"]}, type(spec))
    assert anatomy.splits == ("validation", "test")
    assert {task.facts["family"] for task in anatomy.read_splits(("test",))["test"].tasks} == {"anatomy"}
    with pytest.raises(ConfigError, match="did you mean 'anatomy'"):
        build({"subjects": ["anatomi"]}, type(spec))


def test_mmlu_pro_leaves_out_empty_options_and_moves_the_letter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = opened(CASES["mmlu-pro"](), tmp_path, monkeypatch)
    tasks = {task.id: task for task in spec.read_splits(("test",))["test"].tasks}
    assert {name: task.gold for name, task in tasks.items()} == {
        "mmlu-pro/70": "I",
        "mmlu-pro/71": "B",
        "mmlu-pro/72": "B",
    }
    assert "N/A" not in tasks["mmlu-pro/71"].question.text
    assert "A. 1 m/s\nB. 3 m/s\nC. 4 m/s\n\n" in tasks["mmlu-pro/72"].question.text
    law = build({"categories": ["law"]}, type(spec))
    assert [task.id for task in law.read_splits(("test",))["test"].tasks] == ["mmlu-pro/71"]


def test_mmlu_pro_divides_its_test_questions_to_train_on_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES["mmlu-pro"]()
    whole = opened(case, tmp_path, monkeypatch)
    divided = build({"divided": True}, type(whole))
    parts = divided.read_splits(("train", "validation", "test"))
    ids = [task.id for part in parts.values() for task in part.tasks]
    assert sorted(ids) == sorted(task.id for task in whole.read_splits(("test",))["test"].tasks)
    assert divided.read_splits(("train",))["train"].tasks == parts["train"].tasks


def test_gpqa_orders_options_by_its_seed_and_the_question_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = opened(CASES["gpqa"](), tmp_path, monkeypatch)
    letters = [task.gold for task in spec.read_splits(("test",))["test"].tasks]
    assert set(letters) == set("ABCD")
    other = spec.model_copy(update={"seed": 1})
    assert letters != [task.gold for task in other.read_splits(("test",))["test"].tasks]
    main = build({"subset": "main"}, type(spec))
    assert [task.gold for task in main.read_splits(("test",))["test"].tasks][:12] == letters
    assert len(main.read_splits(("test",))["test"].tasks) == 13
    assert main.label == "gpqa-main"


def test_gpqas_canary_is_in_no_task_and_no_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = opened(CASES["gpqa"](), tmp_path, monkeypatch)
    reading = spec.read_splits(("test",))["test"]
    assert CANARY not in repr(reading)
    assert "Canary String" in GPQA_COLUMNS
    assert gpqa_row("any")["Canary String"] == CANARY
    with pytest.raises(ConfigError) as refused:
        spec.model_copy(update={"on_bad_row": "refuse"}).read_splits(("test",))["test"]
    assert CANARY not in str(refused.value)
