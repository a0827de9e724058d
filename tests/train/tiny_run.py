"""A whole training run small enough for a test: sums as tasks, three workers, a policy of a few thousand weights.

Each plan is one token of the policy's vocabulary, so a policy with random weights earns something from the start.
For runs of several rounds there is a policy with one word more, the acceptance.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from tokenizers import Tokenizer, models, pre_tokenizers

from podium.calls import CallState
from podium.conductor.checkpoint import Checkpoint
from podium.conductor.codec import PlainTextCodec, PromptCodec
from podium.rollout import RewardSettings
from podium.rollout.run_folder import RunFolder
from podium.scoring import RolloutRequest, Score, ScoringSession
from podium.tasks.task import Grade, Task
from podium.trace import Reply
from podium.train.engine import TrainingRun
from podium.train.grpo_run import make_job, run_in_thread
from podium.train.metrics_recorder import IterationRecorder
from podium.train.preflight import open_engine
from podium.train.progress import Progress
from podium.train.ranks import Ranks
from podium.train.runtime import named_generator
from podium.train.schedule import schedule
from podium.train.settings import CHANGEABLE_ON_RESUME, GRPOSettings, TrainSettings
from podium.train.shape import ModelShape
from podium.train.shared_prefix.batch import TrainingRow
from podium.train.shared_prefix.checkpoints import write_model
from podium.train.shared_prefix.policy_model import PolicyModel
from podium.train.shared_prefix.sampler import sample
from podium.train.start import resolve
from podium.types import Limits, Message, Price, Profile, Question, Usage
from podium.workers.base import Request, Worker
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
class Adder(Worker):
    """Adds the numbers of a question, and is right with some chance."""

    name: str
    chance: float

    @property
    def profile(self) -> Profile:
        return Profile(name=self.name, description="adds", price=Price(input=1, output=1))

    limits = Limits()

    async def answer(self, request: Request) -> Reply:
        numbers = request.messages[-1].content.split("add ", 1)[1].split("\n", 1)[0].split()[:2]
        right = Random(f"{self.name}/{request.seed}").random() < self.chance
        return Reply(str(sum(map(int, numbers)) + (not right)), Usage(input_tokens=50, output_tokens=5))


async def equal(response: str, gold: str) -> Grade:
    return Grade(score=float(response == gold), found=response)


POOL = Pool([Adder("poor", 0.2), Adder("good", 0.9), Adder("fair", 0.5)])


def make_tasks(count: int) -> dict[str, Task]:
    rng = Random("sums")
    pairs = [(rng.randint(0, 9), rng.randint(0, 9)) for _ in range(count)]
    return {
        f"sums/{k}": Task(f"sums/{k}", Question(text=f"add {a} {b}"), str(a + b), equal)
        for k, (a, b) in enumerate(pairs)
    }


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
    model.initialise(named_generator("tests/start"), deviation)
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
    temperature=1.0,
    discount="none",
)
SHORT = SETTINGS.model_copy(update={"iterations": 10, "save_every": 3})
"""A run that shows what is kept, and not what is learned."""


def make_group(
    prompt: Sequence[int],
    completions: Sequence[tuple[int, ...]],
    advantages: Sequence[float | None],
    suffixes: Sequence[tuple[int, ...]] = (),
) -> list[TrainingRow]:
    """Rows whose prompts begin alike, and end with the suffixes."""
    return [
        TrainingRow((*prompt, *suffix), tokens, advantage)
        for tokens, advantage, suffix in zip(
            completions, advantages, suffixes or [()] * len(completions), strict=True
        )
    ]


def draw_groups(
    model: PolicyModel,
    prompts: Sequence[Sequence[int]],
    suffixes: Sequence[Sequence[tuple[int, ...]]],
    *,
    max_tokens: int,
    seed: str,
    temperature: float = 1.0,
) -> list[list[TrainingRow]]:
    """A completion after each prompt and each of its suffixes."""
    groups = [[(*prompt, *suffix) for suffix in own] for prompt, own in zip(prompts, suffixes, strict=True)]
    drawn = sample(
        model, groups, max_tokens=max_tokens, eos_token_ids=(END,), seed=seed, temperature=temperature
    )
    rows = {(row.question, row.number): row for row in drawn}
    return [
        [
            TrainingRow(whole, tuple(rows[q, g].tokens), 1.0, old_logprobs=tuple(rows[q, g].logprobs))
            for g, whole in enumerate(group)
        ]
        for q, group in enumerate(groups)
    ]


class Unreliable:
    """A scoring session some of whose rollouts fail for reasons that are not the policy's."""

    def __init__(self, session: ScoringSession) -> None:
        self._session = session

    async def prompt(self, request: RolloutRequest) -> tuple[Message, ...] | None:
        return await self._session.prompt(request)

    async def score(self, request: RolloutRequest) -> Score:
        if Random(f"outage/{request.group}/{request.rollout}").random() < 0.05:
            return Score(reward=None)
        return await self._session.score(request)


def make_settings(start: Checkpoint, grpo: GRPOSettings = SETTINGS, **settings: Any) -> TrainSettings:
    """With several rounds, `grpo.group` is the number of rollouts."""
    rounds = settings.get("rounds", 1)
    shared = grpo.model_copy(update={"group": grpo.group * rounds})
    return resolve(
        TrainSettings(
            engine="shared_prefix",
            dtype="fp32",
            start=str(start.path),
            grpo=shared,
            **{"seed": 7, "reward": RewardSettings(cost=200.0), **settings},
        )
    )


def make_session(settings: TrainSettings, pool: Pool = POOL) -> ScoringSession:
    tasks = make_tasks(settings.grpo.iterations * settings.grpo.questions)
    evaluated = {f"validation/{name}": task for name, task in make_tasks(3).items()}
    return ScoringSession(settings, tasks, pool, CallState(), eval_tasks=evaluated)


async def run(
    folder: Path,
    start: Checkpoint,
    grpo: GRPOSettings = SETTINGS,
    *,
    scoring: Callable[[ScoringSession], Any] = Unreliable,
    on_metrics: Callable[[Mapping[str, Any]], None] = lambda row: None,
    pool: Pool = POOL,
    codec: PromptCodec | None = None,
    **settings: Any,
) -> Path:
    """Train in a folder; returns that of the trained model."""
    made = make_settings(start, grpo, **settings)
    session = make_session(made, pool)
    evaluated = [f"validation/{name}" for name in make_tasks(3)] if grpo.eval_every else ()
    recorder = IterationRecorder(
        made,
        run=RunFolder.open(folder, made, changeable=CHANGEABLE_ON_RESUME),
        progress=Progress(lambda line: None, noun="plans"),
        on_metrics=on_metrics,
    )
    codec = codec or PlainTextCodec.of(start)
    opened = TrainingRun(made, Ranks(), folder, pool, start, None, codec)
    groups = schedule(made, list(session.tasks))
    job = make_job(opened, scoring(session), groups, evaluated, recorder)
    await run_in_thread(open_engine(made), job)
    return folder / "trained"
