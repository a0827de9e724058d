"""`podium.toml`: the options that a user would otherwise repeat at every command.

The file is in the working folder, or `--config FILE` names it. If the command line leaves an option out, the parser
takes it from the file; so options override the file, and the file overrides the defaults. `train` has a configuration
file of its own and does not read this one.

A file that was found, and not named, may have come with a cloned repository: until the user trusts it (`trusted`), only
its limits hold.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cyclopts import App, ArgumentCollection, Token
from pydantic import Field

from podium.cli.found_files import FoundFiles, read_regular
from podium.cli.printable import printable
from podium.config import Settings, Source
from podium.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from podium.cli.trusted import Trusted

FILE = "podium.toml"


class ConductorTable(Settings):
    """The planner, and the model or checkpoint that it plans with."""

    planner: str = "conductor"
    """conductor, or a baseline."""
    checkpoint: str | None = None
    """A trained Conductor's folder, or the name of a shipped one."""
    cost_sensitivity: float | None = None
    url: str | None = None
    """An OpenAI-compatible endpoint whose model conducts."""
    model: str | None = None
    key_env: str | None = None
    """The environment variable that has the API key; the key itself never stands in the file."""
    price: tuple[float, float] | None = None
    """Dollars per million tokens, input and output."""
    settings: str | None = None
    """Where the podium.json of the trained Conductor is that the endpoint serves."""


class BudgetTable(Settings):
    """Limits for a question, a run (`run_usd`) and a day (`day_usd`)."""

    rounds: int | None = None
    calls: int | None = None
    tokens: int | None = None
    usd: float | None = None
    seconds: float | None = None
    run_usd: float | None = None
    day_usd: float | None = None


class ServeTable(Settings):
    """What `podium serve` listens on and allows."""

    host: str = "127.0.0.1"
    port: int = 8080
    runs: Path = Path("runs")
    cors: tuple[str, ...] | None = None
    max_body_mib: float = 20.0
    timeout: float = 600.0
    drain: float = 30.0
    workers: int = 1
    plan_processes: int = 1
    prompt_cache_minutes: float = 5.0
    right_answer_usd: float | None = None
    viewer: bool = True


class EvalTable(Settings):
    """What `podium eval` measures on."""

    tasks: str | None = None
    split: str = "test"
    questions: int = 400
    tuning: int | None = None
    repeats: int = 1
    concurrency: int = 16
    plan_processes: int | None = None


class PodiumSettings(Settings):
    """All of `podium.toml`. Paths in it are relative to its folder."""

    pool: str | None = None
    """A pool file, or a shipped pool's name."""
    store: str | None = None
    """The store of traces: an SQLite file, or postgresql://USER@HOST/DATABASE for `serve` and `keys`."""
    cache: Path | None = None
    """The SQLite file of the response cache."""
    max_steps: int | None = None
    early_stop: bool = False
    conductor: ConductorTable = Field(default_factory=ConductorTable)
    budget: BudgetTable = Field(default_factory=BudgetTable)
    serve: ServeTable = Field(default_factory=ServeTable)
    eval: EvalTable = Field(default_factory=EvalTable)


OPTIONS: Mapping[str, str] = {
    **{key: f"--{key.replace('_', '-')}" for key in ("pool", "store", "cache", "max_steps", "early_stop")},
    **{
        "conductor.planner": "--planner",
        "conductor.checkpoint": "--conductor",
        "conductor.cost_sensitivity": "--cost-sensitivity",
    },
    **{
        f"conductor.{key}": f"--conductor-{key.replace('_', '-')}"
        for key in ("url", "model", "key_env", "price", "settings")
    },
    "budget.rounds": "--rounds",
    **{f"budget.{key}": f"--budget-{key}" for key in ("calls", "tokens", "usd", "seconds")},
    **{f"budget.{key}_usd": f"--{key}-budget-usd" for key in ("run", "day")},
    **{f"serve.{key}": f"--{key.replace('_', '-')}" for key in ServeTable.model_fields if key != "viewer"},
    "serve.viewer": "--no-viewer",
    **{f"eval.{key}": f"--{key.replace('_', '-')}" for key in EvalTable.model_fields},
}
"""The option of each setting, by its dotted key."""
_PATHS = frozenset(
    {"pool", "store", "cache", "conductor.checkpoint", "conductor.settings", "serve.runs", "eval.tasks"}
)
_MAY_BE_NAMES = frozenset({"pool", "conductor.checkpoint", "conductor.settings", "eval.tasks"})
_NAMES_PLANNER = frozenset({"--planner", "--conductor", "--conductor-url", "--conductor-model"})
_OF_A_QUESTION = frozenset(f"budget.{key}" for key in ("rounds", "calls", "tokens", "usd", "seconds"))
_ANSWER_QUESTIONS = frozenset({"ask", "plan", "serve", "eval"})
"""The verbs that take the limits of a question from the file. Others have options of the same name that limit something
else: the whole run of `record`, a key's day."""
_LIMITS = frozenset(f"budget.{key}" for key in ("calls", "tokens", "usd", "seconds", "run_usd", "day_usd"))
"""The settings that need no trust: each can only make a command do less."""
_OF_RUN = ("pool", "conductor.", "eval.tasks")
"""Settings that `eval --run` takes from the run's folder and not from this file."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting, with its value and where the value comes from."""

    key: str
    option: str
    value: Any
    origin: Literal["file", "option", "environment", "default"]
    place: str
    """The file and its line, the option, or the variable; empty for a default."""


class SettingsFile:
    """The content of a `podium.toml`; without a file, all settings have their defaults.

    Args:
        path: the file of `--config`, which must exist; None: `podium.toml` of the working folder, if there is one.
        is_named: whether a `path` counts as named by the user, who then needs not trust it besides.

    Raises:
        ConfigError: the file cannot be read, or has an unknown key or a wrong value; the error names the line.
    """

    def __init__(self, path: Path | None, *, is_named: bool = True) -> None:
        self.path = path or (Path(FILE) if Path(FILE).is_file() else None)
        self.is_found = self.path is not None and (path is None or not is_named)
        """Whether the file was found, and only its limits hold until the user trusts it."""
        self._content: bytes | None = None
        if self.path is None:
            self._source = Source.of({}, (), FILE)
        elif self.is_found:
            self._content = read_regular(self.path)
            if self._content is None and self.path.exists():
                raise ConfigError(f"{self.path}: cannot be read; make it a file that you may read.")
            files = {} if self._content is None else {self.path.absolute(): self._content}
            self._source = Source.read(self.path, files=files)
        else:
            self._source = Source.read(self.path)
        self._settings = self._source.into(PodiumSettings)

    @cached_property
    def files(self) -> FoundFiles:
        """The found file, and all that it refers to."""
        assert self.path is not None
        return FoundFiles.read(self.path, self._content)

    def given(self, options: Collection[str] = ()) -> Iterator[Setting]:
        """The settings that the file sets, in the order of the table of options.

        Args:
            options: the options on the command line. If one of them names a planner, the table [conductor] is ignored.
        """
        for key, option in OPTIONS.items():
            if key.startswith("conductor.") and not _NAMES_PLANNER.isdisjoint(options):
                continue
            if option not in options and _get(self._source.tables, key) is not None:
                value = self._resolved(key, _get(self._settings.model_dump(mode="json"), key))
                own = _own_limit() if key == "budget.day_usd" else None
                if own is not None and own < value:
                    yield Setting(key, option, own, "environment", "$PODIUM_DAY_BUDGET_USD")
                else:
                    yield Setting(key, option, value, "file", self._source.place_of(tuple(key.split("."))))

    def all(self, options: Mapping[str, str]) -> Iterator[Setting]:
        """Every setting with its value and where the value comes from.

        Args:
            options: the options on the command line, with their values as text.
        """
        given = {setting.key: setting for setting in self.given(options)}
        defaults = PodiumSettings().model_dump(mode="json")
        for key, option in OPTIONS.items():
            if option in options:
                yield Setting(key, option, options[option], "option", option)
            else:
                yield given.get(key) or Setting(key, option, _get(defaults, key), "default", "")

    def fill(self, app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
        """Add the options that the command line leaves out to the parser's arguments. The parser calls this.

        Raises:
            UsageError: a file that was found sets more than limits, and the user does not trust it.
        """
        named = {name for argument in arguments if argument.tokens for name in argument.names}
        of_run = _OF_RUN if commands[0] == "eval" and "--run" in named else ()
        by_name = {name: argument for argument in arguments for name in argument.names}
        taken = []
        for setting in self.given(named):
            table = setting.key.partition(".")[0]
            of_other_verb = table in ("serve", "eval") and table != commands[0]
            of_question = setting.key in _OF_A_QUESTION and commands[0] not in _ANSWER_QUESTIONS
            if setting.option in by_name and not (
                of_other_verb or of_question or setting.key.startswith(of_run)
            ):
                taken.append(setting)
        for setting in self._permitted(taken, named) if self.is_found and taken else taken:
            argument = by_name[setting.option]
            if self.is_found and setting.key == "pool":
                read = _read_pool(setting.value, self.files)
                argument.append(Token(keyword=setting.option, source=setting.place, implicit_value=read))
                continue
            for index, text in enumerate(_texts(setting)):
                argument.append(Token(keyword=setting.option, value=text, source=setting.place, index=index))

    def _permitted(self, settings: Sequence[Setting], named: Collection[str]) -> Sequence[Setting]:
        """The settings of a found file that a command may take. Standard error says which file it is.

        Raises:
            UsageError: the file is not trusted, and the command does not name a pool of its own.
        """
        needing = [setting for setting in settings if setting.key not in _LIMITS]
        if not needing:
            _say(f"Read ./{FILE}: limits alone, which need no trust.")
            return settings
        kept = self._kept()
        if kept is not None and not kept.changes(self.files):
            pool = next((f", pool {setting.value}" for setting in settings if setting.key == "pool"), "")
            _say(f"Read ./{FILE} (trusted on {kept.since}){pool}.")
            return settings
        keys = ", ".join(setting.key for setting in needing)
        if "--pool" in named:
            _say(f"./{FILE} is not trusted, and the command names its own pool: left out {keys}.")
            return [setting for setting in settings if setting.key in _LIMITS]
        raise UsageError(
            f"{self.standing()} It {_listed((f'sets {keys}', *self.files.acts), 4)}. "
            f"`podium trust ./{FILE}` shows all of it and asks; --no-config works without it."
        )

    def standing(self) -> str:
        """Whether the user trusts this found file, in one sentence."""
        kept = self._kept()
        if kept is None:
            return f"./{FILE} lies in this folder and is not trusted."
        if changes := kept.changes(self.files):
            return f"./{FILE} is not trusted any more: since {kept.since}, {_listed(changes, 3)}."
        return f"./{FILE} was trusted on {kept.since}."

    def _kept(self) -> Trusted | None:
        from podium.cli.trusted import trusted  # noqa: PLC0415 - loads sqlite3

        return trusted(self.files)

    def _resolved(self, key: str, value: Any) -> Any:
        """A path relative to the working folder; names of shipped pools, task sets and databases stay."""
        if key not in _PATHS or not isinstance(value, str) or self.path is None or "://" in value:
            return value
        path = self.path.parent / value
        is_name = key in _MAY_BE_NAMES and not os.path.exists(path)
        return value if is_name else str(path)


def _listed(texts: Sequence[str], most: int) -> str:
    """The first of the texts with commas between them, and how many more there are."""
    more = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {more} more" if more > 0 else "")


def _own_limit() -> float | None:
    from podium.executor.accounts import day_budget_of  # noqa: PLC0415 - loads sqlite3

    return day_budget_of()


def _read_pool(name: str, found: FoundFiles) -> str:
    from podium.workers.pool import ReadPool  # noqa: PLC0415 - not every command opens a pool

    return ReadPool(name, found.toml)


def _say(sentence: str) -> None:
    print(printable(sentence), file=sys.stderr)


def _get(tables: Mapping[str, Any], key: str) -> Any:
    value: Any = tables
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _texts(setting: Setting) -> Iterator[str]:
    """The value as texts of a command line: one text, or one for each item of a list."""
    if setting.key == "serve.viewer":
        yield "false" if setting.value else "true"
    elif isinstance(setting.value, bool):
        yield "true" if setting.value else "false"
    elif isinstance(setting.value, list):
        yield from map(str, setting.value)
    else:
        yield str(setting.value)
