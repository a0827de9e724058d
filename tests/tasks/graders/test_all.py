"""What holds for every grader that only compares, and for all of them as settings."""

import asyncio
import importlib
import pkgutil
import time
import tomllib
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.config import Settings, build
from podium.errors import ConfigError
from podium.tasks import graders
from podium.tasks.graders.base import GraderSettings
from podium.tasks.graders.choice import Choice
from podium.tasks.graders.json_grader import Json
from podium.tasks.graders.math_graders import Numeric
from podium.tasks.graders.registry import GRADERS, AnyGrader
from podium.tasks.graders.text_graders import Exact, Normalised, Regex, SetOf
from podium.tasks.task import Grade


@dataclass(frozen=True)
class Case:
    """A grader with answers to one question."""

    grader: GraderSettings
    gold: str
    right: str
    wrong: str
    others: tuple[str, ...]
    """Answers that, with the right one, list everything."""


CASES = (
    Case(Exact(), "Lima", "Lima", "Oslo", ("Oslo", "Rome")),
    Case(Normalised(), "The Nile", "nile", "The Amazon", ("Amazon", "Rhine")),
    Case(Numeric(), "42", "42", "41", ("41", "43")),
    Case(Choice(), "C", "C", "B", ("A", "B", "D")),
    Case(Regex(), r"(?i)li(m|n)a", "Lima", "Lisa", ("Lisa", "Lira")),
    Case(SetOf(), "red, 2", "2, red", "2, blue", ("blue", "3")),
    Case(Json(), '{"a": 1}', '{"a": 1}', '{"a": 2}', ('{"a": 2}', '{"a": 3}')),
)
each = pytest.mark.parametrize("case", CASES, ids=lambda case: case.grader.kind)

SIZE = 30_000
HOSTILE = (
    "(" * SIZE,
    "[" * SIZE,
    "{" * SIZE,
    '{"a":' * (SIZE // 5),
    "\\boxed{" * (SIZE // 7),
    "\\boxed{" * (SIZE // 14) + "}" * (SIZE // 14),
    "\\frac{1}" * (SIZE // 8),
    "<answer>" * (SIZE // 8) + "</answer>",
    "Answer:" * (SIZE // 7),
    "Answer:\n" * (SIZE // 8),
    "the answer is " * (SIZE // 14),
    "Answer: " + "A, " * (SIZE // 3),
    "Answer: " + "a and " * (SIZE // 6),
    "Answer: " + "9" * SIZE,
    "Answer: 1e" + "9" * SIZE,
    "Answer: 1e999999999",
    "Answer: " + "1," * (SIZE // 2),
    "Answer: " + "-" * SIZE + "1",
    "Answer: " + " " * SIZE + "x",
    "\n" * SIZE,
    " \n" * SIZE,
    "*" * SIZE + "Answer",
    "- " * SIZE,
    "```\n" * 10_001,
    "```a\n" * (SIZE // 5),
    "Answer: " + "\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}" * SIZE,
    "Answer: a" + "\u0301" * SIZE,
)

words = st.text(st.sampled_from("abcXYZéß0123456789 .,-/'()"), min_size=1, max_size=30).map(str.strip)


def grade(grader: GraderSettings, response: str, gold: str) -> Grade:
    return asyncio.run(grader(response, gold))


@each
@pytest.mark.parametrize(
    "form", ["Answer: {}", "So.\n**Answer:** {}", "<answer>{}</answer>", "<answer>\n{}\n</answer>\nDone."]
)
def test_the_right_answer_scores_1_and_a_wrong_one_0(case: Case, form: str) -> None:
    assert case.grader.gold_problem(case.gold) is None
    assert grade(case.grader, form.format(case.right), case.gold).score == 1
    assert grade(case.grader, form.format(case.wrong), case.gold).score == 0


@each
def test_no_answer_scores_0(case: Case) -> None:
    for response in ("", " \n\t", "I do not know.", "Answer:", "<answer></answer>", "\\boxed{}", "```\n```"):
        assert grade(case.grader, response, case.gold).score == 0, response


@each
def test_a_wrong_answer_with_the_right_one_among_its_words_scores_0(case: Case) -> None:
    told = f"One might think of {case.right}. Many say so: {case.right}! But that is wrong. "
    assert grade(case.grader, told * 50 + f"\nAnswer: {case.wrong}", case.gold).score == 0
    assert (
        grade(case.grader, f"Answer: {case.right}\nOn reflection:\nAnswer: {case.wrong}", case.gold).score
        == 0
    )


@each
@pytest.mark.parametrize(
    ("form", "joint"),
    [("Answer: {}", joint) for joint in (", ", " or ", " and ", "; ", " / ", " | ")]
    + [("<answer>{}</answer>", ", "), ("{}", " or ")],
)
def test_an_answer_that_lists_everything_scores_0(case: Case, joint: str, form: str) -> None:
    for answers in ((case.right, *case.others), (*case.others, case.right)):
        assert grade(case.grader, form.format(joint.join(answers)), case.gold).score == 0


@pytest.mark.parametrize("grader", [Exact(), Normalised(), SetOf()], ids=lambda grader: grader.kind)
@given(gold=words)
def test_a_gold_answer_that_is_accepted_is_right_as_an_answer(grader: GraderSettings, gold: str) -> None:
    if grader.gold_problem(gold) is None:
        for form in ("Answer: {}", "<answer>{}</answer>", "Let me think.\n{}"):
            assert grade(grader, form.format(gold), gold).score == 1


@given(number=st.integers(-(10**15), 10**15) | st.floats(-1e15, 1e15))
def test_a_number_is_right_as_it_is_written(number: float) -> None:
    assert grade(Numeric(), f"Answer: {number}", repr(number)).score == 1
    assert grade(SetOf(), f"Answer: {number}, x", f"x, {number!r}").score == 1


@each
def test_hostile_text_is_graded_in_bounded_time(case: Case) -> None:
    started = time.process_time()
    for response in HOSTILE:
        assert grade(case.grader, response, case.gold).score == 0
    assert time.process_time() - started < 10


WORKER = '[worker]\nname = "judy"\nkind = "scripted"\nreplies = ["RIGHT", "RIGHT"]\n'
TABLES = (
    'kind = "exact"\nanswer = "tag"',
    'kind = "normalised"\naccents = true\nseparator = "|"',
    'kind = "numeric"\nrelative = 0.01',
    'kind = "choice"\nanswer = "boxed"',
    'kind = "regex"\nanswer = "whole"',
    'kind = "set"\nseparator = ";"\nrepeats = true',
    'kind = "json"\nextra_keys = true',
    f'kind = "judge"\ntie = 0.5\nrubric = "Be kind."\n{WORKER}',
)


class Holder(Settings):
    grader: AnyGrader


@pytest.mark.parametrize("table", TABLES)
def test_grader_settings_survive_a_round_trip_through_toml(table: str) -> None:
    said = tomllib.loads(table)
    grader = build({"grader": said}, Holder).grader
    again = build({"grader": grader.model_dump(mode="json", exclude_none=True)}, Holder).grader
    assert again == grader
    assert type(again) is type(grader)
    assert all(grader.model_dump(mode="json", include=set(said))[key] is not None for key in said)


@each
def test_equal_settings_grade_alike(case: Case) -> None:
    twin = type(case.grader).model_validate(case.grader.model_dump())
    assert twin == case.grader
    for answer in (case.right, case.wrong):
        assert grade(twin, answer, case.gold) == grade(case.grader, answer, case.gold)


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ({"kind": "chioce"}, "choice"),
        ({"kind": "exact", "anwser": "tag"}, "answer"),
        ({"kind": "exact", "answer": "tags"}, "tag"),
    ],
)
def test_an_unknown_grader_or_setting_is_refused_with_what_is_known(
    table: dict[str, str], reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason):
        build({"grader": table}, Holder)


def test_every_grader_can_be_named_in_toml() -> None:
    for module in pkgutil.iter_modules(graders.__path__):
        found = vars(importlib.import_module(f"{graders.__name__}.{module.name}")).values()
        made = {one for one in found if isinstance(one, type) and issubclass(one, GraderSettings)}
        assert {one for one in made if "kind" in one.model_fields} <= set(GRADERS)
