"""small-open over scripted models: every row of its table runs, and its single ways are recorded."""

from __future__ import annotations

import asyncio
import json
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import podium
from podium.config import load
from podium.evals.comparison import ORACLE
from podium.evals.suite.comparisons import comparison_of, evaluations_of
from podium.evals.suite.manifest import SuiteManifest
from podium.evals.suite.suite_check import check_suite
from podium.evals.suite.suite_run import run_suite
from podium.evals.suite.suite_settings import SuiteSettings
from podium.recordings import Recording
from scripted_team import write_sums
from tiny_policy import write_policy

ROOT = Path(__file__).parents[3]
CONFIGS = ROOT / "research" / "configs"
SHIPPED = Path(podium.__file__).parent / "assets" / "pools" / "small-open.toml"
MODELS = ("qwen-1.5b", "qwen-0.5b", "smol")
WAYS = [f"{model}-{way}" for model in MODELS for way in ("steps", "program")]
REPLIES = '{ "Write a Python program" = "```python\\nprint(6 * 7)\\n```", "" = "Answer: 7" }'
PLAN = '{"thought": "", "steps": [{"worker": "smol", "subtask": "Answer it.", "sees": []}]}'
Podium = Callable[..., Any]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the table names, over scripted models in the place of the published ones."""
    for file in (*CONFIGS.glob("eval/small-open*.toml"), *CONFIGS.glob("plans/*/*.txt")):
        copy = tmp_path / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(file.read_text().replace('"small-open"', '"team.toml"'))
    team = tomllib.loads(SHIPPED.read_text())
    tables = [
        f'[[worker]]\nname = "{worker["name"]}"\nprofile = {json.dumps(worker.get("profile", worker["name"]))}\n'
        + (
            f'kind = "scripted"\nreplies = {REPLIES}\nprice = {{ input = 1.0, output = 1.0 }}\n'
            if worker["name"] in MODELS
            else f'kind = "{worker["kind"]}"\n'
        )
        for worker in team["worker"]
    ]
    (tmp_path / "team.toml").write_text("\n".join(tables))
    ways = (CONFIGS / "pools" / "small-open-ways.toml").read_text()
    (tmp_path / "research/configs/pools").mkdir()
    (tmp_path / "research/configs/pools/small-open-ways.toml").write_text(
        ways.replace('pool = "small-open"', 'pool = "../../../team.toml"')
    )
    questions = write_sums(tmp_path / "sums.jsonl", 4, ("train", "validation", "test")).absolute()
    for name in ("small-open", "small-open-held-out"):
        file = tmp_path / "research/configs/tasks" / f"{name}.toml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(
            f'name = "{name}"\n[[part]]\nset = "own"\nfile = "{questions}"\nsplit = "split"\n'
            '[part.grader]\nkind = "math"\n'
        )
    runs = tmp_path / "runs/small-open"
    for policy in ("form", *(f"{kind}-{seed}" for kind in ("conductor", "unseen") for seed in range(3))):
        write_policy(runs / policy / "policy")
    (runs / "plan.txt").write_text((CONFIGS / "plans/fixed/both-ways-voted.txt").read_text())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(file: str, *overrides: str) -> Mapping[str, Any]:
    """Run a suite on two validation questions; by task set the comparison."""
    short = ("split=validation", "questions=2", "training=3", "processes=1", *overrides)
    settings = load(CONFIGS.relative_to(ROOT) / "eval" / file, SuiteSettings, short)
    settings = settings.model_copy(
        update={"tasks": tuple(each.model_copy(update={"questions": 2}) for each in settings.tasks)}
    )

    async def answer() -> tuple[SuiteManifest, Any]:
        manifest = await check_suite(settings, Path("run"))
        return manifest, await run_suite(manifest, Path("run"))

    manifest, results = asyncio.run(answer())
    found = {}
    for table in manifest.tables:
        evaluations = evaluations_of(table, results)
        assert len(evaluations) == len(table.rows)
        found[Path(table.settings.tasks.name).stem] = comparison_of(manifest, table, evaluations, results)
    return found


def test_every_row_of_the_table_can_run(repository: Path) -> None:
    found = run("small-open.toml")
    rows = {row.label: row for row in found["small-open"].rows}
    assert {
        *("Conductor", "Conductor: untrained", "Conductor: whole-question", "Conductor: no-access"),
        *("Conductor: workers-permuted", "Conductor: self-consistency", "Conductor: best-vote"),
        *(
            "Conductor, best of 16 plans (a bound)",
            "Conductor, a second round",
            "Conductor without qwen-0.5b",
        ),
        "Conductor that never saw qwen-0.5b in training",
        "qwen-1.5b conducts untrained, under a schema",
        *(f"{way} alone" for way in (*MODELS, *WAYS)),
        "Best weighted vote of the single ways",
        "Router among the single ways, by clusters",
        "Router among the single ways, by nearest neighbours",
        *("self-consistency:qwen-1.5b-steps:3", "self-fusion:qwen-1.5b:3"),
        "fusion:qwen-1.5b+qwen-0.5b:qwen-1.5b",
        "Best fixed plan of two to four steps",
        ORACLE,
    } <= rows.keys()
    assert all(
        row.difference is not None and row.adjusted_p is not None for row in found["small-open"].rows[1:-1]
    )
    assert rows["Conductor, a second round"].calls > rows["Conductor"].calls
    # A program of the model is run, and both its calls are paid.
    assert rows["smol-program alone"].cost_usd > 0
    assert {"Conductor", "Conductor: untrained", "smol-steps alone"} <= {
        row.label for row in found["small-open-held-out"].rows
    }


def test_the_fixed_plans_have_two_to_four_steps_and_run(repository: Path) -> None:
    (comparison,) = run("small-open-plans.toml").values()
    assert {row.label for row in comparison.rows} == {file.stem for file in CONFIGS.glob("plans/fixed/*.txt")}
    assert all(2 <= row.steps <= 4 and row.failures == 0 for row in comparison.rows)


def test_each_model_is_recorded_step_by_step_and_by_a_program(repository: Path, podium: Podium) -> None:
    """And goes on where it was stopped, and records samples of one way alone."""
    record = ("record", "ways.parquet", "--team", "research/configs/pools/small-open-ways.toml")
    record = (*record, "--tasks", "research/configs/tasks/small-open.toml", "--cache", "answers.sqlite")
    stopped = podium(*record, "--questions", "2", "--budget-calls", "5")
    assert stopped.status == 1
    done = podium(*record, "--questions", "2")
    assert done.status == 0, done.err
    recording = Recording.open(repository / "ways.parquet")
    assert {worker.name for worker in recording.header.workers} == set(WAYS)
    answers = recording.responses(recording.questions[0].text)
    assert "42" in answers["smol-program"][0].text
    assert "7" in answers["smol-steps"][0].text
    samples = (record[0], "samples.parquet", *record[2:], "--questions", "2", "--repeats", "3")
    assert podium(*samples, "--worker", "smol-program").status == 0
    (worker,) = Recording.open(repository / "samples.parquet").header.workers
    assert (worker.name, worker.responses) == ("smol-program", 6)


def test_the_script_has_the_steps_that_it_names() -> None:
    text = (ROOT / "runs" / "small-open.sh").read_text()
    named = set(re.findall(r"^#   runs/small-open\.sh (\w+)", text, re.MULTILINE))
    assert named == set(re.findall(r"^  (\w+)\)", text, re.MULTILINE))
