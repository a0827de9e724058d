"""RouterArena's prediction files: one model for each prompt, and how often a paraphrase changes the choice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from podium.workers.ratings import Ratings, Tally

SCRIPT = Path(__file__).parents[2] / "runs" / "routerarena.py"


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), "arena", "pool.toml", "mine", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


def test_predictions_name_the_planners_choice_and_paraphrases_are_compared(tmp_path: Path) -> None:
    good, poor = Tally(right=90, questions=100, cost_usd=0.1), Tally(right=10, questions=100, cost_usd=0.1)
    ratings = Ratings(
        clusters={"dates": {"date": 2.0}, "sums": {"add": 2.0}},
        workers={
            "gpt-4o-mini": {"dates": good, "sums": poor},
            "mistral-medium": {"dates": poor, "sums": good},
        },
    )
    (tmp_path / "ratings.json").write_text(ratings.model_dump_json())
    endpoint = (
        'kind = "openai"\nmodel = "m"\nbase_url = "http://127.0.0.1:9/v1"\napi_key_env = "ABSENT_KEY"\n'
    )
    workers = "".join(
        f'[[worker]]\nname = "{name}"\n{endpoint}' for name in ("gpt-4o-mini", "mistral-medium")
    )
    (tmp_path / "pool.toml").write_text(
        f'ratings = "ratings.json"\n[[worker]]\nname = "vote"\nkind = "vote"\n{workers}'
    )
    assert "arena/dataset has no prompts" in run(tmp_path).stderr
    dataset = tmp_path / "arena" / "dataset"
    dataset.mkdir(parents=True)
    full = [
        {"prompt_formatted": "Add 1 and 2.", "global index": "GSM8K_1"},
        {"prompt_formatted": "", "prompt": "Which date is it?", "global index": "MMLU_2"},
    ]
    paraphrased = [
        {"prompt_formatted": "Please add 1 and 2.", "global index": "GSM8K_1"},
        {"prompt_formatted": "Add days until you know which day it is.", "global index": "MMLU_2"},
    ]
    (dataset / "router_data.json").write_text(json.dumps(full))
    (dataset / "router_robustness.json").write_text(json.dumps(paraphrased))
    shown = run(tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "Robustness: 1 of 2 paraphrases go to the model of their prompt, 50.0%." in shown.stdout
    written = tmp_path / "arena" / "router_inference"
    rows = json.loads((written / "predictions/mine.json").read_text())
    assert [(row["global index"], row["prompt"], row["prediction"]) for row in rows] == [
        ("GSM8K_1", "Add 1 and 2.", "mistral-medium"),
        ("MMLU_2", "Which date is it?", "gpt-4o-mini"),
    ]
    assert {row["generated_result"] for row in rows} == {None}
    assert len(json.loads((written / "predictions/mine-robustness.json").read_text())) == 2
    assert json.loads((written / "config/mine.json").read_text())["pipeline_params"] == {
        "router_name": "mine",
        "models": ["gpt-4o-mini", "mistral-medium"],
    }
    several = run(tmp_path, "--planner", "self-consistency:gpt-4o-mini:3")
    assert "asks 4 workers about GSM8K_1, and a prediction names one model" in several.stderr
