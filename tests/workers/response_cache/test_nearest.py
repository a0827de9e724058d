"""A miss in replay: asked of nobody, told in one sentence with the nearest recorded request."""

import random
import sqlite3
import time
from contextlib import closing

import pytest
from paid import IDENTITY, Paid, reply, request

from podium.errors import WorkerError
from podium.types import AnswerOptions, Message
from podium.workers.base import Request
from podium.workers.response_cache import ResponseCache
from podium.workers.response_cache.entry import CacheKey
from podium.workers.response_cache.nearest import difference, nearest
from podium.workers.response_cache.table import similar


async def recorded(path, *asked, worker=None):
    with ResponseCache(path) as cache:
        for request_ in asked:
            await cache.reply(worker or Paid(), request_, ready)


async def ready():
    return reply()


async def missed(path, asked, worker=None):
    """The sentence of the miss."""

    async def never():
        raise AssertionError("asked in replay")

    with ResponseCache(path, replay=True) as cache:
        with pytest.raises(WorkerError) as miss:
            await cache.reply(worker or Paid(), asked, never)
        assert (miss.value.kind, miss.value.retryable) == ("unrecorded", False)
    return str(miss.value)


OTHERS = [request(f"Name the capital of country {k}.") for k in range(5)]


async def test_the_sentence_names_file_worker_difference_and_way_out(tmp_path):
    path = tmp_path / "c.sqlite"
    await recorded(
        path, *OTHERS, request("Find the date 61 days after 3 March 2024. Then name the weekday of it.")
    )
    sentence = await missed(
        path, request("Find the date 61 days after 4 March 2024. Then name the weekday of it.")
    )
    assert sentence == (
        f"{path} has no reply of 'big' to this request: the nearest recorded request differs first in message 1: "
        "…' the date 61 days after 4 March 2024. Then name the weekday of i'… here, "
        "…' the date 61 days after 3 March 2024. Then name the weekday of i'… there; "
        "record it by running once without replay."
    )


@pytest.mark.parametrize(
    ("asked", "worker", "found"),
    [
        (request(sample=3), Paid(), "differs first in the sample: 3 here, 1 there"),
        (request(duplicate=2), Paid(), "differs first in the repeat: 2 here, 0 there"),
        (
            request(),
            Paid(extra={"top_p": 0.5}),
            "differs first in the setting extra.top_p: 0.5 here, 0.9 there",
        ),
        (request(), Paid(model="small"), "differs first in the setting model: 'small' here, 'big' there"),
        (request(), Paid(stop=["a"]), 'differs first in the setting stop: ["a"] here, nothing there'),
        (request(), Paid(seed=True), "differs first in the setting seed: true here, nothing there"),
        (
            Request((Message(role="system", content="What is 6 x 7?"),), seed=""),
            Paid(),
            "differs first in role of message 1: 'system' here, 'user' there",
        ),
        (
            Request(
                (Message(role="user", content="What is 6 x 7?", images=("https://here/a.png",)),), seed=""
            ),
            Paid(),
            'differs first in images of message 1: ["https://here/a.png"] here, nothing there',
        ),
        (
            request(options=AnswerOptions(temperature=0.5)),
            Paid(),
            'differs first in the options: {"temperature": 0.5} here, nothing there',
        ),
        (
            Request((*request().messages, Message(role="user", content="Sure?")), seed=""),
            Paid(),
            "differs first in message 2: 'Sure?' here, nothing there",
        ),
        (
            request("What is 6 x 7? 0a1b", mark="0a1b"),
            Paid(),
            "message 1: 'What is 6 x 7? ' here, 'What is 6 x 7?' there",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_what_differs_is_named_whatever_it_is(tmp_path, asked, worker, found):
    path = tmp_path / "c.sqlite"
    await recorded(path, *OTHERS, request(), request(sample=1))
    assert found in await missed(path, asked, worker)


async def test_a_worker_that_was_never_recorded_is_compared_with_the_others(tmp_path):
    path = tmp_path / "c.sqlite"
    await recorded(path, request(), worker=Paid("small", model="small"))
    assert (
        "has no reply of 'big' to this request: the nearest recorded request, to 'small', differs first in the "
        in (await missed(path, request()))
    )


async def test_an_empty_file_says_so(tmp_path):
    ResponseCache(tmp_path / "c.sqlite").close()
    assert await missed(tmp_path / "c.sqlite", request()) == (
        f"{tmp_path / 'c.sqlite'} has no reply of 'big' to this request: it is empty; "
        "record it by running once without replay."
    )


async def test_nothing_in_the_sentence_can_command_a_terminal(tmp_path):
    path = tmp_path / "c.sqlite"
    await recorded(path, request("\x1b[2J\n\u202e\ud800 one"))
    assert (await missed(path, request("\x1b[2J\n\u202e\ud800 two"))).isprintable()


async def test_nothing_is_written_in_replay(tmp_path):
    path = tmp_path / "c.sqlite"
    await recorded(path, request())
    before = path.read_bytes()
    await missed(path, request("other"))
    assert path.read_bytes() == before


def test_the_nearest_of_many_is_the_one_that_was_changed_least():
    chance = random.Random("nearest")
    words = [f"word{k}" for k in range(300)]
    texts = [" ".join(chance.choices(words, k=120)) for _ in range(100)]
    asked = [CacheKey.of("big", IDENTITY, request(text)) for text in texts]
    for number in range(0, 100, 7):
        changed = texts[number].split()
        for place in chance.sample(range(120), 6):
            changed[place] = "changed"
        sought = CacheKey.of("big", IDENTITY, request("A new preamble. " + " ".join(changed)))
        assert nearest(sought, asked) is asked[number]
    assert nearest(sought, []) is None
    assert difference(sought, sought) == "is the same"


def test_between_equal_words_the_settings_decide_then_the_sample() -> None:
    def asked(sample=0, **settings):
        text = "one two three four five six"
        return CacheKey.of("big", IDENTITY | settings, request(text, sample=sample))

    sought = asked(sample=4)
    other = asked(sample=4, model="small")
    first, second, third = (asked(sample=k) for k in (0, 3, 9))
    for order in ([other, first, second, third], [third, second, first, other]):
        assert nearest(sought, order) is second


async def test_looking_for_the_nearest_is_bounded_work(tmp_path):
    """However much is recorded, and however long it is: thousands of texts, or texts of a megabyte."""
    many, long = tmp_path / "many.sqlite", tmp_path / "long.sqlite"
    chance = random.Random("bounded")
    words = [f"word{k}" for k in range(1000)]

    def text(size):
        return " ".join(chance.choices(words, k=size))

    await recorded(many, *(request(text(chance.randint(20, 60))) for _ in range(3000)))
    await recorded(long, *(request(text(150_000)) for _ in range(12)))
    with closing(sqlite3.connect(long)) as db:
        assert 1 <= len(list(similar(db, "big", 1_000_000, 12))) <= 6
    for path, size in ((many, 40), (long, 150_000)):
        asked = request(text(size))
        began = time.process_time()
        await missed(path, asked)
        assert time.process_time() - began < 5
