"""The prompts, word for word, and what holds for all of them."""

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from syrupy.assertion import SnapshotAssertion

from podium.conductor import PromptSettings, build_prompt
from podium.conductor.examples import EXAMPLES, PlanExample
from podium.conductor.instructions import EXAMPLE_NAMES
from podium.conductor.prompt import rating_text, second_prompt, thinking_prompt
from podium.planners.planner import EarlierRound, PlanRequest
from podium.types import AnswerOptions, Message, Price, Profile, Question, Rating
from podium.workflow import PlanError, PlanRules, Step, Workflow, parse, topology

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

WORKFLOW = parse('model_id = [1]\nsubtasks = ["Count."]\naccess_list = [[]]', PlanRules(workers=3))
assert isinstance(WORKFLOW, Workflow)

SITUATIONS = {
    "first round": PlanRequest(QUESTION, POOL),
    "with a past": PlanRequest(
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
    "later round": PlanRequest(QUESTION, POOL, (EarlierRound(WORKFLOW, "36 days."),)),
    "third round": PlanRequest(
        QUESTION, POOL, (EarlierRound(WORKFLOW, "36 days."), EarlierRound(WORKFLOW, ""))
    ),
}

SETTINGS = {
    "full, described": PromptSettings(),
    "full, anonymous": PromptSettings(pool="anonymous", examples=1),
    "brief, described": PromptSettings(style="brief"),
    "brief, anonymous": PromptSettings(style="brief", pool="anonymous"),
}


TOOLS = tuple(
    {"type": "function", "function": {"name": f"tool_{number}", "description": told}}
    for number, told in enumerate(["The weather\nin a town.", "x" * 500, None, *["Another."] * 40])
)


def _with_tools(**options: Any) -> PlanRequest:
    asked = QUESTION.model_copy(update={"options": AnswerOptions(tools=TOOLS, **options)})
    return PlanRequest(asked, POOL)


def _text(messages: tuple[Message, ...]) -> str:
    return "\n".join(f"=== {message.role}\n{message.content}" for message in messages)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("plan_request", SITUATIONS)
def test_prompt_matches_its_snapshot(plan_request: str, settings: str, snapshot: SnapshotAssertion) -> None:
    assert _text(build_prompt(SITUATIONS[plan_request], SETTINGS[settings])) == snapshot


def test_prompt_lists_caller_tools_and_which_step_may_call_them(
    snapshot: SnapshotAssertion,
) -> None:
    (_, told) = build_prompt(_with_tools(), PromptSettings(tools=True))
    (_, plain) = build_prompt(PlanRequest(QUESTION, POOL), PromptSettings(tools=True))
    before, after = plain.content.split("\n\nThe user's question")
    assert told.content.startswith(before)
    assert told.content.endswith(after)
    assert told.content.removeprefix(before).removesuffix(f"\n\nThe user's question{after}") == snapshot
    for choice, words in (("required", "one of them"), ({"function": {"name": "tool_2"}}, "tool_2")):
        (_, forced) = build_prompt(_with_tools(tool_choice=choice), PromptSettings(tools=True))
        assert f"The last step must call {words}." in forced.content
    (_, unused) = build_prompt(_with_tools(tool_choice="none"), PromptSettings(tools=True))
    assert unused == plain


@pytest.mark.parametrize("settings", SETTINGS)
def test_prompt_omits_caller_tools_for_a_policy_trained_without_tools(settings: str) -> None:
    known = build_prompt(PlanRequest(QUESTION, POOL), SETTINGS[settings])
    assert build_prompt(_with_tools(), SETTINGS[settings]) == known


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.question[:20])
def test_every_example_is_a_plan_with_some_thought_before_it(example: PlanExample) -> None:
    assert isinstance(parse(example.completion, PlanRules(workers=example.workers)), Workflow)
    assert not example.completion.startswith("model_id")


def test_the_examples_that_are_shown_differ_in_steps_and_topology() -> None:
    shown = EXAMPLES[: PromptSettings().examples]
    plans = [parse(example.completion, PlanRules(workers=example.workers)) for example in shown]
    workflows = [plan for plan in plans if isinstance(plan, Workflow)]
    assert len({len(workflow.steps) for workflow in workflows}) >= 3
    assert len({topology(workflow) for workflow in workflows}) >= 3
    assert len({step.worker for workflow in workflows for step in workflow.steps}) >= 5


@pytest.mark.parametrize("max_steps", range(1, 6))
def test_no_example_breaks_the_step_limit(max_steps: int) -> None:
    request = PlanRequest(QUESTION, POOL, max_steps=max_steps)
    system = build_prompt(request, PromptSettings(examples=len(EXAMPLES)))[0].content
    shown = [example for example in EXAMPLES if example.question in system]
    assert shown
    for example in shown:
        plan = parse(example.completion, PlanRules(workers=example.workers, max_steps=max_steps))
        assert isinstance(plan, Workflow)


@pytest.mark.parametrize("count", range(len(EXAMPLES) + 1))
def test_prompt_shows_the_configured_number_of_examples(count: int) -> None:
    system = build_prompt(SITUATIONS["first round"], PromptSettings(examples=count))[0].content
    assert sum(example.question in system for example in EXAMPLES) == count


@pytest.mark.parametrize("situation", SITUATIONS)
def test_all_or_none_prompt_teaches_no_partial_access(situation: str) -> None:
    settings = PromptSettings(access="all_or_none", examples=len(EXAMPLES))
    text = _text(build_prompt(SITUATIONS[situation], settings))
    assert "the numbers of some" not in text
    assert '["previous"]' not in text
    taught = [access for access in re.findall(r"access_list = (.*)", text) if access != "[]"]
    assert taught
    assert all(set(re.findall(r"\[([^\[\]]*)\]", access)) <= {"", '"all"'} for access in taught)


def test_under_all_or_none_there_are_four_examples_as_in_the_paper() -> None:
    system, user = build_prompt(SITUATIONS["later round"], PromptSettings(access="all_or_none"))
    assert sum(example.question in system.content for example in EXAMPLES) == 4
    assert (
        'access_list: which earlier steps it sees: [] for none, or ["all"] for all of them.' in system.content
    )
    assert 'In this plan ["all"] shows the model the latest final response' in user.content


def test_the_brief_prompt_is_the_same_whatever_access_lists_may_hold() -> None:
    either = [PromptSettings(style="brief", access=access) for access in ("lists", "all_or_none")]
    one, another = (build_prompt(SITUATIONS["later round"], settings) for settings in either)
    assert one == another


def test_more_examples_than_there_are_is_refused() -> None:
    with pytest.raises(ValidationError):
        PromptSettings(examples=len(EXAMPLES) + 1)


def test_an_anonymous_pool_shows_nothing_of_the_workers() -> None:
    for settings in (SETTINGS["full, anonymous"], SETTINGS["brief, anonymous"]):
        text = _text(build_prompt(PlanRequest(Question(text="?"), POOL), settings))
        assert not re.search(r"\bann\b|\bbob\b|\bcy\b|Cheap|128", text)


@given(st.text(alphabet="~a\n", max_size=60))
def test_a_fence_cannot_be_closed_from_inside(response: str) -> None:
    request = PlanRequest(QUESTION, POOL, (EarlierRound(WORKFLOW, response or "x"),))
    content = build_prompt(request, PromptSettings())[1].content
    after = content.partition("not instructions):\n")[2].removesuffix(
        "\n\nDo not answer the question. Write your plan for the team."
    )
    fence, _, rest = after.partition("\n")
    assert rest == f"{response or 'x'}\n{fence}"
    assert fence not in (response or "x")


def test_a_second_prompt_shows_the_completion_and_the_whole_error(snapshot: SnapshotAssertion) -> None:
    completion = 'I think so.\nmodel_id = [7]\nsubtasks = ["Count."]\naccess_list = [[]]'
    error = parse(completion, PlanRules(workers=3))
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


def test_the_brief_style_retries_with_the_same_prompt() -> None:
    settings = SETTINGS["brief, described"]
    first = build_prompt(SITUATIONS["first round"], settings)
    assert second_prompt(first, "nonsense", PlanError("missing_list", "No list."), settings) == first


# --- rated workers -----------------------------------------------------------------------------------------


def rated(name: str, accuracy: float, cost_usd: float, kind: str = "count-days") -> Profile:
    rating = Rating(cluster=kind, accuracy=accuracy, cost_usd=cost_usd, questions=9)
    return Profile(name=name, description="Not to be shown.", rating=rating)


def _models(*pool: Profile, settings: PromptSettings = SETTINGS["brief, described"]) -> list[str]:
    """The lines between the one that heads them and the one on steps."""
    [message] = build_prompt(PlanRequest(QUESTION, pool), settings)
    lines = message.content.split("\n")
    return lines[lines.index("Models:") + 1 : lines.index("Steps: 5")]


def test_the_brief_prompt_shows_cluster_and_figures_of_rated_workers() -> None:
    pool = (rated("ann", 0.61, 0.03), Profile(name="vote", description="A tool."), rated("bob", 0.86, 0.01))
    [message] = build_prompt(PlanRequest(QUESTION, pool), SETTINGS["brief, described"])
    assert message.content == (
        "Question: How many days are there between 3 May and 9 June?\nKind: #count-days\nModels:\n"
        "1: vote: A tool.\n- 85% 0.5x: 2\n- 60% 2x: 0\nSteps: 5\nPlan:\n"
    )


@given(st.text(max_size=20), st.text(max_size=20))
def test_the_brief_prompt_ignores_names_and_descriptions_of_rated_workers(
    name: str, description: str
) -> None:
    ann = rated("ann", 0.6, 0.03)
    other = ann.model_copy(update={"name": name, "description": description})
    rest = (Profile(name="vote"), rated("bob", 0.85, 0.01))
    for settings in (SETTINGS["brief, described"], SETTINGS["brief, anonymous"]):
        one, another = (build_prompt(PlanRequest(QUESTION, (who, *rest)), settings) for who in (ann, other))
        assert one == another


def test_workers_rated_over_all_questions_are_listed_without_a_kind() -> None:
    pool = (rated("ann", 0.6, 0.03, kind=""), rated("bob", 0.85, 0.01, kind=""))
    [message] = build_prompt(PlanRequest(QUESTION, pool), SETTINGS["brief, described"])
    assert message.content == (
        "Question: How many days are there between 3 May and 9 June?\nModels:\n"
        "- 85% 0.5x: 1\n- 60% 2x: 0\nSteps: 5\nPlan:\n"
    )


def test_workers_are_listed_by_accuracy_then_price_then_place_in_the_pool() -> None:
    pool = (
        rated("late", 0.5, 0.02),
        rated("best", 0.9, 0.09),
        Profile(name="new", description="Unknown."),
        rated("cheap", 0.5, 0.01),
        rated("later", 0.5, 0.02),
        Profile(name="newer"),
        rated("close", 0.501, 0.09),
    )
    lines = _models(*pool)
    assert lines[:2] == ["2: new: Unknown.", "5: newer: "]
    assert [pool[int(line.split(": ")[-1])].name for line in lines[2:]] == [
        *("best", "close", "cheap", "late", "later")
    ]


@given(st.permutations(range(4)))
def test_rated_workers_keep_their_place_wherever_the_pool_has_them(order: list[int]) -> None:
    pool = [rated("a", 0.2, 1), rated("b", 0.8, 3), rated("c", 0.4, 1), rated("d", 0.6, 3)]
    told = (("80% 2x", 1), ("60% 2x", 3), ("40% 0.5x", 2), ("20% 0.5x", 0))
    assert _models(*(pool[number] for number in order)) == [
        f"- {figures}: {order.index(number)}" for figures, number in told
    ]


def test_shown_prices_are_relative_to_the_mean_of_rated_workers() -> None:
    dear = Profile(name="new", price=Price(input=900, output=900))
    assert _models(rated("a", 0.5, 0.01), rated("b", 0.5, 0.03))[0] == "- 50% 0.5x: 0"
    assert _models(rated("a", 0.5, 0.01), rated("b", 0.5, 0.03), dear)[1] == "- 50% 0.5x: 0"
    assert _models(rated("a", 0.5, 0.01)) == ["- 50% 1x: 0"]
    assert _models(rated("a", 0.5, 0), rated("b", 0.5, 0)) == ["- 50% 1x: 0", "- 50% 1x: 1"]


def test_a_free_worker_that_is_never_right_changes_nothing_for_the_others() -> None:
    team = (Profile(name="vote"), rated("a", 0.5, 0.01), rated("b", 0.02, 0.03))
    alone = _models(*team)
    assert alone == ["0: vote: ", "- 50% 0.5x: 1", "- 0% 2x: 2"]
    assert _models(*team, rated("tool", 0.02, 0)) == alone
    assert _models(*team, rated("tool", 0.03, 0)) == [
        "0: vote: ",
        "- 50% 0.7x: 1",
        "- 5% 0.001x: 3",
        "- 0% 2x: 2",
    ]
    # Where there is nobody else, it is shown.
    assert _models(rated("tool", 0.0, 0)) == ["- 0% 1x: 0"]


def test_brief_prompt_without_ratings_lists_plain_worker_numbers() -> None:
    [message] = build_prompt(SITUATIONS["first round"], SETTINGS["brief, described"])
    assert "Kind:" not in message.content
    anonymous = SETTINGS["brief, anonymous"]
    assert _models(rated("a", 0.2, 1), rated("b", 0.9, 1), settings=anonymous) == ["0", "1"]


def test_the_full_prompt_says_in_words_what_was_measured() -> None:
    workers = (rated("a", 0.85, 0.0123), Profile(name="new"))
    described, anonymous = (
        build_prompt(PlanRequest(QUESTION, workers), SETTINGS[style])[1].content
        for style in ("full, described", "full, anonymous")
    )
    measured = "right in 85% of questions like this one, by 9 that were measured, at $12.30 for 1000 answers"
    assert measured in described
    assert described.count("questions like this one") == 1
    assert "85%" not in anonymous


@pytest.mark.parametrize(
    ("accuracy", "percent"),
    [(0, "0%"), (0.024, "0%"), (0.026, "5%"), (0.874, "85%"), (0.876, "90%"), (0.974, "95%"), (1, "100%")],
)
def test_accuracies_are_shown_in_steps_of_five(accuracy: float, percent: str) -> None:
    assert rating_text(Rating(cluster="k", accuracy=accuracy, cost_usd=1, questions=1), 1) == f"{percent} 1x"


@pytest.mark.parametrize(
    ("cost_usd", "price"),
    [
        (2, "1x"),
        (1, "0.5x"),
        (2.8, "1x"),
        (2.9, "2x"),
        (200, "7x"),
        (0.048, "0.02x"),
        (0.05, "0.03x"),
        (0.011, "0.005x"),
        (1e-6, "0.001x"),
        (0, "0.001x"),
    ],
)
def test_the_price_that_is_shown_is_the_nearest_by_ratio(cost_usd: float, price: str) -> None:
    assert rating_text(Rating(cluster="k", accuracy=0, cost_usd=cost_usd, questions=1), 2) == f"0% {price}"


def test_ratings_are_shown_in_few_words() -> None:
    """21 accuracies and 20 prices, so that a small policy sees each of them often."""
    ratings = [
        Rating(cluster="k", accuracy=percent / 100, cost_usd=10 ** (percent / 10 - 5), questions=1)
        for percent in range(101)
    ]
    shown = [rating_text(rating, 1).split(" ") for rating in ratings]
    assert (len({accuracy for accuracy, _ in shown}), len({price for _, price in shown})) == (21, 20)


FORMS = [
    pytest.param(form, pool, access, id=f"{form}-{pool}-{access}")
    for form in ("lists", "structured")
    for pool in ("described", "anonymous")
    for access in ("lists", "all_or_none")
]


@pytest.mark.parametrize(("form", "pool", "access"), FORMS)
@pytest.mark.parametrize("style", ["full", "short"])
def test_every_example_of_a_prompt_is_a_plan_in_the_form_that_it_asks_for(
    style: str, form: str, pool: str, access: str
) -> None:
    settings = PromptSettings.model_validate({"style": style, "form": form, "pool": pool, "access": access})
    system = build_prompt(PlanRequest(Question(text="Q"), (Profile(name="a"),)), settings)[0].content
    _, _, shown = system.partition("xample")
    marks = '{"thought"' if form == "structured" else "model_id = "
    plans = [
        parse(marks + text, PlanRules(workers=8, names=EXAMPLE_NAMES, access=access))  # type: ignore[arg-type]
        for text in shown.split(marks)[1:]
    ]
    assert len(plans) >= 2
    assert all(isinstance(plan, Workflow) for plan in plans)
    assert len({len(plan.steps) for plan in plans if isinstance(plan, Workflow)}) >= 2
    other = "model_id" if form == "structured" else '"worker"'
    assert other not in system


@pytest.mark.parametrize(("form", "pool", "access"), FORMS)
def test_the_short_style_stays_within_300_tokens(form: str, pool: str, access: str) -> None:
    settings = PromptSettings.model_validate({"style": "short", "form": form, "pool": pool, "access": access})
    messages = build_prompt(PlanRequest(Question(text="Q"), (Profile(name="a"),)), settings)
    # Of the longest of these, SmolLM2 counts 299 tokens beside the team and the question, and it has 944 characters.
    assert sum(len(message.content) for message in messages) <= 950


def _read(request: PlanRequest, **settings: Any) -> str:
    """All that a model reads, but for the sentence at the end."""
    messages = build_prompt(request, PromptSettings.model_validate(settings))
    return "\n\n".join(message.content for message in messages).rpartition("\n\n")[0]


@pytest.mark.parametrize("style", ["full", "short"])
@given(texts=st.lists(st.text(), min_size=2, max_size=2), answer=st.text())
def test_a_turns_prompt_begins_with_that_of_the_turn_before(
    style: str, texts: list[str], answer: str
) -> None:
    told = (Message(role="user", content=texts[0]), Message(role="assistant", content=answer))
    options = AnswerOptions(tools=TOOLS)
    turns = [
        PlanRequest(Question(text=text, history=past, options=options), POOL)
        for text, past in zip(texts, ((), told), strict=True)
    ]
    first, second = (_read(turn, style=style, form="structured", tools=True) for turn in turns)
    assert second.startswith(first)
    assert len(second) > len(first)


@pytest.mark.parametrize("style", ["full", "short"])
def test_a_rounds_prompt_begins_with_that_of_the_round_before(style: str) -> None:
    rounds = [_read(SITUATIONS[name], style=style) for name in ("first round", "later round", "third round")]
    assert rounds[1].startswith(rounds[0])
    assert rounds[2].startswith(rounds[1])


@pytest.mark.parametrize("style", ["full", "short"])
def test_prompts_of_one_team_share_the_prefix_before_the_question(style: str) -> None:
    settings = PromptSettings.model_validate({"style": style})
    prompts = [build_prompt(PlanRequest(Question(text=text), POOL), settings) for text in ("Why?", "How?")]
    assert prompts[0][0] == prompts[1][0]
    before = [
        user.content.partition("question:\n" if style == "full" else "Question:\n")[0] for _, user in prompts
    ]
    assert before[0] == before[1]
    assert all(profile.name in before[0] for profile in POOL)


@pytest.mark.parametrize("style", ["full", "short"])
def test_models_that_are_not_in_memory_are_named_behind_the_question(style: str) -> None:
    asked = SITUATIONS["first round"]
    told = replace(asked, unloaded_models=("ada", "cy"))
    assert build_prompt(told, PromptSettings()) == build_prompt(asked, PromptSettings()), (
        "trained without them"
    )
    _, user = build_prompt(told, PromptSettings.model_validate({"style": style, "tools": True}))
    assert user.content.index(QUESTION.text) < user.content.index("ada, cy")


def test_a_thought_and_the_plan_after_it_are_asked_for_in_one_conversation() -> None:
    messages = build_prompt(SITUATIONS["first round"], PromptSettings(think=True))
    thinking = thinking_prompt(messages)
    assert thinking_prompt(messages, "Bob counts.")[: len(thinking)] == thinking


@pytest.mark.parametrize("style", ["full", "short"])
def test_a_later_round_tells_how_to_accept_in_the_form_that_is_asked_for(style: str) -> None:
    workflow = Workflow((Step(0, "Do it."),))
    request = PlanRequest(
        Question(text="Q"),
        (Profile(name="ada"),),
        earlier_rounds=(EarlierRound(workflow, "42", None, ("42",)),),
    )
    _, user = build_prompt(request, PromptSettings.model_validate({"style": style, "form": "structured"}))
    assert '{"thought": "...", "accept": true}' in user.content
    assert '{"worker": "ada", "subtask": "Do it.", "sees": []}' in user.content
    assert "model_id" not in user.content
