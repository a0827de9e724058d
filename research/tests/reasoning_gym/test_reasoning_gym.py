"""Every generator: its questions, their splits, and what its verifier takes for an answer.

A table of twenty, of every category of the library; with PODIUM_NIGHTLY set, all of them (`make nightly`).
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.config import build
from podium.errors import ConfigError
from podium.tasks.sets.base import task_key
from podium.tasks.task import Task
from podium.tasks.task_file import TaskFile
from podium_research.reasoning_gym.task_set import ReasoningGym

Tasks = Mapping[str, Mapping[str, Sequence[Task]]]
"""By generator and split."""
TWENTY = (
    ("algebra", "complex_arithmetic"),
    ("algebra", "polynomial_multiplication"),
    ("algorithmic", "binary_matrix"),
    ("algorithmic", "game_of_life_halting"),
    ("algorithmic", "isomorphic_strings"),
    ("algorithmic", "word_sorting"),
    ("arc", "rearc"),
    ("arithmetic", "fraction_simplification"),
    ("arithmetic", "gsm_symbolic"),
    ("arithmetic", "time_intervals"),
    ("code", "codeio"),
    ("cognition", "rubiks_cube"),
    ("games", "boxnet"),
    ("games", "countdown"),
    ("games", "sudoku"),
    ("geometry", "advanced_geometry"),
    ("graphs", "shortest_path"),
    ("induction", "list_functions"),
    ("logic", "knights_knaves"),
    ("probability", "coin_flip"),
)
NIGHTLY = bool(os.environ.get("PODIUM_NIGHTLY"))
SETTINGS = (
    ReasoningGym(size=5) if NIGHTLY else ReasoningGym(generators=tuple(name for _, name in TWENTY), size=2)
)
GENERATORS = SETTINGS.pool.names() if NIGHTLY else SETTINGS.generators
each = pytest.mark.parametrize("generator", GENERATORS)

WITHOUT_GOLD = ("boxnet", "rush_hour")
"""Their verifiers play what is answered; they know no answer themselves."""
SEVERAL = ("propositional_logic",)
"""Of them one answer may be right for two questions: what follows from one list of premises follows from others."""
WRONG = (
    "I do not know.",
    "The answer is 42 or so, since most answers are; but it may be True, or A, or none of them.",
    "nan",
    "[NaN, NaN]",
    "[]",
    "x",
)
HOSTILE = (
    "(" * 9000,
    "[" * 9000,
    '{"a":' * 4000,
    "9" * 9000,
    "1e999999999",
    "U999999999 A+999999999",
    "__import__('os')._exit(0)",
    "\x00\ud800\u202e",
)


@pytest.fixture(scope="module")
def tasks() -> Tasks:
    """Of each generator the tasks of each split."""
    readings = SETTINGS.read_splits(SETTINGS.splits)
    return {
        name: {
            split: [task for task in reading.tasks if task.facts["family"] == name]
            for split, reading in readings.items()
        }
        for name in GENERATORS
    }


def like(**changed: object) -> ReasoningGym:
    """The set with other settings, and the processes that there are."""
    return SETTINGS.model_copy(update={"workshop": SETTINGS.pool, **changed})


def all_of(splits: Mapping[str, Sequence[Task]]) -> list[Task]:
    return [task for tasks in splits.values() for task in tasks]


async def scores(asked: Sequence[tuple[Task, str]]) -> dict[tuple[str, str], float]:
    """Of each task and answer the score, the answer given as it is asked for."""
    grades = [task.grade(f"Let me think.\n<answer>{answer}</answer>") for task, answer in asked]
    judged = await asyncio.gather(*grades)
    return {(task.id, answer): grade.score for (task, answer), grade in zip(asked, judged, strict=True)}


@each
def test_a_generator_has_questions_in_every_split_and_none_twice(generator: str, tasks: Tasks) -> None:
    found = {split: len(of) for split, of in tasks[generator].items()}
    assert found == dict.fromkeys(SETTINGS.splits, SETTINGS.size)
    every = all_of(tasks[generator])
    assert len({task_key(task) for task in every}) == len({task.id for task in every}) == len(every)
    assert {len({task.facts[key] for task in every}) for key in ("family", "category", "difficulty")} == {1}


@each
async def test_the_stored_answer_is_right(generator: str, tasks: Tasks) -> None:
    every = all_of(tasks[generator])
    assert {bool(task.gold) for task in every} == {generator not in WITHOUT_GOLD}
    right = [(task, task.gold) for task in every if task.gold]
    assert set((await scores(right)).values()) <= {1.0}


@each
async def test_empty_wrong_and_mismatched_answers_score_0(generator: str, tasks: Tasks) -> None:
    every = all_of(tasks[generator])
    task = every[0]
    golds = {other.gold for other in every if other.gold != task.gold and generator not in SEVERAL}
    for response in ("", "  \n", "<answer></answer>", "It is"):
        assert (await task.grade(response)).score == 0.0
    wrong = [(task, answer) for answer in (*WRONG, *golds) if answer]
    assert {answer for (_, answer), score in (await scores(wrong)).items() if score} == set()


@each
async def test_an_answer_that_lists_everything_is_not_right(generator: str, tasks: Tasks) -> None:
    every = [task for task in all_of(tasks[generator]) if task.gold]
    lists = []
    for task in every[:2]:
        others = [gold for gold in dict.fromkeys(other.gold for other in every) if gold != task.gold]
        for mark in (", ", "\n", " or "):
            lists += [
                (task, mark.join(said)) for said in ([task.gold, *others], [*others, task.gold]) if others
            ]
    assert {answer for (_, answer), score in (await scores(lists)).items() if score} == set()


@each
async def test_no_answer_makes_the_grader_fail_or_wait(generator: str, tasks: Tasks) -> None:
    task = all_of(tasks[generator])[0]
    begun = time.monotonic()
    assert set((await scores([(task, answer) for answer in HOSTILE])).values()) == {0.0}
    assert time.monotonic() - begun < 120


@given(data=st.data(), text=st.text(max_size=200))
@settings(max_examples=100, deadline=None)
def test_any_text_has_a_grade(data: st.DataObject, text: str, tasks: Tasks) -> None:
    task = data.draw(st.sampled_from([one for splits in tasks.values() for one in splits["test"]]))
    response = data.draw(
        st.sampled_from((text, f"<answer>{text}</answer>", f"<answer>{task.gold} {text}</answer>"))
    )
    grade = asyncio.run(task.grade(response))
    assert grade.score in (0.0, 1.0)
    assert grade == asyncio.run(task.grade(response))


def test_the_table_has_every_category_of_the_library(tasks: Tasks) -> None:
    found = {(str(tasks[name]["test"][0].facts["category"]), name) for _, name in TWENTY}
    assert found == set(TWENTY)
    assert len({category for category, _ in TWENTY}) == 12


def test_a_question_is_the_same_in_another_process_however_it_hashes(tasks: Tasks) -> None:
    names = GENERATORS if NIGHTLY else ("isomorphic_strings", "list_functions", "polynomial_multiplication")
    program = (
        "import json; from podium_research.reasoning_gym.task_set import ReasoningGym\n"
        f"read = ReasoningGym(generators={names!r}, size=2).read_splits(('validation',))['validation']\n"
        "print(json.dumps([(task.id, task.question.text, task.gold) for task in read.tasks]))"
    )
    other = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONHASHSEED": "77"},
        capture_output=True,
        text=True,
        check=True,
        timeout=900,
    )
    here = [task for name in names for task in tasks[name]["validation"][:2]]
    assert json.loads(other.stdout) == [[task.id, task.question.text, task.gold] for task in here]


def test_split_is_the_same_read_alone_and_larger_sizes_extend_the_split() -> None:
    spec = like(generators=("gcd",), size=4)
    together = spec.read_splits(spec.splits)
    for split in spec.splits:
        alone = spec.read_splits((split,))[split]
        assert [task.id for task in alone.tasks] == [task.id for task in together[split].tasks]
    more = spec.model_copy(update={"size": 9}).read_splits(("test",))["test"].tasks
    assert [task.id for task in more[:4]] == [task.id for task in together["test"].tasks]


def test_seeds_and_settings_give_other_questions_and_splits_stay_apart() -> None:
    few = like(size=200, generators=("coin_flip",))
    specs = [few, few.model_copy(update={"seed": 1}), few.model_copy(update={"level": 0})]
    read = [spec.read_splits(spec.splits) for spec in specs]
    asked = {
        split: {task_key(task) for readings in read for task in readings[split].tasks} for split in read[0]
    }
    assert not asked["train"] & asked["validation"]
    assert not asked["train"] & asked["test"]
    assert not asked["validation"] & asked["test"]
    ids = [task.id for readings in read for reading in readings.values() for task in reading.tasks]
    assert len(set(ids)) == len(ids)
    first, second, third = ([task_key(task) for task in readings["train"].tasks[:20]] for readings in read)
    assert first != second != third


def test_a_generator_with_few_questions_gives_them_and_counts_the_missing() -> None:
    spec = like(generators=("coin_flip",), size=200)
    reading = spec.read_splits(("test",))["test"]
    assert 30 < len(reading.tasks) < 200
    reason = "coin_flip of reasoning-gym has no more different questions; ask for fewer."
    assert reading.skipped == {reason: 200 - len(reading.tasks)}


def test_level_is_capped_by_the_curriculum_and_settings_override_levels() -> None:
    spec = like(
        generators=("spell_backward", "gsm_symbolic"),
        level=99,
        config={"spell_backward": {"min_word_len": 4, "max_word_len": 4}},
        size=2,
    )
    spell, other, *_ = (
        next(task for task in spec.read_splits(("test",))["test"].tasks if task.facts["family"] == name)
        for name in spec.generators
    )
    assert str(spell.facts["difficulty"]).startswith("level ")
    assert spell.facts["difficulty"] != "level 99"
    assert len(spell.gold) == 4
    assert other.facts["difficulty"] == "default"


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"generators": ["sudokku"]}, r"reasoning-gym has no generator 'sudokku'; did you mean 'sudoku'\?"),
        (
            {"generators": ["sudoku"], "config": {"maze": {}}},
            r"config.maze is for a generator that `generators` leaves out; known: sudoku\.",
        ),
        (
            {"generators": ["sudoku"], "config": {"sudoku": {"min_emty": 3}}},
            r"sudoku of reasoning-gym has no setting 'min_emty'; did you mean 'min_empty'\?",
        ),
        (
            {"generators": ["caesar_cipher"], "config": {"caesar_cipher": {"max_rotation": 99}}},
            r"reasoning-gym does not make caesar_cipher-[0-9a-f]{8}: rotation must be in range \[1,25\]; "
            r"take another level or setting\.",
        ),
    ],
)
def test_settings_that_reasoning_gym_refuses_give_one_sentence(
    table: dict[str, object], sentence: str
) -> None:
    spec = like(**dict(build(table, ReasoningGym)))
    with pytest.raises(ConfigError) as error:
        spec.read_splits(("test",))["test"]
    assert re.fullmatch(sentence, str(error.value))


def test_a_task_file_takes_generators_by_name() -> None:
    part = {"set": "reasoning-gym", "generators": ["gcd", "lcm"], "level": 1, "size": 3}
    file = build({"name": "mine", "part": [part]}, TaskFile)
    assert file.part[0].label == "reasoning-gym-gcd+lcm-level-1"
    parts = tuple(like(**dict(part)) for part in file.part)
    mixed = file.model_copy(update={"part": parts}).open_split("train")
    assert Counter(task.facts["family"] for task in mixed) == {"gcd": 3, "lcm": 3}


def test_reasoning_gym_writes_only_into_its_own_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert ReasoningGym(generators=("codeio",), size=2).read_splits(("test",))["test"].tasks
    assert not list(tmp_path.glob("*.*"))
