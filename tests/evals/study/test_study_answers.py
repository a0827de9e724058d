"""What a study asks, keeps and reads: nobody is asked twice, and the arrays are those of the recording."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from podium.calls import CallState
from podium.errors import UsageError
from podium.evals.answer_files import AnswerFiles
from podium.evals.evaluation import evaluate
from podium.evals.question_table import AskingProgress, QuestionTable, answer_table
from podium.evals.rating import read_answers
from podium.evals.study.answers import StudyAnswers, ask_workers
from podium.evals.study.judges import NoVerdictGrader, OutcomeGrader, PoolJudge, near_misses
from podium.evals.study.questions import StudyQuestions, load_study_questions
from podium.planners import Single
from podium.recordings import RecordedQuestion, RecordedResponse, Recording, RecordingWriter
from podium.spending.shared_spend_limit import SharedSpendLimit
from podium.tasks.graders.math_graders import Numeric
from podium.tasks.graders.text_graders import Exact, Normalised
from podium.tasks.task import Task
from podium.team import Runner
from podium.team.settings import TeamSettings
from podium.types import Limits, Price, Profile, Question
from podium.workers import Pool, ScriptedWorker
from podium.workers.function import FunctionWorker
from podium.workers.replay import ReplayWorker
from podium.workers.spec import ReplaySpec

TASKS = tuple(Task(f"t/{n}", Question(text=f"What is {n} + 0?"), f"{n}", Exact()) for n in range(5))


def team() -> Pool:
    return Pool([ScriptedWorker(name, {"": "Answer: 3"}) for name in ("ada", "bob")])


def table_of(folder: Path, pool: Pool, tasks: tuple[Task, ...], concurrency: int = 16) -> QuestionTable:
    questions = StudyQuestions("mine", tasks, "golds")
    return questions.table(folder, TeamSettings(pool="mine"), pool, concurrency)


async def ask(
    folder: Path, pool: Pool, tasks: tuple[Task, ...], *, repeats: int = 1, reached: int = 0
) -> AskingProgress:
    return await ask_workers(
        table_of(folder, pool, tasks),
        repeats=repeats,
        reached=reached,
        budget_usd=None,
        call_state=CallState(),
        show=lambda what, done, total: None,
    )


def calls(pool: Pool) -> list[int]:
    return [len(worker.requests) for worker in pool if isinstance(worker, ScriptedWorker)]


async def test_only_questions_that_changed_are_asked_again(tmp_path: Path) -> None:
    first, again, more = team(), team(), team()
    assert (await ask(tmp_path, first, TASKS)).kept == 10
    changed = (
        replace(TASKS[0], question=Question(text="Is 3 odd?")),
        replace(TASKS[1], gold="3"),
        *TASKS[2:],
    )
    assert (await ask(tmp_path, again, changed)).kept == 10
    assert (calls(first), calls(again)) == ([5, 5], [2, 2])
    found = StudyAnswers.read(table_of(tmp_path, again, changed))
    assert found.answers.score_QW.tolist() == [[0, 0], [1, 1], [0, 0], [1, 1], [0, 0]]
    assert (await ask(tmp_path, more, changed, repeats=2)).kept == 20
    assert calls(more) == [5, 5]


async def test_wrong_answers_with_the_words_of_the_right_one_are_counted(tmp_path: Path) -> None:
    capitals = tuple(
        Task(f"t/{n}", Question(text=f"{n}. Which capital?"), gold, Exact())
        for n, gold in enumerate(("Paris", "Rome", "Paris."))
    )
    pool = Pool([ScriptedWorker("ada", {"": "It is Paris."}), ScriptedWorker("bob", {"": "Paris"})])
    await ask(tmp_path, pool, capitals)
    found = StudyAnswers.read(table_of(tmp_path, pool, capitals))
    assert found.answers.score_QW.tolist() == [[0, 1], [0, 0], [0, 1]]
    assert (found.misjudged.wrong, found.misjudged.with_words) == (4, 2)


async def test_a_short_right_answer_in_a_wrong_one_says_nothing_of_the_grader(tmp_path: Path) -> None:
    tasks = tuple(replace(task, gold=gold) for task, gold in zip(TASKS, ("no", "none"), strict=False))
    pool = Pool([ScriptedWorker(name, {"": "There is no answer, none."}) for name in ("ada", "bob")])
    await ask(tmp_path, pool, tasks)
    misjudged = StudyAnswers.read(table_of(tmp_path, pool, tasks)).misjudged
    assert (misjudged.wrong, misjudged.with_words) == (4, 2)


@pytest.mark.parametrize(
    ("host", "budget_usd", "alternate"), [("box", None, False), ("box", 1.0, True), (None, None, True)]
)
async def test_models_of_one_machine_alternate_only_for_a_budget(
    tmp_path: Path, host: str | None, budget_usd: float | None, alternate: bool
) -> None:
    asked: list[str] = []

    def worker(name: str) -> FunctionWorker:
        def answer(messages: list[dict[str, str]]) -> str:
            asked.append(name)
            return "Answer: 3"

        return FunctionWorker(Profile(name=name), answer, limits=Limits(host=host))

    await ask_workers(
        table_of(tmp_path, Pool([worker("ada"), worker("bob")]), TASKS, concurrency=1),
        repeats=1,
        reached=0,
        budget_usd=budget_usd,
        call_state=CallState(),
        show=lambda what, done, total: None,
    )
    changes = sum(before != after for before, after in itertools.pairwise(asked))
    assert (len(asked), changes) == (10, 9 if alternate else 1)


async def test_the_progress_shows_the_dollars_that_were_paid(tmp_path: Path) -> None:
    shown: list[str] = []
    with closing(SharedSpendLimit(None, "run", 1.0)) as limit:
        limit.settle(0.0, 0.25)  # Such as a judge's call.
        await ask_workers(
            table_of(tmp_path, team(), TASKS),
            repeats=1,
            reached=0,
            budget_usd=None,
            call_state=CallState(spend_limits=[limit]),
            show=lambda what, done, total: shown.append(what),
        )
    assert len(shown) == 11
    assert all(what.endswith("$0.2500 so far") for what in shown[1:])


async def test_another_grader_judges_the_kept_answers_anew(tmp_path: Path) -> None:
    pool = team()
    await ask(tmp_path, pool, TASKS)
    lenient = tuple(replace(task, grader=Normalised()) for task in TASKS)
    with pytest.raises(UsageError, match="Too few questions"):
        StudyAnswers.read(table_of(tmp_path, pool, lenient))
    await ask(tmp_path, pool, lenient)
    assert len(StudyAnswers.read(table_of(tmp_path, pool, lenient)).tasks) == 5


async def test_one_row_with_another_grader_asks_that_question_alone(tmp_path: Path) -> None:
    await ask(tmp_path, team(), TASKS)
    again = team()
    await ask(tmp_path, again, (replace(TASKS[0], grader=Normalised()), *TASKS[1:]))
    assert calls(again) == [1, 1]


def judge(name: str, model: str) -> PoolJudge:
    """A judge that calls all answers right, whatever the model."""
    worker = FunctionWorker(Profile(name=name), lambda messages: "RIGHT", identity={"model": model})
    return PoolJudge(Pool([worker]), name, CallState())


async def test_verdicts_on_each_question_wait_in_a_queue_of_their_own() -> None:
    asked: list[str] = []

    def decide(messages: list[dict[str, str]]) -> str:
        asked.append("first" if "2 + 2?" in messages[-1]["content"] else "second")
        return "RIGHT"

    worker = FunctionWorker(Profile(name="a"), decide, limits=Limits(concurrency=1))
    call_state = CallState()
    judges = PoolJudge(Pool([worker]), "a", call_state)
    limiter = call_state.channel(worker).rate_limiter
    in_flight = await limiter.acquire("another", 1)
    async with asyncio.TaskGroup() as group:
        for answer in ("3", "4", "5"):
            group.create_task(judges.score("2 + 2?", answer))
        group.create_task(judges.score("3 + 3?", "6"))
        await asyncio.sleep(0.05)
        assert limiter.waiting == 4
        limiter.release(in_flight, 1)
    assert asked[:2] == ["first", "second"]


async def test_study_uses_verdicts_of_the_current_judge_and_user_feedback(tmp_path: Path) -> None:
    unknown = StudyQuestions("mine", TASKS, "agreement")

    async def asked(questions: StudyQuestions) -> list[int]:
        pool = team()
        await ask(tmp_path, pool, questions.tasks)
        return calls(pool)

    assert await asked(unknown.with_judge(judge("a", "m"))) == [5, 5]
    assert await asked(unknown.with_judge(judge("a", "m"))) == [0, 0]
    assert await asked(unknown.with_judge(judge("b", "m"))) == [5, 5]
    assert await asked(unknown.with_judge(judge("b", "n"))) == [5, 5]
    for right in ("3", "4"):
        grader = OutcomeGrader(frozenset([right]), frozenset(), NoVerdictGrader())
        told = replace(
            unknown, tasks=(replace(TASKS[0], grader=grader), *unknown.with_judge(judge("b", "n")).tasks[1:])
        )
        assert await asked(told) == [1, 1], right
        assert await asked(told) == [0, 0], right


async def test_a_file_of_answers_is_read_once_before_its_questions_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []
    lines = AnswerFiles.lines

    def counted(files: AnswerFiles, key: str) -> tuple[str, ...]:
        reads.append(key)
        return lines(files, key)

    monkeypatch.setattr(AnswerFiles, "lines", counted)
    pool = team()
    table = table_of(tmp_path, pool, TASKS)
    planners = [table.alone(name) for name in pool.names]
    await answer_table([table.with_questions(TASKS[:3]).alone(name) for name in pool.names], CallState())
    assert sorted(reads) == sorted(planner.key for planner in planners)
    await answer_table(planners, CallState())
    assert calls(pool) == [5, 5]
    assert [planner.missing() for planner in planners] == [0, 0]


async def test_study_repeats_a_fifth_of_questions_but_votes_use_one_answer(tmp_path: Path) -> None:
    pool = team()
    assert (await ask(tmp_path, pool, TASKS, reached=5)).wanted == 12
    found = StudyAnswers.read(table_of(tmp_path, pool, TASKS))
    assert found.answers.samples == 1
    assert found.repeated.own_samples_QW is not None
    assert found.repeated.own_samples_QW.tolist() == [[2, 2], *[[1, 1]] * 4]


async def test_study_says_why_repeated_answers_do_not_count(tmp_path: Path) -> None:
    pool = team()
    await ask(tmp_path, pool, TASKS, repeats=2)
    table = table_of(tmp_path, pool, TASKS)
    assert StudyAnswers.read(table, repeats=2).notes == ()
    file = tmp_path / "results" / f"{table.alone('bob').key}.jsonl"
    *kept, _ = file.read_text().splitlines(keepends=True)
    file.write_text("".join(kept))
    found = StudyAnswers.read(table, repeats=2)
    assert found.answers.samples == 1
    assert any("1 of 5 questions lack" in note for note in found.notes)


async def test_a_worker_that_hardly_answers_is_left_out(tmp_path: Path) -> None:
    moody = ScriptedWorker("cy", {TASKS[3].question.text: "Answer: 3"})
    pool = Pool([*team(), moody])
    assert (await ask(tmp_path, pool, TASKS)).failed == 4
    found = StudyAnswers.read(table_of(tmp_path, pool, TASKS))
    assert found.answers.workers == ("ada", "bob")
    assert len(found.tasks) == 5
    with pytest.raises(UsageError, match="No worker answered"):
        await ask(tmp_path / "other", Pool([ScriptedWorker("cy", {})]), TASKS)


async def test_the_arrays_are_those_of_the_recording(tmp_path: Path) -> None:
    with RecordingWriter() as writer:
        for n in range(12):
            writer.add_question(RecordedQuestion(f"q{n}", f"Which, {n}?", "1", None, "test"))
            for name, every in (("ada", 2), ("bob", 3)):
                for sample in range(2):
                    said = 1 if n % every == 0 else 2 + (n + sample) % 2
                    text, found = ("I cannot say.", None) if n == 5 else (f"Answer: {said}", f"{said}")
                    writer.add(
                        f"q{n}", RecordedResponse(name, sample, text, found, float(said == 1), 10, n + 1)
                    )
        writer.write(tmp_path / "r.parquet", name="r")
    recording, price = Recording.open(tmp_path / "r.parquet"), Price(output=3.0)
    workers = [
        ReplayWorker(ReplaySpec(name=name, price=price, recording=recording.path), recording)
        for name in ("ada", "bob")
    ]
    questions = load_study_questions(str(tmp_path / "r.parquet"), pool=Pool(workers))
    assert (await ask(tmp_path, Pool(workers), questions.tasks, repeats=2)).kept == 48
    found = StudyAnswers.read(table_of(tmp_path, Pool(workers), questions.tasks))
    expected = await read_answers(list(found.tasks), workers)
    for name in ("answer_QWR", "alone_QWR", "voted_QWR"):
        assert np.array_equal(getattr(found.answers, name), getattr(expected, name)[:, :, :2]), name
    assert np.array_equal(found.answers.score_QW, expected.score_QW)
    assert np.allclose(found.answers.cost_QW, expected.cost_QW)


def test_a_number_that_ends_a_text_judged_wrong_is_a_near_miss(tmp_path: Path) -> None:
    texts = {"1": "It happened in 1969.", "2": "It happened in 1968.", "3": "No idea."}
    tasks = tuple(Task(f"t/{n}", Question(text=f"When? {n}"), "1969", Numeric()) for n in texts)
    asked = asyncio.run(
        evaluate(
            Runner(Single("ada"), Pool([ScriptedWorker("ada", {f"When? {n}": t for n, t in texts.items()})])),
            tasks,
        )
    )
    found = near_misses((task, [rollout]) for task, rollout in zip(tasks, asked.rollouts, strict=True))
    assert (found.wrong, found.with_words) == (3, 1)
