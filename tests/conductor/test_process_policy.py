"""Completions that child processes write are those of one process, and no child outlives what it is for."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from podium.conductor import Checkpoint, Completion, Policy, Sampling, open_policy
from podium.conductor.process_policy import PolicyProcesses
from podium.errors import UsageError
from podium.types import Message
from scripted_team import Sums

Make = Callable[..., Path]

_WAIT_S = 60
_PARENT = """
import sys, time
from pathlib import Path
from podium.conductor import open_policy
from podium.conductor.process_policy import PolicyProcesses

processes = PolicyProcesses(2)
open_policy(Path(sys.argv[1]), processes)
while len(processes.ids) < int(sys.argv[2]):
    time.sleep(0.01)
print("ready", flush=True)
time.sleep(600)
"""


def asking(text: str) -> tuple[Message, ...]:
    return (Message(role="user", content=text),)


class Idle:
    """The policy of our own process, in tests in which the children have to write everything."""

    name = "idle"

    async def complete(self, messages: tuple[Message, ...], sampling: Sampling) -> Completion:
        raise AssertionError("our own process wrote")


async def are_ready(processes: PolicyProcesses, count: int = 2) -> None:
    async with asyncio.timeout(_WAIT_S):
        while len(processes.ids) < count:  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.01)


async def together(
    policy: Policy, prompts: Sequence[tuple[Message, ...]], samplings: Sequence[Sampling]
) -> list[Completion]:
    return await asyncio.gather(*map(policy.complete, prompts, samplings))


async def test_plans_of_several_processes_are_those_of_one(make_checkpoint: Make) -> None:
    checkpoint = Checkpoint.read(make_checkpoint())
    prompts = [asking(task.question.text) for task in Sums("validation", size=40, seed=9)]
    samplings = [
        Sampling(temperature=number % 2, max_tokens=60, seed=f"{number}") for number in range(len(prompts))
    ]
    alone = await together(open_policy(checkpoint), prompts, samplings)
    with PolicyProcesses(2) as processes:
        policy = open_policy(checkpoint, processes)
        assert await together(policy, prompts[:4], samplings[:4]) == alone[:4], "while the children start"
        await are_ready(processes)
        by_children = processes.policy(Idle(), checkpoint.path)
        assert await together(by_children, prompts, samplings) == alone
    greedy = slice(0, None, 2)
    assert await together(by_children, prompts[greedy], samplings[greedy]) == alone[greedy], "remembered"
    assert await together(policy, prompts, samplings) == alone, "without the children"


async def test_one_process_is_our_own(make_checkpoint: Make) -> None:
    with PolicyProcesses(1) as processes:
        assert (await open_policy(make_checkpoint(), processes).complete(asking("a"), Sampling())).text
        assert processes.ids == ()


async def test_completions_of_a_killed_child_are_written_by_another(
    make_checkpoint: Make, caplog: pytest.LogCaptureFixture
) -> None:
    folder = make_checkpoint(eos_token_id=None)
    prompts = [asking(f"{number} is a question") for number in range(40)]
    samplings = [Sampling(temperature=1.0, max_tokens=200, seed=f"{number}") for number in range(40)]
    alone = await together(open_policy(folder), prompts, samplings)
    with PolicyProcesses(2) as processes, caplog.at_level(logging.WARNING):
        policy = open_policy(folder, processes)
        await are_ready(processes)
        # Both have written something, and one is killed with its hands full.
        await together(policy, prompts[:4], samplings[:4])
        before = set(processes.ids)
        writing = asyncio.gather(*map(policy.complete, prompts, samplings))
        await asyncio.sleep(0)
        os.kill(min(before), signal.SIGKILL)
        assert await writing == alone
        async with asyncio.timeout(_WAIT_S):
            while before & set(processes.ids) == before or len(processes.ids) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    (warning,) = caplog.messages
    assert warning == "A process that writes plans ended with status -9; another takes its place."


async def test_a_cancelled_completion_takes_no_place_in_its_child(make_checkpoint: Make) -> None:
    folder = make_checkpoint(eos_token_id=None, max_position_embeddings=100_000)
    endless = Sampling(temperature=1.0, max_tokens=90_000)
    with PolicyProcesses(2) as processes:
        open_policy(folder, processes)
        await are_ready(processes)
        policy = processes.policy(Idle(), folder)
        # As many as the batches of both children hold.
        writing = [asyncio.create_task(policy.complete(asking(f"{n}"), endless)) for n in range(64)]
        await asyncio.sleep(0.1)
        for task in writing:
            task.cancel()
        await asyncio.gather(*writing, return_exceptions=True)
        assert all(task.cancelled() for task in writing)
        async with asyncio.timeout(_WAIT_S):
            assert (await policy.complete(asking("short"), Sampling(max_tokens=3))).text


async def test_a_prompt_too_long_is_refused_and_stops_no_other(make_checkpoint: Make) -> None:
    folder = make_checkpoint()
    with PolicyProcesses(2) as processes:
        open_policy(folder, processes)
        await are_ready(processes)
        policy = processes.policy(Idle(), folder)
        refused, fine = await asyncio.gather(
            policy.complete(asking("word " * 300), Sampling()),
            policy.complete(asking("a"), Sampling(max_tokens=3)),
            return_exceptions=True,
        )
    assert isinstance(refused, UsageError)
    assert "tiny reads at most 255 tokens" in str(refused)
    assert isinstance(fine, Completion)


@pytest.mark.parametrize(
    ("number", "ready"),
    [(signal.SIGKILL, 2), (signal.SIGINT, 0)],
    ids=["killed when they can write", "interrupted while they start"],
)
def test_children_end_with_their_parent_and_print_nothing(
    make_checkpoint: Make, number: signal.Signals, ready: int
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(make_checkpoint()), f"{ready}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "ready\n"
        # To all of its process group, as the terminal's Ctrl-C.
        os.killpg(parent.pid, number)
        # The children have its standard error, too: its end comes when the last of them has ended.
        _, err = parent.communicate(timeout=_WAIT_S)
    assert err == "" if number == signal.SIGKILL else err.count("Traceback") == 1, err
