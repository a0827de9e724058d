"""An evaluation repeats exactly, weighs questions alike, and counts what it cannot blame on the planner."""

import pytest

from handmade_evaluations import rollout
from podium.config import build
from podium.errors import ConfigError, UsageError, WorkerError
from podium.evals import Evaluation, evaluate
from podium.evals.comparison import comparison_row
from podium.evals.evaluation import EvaluationJob, evaluate_together
from podium.planners import Constant, RandomPlans, Single
from podium.planners.planner import OnlinePlanner
from podium.tasks.graders.judge import Judge
from podium.tasks.graders.text_graders import Exact
from podium.tasks.task import Task
from podium.team import Runner
from podium.types import Question
from podium.workers.pool import Pool
from podium.workers.scripted import ScriptedWorker
from podium.workflow import Step, Workflow
from scripted_team import Sums

TASKS = [
    Task(id=f"t/{k}", question=Question(text=f"Which? {k}"), gold=str(k), grader=Exact()) for k in range(4)
]


def scripted(name: str, reply: str | WorkerError = "Answer: 1") -> ScriptedWorker:
    return ScriptedWorker(name, {"": reply})


async def test_evaluation_is_identical_at_any_concurrency(specialists, tasks):
    def told(evaluation: Evaluation) -> object:
        return [(r.task, r.plan_text, r.trace.answer, r.trace.cost_usd) for r in evaluation.rollouts]

    one = await evaluate(Runner(RandomPlans(), specialists), tasks[:20], repeats=2, concurrency=1)
    many = await evaluate(Runner(RandomPlans(), specialists), tasks[:20], repeats=2, concurrency=40)
    other = await evaluate(Runner(RandomPlans(), specialists), tasks[:20], repeats=2, seed="1")
    assert told(one) == told(many)
    assert told(one) != told(other)
    assert len(one.rollouts) == 40
    assert list(one.by_question) == [task.id for task in tasks[:20]]


async def test_repeats_of_a_question_differ(specialists, tasks):
    found = await evaluate(Runner(RandomPlans(), specialists), tasks[:5], repeats=3)
    assert all(len({r.plan_text for r in rollouts}) > 1 for rollouts in found.by_question.values())


async def test_figures_are_means_over_questions():
    found = await evaluate(Runner(Single("w"), Pool([scripted("w")])), TASKS)
    assert found.accuracy.mean == 0.25
    assert (found.steps, found.calls, found.validity, found.failures) == (1, 1, 1, 0)


def test_a_question_counts_once_however_often_it_was_answered():
    rollouts = (rollout("q/0", [0]), *[rollout("q/1", [0], correct=False)] * 3)
    assert Evaluation(rollouts).accuracy.mean == 0.5


async def test_failed_workers_are_counted_and_their_answers_too():
    pool = Pool([scripted("w", WorkerError("It is down.", kind="status"))])
    found = await evaluate(Runner(Single("w"), pool), TASKS)
    assert (found.failures, found.accuracy.mean, found.validity) == (4, 0, 1)


def judge(reply: object) -> Judge:
    worker = {
        "name": "judy",
        "kind": "scripted",
        "replies": {"": reply},
        "price": {"input": 0, "output": 1e6},
    }
    return build({"kind": "judge", "worker": worker}, Judge)


DOWN = {"error": "status", "message": "It is down."}


async def test_answers_the_grader_could_not_judge_are_neither_right_nor_wrong():
    broken = [Task(id=f"b/{k}", question=Question(text="?"), gold="1", grader=judge(DOWN)) for k in range(2)]
    pool = Pool([scripted("w")])
    found = await evaluate(Runner(Single("w"), pool), [*TASKS, *broken])
    known = await evaluate(Runner(Single("w"), pool), TASKS)
    assert (found.ungraded, found.failures) == (2, 0)
    assert found.accuracy == known.accuracy
    assert set(found.right) == {task.id for task in TASKS}
    compared = comparison_row("single", "w", found, against=found)
    assert compared.ungraded == 2
    assert compared.difference is not None
    assert compared.difference.mean == 0
    with pytest.raises(UsageError, match=r"No answer could be graded: .*It is down"):
        _ = (await evaluate(Runner(Single("w"), pool), broken)).accuracy


async def test_grading_cost_is_reported_apart_from_answer_cost():
    judged = [
        Task(id=f"j/{k}", question=Question(text="?"), gold="1", grader=judge("RIGHT")) for k in range(3)
    ]
    found = await evaluate(Runner(Single("w"), Pool([scripted("w")])), judged)
    assert found.accuracy.mean == 1
    assert found.cost_usd == 0
    # Three answers, each judged in both orders, one token a verdict.
    assert found.grading_usd == pytest.approx(6 * found.rollouts[0].grade.cost_usd / 2)
    assert comparison_row("single", "w", found).grading_usd == found.grading_usd > 0


async def test_unreadable_plans_are_invalid_and_cost_nothing():
    found = await evaluate(Runner(Constant(Workflow((Step(0, " "),)), ("w",)), Pool([scripted("w")])), TASKS)
    assert (found.validity, found.calls, found.cost_usd, found.accuracy.mean) == (0, 0, 0, 0)


async def test_a_learner_forgets_between_repeats_of_generated_questions(specialists):
    forgotten: list[int] = []

    class Counting(Single, OnlinePlanner):
        replayed_outcomes = 9
        learned = 0

        def learn(self, trace, score):
            type(self).learned += 1

        def forget(self):
            forgotten.append(self.learned)
            type(self).learned = 0

    tasks = Sums("train", size=3)
    await evaluate(Runner(Counting("left"), specialists), tasks, repeats=2, concurrency=1)
    assert forgotten == [0, 3]


async def test_a_wrong_name_of_a_baseline_is_one_plain_error():
    with pytest.raises(ConfigError, match="no worker named 'v'"):
        await evaluate(Runner(Single("v"), Pool([scripted("w")])), TASKS)


@pytest.mark.parametrize(
    ("tasks", "settings", "says"),
    [
        ([], {}, "no tasks to evaluate on"),
        (TASKS, {"repeats": 0}, "Repeats \\(0\\)"),
        (TASKS, {"concurrency": 0}, "concurrency \\(0\\)"),
    ],
)
async def test_evaluation_without_tasks_or_repeats_is_refused(tasks, settings, says):
    with pytest.raises(UsageError, match=says):
        await evaluate(Runner(Single("w"), Pool([scripted("w")])), tasks, **settings)


async def test_planners_that_are_evaluated_together_are_at_the_same_question():
    pool, order = Pool([scripted("w"), scripted("v", "Answer: 2")]), list[tuple[str, str]]()

    def job(name, kept=None):
        def on_rollout(rollout):
            order.append((name, rollout.task))

        return EvaluationJob(Runner(Single(name), pool), TASKS, kept=kept or {}, on_rollout=on_rollout)

    first = await evaluate(Runner(Single("w"), pool), TASKS)
    kept = {("t/1", 0): first.rollouts[1]}
    found = await evaluate_together([job("w", kept), job("v")], concurrency=1)
    assert order == [("w", "t/0"), ("v", "t/0"), ("v", "t/1"), *((n, f"t/{k}") for k in (2, 3) for n in "wv")]
    assert found[0].rollouts[1] is kept["t/1", 0]
    assert [one.right for one in found] == [first.right, (await evaluate(job("v").runner, TASKS)).right]


async def test_progress_ends_at_the_number_of_rollouts():
    seen: list[tuple[int, int]] = []
    pool = Pool([scripted("w")])
    await evaluate(Runner(Single("w"), pool), TASKS, repeats=2, on_progress=lambda *at: seen.append(at))
    assert seen == [(k, 8) for k in range(1, 9)]
