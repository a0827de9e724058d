"""How a Conductor that a user names is asked."""

from collections.abc import Callable
from pathlib import Path

from podium.conductor import Checkpoint, Conductor, open_policy
from podium.conductor.opening import open_conductor
from podium.planner import PlanRequest
from podium.types import Profile, Question
from podium.workflow import PlanError

SITUATION = PlanRequest(Question(text="3 + 4?"), (Profile(name="a"), Profile(name="b")))


async def test_a_small_conductor_too_has_a_second_try(make_checkpoint: Callable[..., Path]) -> None:
    folder = make_checkpoint(podium={"prompt": {"style": "brief"}})
    checkpoint = Checkpoint.read(folder)
    once = await Conductor(open_policy(checkpoint), checkpoint.prompt).plan(SITUATION)
    twice = await open_conductor(str(folder)).plan(SITUATION)
    assert isinstance(once.decision, PlanError)
    assert isinstance(twice.decision, PlanError)
    assert twice.usage.input_tokens == 2 * once.usage.input_tokens
    assert twice.text != once.text
