"""A whole training run small enough for a test: sums as tasks, three workers, a policy of a few thousand weights.

Each plan is one token of the policy's vocabulary, so a policy with random weights earns something from the start.
For runs of several rounds there is a policy with one word more, the acceptance. Run as a program it trains in a
folder, for the test that kills it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random

from tokenizers import Tokenizer, models, pre_tokenizers

from podium.conductor.checkpoint import Checkpoint
from podium.planner import Planner
from podium.rollout import RewardSettings, Rollout, Scorer
from podium.rollout.run_folder import RunFolder
from podium.tasks.task import Grade, Task
from podium.train.checkpoints import write_model
from podium.train.loop import train
from podium.train.model import PolicyModel
from podium.train.runtime import generator
from podium.train.settings import GRPOSettings
from podium.train.shape import ModelShape
from podium.types import Budget, Limits, Price, Profile, Question, Usage
from podium.workers.base import Reply, Request
from podium.workers.pool import Pool

PAD, BEGIN, END = 0, 1, 2
WORDS = ["<pad>", "<s>", "</s>", "<unk>", "Question:", "Models:", "Steps:", "Plan:", *map(str, range(10))]
PLANS = [f'model_id = [{worker}]\nsubtasks = ["Add."]\naccess_list = [[]]\n' for worker in range(3)] + [
    'model_id = [0, 1]\nsubtasks = ["Add.", "Check."]\naccess_list = [[], ["all"]]\n',
    "no plan",
]
ACCEPTANCE = "model_id = []\nsubtasks = []\naccess_list = []\n"
SHAPE = ModelShape(
    vocab=len(WORDS) + len(PLANS),
    hidden=32, layers=2, heads=4, kv_heads=2, head_size=8, inner=48, positions=128,
)  # fmt: skip


@dataclass(frozen=True)
class Adder:
    """Adds the numbers of a question, and is right with some chance."""

    name: str
    chance: float

    @property
    def profile(self) -> Profile:
        return Profile(name=self.name, description="adds", price=Price(input=1, output=1))

    limits = Limits()
    fallback = None
    identity = None

    async def answer(self, request: Request) -> Reply:
        numbers = request.messages[-1].content.split("add ", 1)[1].split("\n", 1)[0].split()[:2]
        right = Random(f"{self.name}/{request.seed}").random() < self.chance
        return Reply(str(sum(map(int, numbers)) + (not right)), Usage(input_tokens=50, output_tokens=5))

    async def close(self) -> None:
        return None


async def equal(response: str, gold: str) -> Grade:
    return Grade(score=float(response == gold), found=response)


POOL = Pool([Adder("poor", 0.2), Adder("good", 0.9), Adder("fair", 0.5)])


def draw(iteration: int) -> list[tuple[Task, Pool]]:
    rng = Random(f"sums/{iteration}")
    pairs = [(rng.randint(0, 9), rng.randint(0, 9)) for _ in range(4)]
    return [
        (Task(f"sums/{iteration}/{k}", Question(text=f"add {a} {b}"), str(a + b), equal), POOL)
        for k, (a, b) in enumerate(pairs)
    ]


def tokenizer(plans: Sequence[str] = PLANS) -> Tokenizer:
    made = Tokenizer(models.WordLevel({word: k for k, word in enumerate(WORDS)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.add_special_tokens(["<pad>", "<s>", "</s>"])
    made.add_tokens(list(plans))
    return made


def write_start(
    folder: Path,
    shape: ModelShape = SHAPE,
    dtype: str = "float32",
    *,
    accepts: bool = False,
    extra_sources: Sequence[str] = (),
    levels: int = 0,
    deviation: float = 0.1,
) -> Checkpoint:
    """A checkpoint with random weights.

    Args:
        accepts: it can write an acceptance as well.
        also: further texts that it can write, each in one token.
        levels: of cost sensitivity, that its prompt names.
        deviation: of its weights; the larger, the more a single token of its prompt matters.
    """
    plans = [*PLANS, *([ACCEPTANCE] if accepts else []), *extra_sources]
    shape = replace(shape, vocab=shape.vocab + len(plans) - len(PLANS))
    companions = folder.with_name(f"{folder.name}-companions")
    companions.mkdir()
    tokenizer(plans).save(str(companions / "tokenizer.json"))
    (companions / "podium.json").write_text(json.dumps({"prompt": {"style": "brief", "levels": levels}}))
    (companions / "tokenizer_config.json").write_text(
        json.dumps(
            {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "bos_token": "<s>",
                "eos_token": "</s>",
                "pad_token": "<pad>",
                "unk_token": "<unk>",
            }
        )
    )
    model = PolicyModel(shape)
    model.initialise(generator("tests/start"), deviation)
    write_model(
        model,
        folder,
        config=shape.config(bos=BEGIN, eos=END, pad=PAD, dtype=dtype),
        companions=sorted(companions.iterdir()),
        dtype=dtype,
    )
    return Checkpoint.read(folder)


SETTINGS = GRPOSettings(
    iterations=24,
    questions=4,
    group=8,
    lr=3e-2,
    max_tokens=3,
    save_every=4,
    dtype="fp32",
    seed=7,
    temperature=1.0,
    std_eps=1e-4,
)


async def score(
    planner: Planner, task: Task, pool: Pool, *, seed: str, cost_sensitivity: int = 0, rounds: int = 1
) -> Rollout | None:
    """The shipped scorer, but some rollouts fail for reasons that are not the policy's."""
    if Random(f"outage/{seed}").random() < 0.05:
        return None
    scorer = Scorer(reward=RewardSettings(cost=200.0), budget=Budget(rounds=rounds))
    return await scorer.roll(planner, task, pool, seed=seed, cost_sensitivity=cost_sensitivity)


async def run(folder: Path, start: Checkpoint, settings: GRPOSettings = SETTINGS, **options: object) -> Path:
    opened = RunFolder.open(folder, settings.model_dump(mode="json"), changeable=("minutes",))
    options = {"score": partial(score, rounds=settings.rounds), "draw_tasks": draw, **options}
    return await train(settings, start=start, run=opened, **options)


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1]), Checkpoint.read(sys.argv[2])))
