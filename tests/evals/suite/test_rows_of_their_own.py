"""Rows of a suite that differ from their table: other workers, some task sets alone, fewer seeds."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from evals.recorded_world import world, write_recording
from podium.errors import ConfigError, UsageError
from podium.evals.answer_files import AnswerFiles
from podium.evals.comparison import ORACLE
from podium.evals.suite.comparisons import comparison_of, evaluations_of
from podium.evals.suite.suite_run import run_suite
from suites import answers, check, data, run
from tiny_policy import write_policy

TEAM: dict[str, Any] = {"name": data()[1]}
WITHOUT_GUS = TEAM | {"draw": {"without": ["gus"]}}


@pytest.fixture
def pair(tmp_path: Path) -> dict[str, Any]:
    """A pool of two workers, of which one is always wrong."""
    worker = '[[worker]]\nname = "{}"\nkind = "scripted"\nreplies = {{ "" = "Answer: {}" }}\n'
    file = tmp_path / "pair.toml"
    file.write_text(worker.format("one", 1) + worker.format("two", 2))
    return {"name": str(file)}


def offered(found: list[Any]) -> set[tuple[str, ...]]:
    return {tuple(worker["name"] for worker in answer["trace"]["pool"]) for answer in found}


def test_a_row_of_other_workers_is_compared_on_the_questions_of_its_table(
    tmp_path: Path, pair: dict[str, Any]
) -> None:
    planners = [
        {"planner": "random"},
        {"planner": "random", "label": "without gus", "pool": WITHOUT_GUS},
        {"planner": "single:*", "pool": pair},
    ]
    manifest = check(questions=8, planner=planners, processes=1)
    results = asyncio.run(run_suite(manifest, tmp_path))
    (table,) = manifest.tables
    comparison = comparison_of(manifest, table, evaluations_of(table, results), results)
    assert [row.label for row in comparison.rows] == [
        "random",
        "without gus",
        "one alone",
        "two alone",
        ORACLE,
    ]
    assert all(row.difference is not None for row in comparison.rows[1:-1])
    by_row = {row.label: offered(list(_answers(tmp_path, row.files[0].key))) for row in table.rows}
    (whole,), (fewer,) = by_row["random"], by_row["without gus"]
    assert set(whole) - set(fewer) == {"gus"}
    assert {"one", "two"} <= set(*by_row["one alone"])


def _answers(folder: Path, key: str) -> list[Any]:
    return answers(folder)[key]


def test_suite_row_with_other_workers_trains_on_their_answers(tmp_path: Path, pair: dict[str, Any]) -> None:
    planners = [{"planner": "weighted-vote", "label": "theirs", "pool": pair}, {"planner": "weighted-vote"}]
    manifest = check(questions=4, training=6, planner=planners, processes=1)
    theirs, ours = (set(job.training) for job in manifest.jobs)
    assert theirs == {"one", "two"}
    assert ours == {"ada", "bram", "cleo", "egon", "gus"}
    assert len(manifest.training_jobs) == 7
    results = asyncio.run(run_suite(manifest, tmp_path))
    assert all(len(results.lines(key)) == 6 for job in manifest.jobs for key in job.training.values())


def test_a_row_that_names_the_workers_of_its_table_keeps_its_answers(tmp_path: Path) -> None:
    plain = check(questions=4, planner=[{"planner": "random"}])
    named = check(questions=4, planner=[{"planner": "random", "pool": TEAM, "tasks": [data()[0]]}])
    assert plain.answers == named.answers


def test_a_row_is_only_in_the_tables_of_its_task_sets(tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_bytes(Path(data()[0]).read_bytes())
    sets = [{}, {"name": str(other)}]
    planners = [{"planner": "random"}, {"planner": "single:gus", "label": "Gus", "tasks": [str(other)]}]
    first, second = check(questions=4, tasks=sets, planner=planners).tables
    assert [row.label for row in first.rows] == ["random"]
    assert [row.label for row in second.rows] == ["random", "Gus"]
    with pytest.raises(UsageError, match=r"No .* is evaluated on sums/test"):
        check(questions=4, tasks=sets, planner=planners[1:])


def test_a_set_with_a_seed_has_the_same_questions_for_each_seed(tmp_path: Path) -> None:
    found = run(
        tmp_path,
        questions=5,
        seeds=3,
        tasks=[{"seed": 7}],
        planner=[{"planner": "random"}, {"planner": "single:gus", "label": "Gus", "seeds": 1}],
        processes=1,
    )
    asked = [tuple(answer["task"] for answer in given) for given in found.values()]
    assert len(asked) == 4
    assert len(set(asked)) == 1
    manifest = check(questions=5, seeds=3, tasks=[{"seed": 7}], planner=[{"planner": "random"}])
    (table,) = manifest.tables
    results = AnswerFiles(tmp_path)
    comparison = comparison_of(manifest, table, evaluations_of(table, results), results)
    assert (comparison.questions, comparison.seed) == (5, "0, 1, 2")


def test_suite_row_with_fewer_seeds_ignores_files_of_other_seeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.jsonl"
    other.write_bytes(Path(data()[0]).read_bytes())
    monkeypatch.chdir(tmp_path)
    write_policy(Path("policy-0"))
    sets = [{"seed": 7}, {"name": str(other)}]
    ours = {"conductor": {"checkpoint": "policy-{seed}"}, "tasks": [data()[0]], "seeds": 1, "label": "Ours"}
    manifest = check(questions=4, seeds=2, tasks=sets, planner=[{"planner": "random"}, ours])
    (row,) = (row for table in manifest.tables for row in table.rows if row.label == "Ours")
    assert [file.seed for file in row.files] == [0]
    with pytest.raises(UsageError, match="policy-1 is not a folder"):
        check(questions=4, seeds=2, tasks=sets, planner=[{"planner": "random"}, ours | {"seeds": 2}])


def test_a_row_whose_workers_were_recorded_on_other_questions_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = world()
    last, responses = rows[-1]
    rows[-1] = (last, [response for response in responses if response.worker != "cy"])
    write_recording(Path("world.parquet"), rows)
    worker = '[[worker]]\nname = "{}"\nkind = "replay"\nrecording = "world.parquet"\n'
    for name in ("bob", "cy"):
        Path(f"{name}.toml").write_text(worker.format("ada") + worker.format(name))
    suite: dict[str, Any] = {
        "tasks": [{"name": "world.parquet"}],
        "pool": [{"name": "bob.toml"}],
        "questions": 8,
    }
    check(**suite, planner=[{"planner": "single:*"}])
    with pytest.raises(UsageError, match="The pool cy of a row does not have all questions of world/test"):
        check(
            **suite, planner=[{"planner": "single:*"}, {"planner": "single:cy", "pool": {"name": "cy.toml"}}]
        )


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"planner": [{"planner": "random", "tasks": ["mine"]}]}, "names the tasks 'mine'"),
        ({"planner": [{"planner": "random", "seeds": 1}], "seeds": 2}, "give each [[tasks]] a seed"),
    ],
)
def test_suite_row_with_an_unknown_task_set_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check(**settings)
    assert said in str(refused.value)


def test_two_rows_of_one_name_are_refused() -> None:
    each = [{"planner": "single:*"}, {"planner": "single:*", "pool": TEAM | {"label": "again"}}]
    with pytest.raises(UsageError, match="2 rows 'ada alone'"):
        check(questions=4, planner=each)
