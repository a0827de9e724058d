"""RouteProfile's test table becomes a recording, and the routers of runs/routeprofile.py learn from its pairs alone."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from podium.recordings import header_path
from podium_research.importers.routeprofile import import_routeprofile
from recordings.importer_sources import imported, refused, write_json

SCRIPT = Path(__file__).parents[2] / "runs" / "routeprofile.py"


def row(task: str, query: str, metric: str = "math", **scores: float | None) -> dict[str, Any]:
    return {
        "task_name": task,
        "query": query,
        "ground_truth": "4",
        "metric": metric,
        "choices": "{'text': ['3', '4'], 'labels': ['A', 'B']}",
        "task_id": None,
        "model_performance": {
            name: {
                "response": f"{name} says 4",
                "prompt_tokens": 9,
                "completion_tokens": 0 if name == "small" else 5,
                "success": True,
                "task_performance": score,
            }
            for name, score in scores.items()
        },
    }


def pair(task: str, query: str, better: str, worse: str) -> dict[str, str]:
    return {"task_name": task, "query": query, "better_model": better, "worse_model": worse}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    rows = [
        *(row("sums", f"What is {n} + 1?", large=1.0, small=0.0) for n in range(4)),
        *(row("words", f"Which of them? {n}", "em_mc", large=0.25, small=1.0) for n in range(4)),
        row("words", "Unscored?", large=None, small=0.5),
        row("words", "Unscored?", small=0.5),
    ]
    write_json(tmp_path / "rp" / "route_data" / "routing_test_data.json", rows)
    write_json(
        tmp_path / "rp" / "profile_data" / "candidate_models.json",
        {"large": {"feature": "Dear.", "input_price": 0.6, "output_price": 1.2, "size": "8B"}},
    )
    return tmp_path / "rp"


def test_the_table_keeps_scores_options_tokens_and_prices(checkout: Path) -> None:
    recording, import_report, told = imported(import_routeprofile, checkout)
    assert (told, recording.header.splits, import_report.licence) == (["sums", "words"], {"test": 9}, "MIT")
    assert import_report.left_out == {
        "responses that the source did not score": 1,
        "responses to a question that is twice in the table": 1,
    }
    found = recording.responses("Which of them? 2\n(A) 3\n(B) 4")
    assert [(found[name][0].score, found[name][0].output_tokens) for name in ("large", "small")] == [
        (0.25, 5),
        (1.0, None),
    ]
    assert recording.find("What is 2 + 1?") is not None
    large, small = recording.header.workers
    assert (large.description, large.price.output, large.measured) == ("Dear.", 1.2, 0.625)
    assert (small.measured, small.accuracy) == (0.5, pytest.approx(4 / 9))
    assert "holds no route_data/routing_test_data.json; give a checkout" in refused(
        import_routeprofile, checkout / "route_data"
    )


def test_routeprofile_script_trains_routers_and_logs_a_declared_look(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    recording, _, _ = imported(import_routeprofile, checkout)
    Path("runs/recordings").mkdir(parents=True)
    for file in (recording.path, header_path(recording.path)):
        (tmp_path / "runs/recordings" / f"routeprofile{file.suffix}").write_bytes(file.read_bytes())
    workers = "".join(
        f'[[worker]]\nname = "{n}"\nkind = "replay"\nrecording = "../../runs/recordings/routeprofile.parquet"\n'
        for n in ("large", "small")
    )
    Path("configs/pools").mkdir(parents=True)
    Path("configs/pools/routeprofile.toml").write_text(f'[[worker]]\nname="vote"\nkind="vote"\n{workers}')
    pairs = [pair("sums", f"Add {n} to 4.", "large", "small") for n in range(30)]
    pairs += [pair("words", f"Which word? {n}", "small", "large") for n in range(20)]
    leaked = [pair("sums", "What is 2 + 1?", "small", "large")]
    write_json(Path("pairs.json"), {"pairwise_data": pairs + leaked})
    program = runpy.run_path(str(SCRIPT))
    assert program["cross_fit"](pairs) == {
        "best worker": (30, 50),
        "best worker of the task": (50, 50),
        "ridge": (50, 50),
    }

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(SCRIPT), "test", "pairs.json", *options]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    assert "say with --declare what is measured" in run().stderr
    assert not list(Path("runs/recordings").glob("*.jsonl"))
    shown = run("--declare", "As in the issue.")
    assert shown.returncode == 0, shown.stderr
    assert "1 pairs about test questions left out; look 1 at the test questions" in shown.stdout
    by_task = next(line for line in shown.stdout.splitlines() if "knows the task" in line)
    assert "| 1.000 [1.000, 1.000] | 1.00 |" in by_task
    assert "| Best worker on the pairs: large | 0.625 " in shown.stdout
    assert "| Oracle (a bound for one answer) | 1.000 |" in shown.stdout
    (look,) = Path("runs/recordings/routeprofile.looks.jsonl").read_text().splitlines()
    assert json.loads(look)["note"] == "As in the issue."
