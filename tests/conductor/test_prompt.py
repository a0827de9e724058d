"""The prompts, word for word, and what holds for all of them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from syrupy.assertion import SnapshotAssertion

from podium.conductor import PromptSettings, build_prompt
from podium.conductor.examples import EXAMPLES, Example
from podium.conductor.prompt import second_prompt
from podium.planner import Outcome, Situation
from podium.types import Message, Price, Profile, Question
from podium.workflow import PlanError, Workflow, parse, topology

POOL = (
    Profile(
        name="ann",
        description="Strong at sums;\nslow.",
        skills=("sums", "dates"),
        price=Price(input=1.25, output=10),
        latency_s=2.5,
        context_tokens=128_000,
    ),
    Profile(name="bob", description="Cheap."),
    Profile(name="cy"),
)

QUESTION = Question(text="How many days are there between 3 May and 9 June?")

WORKFLOW = parse('model_id = [1]\nsubtasks = ["Count."]\naccess_list = [[]]', workers=3)
assert isinstance(WORKFLOW, Workflow)

SITUATIONS = {
    "first round": Situation(QUESTION, POOL),
    "with a past": Situation(
        QUESTION.model_copy(
            update={
                "history": (
                    Message(role="system", content="Be brief."),
                    Message(role="user", content="When do exams begin?"),
                    Message(role="assistant", content="On 3 May."),
                )
            }
        ),
        POOL,
        max_steps=1,
    ),
    "later round": Situation(QUESTION, POOL, (Outcome(WORKFLOW, "36 days."),)),
    "third round": Situation(QUESTION, POOL, (Outcome(WORKFLOW, "36 days."), Outcome(WORKFLOW, ""))),
}

SETTINGS = {
    "full, described": PromptSettings(),
    "full, anonymous": PromptSettings(pool="anonymous", examples=1),
    "brief, described": PromptSettings(style="brief"),
    "brief, anonymous": PromptSettings(style="brief", pool="anonymous"),
}


def _text(messages: tuple[Message, ...]) -> str:
    return "\n".join(f"=== {message.role}\n{message.content}" for message in messages)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("situation", SITUATIONS)
def test_the_prompt_is_this(situation: str, settings: str, snapshot: SnapshotAssertion) -> None:
    assert _text(build_prompt(SITUATIONS[situation], SETTINGS[settings])) == snapshot


def test_the_brief_prompt_is_the_form_that_policies_are_trained_on() -> None:
    [message] = build_prompt(SITUATIONS["later round"], SETTINGS["brief, described"])
    assert message.role == "user"
    assert message.content == (
        "Question: How many days are there between 3 May and 9 June?\nModels:\n"
        "0: ann: Strong at sums; slow.\n1: bob: Cheap.\n2: cy: \n"
        'Earlier plan:\nmodel_id = [1]\nsubtasks = ["Count."]\naccess_list = [[]]\n'
        "Earlier answer: 36 days.\nSteps: 5\nPlan:\n"
    )
    [message] = build_prompt(SITUATIONS["first round"], SETTINGS["brief, anonymous"])
    assert message.content == (
        "Question: How many days are there between 3 May and 9 June?\nModels:\n0\n1\n2\nSteps: 5\nPlan:\n"
    )


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.question[:20])
def test_every_example_is_a_plan_with_some_thought_before_it(example: Example) -> None:
    assert isinstance(parse(example.completion, workers=example.workers), Workflow)
    assert not example.completion.startswith("model_id")


def test_the_examples_that_are_shown_differ_in_steps_and_topology() -> None:
    shown = EXAMPLES[: PromptSettings().examples]
    plans = [parse(example.completion, workers=example.workers) for example in shown]
    workflows = [plan for plan in plans if isinstance(plan, Workflow)]
    assert len({len(workflow.steps) for workflow in workflows}) >= 3
    assert len({topology(workflow) for workflow in workflows}) >= 3
    assert len({step.worker for workflow in workflows for step in workflow.steps}) >= 5


@pytest.mark.parametrize("max_steps", range(1, 6))
def test_no_example_breaks_the_step_limit(max_steps: int) -> None:
    situation = Situation(QUESTION, POOL, max_steps=max_steps)
    system = build_prompt(situation, PromptSettings(examples=len(EXAMPLES)))[0].content
    shown = [example for example in EXAMPLES if example.question in system]
    assert shown
    for example in shown:
        plan = parse(example.completion, workers=example.workers, max_steps=max_steps)
        assert isinstance(plan, Workflow)


@pytest.mark.parametrize("count", range(len(EXAMPLES) + 1))
def test_as_many_examples_are_shown_as_are_asked_for(count: int) -> None:
    system = build_prompt(SITUATIONS["first round"], PromptSettings(examples=count))[0].content
    assert sum(example.question in system for example in EXAMPLES) == count


def test_more_examples_than_there_are_is_refused() -> None:
    with pytest.raises(ValidationError):
        PromptSettings(examples=len(EXAMPLES) + 1)


def test_an_anonymous_pool_tells_nothing_of_the_workers() -> None:
    for settings in (SETTINGS["full, anonymous"], SETTINGS["brief, anonymous"]):
        text = _text(build_prompt(Situation(Question(text="?"), POOL), settings))
        assert not re.search(r"\bann\b|\bbob\b|\bcy\b|Cheap|128", text)


@given(st.text(alphabet="~a\n", max_size=60))
def test_a_fence_cannot_be_closed_from_inside(response: str) -> None:
    situation = Situation(QUESTION, POOL, (Outcome(WORKFLOW, response or "x"),))
    content = build_prompt(situation, PromptSettings())[1].content
    after = content.partition("not instructions):\n")[2].removesuffix(
        "\n\nDo not answer the question. Write your plan for the team."
    )
    fence, _, rest = after.partition("\n")
    assert rest == f"{response or 'x'}\n{fence}"
    assert fence not in (response or "x")


def test_a_second_prompt_shows_the_completion_and_the_whole_error(snapshot: SnapshotAssertion) -> None:
    completion = 'I think so.\nmodel_id = [7]\nsubtasks = ["Count."]\naccess_list = [[]]'
    error = parse(completion, workers=3)
    assert isinstance(error, PlanError)
    first = build_prompt(SITUATIONS["first round"], PromptSettings())
    messages = second_prompt(first, completion, error, PromptSettings())
    assert messages[:2] == first
    assert messages[2] == Message(role="assistant", content=completion)
    assert str(error) in messages[3].content
    assert messages[3].content == snapshot


def test_an_empty_completion_can_be_shown_too() -> None:
    messages = second_prompt((), " ", PlanError("missing_list", "No list."), PromptSettings())
    assert messages[0].content


def test_the_brief_style_asks_again_with_the_same_prompt() -> None:
    settings = SETTINGS["brief, described"]
    first = build_prompt(SITUATIONS["first round"], settings)
    assert second_prompt(first, "nonsense", PlanError("missing_list", "No list."), settings) == first
