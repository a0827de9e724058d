import asyncio
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from podium.config import build
from podium.errors import ConfigError, GraderError
from podium.rollout.data_fingerprint import grader_settings, value_digest
from podium.tasks.overlap import question_key
from podium.tasks.sets.base import task_key
from podium.tasks.sets.inspect_task import InspectTask
from podium.types import Message

TASKS = Path(__file__).parent / "inspect_tasks.py"


def read(name, **settings):
    return InspectTask(task=f"{TASKS}@{name}", **settings).read_splits(("test",))["test"]


def only(name, **settings):
    (task,) = read(name, **settings).tasks
    return task


def grade(task, response):
    return asyncio.run(task.grade(response))


def test_a_question_has_the_prompt_of_the_tasks_solver():
    first, second = read("sums").tasks
    assert (first.id, second.id) == ("inspect/sums/1", "inspect/sums/2")
    assert first.question.text == "Think.\nWhat is 1 + 1?"
    assert first.question.history == (Message(role="system", content="Be exact."),)
    assert (first.gold, second.gold) == ("2", "4")
    assert task_key(first) == question_key("What is 1 + 1?")


def test_an_inspect_without_its_loader_names_a_release_that_has_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "inspect_ai._eval.loader", None)
    with pytest.raises(ConfigError, match="pip install inspect-ai==") as refused:
        read("sums")
    assert version("inspect-ai") in str(refused.value)


def test_without_its_solver_the_question_is_the_input_alone():
    first = read("sums", solver="plain").tasks[0]
    assert (first.question.text, first.question.history) == ("What is 1 + 1?", ())


def test_a_chat_is_a_question_with_a_past_and_any_target_is_right():
    task = only("chat")
    assert task.question.text == "What is the capital of France?"
    assert [message.role for message in task.question.history] == ["system", "user", "assistant"]
    assert task.gold == "Paris\nPaname"
    assert [grade(task, said).score for said in ("Paris", "Paname", "Rome", "")] == [1, 1, 0, 0]


@pytest.mark.parametrize(
    ("name", "solver"), [("options", "task"), ("options", "plain"), ("bare_options", "plain")]
)
def test_choices_have_letters_and_the_letter_is_the_answer(name, solver):
    task = only(name, solver=solver)
    assert task.question.text.endswith("Which is in France?\n\nA) Rome\nB) Paris\nC) Bern")
    graded = {said: grade(task, said) for said in ("ANSWER: B", "ANSWER: C", "ANSWER: A,B,C", "Paris", "")}
    assert [g.score for g in graded.values()] == [1, 0, 0, 0, 0]
    assert graded["ANSWER: C"].found == "C"


def test_inspects_scorer_is_the_grader_however_often_it_is_called():
    task = only("lettered")
    for _ in range(2):
        assert grade(task, "I think.\nANSWER: Paris").score == 1
        assert grade(task, "ANSWER: Rome, or Paris").score == 0


@pytest.mark.parametrize(
    ("said", "score"),
    [("C", 1), ("I", 0), ("P", 0.5), ("N", 0), ("yes", 1), (True, 1), (False, 0), (0.25, 0.25), (1, 1)],
)
def test_a_verdict_of_inspects_is_a_score(said, score):
    found = grade(only("verdict", args={"value": said}), "Well.")
    assert (found.score, found.found) == (score, "it")


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (2, "the scorer's verdict is 2; a grade is C, P, I, N or a number from 0 to 1."),
        (-0.5, "the scorer's verdict is -0.5;"),
        (float("nan"), "the scorer's verdict is nan;"),
        ("good", "the scorer's verdict is 'good';"),
        ([1, 0], r"the scorer's verdict is \[1, 0\];"),
        ("nothing", "the scorer's verdict is None;"),
        ("raise", "the scorer failed: no verdict today"),
    ],
)
def test_invalid_inspect_verdict_is_a_grader_failure(said, sentence):
    with pytest.raises(GraderError, match=f"inspect_tasks.py@verdict, sample 1: {sentence}"):
        grade(only("verdict", args={"value": said}), "Well.")


def test_a_scorer_that_calls_a_model_is_refused_unless_one_is_named(monkeypatch):
    assert grade(only("judged", args={"named": True}), "Paris").score == 1
    monkeypatch.delenv("INSPECT_EVAL_MODEL", raising=False)
    with pytest.raises(ConfigError, match=r"model_graded_qa .* calls a model; set INSPECT_EVAL_MODEL"):
        read("judged", args={"named": False})
    monkeypatch.setenv("INSPECT_EVAL_MODEL", "mockllm/model")
    assert len(read("judged", args={"named": False}).tasks) == 1


@pytest.mark.parametrize(
    ("by", "sentence"),
    [
        ("tools", 'the solver gives tools, and Podium\'s workers use none; set solver = "plain"'),
        ("silent", 'the solver does not call the model; set solver = "plain"'),
        ("broken", "sample france: the solver failed: out of order"),
    ],
)
def test_a_solver_without_a_plain_question_is_refused_with_the_way_out(by, sentence):
    with pytest.raises(ConfigError, match=sentence):
        read("solved", args={"by": by})
    assert grade(only("solved", args={"by": by}, solver="plain"), "Paris").score == 1


@pytest.mark.parametrize("by", ["twice", "critique"])
def test_a_solver_that_calls_the_model_again_is_a_grader_failure(by):
    with pytest.raises(GraderError, match='the solver calls the model again; set solver = "plain"'):
        grade(only("solved", args={"by": by}), "Paris")


def test_a_solver_that_shuffles_is_refused_when_read_or_fails_in_grading():
    def read_and_grade():
        for _ in range(20):  # three choices: once in six, two orders are the same
            grade(only("options", args={"shuffle": True}), "ANSWER: B")

    with pytest.raises((ConfigError, GraderError), match="does it shuffle"):
        read_and_grade()


def test_samples_that_are_no_questions_are_refused_or_counted():
    with pytest.raises(ConfigError) as refused:
        read("mixed")
    assert str(refused.value) == (
        f"{TASKS}@mixed, sample 2: The chat holds image content, and Podium's workers read text alone; "
        'on_bad_row = "skip" leaves such samples out.'
    )
    reading = read("mixed", on_bad_row="skip")
    assert [task.id for task in reading.tasks] == ["inspect/mixed/france"]
    assert dict(reading.skipped) == {
        "The chat holds image content, and Podium's workers read text alone.": 1,
        "the id 'inspect/mixed/france' came before; give each sample its own.": 1,
        "the target is empty; give the sample one.": 1,
        "the question is empty; give the sample an input.": 1,
    }


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"task": f"{TASKS}@boxed"}, "works in a sandbox of Inspect's"),
        ({"task": f"{TASKS}@ungraded"}, "has no scorer"),
        ({"task": f"{TASKS}@empty"}, "has no samples"),
        ({"task": f"{TASKS}@summs"}, "cannot be made: Task named 'summs' not found."),
        ({"task": f"{TASKS}@solved", "args": {"by": "magic"}}, "cannot be made: 'magic'"),
        ({"task": f"{TASKS}@sums", "args": {"cuont": 3}}, "takes no argument 'cuont'; did you mean 'count'?"),
        ({"task": "nowhere.py@sums"}, "cannot be made: "),
        ({"task": "no_package/sums"}, "names no task; write package/task or file.py@task."),
        ({"task": str(TASKS)}, "cannot be made: "),
    ],
)
def test_a_task_that_cannot_be_a_set_is_refused_in_one_sentence(settings, sentence):
    with pytest.raises(ConfigError) as refused:
        InspectTask(**settings).read_splits(("test",))["test"]
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_grader_digest_differs_by_inspect_scorer_and_arguments():
    names = ("sums", "lettered", "options", "chat")
    tasks = [read(name).tasks[0] for name in names]
    tasks += [only("verdict", args={"value": value}) for value in ("C", "I")]
    graders = {value_digest(grader_settings(task.grader)) for task in tasks}
    assert len(graders) == len(tasks)
    assert value_digest(grader_settings(read("sums").tasks[0].grader)) in graders


def test_arguments_are_passed_to_the_inspect_task():
    assert len(read("sums", args={"count": 5}).tasks) == 5


async def test_a_set_is_read_and_graded_where_an_event_loop_runs():
    task = only("lettered")
    assert (await task.grade("ANSWER: Paris")).score == 1


def test_a_file_is_seen_from_the_task_files_folder_and_a_package_is_not():
    table = {"set": "inspect", "task": "theory.py@sums", "args": {"count": 3}}
    spec = build(table, InspectTask)
    assert spec.with_base_dir(Path("/sets")).task == "/sets/theory.py@sums"
    assert spec.with_base_dir(Path("/sets")).label == spec.label == "sums"
    assert InspectTask(task="evals/gsm8k").with_base_dir(Path("/sets")).task == "evals/gsm8k"
    assert spec.splits == ("test",)


def test_without_inspect_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    with pytest.raises(ConfigError, match=r"install it with: pip install 'podium-conductor\[inspect\]'"):
        InspectTask(task="evals/gsm8k").read_splits(("test",))["test"]
