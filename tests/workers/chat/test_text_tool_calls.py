"""Tool calls that a small model writes as text are read as calls; an answer that mentions one stays an answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.types import AnswerOptions
from podium.workers.chat.reply_builder import ReplyBuilder
from podium.workers.chat.text_tool_calls import TextToolCallParser

TOOLS = tuple({"type": "function", "function": {"name": name}} for name in ("weather", "add"))
PARIS = ("weather", {"city": "Paris"})
SUM = ("add", {"a": 1, "b": [2, None]})
CALL = '{"name": "weather", "arguments": {"city": "Paris"}}'
ADD = '{"name": "add", "arguments": {"a": 1, "b": [2, null]}}'

FORMS = {
    "bare": CALL,
    "with space around it": f"\n\n  {CALL}\n",
    "parameters": CALL.replace("arguments", "parameters"),
    "arguments as text": json.dumps({"name": "weather", "arguments": json.dumps({"city": "Paris"})}),
    "arguments first": '{"arguments": {"city": "Paris"}, "name": "weather"}',
    "as the API has it": f'{{"type": "function", "function": {CALL}, "id": "call_1"}}',
    "its name under function": CALL.replace('"name"', '"function"'),
    "its name under tool": CALL.replace('"name"', '"tool"').replace("arguments", "tool_input"),
    "a list": f"[{CALL}]",
    "all of the message": f'{{"tool_calls": [{CALL}]}}',
    "a code fence": f"```json\n{CALL}\n```",
    "a fence without a word": f"```\n{CALL}\n```",
    "tags": f"<tool_call>\n{CALL}\n</tool_call>",
    "a tag that is not closed": f"<tool_call>{CALL}",
    "a fence within tags": f"```xml\n<tool_call>{CALL}</tool_call>\n```",
    "Mistral's mark": f"[TOOL_CALLS] [{CALL}]",
    "Llama's mark": f"<|python_tag|>{CALL}",
    "Phi's mark": f"functools[{CALL}]",
    "double braces": '{{"name": "weather", "arguments": {{"city": "Paris"}}}}',
    "double braces outside": '{{"name": "weather", "arguments": {"city": "Paris"}}}',
    "Python": 'weather(city="Paris")',
    "Python in a list": "[weather(city='Paris')]",
    "Python in a fence": '```python\nweather(city="Paris")\n```',
}
SEVERAL = {
    "a list": f"[{CALL}, {ADD}]",
    "lines": f"{CALL}\n{ADD}",
    "semicolons": f"{CALL}; {ADD}",
    "tags": f"<tool_call>\n{CALL}\n</tool_call>\n<tool_call>\n{ADD}\n</tool_call>",
    "Python": 'weather(city="Paris"), add(a=1, b=[2, None])',
    "Python in a list": '[weather(city="Paris"), add(a=1, b=[2, None])]',
}
ANSWERS = {
    "prose before": f"Call it like this: {CALL}",
    "prose after": f"{CALL}\nThis asks for the weather.",
    "prose around a fence": f"Use this:\n```json\n{CALL}\n```\nThen wait.",
    "another tool": CALL.replace("weather", "rain"),
    "one of two is another": f"[{CALL}, {ADD.replace('add', 'sum')}]",
    "a further key": CALL.replace("{", '{"note": "x", ', 1),
    "no arguments": '{"name": "weather"}',
    "arguments that are no object": '{"name": "weather", "arguments": [1]}',
    "data": '{"city": "Paris", "degrees": 21}',
    "data with a name": '{"name": "Bob", "arguments": {"age": 7}}',
    "half of it": CALL[:30],
    "Python that is no literal": "weather(city=home)",
    "Python with places": 'weather("Paris")',
    "Python with stars": "weather(**more)",
    "a program": 'print(weather(city="Paris"))',
    "a list of numbers": "[1, 2]",
    "a number that is none": '{"name": "add", "arguments": {"a": NaN}}',
    "nothing": "",
}


def read(text: str, **options: Any) -> list[tuple[str, Any]]:
    calls = TextToolCallParser.of(AnswerOptions(tools=TOOLS, **options)).read(text)
    return [(call.name, json.loads(call.arguments)) for call in calls]


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS.keys())
def test_a_call_in_any_form_is_read(text: str) -> None:
    assert read(text) == [PARIS]


@pytest.mark.parametrize("text", SEVERAL.values(), ids=SEVERAL.keys())
def test_several_calls_are_read_in_order(text: str) -> None:
    assert read(text) == [PARIS, SUM]
    assert read(text, parallel_tool_calls=False) == [PARIS]


@pytest.mark.parametrize("text", ANSWERS.values(), ids=ANSWERS.keys())
def test_plain_answers_are_not_parsed_as_tool_calls(text: str) -> None:
    assert read(text) == []


@pytest.mark.parametrize(
    ("options", "calls"),
    [
        ({"tool_choice": "auto"}, [PARIS]),
        ({"tool_choice": "required"}, [PARIS]),
        ({"tool_choice": {"type": "function", "function": {"name": "weather"}}}, [PARIS]),
        ({"tool_choice": {"type": "function", "function": {"name": "add"}}}, []),
        ({"tool_choice": "none"}, []),
        ({"response_format": {"type": "json_object"}}, []),
    ],
)
def test_only_calls_that_the_request_wants_are_read(options: dict[str, Any], calls: list[Any]) -> None:
    assert read(CALL, **options) == calls


def test_without_tools_nothing_is_a_call() -> None:
    assert TextToolCallParser.of(AnswerOptions()).read(CALL) == ()


@given(st.sampled_from([*FORMS.values(), *SEVERAL.values(), *ANSWERS.values()]), st.data())
def test_a_stream_passes_on_the_answer_and_no_call(text: str, data: st.DataObject) -> None:
    written = TextToolCallParser.of(AnswerOptions(tools=TOOLS))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    passed = "".join(map(written.add, pieces)) + written.end()
    assert passed == ("" if read(text) else text)


@pytest.mark.parametrize(
    ("text", "passed_on"),
    [
        ("The", "The"),
        ('{"city": "P', '{"city": "P'),
        ('{"name": "Bob", ', '{"name": "Bob", '),
        ("```python\nimport", "```python\nimport"),
        ("[1, ", "[1, "),
        ("weak", "weak"),
        ('{"name": "wea', ""),
        ("```json\n{", ""),
        ("<tool", ""),
        ("wea", ""),
    ],
)
def test_text_that_cannot_become_a_tool_call_is_passed_on_at_once(text: str, passed_on: str) -> None:
    assert TextToolCallParser.of(AnswerOptions(tools=TOOLS)).add(text) == passed_on


def test_thoughts_before_a_written_call_stay_thoughts() -> None:
    builder = ReplyBuilder(call_parser=TextToolCallParser.of(AnswerOptions(tools=TOOLS)))
    chunks = ["<think>Paris, ", "surely.</think>\n\n<tool_", f"call>{CALL}", "</tool_call>"]
    passed = [builder.add({"choices": [{"index": 0, "delta": {"content": chunk}}]}) for chunk in chunks]
    passed.append(builder.end())
    assert "".join(text for text, _ in passed).strip() == ""
    assert "".join(thought for _, thought in passed) == "Paris, surely."
    calls, text = builder.read_calls()
    assert ([call.name for call in calls], text, builder.reasoning) == (["weather"], "", "Paris, surely.")


@pytest.mark.parametrize(
    ("text", "count"), [(f"```json\n{CALL}\n```\n\n\n\n", 1), (f"```json\n{CALL[:-1]}", 0)]
)
def test_only_tool_calls_complete_before_the_cut_are_parsed(text: str, count: int) -> None:
    builder = ReplyBuilder(call_parser=TextToolCallParser.of(AnswerOptions(tools=TOOLS)))
    builder.add({"choices": [{"index": 0, "message": {"content": text}, "finish_reason": "length"}]})
    calls, rest = builder.read_calls()
    assert (len(calls), rest) == (count, "" if count else text)
