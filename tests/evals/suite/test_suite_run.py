"""A suite gives the same answers in one process and in several, keeps what it has, and refuses what cannot run."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from podium.errors import ConfigError, UsageError
from podium.evals.answer_files import RESULTS, AnswerFiles
from podium.evals.evaluation import Evaluation
from podium.evals.suite import comparison_inputs
from podium.evals.suite.comparisons import comparison_of, evaluations_of
from podium.evals.suite.manifest import SUITE, SuiteManifest
from podium.evals.suite.suite_run import answers_left, run_suite
from podium.evals.suite.suite_settings import PoolEntry
from podium.rollout import Rollout
from podium.rollout.pool_sampling import PoolSampler, PoolSampling
from podium.tasks.task import TaskSet
from podium.team.team_file import open_pool
from podium_testing import FaultServer, Rule, Status
from suites import ALONE, answers, check, data, policy, run
from tiny_policy import write_policy

POLICY = policy()
SMALL: dict[str, Any] = {
    "questions": 4,
    "training": 5,
    "seeds": 2,
    "planner": [
        {
            "conductor": {"checkpoint": POLICY},
            "label": "Conductor",
            "controls": ["no-access", "best-worker", "self-consistency"],
        },
        {"planner": "single:*"},
    ],
}


def test_a_worker_alone_in_a_suite_has_no_fallback(tmp_path: Path) -> None:
    file = tmp_path / "two.toml"
    file.write_text(
        '[[worker]]\nname = "ada"\nkind = "scripted"\nreplies = {}\nfallback = "bob"\n'
        '[[worker]]\nname = "bob"\nkind = "scripted"\nreplies = { "" = "Answer: 1" }\n'
    )
    few: dict[str, Any] = {"questions": 2, "pool": [{"name": str(file)}], "processes": 1}
    found = run(tmp_path / "r", **few, planner=[{"planner": "single:*"}])
    answered = {
        key.split("-")[0]: [line["trace"].get("answer") for line in lines] for key, lines in found.items()
    }
    assert answered == {"single_ada": [None, None], "single_bob": ["Answer: 1", "Answer: 1"]}
    controlled = {"planner": "single:ada", "controls": ["random-plans"]}
    found = run(tmp_path / "controlled", **few, planner=[controlled])
    (own,) = (lines for key, lines in found.items() if key.startswith("single_ada-seed"))
    assert [line["trace"].get("answer") for line in own] == [None, None]
    assert len(found) == 2


def test_many_processes_give_the_answers_of_one_and_a_torn_run_continues(tmp_path: Path) -> None:
    # Without a policy, for which each process would load torch.
    few = {**SMALL, "planner": [{"planner": name} for name in ("weighted-vote", "random", "single:*")]}
    whole = run(tmp_path / "one", **few)
    assert {len(found) for key, found in whole.items()} == {4, 5}
    folder = tmp_path / "two" / RESULTS
    folder.mkdir(parents=True)
    for place, file in enumerate(sorted((tmp_path / "one" / RESULTS).iterdir())):
        lines = file.read_text().splitlines(keepends=True)
        kept = "".join(lines[: place % 5])
        (folder / file.name).write_text(kept + ('{"task": "torn' if place % 2 else ""))
    assert run(tmp_path / "two", **few, processes=2) == whole


def test_rows_and_seeds_of_a_suite_share_the_questions_they_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Counter[tuple[str, int]]()
    read = comparison_inputs.open_tasks

    def noted(name: str, split: str, *, size: int, seed: int) -> TaskSet:
        opened[split, seed] += 1
        return read(name, split, size=size, seed=seed)

    monkeypatch.setattr(comparison_inputs, "open_tasks", noted)
    run(tmp_path, **SMALL)
    # The check reads them, and the run.
    assert opened == dict.fromkeys((("test", 0), ("test", 1), ("train", 0)), 2)


def test_finished_suite_runs_only_the_questions_of_a_new_planner(tmp_path: Path) -> None:
    few = {**SMALL, "planner": [{"planner": "random"}], "processes": 1}
    run(tmp_path, **few)
    more = check(**{**few, "planner": [{"planner": "random"}, {"planner": "single:gus", "label": "Gus"}]})
    asked: list[str] = []
    asyncio.run(run_suite(more, tmp_path, on_answer=lambda label, answer: asked.append(label)))
    assert asked == ["Gus"] * 8
    assert answers_left(more, tmp_path) == 0
    run(tmp_path, **few)
    assert len(answers(tmp_path)) == 4


def test_answer_whose_grader_failed_is_graded_again_and_not_asked_again(tmp_path: Path) -> None:
    pool, tasks = tmp_path / "pool.toml", tmp_path / "tasks.toml"
    pool.write_text('[[worker]]\nname = "ada"\nkind = "scripted"\nreplies = ["Four.", "Five."]\n')
    (tmp_path / "rows.jsonl").write_text('{"q": "2 + 2?", "a": "4"}\n{"q": "2 + 3?", "a": "5"}\n')
    with FaultServer("RIGHT", rules=[Rule(fault=Status(code=400), times=1)]).in_thread() as judge:
        tasks.write_text(
            '[[part]]\nset = "own"\nfiles = { test = "rows.jsonl" }\nquestion = "q"\ngold = "a"\n'
            '[part.grader]\nkind = "judge"\n[part.grader.worker]\nkind = "openai"\nname = "judy"\nmodel = "j"\n'
            f'base_url = "{judge.url}"\n'
        )
        few: dict[str, Any] = {
            "tasks": [{"name": str(tasks)}],
            "pool": [{"name": str(pool)}],
            "planner": [{"planner": "single:ada"}],
            "questions": 2,
            "seeds": 1,
            "processes": 1,
        }
        manifest, calls = check(**few), []
        (key,) = manifest.answers
        for _ in range(3):
            asyncio.run(run_suite(manifest, tmp_path))
            calls.append(len(judge.requests))
    lines = [Rollout.model_validate_json(line) for line in AnswerFiles(tmp_path).lines(key)]
    assert [line.grade.failure is None for line in lines] == [False, True, True]
    assert lines[2].trace == lines[0].trace
    assert calls[0] < calls[1] == calls[2]
    assert answers_left(manifest, tmp_path) == 0


def test_a_table_has_a_row_for_each_planner_and_control_with_all_seeds(tmp_path: Path) -> None:
    manifest = check(**SMALL)
    asyncio.run(run_suite(manifest, tmp_path))
    (table,) = manifest.tables
    results = AnswerFiles(tmp_path)
    comparison = comparison_of(manifest, table, evaluations_of(table, results), results)
    assert [row.label for row in comparison.rows][:4] == [
        "Conductor",
        "Conductor: no-access",
        "Conductor: best-worker",
        "Conductor: self-consistency",
    ]
    assert [row.kind for row in comparison.rows] == ["conductor", *["control"] * 3, *["single"] * 5, "oracle"]
    assert (comparison.questions, comparison.seed) == (8, "0, 1")
    first, unseeing, *_ = comparison.rows
    assert first.difference is None
    assert unseeing.difference is not None
    assert "if this row is as accurate, workers do not need to see each other's responses." in str(
        comparison.notes
    )


def _given(found: list[Any]) -> list[tuple[str, str, float]]:
    return [(answer["task"], answer["grade"].get("found"), answer["grade"]["score"]) for answer in found]


@pytest.mark.nightly
def test_the_seeds_of_a_training_can_be_one_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    few = {"questions": 6, "seeds": 2, "processes": 1}
    for seed in range(2):
        write_policy(Path(f"policy-{seed}"), ALONE[seed])
    planners = [{"conductor": {"checkpoint": "policy-{seed}"}, "label": "Ours"}]
    manifest = check(**few, planner=planners)
    asyncio.run(run_suite(manifest, tmp_path / "ours"))
    (table,) = manifest.tables
    (only,) = table.rows
    manifest.save(tmp_path / SUITE)
    assert SuiteManifest.load(tmp_path / SUITE) == manifest
    ours = [_given(found) for found in answers(tmp_path / "ours").values()]
    right = []
    for seed in range(2):
        policy = {"conductor": {"checkpoint": f"policy-{seed}"}}
        alone = run(tmp_path / f"alone-{seed}", **few, planner=[policy])
        (same,) = (found for key, found in alone.items() if f"seed_{seed}" in key)
        assert _given(same) in ours, "the policy of a seed answers the questions of this seed"
        right.append(f"{100 * sum(answer['grade']['score'] for answer in same) / 6:.1f}")
    results = AnswerFiles(tmp_path / "ours")
    comparison = comparison_of(manifest, table, evaluations_of(table, results), results)
    assert only.by_seed
    assert f"Ours: each seed has a checkpoint of its own; they are right on {', '.join(right)} %." in (
        comparison.notes
    )
    with pytest.raises(UsageError, match="policy-2 is not a folder"):
        check(**{**few, "seeds": 3}, planner=planners)


def test_each_question_can_have_a_pool_of_its_own(tmp_path: Path) -> None:
    draw = {"random": True, "min_workers": 2, "max_workers": 3, "subsets": "test"}
    pools = [{"draw": draw, "label": "parts"}, {}]
    run(tmp_path, questions=20, planner=[{"planner": "random"}], pool=pools)
    offered = {
        tuple(sorted(tuple(worker["name"] for worker in answer["trace"]["pool"]) for answer in found))
        for found in answers(tmp_path).values()
    }
    whole, parts = sorted(offered, key=lambda pools: len(set(pools)))
    assert len(set(whole)) == 1
    assert {len(pool) for pool in parts} == {2, 3}
    source = PoolSampler(
        open_pool(data()[1]), PoolSampling(random=True, min_workers=2, max_workers=3, subsets="train")
    )
    assert {frozenset(pool) for pool in parts}.isdisjoint(
        frozenset(source.draw(str(i)).names) for i in range(500)
    )


def test_each_row_can_have_its_own_number_of_rounds(tmp_path: Path) -> None:
    planners = [{"planner": "random", "label": f"{rounds}", "rounds": rounds} for rounds in (1, 2)]
    found = run(tmp_path, questions=6, planner=planners)
    planned = {tuple(len(answer["trace"]["rounds"]) for answer in answers) for answers in found.values()}
    assert planned == {(1,) * 6, (2,) * 6}
    manifest = check(questions=6, planner=planners)
    (table,) = manifest.tables
    results = AnswerFiles(tmp_path)
    comparison = comparison_of(manifest, table, evaluations_of(table, results), results)
    # The table does not claim one round for both rows.
    assert (manifest.settings.budget.rounds, comparison.rounds) == (1, None)


@pytest.mark.nightly
def test_conductor_with_feedback_stops_calling_a_degraded_worker(
    tmp_path: Path,
) -> None:
    asks_bram = {"conductor": {"checkpoint": str(write_policy(tmp_path / "policy", ALONE[1]))}}
    planners = [{**asks_bram, "quarantine_failing": True}, asks_bram]
    manifest = check(questions=160, planner=planners, pool=[{"degradation": {"worker": "bram", "at": 40}}])
    results = asyncio.run(run_suite(manifest, tmp_path))
    (table,) = manifest.tables
    found = evaluations_of(table, results)

    def calls(evaluation: Evaluation) -> list[float]:
        """The share of questions for which bram is called, of the first 40, the next 50 and the others."""
        asked = sorted(evaluation.rollouts, key=lambda rollout: rollout.trace.started_at)
        called = [any(span.worker == "bram" for span in rollout.trace.spans) for rollout in asked]
        return [sum(part) / len(part) for part in (called[:40], called[40:90], called[90:])]

    (before, soon, later), (before_too, soon_too, later_too) = map(calls, found.values())
    assert before == before_too >= 0.2
    # It is called again once in 100 outcomes, to see whether it still fails.
    assert later < soon < soon_too
    assert later <= 0.1
    assert later_too >= 0.2


def test_no_worker_turns_bad_on_training_questions() -> None:
    manifest = check(
        **{
            **SMALL,
            "planner": [{"planner": "weighted-vote"}],
            "pool": [{"degradation": {"worker": "bram", "at": 2}}],
        }
    )
    degradations = [job.table.pool.degradation for job in manifest.training_jobs]
    assert degradations
    assert not any(degradations)
    assert all(job.table.pool.degradation for job in manifest.jobs)


def test_pools_that_differ_in_test_alone_share_their_training_questions(tmp_path: Path) -> None:
    file = tmp_path / "two.toml"
    worker = '[[worker]]\nname = "{}"\nkind = "scripted"\nreplies = {{ "" = "Answer: 1" }}\n'
    file.write_text("".join(map(worker.format, ("ada", "bob"))))
    turning = {
        "name": str(file),
        "label": "turning",
        "degradation": {"worker": "ada", "at": 2, "gives": "bob"},
    }
    few: dict[str, Any] = {
        "questions": 2,
        "training": 3,
        "planner": [{"planner": "weighted-vote"}],
        "pool": [{"name": str(file), "label": "steady"}, turning],
    }
    run(tmp_path, **few)
    keys = {job.key for job in check(**few).training_jobs}
    assert [len(AnswerFiles(tmp_path).lines(key)) for key in keys] == [3, 3]


DRAWN = [{"draw": {"random": True, "min_workers": 2, "max_workers": 3}}]
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"planner": [{"planner": "singel:gus"}]}, "did you mean single:WORKER?"),
    ({"planner": [{"planner": "single:zoe"}]}, "calculators.toml does not have."),
    (
        {"planner": [{"planner": "random", "controls": ["untrained"]}]},
        "needs a checkpoint from before training",
    ),
    (
        {"split": "train", "planner": [{"conductor": {"checkpoint": POLICY}, "controls": ["best-worker"]}]},
        "another split",
    ),
    ({"tasks": [{"name": "gsm9k"}]}, "There is no task set 'gsm9k'"),
    ({"planner": [{"conductor": {"checkpoint": "nowhere"}}]}, "nowhere"),
    ({"pool": [{"degradation": {"worker": "guss", "at": 3}}]}, "guss"),
    ({"pool": DRAWN, "planner": [{"planner": "single:gus"}]}, "needs the same workers for every question"),
    (
        {"pool": DRAWN, "planner": [{"conductor": {"checkpoint": POLICY}, "controls": ["best-worker"]}]},
        "here they are drawn",
    ),
    ({"tasks": [{}, {"questions": 5}]}, "Two tables of the suite have one name"),
]


@pytest.mark.parametrize(("settings", "said"), REFUSED)
def test_invalid_suite_is_refused_before_any_run(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        check(**{**SMALL, **settings})
    assert said in str(refused.value)


def test_wrong_ratings_need_a_worker_of_which_something_is_said(tmp_path: Path) -> None:
    pool = tmp_path / "pool.toml"
    pool.write_text('[[worker]]\nname = "ada"\nkind = "scripted"\nreplies = { "" = "Answer: 1" }\n')
    planner = {"planner": "random", "controls": ["wrong-ratings"]}
    with pytest.raises(UsageError, match="neither descriptions nor ratings"):
        check(**{**SMALL, "pool": [{"name": str(pool)}], "planner": [planner]})
    assert check(**{**SMALL, "planner": [planner]}).tables[0].rows[1].control == "wrong-ratings"


def test_suite_refusal_lists_each_problem_on_its_own_line() -> None:
    with pytest.raises(UsageError) as refused:
        check(**{**SMALL, "planner": [{"planner": "single:zoe"}, {"planner": "committee:gus+zed"}]})
    assert str(refused.value).count("\n") == 1


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"planer": []}, "unknown key 'planer'; did you mean 'planner'?"),
        ({"planner": [{"planner": "random"}, {"planner": "random"}]}, "two planners have the row random"),
        ({"planner": [{"controls": ["no-acces"]}]}, "did you mean 'no-access'?"),
        ({"tasks": [{"pools": ["mine"]}]}, "name the pool mine, which no [[pool]] has"),
    ],
)
def test_a_bad_file_is_one_sentence(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check(**settings)
    assert said in str(refused.value).replace("'random'", "random").replace("'mine'", "mine")


@pytest.mark.parametrize(
    ("pool", "title"),
    [
        (PoolEntry(name="pools/mine.toml"), "mine"),
        (PoolEntry(name="runs/orchestra/pool.toml"), "orchestra"),
        (PoolEntry(name="pool.toml"), "pool"),
        (PoolEntry(name="pools/mine.toml", label="all"), "all"),
    ],
)
def test_a_table_calls_a_pool_by_its_label_or_its_file(pool: PoolEntry, title: str) -> None:
    assert pool.title == title


def test_oracle_row_takes_the_best_of_many_sampled_plans(tmp_path: Path) -> None:
    policy = {"conductor": {"checkpoint": POLICY}}
    settings = {"questions": 6, "seeds": 1, "repeats": 2, "processes": 1}
    manifest = check(**settings, planner=[policy, {**policy, "best_of": 6}])
    (table,) = manifest.tables
    assert [row.kind for row in table.rows] == ["conductor", "oracle"]
    results = asyncio.run(run_suite(manifest, tmp_path))
    assert [len(results.lines(row.files[0].key)) for row in table.rows] == [12, 12 * 6]
    plain, bound = evaluations_of(table, results).values()
    assert bound.accuracy.mean >= plain.accuracy.mean
    assert [each.sample for each in bound.rollouts] == [each.sample for each in plain.rollouts]
    samples = list(results.answers(table.rows[1].files[0].key).values())
    for number, best in enumerate(bound.rollouts):
        sampled = samples[6 * number : 6 * number + 6]
        assert {each.task for each in sampled} == {best.task}
        assert best.correct == any(each.correct for each in sampled)


def test_best_of_is_refused_for_a_planner_without_sampled_plans() -> None:
    with pytest.raises(ConfigError, match="best_of is for a planner whose plans a model writes"):
        check(planner=[{"planner": "random", "best_of": 4}])
