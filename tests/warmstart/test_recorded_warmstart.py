"""The warm start on recordings: their training questions and pools are read, and kinds come from the pools' ratings."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import fmean

import pytest
from lesson_reading import by_percent, committee, decision, kind_in, shown_team, written
from pydantic import ValidationError

from podium.baselines.plans import VOTE
from podium.conductor.checkpoint import Checkpoint
from podium.conductor.codec import Codec
from podium.conductor.prompt import PromptSettings, build_prompt, rating_words, shortened
from podium.errors import ConfigError
from podium.planner import Outcome, PlanRequest
from podium.recordings import Recording, Response
from podium.train.checkpoints import read_model
from podium.types import Profile, Question
from podium.warmstart.data import DataSource, RecordedSettings, SourceSettings, open_data
from podium.warmstart.examples import Shares
from podium.warmstart.recorded_examples import random_committee
from podium.warmstart.supervised import SupervisedStage, WarmStartSettings, run_warmstart
from podium.workflow import Acceptance, Workflow

MakeRecording = Callable[..., Recording]
PROFILES = tuple(Profile(name=name) for name in ("ada", "bob", "vote"))
PLANS = Shares(plan=1, reading=0)
SUMS, RIVERS = "plus-much", "river-town"
ACCURACIES = {"ada": 0.5, "bob": 0.4, "someone": 0.3}
"""What workers are rated at, where they are, whatever the verdicts say."""
MEANT = by_percent(ACCURACIES)


def open_small(*sources: SourceSettings, from_verdicts: bool = False) -> DataSource:
    return open_data(
        RecordedSettings(sources, cost_weights=(), question_chars=100, from_verdicts=from_verdicts)
    )


def source(recording: Recording, *, kind: str = "", weight: float = 1.0) -> SourceSettings:
    """A recording with a pool file of its workers and a vote, and ratings if there is a kind.

    Args:
        kind: of all questions, called by its words.
    """
    worker = '[[worker]]\nname = "{0}"\nkind = "replay"\nrecording = "{1}"\n'
    pool = recording.path.with_suffix(".toml")
    named = ""
    if kind:
        ratings = {
            "kinds": {kind: dict.fromkeys(kind.split("-"), 1.0)},
            "workers": {
                name: {kind: {"right": 100 * ACCURACIES[name], "questions": 100, "cost_usd": 0.5}}
                for name in recording.workers
            },
        }
        recording.path.with_suffix(".ratings.json").write_text(json.dumps(ratings))
        named = f'ratings = "{recording.path.stem}.ratings.json"\n'
    pool.write_text(
        named
        + "".join(worker.format(name, recording.path.name) for name in recording.workers)
        + '[[worker]]\nname = "vote"\nkind = "vote"\n'
    )
    return SourceSettings(tasks=str(recording.path), pool=str(pool), weight=weight)


def test_what_is_left_out_of_a_recording_is_reported(make_recording: MakeRecording) -> None:
    given = {
        f"How much is {number} plus {number + 3}?": [
            Response("ada", 0, "Answer: 7", "7", 1.0 if number % 10 else None)
        ]
        for number in range(30)
    }
    splits = {text: "train" if place < 24 else "validation" for place, text in enumerate(given)}
    told: list[str] = []
    examples = RecordedSettings(
        (source(make_recording(given, splits=splits)),),
        cost_weights=(),
        question_chars=100,
        from_verdicts=False,
    )
    open_data(examples, told.append)
    assert [note.partition(",")[0] for note in told] == ["small/train: 3 of 24 questions are left out"]


def sums(
    make_recording: MakeRecording, score: float = 1.0, *, kind: str = "", right: str = "", weight: float = 1.0
) -> SourceSettings:
    """30 questions, of which 24 are for training, and two workers.

    Args:
        right: who alone has the right answer, if not both or neither by the score.
    """
    given = {
        f"How much is {number} plus {number + 3}? " + "Think of it. " * number: [
            Response(worker, 0, f"Answer: {said}", said, float(worker == right) if right else score)
            for worker, said in (("ada", "7"), ("bob", "8" if right else "7"))
        ]
        for number in range(30)
    }
    splits = {text: "train" if place < 24 else "validation" for place, text in enumerate(given)}
    recording = make_recording(given, splits=splits, name=f"of-{score:g}{right}")
    return source(recording, kind=kind, weight=weight)


def rivers(make_recording: MakeRecording, *, kind: str = "", weight: float = 1.0) -> SourceSettings:
    """20 questions of another wording, and a worker of another name."""
    given = {
        f"Which river flows through town {number}?": [
            Response("someone", 0, "The Rhine", f"Rhine {number}", 1.0)
        ]
        for number in range(20)
    }
    recording = make_recording(given, splits=dict.fromkeys(given, "train"), name="rivers")
    return source(recording, kind=kind, weight=weight)


def test_lessons_come_from_training_questions_and_know_no_verdict_where_none_is_taught(
    make_recording: MakeRecording,
) -> None:
    right, wrong = (open_small(sums(make_recording, score)) for score in (1.0, 0.0))
    stage = SupervisedStage(steps=1)
    draws = [data.draw(stage.shares, 0.0) for data in (right, wrong)]
    examples = [draws[0]("0", index) for index in range(60)]
    assert examples == [draws[1]("0", index) for index in range(60)]
    texts = ["".join([example.prompt, *(text for text, _ in example.pieces)]) for example in examples]
    asked = {int(text.removeprefix("Question: How much is ").split(" ")[0]) for text in texts}
    assert asked <= set(range(24))
    assert len(asked) > 15
    plans = [example for example in examples if example.prompt]
    assert 0 < len(plans) < len(examples)
    for example in plans:
        assert isinstance(decision(example), Workflow | Acceptance)


@pytest.mark.parametrize("right", ["ada", "bob"])
def test_taught_lessons_ask_whom_the_verdicts_say_whatever_the_ratings_say(
    make_recording: MakeRecording, right: str
) -> None:
    data = open_small(sums(make_recording, right=right, kind=SUMS), from_verdicts=True)
    draw = data.draw(Shares(plan=1, reading=0, level_sweep=0, from_verdicts=1), 0.0)
    asked = Counter[tuple[str, ...]]()
    for index in range(100):
        example = draw("0", index)
        if "Earlier" not in example.prompt:
            assert isinstance(decision(example), Workflow)
            asked[committee(example, MEANT)] += 1
    assert asked[right,] > 50
    assert all(members[0] == right for members in asked), "of two that differ the first wins"


def test_with_estimates_prompts_and_plans_follow_the_question_and_not_its_cluster(
    make_recording: MakeRecording,
) -> None:
    """ada knows the questions about apples, bob those about pears; all are of one cluster."""
    given = {
        f"How much is {number} plus {number} {fruit}?": [
            Response(worker, 0, f"Answer: {said}", said, float(said == "7"))
            for worker, said in (("ada", "78"[number % 2]), ("bob", "87"[number % 2]))
        ]
        for number, fruit in ((number, ("apples", "pears")[number % 2]) for number in range(100))
    }
    splits = {text: "train" if place < 90 else "validation" for place, text in enumerate(given)}
    made = source(make_recording(given, splits=splits, name="fruit"), kind=SUMS)
    draw = open_small(made.model_copy(update={"estimates": True}), from_verdicts=True).draw(
        Shares(plan=1, reading=0, level_sweep=0, from_verdicts=1), 0.0
    )
    for index in range(60):
        example = draw("0", index)
        right, wrong = ("ada", "bob") if "apples" in example.prompt else ("bob", "ada")
        best, other = re.findall(r"^- (\d+)% \S+x: \d$", example.prompt, re.MULTILINE)
        assert (int(best) > 80, int(other) < 20) == (True, True), (
            "the estimates are certain, and the ratings are not"
        )
        if "Earlier" not in example.prompt:
            team = shown_team(example, {f"{best}%": right, f"{other}%": wrong})
            assert committee(example, {f"{best}%": right, f"{other}%": wrong})[0] == right, team


def test_questions_that_a_worker_of_the_pool_never_answered_are_left_out(
    make_recording: MakeRecording,
) -> None:
    given = {
        f"How much is {number} plus 3?": [
            Response(worker, 0, "Answer: 7", "7", 1.0) for worker in ("ada", "bob", "cy")[: 3 - number % 3]
        ]
        for number in range(30)
    }
    splits = {text: "validation" if place == 1 else "train" for place, text in enumerate(given)}
    recording = make_recording(given, splits=splits, name="partly")
    draw = open_small(source(recording), from_verdicts=True).draw(Shares(), 0.0)
    texts = [example.prompt or written(example) for example in (draw("0", index) for index in range(200))]
    asked = {int(text.removeprefix("Question: How much is ").split(" ")[0]) for text in texts}
    assert asked == set(range(0, 30, 3))


def test_further_recordings_are_read_with_their_own_pools_and_the_kinds_of_their_ratings(
    make_recording: MakeRecording,
) -> None:
    data = open_small(sums(make_recording, kind=SUMS), rivers(make_recording, kind=RIVERS))
    draw = data.draw(PLANS, 0.0)
    kinds_of: dict[bool, set[str]] = {True: set(), False: set()}
    for index in range(200):
        example = draw("0", index)
        about_rivers = example.prompt.startswith("Question: Which river flows")
        kinds_of[about_rivers].add(kind_in(written(example)))
        assert ("Rhine" in example.prompt) <= about_rivers
        own = {"someone"} if about_rivers else {"ada", "bob"}
        assert set(shown_team(example, MEANT)) == {VOTE, *own}
        assert not any(name in example.prompt + written(example) for name in ACCURACIES)
        assert f"\nKind: #{RIVERS if about_rivers else SUMS}\nModels:\n" in example.prompt
    assert kinds_of == {True: {f"#{RIVERS}"}, False: {f"#{SUMS}"}}
    assert list(data.words) == [f"#{SUMS}", f"#{RIVERS}", *rating_words()]


def test_where_no_pool_names_ratings_there_are_no_kinds_and_no_words(make_recording: MakeRecording) -> None:
    data = open_small(sums(make_recording), rivers(make_recording))
    draw = data.draw(PLANS, 0.0)
    assert list(data.words) == []
    for index in range(50):
        example = draw("0", index)
        assert kind_in(written(example)) == ""
        assert "Kind" not in example.prompt


def test_recordings_are_read_as_often_as_their_weights_say_however_many_questions_they_have(
    make_recording: MakeRecording,
) -> None:
    def share_of_rivers(*sources: SourceSettings) -> float:
        draw = open_small(*sources).draw(PLANS, 0.0)
        return fmean("Question: Which river flows" in draw("0", index).prompt for index in range(600))

    first, second = sums(make_recording), rivers(make_recording, weight=0.25)
    assert share_of_rivers(first, second) == pytest.approx(0.2, abs=0.06)
    assert share_of_rivers(first, second.model_copy(update={"weight": 1.0})) == pytest.approx(0.5, abs=0.07)


@pytest.mark.parametrize("changes", [{"weight": 0.0}, {"rounds": 0}, {"rounds": 3}])
def test_a_source_has_some_weight_and_one_round_or_two(changes: dict[str, float]) -> None:
    with pytest.raises(ValidationError, match=next(iter(changes))):
        SourceSettings.model_validate({"tasks": "some.parquet", "pool": "some.toml", **changes})


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
    (message,) = build_prompt(PlanRequest(Question(text=text), PROFILES, outcomes=(outcome,)), settings)
    assert message.content.startswith(f"Question: {shown}\nModels:\n0: ada")
    assert f"\nEarlier answer: {shown}\nSteps: 5\n" in message.content


def test_a_small_warm_start_on_recordings_leaves_a_policy_with_its_own_prompt(
    make_recording: MakeRecording, tmp_path: Path
) -> None:
    first, second = sums(make_recording, kind=SUMS), rivers(make_recording, kind=RIVERS)
    settings = WarmStartSettings(
        tasks=first.tasks, pool=first.pool, extra_sources=(second,), cost_weights=(0.0, 0.1), question_chars=60,
        stages=(
            SupervisedStage(steps=30),
            SupervisedStage(steps=30, shares=Shares(plan=1, reading=0, from_verdicts=0.9, level_sweep=0.5)),
        ),
        batch=16, vocabulary=600, vocabulary_examples=100, hidden=32, layers=1, heads=2, kv_heads=1, inner=64,
    )  # fmt: skip
    rows: list[dict[str, float]] = []
    reports = run_warmstart(settings, tmp_path / "run", show=rows.append, check_cases=6)
    assert rows[-1]["loss"] < rows[0]["loss"]
    assert reports.keys() == {"form"}
    checkpoint = Checkpoint.read(tmp_path / "run" / "policy")
    assert checkpoint.prompt == PromptSettings(
        style="brief", examples=0, question_chars=60, answer_chars=60, levels=2, rounds=True
    )
    codec, words = Codec.of(checkpoint), open_data(settings.recorded).words
    assert {f"#{SUMS}", f"#{RIVERS}", " 85%", " 0.5x"} <= set(words)
    for word in words:
        (number,) = codec.encode_completion(word)
        assert codec.decode([number]) == word
    for text in (f"#{SUMS}0; steps 1\nmodel_id = [0]", "\n- 85% 0.5x: 2"):
        assert codec.decode(codec.encode_completion(text)) == text
    assert read_model(checkpoint).shape.vocab == checkpoint.tokenizer().get_vocab_size()


def test_a_recording_that_is_not_there_is_said_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such file"):
        open_small(SourceSettings(tasks=str(tmp_path / "none.parquet"), pool="embedded"))


def test_what_one_recording_holds_out_is_no_lesson_of_another(make_recording: MakeRecording) -> None:
    def numbered(count: int) -> dict[str, list[Response]]:
        return {f"How much is {n} plus 3?": [Response("ada", 0, "Answer: 7", "7", 1.0)] for n in range(count)}

    one = make_recording(
        numbered(20), splits={text: "train" if n < 10 else "validation" for n, text in enumerate(numbered(20))},
        name="one",
    )  # fmt: skip
    texts = {text.upper().replace(" ", "  "): given for text, given in numbered(15).items()}
    other = make_recording(texts, splits=dict.fromkeys(texts, "train"), name="other")
    draw = open_small(source(one), source(other), from_verdicts=True).draw(PLANS, 0.0)
    asked = {example.prompt.partition("\n")[0] for example in (draw("0", index) for index in range(400))}
    numbers = {shouted: set[int]() for shouted in (False, True)}
    for line in asked:
        numbers["HOW" in line].add(int("".join(filter(str.isdecimal, line.casefold().partition("plus")[0]))))
    assert numbers == {False: set(range(10)), True: set(range(10))}


def test_lessons_that_could_not_be_taught_or_examined_are_refused_before_anything_is_made(
    make_recording: MakeRecording, tmp_path: Path
) -> None:
    several = sums(make_recording)
    asked_twice = make_recording(
        {
            f"Which {n}?": [Response("ada", sample, "Answer: 7", "7", 1.0) for sample in (0, 1)]
            for n in range(9)
        },
        splits={f"Which {n}?": "train" if n else "validation" for n in range(9)},
        name="twice",
    )
    twice = source(asked_twice).model_copy(update={"rounds": 2})
    for sources, said in (
        ((rivers(make_recording),), "has no validation questions"),
        ((several, twice), "one sample of each worker; set rounds = 1"),
        (
            (several, several.model_copy(update={"rounds": 2, "estimates": True})),
            "estimates = true needs rounds = 1",
        ),
        (
            (SourceSettings(tasks="embedded", pool="embedded"), several),
            "leave `extra_sources` and `cost_weights` out",
        ),
    ):
        settings = WarmStartSettings(
            tasks=sources[0].tasks, pool=sources[0].pool, extra_sources=sources[1:], stages=(
                SupervisedStage(steps=1, shares=Shares(from_verdicts=1)),
            ),
        )  # fmt: skip
        with pytest.raises(ConfigError, match=said):
            run_warmstart(settings, tmp_path / "run")
        assert not (tmp_path / "run").exists()
