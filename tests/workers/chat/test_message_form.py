"""Conversations in the form that strict chat templates need: nothing lost, tools in place, real templates satisfied."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import Environment, TemplateError

from podium.types import Message, ToolCall
from podium.workers.chat.message_form import MessageForm

STRICT = MessageForm.IN_TURNS
GEMMA = MessageForm.IN_TURNS | MessageForm.WITHOUT_SYSTEM
CALL = ToolCall(id="c1", name="f", arguments="{}")


def talk(*turns: str) -> tuple[Message, ...]:
    """ "u:Hi" is a user's message, likewise s and a; "call" and "result" are those of a tool."""
    roles = {"s": "system", "u": "user", "a": "assistant"}
    return tuple(
        Message(role="assistant", content="", tool_calls=(CALL,))
        if turn == "call"
        else Message(role="tool", content="out", tool_call_id="c1")
        if turn == "result"
        else Message(role=roles[turn[0]], content=turn[2:])
        for turn in turns
    )


def told(messages: tuple[Message, ...]) -> list[str]:
    return [
        "call"
        if message.tool_calls
        else "result"
        if message.role == "tool"
        else f"{message.role[0]}:{message.content}"
        for message in messages
    ]


@pytest.mark.parametrize(
    ("given", "form", "folded"),
    [
        (["s:S", "u:Q"], MessageForm.AS_WRITTEN, ["s:S", "u:Q"]),
        (["s:S", "s:D", "u:Q"], MessageForm.AS_WRITTEN, ["s:S\n\nD", "u:Q"]),
        (["u:Q", "s:R", "u:P"], MessageForm.AS_WRITTEN, ["u:Q", "s:R", "u:P"]),
        (["s:S", "s:D", "u:Q"], STRICT, ["s:S\n\nD", "u:Q"]),
        (["s:S", "u:Q", "a:A", "s:R", "u:P"], STRICT, ["s:S\n\nR", "u:Q", "a:A", "u:P"]),
        (["u:Q", "s:R"], STRICT, ["s:R", "u:Q"]),
        (["u:C", "u:Q"], STRICT, ["u:C\n\nQ"]),
        (["u:Q", "a:A", "a:B", "u:P"], STRICT, ["u:Q", "a:A\n\nB", "u:P"]),
        (["u:Q", "a:A", "s:R", "a:B"], STRICT, ["s:R", "u:Q", "a:A\n\nB"]),
        (["a:Hello.", "u:Q"], STRICT, ["u:(The assistant begins.)", "a:Hello.", "u:Q"]),
        (["u:Q", "a: ", "u:P"], STRICT, ["u:Q\n\nP"]),
        (["s:", "u:Q"], STRICT, ["u:Q"]),
        (["u:"], STRICT, ["u:"]),
        (["s:S"], STRICT, ["u:S"]),
        (["u:Q", "call", "result", "result", "a:A"], STRICT, ["u:Q", "call", "result", "result", "a:A"]),
        (["u:Q", "a:Hm.", "call", "result"], STRICT, ["u:Q", "call", "result"]),
        (["s:S", "u:Q"], GEMMA, ["u:S\n\nQ"]),
        (["s:S", "a:A", "u:Q"], GEMMA, ["u:S\n\n(The assistant begins.)", "a:A", "u:Q"]),
        (["s:S", "u:Q", "a:A", "u:P"], GEMMA, ["u:S\n\nQ", "a:A", "u:P"]),
        (["u:Q", "a:A"], MessageForm.ENDS_WITH_USER, ["u:Q", "a:A", "u:Please continue."]),
        (["u:Q", "call"], MessageForm.ENDS_WITH_USER, ["u:Q", "call"]),
    ],
)
def test_a_conversation_is_folded(given: list[str], form: MessageForm, folded: list[str]) -> None:
    assert told(form.fold(talk(*given))) == folded


def test_a_thought_before_a_call_stays_with_the_call() -> None:
    _, call, _ = STRICT.fold(talk("u:Q", "a:Hm.", "call", "result"))
    assert (call.content, call.tool_calls) == ("Hm.", (CALL,))


def test_images_and_names_survive() -> None:
    first = Message(role="user", content="Look.", images=("data:a",), name="Ann")
    second = Message(role="user", content="And?", images=("data:b",), name="Bo")
    (one,) = STRICT.fold((first, second))
    assert (one.content, one.images) == ("Ann: Look.\n\nBo: And?", ("data:a", "data:b"))


TURNS = st.lists(st.sampled_from(["s:S", "u:U", "a:A", "u:", "a:", "s:"]), max_size=8)


@given(TURNS.filter(lambda turns: any(turn[2:] for turn in turns)))
def test_every_conversation_fits_a_strict_template(turns: list[str]) -> None:
    for form in (STRICT, GEMMA):
        folded = form.fold(talk(*turns))
        roles = [message.role for message in folded]
        assert "system" not in roles[(0 if MessageForm.WITHOUT_SYSTEM in form else 1) :]
        rest = [role for role in roles if role != "system"]
        assert rest == [("user", "assistant")[place % 2] for place in range(len(rest))]
        assert form.fold(folded) == folded
        whole = "".join(message.content for message in folded)
        assert [whole.count(text) for text in "SUA"] == ["".join(turns).count(text) for text in "SUA"]


MISTRAL = """
{%- if messages[0]['role'] == 'system' %}{%- set system = messages[0]['content'] %}{%- set rest = messages[1:] %}
{%- else %}{%- set rest = messages %}{%- endif %}
{%- set ns = namespace(index=0) %}
{%- for m in rest %}
{%- if m['role'] in ['user', 'assistant'] and not m['tool_calls'] %}
{%- if (m['role'] == 'user') != (ns.index % 2 == 0) %}
{{- raise_exception('After the optional system message, conversation roles must alternate user and assistant roles '
    'except for tool calls and results.') }}
{%- endif %}{%- set ns.index = ns.index + 1 %}{%- elif m['role'] == 'system' %}
{{- raise_exception('Only user, assistant and tool roles are supported, with an initial optional system message!') }}
{%- endif %}{{ m['content'] }}{%- endfor %}"""
GEMMA_2 = """
{%- if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}
{%- for m in messages %}
{%- if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}
{{- raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}
{%- endif %}{{ m['content'] }}{%- endfor %}"""
QWEN = """
{%- set ns = namespace(user=false) %}
{%- for m in messages %}
{%- if m['role'] == 'system' and not loop.first %}{{ raise_exception('System message must be at the beginning.') }}
{%- endif %}{%- if m['role'] == 'user' %}{% set ns.user = true %}{% endif %}{{ m['content'] }}{%- endfor %}
{%- if not ns.user %}{{ raise_exception('No user query found in messages.') }}{% endif %}"""


def render(template: str, messages: tuple[Message, ...]) -> str | None:
    """The error of a template, or None if it takes the messages."""

    def raise_exception(said: str) -> None:
        raise TemplateError(said)

    environment = Environment()
    environment.globals["raise_exception"] = raise_exception
    try:
        environment.from_string(template).render(messages=[message.model_dump() for message in messages])
    except TemplateError as error:
        return str(error)
    return None


@pytest.mark.parametrize("template", [MISTRAL, GEMMA_2, QWEN], ids=["mistral", "gemma", "qwen"])
@pytest.mark.parametrize(
    "turns",
    [
        ["s:S", "u:Q"],
        ["s:S", "s:D", "u:Q"],
        ["s:S", "u:Q", "a:A", "s:R", "u:P"],
        ["u:Q", "s:R"],
        ["u:C", "u:Q"],
        ["a:A", "u:Q"],
        ["u:Q", "a:A", "a:B", "u:P"],
        ["s:S"],
        ["s:S", "a:A"],
    ],
    ids=" ".join,
)
def test_errors_of_real_templates_lead_to_an_accepted_message_form(template: str, turns: list[str]) -> None:
    messages, form = talk(*turns), MessageForm.AS_WRITTEN
    for _ in range(4):
        said = render(template, form.fold(messages))
        if said is None:
            return
        further = form.after(said, messages)
        assert further is not None, said
        form = further
    raise AssertionError(form)


@pytest.mark.parametrize(
    ("said", "turns"),
    [
        ("Unsupported value: 'messages[0].role' does not support 'system' with this model.", ["s:S", "u:Q"]),
        ("Developer instruction is not enabled for models/gemma-3-27b-it", ["s:S", "u:Q"]),
        ("Unexpected role 'system' after role 'user'", ["u:Q", "s:S"]),
        ("Please ensure that multiturn requests alternate between user and model.", ["u:Q", "u:P"]),
        ("Cannot have 2 or more assistant messages at the end of the list.", ["u:Q", "a:A", "a:B"]),
        ("Assistant response prefill is incompatible with enable_thinking.", ["u:Q", "a:A"]),
        (
            "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant",
            ["u:Q", "a:A"],
        ),
        ("The conversation must end with a user message.", ["u:Q", "a:A"]),
        ("messages: text content blocks must be non-empty", ["u:Q", "a:", "u:P"]),
        ("Assistant message must have either content or tool_calls, but not none.", ["u:Q", "a:", "u:P"]),
        ("First message must be from the user.", ["a:A", "u:Q"]),
        ("Error rendering prompt with jinja template: Unknown error", ["u:Q", "u:P"]),
        ("Value is not callable: null at row 3, column 9", ["u:Q", "u:P"]),
        ("jinja2.exceptions.TemplateError: oops", ["s:S", "u:Q"]),
    ],
)
def test_an_error_about_the_form_leads_to_another_form(said: str, turns: list[str]) -> None:
    assert MessageForm.AS_WRITTEN.after(said, talk(*turns)) is not None


@pytest.mark.parametrize(
    ("said", "turns"),
    [
        ("chat_template_kwargs is not supported for this tokenizer", ["s:S", "u:Q"]),
        ("Rate limit reached.", ["u:Q", "u:P"]),
        ("Conversation roles must alternate", ["u:Q"]),
        ("The model is empty of patience", ["u:Q", "u:P"]),
    ],
)
def test_unrelated_error_leads_to_no_other_message_form(said: str, turns: list[str]) -> None:
    assert MessageForm.AS_WRITTEN.after(said, talk(*turns)) is None
