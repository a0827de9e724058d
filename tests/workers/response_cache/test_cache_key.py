"""The key: the same for the same question, another for any difference that can change the answer."""

from dataclasses import fields, replace

from hypothesis import assume, given
from hypothesis import strategies as st

from paid_worker import IDENTITY, request
from podium.types import AnswerOptions, Message, ToolCall
from podium.workers.base import Request
from podium.workers.response_cache import request_key

LETTERS = st.characters(exclude_categories=())
TEXTS = st.text(LETTERS, max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
IDENTITIES = st.dictionaries(TEXTS, JSON, max_size=4)
MESSAGES = st.lists(
    st.builds(
        Message,
        role=st.sampled_from(("system", "user", "assistant", "tool")),
        content=TEXTS,
        images=st.lists(TEXTS, max_size=2).map(tuple),
        tool_calls=st.lists(st.builds(ToolCall, id=TEXTS, name=TEXTS, arguments=TEXTS), max_size=2).map(
            tuple
        ),
        tool_call_id=st.none() | TEXTS,
    ),
    max_size=3,
).map(tuple)
OPTIONS = st.builds(
    AnswerOptions,
    max_tokens=st.none() | st.integers(1, 3),
    temperature=st.none() | st.floats(0, 2),
    stop=st.lists(TEXTS, max_size=2).map(tuple),
    tools=st.lists(st.dictionaries(TEXTS, JSON, max_size=2), max_size=2).map(tuple),
    tool_choice=st.none() | TEXTS,
    response_format=st.none() | st.dictionaries(TEXTS, JSON, max_size=2),
)
REQUESTS = st.builds(
    Request,
    messages=MESSAGES,
    seed=TEXTS,
    earlier_calls=st.just(0),
    duplicate_index=st.integers(0, 3),
    sample=st.integers(0, 3),
    fence_mark=st.just(""),
    options=OPTIONS,
    on_text=st.none(),
)


def key(identity, asked):
    return request_key(identity, asked)


def told(asked):
    """All of a request that can change the answer of a worker that sends no seed."""
    messages = [message.model_dump() for message in asked.messages]
    return exact([*messages, asked.duplicate_index, asked.sample, asked.options.model_dump()])


def exact(value):
    """Tells 1 from 1.0 and True, as JSON does."""
    if isinstance(value, dict):
        return {name: exact(inner) for name, inner in value.items()}
    return (
        [exact(inner) for inner in value] if isinstance(value, list | tuple) else (type(value), repr(value))
    )


@given(IDENTITIES, IDENTITIES, REQUESTS)
def test_another_identity_gives_another_key(one, other, asked):
    assert (key(one, asked) == key(other, asked)) == (exact(one) == exact(other))


@given(REQUESTS, REQUESTS)
def test_other_messages_options_duplicates_and_samples_give_another_key(one, other):
    assert (key(IDENTITY, one) == key(IDENTITY, other)) == (told(one) == told(other))


@given(REQUESTS, st.data())
def test_each_part_of_a_request_counts_by_itself(asked, data):
    part = data.draw(st.sampled_from(("messages", "duplicate_index", "sample", "options")))
    other = replace(asked, **{part: getattr(data.draw(REQUESTS), part)})
    assert (key(IDENTITY, asked) == key(IDENTITY, other)) == (told(asked) == told(other))


@given(TEXTS, TEXTS, st.lists(TEXTS, min_size=1, max_size=4), TEXTS)
def test_text_cannot_be_mistaken_for_a_fence_mark(one, other, pieces, text):
    """Two requests are one if and only if the one becomes the other when its mark is exchanged."""
    first, second = f"«{one}»", f"«{other}»"
    assume(all(mark not in piece for mark in (first, second) for piece in (*pieces, text, "".join(pieces))))
    marked = key(IDENTITY, request(first.join(pieces), fence_mark=first))
    assert marked == key(IDENTITY, request(second.join(pieces), fence_mark=second))
    assert (marked == key(IDENTITY, request(text, fence_mark=second))) == (pieces == [text])
    if second != first and len(pieces) > 1:
        assert marked != key(IDENTITY, request(second.join(pieces), fence_mark=first))


def test_the_order_of_an_identity_does_not_matter():
    assert key(dict(reversed(IDENTITY.items())), request()) == key(IDENTITY, request())


def test_seed_is_part_of_the_cache_key_only_when_sent():
    one, other = request(seed="1", question_seed="q"), request(seed="2", question_seed="r")
    assert key(IDENTITY, one) == key(IDENTITY, other)
    assert key(IDENTITY | {"seed": 7}, one) == key(IDENTITY | {"seed": 7}, other)
    assert key(IDENTITY | {"seed": True}, one) != key(IDENTITY | {"seed": True}, other)
    assert key(IDENTITY | {"seed": True}, one) == key(IDENTITY | {"seed": True}, replace(one, fence_mark="m"))


def test_every_field_of_a_request_is_listed_as_part_of_the_key_or_not():
    counts = {"messages", "duplicate_index", "sample", "options", "seed"}
    does_not = {
        "question_seed",
        "earlier_calls",
        "fence_mark",
        "missing_responses",
        "on_text",
        "on_reasoning",
        "executor_view",
    }
    # Whether a reply of thoughts alone is a failure, what failures took, and who pays; failures are not kept.
    does_not |= {"thoughts_suffice", "receipt", "spend_limits"}
    assert {field.name for field in fields(Request)} == counts | does_not


def test_keys_are_the_same_from_one_version_to_the_next():
    """What was paid for under a key is lost when the key changes: then `FORMAT` has to."""
    asked = Request(
        (Message(role="system", content="Be \ud800 brief."), Message(role="user", content="a 0a1b b\0")),
        seed="s",
        duplicate_index=1,
        sample=2,
        fence_mark="0a1b",
    )
    assert key(IDENTITY | {"seed": True}, asked).hex() == (
        "35f28249c5b7ad6b1d3a55e4c66b056a4f4000fdabd79584831b98daddc28fc8"
    )
