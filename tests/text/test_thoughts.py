from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.text.thoughts import ThoughtSplitter, split_thoughts, without_thoughts

_FINAL = "<|start|>assistant<|channel|>final<|message|>"
_FENCED = "So:\n```xml\n<think>\na\n</think>\n```\nend"
_TILDES = "So:\n~~~\n<think>a</think>\n```\n<think>b</think>\n~~~\nend"

MARKED = [
    ("<think>\na\n</think>\n\n4", "a", "4"),
    ("\n <thinking>a</thinking>4", "a", "4"),
    ("<thought>a</thought>4", "a", "4"),
    ("<THINK>a</Think>4", "a", "4"),
    ('<thinking lang="en" effort="high">a</thinking>4', "a", "4"),
    ("<seed:think>a</seed:think>4", "a", "4"),
    ("<reasoning>a</reasoning>4", "a", "4"),
    ("[THINK]a[/THINK]4", "a", "4"),
    ("<|channel|>analysis<|message|>a<|end|>" + _FINAL + "4<|return|>", "a", "4"),
    (
        "<|channel|>analysis<|message|>a<|end|><|channel|>commentary<|message|>b<|end|>" + _FINAL + "4",
        "a\n\nb",
        "4",
    ),
    ("<|channel|>analysis<|message|>a" + _FINAL + "4", "a", "4"),
    ("<|channel>thought\na<channel|>4", "a", "4"),
    ("<unused94>thought\na<unused95>4", "a", "4"),
    ("<|START_THINKING|>a<|END_THINKING|><|START_RESPONSE|>4<|END_RESPONSE|>", "a", "4"),
    ("<|begin_of_thought|>a<|end_of_thought|>\n<|begin_of_solution|>4<|end_of_solution|>", "a", "4"),
    ("◁think▷a◁/think▷4", "a", "4"),
    ("<scratchpad>a</scratchpad>4", "a", "4"),
    ("<inner_monologue>a</inner_monologue>4", "a", "4"),
    ("<|think|>a<|/think|>4", "a", "4"),
    ("<|THINKING|>\na\n<|/THINKING|>\n4", "a", "4"),
    ("[BEGIN REASONING]a[BEGIN FINAL RESPONSE]\n4\n[END FINAL RESPONSE]", "a", "4\n"),
    ("<think></think>4", "", "4"),
    ("<think>a</think>\n<think>b</think>\n4", "a\n\nb", "4"),
    ("Sure.\n<think>a</think>\n4", "a", "Sure.\n4"),
    ("Sure. <think>a</think> 4", "a", "Sure. 4"),
    ("Now <think>\na\n</think> 4", "a", "Now 4"),
    ("<think>a `</think>` b</think>4", "a `</think>` b", "4"),
    ("<think>\n```\nx\n</think>4", "```\nx", "4"),
    ('<think>{</think>{"a": 4}', "{", '{"a": 4}'),
]
"""Text, thoughts, answer."""

TEMPLATE_OPENED = [
    ("a\n</think>\n\n4", "a", "4"),
    ("a</think>4", "a", "4"),
    ("a </THINKING> 4", "a", "4"),
    ("a[/THINK]4", "a", "4"),
    ("a\n" + _FINAL + "4", "a", "4"),
    ("a<channel|>4", "a", "4"),
    ("a<|/think|>4", "a", "4"),
    ("Here are my reasoning steps:\na\n[BEGIN FINAL RESPONSE]\n4", "Here are my reasoning steps:\na", "4"),
    ("analysisWe need it.assistantfinal4", "analysisWe need it.", "4"),
    ("The user asks about <think> tags.\n</think>\n4", "The user asks about <think> tags.", "4"),
    ("```\na\n</think>\n4", "```\na", "4"),
    ("a</think>b</think>4", "a\n\nb", "4"),
]

CUT = [
    ("<think>a", "a", ""),
    ("[THINK]a\n", "a", ""),
    ("<|channel|>analysis<|message|>a", "a", ""),
    ("<think>", "", ""),
]

UNMARKED = [
    "",
    " \n",
    "  4\n",
    "a < b, [x], <html>, 5<6 and [/b]",
    "Models write <think> before a thought and </think> after it.",
    "Models write `<think>` before a thought and `</think>` after it.",
    'Split it: `text.split("</think>")`.',
    "Put it into a tag, e.g. <think>a</think>.",
    "It ends with <|end|>",
    _FENCED,
    _TILDES,
    '{"tag": "a </think> b"}',
    "Use <thinker> and <rethink>.",
]


@pytest.mark.parametrize(("text", "thoughts", "answer"), [*MARKED, *TEMPLATE_OPENED, *CUT])
def test_thoughts_are_divided_from_the_answer(text: str, thoughts: str, answer: str) -> None:
    assert split_thoughts(text) == (thoughts, answer)
    assert without_thoughts(text) == answer


@pytest.mark.parametrize("text", UNMARKED)
def test_answer_that_only_mentions_thought_tags_is_unchanged(text: str) -> None:
    assert split_thoughts(text) == ("", text)


def _stream(text: str, size: int, *, hold: bool) -> tuple[str, str, ThoughtSplitter]:
    splitter = ThoughtSplitter(hold=hold)
    pieces = [splitter.add(text[place : place + size]) for place in range(0, len(text), size)]
    pieces.append(splitter.end())
    return "".join(t for t, _ in pieces), "".join(a for _, a in pieces), splitter


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 100])
def test_a_stream_in_any_pieces_is_divided_as_the_whole_text(size: int) -> None:
    for text, thoughts, answer in [
        *MARKED,
        *CUT,
        *((text, "", text) for text in UNMARKED if text[:1] != "{"),
    ]:
        assert _stream(text, size, hold=False)[:2] == (thoughts, answer), text
        assert _stream(text, size, hold=True)[:2] == (thoughts, answer), text
    for text, thoughts, answer in TEMPLATE_OPENED:
        assert _stream(text, size, hold=True)[:2] == (thoughts, answer), text


def test_marks_in_streamed_json_are_part_of_its_strings() -> None:
    for text in ('{"tag": "a </think> b"}', '["Done. <think> is a tag.", "</think>"]'):
        thoughts, answer, splitter = _stream(text, 3, hold=False)
        assert (thoughts, answer, splitter.opened_by_template) == ("", text, False)
    assert _stream('<think>a</think>{"b": "</think>"}', 3, hold=False)[1] == '{"b": "</think>"}'


def test_a_stream_tells_that_the_template_opened_its_thought() -> None:
    assert _stream("a\n</think>\n4", 3, hold=False)[2].opened_by_template
    assert not _stream("<think>a</think>\n4", 3, hold=False)[2].opened_by_template
    assert not _stream("</think>\n4", 3, hold=False)[2].opened_by_template


def test_text_that_can_be_no_mark_is_passed_on_at_once() -> None:
    splitter = ThoughtSplitter()
    assert splitter.add("Hello a") == ("", "Hello a")
    assert splitter.add(" 3 <") == ("", " 3 ")
    assert splitter.add(" 4") == ("", "< 4")


@given(
    st.lists(
        st.sampled_from(
            ["<think>", "</think>", "[THINK]", "[/THINK]", "`", "```", "\n", ". ", "a", "assistantfinal"]
        )
    ).map("".join),
    st.integers(1, 9),
)
def test_any_text_is_divided_the_same_in_any_pieces(text: str, size: int) -> None:
    assert _stream(text, size, hold=True)[:2] == split_thoughts(text)


@pytest.mark.parametrize(
    "piece",
    [
        "<",
        "<think> ",
        "</think> ",
        "`",
        "[think",
        "<|channel|>",
        "\n<think>a</think> b.",
        "<think",
        "\n",
        "x <",
        "```\n",
    ],
)
def test_the_time_is_linear_in_the_text(piece: str) -> None:
    def seconds(size: int) -> float:
        text = piece * (size // len(piece))
        start = process_time()
        split_thoughts(text)
        return process_time() - start

    seconds(10_000)
    assert seconds(400_000) < 60 * seconds(20_000) + 0.5
