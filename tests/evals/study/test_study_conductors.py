"""A study keeps what its Conductors answered for as long as the workers and graders are the same."""

from __future__ import annotations

from pathlib import Path

from podium.calls import CallState
from podium.conductor.settings import ConductorSettings
from podium.evals.study.answers import StudyAnswers, ask_workers
from podium.evals.study.conductors import PLAIN, measure_conductors
from podium.evals.study.questions import StudyQuestions
from podium.tasks.graders.math_graders import Numeric
from podium.tasks.graders.text_graders import Exact
from podium.tasks.task import Grader, Task
from podium.team.settings import TeamSettings
from podium.types import Profile, Question
from podium.workers import Pool
from podium.workers.function import FunctionWorker

PLAN = 'model_id = [{}]\nsubtasks = ["Answer the whole question."]\naccess_list = [[]]\n'


class Model:
    """Says one thing, and counts its calls."""

    def __init__(self, name: str, says: str, model: str) -> None:
        self.calls = 0
        self.says = says
        self.worker = FunctionWorker(Profile(name=name), self._answer, identity={"model": model})

    def _answer(self, messages: list[dict[str, str]]) -> str:
        self.calls += 1
        return self.says


async def conducted(folder: Path, grader: Grader, model: str) -> tuple[int, float]:
    """The calls of the model that conducts, and the accuracy of its plans, by which ada answers."""
    lead, ada = Model("lead", PLAN.format(1), "large"), Model("ada", "Answer: 7.0", model)
    team = TeamSettings(pool="mine", conductor=ConductorSettings(worker="lead"))
    tasks = tuple(Task(f"t/{n}", Question(text=f"What is {n}?"), "7", grader) for n in range(4))
    questions = StudyQuestions("q", tasks, "golds")
    table = questions.table(folder, team, Pool([lead.worker, ada.worker]))

    def show(what: str, done: int, total: int) -> None:
        pass

    await ask_workers(table, repeats=1, reached=0, budget_usd=None, call_state=CallState(), show=show)
    before = lead.calls
    measured, _ = await measure_conductors(
        table, StudyAnswers.read(table), CallState(), count=4, checkpoint=None, seed="0", show=show
    )
    plain = next(row for row in measured if row.name == PLAIN)
    return lead.calls - before, float(plain.score_Q.mean())


async def test_study_runs_a_conductor_again_after_a_grader_change(tmp_path: Path) -> None:
    calls, accuracy = await conducted(tmp_path, Exact(), "m")
    assert (calls > 0, accuracy) == (True, 0.0)
    assert await conducted(tmp_path, Exact(), "m") == (0, 0.0)
    calls, accuracy = await conducted(tmp_path, Numeric(), "m")
    assert (calls > 0, accuracy) == (True, 1.0)


async def test_a_conductor_is_run_again_where_a_worker_is_another_model(tmp_path: Path) -> None:
    await conducted(tmp_path, Exact(), "m")
    assert (await conducted(tmp_path, Exact(), "m"))[0] == 0
    assert (await conducted(tmp_path, Exact(), "n"))[0] > 0
