"""When the plans of a batch run, and that none runs on once its batch is given up."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence

import pytest
import torch

from letter_codec import LetterCodec
from podium.scoring import RolloutRequest, Score
from podium.train.ranks import Ranks
from podium.train.rollouts import (
    OnEnd,
    RolloutCollector,
    RolloutSample,
    RoundSampling,
    TrainingInterruptedError,
)
from podium.train.schedule import ScheduledGroup
from podium.types import Message

END = 1
SAMPLES = [RolloutSample(ScheduledGroup(0, 0, 0, "sum", "first"), number) for number in range(3)]


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


class Lasting(Scored):
    """A scoring that ends only if it is cancelled, and then needs some turns of the loop. It counts those that ended.

    Args:
        stop: is set once all plans run.
    """

    def __init__(self, stop: threading.Event) -> None:
        super().__init__()
        self._stop = stop
        self.ended = 0

    async def score(self, request: RolloutRequest) -> Score:
        try:
            await super().score(request)
            if len(self.plans) == len(SAMPLES):
                self._stop.set()
            await asyncio.Event().wait()
            raise AssertionError("nothing sets this event")
        finally:
            await asyncio.sleep(0.05)
            self.ended += 1


def collector(
    scoring: Scored, *, stop: threading.Event | None = None, workers_here: bool = False
) -> RolloutCollector:
    """Has plans run in this loop."""
    return RolloutCollector(
        scoring,
        asyncio.get_running_loop(),
        LetterCodec(),
        rounds=1,
        discount=0.0,
        max_prompt_tokens=9,
        ranks=Ranks(),
        stop=stop or threading.Event(),
        workers_here=workers_here,
    )


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
    scoring = Scored()
    writer = Writer(scoring, asyncio.get_running_loop())

    scored, _ = await asyncio.to_thread(
        collector(scoring, workers_here=workers_here).run, SAMPLES, writer, max_samples=3
    )

    assert writer.ran == ran
    assert [sample.reward for sample in scored] == [1.0, 1.0, 1.0]
    assert sorted(scoring.plans) == ["a\x01", "b\x01", "c\x01"]


async def test_an_interrupted_batch_returns_once_its_plans_have_ended() -> None:
    """What they use is closed next: a plan that ran on found the response cache closed, and said so at length."""
    stop = threading.Event()
    scoring = Lasting(stop)
    writer = Writer(scoring, asyncio.get_running_loop())

    with pytest.raises(TrainingInterruptedError):
        await asyncio.to_thread(collector(scoring, stop=stop).run, SAMPLES, writer, max_samples=3)

    assert scoring.ended == 3


async def test_a_run_that_is_told_to_stop_writes_no_more_plans() -> None:
    stop, scoring = threading.Event(), Scored()
    stop.set()
    writer = Writer(scoring, asyncio.get_running_loop())

    with pytest.raises(TrainingInterruptedError):
        await asyncio.to_thread(collector(scoring, stop=stop).run, SAMPLES, writer, max_samples=3)

    assert (writer.ran, scoring.plans) == ([0], [])
