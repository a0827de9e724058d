"""The adversarial table: whatever a program tries, it stays where it is, and ends."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from contextlib import aclosing
from functools import cache
from pathlib import Path

import pytest

from attack_runs import (
    ANONYMOUS,
    LONG,
    TABLE,
    AttackRun,
    Outcome,
    as_ordinary_user,
    isolations_here,
    may_be_ordinary,
    run_attacks,
)
from attacks import Attack
from podium.sandbox.isolation import PlainProcess
from podium.sandbox.sandbox_pool import SandboxPool

pytestmark = pytest.mark.filterwarnings("ignore:Programs run")
ISOLATIONS = {isolation.name: isolation for isolation in isolations_here()}
ORDINARY = "bubblewrap, as an ordinary user"
SIEGES = [*ISOLATIONS, *([ORDINARY] if may_be_ordinary() else [])]
"""What is tried here; the names of the tests say it."""
AT_NIGHT = {name: [pytest.mark.nightly] if name == ORDINARY else [] for name in SIEGES}
"""All attacks once more, as another user, are for the night."""


@cache
def attack_run(name: str) -> AttackRun:
    if name != ORDINARY:
        return asyncio.run(run_attacks(ISOLATIONS[name]))
    done = subprocess.run(as_ordinary_user(), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    outcomes = {attack: Outcome(**outcome) for attack, outcome in found.pop("outcomes").items()}
    return AttackRun(outcomes=outcomes, **found)


@pytest.mark.parametrize(
    ("name", "attack"),
    [
        pytest.param(name, attack, marks=AT_NIGHT[name])
        for name in SIEGES
        for attack in TABLE
        if attack.weak or name != "no isolation"
    ],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_no_attack_succeeds(name: str, attack: Attack) -> None:
    outcome = attack_run(name).outcomes[attack.name]
    assert not outcome.escaped
    assert outcome.reason in attack.ends
    assert outcome.lives


@pytest.mark.parametrize("name", [pytest.param(name, marks=AT_NIGHT[name]) for name in SIEGES])
def test_sandboxed_attacks_leave_no_connections_files_or_processes(name: str) -> None:
    assert (attack_run(name).visitors, attack_run(name).written, attack_run(name).left) == (0, [], [])


@pytest.mark.parametrize("name", [pytest.param(name, marks=AT_NIGHT[name]) for name in SIEGES])
def test_sandboxed_program_runs_as_the_expected_user(name: str) -> None:
    assert attack_run(name).user == (ANONYMOUS if name == ORDINARY else os.getuid())


async def test_file_attack_succeeds_without_isolation(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("the answer")
    reading = next(attack for attack in TABLE if attack.name == "reading files of the machine")
    async with aclosing(SandboxPool(PlainProcess())) as pool, pool.acquire(allow_weak=True) as (sandbox,):
        ended = await sandbox.run(reading.source.format(secret=str(tmp_path / "secret")), "", LONG)
    assert b"ESCAPED the answer" in ended.output
