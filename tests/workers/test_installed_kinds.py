"""Another package adds a kind of worker with one entry point: its spec and what builds it, and no change to Podium."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import pytest

from installed_package import install_package
from podium.errors import ConfigError
from podium.team.team_file import open_pool
from podium.types import Message
from podium.workers import Request
from podium.workers.base import has_costly_workers, has_paid_workers

PACKAGE = """
from typing import Literal

from podium.plugin_api.workers import Reply, Request, Worker, WorkerKind, WorkerSpec
from podium.types import Usage
from podium.workers.base import COSTLESS, LOCAL_MODEL, TOOL


class ShoutSpec(WorkerSpec):
    kind: Literal["shout"]
    times: int = 1


class ShoutWorker(Worker):
    traits = COSTLESS

    def __init__(self, spec: ShoutSpec) -> None:
        self.profile, self.limits, self.fallback = spec.to_profile(), spec.limits, spec.fallback
        self._times = spec.times

    async def answer(self, request: Request) -> Reply:
        return Reply(request.messages[-1].content.upper() + "!" * self._times, Usage())


KIND = WorkerKind(ShoutSpec, lambda spec, context: ShoutWorker(spec))
"""
POOL = '[[worker]]\nname = "loud"\nkind = "shout"\ntimes = 3\n[[worker]]\nname = "count"\nkind = "vote"\n'


class Install(Protocol):
    def __call__(self, entry: str, package: str = PACKAGE) -> None: ...


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put a package on the path whose only entry point of "podium.workers" is `entry`, as pip would."""

    def install(entry: str, package: str = PACKAGE) -> None:
        entries = f"[podium.workers]\n{entry}\n"
        install_package(monkeypatch, tmp_path / "site", "shouting", entries, package)

    return install


@pytest.fixture
def pool_file(tmp_path: Path) -> Path:
    path = tmp_path / "pool.toml"
    path.write_text(POOL)
    return path


async def test_a_pool_holds_a_worker_of_an_installed_kind(install: Install, pool_file: Path) -> None:
    install("shout = shouting:KIND")
    pool = open_pool(pool_file)
    reply = await pool[0].answer(Request((Message(role="user", content="hello"),), seed="x"))
    assert (pool.names, reply.text) == (("loud", "count"), "HELLO!!!")


@pytest.mark.parametrize(
    ("declared", "tool_real_paid"),
    [
        ("", (False, True, True)),
        ("traits = COSTLESS", (False, False, False)),
        ("traits = LOCAL_MODEL", (False, True, False)),
        ("traits = TOOL", (True, False, False)),
    ],
    ids=["nothing", "written", "local model", "tool"],
)
def test_installed_kind_declares_its_traits(
    install: Install, pool_file: Path, declared: str, tool_real_paid: tuple[bool, ...]
) -> None:
    install("shout = shouting:KIND", PACKAGE.replace("traits = COSTLESS", declared))
    loud = open_pool(pool_file)[0]
    assert (loud.is_tool, has_costly_workers([loud]), has_paid_workers([loud])) == tool_real_paid


def test_a_wrong_key_of_an_installed_kind_is_refused_with_its_line(install: Install, pool_file: Path) -> None:
    install("shout = shouting:KIND")
    pool_file.write_text(POOL.replace("times", "tims"))
    with pytest.raises(
        ConfigError, match=r"line 4: unknown key 'worker\.loud\.tims'; did you mean 'times'\?"
    ):
        open_pool(pool_file)


def test_a_broken_entry_point_is_named_with_the_line_that_uses_it(install: Install, pool_file: Path) -> None:
    install("shout = shouting:ShoutSpec")
    with pytest.raises(
        ConfigError, match=r"line 3: .*'shout' is .*, which is no WorkerKind.*; fix that package\."
    ):
        open_pool(pool_file)


def test_an_unknown_kind_is_refused_with_the_known_ones(pool_file: Path) -> None:
    with pytest.raises(
        ConfigError, match=r'line 3: worker\.loud\.kind is "shout"; known: openai, .*, podium, local\.$'
    ):
        open_pool(pool_file)
