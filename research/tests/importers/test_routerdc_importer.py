"""RouterDC's data sets: scores alone, which serve the choice of one model, and the script that keeps nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from podium_research.importers.routerdc import import_routerdc
from recordings.importer_sources import imported, write_json

SCRIPT = Path(__file__).parents[2] / "runs" / "routerdc.py"
FOLDER = "datasets/split2_model7"


def rows(name: str, count: int, **scores: float) -> list[dict[str, object]]:
    return [{"question": f"A question of {name}, {n}?", "scores": scores} for n in range(count)]


def write_checkout(folder: Path) -> Path:
    for name, scores in {
        "mmlu_train": {"acme/a": 0.9, "b": 0.0},
        "mmlu_test": {"acme/a": 0.6, "b": 0.0},
        "gsm8k-train": {"acme/a": 0.2, "b": 0.7},
        "gsm8k-test": {"acme/a": 0.1, "b": 0.8},
        "mbpp": {"acme/a": 0.5, "b": 0.4},
    }.items():
        write_json(folder / FOLDER / f"{name}.json", rows(name, 10, **scores))
    return folder


def test_routerdc_import_rounds_probabilities_and_keeps_success_shares(tmp_path: Path) -> None:
    recording, import_report, told = imported(import_routerdc, write_checkout(tmp_path / "dc"))
    assert told == ["gsm8k-test", "gsm8k-train", "mbpp", "mmlu_test", "mmlu_train"]
    assert recording.header.splits == {"train": 20, "test": 30}
    assert {question.family for question in recording.questions} == {"gsm8k", "mmlu", "mbpp"}
    mmlu = recording.responses("A question of mmlu_test, 3?")
    assert [mmlu[name][0].score for name in ("acme/a", "b")] == [1.0, 0.0]
    gsm = recording.responses("A question of gsm8k-test, 3?")
    assert round(gsm["b"][0].score or 0.0, 3) == 0.8
    assert len({samples[0].text for samples in gsm.values()}) == 2
    assert import_report.licence.startswith("none")


def test_the_script_measures_test_questions_only_when_declared(tmp_path: Path) -> None:
    checkout = write_checkout(tmp_path / "dc")

    def run(*options: str) -> dict[str, list[str]]:
        command = [sys.executable, str(SCRIPT), str(checkout), *options]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
        lines = (line.strip("| ").split(" | ") for line in done.stdout.splitlines()[2:])
        return {cells[0].partition(":")[0]: [cell.strip(" |") for cell in cells[1:]] for cells in lines}

    assert run()["best model of the data set (knows it)"][0] == "85.00"
    assert not (tmp_path / "runs").exists()
    test = run("--declare", "Once.")
    assert test["best model of the data set (knows it)"] == ["90.00", "50.00"]
    assert test["oracle (a bound)"] == ["90.00", "50.00"]
    assert [file.name for file in (tmp_path / "runs").iterdir()] == ["routerdc.looks.jsonl"]
    assert json.loads((tmp_path / "runs/routerdc.looks.jsonl").read_text())["note"] == "Once."
