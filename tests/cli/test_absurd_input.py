"""Files that never end or never begin, numbers that nobody means, and addresses that lost a slash: one sentence."""

from __future__ import annotations

import os
from itertools import cycle
from pathlib import Path

import pytest

from command_line import Podium
from podium.cli.found_files import FoundFiles
from podium.cli.trust import trust
from refused_commands import one_sentence
from tiny_policy import write_policy

PASSWORD = "hunter2"
ADDRESS = f"postgresql:/me:{PASSWORD}@db/podium"
PLACES = ("pipe", "/dev/zero", "folder")


@pytest.fixture(autouse=True)
def _odd_files(tmp_path: Path) -> None:
    os.mkfifo("pipe")
    Path("folder").mkdir()


COMMANDS = [
    "ask Q? --pool {}",
    "ask Q? --team {}",
    "ask Q? --pool pool.toml --planner constant:{}",
    "ask Q? --pool pool.toml --planner constant:plan.txt --store {}",
    "plan Q? --pool {}",
    "pool list --pool {}",
    "serve --pool {} --port 0",
    "eval {} --run r",
    "eval --recording {}",
    "tasks show {}",
    "record out.parquet --tasks {}",
    "rate {} ratings.json --pool pool.toml",
    "replay show {}",
    "replay import table {} out.parquet",
    "train --run r --config {}",
    "config show --team {}",
    "keys list --store {}/traces.sqlite",
    "traces list --store {}",
    "cache show {}",
    "study --pool {} --tasks mine.csv",
]


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("command", "place"), list(zip(COMMANDS, cycle(PLACES))))
def test_paths_that_are_no_regular_file_are_refused_without_waiting(
    podium: Podium, command: str, place: str
) -> None:
    refused = podium(*command.format(place).split())
    assert refused.status in (1, 2)
    assert refused.err.startswith("podium: ")
    assert refused.err.count("\n") == 1


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["tokenizer.json", "podium.json", "config.json", "model.safetensors"])
@pytest.mark.parametrize("target", ["pipe", "/dev/zero"])
def test_a_checkpoint_with_a_pipe_is_refused(podium: Podium, name: str, target: str) -> None:
    write_policy(Path("policy"))
    Path("policy", name).unlink(missing_ok=True)
    Path("policy", name).symlink_to(target if target.startswith("/") else Path(target).absolute())
    assert name in one_sentence(
        podium("ask", "Q?", "--pool", "pool.toml", "--conductor", "policy", "--no-store")
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("podium.json", "[" * 100_000),
        ("config.json", '{"a":' * 100_000),
        ("podium.json", "\ud800"),
        ("config.json", '{"a": 1' + "0" * 5000 + "}"),
    ],
)
def test_a_checkpoint_with_damaged_json_is_refused(podium: Podium, name: str, text: str) -> None:
    write_policy(Path("policy"))
    Path("policy", name).write_bytes(text.encode("utf-8", "surrogatepass"))
    assert name in one_sentence(
        podium("ask", "Q?", "--pool", "pool.toml", "--conductor", "policy", "--no-store")
    )


@pytest.mark.parametrize(
    "options",
    [
        "ask Q? --max-steps 1" + 26 * "0",
        "ask Q? budget.tokens=1" + 26 * "0",
        "ask Q? --budget-usd 1e300",
        "ask Q? --rounds 1" + 26 * "0",
        "plan Q? --max-steps 1" + 26 * "0",
        "eval --questions 1" + 20 * "0",
        "record out.parquet --questions 1" + 12 * "0",
        "tasks show mine.csv --samples 1" + 20 * "0",
        "traces list --limit 1" + 20 * "0",
    ],
)
def test_absurd_numbers_of_options_are_refused(podium: Podium, options: str) -> None:
    one_sentence(podium(*options.split()))


@pytest.mark.parametrize(
    "line",
    [
        "limits = { max_tokens = 1" + 26 * "0" + " }",
        "price = { input = 1e300 }",
        "limits = { rpm = 1e40 }",
        "x = " + "[" * 5000,
        "latency = 1" + "0" * 5000,
    ],
)
def test_absurd_numbers_of_files_are_refused(podium: Podium, line: str) -> None:
    Path("bad.toml").write_text(f'[[worker]]\nname = "a"\nkind = "scripted"\nreplies = ["4"]\n{line}\n')
    assert "bad.toml" in one_sentence(podium("ask", "Q?", "--pool", "bad.toml"))


@pytest.mark.parametrize(
    ("command", "by"),
    [
        ("ask Q? --pool pool.toml", "option"),
        ("ask Q? --pool pool.toml", "environment"),
        ("ask Q? --pool pool.toml", "file"),
        ("traces list", "environment"),
        ("serve --port 0 --pool pool.toml", "option"),
        ("keys add ann", "file"),
        ("keys list", "option"),
        ("plan Q? --pool pool.toml", "environment"),
        ("traces export", "option"),
    ],
)
def test_malformed_store_address_makes_no_folder_and_shows_no_password(
    podium: Podium, monkeypatch: pytest.MonkeyPatch, command: str, by: str
) -> None:
    tokens = command.split()
    if by == "option":
        tokens += ["--store", ADDRESS]
    elif by == "environment":
        monkeypatch.setenv("PODIUM_STORE", ADDRESS)
    else:
        Path("team.toml").write_text(f'store = "{ADDRESS}"\n')
        trust(FoundFiles(Path("team.toml")))
    refused = podium(*tokens)
    assert refused.status == 2
    assert " address of a database" in refused.err or "://" in refused.err
    assert PASSWORD not in refused.err + refused.out
    assert not Path("postgresql:").exists()
