"""`podium study --preset compose` over an endpoint of twenty priced models: few know something, some are broken."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from podium.team.team_file import open_pool
from podium_testing import FaultServer, Rule, Status
from refused_commands import one_sentence
from scripted_team import write_team

Podium = Callable[..., Any]
KINDS = {
    "add": ("What is {} plus seven? Add the numbers.", lambda n: n + 7),
    "double": ("Double the amount of {} litres of water in the barrel.", lambda n: 2 * n),
    "square": ("Compute the square area of a field with side {} metres.", lambda n: n * n),
    "days": ("Which calendar date comes {} days later in the year?", lambda n: 365 - n),
}
NAMES = [f"maker/m{i:02}" for i in range(20)]
PRICES = {name: (0.1 * (i + 1), 0.4 * (i + 1)) for i, name in enumerate(NAMES)}
BROKEN = {"maker/m01", "maker/m05", "maker/m16"}
TESTS = 12
"""Three of each kind."""


def known(number: int) -> set[str]:
    """What a model knows: of the cheap ones every third nothing and the others one kind, of the dear ones all."""
    names = list(KINDS)
    return set(names) if number >= 17 else set() if number % 3 == 0 else {names[number % 4]}


def model(number: int) -> Callable[[list[dict[str, Any]], dict[str, Any]], str]:
    def answer(messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
        text = " ".join(str(message["content"]) for message in messages)
        if found := re.search(r"<<<response \w+>>>\n(\d+)", text):
            return "RIGHT" if int(found[1]) == 17 else "WRONG"
        for kind, (form, right) in KINDS.items():
            if found := re.search(form.replace("?", r"\?").format(r"(\d+)"), text):
                return f"Answer: {right(int(found[1])) if kind in known(number) else 'unknown'}"
        return "I see no question."

    return answer


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultServer]:
    """The endpoint; `mine.csv` has ten questions of each kind."""
    monkeypatch.setenv("MY_KEY", "sk-0123456789")
    rows = [f"{form.format(n)},{right(n)}\n" for form, right in KINDS.values() for n in range(10, 20)]
    Path("mine.csv").write_text("question,answer\n" + "".join(rows))
    models = {name: model(i) for i, name in enumerate(NAMES)} | {"unpriced": "17", "router": "17"}
    with FaultServer(
        models=models,
        prices=PRICES | {"router": (-1e6, -1e6)},
        keys={"sk-0123456789"},
        rules=[Rule(fault=Status(code=400), model=name) for name in BROKEN],
    ).in_thread() as server:
        yield server


def compose_of(server: FaultServer) -> tuple[str, ...]:
    """The command up to the dollars."""
    given = (
        "study",
        "--preset",
        "compose",
        "--pool",
        server.url,
        "--tasks",
        "mine.csv",
        "--key-env",
        "MY_KEY",
    )
    return (*given, "--run", "chosen", "--run-budget-usd")


def asked(server: FaultServer) -> Counter[str]:
    return Counter(request.model for request in server.requests if request.model is not None)


def paid(server: FaultServer) -> float:
    """Dollars by the endpoint's own spend limit."""
    return sum(
        (request.input_tokens * PRICES[request.model][0] + request.output_tokens * PRICES[request.model][1])
        / 1e6
        for request in server.requests
        if request.model is not None and request.fault is None
    )


def test_the_cheapest_cover_is_chosen_and_paid_once(podium: Podium, endpoint: FaultServer) -> None:
    compose = (*compose_of(endpoint), "2", "--json")
    done = podium(*compose)
    assert done.status == 0, done.err
    result = json.loads(done.out)
    cover = ["maker/m02", "maker/m04", "maker/m07", "maker/m13"]
    assert result["chosen"] == cover
    assert result["uncovered"] == []
    assert "Left out: 2 models" in done.err
    assert asked(endpoint) == {name: 1 if name in BROKEN else TESTS for name in NAMES}
    assert result["spent_usd"] == pytest.approx(paid(endpoint))
    pool = open_pool(Path("chosen/team.toml"))
    assert list(pool.names) == cover
    ratings = [profile.rating for profile in pool.profiles_for(KINDS["days"][0].format(99))]
    best = max(ratings, key=lambda rating: rating.accuracy if rating else 0.0)
    assert best is not None
    assert ratings.index(best) == cover.index("maker/m07")
    assert best.questions == 3
    before = paid(endpoint)
    again = podium(*compose)
    assert json.loads(again.out) == result
    assert paid(endpoint) == before
    assert asked(endpoint).total() == (len(NAMES) - len(BROKEN)) * TESTS + 2 * len(BROKEN)


def test_compose_stops_at_its_budget_and_resumes_with_a_larger_budget(
    podium: Podium, endpoint: FaultServer
) -> None:
    compose = compose_of(endpoint)
    small = podium(*compose, "0.01")
    assert small.status == 0, small.err
    assert 0 < paid(endpoint) <= 0.01
    assert "The budget ended before all candidates were tested" in small.out
    assert set(open_pool(Path("chosen/team.toml")).names) <= set(NAMES[:10])
    assert podium(*compose, "2", "--workers", "1").status == 0
    assert asked(endpoint).most_common(1)[0][1] == TESTS
    assert open_pool(Path("chosen/team.toml")).names == ("maker/m02",)


def test_a_pool_file_keeps_its_settings_and_its_tools(podium: Podium, endpoint: FaultServer) -> None:
    worker = (
        '[[worker]]\nname = "{0}"\nkind = "openai"\nmodel = "maker/{0}"\nbase_url = "{1}"\napi_key_env = "MY_KEY"\n'
        'price = {{ input = {2}, output = 1 }}\nfallback = "{3}"\nlimits.max_tokens = 50\n'
    )
    Path("many").mkdir()
    Path("many/candidates.toml").write_text(
        '[conductor]\nworker = "m00"\nprompt.examples = 0\n'
        + worker.format("m00", endpoint.url, 1, "m18")
        + worker.format("m18", endpoint.url, 2, "m19")
        + worker.format("m19", endpoint.url, 3, "vote")
        + '[[worker]]\nname = "vote"\nkind = "vote"\n'
    )
    Path("open.csv").write_text("question\nWhat is 10 plus seven? Add the numbers.\n")
    done = podium(
        *("study", "--preset", "compose", "--pool", "many/candidates.toml", "--tasks", "open.csv"),
        *("--judge", "m19", "budget.run_usd=1", "--run", "team"),
    )
    assert done.status == 0, done.err
    assert "covers unsorted" in done.out
    tables = tomllib.loads(Path("team/team.toml").read_text())
    assert tables["conductor"] == {"prompt": {"examples": 0}}
    assert [table["name"] for table in tables["worker"]] == ["m18", "vote"]
    assert tables["worker"][0]["limits"] == {"max_tokens": 50}
    assert "fallback" not in tables["worker"][0]
    assert open_pool("team/team.toml").ratings is not None


@pytest.mark.parametrize(
    ("tokens", "sentence"),
    [
        (("pool.toml", "mine.csv", "--run-budget-usd", "0"), "--run-budget-usd 0: give dollars above 0."),
        (("pool.toml", "mine.csv"), "say with --run-budget-usd how much it may spend"),
        (("two.toml", "mine.csv", "--run-budget-usd", "1", "--run", "there"), "no study composed it"),
        (("two.toml", "none.csv", "--run-budget-usd", "1", "--run", "new"), "none.csv"),
        (
            ("two.toml", "open.csv", "--run-budget-usd", "1", "--run", "new"),
            "or name the candidate that judges",
        ),
        (
            ("two.toml", "mine.csv", "--run-budget-usd", "1", "--run", "new", "--key-env", "X"),
            "names its keys itself",
        ),
        (("URL", "mine.csv", "--run-budget-usd", "1", "--run", "new"), "its list of models cannot be read"),
    ],
)
def test_unusable_compose_options_are_refused_before_any_paid_call(
    podium: Podium, endpoint: FaultServer, tokens: tuple[str, ...], sentence: str
) -> None:
    Path("open.csv").write_text("question\nWhat is 10 plus seven?\n")
    write_team(Path("two.toml"))
    Path("there").mkdir()
    Path("there/team.toml").write_text("[budget]\nusd = 1\n")
    pool, tasks, *others = (endpoint.url if token == "URL" else token for token in tokens)
    given = ("--preset", "compose", "--pool", pool, "--tasks", tasks, *others)
    assert sentence in one_sentence(podium("study", *given))
    assert not asked(endpoint)
    assert not Path("new").exists()
