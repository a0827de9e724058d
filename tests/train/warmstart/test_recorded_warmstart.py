"""The warm start on a recording teaches its questions' text and the form of plans, and not who is right."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from statistics import fmean

import pytest

from podium.baselines.plans import VOTE
from podium.conductor.checkpoint import Checkpoint
from podium.conductor.codec import Codec
from podium.conductor.prompt import PromptSettings, build_prompt, shortened
from podium.errors import ConfigError
from podium.planner import Outcome, Situation
from podium.recordings import Recording, Response
from podium.train.warmstart.lessons import Lesson, Shares
from podium.train.warmstart.material import Material, RecordedSettings, Source, open_material
from podium.train.warmstart.pretraining import WarmStartSettings, WarmStartStage
from podium.train.warmstart.recorded_lessons import (
    MOST_STEPS,
    Course,
    Read,
    draw_lesson,
    kind_in,
    random_committee,
)
from podium.train.warmstart.run import run_warmstart
from podium.train.weights import read_model
from podium.types import Profile, Question
from podium.workflow import Acceptance, Workflow, parse, render

MakeRecording = Callable[..., Recording]
PROFILES = tuple(Profile(name=name) for name in ("ada", "bob", "vote"))
POOL = tuple(Profile(name=name) for name in ("ada", "bob", "cy", VOTE, "dee", "eve"))
"""The voting tool in the middle."""
QUESTIONS = (
    Read("How much is 3 plus 4?", "plus much", ("7", "a long answer, of which the middle is not shown " * 3)),
    Read("Which town lies on the Rhine?", "town rhine", ("Bonn", "Bonn", "Ulm")),
    Read("Name a prime.", "prime name", ()),
)
PROMPT = PromptSettings(style="brief", examples=0, question_chars=700, answer_chars=60)


def open_small(*sources: Source, kinds: int = 0) -> Material:
    return open_material(RecordedSettings(sources, kinds=kinds, thrift=(), question_chars=100, taught=False))


def source(recording: Recording) -> Source:
    """A recording with a pool file of its workers and a vote."""
    worker = '[[worker]]\nname = "{0}"\nkind = "replay"\nrecording = "{1}"\n'
    pool = recording.path.with_suffix(".toml")
    pool.write_text(
        "".join(worker.format(name, recording.path.name) for name in recording.workers)
        + '[[worker]]\nname = "vote"\nkind = "vote"\n'
    )
    return Source(tasks=str(recording.path), pool=str(pool))


def sums(make_recording: MakeRecording, score: float = 1.0) -> Source:
    """30 questions, of which 24 are for training, and two workers."""
    given = {
        f"How much is {number} plus {number + 3}? " + "Think of it. " * number: [
            Response(worker, 0, "Answer: 7", "7", score) for worker in ("ada", "bob")
        ]
        for number in range(30)
    }
    splits = {text: "train" if place < 24 else "validation" for place, text in enumerate(given)}
    return source(make_recording(given, splits=splits, name=f"of-{score:g}"))


def rivers(make_recording: MakeRecording) -> Source:
    """20 questions of another wording, and a worker of another name."""
    given = {
        f"Which river flows through town {number}?": [
            Response("someone", 0, "The Rhine", f"Rhine {number}", 1.0)
        ]
        for number in range(20)
    }
    return source(make_recording(given, splits=dict.fromkeys(given, "train"), name="rivers"))


def test_lessons_come_from_training_questions_and_know_no_verdict(
    make_recording: MakeRecording,
) -> None:
    right, wrong = (open_small(sums(make_recording, score)) for score in (1.0, 0.0))
    stage = WarmStartStage(steps=1)
    draws = [material.draw(stage.shares, 0.0) for material in (right, wrong)]
    lessons = [draws[0]("0", index) for index in range(60)]
    assert lessons == [draws[1]("0", index) for index in range(60)]
    texts = ["".join([lesson.prompt, *(text for text, _ in lesson.pieces)]) for lesson in lessons]
    asked = {int(text.removeprefix("Question: How much is ").split(" ")[0]) for text in texts}
    assert asked <= set(range(24))
    assert len(asked) > 15
    plans = [lesson for lesson in lessons if lesson.prompt]
    assert 0 < len(plans) < len(lessons)
    for lesson in plans:
        assert isinstance(decision(lesson), Workflow | Acceptance)


def plans(
    count: int, *, later: float, questions: Sequence[Read] = QUESTIONS, levels: int = 0
) -> list[Lesson]:
    """Lessons that are plans, of one course."""
    return [
        draw_lesson(
            "plans",
            index,
            courses=[Course(tuple(questions), POOL)],
            prompt=PROMPT.model_copy(update={"levels": levels}),
            shares=Shares(plan=1, reading=0),
            later=later,
        )
        for index in range(count)
    ]


def shown_team(lesson: Lesson) -> list[str]:
    """Names of the workers in a lesson's prompt, in order."""
    numbered = re.findall(r"^(\d+): (\w+): ", lesson.prompt, flags=re.MULTILINE)
    assert [int(number) for number, _ in numbered] == list(range(len(numbered)))
    return [name for _, name in numbered]


def written(lesson: Lesson) -> str:
    """What follows on a lesson's prompt."""
    return "".join(text for text, _ in lesson.pieces)


def decision(lesson: Lesson) -> object:
    """What a lesson's plan is to its own prompt."""
    assert all(learned for text, learned in lesson.pieces if text)
    later = "\nEarlier plan:\n" in lesson.prompt
    return parse(written(lesson), workers=len(shown_team(lesson)), max_steps=MOST_STEPS, later_round=later)


def test_every_plan_can_be_run_by_the_team_that_its_prompt_shows() -> None:
    lessons = plans(300, later=0.5)
    assert len({tuple(shown_team(lesson)) for lesson in lessons}) > 30
    for lesson in lessons:
        team, found = shown_team(lesson), decision(lesson)
        if isinstance(found, Workflow):
            *committee, last = [team[step.worker] for step in found.steps]
            assert VOTE not in committee
            assert (last == VOTE) == bool(committee)
        else:
            assert found == Acceptance()


def test_after_an_earlier_round_every_second_plan_accepts_and_never_before() -> None:
    first, mixed, later = (plans(300, later=share) for share in (0.0, 0.3, 1.0))
    assert not any("Earlier" in lesson.prompt for lesson in first)
    assert all(isinstance(decision(lesson), Workflow) for lesson in first)
    assert 0.2 < fmean("\nEarlier plan:\n" in lesson.prompt for lesson in mixed) < 0.4
    assert all("\nEarlier plan:\n" in lesson.prompt for lesson in later)
    assert 0.4 < fmean(decision(lesson) == Acceptance() for lesson in later) < 0.6


def test_an_earlier_round_was_a_plan_for_the_same_team_and_answered_as_its_workers_would() -> None:
    for lesson in plans(300, later=1.0):
        question, earlier = lesson.prompt.split("\nEarlier plan:\n")
        plan, rest = earlier.split("\nEarlier answer: ")
        answer, _ = rest.split("\nSteps: 6\n")
        workflow = parse(plan, workers=len(shown_team(lesson)), max_steps=MOST_STEPS)
        assert isinstance(workflow, Workflow)
        (asked,) = [read for read in QUESTIONS if question.startswith(f"Question: {read.text}\n")]
        steps = len(workflow.steps)
        texts = asked.answers or ("",)
        if steps > 1:
            votes = [f"{agree} of {steps - 1} responses agree.\nAnswer: " for agree in range(1, steps)]
            texts = [vote + text for vote in votes for text in texts]
        assert answer in [shortened(text, 60) for text in texts]


def test_a_plan_comes_after_the_kind_of_its_question_who_answers_and_the_number_of_its_steps() -> None:
    for lesson in plans(100, later=0.5):
        (asked,) = [read for read in QUESTIONS if lesson.prompt.startswith(f"Question: {read.text}\n")]
        found = decision(lesson)
        steps = len(found.steps) if isinstance(found, Workflow) else 0
        answering = [step.worker for step in found.steps[: max(1, steps - 1)]] if steps else []
        thought, plan = written(lesson).split("\n", 1)
        assert thought == f"{asked.kind}{''.join(map(str, answering))}; steps {steps}"
        assert plan == render(found)
    for lesson in plans(20, later=0.5, questions=[Read("What?", "", ())]):
        assert re.match(r"\d*; steps \d\nmodel_id = ", written(lesson))


def test_plans_for_a_kind_have_nothing_to_do_with_the_question_its_answers_or_the_level_of_thrift() -> None:
    others = [
        Read(f"Something else, {number}?", read.kind, ("x",) * len(read.answers))
        for number, read in enumerate(QUESTIONS)
    ]
    for one, other in (
        (plans(100, later=0.5), plans(100, later=0.5, questions=others)),
        (plans(100, later=0.0), plans(100, later=0.0, levels=4)),
    ):
        assert [lesson.prompt for lesson in one] != [lesson.prompt for lesson in other]
        assert [lesson.pieces for lesson in one] == [lesson.pieces for lesson in other]


def test_a_prompt_names_a_level_of_thrift_where_there_are_some() -> None:
    named = [
        re.findall(r"^Thrift: (\d+)$", lesson.prompt, flags=re.MULTILINE)
        for lesson in plans(100, later=0.5, levels=3)
    ]
    assert {tuple(levels) for levels in named} == {("0",), ("1",), ("2",)}
    assert not any("Thrift" in lesson.prompt for lesson in plans(100, later=0.5))


def test_further_recordings_are_read_with_their_own_pools_and_sorted_into_kinds_with_the_first(
    make_recording: MakeRecording,
) -> None:
    material = open_small(sums(make_recording), rivers(make_recording), kinds=2)
    draw = material.draw(Shares(plan=1, reading=0), 0.0)
    kinds_of: dict[bool, set[str]] = {True: set(), False: set()}
    for index in range(200):
        lesson = draw("0", index)
        about_rivers = lesson.prompt.startswith("Question: Which river flows")
        kinds_of[about_rivers].add(kind_in(written(lesson)))
        assert ("Rhine" in lesson.prompt) <= about_rivers
        assert set(shown_team(lesson)) == ({"someone", VOTE} if about_rivers else {"ada", "bob", VOTE})
    (first,), (second,) = kinds_of[False], kinds_of[True]
    assert set(first.removeprefix("#").split("-")) <= {"plus", "think"}
    assert set(second.removeprefix("#").split("-")) <= {"river", "flows", "town"}
    assert list(material.words) == sorted([first, second])
    assert first[0] == second[0] == "#"


def test_recordings_are_read_as_often_as_they_have_questions(make_recording: MakeRecording) -> None:
    draw = open_small(sums(make_recording), rivers(make_recording)).draw(Shares(plan=1, reading=0), 0.0)
    share = fmean("Question: Which river flows" in draw("0", index).prompt for index in range(600))
    assert share == pytest.approx(20 / 44, abs=0.07)


@pytest.mark.parametrize(
    ("text", "chars", "shown"),
    [
        ("short", 20, "short"),
        ("a" * 20 + "b" * 20, 30, "a" * 20 + " ... " + "b" * 10),
        ("a" * 99, None, "a" * 99),
    ],
)
def test_a_long_question_and_a_long_earlier_answer_lose_their_middle(
    text: str, chars: int | None, shown: str
) -> None:
    assert shortened(text, chars) == shown
    settings = PromptSettings(style="brief", question_chars=chars, answer_chars=chars)
    outcome = Outcome(random_committee(Random("0"), PROFILES), text)
    (message,) = build_prompt(Situation(Question(text=text), PROFILES, outcomes=(outcome,)), settings)
    assert message.content.startswith(f"Question: {shown}\nModels:\n0: ada")
    assert f"\nEarlier answer: {shown}\nSteps: 5\n" in message.content


def test_a_small_warm_start_on_a_recording_leaves_a_policy_that_is_asked_in_its_way(
    make_recording: MakeRecording, tmp_path: Path
) -> None:
    first, second = sums(make_recording), rivers(make_recording)
    settings = WarmStartSettings(
        tasks=first.tasks, pool=first.pool, also=(second,), kinds=2, question_chars=60,
        stages=(WarmStartStage(steps=60),), batch=16,
        vocabulary=600, vocabulary_lessons=100, hidden=32, layers=1, heads=2, kv_heads=1, inner=64,
    )  # fmt: skip
    rows = []
    reports = run_warmstart(settings, tmp_path / "run", show=rows.append, gate_cases=6)
    assert rows[-1]["loss"] < rows[0]["loss"]
    assert reports.keys() == {"form"}
    checkpoint = Checkpoint.read(tmp_path / "run" / "policy")
    assert checkpoint.prompt == PromptSettings(style="brief", examples=0, question_chars=60, answer_chars=60)
    codec, kinds = Codec.of(checkpoint), open_material(settings.recorded).words
    assert len(kinds) == 2
    for kind in kinds:
        number, *rest = codec.encode_completion(f"{kind}0; steps 1\nmodel_id = [0]")
        assert codec.decode([number]) == kind
        assert codec.decode([number, *rest]) == f"{kind}0; steps 1\nmodel_id = [0]"
    assert read_model(checkpoint).shape.vocab == checkpoint.tokenizer().get_vocab_size()


def test_a_recording_that_is_not_there_is_said_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such file"):
        open_small(Source(tasks=str(tmp_path / "none.parquet"), pool="embedded"))
