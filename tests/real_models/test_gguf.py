"""A model in a file, without a server of the user's: SmolLM2-135M-Instruct in a child process of Podium's."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any

import pytest

from model_files import MODELS
from podium.concurrency.child_process import ChildProcess
from podium.errors import ConfigError, WorkerError
from podium.planners.planner import PrewrittenPlans
from podium.team.runner import Runner
from podium.team.team_file import open_pool
from podium.trace import Plan
from podium.types import Message, Question
from podium.workers.base import Request
from podium.workers.build import BuildContext, build_worker
from podium.workers.gguf import GgufWorker
from podium.workers.spec import GgufSpec
from podium.workflow import Access, Step, Workflow

pytestmark = pytest.mark.timeout(600)

SMOL = MODELS / "smol.gguf"
SETTINGS = {"threads": 1, "temperature": 0.0}
ASKED = Request((Message(role="user", content="Name one colour of the rainbow."),), seed="0")


def workers(
    context: BuildContext, *names: str, most: int = 12, files: Sequence[Path] = (), **more: Any
) -> list[GgufWorker]:
    """Workers of these files, or all of one, each with a longer context than the one before."""
    built = []
    for name, file in zip_longest(names, files, fillvalue=SMOL):
        limits = {"concurrency": 1, "max_tokens": most, "timeout": 500, **more}
        spec = GgufSpec.model_validate(
            {"kind": "gguf", "name": name, "file": str(file), "limits": limits, **SETTINGS}
            | {"context_tokens": 1024 + 256 * len(built)}
        )
        worker = build_worker(spec, context)
        assert isinstance(worker, GgufWorker)
        built.append(worker)
    return built


STREAMS = """
import asyncio, sys
from podium import Team

async def main():
    async with Team.open(sys.argv[1], planner="single:one") as team:
        async for event in team.stream("Count to 900."):
            print(type(event).__name__, flush=True)

asyncio.run(main())
"""


def children(of: int) -> set[int]:
    """The processes that serve files for a process."""
    found = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
            if parent == of and b"gguf_server.py" in (status.parent / "cmdline").read_bytes():
                found.add(int(status.parent.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def runs(process: int) -> bool:
    """Whether a process has not ended yet. Its first thread may end before the others."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z" or len(os.listdir(f"/proc/{process}/task")) > 1
    except (FileNotFoundError, ProcessLookupError):
        return False


async def test_workers_of_one_file_share_a_process_that_ends_with_the_last():
    first, second = workers(BuildContext(), "first", "second")
    assert not children(os.getpid())  # nothing is loaded before the first call
    replies = await asyncio.gather(first.answer(ASKED), second.answer(ASKED))
    assert replies[0].text == replies[1].text != ""
    assert replies[0].usage.output_tokens > 0
    assert replies[0].model == str(SMOL)
    (process,) = children(os.getpid())
    await first.close()
    assert children(os.getpid()) == {process}
    await second.close()
    assert not children(os.getpid())


async def test_a_crash_ends_the_process_alone_and_the_next_call_starts_another():
    (worker,) = workers(BuildContext(), "only", most=100)
    writes = asyncio.Event()
    answering = asyncio.create_task(worker.answer(replace(ASKED, on_text=lambda _: writes.set())))
    await writes.wait()
    (process,) = children(os.getpid())
    os.kill(process, signal.SIGSEGV)
    with pytest.raises(WorkerError) as crash:
        await answering
    assert crash.value.retryable
    while runs(process):  # noqa: ASYNC110 - its connections close a moment before it has ended
        await asyncio.sleep(0.01)
    assert (await worker.answer(ASKED)).text
    assert children(os.getpid()) != {process}
    await worker.close()


@pytest.mark.parametrize("seconds", [0.0, 0.5])
async def test_closing_a_worker_while_its_model_loads_ends_the_process(
    monkeypatch: pytest.MonkeyPatch, seconds: float
):
    class Slow(ChildProcess):
        """A process that its thread hears of some time after it began."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            time.sleep(seconds)

    monkeypatch.setattr("podium.workers.gguf.ChildProcess", Slow)
    (worker,) = workers(BuildContext(), "only")
    answering = asyncio.create_task(worker.answer(ASKED))
    while not children(os.getpid()):  # noqa: ASYNC110 - a thread starts it
        await asyncio.sleep(0.01)
    answering.cancel()
    await worker.close()
    assert not children(os.getpid())


@pytest.mark.nightly
async def test_gguf_file_is_unloaded_if_another_needs_the_memory_of_its_host(tmp_path: Path):
    files = [tmp_path / f"{name}.gguf" for name in "ab"]
    for file in files:
        await asyncio.to_thread(shutil.copyfile, SMOL, file)
    first, second = workers(BuildContext(), "first", "second", files=files, host="here")
    assert (await first.answer(ASKED)).text
    (process,) = children(os.getpid())
    assert (await second.answer(ASKED)).text
    (other,) = children(os.getpid())
    assert other != process
    assert (await first.answer(ASKED)).text
    await first.close()
    await second.close()
    assert not children(os.getpid())


async def test_models_without_threads_of_their_own_compute_one_after_the_other(tmp_path: Path):
    team = tmp_path / "team.toml"
    keys = "context_tokens = 1024\nlimits = { max_tokens = 12, timeout = 500, concurrency = 1 }\n"
    for name in "ab":
        await asyncio.to_thread(shutil.copyfile, SMOL, tmp_path / f"{name}.gguf")
    team.write_text(
        "".join(f'[[worker]]\nname = "{name}"\nkind = "gguf"\nfile = "{name}.gguf"\n{keys}' for name in "ab")
    )
    pool = open_pool(team)
    plan = Workflow((Step(0, "Answer."), Step(1, "Answer."), Step(0, "Join.", Access(all=True))))
    trace = await Runner(PrewrittenPlans((Plan("", plan),)), pool).answer(Question(text="Name a colour."))
    await pool.close()
    attempts = sorted((one.started_s, one.ended_s) for span in trace.spans for one in span.attempts)
    assert len(attempts) == 3
    assert all(ended <= began for (_, ended), (began, _) in pairwise(attempts))


@pytest.mark.parametrize("moment", [pytest.param("it loads", marks=pytest.mark.nightly), "it answers"])
def test_model_process_ends_when_podium_is_killed(moment: str, tmp_path: Path):
    team = tmp_path / "team.toml"
    keys = "context_tokens = 1024\nthreads = 1\nlimits = { max_tokens = 900, timeout = 500 }\n"
    team.write_text(f'[[worker]]\nname = "one"\nkind = "gguf"\nfile = "{SMOL}"\n{keys}')
    with subprocess.Popen([sys.executable, "-c", STREAMS, team], stdout=subprocess.PIPE) as podium:
        while not (served := children(podium.pid)):
            assert podium.poll() is None
            time.sleep(0.01)
        if moment == "it answers":
            assert podium.stdout is not None
            assert any(line == b"StepText\n" for line in podium.stdout)
        podium.kill()
    (process,) = served
    command = Path(f"/proc/{process}/cmdline")
    # Empty: it has ended, and nobody waits for orphans here.
    while command.exists() and command.read_bytes():
        time.sleep(0.01)


async def test_gguf_worker_reports_a_broken_model_file(tmp_path: Path):
    (tmp_path / "broken.gguf").write_bytes(b"GGUF" + bytes(64))
    spec = GgufSpec.model_validate({"kind": "gguf", "name": "broken", "file": "broken.gguf"})
    worker = build_worker(spec, BuildContext(folder=tmp_path))
    with pytest.raises(WorkerError, match=r"does not serve .*broken\.gguf"):
        await worker.answer(ASKED)
    await worker.close()


@pytest.mark.parametrize(
    ("keys", "where"),
    [({"file": "nowhere.gguf"}, "file"), ({"file": str(SMOL), "sha256": "0" * 64}, "sha256")],
)
def test_a_wrong_file_is_refused_before_anything_is_loaded(keys: dict[str, str], where: str):
    spec = GgufSpec.model_validate({"kind": "gguf", "name": "wrong", **keys})
    with pytest.raises(ConfigError) as refused:
        build_worker(spec)
    assert refused.value.where == (where,)


def test_matching_sha256_is_accepted_and_becomes_the_cache_identity():
    with SMOL.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    spec = GgufSpec.model_validate({"kind": "gguf", "name": "right", "file": str(SMOL), "sha256": found})
    identity = build_worker(spec).identity
    assert identity is not None
    assert identity["file"] == found
