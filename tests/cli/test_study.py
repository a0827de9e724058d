"""`podium study` from the plan of spending to the served recommendation, over a real endpoint."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from loaded_programs import loaded_podium
from podium.evals.study.result import Study
from podium.planners import Single
from podium.store import TraceStore
from podium.team import Runner
from podium.trace import Trace
from podium.types import Question
from podium.workers import Pool, ScriptedWorker
from podium_testing import FaultServer
from refused_commands import one_sentence

Podium = Callable[..., Any]
QUESTIONS, WORKERS = 40, ("ada", "bob", "cy", "dan", "eve")
CALLS = QUESTIONS * len(WORKERS) * 6 // 5
"""Each worker answers each question once, and a fifth of them twice."""
STUDY = ("study", "--pool", "my.toml", "--tasks", "mine.csv", "--run-budget-usd", "0.005", "--run", "found")


def reply(messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
    """Each worker errs on three questions of ten, no two of neighbours on the same, and each in its own way."""
    text = " ".join(str(message["content"]) for message in messages)
    if "You judge a response" in text:
        return _judged(text)
    found = re.search(r"What is (\d+) plus 1000\?", text)
    if found is None:
        return "I see no question."
    number, place = int(found[1]), WORKERS.index(body["model"])
    wrong = (number + 2 * place) % 10 < 3
    return f"Answer: {number + 1000 + wrong * (place + 1)}"


def _judged(text: str) -> str:
    number, said = (
        re.search(r"What is (\d+) plus 1000\?", text),
        re.search(r"<<<response \w+>>>\n(\d+)", text),
    )
    assert number, text
    assert said, text
    return "RIGHT" if int(number[1]) + 1000 == int(said[1]) else "WRONG"


@pytest.fixture
def endpoint() -> Iterator[FaultServer]:
    """An endpoint of five models, and a team file and questions for it."""
    with FaultServer(reply).in_thread() as server:
        worker = (
            '[[worker]]\nname = "{0}"\nkind = "openai"\nmodel = "{0}"\nbase_url = "{1}"\n'
            "price = {{ input = 0.1, output = 0.1 }}\nlimits = {{ max_tokens = 100, retries = 0 }}\n"
        )
        Path("my.toml").write_text("\n".join(worker.format(name, server.url) for name in WORKERS))
        rows = (f"What is {n} plus 1000?,{n + 1000}\n" for n in range(QUESTIONS))
        Path("mine.csv").write_text("question,answer\n" + "".join(rows))
        yield server


def test_a_team_that_pays_is_found_explained_and_served(podium: Podium, endpoint: FaultServer) -> None:
    done = podium(*STUDY, "--yes")
    assert done.status == 0, done.err
    # A cascade is right as often, and costs as much.
    assert done.out.startswith("Use a vote of ")
    assert "The Conductor is left out" in done.err
    assert len(endpoint.requests) == CALLS
    result = Study.load(Path("found/study.json"))
    assert (result.recommended.verdict, result.questions, result.judged_by) == ("better", QUESTIONS, "golds")
    assert result.recommended.difference is not None
    assert result.recommended.difference.low > 0.1
    assert 0 < result.spent_usd < 0.005
    assert result.bounds.repeated == QUESTIONS // 5
    page = Path("found/study.md").read_text()
    html = Path("found/study.html").read_text()
    for part in (
        "Use a vote of",
        "| cascade: a cascade of",
        "$0.00 was spent",
        "at least one worker was right",
    ):
        assert part in page
    assert html.count("<svg") > len(result.rows)
    assert not re.search(r'(?:src|href)="', html)

    again = podium(*STUDY, "--yes")
    assert again.out == done.out
    assert len(endpoint.requests) == CALLS

    settings = Path("found/team.toml").read_text()
    assert 'planner = "committee:' in settings
    assert 'kind = "vote"' in settings
    with Served("--team", "found/team.toml") as url:
        asked = {"model": "podium", "messages": [{"role": "user", "content": "What is 123 plus 1000?"}]}
        request = urllib.request.Request(
            f"{url}/v1/chat/completions", json.dumps(asked).encode(), {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            said = json.load(response)["choices"][0]["message"]["content"]
    assert "1123" in said


@pytest.mark.parametrize(
    ("first", "others", "paid"),
    [
        ("price = { input = 0, output = 0 }", "price = { input = 0, output = 0 }", False),
        ("", "price = { input = 0, output = 0 }", True),
    ],
)
def test_a_price_of_0_is_free_and_one_that_is_not_given_unknown(
    podium: Podium, endpoint: FaultServer, first: str, others: str, paid: bool
) -> None:
    given = "price = { input = 0.1, output = 0.1 }"
    text = Path("my.toml").read_text().replace(given, first, 1).replace(given, others)
    Path("my.toml").write_text(text)
    command = ("study", "--pool", "my.toml", "--tasks", "mine.csv", "--questions", "6", "--run", "found")
    planned = json.loads(podium(*command, "--dry-run", "--json").out)
    assert (planned["paid"], planned["unpriced"]) == (paid, ["ada"] if paid else [])
    done = podium(*command)  # Without a budget, and without --yes.
    assert done.status == (2 if paid else 0), done.err
    assert bool(endpoint.requests) != paid


class Served:
    """`podium serve` as a process of its own."""

    def __init__(self, *tokens: str) -> None:
        self._process = subprocess.Popen(
            [loaded_podium(), "serve", "--port", "0", *tokens],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        found = re.search(r"http://[^ ]+", line)
        if found is None:
            self._process.kill()
            pytest.fail(f"{line} {self._process.communicate()[1]}")
        return found[0].rstrip("/")

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


def test_nothing_is_paid_before_somebody_said_yes(podium: Podium, endpoint: FaultServer) -> None:
    told = podium(*STUDY, "--dry-run")
    assert told.status == 0
    assert f"{QUESTIONS} questions" in told.err
    assert f"{CALLS} calls" in told.err
    estimate = json.loads(podium(*STUDY, "--dry-run", "--json").out)
    assert estimate["calls"] == CALLS
    assert 0 < estimate["cost_usd"]["likely"] < 0.005
    refused = podium(*STUDY)
    assert (refused.status, refused.err.splitlines()[-1]) == (
        2,
        "podium: Nothing was paid. To go on without being asked, add --yes.",
    )
    without_limit = tuple(token for token in STUDY if token not in ("--run-budget-usd", "0.005"))
    assert "--run-budget-usd" in one_sentence(podium(*without_limit, "--yes"))
    # A Conductor behind an endpoint is paid although no worker is.
    Path("unpaid.toml").write_text(
        f'[conductor]\nbase_url = "{endpoint.url}"\nmodel = "ada"\n'
        '[[worker]]\nname = "one"\nkind = "scripted"\nreplies = { "" = "Answer: 1" }\n'
        '[[worker]]\nname = "two"\nkind = "scripted"\nreplies = { "" = "Answer: 2" }\n'
    )
    conducted = podium("study", "--pool", "unpaid.toml", "--tasks", "mine.csv", "--run", "conducted")
    assert "--run-budget-usd" in one_sentence(conducted)
    assert not endpoint.requests
    assert not Path("found").exists()


def test_a_study_that_was_killed_goes_on_and_pays_nothing_twice(
    podium: Podium, endpoint: FaultServer
) -> None:
    command = [loaded_podium(), *STUDY, "--yes", "--concurrency", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as first:
        deadline = time.monotonic() + 120
        while len(endpoint.requests) < 20 and time.monotonic() < deadline:
            time.sleep(0.002)
        first.send_signal(signal.SIGKILL)
        first.communicate()
    before = len(endpoint.requests)
    assert 20 <= before < CALLS
    assert podium(*STUDY, "--yes", "--concurrency", "1").status == 0
    # Only the call that was in flight is made again.
    assert len(endpoint.requests) <= CALLS + 1


def test_a_budget_that_ends_early_leaves_a_study_of_fewer_questions(
    podium: Podium, endpoint: FaultServer
) -> None:
    less = tuple("0.0001" if token == "0.005" else token for token in STUDY)
    done = podium(*less, "--yes")
    assert done.status == 0, done.err
    assert "of which the budget reaches about" in done.err
    assert "Stopped: " in done.err
    found = Study.load(Path("found/study.json"))
    assert 2 <= found.questions < QUESTIONS
    assert found.spent_usd <= 0.0001
    assert podium(*STUDY, "--yes").status == 0
    asked = Counter((r.model, json.dumps(r.body["messages"])) for r in endpoint.requests)
    assert max(asked.values()) <= 2
    assert len(endpoint.requests) == sum(asked.values()) <= CALLS + len(WORKERS) * QUESTIONS // 5


def test_the_conductors_are_run_and_their_planning_is_paid(podium: Podium, endpoint: FaultServer) -> None:
    study = (*(("0.2" if token == "0.005" else token) for token in STUDY), "--yes", "--questions", "20")
    done = podium(*study)
    assert done.status == 0, done.err
    result = Study.load(Path("found/study.json"))
    conductors = {row.label: row for row in result.rows if row.planner is None}
    assert set(conductors) == {"Conductor", "Conductor that reads ratings"}
    plans = [r for r in endpoint.requests if "Write your plan" in json.dumps(r.body["messages"])]
    assert len(plans) >= 40
    reading = [r for r in plans if "of questions like this one" in json.dumps(r.body["messages"])]
    assert 20 <= len(reading) < len(plans)
    single = result.reference
    assert all(row.cost_usd > single.cost_usd for row in conductors.values())
    # Their answers are kept like those of the workers, also without the response cache.
    asked = len(endpoint.requests)
    Path("found/responses.sqlite").unlink()
    assert podium(*study).out == done.out
    assert len(endpoint.requests) == asked


@pytest.mark.nightly
def test_without_right_answers_a_judge_or_agreement_counts(podium: Podium, endpoint: FaultServer) -> None:
    rows = Path("mine.csv").read_text().splitlines()
    Path("mine.csv").write_text("\n".join(row.partition(",")[0] for row in rows) + "\n")
    agreed = podium(*STUDY, "--yes", "--json")
    assert agreed.status == 0, agreed.err
    by_others = Study.model_validate_json(agreed.out)
    assert by_others.judged_by == "agreement"
    assert not any(row.is_team for row in by_others.rows)
    assert "That measures agreement, not truth." in Path("found/study.md").read_text()
    judged = podium(*(("judged" if t == "found" else t) for t in STUDY), "--yes", "--json", "--judge", "ada")
    assert judged.status == 0, judged.err
    by_ada = Study.model_validate_json(judged.out)
    assert (by_ada.judged_by, by_ada.judge) == ("judge", "ada")
    assert by_ada.recommended.verdict == "better"
    assert "the worker ada judged all answers" in Path("judged/study.md").read_text()


async def _traces(count: int) -> list[Trace]:
    pool = Pool([ScriptedWorker("team", {"": "Answer: 1007"})])
    runner = Runner(Single("team"), pool)
    return [await runner.answer(Question(text=f"What is {n} plus 1000?")) for n in range(count)]


@pytest.mark.nightly
async def test_a_share_of_the_stored_traffic_is_studied(podium: Podium, endpoint: FaultServer) -> None:
    traces = await _traces(QUESTIONS)
    with TraceStore("traffic.sqlite") as store:
        store.add_all([*traces, traces[0].model_copy(update={"id": "again"})])
    shadow = (
        "study", "--preset", "shadow", "--pool", "my.toml", "--traces", "traffic.sqlite", "--run-budget-usd", "0.01",
        "--judge", "bob",
    )  # fmt: skip
    assert "--share 2" in one_sentence(podium(*shadow, "--share", "2", "--yes"))
    assert "name a file" in one_sentence(
        podium("study", "--preset", "shadow", "--traces", "postgresql://ada:pw@here/db", "--dry-run")
    )
    half = await _in_thread(podium, *shadow, "--share", "0.5", "--yes", "--json")
    assert half.status == 0, half.err
    some = Study.model_validate_json(half.out)
    assert 8 < some.questions < 32
    asked = {(r.model, json.dumps(r.body["messages"])) for r in endpoint.requests}
    own = [*shadow[:5], "store=traffic.sqlite", *shadow[7:]]
    whole = await _in_thread(podium, *own, "--share", "1", "--yes", "--json", "--run", "shadow")
    assert Study.model_validate_json(whole.out).questions == QUESTIONS
    assert len({(r.model, json.dumps(r.body["messages"])) for r in endpoint.requests}) > len(asked)


async def _in_thread(podium: Podium, *tokens: str) -> Any:
    import asyncio  # noqa: PLC0415

    return await asyncio.to_thread(podium, *tokens)


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        (["--repeats", "0"], "--repeats 0"),
        (["--margin", "2"], "--margin 2"),
        (["--run-budget-usd", "-1"], "budget.run_usd is -1"),
        (["--questions", "0"], "--questions 0"),
        (["--judge", "nobody"], "nobody"),
        (["--split", "test", "--tasks", "unanswered.csv"], "so it has no splits; leave --split out"),
        (["--share", "0.5"], "--share is an option of --preset shadow"),
        (["--preset", "shadow", "--workers", "2"], "--workers is an option of --preset compose"),
        (["--preset", "compose", "--repeats", "2"], "--preset compose does not read --repeats"),
    ],
)
def test_a_wrong_option_gets_a_sentence(podium: Podium, tokens: list[str], said: str) -> None:
    Path("mine.csv").write_text("question,answer\nAdd 2 and 3.,5\nDouble 5.,10\n")
    Path("unanswered.csv").write_text("question\nAdd 2 and 3.\n")
    assert said in one_sentence(
        podium(
            "study", "--pool", "pool.toml", *(() if "--tasks" in tokens else ("--tasks", "mine.csv")), *tokens
        )
    )
