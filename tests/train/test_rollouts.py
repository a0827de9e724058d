"""When the plans of a batch run."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence

import pytest
import torch

from letter_codec import LetterCodec
from podium.scoring import RolloutRequest, Score
from podium.train.ranks import Ranks
from podium.train.rollouts import OnEnd, RolloutCollector, RolloutSample, RoundSampling
from podium.train.schedule import ScheduledGroup
from podium.types import Message

END = 1


class Scored:
    """A scoring that counts the plans that were run."""

    def __init__(self) -> None:
        self.plans: list[str] = []

    async def prompt(self, request: RolloutRequest) -> tuple[Message, ...] | None:
        return (Message(role="user", content=request.task),)

    async def score(self, request: RolloutRequest) -> Score:
        self.plans.append(request.plans[-1])
        return Score(reward=1.0)


class Writer:
    """Writes a plan after another, and counts before each one how many plans ran by then."""

    eos_token_ids = (END,)

    def __init__(self, scoring: Scored, loop: asyncio.AbstractEventLoop) -> None:
        self._scoring, self._loop = scoring, loop
        self.ran: list[int] = []

    def draw(self, samples: Sequence[RolloutSample], on_end: OnEnd, sampling: RoundSampling) -> None:
        for sample in samples:
            asyncio.run_coroutine_threadsafe(asyncio.sleep(0), self._loop).result()
            self.ran.append(len(self._scoring.plans))
            on_end(sample, (ord("a") + sample.rollout, END), None)


@pytest.fixture
def threads() -> Iterator[None]:
    yield
    torch.set_num_threads(1)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize(
    ("workers_here", "cores", "ran"),
    [(True, 2, [0, 0, 0]), (True, 1, [0, 1, 2]), (False, 2, [0, 1, 2])],
)
async def test_plans_wait_for_the_last_one_if_workers_and_policy_share_cores(
    workers_here: bool, cores: int, ran: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    torch.set_num_threads(cores)
    scoring, loop = Scored(), asyncio.get_running_loop()
    rollouts = RolloutCollector(
        scoring,
        loop,
        LetterCodec(),
        rounds=1,
        discount=0.0,
        max_prompt_tokens=9,
        ranks=Ranks(),
        stop=threading.Event(),
        workers_here=workers_here,
    )
    writer = Writer(scoring, loop)
    group = ScheduledGroup(0, 0, 0, "sum", "first")
    samples = [RolloutSample(group, number) for number in range(3)]

    scored, _ = await asyncio.to_thread(rollouts.run, samples, writer, max_samples=3)

    assert writer.ran == ran
    assert [sample.reward for sample in scored] == [1.0, 1.0, 1.0]
    assert sorted(scoring.plans) == ["a\x01", "b\x01", "c\x01"]
