"""A comparison holds every method to the Conductor's questions and cost, and says what it cannot show."""

import asyncio
import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from podium.errors import ConfigError
from podium.evals import SIMULATED, Comparison, ComparisonSettings, ConstantPlan, ConstantPlanFront, compare
from podium.evals.compare import MAX_SAMPLES, samples_within
from podium.evals.table import HEADINGS, cells, markdown, terminal
from podium.executor import ExecutionSettings
from podium.planners import Committee, Constant, RandomPlans, Single
from podium.tasks.graders.text_graders import Exact
from podium.tasks.task import Task
from podium.types import Budget, Price, Profile, Question
from podium.workers import VoteWorker
from podium.workers.function import FunctionWorker
from podium.workers.pool import Pool
from podium.workers.scripted import ScriptedWorker
from podium.workflow import Step, Workflow, render
from scripted_team import SKILLS, calculator

WORKERS = ("left", "right", "all")
WHOLE = Workflow((Step(2, "Answer the whole question."),))
FRONTIER = ConstantPlanFront(
    workers=WORKERS,
    plans=(ConstantPlan(plan=render(WHOLE), accuracy=0.5, cost_usd=0.0),),
    max_steps=5,
    questions=1,
    seed="0",
)

FRONTIER_OF_NONE = FRONTIER.model_copy(update={"plans": ()})


@pytest.fixture(scope="module")
def comparison(specialists, tasks, tuning) -> Comparison:
    contest = ComparisonSettings(specialists, tasks, tuning)
    conductor = Constant(WHOLE, WORKERS, name="conductor")
    return asyncio.run(compare(contest, conductor, untrained=RandomPlans(), constant_plans=FRONTIER))


def test_every_method_has_a_row(comparison):
    assert [row.kind for row in comparison.rows] == [
        "conductor",
        "untrained",
        "self-consistency",
        "single",
        "single",
        "single",
        "constant",
        "random",
    ]
    assert comparison.questions == 60


def test_a_row_equal_to_the_conductor_is_not_behind_it(comparison):
    by_label = {row.label: row for row in comparison.rows}
    same = by_label["all alone"]
    assert same.accuracy == by_label["Conductor"].accuracy
    assert (same.difference.low, same.difference.mean, same.difference.high) == (0, 0, 0)
    assert by_label["Conductor"].difference is None


def test_differences_are_the_conductor_minus_the_row(comparison):
    first, *others = comparison.rows
    for row in others:
        assert row.difference.mean == pytest.approx(first.accuracy.mean - row.accuracy.mean)


async def test_self_consistency_takes_the_answers_that_the_conductors_cost_buys(tasks, tuning):
    pool = Pool([calculator("cheap", *SKILLS), calculator("dear", price=3.5, rest=0.1)])
    found = await compare(
        ComparisonSettings(pool, tasks[:20], tuning[:20]), Single("dear"), constant_plans=FRONTIER_OF_NONE
    )
    (chosen,) = [row for row in found.rows if row.kind == "self-consistency"]
    assert chosen.label == "Self-consistency, 3 × cheap"
    assert chosen.calls == 4, "three answers and the vote, which the pool was lent"
    assert found.pool == ("cheap", "dear")
    assert 0.5 < chosen.cost_usd / found.rows[0].cost_usd <= 1


async def test_without_tuning_questions_no_constant_plan_is_searched_on_the_test(specialists, tasks):
    found = await compare(ComparisonSettings(specialists, tasks[:4]), Single("all"))
    assert "constant" not in [row.kind for row in found.rows]


def erring(name: str, wrong: str, price: float = 1.0) -> FunctionWorker:
    """Says "yes", and its name to questions with a word."""

    async def answer(messages) -> str:
        return f"Answer: {name if wrong in messages[-1]['content'] else 'yes'}"

    return FunctionWorker(Profile(name=name, price=Price(output=price)), answer)


async def test_a_constant_plan_is_searched_at_its_cost_in_as_many_rounds():
    """ada, bob and cyd err on a third of the questions each, so a vote of them errs on none.

    It costs 2.7 answers in one round, for two of them are asked where they agree; and 3 where another round may follow,
    which is more than the 2.8 of the Conductor.
    """
    tasks = [
        Task(id=f"{word}{k}", question=Question(text=f"Is {word} {k}?"), gold="yes", grader=Exact())
        for word in ("red", "blue", "green")
        for k in range(2)
    ]
    three = [erring("ada", "red"), erring("bob", "blue"), erring("cyd", "green")]
    pool = Pool([*three, erring("dear", "", 2.8), VoteWorker()])
    contest = ComparisonSettings(
        pool, tasks, tasks, max_steps=4, execution=ExecutionSettings(early_stop=True)
    )
    one, once = [await contest.run("", plan) for plan in (Single("ada"), Committee(("ada", "bob", "cyd")))]
    assert (once.accuracy.mean, once.cost_usd / one.cost_usd) == pytest.approx((1, 8 / 3))
    found = await compare(replace(contest, budget=Budget(rounds=2)), Single("dear"))
    (constant,) = [row for row in found.rows if row.kind == "constant"]
    assert constant.cost_usd <= found.rows[0].cost_usd


@pytest.mark.parametrize(
    ("cost", "single", "samples"),
    [
        (1.0, 2.0, 0),
        (1.0, 1.0, 1),
        (0.3, 0.1, 3),
        (0.29, 0.1, 2),
        (9.0, 0.1, MAX_SAMPLES),
        (0.0, 0.0, MAX_SAMPLES),
    ],
)
def test_as_many_samples_as_the_cost_buys(cost, single, samples):
    assert samples_within(cost, single) == samples


def test_accuracy_by_hops_averages_to_accuracy(comparison, tasks):
    hops = [task.facts["hops"] for task in tasks]
    for row in comparison.rows:
        mean = sum(row.by_hops[count] * hops.count(count) for count in row.by_hops) / len(hops)
        assert mean == pytest.approx(row.accuracy.mean)


def test_examples_are_the_first_question_of_each_number_of_hops(comparison, tasks):
    assert [example.hops for example in comparison.examples] == sorted({t.facts["hops"] for t in tasks})
    for example in comparison.examples:
        first = next(task for task in tasks if task.facts["hops"] == example.hops)
        assert (example.question, example.gold) == (first.question.text, first.gold)
        assert example.before is not None
        assert [step.worker for step in example.after.steps] == ["all"]


def test_a_comparison_survives_its_file(comparison, tmp_path):
    comparison.save(tmp_path / "comparison.json")
    assert Comparison.load(tmp_path / "comparison.json") == comparison
    assert json.loads((tmp_path / "comparison.json").read_text())["rows"][0]["kind"] == "conductor"


def test_another_file_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        Comparison.load(tmp_path / "none.json")
    (tmp_path / "other.json").write_text('{"questions": 3}')
    with pytest.raises(ConfigError, match="does not hold a comparison"):
        Comparison.load(tmp_path / "other.json")


def test_the_table_shows_every_row_and_says_that_it_is_simulated(comparison):
    text = markdown(comparison)
    assert text.count("\n| ") == len(comparison.rows) + 1
    assert SIMULATED in text
    assert "mutual information" in text
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(terminal(comparison))
    drawn = console.export_text()
    assert all(row.label in drawn for row in comparison.rows)
    assert "Simulated workers" in drawn
    assert len(cells(comparison.rows[1])) == len(HEADINGS)


async def test_real_workers_are_not_called_simulated(tasks):
    pool = Pool([ScriptedWorker("w", {"": "Answer: 1"})])
    found = await compare(ComparisonSettings(pool, tasks[:4]), Single("w"))
    assert not found.simulated
    assert SIMULATED not in markdown(found)
    assert [row.kind for row in found.rows] == ["conductor", "self-consistency", "single", "random"]


async def test_progress_names_what_is_under_way(specialists, tasks):
    seen: dict[str, int] = {}

    def note(label: str, done: int, total: int) -> None:
        seen[label] = total - done

    await compare(
        ComparisonSettings(specialists, tasks[:6], tasks[6:12], on_progress=note),
        Single("all"),
        constant_plans=FRONTIER,
    )
    assert list(seen)[:2] == ["Conductor", "left alone"]
    assert "Best constant plan" in seen
    assert set(seen.values()) == {0}
