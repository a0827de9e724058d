import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.errors import UsageError
from podium.trace.serialization import read_jsonl, to_json, write_jsonl
from sample_traces import build_trace

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


def test_writing_and_reading_give_the_same_traces():
    traces = [build_trace("a"), build_trace("b", answer=None, status="failed", error="no step succeeded")]
    stream = io.StringIO()
    assert write_jsonl(traces, stream) == 2
    assert list(read_jsonl(io.StringIO(stream.getvalue()), "here")) == traces


@given(text=TEXTS, answer=TEXTS)
def test_any_text_survives_on_one_line(text, answer):
    trace = build_trace(text=text, answer=answer)
    line = to_json(trace)
    assert not set("\r\n") & set(line)
    assert list(read_jsonl([line], "here")) == [trace]


@given(text=st.text(st.characters()))
def test_half_surrogate_pairs_are_replaced_and_nothing_else_is(text):
    kept = next(read_jsonl([to_json(build_trace(text=text)).encode()], "here")).question.text
    assert kept == "".join("?" if "\ud800" <= letter <= "\udfff" else letter for letter in text)


def test_blank_lines_are_passed_over_but_counted():
    lines = ["\n", to_json(build_trace()), "  \n", "broken"]
    with pytest.raises(UsageError, match=r"^here, line 4: "):
        list(read_jsonl(lines, "here"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "{",
            "all.jsonl, line 1: not a trace (Invalid JSON: EOF while parsing an object at line 1 column 1).",
        ),
        ("[]", "all.jsonl, line 1: not a trace (Input should be an object)."),
        ('{"id": 3}', "all.jsonl, line 1: not a trace at id (Input should be a valid string)."),
        (b"\xff\xfe", "all.jsonl, line 1: not a trace (Invalid JSON: "),
    ],
)
def test_a_broken_line_is_refused_by_file_line_and_field(line, message):
    with pytest.raises(UsageError) as refused:
        list(read_jsonl([line], "all.jsonl"))
    assert str(refused.value).startswith(message)


def test_reading_is_lazy():
    def lines():
        yield to_json(build_trace())
        raise AssertionError("the second line was read too early")

    assert next(read_jsonl(lines(), "here")).id == "t1"
