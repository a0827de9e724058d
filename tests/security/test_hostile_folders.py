"""A cloned repository brings a team.toml: until the user trusts it, nothing that it names is run, called or written.

Each case is tried twice: untrusted it must do nothing, and trusted it must do what it says, or the first try proves
nothing.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from command_line import Outcome, Podium, run_command
from podium.cli.found_files import FoundFiles
from podium.cli.found_team import FoundTeam, find_team
from podium.cli.team_options import RunOptions, TeamOptions
from podium.cli.trust import trust
from podium.errors import ConfigError, UsageError
from podium.team.team_file import TeamReference, open_pool
from podium_testing import FaultServer
from scripted_team import write_team

SECRETS = {"OPENAI_API_KEY": "sk-of-the-user", "OTHER_SECRET": "hf-of-the-user"}
SCRIPTED = '[[worker]]\nname = "w"\nkind = "scripted"\nreplies = ["Four."]\n'
ENDPOINT = '[[worker]]\nname = "w"\nkind = "openai"\nmodel = "m"\nbase_url = "{url}"\n'
COMMAND = '[[worker]]\nname = "w"\nkind = "command"\ncommand = ["sh", "tool.sh"]\n'
FUNCTION = '[[worker]]\nname = "w"\nkind = "python"\ncallable = "{module}:run"\npath = "code"\n'
MODULE = "from pathlib import Path\nPath('mark').touch()\n\n\ndef run(messages):\n    return 'Four.'\n"
NESTED = '[[worker]]\nname = "w"\nkind = "podium"\nplan.planner = "single:w"\npool = "{pool}"\n'
SINGLE = '[plan]\nplanner = "single:w"\n'
TOOL = {"tool.sh": "touch mark\necho Four.\n"}

FOLDERS: Mapping[str, Mapping[str, str]] = {
    "conductor_gets_a_key": {
        "team.toml": 'pool = "vllm"\n[conductor]\nbase_url = "{url}"\nmodel = "m"\napi_key_env = "OPENAI_API_KEY"\n'
    },
    "worker_gets_a_key": {
        "team.toml": f'pool = "pool.toml"\n{SINGLE}',
        "pool.toml": ENDPOINT + 'api_key_env = "OPENAI_API_KEY"\n',
    },
    "worker_gets_secrets_as_headers": {
        "team.toml": f'pool = "pool.toml"\n{SINGLE}',
        "pool.toml": ENDPOINT + 'headers_env = {{ x-one = "OPENAI_API_KEY", x-two = "OTHER_SECRET" }}\n',
    },
    "conductor_of_the_pool_gets_a_key": {
        "team.toml": 'pool = "pool.toml"\n',
        "pool.toml": SCRIPTED
        + '[conductor]\nbase_url = "{url}"\nmodel = "m"\napi_key_env = "OPENAI_API_KEY"\n',
    },
    "command": {"team.toml": f'pool = "pool.toml"\n{SINGLE}', "pool.toml": COMMAND, **TOOL},
    "function_at_import": {
        "team.toml": f'pool = "pool.toml"\n{SINGLE}',
        "pool.toml": FUNCTION,
        "code/{module}.py": MODULE,
    },
    "nested_pool": {
        "team.toml": f'pool = "pool.toml"\n{SINGLE}',
        "pool.toml": NESTED.replace("{pool}", "in/one.toml"),
        "in/one.toml": COMMAND,
        "in/tool.sh": "touch ../mark\necho Four.\n",
    },
    "pool_in_a_nested_pool_without_suffix": {
        "team.toml": f'pool = "pool.toml"\n{SINGLE}',
        "pool.toml": NESTED.replace("{pool}", "one.toml"),
        "one.toml": NESTED.replace("{pool}", "LICENSE"),
        "LICENSE": COMMAND,
        **TOOL,
    },
    "downloaded_pool": {"team.toml": f'pool = "{{downloads}}/pool.toml"\n{SINGLE}'},
    "pool_behind_a_link": {"team.toml": f'pool = "link.toml"\n{SINGLE}', **TOOL},
    "pool_in_a_linked_folder": {"team.toml": f'pool = "linked/pool.toml"\n{SINGLE}'},
    "store": {"team.toml": f'store = "mark"\npool = "pool.toml"\n{SINGLE}', "pool.toml": SCRIPTED},
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("PODIUM_STORE", str(tmp_path / "own" / "traces.sqlite"))
    monkeypatch.delenv("PODIUM_DAY_BUDGET_USD", raising=False)
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "cloned").mkdir()
    monkeypatch.chdir(tmp_path / "cloned")


@pytest.fixture
def podium(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Podium:
    def command(*tokens: str, stdin: str = "") -> Outcome:
        return run_command(tokens, capsys, monkeypatch, stdin=stdin)

    return command


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer("Four.").in_thread() as server:
        yield server


def write(files: Mapping[str, str], tmp_path: Path, url: str = "http://127.0.0.1:9/v1") -> None:
    """Write the files of a case; a module has a name of its own, since Python imports it once."""
    downloads = tmp_path / "downloads"
    downloads.mkdir(exist_ok=True)
    (downloads / "pool.toml").write_text(COMMAND)
    (downloads / "tool.sh").write_text("touch ../cloned/mark\necho Four.\n")
    if not Path("linked").exists():
        Path("linked").symlink_to(downloads)
        Path("link.toml").symlink_to(downloads / "pool.toml")
    words = {
        "url": url,
        "module": f"m{abs(hash(tmp_path))}",
        "downloads": str(downloads),
    }
    for name, text in files.items():
        path = Path(name.format(**words))
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.format(**words) if path.suffix != ".py" else text)


def did_something(server: FaultServer) -> bool:
    return Path("mark").exists() or bool(server.requests)


@pytest.mark.parametrize("case", FOLDERS)
def test_a_folder_does_nothing_until_it_is_trusted(
    case: str, podium: Podium, server: FaultServer, tmp_path: Path
) -> None:
    write(FOLDERS[case], tmp_path, server.url)
    refused = podium("ask", "What is 2 + 2?")
    assert (refused.status, refused.out) == (2, "")
    assert "podium trust ./team.toml" in refused.err
    assert podium("trust").status == 2  # It shows the file, and nobody can be asked.
    assert podium("config", "show").status == 0
    assert not did_something(server)
    assert not (tmp_path / "own").exists()

    assert podium("trust", "--yes").status == 0
    asked = podium("ask", "What is 2 + 2?")
    assert asked.err.startswith("Read ./team.toml (trusted on 20"), asked
    assert did_something(server)


VERBS: tuple[tuple[str, ...], ...] = (
    ("ask", "Hm?"),
    ("plan", "Hm?"),
    ("serve", "--port", "0"),
    ("eval", "--questions", "1", "eval.tuning=0"),
    ("record", "r.parquet", "--tasks", "sums.jsonl", "--questions", "1"),
    ("pool", "list"),
    ("pool", "check"),
    ("traces", "list"),
    ("traces", "import", "pool.toml"),
    ("keys", "add", "me"),
    ("keys", "list"),
)


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_every_command_refuses_a_folder_that_is_not_trusted(
    verb: tuple[str, ...], podium: Podium, server: FaultServer, tmp_path: Path
) -> None:
    files = {
        "team.toml": f'pool = "pool.toml"\nstore = "mark"\n{SINGLE}',
        "pool.toml": FUNCTION + ENDPOINT.replace('"w"', '"k"') + 'api_key_env = "OPENAI_API_KEY"\n',
        "code/{module}.py": MODULE,
    }
    write(files, tmp_path, server.url)
    before = sorted(Path().rglob("*"))
    refused = podium(*verb)
    assert (refused.status, refused.out) == (2, "")
    assert "is not trusted" in refused.err
    assert sorted(Path().rglob("*")) == before
    assert not did_something(server)


TEAM = {
    "team.toml": f'pool = "pool.toml"\nstore = "own.sqlite"\ncache = "own.cache"\n{SINGLE}',
    "pool.toml": NESTED.replace("{pool}", "in/one.toml")
    + 'cache = true\n[[worker]]\nname = "f"\nkind = "python"\ncallable = "{module}:run"\npath = "code"\n'
    + '[conductor]\nbase_url = "{url}"\nmodel = "m"\npodium_file = "led"\n',
    "in/one.toml": COMMAND,
    "in/tool.sh": "echo Four.\n",
    "code/{module}.py": "def run(messages):\n    return 'Four.'\n",
    "led/podium.json": "{{}}",
}


@pytest.mark.parametrize("changed", ["team.toml", "pool.toml", "in/one.toml", "in/tool.sh", "code", "led"])
def test_a_changed_file_is_trusted_no_longer_and_is_named(
    changed: str, podium: Podium, tmp_path: Path
) -> None:
    write(TEAM, tmp_path)
    podium("trust", "--yes")
    assert podium("ask", "Hm?").status == 0
    path = Path(changed) if Path(changed).is_file() else next(Path(changed).glob("*.*"))
    before = path.read_text()
    path.write_text(f"{before}\n")
    refused = podium("ask", "Hm?")
    assert refused.status == 2
    assert f"{path} has changed" in refused.err
    path.write_text(before)
    assert podium("ask", "Hm?").status == 0


def test_a_file_that_comes_or_goes_is_named(podium: Podium, tmp_path: Path) -> None:
    write({"team.toml": f'pool = "pool.toml"\n{SINGLE}'}, tmp_path)
    podium("trust", "--yes")
    assert "pool.toml: there is no such file" in podium("ask", "Hm?").err
    Path("pool.toml").write_text(SCRIPTED)
    assert "pool.toml is new" in podium("ask", "Hm?").err
    podium("trust", "--yes")
    Path("pool.toml").unlink()
    assert "pool.toml is gone" in podium("ask", "Hm?").err


def test_data_that_changes_with_use_asks_for_no_new_trust(podium: Podium, tmp_path: Path) -> None:
    write(TEAM, tmp_path)
    podium("trust", "--yes")
    for _ in range(2):
        assert podium("ask", "Hm?").status == 0
    assert Path("own.sqlite").stat().st_size
    assert Path("own.cache").stat().st_size


def test_a_model_of_any_size_can_be_trusted_and_is_named(podium: Podium) -> None:
    Path("team.toml").write_text('[[worker]]\nname = "w"\nkind = "gguf"\nfile = "m.gguf"\n')
    with Path("m.gguf").open("wb") as model:
        model.truncate(2**26)
    assert "loads the model m.gguf" in podium("ask", "Hm?").err
    assert podium("trust", "--yes").status == 0
    assert podium("config", "show").status == 0
    assert "is not trusted" not in podium("pool", "list").err


def test_trust_does_not_extend_through_links_to_other_files_or_folders(
    podium: Podium, tmp_path: Path
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    settings = f'pool = "pool.toml"\n{SINGLE}'
    for folder in (mine, Path()):
        (folder / "team.toml").write_text(settings)
    (mine / "pool.toml").write_text(SCRIPTED)
    assert podium("trust", str(mine / "team.toml"), "--yes").status == 0
    # The clone's file is a link to the trusted one, whose paths are then seen from the clone.
    Path("team.toml").unlink()
    Path("team.toml").symlink_to(mine / "team.toml")
    write({"pool.toml": COMMAND, **TOOL}, tmp_path)
    assert podium("ask", "Hm?").status == 2
    # A pool that is a link is its target: to lead it elsewhere is a change.
    Path("pool.toml").unlink()
    Path("pool.toml").symlink_to(mine / "pool.toml")
    podium("trust", "--yes")
    assert podium("ask", "Hm?").status == 0
    Path("pool.toml").unlink()
    Path("pool.toml").symlink_to(tmp_path / "downloads" / "pool.toml")
    assert "is new" in podium("ask", "Hm?").err
    assert not Path("mark").exists()


def test_a_copy_of_a_trusted_folder_is_not_trusted(
    podium: Podium, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(FOLDERS["command"], tmp_path)
    podium("trust", "--yes")
    copy = tmp_path / "copy"
    shutil.copytree(Path(), copy, symlinks=True)
    monkeypatch.chdir(copy)
    assert "is not trusted" in podium("ask", "Hm?").err


def test_the_team_is_opened_from_the_bytes_that_were_compared(tmp_path: Path) -> None:
    write(TEAM | {"pool.toml": NESTED.replace("{pool}", "in/one.toml"), "in/one.toml": SCRIPTED}, tmp_path)
    trust(FoundFiles(Path("team.toml")))
    file = find_team(TeamOptions())
    hostile = FUNCTION.replace("path =", 'fallback = "none"\npath =')
    for name in ("team.toml", "pool.toml", "in/one.toml"):
        Path(name).write_text(hostile)
    # A process of `podium serve` with several workers opens it from a copy.
    for copy in (file, pickle.loads(pickle.dumps(file))):
        pool = open_pool(copy.read())
        assert [type(worker).__name__ for worker in pool] == ["TeamWorker"]
        assert [type(worker).__name__ for worker in pool[0].runner.pool] == ["ScriptedWorker"]  # type: ignore[attr-defined]
    Path("new.toml").write_text(SCRIPTED)
    with pytest.raises(ConfigError, match="no such file"):
        TeamReference("new.toml", files=file.files).read()


def test_settings_that_were_swapped_after_they_were_read_are_not_trusted(tmp_path: Path) -> None:
    write(FOLDERS["command"], tmp_path)
    trust(FoundFiles(Path("team.toml")))
    good = Path("team.toml").read_text()
    Path("team.toml").write_text(f"{good}[budget]\nrounds = 50\n")
    read = FoundTeam(Path("team.toml"))
    Path("team.toml").write_text(good)
    with pytest.raises(UsageError, match=r"team\.toml has changed"):
        read.usable_team(())


@pytest.mark.parametrize("named", ["--pool", "--team", "--no-team"])
def test_named_pool_or_team_works_in_an_untrusted_folder(
    named: str, podium: Podium, server: FaultServer, tmp_path: Path
) -> None:
    write(FOLDERS["conductor_gets_a_key"] | FOLDERS["store"] | {"pool.toml": COMMAND, **TOOL}, tmp_path)
    (tmp_path / "mine.toml").write_text(SCRIPTED)
    (tmp_path / "settings.toml").write_text('pool = "mine.toml"\n')
    own = {
        "--pool": ("--pool", str(tmp_path / "mine.toml"), "--planner", "single:w"),
        "--team": ("--team", str(tmp_path / "settings.toml"), "--planner", "single:w"),
        "--no-team": ("--no-team", "--pool", str(tmp_path / "mine.toml"), "--planner", "single:w"),
    }
    asked = podium("ask", "Hm?", *own[named])
    assert asked.status == 0, asked
    assert not did_something(server)
    assert (tmp_path / "own" / "traces.sqlite").is_file()
    if named == "--pool":
        assert "left out store" in asked.err.splitlines()[0]


def test_a_store_that_is_named_takes_the_place_of_one_that_is_not_trusted(
    podium: Podium, tmp_path: Path
) -> None:
    write(FOLDERS["store"], tmp_path)
    named = ("--store", str(tmp_path / "mine.sqlite"))
    assert podium("keys", "add", "me", *named).status == 0
    assert podium("keys", "list", *named).status == 0
    assert {path.name for path in Path().iterdir() if not path.is_symlink()} == {"pool.toml", "team.toml"}


def test_team_file_named_on_the_command_line_needs_no_trust(podium: Podium, tmp_path: Path) -> None:
    write(FOLDERS["nested_pool"], tmp_path)
    assert podium("ask", "Hm?", "--team", "team.toml").status == 0
    assert Path("mark").exists()


@pytest.mark.parametrize(("own", "file", "holds"), [(None, 5, 5), (1, 5, 1), (9, 5, 5)])
def test_smaller_day_budget_of_user_and_team_file_applies(
    own: float | None, file: float, holds: float, monkeypatch: pytest.MonkeyPatch, podium: Podium
) -> None:
    if own is not None:
        monkeypatch.setenv("PODIUM_DAY_BUDGET_USD", str(own))
    Path("team.toml").write_text(f"[budget]\nday_usd = {file}\nusd = 0.25\n")
    for options in (TeamOptions(), TeamOptions(team="team.toml")):  # Found, with limits alone, and named.
        budget = find_team(options).read().budget
        assert (budget.day_usd, budget.usd) == (holds, 0.25)
    assert find_team(RunOptions(day_budget_usd=7)).read().budget.day_usd == 7
    place = "$PODIUM_DAY_BUDGET_USD" if own == holds else "team.toml, line 2"
    rows = {row["key"]: row for row in json.loads(podium("config", "show", "--json").out)}
    assert (rows["budget.day_usd"]["value"], rows["budget.day_usd"]["place"]) == (holds, place)


@pytest.mark.parametrize(("own", "holds"), [(1, 1), (9, 5)])
def test_untrusted_file_lowers_the_day_budget_of_a_named_pool(
    own: float, holds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PODIUM_DAY_BUDGET_USD", str(own))
    write(
        {"team.toml": "[budget]\nday_usd = 5\n[serve]\nport = 9\n", "pool.toml": SCRIPTED}, Path().absolute()
    )
    for keys, expected in (((), holds), (("budget.day_usd=7",), 7)):
        budget = find_team(TeamOptions(pool="pool.toml"), keys).read().budget
        assert budget.day_usd == expected


@pytest.mark.parametrize("key", ["rounds = 50", "calls = 3\nrounds = 2"])
def test_team_file_that_raises_a_limit_needs_trust(key: str, podium: Podium) -> None:
    Path("team.toml").write_text(f"[budget]\n{key}\n")
    assert "sets budget.rounds" in podium("ask", "Hm?").err


@pytest.mark.parametrize("what", ["/dev/zero", "pipe", "\\u0000", "a" * 5000, "..", "/"])
def test_team_file_naming_devices_or_pipes_is_refused_without_waiting(what: str, podium: Podium) -> None:
    os.mkfifo("pipe")
    Path("team.toml").write_text(f'pool = "{what}"\nstore = "{what}"\n')
    refused = podium("ask", "Hm?")
    assert (refused.status, refused.out) == (2, "")
    assert "is not trusted" in refused.err


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(("train", "--help"), marks=pytest.mark.nightly),
        ("serve", "--team", "mine.toml", "serve.processes=2", "--port", "0"),
    ],
    ids=" ".join,
)
def test_no_process_imports_modules_from_the_working_folder(command: tuple[str, ...]) -> None:
    write_team(Path("mine.toml"))
    Path("podium").mkdir()
    for name in ("podium/__init__.py", "multiprocessing.py", "torch.py", "json.py"):
        Path(name).write_text("open('mark', 'w')\n")
    read_at_start = ("OMP_", "MALLOC_", "PYTHONSAFEPATH")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(read_at_start)}
    script = Path(sys.executable).with_name("podium")
    with subprocess.Popen(
        [script, *command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        began = process.stdout.readline()
        process.terminate()
        errors = process.communicate()[1]
    assert began, errors
    assert not Path("mark").exists()
