from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from accepted_drafts import ACCEPTED_DRAFTS
from accepted_formatting import ACCEPTED_FORMATTING
from accepted_values import ACCEPTED_VALUES
from plan_texts import WORKERS, damaged, plan_like, workflows
from podium.workflow import (
    Acceptance,
    PlanError,
    PlanForm,
    PlanRules,
    Workflow,
    check,
    parse,
    render,
    text_before_lists,
)
from refused_access import REFUSED_ACCESS
from refused_forms import REFUSED_FORMS
from refused_marks import REFUSED_MARKS
from refused_sense import REFUSED_SENSE
from workflow_cases import ONE, TWO, Accepted, Refused, lists

ACCEPTED = ACCEPTED_FORMATTING + ACCEPTED_DRAFTS + ACCEPTED_VALUES
REFUSED = REFUSED_FORMS + REFUSED_MARKS + REFUSED_SENSE + REFUSED_ACCESS
LONGEST = 64 * 1024
UNITS = [
    "//",
    "<think>",
    "</think>",
    "<think></think>",
    "model_id",
    "model_id(",
    "model_id=",
    "model_id=[",
    "model_id=[0,",
    "model_id=[[[[[",
    "model_id=['x",
    "model_id=[#",
    "</think>model_id=['x",
    "model_id:*",
    "model_id=[0]",
    "model_id:list[",
    "models=[",
    "0,\n",
    'subtasks=["',
    'subtasks=["\\',
    'subtasks=["""',
    "subtasks=[`",
    'subtasks=["a",\'',
    "subtasks=['\"",
    "subtasks=[“",
    "subtasks=['\",',\",'\"",
    "access_list=[‘s",
    "‘s",
    "[[],",
    "-\n",
    "model_id\n",
    "{",
    "{#",
    "{a:",
    '{"a',
    "{'a':{",
    '{"a":1}',
    '{"thought":"',
    '{"steps":[',
    '{"steps":[{"worker":0,"subtask":"x","sees":[]},',
    '{"steps":[]}',
    '{"accept":true}',
    '{"a":"{\'a\':"',
    "{model_id=[",
]
"""Scraps that, repeated, are hard for careless readers."""


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.dress)
def test_parser_reads_a_plan_in_any_formatting(case: Accepted) -> None:
    assert parse(case.text, PlanRules(workers=3, later_round=case.later_round)) == case.expected


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.dress)
def test_replaced_plan_is_read_after_the_same_thoughts(case: Accepted) -> None:
    text = text_before_lists(case.text) + render(case.expected)
    assert parse(text, PlanRules(workers=3, later_round=case.later_round)) == case.expected
    assert case.text.startswith(text_before_lists(case.text))


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.fault)
def test_a_text_that_is_no_plan_is_refused_with_one_sentence_and_the_place(case: Refused) -> None:
    plan = parse(
        case.text, PlanRules(workers=case.workers, max_steps=case.max_steps, later_round=case.later_round)
    )
    assert isinstance(plan, PlanError)
    assert (plan.kind, str(plan)) == (case.kind, case.error)


NAMES = ("coder", "Vote", "7", "mini, the second")
FORMS = [("lists", ()), ("structured", ()), ("structured", NAMES)]


@pytest.mark.parametrize(("form", "names"), FORMS)
@given(workflow=workflows(), thought=st.text())
def test_rendered_plan_is_parsed_back(
    form: PlanForm, names: tuple[str, ...], workflow: Workflow, thought: str
) -> None:
    assert check(workflow, PlanRules(workers=WORKERS)) is None
    assert (
        parse(render(workflow, form, names=names, thought=thought), PlanRules(workers=WORKERS, names=names))
        == workflow
    )


@pytest.mark.parametrize(("form", "names"), FORMS)
@given(workflow=workflows(later_round=True), prose=st.text(alphabet="abc .!\n*`#<>{}", max_size=40))
def test_rendered_plan_inside_prose_is_parsed_back_in_a_later_round(
    form: PlanForm, names: tuple[str, ...], workflow: Workflow, prose: str
) -> None:
    text = f"{prose}\n```python\n{render(workflow, form, names=names)}\n```\n{prose}"
    assert parse(text, PlanRules(workers=WORKERS, names=names, later_round=True)) == workflow


@pytest.mark.parametrize("form", ["lists", "structured"])
def test_an_acceptance_is_read_back(form: PlanForm) -> None:
    assert parse(render(Acceptance(), form), PlanRules(workers=1, later_round=True)) == Acceptance()


@given(damaged() | plan_like | st.text(), st.booleans())
@example("\ud800 model_id = [\udfff", False)
def test_any_text_is_a_runnable_workflow_an_acceptance_or_an_error(text: str, later: bool) -> None:
    plan = parse(text, PlanRules(workers=2, later_round=later))
    if isinstance(plan, Workflow):
        assert check(plan, PlanRules(workers=2, later_round=later)) is None
        assert parse(render(plan), PlanRules(workers=2, later_round=later)) == plan
    elif isinstance(plan, PlanError):
        assert_is_showable(plan)
    else:
        assert plan == Acceptance()
        assert later


@given(st.lists(st.sampled_from(list(range(-2, 5))), min_size=1, max_size=4), plan_like)
def test_an_error_is_one_sentence_over_one_line_with_its_caret_inside(ids: list[int], tail: str) -> None:
    plan = parse(f"{lists(model_id=str(ids))}{tail}", PlanRules(workers=3))
    if isinstance(plan, PlanError):
        assert_is_showable(plan)


def assert_is_showable(error: PlanError) -> None:
    assert error.message.startswith("Expected ")
    assert error.message.endswith(".")
    assert len(error.message) < 160
    str(error).encode()
    assert len(str(error).splitlines()) == (1 if error.column is None else 3)
    assert len(error.text) <= 74
    assert error.column is None or 0 <= error.column <= 74


MARKS = [*"[]\"'`\\ \n#*"]
HEADS = ["model_id = [", 'subtasks = ["', '{"steps": [']
LONG = [("", unit) for unit in [*MARKS, *UNITS]] + [(head, unit) for head in HEADS for unit in MARKS]


@pytest.mark.parametrize(("head", "unit"), LONG, ids=repr)
def test_a_long_text_of_any_kind_is_done_with_at_once(head: str, unit: str) -> None:
    # Quadratic work shows in a quarter of the longest text too.
    text = head + unit * ((LONGEST // 4 - len(head.encode())) // len(unit.encode()))
    began = time.process_time()
    plan = parse(text, PlanRules(workers=2))
    # Some tens of milliseconds; what is quadratic takes minutes.
    assert time.process_time() - began < 2
    assert isinstance(plan, PlanError)
    assert_is_showable(plan)


@given(
    st.lists(
        st.sampled_from(["'", '"', "“", "”", ",", "[", "subtasks=[", "\\", "s"]), min_size=1, max_size=12
    )
)
def test_no_repeated_scrap_of_a_plan_takes_long(scrap: list[str]) -> None:
    unit = "".join(scrap)
    text = "subtasks=[" + unit * ((LONGEST - 10) // len(unit.encode()))
    began = time.process_time()
    parse(text, PlanRules(workers=2))
    assert time.process_time() - began < 2


def test_a_text_over_64_kib_is_refused_unread() -> None:
    fits = lists().ljust(LONGEST)
    assert parse(fits, PlanRules(workers=3)) == TWO
    assert (
        str(parse(fits + " ", PlanRules(workers=3))) == "Expected at most 65536 bytes of text, found 65537."
    )


def test_the_limit_of_a_text_counts_bytes() -> None:
    plan = parse("é" * 40_000, PlanRules(workers=3))
    assert isinstance(plan, PlanError)
    assert (plan.kind, plan.message) == (
        "text_too_long",
        "Expected at most 65536 bytes of text, found 80000.",
    )


def test_a_subtask_over_8000_characters_is_refused() -> None:
    def text(length: int) -> str:
        return lists(model_id="[1]", subtasks=f'["{"x" * length}"]', access_list="[[]]")

    assert isinstance(parse(text(8_000), PlanRules(workers=3)), Workflow)
    assert str(parse(text(8_001), PlanRules(workers=3))) == (
        "Expected at most 8000 characters of subtask for step 0, found 8001.\n"
        f'    subtasks = ["{"x" * 59}…\n'
        "                ^"
    )


def test_a_place_deep_in_a_long_line_is_shown_with_a_stretch_on_both_sides() -> None:
    wide = "model_id = [0]; " * 1_000
    plan = parse(f"{wide}{lists(model_id='[1,, 0]')}", PlanRules(workers=3))
    assert str(plan) == (
        "Expected an entry of model_id, found ','.\n"
        "    … [0]; model_id = [0]; model_id = [0]; model_id = [0]; model_id = [1,, 0]\n"
        "                                                                         ^"
    )


def test_drafts_that_break_off_do_not_swallow_the_plan_after_them() -> None:
    draft = 'subtasks = ["Maybe\n'
    assert (
        parse(
            draft * 5 + lists(model_id="[1]", subtasks='["Answer."]', access_list="[[]]"),
            PlanRules(workers=3),
        )
        == ONE
    )


def test_nothing_in_a_plan_is_evaluated(tmp_path: object) -> None:
    text = lists(model_id="[exec('raise SystemExit'), 0]")
    assert isinstance(parse(text, PlanRules(workers=3)), PlanError)


def test_a_pool_of_none_is_an_error_like_any_other() -> None:
    assert str(parse(lists(), PlanRules(workers=0))).splitlines()[0] == (
        "Expected a worker of the pool (there is none) for step 0, found 2."
    )


def test_caret_marks_the_partial_access_list_under_all_or_none() -> None:
    text = lists(access_list='[["all"], [0]]')
    error = parse(text, PlanRules(workers=3, access="all_or_none"))
    assert isinstance(error, PlanError)
    assert error.kind == "partial_access"
    assert str(error).endswith(
        """\
    access_list = [["all"], [0]]
                            ^"""
    )
    assert isinstance(parse(text, PlanRules(workers=3)), Workflow)


def test_all_or_none_accepts_a_step_number_beside_all() -> None:
    plan = parse(lists(access_list='[["all"], [0, "all"]]'), PlanRules(workers=3, access="all_or_none"))
    assert isinstance(plan, Workflow)
    assert plan.steps[1].access.all


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>\nPerhaps so:\n" + lists(), None),
        ("<think>Perhaps so.</think>\n<thinking>Or so:\n" + lists(), None),
        ("<think>Perhaps so.</think>\n" + lists() + "\nThat is", TWO),
        (lists() + "\n<think>Or so: model_id = [1]", TWO),
        (lists() + "\nThat is", TWO),
    ],
)
def test_a_draft_in_a_thought_that_was_cut_off_is_no_plan(text: str, expected: Workflow | None) -> None:
    read = parse(text, PlanRules(workers=3), truncated=True)
    if expected is None:
        assert isinstance(read, PlanError)
        assert read.kind == "missing_list"
        assert read.message.endswith("found a <think> block that is cut off.")
    else:
        assert read == expected


@pytest.mark.parametrize(
    ("subtask", "columns"),
    [
        ("plain", 5),
        ("日本語", 6),
        ("한국", 4),
        ("🙂🙂", 4),
        ("e\u0301a\u0308", 2),
        ("\u200bzero", 4),
        ("ＡＢ", 4),
        ("a\tb", 3),
        ("नमस्ते", 4),
    ],
)
def test_caret_is_aligned_on_a_terminal(subtask: str, columns: int) -> None:
    plan = parse(
        lists(model_id="[1, 1]", subtasks=f'["{subtask}", 7]', access_list="[[], []]"), PlanRules(workers=3)
    )
    assert isinstance(plan, PlanError)
    assert plan.column == len('subtasks = ["') + columns + len('", ')
