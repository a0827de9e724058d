import asyncio
import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from podium.types import Message, Price, Profile
from podium.workers.base import Request
from podium.workers.response_cache import ResponseCache
from podium.workers.scripted import ScriptedWorker


@pytest.fixture
def file() -> Path:
    """Three replies of one worker and one of another."""
    file = Path("answers.sqlite")

    async def fill() -> None:
        with ResponseCache(file) as cache:
            for name, samples in (("ada", 3), ("b\x1b[2Job", 1)):
                worker = ScriptedWorker(
                    name, {"": "1234"}, profile=Profile(name=name, price=Price(output=1000.0))
                )
                worker.identity = {"model": name}
                for sample in range(samples):
                    asked = Request((Message(role="user", content="What?"),), seed="", sample=sample)
                    await cache.get_or_call(worker, asked, lambda ask=worker.answer, asked=asked: ask(asked))

    asyncio.run(fill())
    return file


def test_cache_show_lists_replies_and_cost_by_worker(podium, file):
    shown = podium("cache", "show", str(file))
    assert (shown.status, shown.err) == (0, "")
    first, heading, *rows = shown.out.splitlines()
    assert first == "4 replies in answers.sqlite, 0.0 MB, for $0.0040."
    assert heading.split() == ["worker", "replies", "cost", "oldest", "(UTC)", "newest", "(UTC)"]
    assert rows[0].split()[:3] == ["ada", "3", "$0.0030"]
    assert rows[1].split()[:3] == ["b␛[2Job", "1", "$0.0010"]


def test_cache_show_prints_json(podium, file):
    shown = json.loads(podium("cache", "show", str(file), "--json").out)
    assert shown["bytes"] > 4096
    assert [(worker["worker"], worker["replies"]) for worker in shown["workers"]] == [
        ("ada", 3),
        ("b\x1b[2Job", 1),
    ]
    assert datetime.fromisoformat(shown["workers"][0]["oldest"]).utcoffset() == timedelta(0)


def test_cache_clear_deletes_old_or_all_replies(podium, file):
    kept = podium("cache", "clear", str(file), "--older", "1d")
    assert (kept.status, kept.out, kept.err) == (0, "", "Deleted 0 replies; 4 left in answers.sqlite.\n")
    assert podium("cache", "clear", str(file)).err == "Deleted 4 replies; 0 left in answers.sqlite.\n"
    assert podium("cache", "show", str(file)).out == "0 replies in answers.sqlite, 0.0 MB, for $0.\n"


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        (
            ("show", "none.sqlite"),
            "podium: There is no response cache at none.sqlite; a run with this file and without replay creates it.",
        ),
        (
            ("clear", "none.sqlite"),
            "podium: There is no response cache at none.sqlite; a run with this file and without replay creates it.",
        ),
        (
            ("clear", "pool.toml"),
            "podium: The response cache pool.toml cannot be opened (file is not a database)",
        ),
        (("clear", "answers.sqlite", "--older", "soon"), "podium: 'soon' is not a time; write a date"),
    ],
)
def test_cache_verbs_refuse_unusable_files_and_change_nothing(podium, file, tokens, said):
    before = file.read_bytes()
    refused = podium("cache", *tokens)
    assert (refused.status, refused.out) == (2, "")
    assert refused.err.startswith(said)
    assert file.read_bytes() == before
    assert not Path("none.sqlite").exists()
